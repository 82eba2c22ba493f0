"""Plans and their subtasks: make them, begin and end them, give them away.

Law: a worker's subtasks are the steps of its own plan, on its own branch; a manager's are tasks that others carry out.
What was asked for twice in the same words is made once.
"""

import asyncio
import hashlib
from collections.abc import Callable

import msgspec

from genba.coordination.workflow.answers import CreatedTasks, TaskChanged, WorkerList
from genba.coordination.workflow.boards import Boards, actor_of, refused
from genba.coordination.workflow.claims import Claims
from genba.coordination.workflow.work_verifier import WorkVerifier
from genba.domain.errors import GenbaError
from genba.domain.fleet.records import Plan
from genba.domain.problems import did_you_mean
from genba.domain.tasks.task import Task, TaskStatus
from genba.domain.workflow.actions import (
    ActionKind,
    AgentConnection,
    ErrorCode,
    Hierarchy,
    Phase,
    Snapshot,
    SubtaskDraft,
    SubtaskView,
    Tool,
    Worker,
    WorkflowError,
)
from genba.judgement.scheduling.plans import TYPES, PlanLimits, read_plan
from genba.judgement.workflow.next_action import decide

_MAX_PROBLEMS = 10
_LONGEST_KEY = 200
_ADDING = (ActionKind.REWORK, ActionKind.HANDLE_BLOCKED)
"""Actions in which a plan is added to."""
_S = TaskStatus


class TaskTypes(msgspec.Struct, frozen=True):
    """The types that a subtask can have."""

    known: tuple[str, ...] = TYPES
    reviewed: dict[str, str] = {}
    """Those whose work is reviewed, and by whom: human or ai."""


class Subtasks:
    def __init__(
        self,
        boards: Boards,
        desk: WorkVerifier,
        agents: Callable[[], tuple[Worker, ...]],
        types: TaskTypes,
        claims: Claims,
    ) -> None:
        self._boards = boards
        self._board = boards.board
        self._desk = desk
        self._agents = agents
        self._types = types
        self._claims = claims

    async def create_one(self, connection: AgentConnection, draft: SubtaskDraft, key: str) -> CreatedTasks:
        """A plan that is made call by call grows until its first subtask is begun or given away."""
        snapshot, task = await self._boards.permitted(connection, Tool.CREATE_TASK)
        return await self._make(connection, snapshot, task, (draft,), key, more=True)

    async def create_batch(
        self, connection: AgentConnection, drafts: tuple[SubtaskDraft, ...], key: str
    ) -> CreatedTasks:
        snapshot, task = await self._boards.permitted(connection, Tool.CREATE_TASKS_BATCH)
        more = decide(snapshot).action in _ADDING
        return await self._make(connection, snapshot, task, drafts, key, more=more)

    async def update(self, connection: AgentConnection, number: int, status: str, reason: str) -> TaskChanged:
        _, task = await self._boards.permitted(connection, Tool.UPDATE_TASK_STATUS)
        to = _status(status)
        if number == task.number:
            return await self._own_task(connection, task, to, reason)
        piece = await self._boards.child(connection, number)
        if connection.hierarchy is Hierarchy.MANAGER:
            return await self._part(connection, piece, to, reason)
        return await self._step(connection, task, piece, to)

    async def assign(self, connection: AgentConnection, number: int, agent: str, note: str) -> TaskChanged:
        await self._boards.permitted(connection, Tool.ASSIGN_TASK)
        piece = await self._boards.child(connection, number)
        if number == connection.task:
            raise WorkflowError(ErrorCode.FORBIDDEN, f"#{number} is your own task, and stays yours")
        workers = (await self.workers(connection)).workers
        chosen = next((worker for worker in workers if worker.name == agent), None)
        if chosen is None:
            names = [worker.name for worker in workers]
            hint = did_you_mean(agent, names) or f"list_workers: {', '.join(names) or 'there is none'}"
            itself = "you cannot give it to yourself" if agent == connection.agent else f'there is no worker "{agent}"'
            raise WorkflowError(ErrorCode.VALIDATION, itself, hint=hint)
        if chosen.hierarchy is Hierarchy.MANAGER:
            await self._deep_enough(piece)
        moved = await self._boards.write(
            lambda: self._board.assign(number, agent, actor=actor_of(connection), note=note, run=connection.run),
            ErrorCode.INVALID_TRANSITION,
        )
        await self._mark(connection, Phase.EXECUTING)
        return TaskChanged(task=moved)

    async def workers(self, connection: AgentConnection) -> WorkerList:
        """The agents that work can be assigned to, the least busy first, without the caller."""
        known = {worker.name: worker for worker in await self._boards.read(self._board.workers)}
        external_agents = {agent.name for agent in await self._boards.read(self._board.agents) if agent.has_passkey}
        here = {worker.name: worker for worker in await asyncio.to_thread(self._agents)}
        found = [known[name] for name in external_agents if name in known and name not in here]
        for worker in here.values():
            load = known[worker.name].load if worker.name in known else 0
            found.append(msgspec.structs.replace(worker, load=load))
        others = [worker for worker in found if worker.name != connection.agent]
        return WorkerList(workers=tuple(sorted(others, key=lambda worker: (worker.load, worker.name))))

    async def _make(
        self,
        connection: AgentConnection,
        snapshot: Snapshot,
        task: SubtaskView,
        drafts: tuple[SubtaskDraft, ...],
        key: str,
        *,
        more: bool,
    ) -> CreatedTasks:
        manages = connection.hierarchy is Hierarchy.MANAGER
        names = tuple(worker.name for worker in (await self.workers(connection)).workers) if manages else ()
        wanted = _checked(task, drafts, names, self._boards.limits.max_subtasks, self._types.known)
        _check_key(key)
        made = await self._boards.write(
            lambda: self._board.create_subtasks(
                task.number,
                wanted,
                in_plan=not manages,
                actor=actor_of(connection),
                key=key or _key(wanted),
                limits=self._boards.limits,
                more=more,
                run=connection.run,
                reviewed=self._types.reviewed,
            )
        )
        if snapshot.phase in (Phase.NEW, Phase.FETCHED):
            await self._mark(connection, Phase.PLANNED)
        return CreatedTasks(subtasks=made)

    async def _own_task(
        self, connection: AgentConnection, task: SubtaskView, to: TaskStatus, reason: str
    ) -> TaskChanged:
        """A worker can say of its own task only that it needs no subtasks; everything else has a tool of its own."""
        if to is _S.DONE or to is _S.REVIEW:
            raise WorkflowError(
                ErrorCode.OUT_OF_ORDER, "your task is done when its goals pass", hint="call report_completed"
            )
        if to is _S.BLOCKED:
            raise WorkflowError(ErrorCode.OUT_OF_ORDER, "say what is in the way", hint="call report_blocked")
        if to is not _S.IN_PROGRESS or connection.hierarchy is Hierarchy.MANAGER:
            raise WorkflowError(
                ErrorCode.INVALID_TRANSITION if connection.hierarchy is Hierarchy.WORKER else ErrorCode.FORBIDDEN,
                f"your own task cannot become {to} by your word",
                hint="report_completed or report_blocked end it",
            )
        if any(not piece.status.ended for piece in await self._boards.read(lambda: self._board.pieces(task.number))):
            raise WorkflowError(
                ErrorCode.OUT_OF_ORDER, f"#{task.number} has subtasks", hint="get_next_action names one"
            )
        del reason  # "atomic" says what the call itself says
        await self._boards.write(lambda: self._board.mark_atomic(task.number, connection.run, connection.agent))
        await self._mark(connection, Phase.EXECUTING)
        return TaskChanged(task=task)

    async def _step(
        self, connection: AgentConnection, task: SubtaskView, piece: SubtaskView, to: TaskStatus
    ) -> TaskChanged:
        """A step of a worker's own plan."""
        if to is _S.IN_PROGRESS:
            started = await self._boards.write(
                lambda: self._board.start_step(
                    task.number, piece.number, run=connection.run, actor=actor_of(connection)
                ),
                ErrorCode.INVALID_TRANSITION,
            )
            await self._mark(connection, Phase.EXECUTING)
            return TaskChanged(task=started)
        if to is not _S.DONE:
            raise WorkflowError(
                ErrorCode.INVALID_TRANSITION,
                f"a step of your plan becomes in_progress or done, not {to}",
                hint="report_blocked says that you cannot go on",
            )
        if piece.status is _S.DONE:
            return TaskChanged(task=piece, done=True)
        if piece.status is not _S.IN_PROGRESS:
            raise WorkflowError(
                ErrorCode.INVALID_TRANSITION,
                f"#{piece.number} is {piece.status}: it was not begun",
                hint=f'update_task_status(task_id={piece.number}, status="in_progress") begins it',
            )
        if not (await self._boards.read(lambda: self._board.board.get(piece.number))).in_plan:
            raise WorkflowError(
                ErrorCode.FORBIDDEN,
                f"#{piece.number} is no step of your plan: its own agent ends it",
                hint="list_tasks shows the tasks that are yours",
            )
        if not piece.goals:
            return await self._finished(connection, task.number, piece, "")
        return await self._claims.settled(
            f"{connection.id}:{piece.number}", lambda: self._judged(connection, task.number, piece)
        )

    async def _judged(self, connection: AgentConnection, task: int, piece: SubtaskView) -> TaskChanged:
        try:
            judged = await self._desk.judge_subtask(connection, piece.number)
        except GenbaError as error:
            raise refused(error) from error
        if not judged.done:
            return TaskChanged(task=piece, evidence=self._boards.in_language(judged.evidence))
        return await self._finished(connection, task, piece, judged.commit)

    async def _finished(self, connection: AgentConnection, task: int, piece: SubtaskView, commit: str) -> TaskChanged:
        finished = await self._boards.write(
            lambda: self._board.finish_step(
                task, piece.number, run=connection.run, actor=actor_of(connection), commit=commit
            ),
            ErrorCode.INVALID_TRANSITION,
        )
        return TaskChanged(task=finished, done=True)

    async def _part(self, connection: AgentConnection, piece: SubtaskView, to: TaskStatus, reason: str) -> TaskChanged:
        """A part that a manager answers for, and never works on."""
        actor = actor_of(connection)
        if to is _S.CANCELLED:
            moved = await self._boards.write(
                lambda: self._board.cancel(piece.number, actor=actor, reason=reason, run=connection.run),
                ErrorCode.INVALID_TRANSITION,
            )
            return TaskChanged(task=moved)
        if to is _S.OPEN:
            if not piece.assignee:
                raise WorkflowError(
                    ErrorCode.VALIDATION,
                    f"#{piece.number} has no assignee yet",
                    hint="assign_task gives it to a worker",
                )
            moved = await self._boards.write(
                lambda: self._board.assign(piece.number, piece.assignee, actor=actor, note=reason, run=connection.run),
                ErrorCode.INVALID_TRANSITION,
            )
            return TaskChanged(task=moved)
        raise WorkflowError(
            ErrorCode.FORBIDDEN,
            f"a manager does not make #{piece.number} {to}: its worker does, and the goals decide",
            hint="assign_task, or update_task_status with cancelled",
        )

    async def _deep_enough(self, piece: SubtaskView) -> None:
        depth = len(await self._boards.line_above(piece.number))
        most = self._boards.limits.max_depth
        if depth >= most:
            raise WorkflowError(
                ErrorCode.LIMIT,
                f"#{piece.number} has {depth} tasks above it, and at most {most} levels are taken apart",
                hint="give it to a worker, who carries it out",
            )

    async def _mark(self, connection: AgentConnection, phase: Phase) -> None:
        if connection.task is not None:
            number = connection.task
            await self._boards.write(lambda: self._board.mark(number, connection.run, connection.agent, phase))


def _checked(
    task: SubtaskView, drafts: tuple[SubtaskDraft, ...], agents: tuple[str, ...], most: int, types: tuple[str, ...]
) -> tuple[SubtaskDraft, ...]:
    """The same drafts, with goals written out; or a refusal with everything that a plan may not ask for.

    Dependencies are the blackboard's to check. A worker's steps are its own, so they have no assignee.
    """
    raw = {
        "subtasks": [
            {
                "key": f"s{at}",
                "title": draft.title,
                "body": draft.body,
                "type": draft.type,
                "priority": str(draft.priority),
                "scope": list(draft.scope),
                "goals": list(draft.goals),
                "assignee": draft.assignee if agents else "",
            }
            for at, draft in enumerate(drafts)
        ]
    }
    about = Task(id=0, number=task.number, title=task.title, type=task.type)
    # Whether a goal may run a program is the blackboard's to say, which knows what a person enabled.
    limits = PlanLimits(max_parts=most, max_depth=1, agents=agents if agents else None, types=types, commands=True)
    read = read_plan(raw, about, limits)
    if isinstance(read, Plan):
        goals = {part.key: tuple(msgspec.to_builtins(goal) for goal in part.goals) for part in read.subtasks}
        return tuple(
            msgspec.structs.replace(draft, goals=goals[f"s{at}"], assignee=draft.assignee if agents else "")
            for at, draft in enumerate(drafts)
        )
    lines = [f"{problem} ({problem.hint})" if problem.hint else str(problem) for problem in read[:_MAX_PROBLEMS]]
    if len(drafts) > most:
        raise WorkflowError(ErrorCode.LIMIT, lines[0], hint="join those that belong together")
    raise WorkflowError(ErrorCode.VALIDATION, "; ".join(lines), hint="fix that, and send all of them again")


def _check_key(key: str) -> None:
    if len(key) > _LONGEST_KEY:
        raise WorkflowError(ErrorCode.VALIDATION, f"the key is longer than {_LONGEST_KEY} characters")


def _key(drafts: tuple[SubtaskDraft, ...]) -> str:
    """The same request has the same key: a repeated request creates nothing twice."""
    return "request-" + hashlib.sha256(msgspec.json.encode(drafts)).hexdigest()[:32]


def _status(word: str) -> TaskStatus:
    try:
        return TaskStatus.read(word)
    except ValueError:
        words = ", ".join(status.value for status in TaskStatus)
        raise WorkflowError(ErrorCode.VALIDATION, f'"{word[:40]}" is not a status', hint=f"one of: {words}") from None
