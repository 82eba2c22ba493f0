"""The field as one executor sees it, with what is asked of it often looked up once."""

from functools import cached_property

from genba.definitions.project.work_sections import FleetSettings
from genba.domain.fleet.records import (
    Escalation,
    EscalationKind,
    FleetSession,
    FleetSnapshot,
    MergeEntry,
    Plan,
    ProviderPause,
    Purpose,
    Review,
)
from genba.domain.tasks.task import Task, TaskStatus
from genba.domain.timestamps import is_before
from genba.judgement.scheduling.actions import Agent, WorkerContext
from genba.judgement.scheduling.assignment import Assignment, assign

DECIDED = ("answered", "approved", "rejected")
_WORKS = (Purpose.WORK, Purpose.INTEGRATE)


def ancestors(field: FleetSnapshot, task: Task) -> list[Task]:
    """The task, what it is a part of, and so on up; what a review judges is above it as well."""
    found, above = [task], task.parent if task.parent is not None else task.review_of
    seen = {task.number}
    while above is not None and above not in seen and above in field.tasks:
        seen.add(above)
        found.append(field.tasks[above])
        above = found[-1].parent
    return found


def held_by(field: FleetSnapshot, task: Task) -> int | None:
    """The paused task: this one, or one above it."""
    if not field.held:
        return None
    return next((one.number for one in ancestors(field, task) if one.number in field.held), None)


class SchedulerView:
    """Looks up, and decides nothing."""

    def __init__(self, field: FleetSnapshot, settings: FleetSettings, me: WorkerContext) -> None:
        self.field = field
        self.settings = settings
        self.me = me
        self.now = field.now

    # ── tasks ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def line(self, task: Task) -> list[Task]:
        return ancestors(self.field, task)

    def held(self, task: Task) -> int | None:
        return held_by(self.field, task)

    def depth(self, task: Task) -> int:
        return len(self.line(task)) - 1

    def parts(self, task: Task) -> tuple[int, ...]:
        """Its children without those that review it."""
        return tuple(number for number in task.children if number not in self.review_tasks)

    def stages(self, task: Task) -> tuple[str, ...]:
        """The agents that work on a task one after the other; none where its type has no stages."""
        return self.me.stages.get(task.type, ())

    def is_plain(self, task: Task) -> bool:
        """Whether nothing is known of a task but what it says itself: it is begun, or it waits for a worker."""
        number, settings = task.number, self.settings.decompose
        return (
            task.review_of is None
            and not task.children
            and not task.decompose
            and task.type not in settings.types
            and not any(label in settings.labels for label in task.labels)
            and number not in self.field.failures
            and number not in self.plans
            and number not in self._escalations
            and number not in self.field.ledger.by_task
        )

    @cached_property
    def review_tasks(self) -> frozenset[int]:
        declared = {task.number for task in self.field.tasks.values() if task.review_of is not None}
        return frozenset(declared | {review.task for review in self.field.reviews})

    # ── sessions ─────────────────────────────────────────────────────────────────────────────────────────────────────

    @cached_property
    def sessions(self) -> dict[int, list[FleetSession]]:
        found: dict[int, list[FleetSession]] = {}
        for session in self.field.sessions:
            found.setdefault(session.task, []).append(session)
        return found

    def live(self, number: int) -> list[FleetSession]:
        """Its sessions that have not ended; the one that counts first: who runs, then the newest."""
        alive = [session for session in self.sessions.get(number, ()) if session.status != "ended"]
        if len(alive) < 2:  # noqa: PLR2004  (most tasks have one session, or none)
            return alive
        return sorted(alive, key=lambda session: (session.status != "running", -session.attempt, session.run))

    def last_work(self, number: int) -> FleetSession | None:
        """The newest session that worked on a task itself, ended or not."""
        worked = [session for session in self.sessions.get(number, ()) if session.purpose in _WORKS]
        return max(worked, key=lambda session: session.attempt, default=None)

    def newest(self, number: int, purpose: Purpose) -> FleetSession | None:
        """The newest session of a task with this purpose, ended or not."""
        found = [session for session in self.sessions.get(number, ()) if session.purpose is purpose]
        return max(found, key=lambda session: session.attempt, default=None)

    @cached_property
    def running(self) -> list[FleetSession]:
        return [session for session in self.field.sessions if session.status == "running"]

    def failures(self, number: int, purpose: Purpose) -> tuple[FleetSession, ...]:
        return tuple(session for session in self.field.failures.get(number, ()) if session.purpose is purpose)

    def next_attempt(self, number: int) -> int:
        """The number of the next session of a task. It is never one that was there."""
        known = (*self.sessions.get(number, ()), *self.field.failures.get(number, ()))
        return max((session.attempt for session in known), default=0) + 1

    def authors(self, number: int) -> frozenset[str]:
        """Who has ever worked on a task that is in review."""
        return self.field.authors.get(number, frozenset())

    @cached_property
    def _live_executors(self) -> frozenset[str]:
        return frozenset(executor.id for executor in self.field.executors if executor.status == "live")

    def is_mine(self, session: FleetSession) -> bool:
        """Whether this executor goes on with a session: it is its own, or its executor is not alive."""
        return session.executor in ("", self.me.executor) or session.executor not in self._live_executors

    # ── what is known of a task ──────────────────────────────────────────────────────────────────────────────────────

    @cached_property
    def _entries(self) -> dict[str, MergeEntry]:
        found: dict[str, MergeEntry] = {}
        for entry in self.field.entries:
            known = found.get(entry.run)
            if known is None or (entry.round, entry.id) > (known.round, known.id):
                found[entry.run] = entry
        return found

    def entry(self, run: str) -> MergeEntry | None:
        return self._entries.get(run)

    @cached_property
    def _escalations(self) -> dict[int, list[Escalation]]:
        found: dict[int, list[Escalation]] = {}
        for escalation in self.field.escalations:
            found.setdefault(escalation.task, []).append(escalation)
        return found

    def asked(self, number: int, kind: EscalationKind) -> Escalation | None:
        """What a person is being asked about a task."""
        return next(
            (one for one in self._escalations.get(number, ()) if one.kind is kind and one.status == "open"), None
        )

    def is_with_person(self, number: int) -> bool:
        """Whether its manager has given a part to a person, who has not answered yet."""
        return any(one.status == "open" and one.evidence.get("by") for one in self._escalations.get(number, ()))

    def decided(self, number: int, kind: EscalationKind, **evidence: object) -> Escalation | None:
        """What a person decided last about a task, when it was about exactly this."""
        found = [
            one
            for one in self._escalations.get(number, ())
            if one.kind is kind
            and one.status in DECIDED
            and all(one.evidence.get(name, value) == value for name, value in evidence.items())
        ]
        return max(found, key=lambda one: (one.answered_at, one.id), default=None)

    def reviews(self, number: int) -> list[Review]:
        return self._reviews.get(number, [])

    @cached_property
    def _reviews(self) -> dict[int, list[Review]]:
        found: dict[int, list[Review]] = {}
        for review in sorted(self.field.reviews, key=lambda one: one.task):
            found.setdefault(review.of, []).append(review)
        return found

    @cached_property
    def review_of(self) -> dict[int, Review]:
        """By the number of the task that reviews."""
        return {review.task: review for review in self.field.reviews}

    @cached_property
    def plans(self) -> dict[int, Plan]:
        return {plan.task: plan for plan in sorted(self.field.plans, key=lambda one: one.id)}

    # ── managers ─────────────────────────────────────────────────────────────────────────────────────────────────────

    @cached_property
    def managers(self) -> frozenset[str]:
        return frozenset(agent.name for agent in self.me.agents if agent.manages)

    def manager_of(self, task: Task) -> Assignment | None:
        """The manager that a task is given to, if it is given to one."""
        if not self.managers or task.review_of is not None:
            return None
        found = assign(task, self.me.agents, self.settings.work.agent, self.stages(task))
        return found if isinstance(found, Assignment) and found.agent in self.managers else None

    def is_managed(self, task: Task) -> bool:
        """Whether a manager that has not ended decides what becomes of a task."""
        above = self.live(task.parent) if task.parent is not None else []
        return any(session.purpose is Purpose.MANAGE for session in above)

    def ready(self) -> tuple[int, ...]:
        """What can be started. A manager begins before the parts of its task have ended: it sees to them."""
        if not self.managers:
            return self.field.ready
        tasks, known = self.field.tasks, set(self.field.ready)
        managed = [
            number
            for number, task in tasks.items()
            if number not in known
            and task.status is TaskStatus.OPEN
            and all(tasks[one].status is TaskStatus.DONE for one in task.dependencies if one in tasks)
            and self.manager_of(task) is not None
        ]
        return (*self.field.ready, *managed)

    # ── agents and providers ─────────────────────────────────────────────────────────────────────────────────────────

    @cached_property
    def agents(self) -> dict[str, Agent]:
        return {agent.name: agent for agent in self.me.agents}

    @cached_property
    def pauses(self) -> dict[str, ProviderPause]:
        """By provider: the pause that is not over."""
        return {pause.provider: pause for pause in self.field.pauses if is_before(self.now, pause.until)}

    def fits_filter(self, task: Task, agent: str) -> str:
        """Why the filter of this executor excludes a task; empty when it does not."""
        if self.me.only_agent and agent != self.me.only_agent:
            return f"{agent} would do it, and only {self.me.only_agent} works here"
        if self.me.only_label and not any(self.me.only_label in one.labels for one in self.line(task)):
            return f'only tasks with the label "{self.me.only_label}" are taken here'
        if self.me.only_board and not any(one.number in self.me.on_board for one in self.line(task)):
            return f"only issues on the board {self.me.only_board} are taken here"
        return ""
