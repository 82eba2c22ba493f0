"""The blackboard as a fleet sees it: sessions in parts, merge queue, escalations, reviews, plans, money, executors.

Every call is one transaction: it happens whole, or it raises and nothing was changed. Any thread may call. Each verb
may be repeated: a caller that died before it saw the result calls it again, and nothing happens twice.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType

from sqlalchemy import Connection

from genba.blackboard.database.paging import WHOLE, Page
from genba.blackboard.database.sanitize import now
from genba.blackboard.database.store import Transaction
from genba.blackboard.fleet import controls, escalations, executors, merge_entries, plans, session_segments, spending
from genba.blackboard.fleet.fleet_snapshot import SnapshotReader
from genba.blackboard.reviews import reviews
from genba.blackboard.tasks import handovers, status_gateway
from genba.blackboard.tasks.board import Blackboard
from genba.blackboard.workflow import external_agents
from genba.domain.fleet.merge_queue import EntryEnd
from genba.domain.fleet.records import (
    BranchHandover,
    EntryStatus,
    Escalation,
    Executor,
    FleetSession,
    FleetSnapshot,
    MergeEntry,
    Plan,
    ProviderPause,
    Review,
    SegmentEnd,
    SegmentOrder,
    Spending,
    SpendingTotals,
)
from genba.domain.tasks.task import Actor, Blocker, StatusChange

NO_REVIEWERS: Mapping[str, str] = MappingProxyType({})
"""No task type has a reviewer."""
Enqueue = Callable[[Connection], None]
"""Puts a workflow into its queue, in the transaction that writes the row which asks for it."""


class FleetBoard:
    """What the orchestrator, its workers and the people around them read and write."""

    def __init__(self, board: Blackboard) -> None:
        self.board = board
        self.store = board.store
        self._view = SnapshotReader()

    def field(self) -> FleetSnapshot:
        """Everything to decide on, seen at one moment."""
        return self.store.read(self._view.read)

    # Sessions

    def start(
        self,
        order: SegmentOrder,
        *,
        executor: str,
        host: str = "",
        provider: str = "",
        plan: str = "",
        base_branch: str = "",
        enqueue: Enqueue | None = None,
    ) -> FleetSession:
        """Claim a task for the first part of a session, and enqueue that part."""

        def both(tx: Transaction, connection: Connection) -> FleetSession:
            session, is_new = session_segments.start(
                tx, order, executor=executor, host=host, provider=provider, plan=plan, base_branch=base_branch
            )
            if is_new and enqueue is not None:
                enqueue(connection)
            return session

        return self.store.write_with(both)

    def continue_(
        self, order: SegmentOrder, *, executor: str, host: str = "", enqueue: Enqueue | None = None
    ) -> FleetSession:
        """Begin the next part of a session that waits, and enqueue it."""

        def both(tx: Transaction, connection: Connection) -> FleetSession:
            session, is_new = session_segments.continue_(tx, order, executor=executor, host=host)
            if is_new and enqueue is not None:
                enqueue(connection)
            return session

        return self.store.write_with(both)

    def end_part(self, end: SegmentEnd) -> None:
        self.store.write(lambda tx: session_segments.end_part(tx, end))

    def move_and_end(self, number: int, change: StatusChange | None, end: SegmentEnd) -> None:
        """Change the status of a task and end its segment in one transaction."""

        def both(tx: Transaction) -> None:
            if change is not None:
                status_gateway.change_status(tx, number, change)
            session_segments.end_part(tx, end)

        self.store.write(both)

    def give_up(self, run: str, part: int, reason: str, actor: Actor) -> None:
        """End a session that waits after this part; one that has gone on since is left alone."""
        self.store.write(lambda tx: session_segments.give_up(tx, run, part, reason, actor))

    def give_back(self, run: str, part: int, reason: str, actor: Actor) -> None:
        """End a session that waits after this segment, and open its task."""
        self.store.write(lambda tx: session_segments.give_back(tx, run, part, reason, actor))

    def abandoned(self, at: str, since: str) -> tuple[str, ...]:
        """Sessions of external agents that started before `since` and have no active connection."""
        return self.store.read(lambda tx: external_agents.abandoned(tx, at, since))

    def hand_over_branch(self, given: BranchHandover) -> None:
        """End the session of an outside manager, and leave its verified branch to one that waits for the merge."""
        self.store.write(lambda tx: external_agents.hand_over_branch(tx, given))

    def reopen(self, task: int, reason: str, actor: Actor) -> None:
        """Open a task without a running session, whatever its status."""
        self.store.write(lambda tx: session_segments.reopen(tx, task, reason, actor))

    def take_over(self, run: str, executor: str, host: str) -> FleetSession:
        return self.store.write(lambda tx: session_segments.take_over(tx, run, executor, host))

    def progress(
        self,
        run: str,
        *,
        phase: str | None = None,
        step: str | None = None,
        iterations: int | None = None,
        tokens: int | None = None,
        cost_usd: float | None = None,
        changed: tuple[str, ...] | None = None,
        spending: Spending | None = None,
    ) -> None:
        """A sign of life of a session; what is None stays as it is."""
        self.store.write(
            lambda tx: session_segments.progress(
                tx,
                run,
                phase=phase,
                step=step,
                iterations=iterations,
                tokens=tokens,
                cost_usd=cost_usd,
                changed=changed,
                spending=spending,
            )
        )

    def session(self, run: str) -> FleetSession:
        return self.store.read(lambda tx: session_segments.session(tx, run))

    def sessions(self, number: int) -> list[FleetSession]:
        return self.store.read(lambda tx: session_segments.sessions(tx, number))

    def plan_of(self, run: str) -> str:
        """What the run was planned with, as it was given to `start`."""
        return self.store.read(lambda tx: session_segments.plan_of(tx, run))

    def state_of(self, run: str) -> str:
        """The state of the loop, as the last part left it."""
        return self.store.read(lambda tx: session_segments.state_of(tx, run))

    def begun(self, run: str) -> tuple[FleetSession, str, str]:
        """A session with what it was planned with and the state of its loop, all seen at one moment."""
        return self.store.read(lambda tx: (session_segments.session(tx, run), *session_segments.texts_of(tx, run)))

    # The merge queue

    def enqueue_merge(self, entry: MergeEntry) -> MergeEntry:
        return self.store.write(lambda tx: merge_entries.enqueue_merge(tx, entry))

    def entries(self, target: str | None = None, open_only: bool = True, page: Page = WHOLE) -> list[MergeEntry]:
        return self.store.read(lambda tx: merge_entries.entries(tx, target, open_only, page))

    def take(self, ids: Iterable[int]) -> list[MergeEntry]:
        """Begin to merge these. Returns those that are ours now."""
        wanted = tuple(ids)
        return self.store.write(lambda tx: merge_entries.take(tx, wanted))

    def settle(
        self,
        id: int,  # noqa: A002  (the word of the house)
        status: EntryStatus,
        landed: str = "",
        paths: tuple[str, ...] = (),
        detail: str = "",
        over: str = "",
    ) -> MergeEntry:
        return self.store.write(
            lambda tx: merge_entries.settle(tx, id, status, landed=landed, paths=paths, detail=detail, over=over)
        )

    def settle_all(self, ends: Iterable[EntryEnd]) -> None:
        """Several at once, in the order of their tasks: two who write the same ones wait for each other only once."""
        found = sorted(ends, key=lambda end: (end.entry.task, end.entry.id))
        self.store.write(lambda tx: [merge_entries.settle_end(tx, end) for end in found])

    def release(self, ids: Iterable[int]) -> None:
        wanted = tuple(ids)
        self.store.write(lambda tx: merge_entries.release(tx, wanted))

    def passed_by(self, ids: Iterable[int]) -> None:
        wanted = tuple(ids)
        self.store.write(lambda tx: merge_entries.passed_by(tx, wanted))

    def withdraw(self, task: int, reason: str = "it was withdrawn") -> None:
        self.store.write(lambda tx: merge_entries.withdraw(tx, task, reason))

    # What people decide

    def escalate(self, escalation: Escalation, blocker: Blocker | None = None) -> Escalation:
        return self.store.write(lambda tx: escalations.escalate(tx, escalation, blocker))

    def escalations(self, open_only: bool = True, page: Page = WHOLE) -> list[Escalation]:
        return self.store.read(lambda tx: escalations.escalations(tx, open_only, page))

    def escalation(self, number: int) -> Escalation:
        """What a task waits for a person with: the newest that is open, else the newest."""
        return self.store.read(lambda tx: escalations.escalation(tx, number))

    def answer(self, task: int, text: str, actor: Actor, only: int | None = None) -> Escalation:
        return self.store.write(lambda tx: escalations.answer(tx, task, text, actor, only))

    def decide(self, task: int, approved: bool, reason: str, actor: Actor, only: int | None = None) -> Escalation:
        return self.store.write(lambda tx: escalations.decide(tx, task, approved, reason, actor, only))

    # Reviews

    def ask_review(
        self, of: int, commit: str, reviewer_type: str, *, assignee: str = "", words: Callable[[str], str] = str
    ) -> Review:
        return self.store.write(lambda tx: reviews.ask_review(tx, of, commit, reviewer_type, assignee, words))

    def verdict(
        self,
        review_task: int,
        approved: bool,
        findings: Sequence[str],
        reviewer: str,
        actor: Actor,
        run: str = "",
    ) -> Review:
        return self.store.write(lambda tx: reviews.verdict(tx, review_task, approved, findings, reviewer, actor, run))

    # Plans

    def propose(self, plan: Plan) -> Plan:
        return self.store.write(lambda tx: plans.propose(tx, plan))

    def create_parts(self, plan_id: int, actor: Actor, reviewed: Mapping[str, str] = NO_REVIEWERS) -> tuple[int, ...]:
        """Make tasks of the parts of a plan; `reviewed` says by type who reviews them."""
        return self.store.write(lambda tx: plans.create_parts(tx, plan_id, actor, reviewed))

    def reject_plan(self, plan_id: int, reason: str, actor: Actor) -> Plan:
        return self.store.write(lambda tx: plans.reject_plan(tx, plan_id, reason, actor))

    # Money, providers, executors

    def ledger(self, day: str = "") -> SpendingTotals:
        """What was spent; `day` is a date in UTC, today by default."""
        return self.store.read(lambda tx: spending.ledger(tx, day or now()[:10]))

    def pause_provider(self, provider: str, until: str, reason: str = "") -> None:
        self.store.write(lambda tx: executors.pause_provider(tx, provider, until, reason))

    def pauses(self) -> tuple[ProviderPause, ...]:
        return self.store.read(lambda tx: executors.pauses(tx, now()))

    def clock_was_set(self, lease_until: str, back: bool) -> None:
        """Adjust to a clock that was set: renew the leases of external agents; if set back, end provider pauses."""

        def write(tx: Transaction) -> None:
            external_agents.renew(tx, lease_until)
            if back:
                executors.forget_pauses(tx)

        self.store.write(write)

    def register(self, executor: Executor) -> Executor:
        return self.store.write(lambda tx: executors.register(tx, executor))

    def beat(self, id: str) -> None:  # noqa: A002  (the word of the house)
        self.store.write(lambda tx: executors.beat(tx, id))

    def leave(self, id: str, status: str) -> None:  # noqa: A002  (the word of the house)
        self.store.write(lambda tx: executors.leave(tx, id, status))

    def executors(self) -> tuple[Executor, ...]:
        return self.store.read(executors.executors)

    # Controls and notes

    def pause_project(self, on: bool, actor: Actor) -> None:
        self.store.write(lambda tx: controls.pause_project(tx, on, actor))

    def stop_all(self, on: bool, actor: Actor) -> None:
        self.store.write(lambda tx: controls.stop_all(tx, on, actor))

    def hold(self, task: int, on: bool, actor: Actor) -> None:
        self.store.write(lambda tx: controls.hold(tx, task, on, actor))

    def hand_over(self, task: int, run: str, text: str) -> None:
        self.store.write(lambda tx: handovers.hand_over(tx, task, run, text))

    def handovers(self, task: int) -> list[str]:
        return self.store.read(lambda tx: handovers.handovers(tx, task))
