"""How a fleet looks: a line for what happens, a picture of now, and the story in the end. All of it is text.

Every state has a word and a shape. A command that can be typed is never cut.
"""

from collections.abc import Iterator, Sequence

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
)
from genba.domain.fleet.records import EntryStatus, EscalationKind, Purpose
from genba.domain.sessions.replies import Usage
from genba.entrypoints.cli.rendering.columns import cell, cut, fit, rows_of, width, wrapped
from genba.entrypoints.cli.rendering.event_lines import duration, tokens

WIDTH = 100
_K = FleetEventKind
EVENT_MARKS: dict[FleetEventKind, str] = {
    _K.OPENED: "▸",
    _K.STARTED: "▸",
    _K.CONTINUED: "▸",
    _K.STEP: "·",
    _K.VERIFIED: "✓",
    _K.REJECTED: "✗",
    _K.REVIEW: "◑",
    _K.PLANNED: "◑",
    _K.QUEUED: "○",
    _K.MERGED: "●",
    _K.CONFLICT: "≠",
    _K.MERGE_FAILED: "✗",
    _K.STUCK: "■",
    _K.MOVED: "·",
    _K.PHASE: "◑",
    _K.DONE: "●",
    _K.FAILED: "✗",
    _K.WAITS: "◌",
    _K.ESCALATED: "?",
    _K.DECIDED: "✓",
    _K.PAUSED: "‖",
    _K.RESUMED: "▸",
    _K.SUSPENDING: "‖",
    _K.SUSPENDED: "■",
    _K.TAKEN_OVER: "↷",
    _K.NOTICE: "·",
}
QUIET = frozenset({_K.STEP})
"""What a screen that shows the workers anyway need not tell line by line."""

ENTRY_MARKS: dict[EntryStatus, str] = {
    EntryStatus.QUEUED: "○",
    EntryStatus.MERGING: "◐",
    EntryStatus.MERGED: "●",
    EntryStatus.CONFLICT: "≠",
    EntryStatus.FAILED: "✗",
    EntryStatus.STUCK: "■",
    EntryStatus.WITHDRAWN: "–",
}
END_MARKS = {
    "done": "●",
    "failed": "✗",
    "waits": "?",
    "rejected": "✗",
    "cancelled": "–",
    "suspended": "■",
    "open": "○",
}
GOAL_MARKS = {"passed": "✓", "failed": "✗", "error": "!"}
_VERBS = {
    Purpose.WORK: "works",
    Purpose.PLAN: "plans",
    Purpose.REVIEW: "reviews",
    Purpose.INTEGRATE: "integrates",
    Purpose.MANAGE: "manages",
}
_AT_WORK = ("", "start", "iterate", "iterating")
_PHASES = {"open": "opens", "verify": "verifies", "deliver": "delivers", "send back": "sent back", "end": "ends"}
_SHORT = 7
_MOST_WAITS = 4
_MOST_LINES = 3
_FEWEST = 3
_BELOW = "   └ "


def event_line(event: FleetEvent) -> str:
    """One thing that happened, on one line, as long as it is."""
    parts = [f" {EVENT_MARKS[event.kind]} {event.kind.replace('_', ' '):<10}"]
    if event.task is not None:
        parts.append(f"#{event.task} {cut(cell(event.title), 40)}".rstrip())
    detail, typed = _apart(event.detail)
    command = event.command or typed
    parts += [cell(event.agent), cell(detail), command and f" {cell(command)}"]
    return "  ".join(part for part in parts if part).rstrip()


def picture_lines(picture: FleetView, columns: int = WIDTH, beat: str = "◐", rows: int = 0) -> list[str]:
    """Everything that is true now: who works, what is in the queue, what waits, what needs you.

    With `rows`, it is no longer than that where it can be: workers first, then the queue are shown as a number.
    """
    head = list(_head(picture, columns))
    workers = list(_workers(picture, columns, beat))
    queue = ["", *_queue(picture.queue, columns)] if picture.queue else []
    below = ["", *_waits(picture, columns)] if picture.waits or picture.paused else []
    if picture.needs:
        below += ["", " needs you", *need_lines(picture.needs, columns)]
    below += ["", cut(f" {_totals(picture)}", columns)]
    room = rows - len(head) - len(below)
    if rows and len(workers) + len(queue) > room:
        workers = [line for line in workers if not line.startswith(_BELOW)]
        workers = _first(workers, room - min(len(queue), _FEWEST))
        queue = _first(queue, room - len(workers))
    return [*head, *workers, *queue, *below]


def _first(lines: list[str], most: int) -> list[str]:
    """The first ones, and how many more there are."""
    most = max(most, min(len(lines), _FEWEST))
    return lines if len(lines) <= most else [*lines[: most - 1], f"   and {len(lines) - most + 1} more"]


def need_lines(needs: Sequence[DecisionView], columns: int) -> Iterator[str]:
    """What only a person can decide: the question, and under it the command where both have no room in one line."""
    for need in needs:
        kind = "" if need.kind is EscalationKind.QUESTION else f"{need.kind}: "
        output = cell(need.question)
        asked = f'"{output}"' if need.kind is EscalationKind.QUESTION else output
        named = fit(f"#{need.task} {cell(need.title)}".rstrip(), 28)
        yield from _with_command(f" ? {named}  {kind}{asked}", need.command, columns)


def summary_lines(summary: WorkSummary, columns: int = WIDTH) -> Iterator[str]:
    """What it came to: one line per task, then the totals, then what to type next."""
    ordered = _families(summary.tasks)
    if ordered:
        names = [f"{'   └ ' if inner else ' '}#{each.task} {cell(each.title)}".rstrip() for each, inner in ordered]
        across = min(28, max(width(name) for name in names))
        agents = min(14, max(width(cell(each.agent)) for each, _ in ordered))
        for name, (each, _) in zip(names, ordered, strict=True):
            status = f"{END_MARKS.get(each.status, '·')} {each.status}"
            output, typed = _apart(each.detail)
            detail, command = cell(output), each.command or typed
            parts = [f"{fit(name, across)}  {fit(status, 11)}  {fit(cell(each.agent), agents)}", _end(each)]
            line = "  ".join(part for part in parts if part).rstrip()
            whole = "  ".join(part for part in (*parts, detail) if part).rstrip()
            if width(whole) > columns and detail:
                yield cut(line, columns)
                *above, whole = (f"      {part}" for part in wrapped(detail, columns - 6, _MOST_LINES))
                yield from above
            yield from _with_command(whole, command, columns)
        yield ""
    result = {need.task for need in summary.needs} & {each.task for each in summary.tasks if each.command}
    left = [need for need in summary.needs if need.task not in result]
    if left:
        yield from need_lines(left, columns)
        yield ""
    waits = summary.waits[:_MOST_WAITS] if summary.ended in (WorkEndReason.EMPTY, WorkEndReason.BUDGET) else ()
    for wait in waits:
        yield from _with_command(f" ◌ {_wait(wait)}", _apart(wait.why)[1], columns)
    yield cut(f" {_sum(summary)}", columns)


def ending_line(summary: WorkSummary) -> str:
    """Why it ended, in one sentence."""
    left = sum(each.status not in ("done", "cancelled") for each in summary.tasks)
    match summary.ended:
        case WorkEndReason.SUSPENDED if summary.suspended:
            return f"suspended: {_count(summary.suspended, 'session')}, nothing is lost"
        case WorkEndReason.SUSPENDED:
            return "suspended: nothing was running"
        case WorkEndReason.STOPPED:
            by = f" ({cell(summary.detail)})" if summary.detail else ""
            return f"stopped{by}: {_count(summary.suspended, 'session')} suspended, nothing is lost"
        case WorkEndReason.BUDGET:
            return cell(f"a budget is used up: {summary.detail}" if summary.detail else "a budget is used up")
        case WorkEndReason.EMPTY if summary.needs:
            return f"nothing more can be done without you: {_count(len(summary.needs), 'decision')}"
        case WorkEndReason.EMPTY if summary.failed or any(each.status == "failed" for each in summary.tasks):
            return f"the field is empty, {_count(summary.failed, 'task')} failed"
        case WorkEndReason.EMPTY if summary.detail:
            return cell(summary.detail)
        case WorkEndReason.EMPTY if not summary.tasks:
            return "there was nothing to do"
        case WorkEndReason.EMPTY if left:
            return f"nothing more can be done now: {_count(left, 'task')} left"
    return f"{_count(summary.done, 'task')} done, and nothing is left to begin"


def _head(picture: FleetView, columns: int) -> Iterator[str]:
    busy = len(picture.workers)
    parts = [cell(picture.project), f"{busy} of {_count(picture.slots, 'worker')} busy", cell(picture.executor)]
    if picture.others:
        parts.append(f"{_count(picture.others, 'other executor')}")
    left = " · ".join(part for part in parts if part)
    right = " · ".join(_spent(picture.seconds, picture.tokens, picture.cost_usd, picture.budget_usd))
    if width(left) + width(right) + 3 <= columns:
        yield f"{left}{' ' * (columns - width(left) - width(right))}{right}"
    else:
        yield cut(left, columns)
        yield cut(right.rjust(columns), columns)
    yield ""


def _workers(picture: FleetView, columns: int, beat: str) -> Iterator[str]:
    """One line each, and a second one below where the goals and what is done right now have no room."""
    rows = [
        (
            f"{beat} {_verb(each)}",
            f"#{each.task} {each.title}",
            each.agent,
            _step(each),
            duration(each.seconds),
            _cost(each),
        )
        for each in picture.workers
    ]
    roomy = columns >= WIDTH
    limits = (12, 30 if roomy else 24, 12 if roomy else 10, 18 if roomy else 14, 7)
    for line, each in zip(rows_of(rows, limits), picture.workers, strict=True):
        more = "  ".join(part for part in (_goals(each.goals), cell(each.doing)) if part)
        if more and width(line) + width(more) + 3 <= columns:
            yield f" {line}  {more}"
            continue
        yield cut(f" {line}", columns)
        if more:
            yield cut(f"{_BELOW}{more}", columns)
    idle = picture.slots - len(picture.workers)
    if idle > 0:
        yield f" · idle{f' × {idle}' if idle > 1 else ''}"


def _verb(each: WorkerView) -> str:
    return _VERBS[each.purpose] if each.phase in _AT_WORK else _PHASES.get(each.phase, cell(each.phase))


def _step(each: WorkerView) -> str:
    of = f"/{each.iterations}" if each.iterations else ""
    return f"{each.step} {each.iteration}{of}".strip() if each.iteration else each.step


def _cost(each: WorkerView) -> str:
    return f"${each.cost_usd:.2f}" if each.cost_usd else ""


def _goals(goals: tuple[GoalMark, ...]) -> str:
    if not goals:
        return ""
    passed = sum(goal.status == "passed" for goal in goals)
    missed = [_missed(goal) for goal in goals if goal.status != "passed"]
    return "  ".join([f"goals {passed}/{len(goals)}", *missed])


def _missed(goal: GoalMark) -> str:
    detail = f": {cell(goal.detail)}" if goal.detail else ""
    return f"{GOAL_MARKS.get(goal.status, '·')} {cell(goal.name)}{detail}"


def _queue(queue: tuple[QueueEntryView, ...], columns: int) -> Iterator[str]:
    for target in dict.fromkeys(each.target for each in queue):
        yield cut(f" queue of {cell(target)}", columns)
        rows = []
        for each in queue:
            if each.target == target:
                again = f"round {each.round}" if each.round > 1 else ""
                mark = f"{ENTRY_MARKS[each.status]} {each.status}"
                rows.append((mark, f"#{each.task} {each.title}", again, each.detail))
        for line in rows_of(rows, (11, 40, 8)):
            yield cut(f" {line}", columns)


def _waits(picture: FleetView, columns: int) -> Iterator[str]:
    if picture.paused:
        message = f" ‖ paused  {_wait(WaitView(why=picture.paused))}"
        yield from _with_command(message, _apart(picture.paused)[1], columns)
    for wait in picture.waits[:_MOST_WAITS]:
        yield from _with_command(f" ◌ waits   {_wait(wait)}", _apart(wait.why)[1], columns)
    more = len(picture.waits) - _MOST_WAITS
    if more > 0:
        yield f"           and {more} more"


def _wait(wait: WaitView) -> str:
    named = f"#{wait.task} {cut(cell(wait.title), 30)}".rstrip() + "  " if wait.task is not None else ""
    until = f", until {clock_time(wait.until)}" if wait.until else ""
    return f"{named}{cell(_apart(wait.why)[0])}{until}"


def _apart(text: str) -> tuple[str, str]:
    """A sentence, and the command that stands at its end, two spaces away."""
    output, _, typed = text.partition("  genba ")
    return output, typed and f"genba {typed.strip()}"


def _totals(picture: FleetView) -> str:
    parts = [f"{picture.merged} merged", f"{picture.done} done", f"{picture.failed} failed", f"{picture.ready} ready"]
    parts.append(f"{picture.open} open")
    parts.append("suspending: everything is kept" if picture.suspending else "ctrl-c suspends it")
    return " · ".join(parts)


def _spent(seconds: float, count: int, cost_usd: float, budget_usd: float | None = None) -> Iterator[str]:
    yield duration(seconds)
    if count:
        yield tokens(Usage(input_tokens=count))
    if cost_usd or budget_usd is not None:
        of = f" of ${budget_usd:.2f}" if budget_usd is not None else ""
        yield f"${cost_usd:.2f}{of}"


def _end(each: TaskResult) -> str:
    parts = []
    if each.iterations:
        parts.append(fit(_count(each.iterations, "iteration"), 13))
    if each.goals:
        parts.append(fit(f"goals {each.goals_passed}/{each.goals}", 10))
    if each.merged:
        parts.append(f"merged {each.merged[:_SHORT]}")
    return "  ".join(parts)


def _families(tasks: tuple[TaskResult, ...]) -> list[tuple[TaskResult, bool]]:
    """Tasks by number, the parts of each below it."""
    there = {each.task for each in tasks}
    ordered: list[tuple[TaskResult, bool]] = []
    for each in sorted(tasks, key=lambda end: end.task):
        if each.parent not in there:
            ordered.append((each, False))
            ordered += [(part, True) for part in sorted(_below(each.task, tasks), key=lambda end: end.task)]
    missing = [each for each in tasks if all(each is not shown for shown, _ in ordered)]
    return ordered + [(each, False) for each in missing]


def _below(number: int, tasks: tuple[TaskResult, ...]) -> Iterator[TaskResult]:
    """The parts of a task, and theirs. A task is below another only once, however odd the numbers are."""
    waiting, seen = [number], {number}
    while waiting:
        parent = waiting.pop()
        for each in tasks:
            if each.parent == parent and each.task not in seen:
                seen.add(each.task)
                waiting.append(each.task)
                yield each


def _sum(summary: WorkSummary) -> str:
    vain = f", {summary.sessions_failed} of them in vain" if summary.sessions_failed else ""
    parts = [f"{_count(summary.sessions, 'session')}{vain}", f"{summary.merged} merged", f"{summary.done} done"]
    if summary.failed or not vain:
        parts.append(f"{summary.failed} failed")
    if summary.suspended:
        parts.append(f"{summary.suspended} suspended")
    if summary.needs:
        parts.append(f"{len(summary.needs)} need{'s' if len(summary.needs) == 1 else ''} you")
    return " · ".join([*parts, *_spent(summary.seconds, summary.tokens, summary.cost_usd)])


def _with_command(line: str, command: str, columns: int) -> Iterator[str]:
    """A line with a command at its end; below it where it has no room. The line may be cut, the command never."""
    typed = cell(command)
    if not typed:
        yield cut(line, columns)
    elif width(line) + width(typed) + 3 <= columns:
        yield f"{line}   {typed}"
    else:
        yield cut(line, columns)
        yield f"      {typed}"


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def clock_time(text: str) -> str:
    """The hour of a time as the blackboard writes it."""
    return f"{text[11:16]} UTC" if len(text) > 16 and text[10] == "T" else cell(text)  # noqa: PLR2004  (2026-01-05T14:30)
