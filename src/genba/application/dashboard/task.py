"""What the dashboard looks at of one task: all that is known of it, the lines it changes, the log of a goal."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import OrderedDict
from typing import TYPE_CHECKING

import msgspec

from genba.application.sessions.liveness import is_alive
from genba.blackboard.fleet.session_segments import sessions as sessions_of
from genba.blackboard.tasks import task_rows
from genba.blackboard.views import task_views
from genba.domain.errors import NotFoundError
from genba.domain.facilitation import AvailableAgent
from genba.domain.fleet.records import Purpose
from genba.domain.hashes import is_hash
from genba.domain.tasks.task import Task, TaskStatus
from genba.domain.views.task import AgentChoice, DiffView, FileDiff, TaskView
from genba.judgement.scheduling.actions import Agent
from genba.judgement.scheduling.assignment import Assignment, assign
from genba.judgement.triage.suggestions import can_be_called
from genba.judgement.views.task_actions import TaskFacts, task_actions

if TYPE_CHECKING:
    from genba.application.dashboard.queries import DashboardQueries
    from genba.blackboard.database.store import Transaction
    from genba.domain.goals.verification import Verification

LONGEST_LOG = 256 * 1024
_FACILITATOR = "facilitator"
_AGENTS_SECONDS = 5.0
_MOST_COMPARED = 32
_OWN_BRANCH = (Purpose.WORK, Purpose.INTEGRATE)


class TaskWindow:
    """Looks at one task at a time. Any thread may ask."""

    def __init__(self, queries: DashboardQueries) -> None:
        self.queries = queries
        self._lock = threading.Lock()
        self._agents: tuple[float, tuple[tuple[AgentChoice, Agent], ...]] = (float("-inf"), ())
        self._compared: OrderedDict[tuple[str, str], DiffView] = OrderedDict()

    # ── all that is known of it ──────────────────────────────────────────────────────────────────────────────────────

    def picture(self, number: int) -> TaskView:
        standing, context = self.queries.standing(), self.queries.context
        picture = self.queries.fleet.store.read(lambda tx: _read(tx, number))
        board = self.queries.fleet.board
        task = board.get(number) if picture.task.status is TaskStatus.REVIEW else picture.task
        alive = tuple(each.run for each in picture.sessions if is_alive(context, each, standing.absent))
        asked = tuple(each for each in standing.field.escalations if each.status == "open" and each.task == number)
        held = number in standing.field.held
        known = TaskFacts(
            ready=number in standing.field.ready,
            alive=bool(alive),
            waiting=any(each.status == "waiting" for each in picture.sessions),
            held=held,
            verified=picture.verification is not None and picture.verification.done,
            asked=asked,
        )
        url, requests = self.queries.outside(task) if task.tracker != "local" else ("", ())
        agents, chosen = self._choices(task)
        return msgspec.structs.replace(
            picture,
            task=task,
            why=standing.why(task) or _landed(picture),
            held=held,
            asked=asked,
            plan=next((each for each in reversed(standing.field.plans) if each.task == number), None),
            alive=alive,
            url=url,
            pull_requests=tuple(requests),
            actions=task_actions(task, known),
            agents=agents,
            agent=chosen,
        )

    def verdict(self, number: int, id_: int) -> Verification:
        """An earlier verdict with its evidence."""
        found = self.queries.fleet.store.read(lambda tx: task_views.verdict(tx, task_rows.id_of(tx, number), id_))
        if found is None:
            raise NotFoundError(f"task #{number} has no verdict {id_}", hint=f"genba task show {number}")
        return found

    def goal_log(self, name: str) -> tuple[str, bool]:
        """The output of a goal, and whether its beginning was left out: what failed stands at the end."""
        return self.queries.context.results().end_of_log(name, LONGEST_LOG)

    def _choices(self, task: Task) -> tuple[tuple[AgentChoice, ...], str]:
        """Who could be started on it, and who should be."""
        offered = self._offered()
        context = self.queries.context
        stages = context.project.stages.get(task.type, ())
        found = assign(task, [agent for _, agent in offered], context.project.fleet.work.agent, stages)
        choices = tuple(choice for choice, _ in offered)
        return choices, found.agent if isinstance(found, Assignment) else (choices[0].name if choices else "")

    def _offered(self) -> tuple[tuple[AgentChoice, Agent], ...]:
        """The agents that an issue is all they need, read from their files every few seconds."""
        with self._lock:
            read, offered = self._agents
            if time.monotonic() - read < _AGENTS_SECONDS:
                return offered
        found = []
        registry = self.queries.context.registry
        for info in registry.agents()[0]:
            definition = registry.load(info.name)
            on_offer = AvailableAgent(
                name=info.name,
                display_name=info.display_name,
                description=info.description,
                capabilities=info.capabilities,
                parameters={name: msgspec.to_builtins(each) for name, each in info.parameters.items()},
            )
            answers = definition.adapter_type is not None and not definition.state_driven
            if info.name != _FACILITATOR and answers and can_be_called(on_offer):
                choice = AgentChoice(name=info.name, title=info.display_name, description=info.description)
                found.append((choice, Agent(name=info.name, capabilities=info.capabilities)))
        with self._lock:
            self._agents = (time.monotonic(), tuple(found))
            return self._agents[1]

    # ── what it changes ──────────────────────────────────────────────────────────────────────────────────────────────

    async def compare(self, number: int) -> DiffView:
        """The work on a task against what it began at: of its branch, or of what was verified of it."""
        place = await asyncio.to_thread(self._place, number)
        place = await self._resolved(place)
        if not place.commit or place.commit == place.base:
            return place
        key = (place.base, place.commit)
        with self._lock:
            kept = self._compared.get(key)
        if kept is None:
            kept = await asyncio.to_thread(self._compare, place)
            with self._lock:
                self._compared[key] = kept
                while len(self._compared) > _MOST_COMPARED:
                    self._compared.popitem(last=False)
        return msgspec.structs.replace(kept, number=number, branch=place.branch, base_branch=place.base_branch)

    def file(self, place: DiffView, path: str) -> FileDiff:
        """The lines of one file of a comparison."""
        found = next((each for each in place.files if each.path == path), None)
        if found is None:
            raise NotFoundError("the work does not change such a file", hint=f"genba task show {place.number}")
        return self.queries.context.ports.repository.diff().file(place.base, place.commit, path, found.before)

    def _place(self, number: int) -> DiffView:
        """Which commits are compared, as far as the blackboard knows."""
        sessions, verification = self.queries.fleet.store.read(
            lambda tx: (sessions_of(tx, number), _newest_verdict(tx, number))
        )
        session = next((each for each in reversed(sessions) if each.branch and each.purpose in _OWN_BRANCH), None)
        subject = verification.subject if verification is not None else None
        if session is None and subject is None:
            return DiffView(number=number)
        return DiffView(
            number=number,
            branch=session.branch if session is not None else (subject.branch if subject else ""),
            base_branch=(session.base_branch if session is not None else "")
            or (subject.base_branch if subject else ""),
            base=(subject.base if subject else "") or (session.base if session is not None else ""),
            commit=(subject.commit if subject else "") or (session.verified if session is not None else ""),
        )

    async def _resolved(self, place: DiffView) -> DiffView:
        """The same, as git knows it: the branch as it is now, over where it left its base branch."""
        git = self.queries.context.layout.git
        tip = await git.commit_of(f"refs/heads/{place.branch}") if place.branch else None
        if tip is None and is_hash(place.commit):
            tip = await git.commit_of(place.commit)
        if tip is None:
            return msgspec.structs.replace(place, commit="")
        base = place.base
        onto = await git.commit_of(f"refs/heads/{place.base_branch}") if place.base_branch else None
        if onto is not None and not await git.is_ancestor(tip, onto):
            done = await git.run("merge-base", onto, tip, allow=(0, 1))
            base = done.stdout.strip() or base
        known = is_hash(base) and await git.commit_of(base) is not None
        return msgspec.structs.replace(place, base=base if known else tip, commit=tip)

    def _compare(self, place: DiffView) -> DiffView:
        diff = self.queries.context.ports.repository.diff()
        found = diff.files(place.base, place.commit)
        return msgspec.structs.replace(
            place,
            commits=diff.commits(place.base, place.commit),
            files=tuple(found.files),
            files_total=found.total,
            added=found.added,
            removed=found.removed,
        )


def _read(tx: Transaction, number: int) -> TaskView:
    """What stands on the blackboard, in one look."""
    task = task_rows.task_with_rows(tx, number).task
    sessions = tuple(sessions_of(tx, number))
    verdicts = task_views.verdicts(tx, task.id)
    events, total = task_views.events(tx, task.id)
    return TaskView(
        task=task,
        why="",
        sessions=sessions,
        verification=task_views.verdict(tx, task.id, verdicts[0].id) if verdicts else None,
        verdicts=verdicts,
        entries=task_views.entries(tx, task.id),
        comments=task_views.comments(tx, task.id),
        messages=task_views.messages(tx, task.id),
        events=events,
        events_total=total,
        parent=task_views.parent(tx, task.id) if task.parent is not None else None,
        parts=task_views.parts(tx, task.id) if task.children else (),
        waits_for=task_views.waits_for(tx, task.id) if task.dependencies else (),
        waited_for_by=task_views.waited_for_by(tx, task.id),
        cost_usd=sum(each.cost_usd for each in sessions),
        tokens=sum(each.tokens for each in sessions),
    )


def _landed(picture: TaskView) -> str:
    """Where the work of a task that is done is."""
    landed = next((each.landed for each in picture.entries if each.landed), "")
    return f"merged {landed[:7]}" if landed and picture.task.status is TaskStatus.DONE else ""


def _newest_verdict(tx: Transaction, number: int) -> Verification | None:
    task = task_rows.id_of(tx, number)
    newest = task_views.verdicts(tx, task, 1)
    return task_views.verdict(tx, task, newest[0].id) if newest else None
