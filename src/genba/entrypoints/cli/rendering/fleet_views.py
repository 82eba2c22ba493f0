"""How the records of a fleet look: escalations, the merge queue, sessions."""

from collections.abc import Iterator, Mapping, Sequence, Set
from datetime import UTC, datetime
from typing import Any

import msgspec

from genba.coordination.engine.worker_liveness import SUSPENDED
from genba.domain.decoding import fitted
from genba.domain.fleet.progress import command_for
from genba.domain.fleet.records import Escalation, EscalationKind, FleetSession, MergeEntry, Plan, Subtask, WaitsFor
from genba.domain.goals.verification import Verification
from genba.domain.sessions.outcomes import Outcome
from genba.domain.sessions.replies import Usage
from genba.domain.tasks.task import Task
from genba.entrypoints.cli.rendering.columns import cell, cut, fit, rows_of, width
from genba.entrypoints.cli.rendering.event_lines import duration, tokens
from genba.entrypoints.cli.rendering.printable import printable
from genba.entrypoints.cli.rendering.work_view import ENTRY_MARKS, GOAL_MARKS, WIDTH

ESCALATION_MARKS = {"open": "?", "answered": "✓", "approved": "✓", "rejected": "✗", "withdrawn": "–"}
SESSION_MARKS = {"running": "◐", "waiting": "◌", "ended": "■", SUSPENDED: "■"}
_SHORT = 7
_NAME = 12
_DAY = 86400
_SHORT_WORD = 40
_OF_SESSIONS = frozenset({"tried", "cost_usd", "tokens", "branch", "agent", "last_reason", "last_outcome", "part"})
_OF_PLANS = frozenset({"plan", "summary", "subtasks"})
_WAITS = {
    WaitsFor.ANSWER: "an answer",
    WaitsFor.REVIEW: "its review, and to land",
    WaitsFor.MERGE: "the merge queue",
    WaitsFor.PULL_REQUEST: "its pull request",
    WaitsFor.BUDGET: "a budget",
    WaitsFor.RESUME: "genba resume",
}
_WAYS: dict[EscalationKind, tuple[tuple[str, str], ...]] = {
    EscalationKind.QUESTION: (('genba answer {n} "…"', "the same session goes on with your answer"),),
    EscalationKind.ATTEMPTS: (
        ("genba approve {n}", "let it be tried again"),
        ('genba answer {n} "…"', "let it be tried again, with what you know"),
    ),
    EscalationKind.CONFLICT: (
        ("genba approve {n}", "one more round for its author"),
        ('genba answer {n} "…"', "one more round, with what you know"),
    ),
    EscalationKind.FAILED: (
        ("genba approve {n}", "one more round for its author"),
        ('genba answer {n} "…"', "one more round, with what you know"),
    ),
    EscalationKind.REVIEW: (
        ("genba approve {n}", "let this commit land"),
        ('genba reject {n} --reason "…"', "send it back to its author with your reason"),
    ),
    EscalationKind.BUDGET: (("genba approve {n}", "let it go on over its budget"),),
    EscalationKind.PLAN: (
        ("genba approve {n}", "create these parts"),
        ('genba reject {n} --reason "…"', "let it be planned again with your reason"),
    ),
    EscalationKind.STOPPED: (("genba resume {n}", "let it go on"),),
}


def ago(text: str, now: datetime) -> str:
    """How long ago a time of the blackboard was, in the largest unit that says enough."""
    try:
        then = datetime.fromisoformat(text)
    except ValueError:
        return ""
    seconds = max(0, int((now - (then if then.tzinfo else then.replace(tzinfo=UTC))).total_seconds()))
    for size, unit in ((_DAY, "d"), (3600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds // size} {unit} ago"
    return "just now"


def escalation_lines(
    escalations: Sequence[Escalation], titles: Mapping[int, str], now: datetime, columns: int = WIDTH
) -> Iterator[str]:
    """One row each; the command to type stands at its end, or below where it has no room."""
    rows = [("", "task", "kind", "since", "question")]
    for each in escalations:
        by = f"{each.status} by {each.answered_by}"
        decided = "" if each.status == "open" else f"{by}{f': {each.answer}' if each.answer else ''} · "
        rows.append(
            (
                ESCALATION_MARKS.get(each.status, "·"),
                f"#{each.task} {titles.get(each.task, '')}",
                each.kind,
                ago(each.created_at, now),
                f"{decided}{each.question}",
            )
        )
    lines = [f" {line}" for line in rows_of(rows, (1, 26, 9, 10))]
    yield cut(lines[0], columns)
    for line, each in zip(lines[1:], escalations, strict=True):
        typed = command_for(each.kind, each.task) if each.status == "open" else ""
        if typed and width(line) + width(typed) + 3 <= columns:
            yield f"{line}   {typed}"
            continue
        yield cut(line, columns)
        if typed:
            yield f"   {typed}"


def escalation_page(
    escalation: Escalation,
    task: Task,
    sessions: Sequence[FleetSession],
    last: Verification | None,
    plan: Plan | None,
    now: datetime,
    columns: int = WIDTH,
) -> Iterator[str]:
    """Everything that is needed to decide, and at the end the ways to do it."""
    mark = ESCALATION_MARKS.get(escalation.status, "·")
    since = f"{cell(escalation.created_at)[:16].replace('T', ' ')}, {ago(escalation.created_at, now)}"
    yield cut(f"{mark} #{task.number} {cell(task.title)}", columns)
    yield f"   {escalation.kind} · {escalation.status} · since {since}"
    yield ""
    yield from (f"   {line}" for line in printable(escalation.question).strip().splitlines() or [""])
    if escalation.status != "open":
        yield ""
        yield from _indented(escalation.status, f"by {escalation.answered_by}: {escalation.answer or '–'}")
    yield ""
    yield from _facts(escalation, task, sessions, last)
    known = _OF_SESSIONS if sessions else frozenset()
    yield from _evidence(escalation.evidence, known | (_OF_PLANS if escalation.kind is EscalationKind.PLAN else set()))
    if escalation.kind is EscalationKind.PLAN:
        yield from _plan(_proposed(escalation) or plan, columns)
    if escalation.status == "open":
        yield ""
        ways = [(typed.format(n=task.number), message) for typed, message in _WAYS[escalation.kind]]
        ways.append((f"genba task cancel {task.number}", "give the task up; its branches and commits stay"))
        yield from (f"   {line}" for line in rows_of(ways, (60,), "   "))


def _facts(
    escalation: Escalation, task: Task, sessions: Sequence[FleetSession], last: Verification | None
) -> Iterator[str]:
    about = f"{task.status} · {task.type} · {task.priority} priority"
    yield from _indented("task", about, f"genba task show {task.number}")
    branch = next((each.branch for each in reversed(sessions) if each.branch), "")
    commit = escalation.commit or next((each.verified for each in reversed(sessions) if each.verified), "")
    if branch or commit:
        tip = f" at {commit[:_SHORT]}" if commit else ""
        yield from _indented("branch", f"{branch}{tip}".strip(), f"git show {commit[:12]}" if commit else "")
    for at, each in enumerate(sessions):
        yield from _indented("" if at else "tried", _tried(each), f"genba logs {each.run}")
    cost, used = sum(each.cost_usd for each in sessions), sum(each.tokens for each in sessions)
    if cost or used:
        parts = (f"${cost:.2f}" if cost else "", tokens(Usage(input_tokens=used)))
        yield from _indented("cost", " · ".join(part for part in parts if part))
    if last is not None:
        seen = f"{last.verdict} on {last.subject.commit[:_SHORT]}"
        yield from _indented("verdict", seen, f"genba verify {task.number}")
        for result in last.results:
            if not result.result.passed:
                mark = GOAL_MARKS.get(str(result.result.status), "·")
                yield from _indented("", f"{mark} {result.goal.type}: {result.result.detail}")


def _tried(each: FleetSession) -> str:
    message = each.outcome or (f"waits for {_WAITS[each.waits_for]}" if each.waits_for in _WAITS else each.status)
    why = f": {each.reason}" if each.reason else ""
    return f"{each.attempt}. {each.agent}: {message}{why}"


def _evidence(evidence: Mapping[str, Any], known: Set[str]) -> Iterator[str]:
    """The evidence beside the question, without what the page shows already."""
    for name, value in evidence.items():
        message = f"#{value}" if name == "review" else value
        lines = [] if name in known or value in (0, None, "", [], {}, ()) else list(_words(message))
        for at, line in enumerate(lines):
            yield from _indented("" if at else name.replace("_", " "), line)


def _words(value: Any) -> Iterator[str]:
    match value:
        case str():
            yield from value.splitlines()
        case dict():
            for key, inner in value.items():
                yield f"{key}: {' '.join(_words(inner))}"
        case list() | tuple() if all(isinstance(inner, str) and len(inner) <= _SHORT_WORD for inner in value):
            yield ", ".join(value)
        case list() | tuple():
            for inner in value:
                yield " · ".join(_words(inner))
        case float():
            yield f"{value:.2f}"
        case _:
            yield msgspec.json.encode(value).decode() if isinstance(value, bool) else str(value)


def _proposed(escalation: Escalation) -> Plan | None:
    """The plan as it was when the question was asked."""
    result = escalation.evidence
    try:
        parts = fitted(result.get("subtasks"), tuple[Subtask, ...])
    except msgspec.ValidationError:
        return None
    return Plan(task=escalation.task, subtasks=parts, summary=str(result.get("summary", "")))


def _plan(plan: Plan | None, columns: int) -> Iterator[str]:
    if plan is None:
        return
    from genba.judgement.scheduling.plans import plan_lines  # noqa: PLC0415  (only who looks at a plan pays for it)

    yield ""
    for line in plan_lines(plan, columns - 3):
        yield f"   {line}"


def _indented(name: str, value: str, command: str = "") -> Iterator[str]:
    typed = f"   {cell(command)}" if command else ""
    yield f"   {fit(cell(name), _NAME)} {cell(value)}{typed}".rstrip()


def queue_lines(entries: Sequence[MergeEntry], now: datetime, columns: int = WIDTH) -> Iterator[str]:
    """By target, in the order in which they land: each with its state, and why it is where it is."""
    for at, target in enumerate(dict.fromkeys(each.target for each in entries)):
        if at:
            yield ""
        here = [each for each in entries if each.target == target]
        open_ = sum(not each.status.ended for each in here)
        yield cut(f"queue of {cell(target)} · {open_} open", columns)
        rows = [
            (
                f"{ENTRY_MARKS[each.status]} {each.status}",
                f"#{each.task} {each.title}",
                each.commit[:_SHORT],
                f"round {each.round}" if each.round > 1 else "",
                ago(each.enqueued_at, now),
                _outcome_of(each),
            )
            for each in here
        ]
        for line in rows_of(rows, (11, 34, 7, 8, 10)):
            yield cut(f" {line}", columns)


def _outcome_of(each: MergeEntry) -> str:
    """What became of an entry, or what it waits for."""
    parts = []
    if each.landed:
        parts.append(f"landed as {each.landed[:_SHORT]}")
    if each.paths:
        parts.append(f"in {', '.join(each.paths)}")
    if each.detail:
        parts.append(each.detail)
    if each.turns and not each.status.ended:
        parts.append(f"passed by {each.turns} time{'' if each.turns == 1 else 's'}")
    return "; ".join(parts)


def session_lines(
    sessions: Sequence[FleetSession], titles: Mapping[int, str], now: datetime, columns: int = WIDTH
) -> Iterator[str]:
    """One row for each session: its status, its id, its purpose, its time and its cost."""
    rows = [("", "task", "session", "attempt", "for", "time", "cost", "")]
    for each in sessions:
        rows.append(
            (
                f"{session_mark(each)} {session_word(each)}",
                f"#{each.task} {titles.get(each.task, '')}" if each.task else "–",
                each.run,
                str(each.attempt),
                each.purpose,
                _spent(each, now),
                f"${each.cost_usd:.2f}" if each.cost_usd else "",
                _state(each),
            )
        )
    lines = rows_of(rows, (18, 20, 34, 7, 9, 10, 7))
    for line in lines:
        yield cut(f" {line}", columns)


def session_word(each: FleetSession) -> str:
    return each.outcome if each.status == "ended" and each.outcome else each.status


def session_mark(each: FleetSession) -> str:
    if each.status == "ended" and each.outcome == Outcome.COMPLETED:
        return "●"
    return "✗" if each.status == "ended" and each.outcome == Outcome.FAILED else SESSION_MARKS.get(each.status, "·")


def _state(each: FleetSession) -> str:
    if each.status == "waiting":
        return f"waits for {_WAITS.get(each.waits_for, 'nothing')}"
    if each.status == "running":
        step = f"{each.step} {each.iterations}".strip() if each.iterations else each.step
        return " ".join(part for part in (each.phase, step, f"on {each.executor}" if each.executor else "") if part)
    if each.status == SUSPENDED:
        return f"{each.executor} has ended"
    return each.reason


def _spent(each: FleetSession, now: datetime) -> str:
    """How long it took, or how long ago it began."""
    try:
        began = datetime.fromisoformat(each.started_at)
        ended = datetime.fromisoformat(each.ended_at) if each.ended_at else None
    except ValueError:
        return ""
    if ended is None:
        return ago(each.started_at, now)
    return duration(max(0.0, (ended - began).total_seconds()))
