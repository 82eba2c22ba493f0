"""From the field to the moves of the orchestrator. Pure: the same field gives the same moves, and no model is asked.

Law: no more sessions begin than workers, limits, memory and disk allow; a task never has two sessions that run; while a
project is paused no agent is asked; and every task that has not ended has a session that runs, a move, or a reason to
wait. Finished work goes first: it lands before anything new begins.
"""

from collections.abc import Iterator

from genba.definitions.project.work_sections import FleetSettings
from genba.domain.fleet.records import EntryStatus, EscalationKind, FleetSession, FleetSnapshot, MergeEntry
from genba.domain.tasks.task import BlockerKind, Task, TaskStatus
from genba.domain.timestamps import is_backing_off, later
from genba.judgement.scheduling import escalations, spending
from genba.judgement.scheduling.actions import (
    Close,
    Continue,
    EndSession,
    Escalate,
    Reopen,
    RunQueue,
    SchedulerAction,
    Start,
    Wait,
    WaitReason,
    Withdraw,
    WorkerContext,
)
from genba.judgement.scheduling.allocation import allocate
from genba.judgement.scheduling.capacity import Capacity
from genba.judgement.scheduling.critical_path import circles, waits_for
from genba.judgement.scheduling.scheduler_view import SchedulerView
from genba.judgement.scheduling.starting import start_task
from genba.judgement.scheduling.waiting_sessions import ABORTED, after_single_session, next_for_session

_COMPLETED, _FAILED = "completed", "failed"
_FOR_A_PERSON = (WaitReason.PERSON, WaitReason.PULL_REQUEST, WaitReason.HELD, WaitReason.AGENT)
_OPEN_ENTRIES = (EntryStatus.QUEUED, EntryStatus.STUCK)


def scheduler_actions(field: FleetSnapshot, settings: FleetSettings, me: WorkerContext) -> tuple[SchedulerAction, ...]:
    """Everything that can be done now, and for the rest why not. What brings work home comes first."""
    return tuple(_Scheduler(SchedulerView(field, settings, me)).all())


class _Scheduler:
    """One look at the field."""

    def __init__(self, at: SchedulerView) -> None:
        self.at = at
        self.field = at.field
        self.capacity = Capacity(at)
        self.decided: set[int] = set()
        """Tasks that have a move, or a reason to wait."""

    def all(self) -> Iterator[SchedulerAction]:
        if self.field.stopping:
            why = "the project is stopped  genba resume"
            yield Wait(task=0, kind=WaitReason.STOPPING, why=why)
            yield from self._the_rest(WaitReason.STOPPING, why)
            return
        found = [*self._withdrawn(), *self._turns()]
        found += [self._once(move) for move in self._decided()]
        found += self._project_wide()
        order = sorted(range(len(found)), key=lambda place: (isinstance(found[place], Wait), place))
        yield from (found[place] for place in order)
        rest = list(self._the_rest())
        yield from rest
        yield from self._standstill([*found, *rest])

    def _decided(self) -> Iterator[SchedulerAction]:
        onward: list[tuple[Task, FleetSession, Continue]] = []
        for number, task in self.field.tasks.items():
            live = self.at.live(number)
            if not live:
                yield from self._decided_for(self._without_session(task))
                continue
            yield from self._superseded(live)
            self.decided.add(number)
            if live[0].status == "running":
                continue
            move = next_for_session(self.at, task, live[0])
            if isinstance(move, Continue):
                onward.append((task, live[0], move))
            else:
                yield self._unless_held(task, move)
        yield from self._continued(onward)
        yield from self._begun()

    # ── sessions that wait ───────────────────────────────────────────────────────────────────────────────────────────

    def _superseded(self, live: list[FleetSession]) -> Iterator[SchedulerAction]:
        """A task has one session: what else waits for it never goes on."""
        for other in live[1:]:
            if other.status != "running":
                reason = f"{live[0].run} took its place"
                yield EndSession(run=other.run, task=other.task, part=other.part, outcome=ABORTED, reason=reason)

    def _continued(self, onward: list[tuple[Task, FleetSession, Continue]]) -> Iterator[SchedulerAction]:
        """Landed work first, since others wait for it; then by number, the older first."""
        for task, session, move in sorted(onward, key=lambda one: (one[2].asks, one[0].number)):
            yield self._admitted(task, session, move)

    def _admitted(self, task: Task, session: FleetSession, move: Continue) -> SchedulerAction:
        wait = self._refused(task, session, move)
        if wait is not None:
            return wait
        if move.asks:
            self.capacity.take(session.agent, session.provider)
        else:
            self.capacity.take_worker()
        return move

    def _refused(self, task: Task, session: FleetSession, move: Continue) -> SchedulerAction | None:
        if not self.at.is_mine(session):
            return Wait(task=task.number, kind=WaitReason.ELSEWHERE, why=f"{session.executor} goes on with it")
        if not move.asks:
            full = self.capacity.worker()
            return Wait(task=task.number, kind=full.kind, why=full.why) if full else None
        if (wait := self._halted(task)) is not None:
            return wait
        if other := self.at.fits_filter(task, session.agent):
            return Wait(task=task.number, kind=WaitReason.FILTER, why=other)
        budget = spending.reached(self.field, self.at.settings, task, session.agent)
        if budget is not None and budget.scope == spending.TASK:
            return escalations.budget(self.at, task, session, budget)
        if budget is not None:
            return Wait(task=task.number, kind=WaitReason.BUDGET, why=budget.text, until=budget.until)
        full = self.capacity.refusal(session.agent, session.provider)
        return Wait(task=task.number, kind=full.kind, why=full.why, until=full.until) if full else None

    def _halted(self, task: Task) -> Wait | None:
        """Why no agent is asked about a task: it or the project is paused."""
        held = self.at.held(task)
        if held is not None:
            return Wait(task=task.number, kind=WaitReason.HELD, why=f"#{held} is paused  genba resume {held}")
        if self.field.paused:
            return Wait(task=task.number, kind=WaitReason.PAUSED, why="the project is paused  genba resume")
        return None

    def _unless_held(self, task: Task, move: SchedulerAction) -> SchedulerAction:
        """A held task stays as it is; only a session that cannot go on is ended all the same."""
        if isinstance(move, EndSession) or self.at.held(task) is None:
            return move
        return self._halted(task) or move

    # ── tasks that are ready ─────────────────────────────────────────────────────────────────────────────────────────

    def _begun(self) -> Iterator[SchedulerAction]:
        starts: list[Start] = []
        plain: list[Task] = []
        for number in dict.fromkeys(self.at.ready()):
            task = self.field.tasks.get(number)
            if task is None or number in self.decided or task.status is not TaskStatus.OPEN:
                continue
            self.decided.add(number)
            halted = self._halted(task)
            is_plain = self.at.is_plain(task)
            if halted is not None and (is_plain or halted.kind is WaitReason.HELD):
                yield halted
            elif is_plain:
                plain.append(task)
            elif not isinstance(move := start_task(self.at, task), Start):
                yield move
            elif halted is not None:
                yield halted
            else:
                starts.append(move)
        yield from allocate(self.at, self.capacity, starts, plain)

    # ── the merge queue ──────────────────────────────────────────────────────────────────────────────────────────────

    def _withdrawn(self) -> Iterator[SchedulerAction]:
        for entry in self.field.entries:
            if entry.status in _OPEN_ENTRIES and (why := self._out_of_place(entry)):
                yield Withdraw(entry=entry.id, task=entry.task, reason=why)

    def _out_of_place(self, entry: MergeEntry) -> str:
        """Why an entry must not land; empty when it may."""
        task = self.field.tasks.get(entry.task)
        if task is None or task.status.ended:
            return f"#{entry.task} has ended"
        if (held := self.at.held(task)) is not None:
            return f"#{held} is paused"
        if task.status is not TaskStatus.REVIEW:
            return f"#{entry.task} is {task.status}"
        session = next((one for one in self.at.live(entry.task) if one.run == entry.run), None)
        if session is not None and session.verified and session.verified != entry.commit:
            return "another commit was verified meanwhile"
        return ""

    def _turns(self) -> Iterator[SchedulerAction]:
        by_target: dict[str, list[MergeEntry]] = {}
        for entry in self.field.entries:
            if not entry.status.ended and not self._out_of_place(entry):
                by_target.setdefault(entry.target, []).append(entry)
        for target, entries in sorted(by_target.items()):
            if self._turns_already(target, entries):
                continue
            if not all(is_backing_off(self.field.now, _tried(entry), self._tried_again(entry)) for entry in entries):
                yield RunQueue(target=target)
            else:
                soonest = min(entries, key=self._tried_again)
                why = f"{target} cannot be moved: {soonest.detail}  genba queue"
                yield Wait(task=soonest.task, kind=WaitReason.MERGE, why=why, until=self._tried_again(soonest))

    def _turns_already(self, target: str, entries: list[MergeEntry]) -> bool:
        if self.at.me.turning is not None:
            return target in self.at.me.turning
        return any(entry.status is EntryStatus.MERGING for entry in entries)

    def _tried_again(self, entry: MergeEntry) -> str:
        """When an entry may be tried: at once, unless its target was in the way a moment ago."""
        if entry.status is not EntryStatus.STUCK:
            return ""
        return later(_tried(entry), self.at.settings.merge.retry_seconds)

    # ── what is left ─────────────────────────────────────────────────────────────────────────────────────────────────

    def _without_session(self, task: Task) -> SchedulerAction | None:
        if task.status is TaskStatus.IN_PROGRESS:
            return Reopen(task=task.number, reason="it is in progress, and no session works on it")
        if task.status is TaskStatus.REVIEW:
            return self._left_in_review(task)
        blocker = task.blocker
        if task.status is TaskStatus.BLOCKED and blocker and blocker.kind is BlockerKind.DEPENDENCY and blocker.task:
            other = self.field.tasks.get(blocker.task)
            if other is not None and other.status is TaskStatus.DONE:
                return Reopen(task=task.number, reason=f"#{other.number}, which stood in its way, is done")
        held_by_budget = self.at.asked(task.number, EscalationKind.BUDGET) is not None
        if task.status is TaskStatus.BLOCKED and held_by_budget and not self._spent_up(task):
            return Reopen(task=task.number, reason="there is budget again")
        return None

    def _left_in_review(self, task: Task) -> SchedulerAction | None:
        """Work that is verified, and that no session brings home: done if it has landed, else tried again."""
        last = self.at.last_work(task.number)
        entry = self.at.entry(last.run) if last is not None else None
        if last is None or last.outcome == _COMPLETED:
            return None
        if entry is not None and not entry.status.ended:
            return Wait(task=task.number, kind=WaitReason.MERGE, why=f"in the merge queue of {entry.target}")
        if entry is not None and entry.status is EntryStatus.MERGED and entry.commit == last.verified:
            landed = entry.landed or entry.commit
            return Close(task=task.number, run=last.run, commit=entry.commit, landed=landed)
        if (move := after_single_session(self.at, task, last)) is not None:
            return move
        if last.executor or last.outcome == _FAILED:
            how = f"{last.outcome}: {last.reason}" if last.reason else last.outcome
            return Reopen(task=task.number, reason=f"its work is not on its target, and its session ended {how}")
        return None

    def _spent_up(self, task: Task) -> bool:
        return spending.task_budget_used_up(self.field, self.at.settings, task)

    def _decided_for(self, move: SchedulerAction | None) -> Iterator[SchedulerAction]:
        if move is not None:
            self.decided.add(getattr(move, "task", 0))
            yield move

    def _once(self, move: SchedulerAction) -> SchedulerAction:
        """Turn a question that is open already into a wait."""
        if not isinstance(move, Escalate):
            return move
        asked = self.at.asked(move.task, move.escalation.kind)
        if asked is None or (move.escalation.kind is EscalationKind.REVIEW and asked.commit != move.escalation.commit):
            return move
        command = (
            f'genba answer {move.task} "…"' if asked.kind is EscalationKind.QUESTION else f"genba approve {move.task}"
        )
        return Wait(task=move.task, kind=WaitReason.PERSON, why=f"{asked.question}  {command}")

    def _project_wide(self) -> Iterator[SchedulerAction]:
        """What holds up everything, once for the project."""
        if self.field.paused:
            yield Wait(task=0, kind=WaitReason.PAUSED, why="the project is paused  genba resume")
        for budget in spending.project_budgets(self.field, self.at.settings):
            if budget.reached:
                yield Wait(task=0, kind=WaitReason.BUDGET, why=budget.text, until=budget.until)
        for pause in sorted(self.at.pauses.values(), key=lambda one: one.provider):
            reason = f": {pause.reason}" if pause.reason else ""
            why = f"{pause.provider} is paused until {pause.until}{reason}"
            yield Wait(task=0, kind=WaitReason.PROVIDER, why=why, until=pause.until)
        full = self.capacity.anybody()
        if full is not None and full.kind is WaitReason.RESOURCES:
            yield Wait(task=0, kind=full.kind, why=full.why)

    def _the_rest(self, kind: WaitReason | None = None, why: str = "") -> Iterator[SchedulerAction]:
        """A reason for every task that nothing is done for."""
        left = [
            task for number, task in self.field.tasks.items() if number not in self.decided and not task.status.ended
        ]
        if kind is not None:
            busy = {session.task for session in self.at.running}
            yield from (Wait(task=task.number, kind=kind, why=why) for task in left if task.number not in busy)
            return
        round_and_round = circles(self.field.tasks) if left else ()
        for circle in round_and_round:
            yield from self._circle(circle)
        caught = {number for circle in round_and_round for number in circle}
        yield from (self._reason(task) for task in left if task.number not in caught)

    def _circle(self, circle: tuple[int, ...]) -> Iterator[SchedulerAction]:
        shown = " → ".join(f"#{number}" for number in (*circle, circle[0]))
        first = self.field.tasks[circle[0]]
        command = f"genba task depend {circle[0]} --remove {circle[1 % len(circle)]}"
        why = f"they wait for each other for ever: {shown}  {command}"
        decided = self.at.decided(first.number, EscalationKind.STOPPED, circle=list(circle))
        if decided is None and self.at.asked(first.number, EscalationKind.STOPPED) is None:
            yield escalations.stopped(self.at, first, why, blocks=False, circle=list(circle))
        yield from (
            Wait(task=number, kind=WaitReason.DEADLOCK, why=why) for number in circle if number not in self.decided
        )

    def _reason(self, task: Task) -> Wait:
        number = task.number
        if task.status is TaskStatus.BACKLOG:
            return Wait(
                task=number,
                kind=WaitReason.BACKLOG,
                why=f"it is in the backlog  genba task edit {number} --status open",
            )
        if task.status is TaskStatus.BLOCKED:
            reason = task.blocker.reason if task.blocker else "no reason is given"
            return Wait(task=number, kind=WaitReason.PERSON, why=f"blocked: {reason}  genba task show {number}")
        if task.status is TaskStatus.REVIEW:
            return self._in_review(task)
        tasks = self.field.tasks
        gone = [one for one in task.dependencies if one in tasks and tasks[one].status is TaskStatus.CANCELLED]
        if gone:
            why = f"#{gone[0]} was cancelled, and it depends on it  genba task depend {number} --remove {gone[0]}"
            return Wait(task=number, kind=WaitReason.PERSON, why=why)
        waiting = waits_for(task, tasks)
        listed = ", ".join(f"#{one}" for one in waiting[:5]) + (f" and {len(waiting) - 5} more" if waiting[5:] else "")
        if any(one in task.children for one in waiting):
            return Wait(task=number, kind=WaitReason.PARTS, why=f"its parts come first: {listed}")
        if waiting:
            return Wait(task=number, kind=WaitReason.DEPENDENCY, why=f"it waits for {listed}")
        return Wait(task=number, kind=WaitReason.DEPENDENCY, why="it is not ready")

    def _in_review(self, task: Task) -> Wait:
        """Work that was made without the fleet, or that the fleet leaves on its branch: a person brings it home."""
        number, last = task.number, self.at.last_work(task.number)
        if last is None:
            why = f"it is in review  genba task show {number}"
        elif last.outcome == _COMPLETED:
            why = f"its work is on {last.branch}, and is yours to merge; then  genba task done {number}"
        else:
            why = f"its work is verified, and waits on {last.branch}  genba run --resume {last.run}"
        return Wait(task=number, kind=WaitReason.PERSON, why=why)

    def _standstill(self, found: list[SchedulerAction]) -> Iterator[SchedulerAction]:
        """Nothing runs, nothing begins, and no time is known at which something does: a person must come."""
        if self.at.running or self.at.me.running or any(not isinstance(move, Wait) or move.until for move in found):
            return
        landing = any(not entry.status.ended for entry in self.field.entries)
        if landing or any(isinstance(move, Wait) and move.kind is WaitReason.ELSEWHERE for move in found):
            return
        waits = [move for move in found if isinstance(move, Wait) and move.task and move.kind is not WaitReason.BACKLOG]
        if not waits or self.field.paused:
            return
        people = sum(move.kind in _FOR_A_PERSON for move in waits)
        of_them = f", {people} of them for a person" if people else ""
        asked = any(one.status == "open" for one in self.field.escalations)
        where = "genba decisions" if asked else "genba task list"
        count = "1 task waits" if len(waits) == 1 else f"{len(waits)} tasks wait"
        why = f"nothing can go on: {count}{of_them}  {where}"
        circle = any(move.kind is WaitReason.DEADLOCK for move in waits)
        yield Wait(task=0, kind=WaitReason.DEADLOCK if circle else WaitReason.PERSON, why=why)


def _tried(entry: MergeEntry) -> str:
    """When a turn last had to do with an entry."""
    return entry.finished_at or entry.enqueued_at
