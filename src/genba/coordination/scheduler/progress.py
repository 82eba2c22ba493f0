"""The live view of a fleet, gathered from events: reading it costs nothing and changes nothing."""

import time
from collections.abc import Callable

import msgspec

from genba.blackboard.fleet.fleet_board import FleetBoard
from genba.domain.events import (
    AgentOutput,
    Event,
    GoalChecked,
    IterationFinished,
    IterationStarted,
    ToolUsed,
    VerificationFinished,
)
from genba.domain.fleet.merge_queue import QueueEvent
from genba.domain.fleet.progress import (
    DecisionView,
    FleetEvent,
    FleetEventKind,
    FleetView,
    GoalMark,
    QueueEntryView,
    TaskResult,
    WaitView,
    WorkEndReason,
    WorkerView,
    WorkSummary,
    command_for,
)
from genba.domain.fleet.records import EntryStatus, Escalation, FleetSession, FleetSnapshot, Purpose, WaitsFor
from genba.domain.tasks.task import Task, TaskStatus
from genba.domain.text_limits import cut
from genba.judgement.scheduling.actions import Wait, WaitReason

_SHOWN = 80
_QUIET = (WaitReason.BACKLOG, WaitReason.ELSEWHERE, WaitReason.REVIEW, WaitReason.MERGE)
"""Waits that the screen tells in another place, or not at all."""
_ANSWERS = {Purpose.PLAN: FleetEventKind.PLANNED, Purpose.REVIEW: FleetEventKind.REVIEW}
_LEFT = (
    WaitReason.AGENT,
    WaitReason.PERSON,
    WaitReason.PAUSED,
    WaitReason.HELD,
    WaitReason.RESOURCES,
    WaitReason.DEADLOCK,
)
"""Waits that only a person ends."""
_GOES_ON = "genba work goes on with it"
_OF_THE_QUEUE = {
    "merged": FleetEventKind.MERGED,
    "conflict": FleetEventKind.CONFLICT,
    "failed": FleetEventKind.MERGE_FAILED,
    "stuck": FleetEventKind.STUCK,
    "moved": FleetEventKind.MOVED,
}


class _Live:
    """The output of one session since this process runs it."""

    def __init__(self) -> None:
        self.doing = ""
        self.iteration = 0
        self.goals: tuple[GoalMark, ...] = ()


class Watch:
    """Hears what happens, and can say at any time what is going on."""

    def __init__(
        self, board: FleetBoard, executor: str, slots: int, project: str, listener: Callable[[FleetEvent], None]
    ):
        self.board = board
        self.executor = executor
        self.slots = slots
        self.project = project
        self.listener = listener
        self.began = time.monotonic()
        self.suspending = False
        self.field = FleetSnapshot(now="", tasks={})
        self.waits: tuple[Wait, ...] = ()
        self.touched: dict[int, None] = {}
        """The tasks that something happened to, in the order in which it began."""
        self.runs: set[str] = set()
        self.failed: set[int] = set()
        """The tasks of which a session came to nothing."""
        self.merged: dict[int, str] = {}
        self._unclosed: set[int] = set()
        """The tasks whose work has landed, as long as they are in review: their sessions have not closed them."""
        self._live: dict[str, _Live] = {}
        self._statuses: dict[int, TaskStatus] = {}
        self._phases: dict[int, int] = {}
        """By task: how many of its phases were complete at the last look."""
        self._reported_waits: dict[str, str] = {}
        self._stuck: dict[int | None, str] = {}
        """The last report about an entry without a session."""

    def tell(self, event: FleetEvent) -> None:
        if event.task is not None:
            self.touched.setdefault(event.task, None)
        if event.run:
            self.runs.add(event.run)
        if event.kind is FleetEventKind.FAILED and event.task is not None:
            self.failed.add(event.task)
        self.listener(msgspec.structs.replace(event, detail=cut(event.detail)))

    def hear(self, session: FleetSession, title: str, event: Event) -> None:
        """An event of a run that this executor holds."""
        live = self._live.setdefault(session.run, _Live())
        match event:
            case IterationStarted(step=step, iteration=iteration):
                live.iteration, live.doing = iteration or 0, step or ""
            case ToolUsed(tool=tool, target=target):
                live.doing = f"{tool} {target}"[:_SHOWN].strip()
            case AgentOutput(text=text) if text.strip():
                live.doing = text.strip().rpartition("\n")[2].strip()[:_SHOWN]
            case GoalChecked():
                mark = GoalMark(name=event.goal, status=str(event.result.status), detail=event.result.detail)
                live.goals = (*(goal for goal in live.goals if goal.name != event.goal), mark)
            case IterationFinished(step=step, iteration=iteration, reason=reason, intent=intent):
                message = f"{step} {iteration}: {intent}{f' · {reason}' if reason else ''}"
                self._tell_of(FleetEventKind.STEP, session, message, title)
            case VerificationFinished(status="done", commit=commit):
                message = f"{commit[:7]} · goals {len(live.goals)}/{len(live.goals)}"
                self._tell_of(FleetEventKind.VERIFIED, session, message, title)
            case VerificationFinished(reason=reason, commit=commit):
                failed = ", ".join(goal.name for goal in live.goals if goal.status == "failed")
                self._tell_of(FleetEventKind.REJECTED, session, f"{commit[:7]} · {failed or reason}", title)

    def hear_queue(self, news: QueueEvent) -> None:
        """Something that the merge queue did."""
        kind = _OF_THE_QUEUE.get(news.kind)
        if kind is None:
            return
        for number in news.tasks or (None,):
            task = self.field.tasks.get(number) if number is not None else None
            if kind is FleetEventKind.MERGED and number is not None:
                self.merged[number] = news.detail
                self._unclosed.add(number)
            title = task.title if task is not None else ""
            landed = kind is FleetEventKind.MERGED
            message = news.detail.replace("\nhint: ", "; ")
            detail = f"{news.detail[:7]} on {news.target}" if landed else message or f"on {news.target}"
            if kind is FleetEventKind.STUCK and self._stuck.get(number) == detail:
                continue  # it is retried often, and reported once
            self._stuck[number] = detail if kind is FleetEventKind.STUCK else ""
            self.tell(FleetEvent(kind=kind, task=number, title=title, detail=detail))

    def see(self, field: FleetSnapshot, waits: tuple[Wait, ...]) -> None:
        """Report what changed since the last snapshot."""
        for number, task in field.tasks.items():
            if task.status is not TaskStatus.REVIEW:
                self._unclosed.discard(number)
            before = self._statuses.get(number)
            if before is not None and before is not task.status and task.status is TaskStatus.DONE:
                self.tell(FleetEvent(kind=FleetEventKind.DONE, task=number, title=task.title))
            known = self._phases.get(number)
            for phase in task.phases[known:] if known is not None else ():
                message = f"{phase.agent} completed its phase with {phase.commit[:7]}"
                self.tell(FleetEvent(kind=FleetEventKind.PHASE, task=number, title=task.title, detail=message))
            self._statuses[number], self._phases[number] = task.status, len(task.phases)
        for wait in waits:
            key, output = f"{wait.task}:{wait.kind}", f"{wait.why} {wait.until}"
            if wait.task == 0 and self._reported_waits.get(key) != output:
                self.tell(FleetEvent(kind=FleetEventKind.PAUSED, detail=wait.why))
            self._reported_waits[key] = output
            if wait.task and wait.kind in _LEFT:
                self.touched.setdefault(wait.task, None)
        self.field, self.waits = field, waits

    def finished(self, session: FleetSession, task: Task) -> None:
        """A segment ended: report what its session does now."""
        if session.status == "waiting" and session.waits_for is WaitsFor.REVIEW:
            return  # it is queued or reviewed at once, and that is reported
        if session.status == "waiting":
            awaited = session.waits_for.replace("_", " ")
            detail = f"for {awaited}: {session.reason}" if session.reason else f"for {awaited}"
            self._tell_of(FleetEventKind.WAITS, session, detail)
        elif session.outcome != "completed":
            self._tell_of(FleetEventKind.FAILED, session, f"{session.outcome}: {session.reason}")
        elif session.purpose in _ANSWERS:
            self._tell_of(_ANSWERS[session.purpose], session, session.reason)
        elif task.status is TaskStatus.DONE and self._statuses.get(session.task) is not TaskStatus.DONE:
            self._statuses[session.task] = TaskStatus.DONE
            self._tell_of(FleetEventKind.DONE, session, "")

    def _tell_of(self, kind: FleetEventKind, session: FleetSession, detail: str, title: str = "") -> None:
        task = self.field.tasks.get(session.task)
        title = title or (task.title if task is not None else "")
        result = FleetEvent(
            kind=kind, task=session.task, title=title, agent=session.agent, run=session.run, detail=detail
        )
        self.tell(result)

    def picture(self) -> FleetView:
        """What is true now, as far as the last look goes."""
        field = self.field
        running = [session for session in field.sessions if session.status == "running"]
        mine = tuple(self._worker(session) for session in running if session.executor == self.executor)
        open_tasks = [task for task in field.tasks.values() if not task.status.ended]
        paused = next((wait.why for wait in self.waits if wait.task == 0), "")
        return FleetView(
            project=self.project,
            executor=self.executor,
            slots=self.slots,
            others=sum(1 for executor in field.executors if executor.status == "live") - 1,
            workers=mine,
            queue=tuple(self._entry(entry) for entry in field.entries if not entry.status.ended),
            waits=tuple(self._wait(wait) for wait in self.waits if not self._is_reported(wait) and wait.task),
            needs=self.needs(),
            ready=len(field.ready),
            open=len(open_tasks),
            done=sum(1 for number in self.touched if self._statuses.get(number) is TaskStatus.DONE),
            merged=len(self.merged),
            failed=sum(1 for found in self.failed if self._statuses.get(found) is not TaskStatus.DONE),
            seconds=time.monotonic() - self.began,
            tokens=sum(session.tokens for session in field.sessions if session.run in self.runs),
            cost_usd=sum(session.cost_usd for session in field.sessions if session.run in self.runs),
            paused="the project is paused" if field.paused else paused,
            suspending=self.suspending,
        )

    def _worker(self, session: FleetSession) -> WorkerView:
        live = self._live.get(session.run, _Live())
        task = self.field.tasks.get(session.task)
        return WorkerView(
            task=session.task,
            title=task.title if task is not None else "",
            agent=session.agent,
            run=session.run,
            purpose=session.purpose,
            phase=session.phase,
            step=session.step,
            iteration=live.iteration or session.iterations,
            doing=live.doing,
            seconds=seconds_between(session.started_at, self.field.now),
            tokens=session.tokens,
            cost_usd=session.cost_usd,
            goals=live.goals,
        )

    def _entry(self, entry: msgspec.Struct) -> QueueEntryView:
        names = QueueEntryView.__struct_fields__
        return QueueEntryView(**{name: getattr(entry, name) for name in names})

    def _wait(self, wait: Wait) -> WaitView:
        task = self.field.tasks.get(wait.task)
        title = task.title if task is not None else ""
        return WaitView(why=wait.why, task=wait.task or None, title=title, until=wait.until)

    def _is_reported(self, wait: Wait) -> bool:
        """Whether the screen tells a wait in another place, or not at all."""
        asked = {found.task for found in self.field.escalations if found.status == "open"}
        return wait.kind in _QUIET or (wait.kind is WaitReason.PERSON and wait.task in asked)

    def needs(self) -> tuple[DecisionView, ...]:
        return tuple(self._need(found) for found in self.field.escalations if found.status == "open")

    def _need(self, escalation: Escalation) -> DecisionView:
        task = self.field.tasks.get(escalation.task)
        return DecisionView(
            task=escalation.task,
            kind=escalation.kind,
            question=escalation.question,
            command=command_for(escalation.kind, escalation.task),
            title=task.title if task is not None else "",
            since=escalation.created_at,
        )

    def summary(self, ended: WorkEndReason, detail: str = "") -> WorkSummary:
        """What this executor's time came to."""
        tasks = tuple(self._end(number) for number in self.touched)
        sessions = [found for number in self.touched for found in self.board.sessions(number)]
        return WorkSummary(
            ended=ended,
            tasks=tasks,
            sessions=len(sessions),
            merged=len(self.merged),
            done=sum(1 for end in tasks if end.status == "done"),
            failed=sum(1 for end in tasks if end.status == "failed"),
            suspended=sum(1 for found in sessions if found.status == "running" and found.executor == self.executor),
            sessions_failed=sum(1 for found in sessions if found.status == "ended" and found.outcome != "completed"),
            needs=self.needs(),
            waits=tuple(self._wait(wait) for wait in self.waits if not self._is_reported(wait)),
            seconds=time.monotonic() - self.began,
            tokens=sum(found.tokens for found in sessions),
            cost_usd=sum(found.cost_usd for found in sessions),
            detail=detail or (self._cannot_land() if ended is WorkEndReason.EMPTY else ""),
        )

    def _cannot_land(self) -> str:
        """What is left in the merge queue because its target cannot be moved."""
        stuck = [entry for entry in self.field.entries if entry.status is EntryStatus.STUCK]
        if not stuck:
            return ""
        more = f" and {len(stuck) - 1} more" if stuck[1:] else ""
        why = stuck[0].detail.partition("\n")[0]
        return f"#{stuck[0].task}{more} cannot land on {stuck[0].target}: {why}"

    def _end(self, number: int) -> TaskResult:
        task = self.board.board.get(number)
        sessions = self.board.sessions(number)
        last = sessions[-1] if sessions else None
        goals = self._live[last.run].goals if last is not None and last.run in self._live else ()
        need = next((need for need in self.needs() if need.task == number), None)
        status, detail = _came_to(task, last, need, number in self._unclosed)
        if status == "waits" and not detail:
            detail = next((wait.why for wait in self.waits if wait.task == number), "")
        elif status == "open":
            waits = (wait.why for wait in self.waits if wait.task == number and wait.kind in _LEFT)
            detail = f"{detail}; {next(waits, _GOES_ON)}"
        return TaskResult(
            task=number,
            title=task.title,
            parent=task.parent,
            status=status,
            agent=last.agent if last is not None else "",
            sessions=len(sessions),
            iterations=sum(found.iterations for found in sessions),
            goals_passed=sum(1 for goal in goals if goal.status == "passed"),
            goals=len(goals),
            merged=self.merged.get(number, ""),
            detail=detail,
            command=need.command if need is not None else "",
            cost_usd=sum(found.cost_usd for found in sessions),
        )


def _came_to(task: Task, last: FleetSession | None, need: DecisionView | None, unclosed: bool) -> tuple[str, str]:
    """One word for where a task stands, and a detail about it."""
    if task.status is TaskStatus.DONE:
        back = f"came back {last.rounds} times before it landed" if last is not None and last.rounds else ""
        return "done", back
    if task.status is TaskStatus.CANCELLED:
        return "cancelled", ""
    if need is not None:
        return "waits", need.question
    if unclosed and task.status is TaskStatus.REVIEW:
        return "suspended", "genba work closes it"
    if last is not None and last.status == "running":
        return "suspended", _GOES_ON
    if last is not None and task.has_let_go_of(last.run):
        return "open", "a phase has landed"
    if last is not None and last.status == "ended" and last.outcome != "completed":
        return "failed", last.reason
    return "waits", last.reason if last is not None else ""


def seconds_between(begin: str, end: str) -> float:
    """Seconds between two times of the blackboard; 0 where one is missing."""
    from datetime import datetime  # noqa: PLC0415  (only who watches pays for it)

    try:
        return max(0.0, (datetime.fromisoformat(end) - datetime.fromisoformat(begin)).total_seconds())
    except ValueError:
        return 0.0
