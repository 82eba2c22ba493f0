"""Why a task is where it is, in one sentence. Pure: a field in, words out."""

from genba.domain.fleet.records import Escalation, FleetSession, FleetSnapshot, MergeEntry, Purpose, WaitsFor
from genba.domain.tasks.task import Task, TaskStatus
from genba.domain.views.summary import Card

_FOR = {
    Purpose.WORK: "",
    Purpose.PLAN: "plans its parts",
    Purpose.REVIEW: "reviews it",
    Purpose.INTEGRATE: "brings its parts home",
    Purpose.MANAGE: "manages its parts",
}
_WAITS = {
    WaitsFor.ANSWER: "waits for an answer",
    WaitsFor.REVIEW: "waits for its review",
    WaitsFor.MERGE: "waits in the merge queue",
    WaitsFor.PULL_REQUEST: "waits for its pull request",
    WaitsFor.BUDGET: "waits for a budget",
    WaitsFor.RESUME: "is suspended",
    WaitsFor.PARTS: "waits for its parts",
}


class TaskStatusReason:
    """What a field says of each of its tasks."""

    def __init__(self, field: FleetSnapshot, absent: frozenset[str] = frozenset()) -> None:
        self.field = field
        self.absent = absent
        """Executors that do not work now: their sessions are suspended, whatever they could still write down."""
        self.sessions: dict[int, FleetSession] = {}
        for session in field.sessions:
            kept = self.sessions.get(session.task)
            if kept is None or _rank(session) >= _rank(kept):
                self.sessions[session.task] = session
        self.entries: dict[int, MergeEntry] = {entry.task: entry for entry in field.entries}
        self.asked: dict[int, Escalation] = {each.task: each for each in field.escalations if each.status == "open"}

    def card(self, task: Task) -> Card:
        session = self.sessions.get(task.number)
        return Card(
            number=task.number,
            title=task.title,
            status=task.status,
            priority=task.priority,
            type=task.type,
            why=self.why(task),
            labels=task.labels,
            assignee=task.assignee,
            needs_you=task.number in self.asked,
            run=session.run if session is not None else "",
            alive=session is not None and self.runs(session),
            parent=task.parent,
            updated_at=task.updated_at,
        )

    def runs(self, session: FleetSession) -> bool:
        return session.status == "running" and session.executor not in self.absent

    def why(self, task: Task) -> str:
        asked = self.asked.get(task.number)
        if asked is not None:
            return f"needs you: {asked.question}"
        if task.number in self.field.held:
            return "a person paused it"
        session = self.sessions.get(task.number)
        if session is not None and session.status != "ended" and not task.status.ended:
            return self._of_session(task, session)
        match task.status:
            case TaskStatus.BLOCKED if task.blocker is not None:
                return f"{task.blocker.kind}: {task.blocker.reason}".replace("_", " ", 1)
            case TaskStatus.OPEN:
                return self._of_open(task)
            case TaskStatus.REVIEW:
                return self._of_review(task)
            case TaskStatus.BACKLOG:
                return "it is in the backlog"
            case TaskStatus.IN_PROGRESS:
                return "it is in progress, and no session runs"
        return ""

    def _of_session(self, task: Task, session: FleetSession) -> str:
        if session.status == "waiting":
            entry = self.entries.get(task.number)
            if session.waits_for is WaitsFor.MERGE and entry is not None and entry.detail:
                return f"merge queue: {entry.status}, {entry.detail}"
            return f"{session.agent} {_WAITS.get(session.waits_for, 'waits')}"
        if not self.runs(session):
            return f"suspended: {session.executor} has ended"
        does = _FOR[session.purpose] or session.phase
        step = f"{session.step}, iteration {session.iterations}" if session.step else ""
        return " · ".join(part for part in (session.agent, does, step) if part)

    def _of_open(self, task: Task) -> str:
        tasks = self.field.tasks
        waits = [number for number in task.dependencies if number in tasks and tasks[number].status != "done"]
        if waits:
            return "waits for " + " ".join(f"#{number}" for number in waits)
        parts = [number for number in task.children if number in tasks and not tasks[number].status.ended]
        if parts:
            return f"{len(parts)} of its parts are not done"
        failed = self.field.failures.get(task.number, ())
        if failed:
            return f"{len(failed)} failed attempt{'' if len(failed) == 1 else 's'}: {failed[-1].reason}"
        return "ready to begin"

    def _of_review(self, task: Task) -> str:
        entry = self.entries.get(task.number)
        if entry is not None and not entry.status.ended:
            return f"merge queue: {entry.status}" + (f", {entry.detail}" if entry.detail else "")
        if task.requires_review and not task.approved:
            return f"waits for a review by {'a person' if task.reviewer_type == 'human' else 'another agent'}"
        return "verified, and on its way to land"


def _rank(session: FleetSession) -> tuple[bool, str]:
    """What lives counts more than what has ended; then the newer one."""
    return session.status != "ended", session.started_at
