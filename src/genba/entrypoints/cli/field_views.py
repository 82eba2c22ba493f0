"""How the field looks: what is true, what stands in the way, and what to type."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime

from genba.domain.facilitation import (
    FacilitateAction,
    FieldReport,
    IssueAssessment,
    IssueFacts,
    IssueState,
    Suggestion,
)
from genba.entrypoints.cli.columns import cell, cut, rows_of
from genba.entrypoints.cli.fleet_views import ago

_ORDER = (
    IssueState.DONE,
    IssueState.REVIEW_PENDING,
    IssueState.IN_PROGRESS,
    IssueState.BLOCKED,
    IssueState.INCOMPLETE,
    IssueState.UNKNOWN,
)
_MARKS = {
    IssueState.DONE: "●",
    IssueState.REVIEW_PENDING: "◐",
    IssueState.IN_PROGRESS: "▶",
    IssueState.BLOCKED: "✗",
    IssueState.INCOMPLETE: "○",
    IssueState.UNKNOWN: "?",
}
_HEALTH = {
    "states_clear": "states clear",
    "next_clear": "next clear",
    "blockers_visible": "blockers visible",
    "startable": "startable",
}
_NAMED = 4
_NEXT = 5
_MOST_ROWS = 60
_MOST_NODES = 200


def heading(report: FieldReport, now: datetime) -> str:
    looked = ago(report.looked_at, now)
    count = len(report.assessments)
    return cell(f"Field of {report.project} · {count} {'issue' if count == 1 else 'issues'} · looked {looked}")


def health_lines(report: FieldReport) -> Iterator[str]:
    """The four conditions, and who offends them."""
    shown = (f"{_HEALTH[each.name]} {'✓' if each.holds else '✗'}" for each in report.health)
    yield f" health   {'   '.join(shown)}"
    for each in report.health:
        if not each.holds:
            yield f"          {_HEALTH[each.name]}: {cell(each.detail)} {_numbers(each.offenders, 10)}".rstrip()


def status_lines(report: FieldReport, now: datetime, columns: int) -> Iterator[str]:
    """The short view."""
    yield heading(report, now)
    yield from health_lines(report)
    yield ""
    by_state: dict[IssueState, list[IssueAssessment]] = {}
    for each in report.assessments:
        by_state.setdefault(each.state, []).append(each)
    rows = [("state", "issues", "", "")]
    rows += [_state_row(state, by_state[state], report) for state in _ORDER if state in by_state]
    rows += [("stranded", f"#{each.issue}", "", f"{each.detail}   {each.command}") for each in report.stranded[:_NEXT]]
    if len(report.stranded) > _NEXT:
        rows.append(("", f"and {len(report.stranded) - _NEXT} more", "", "genba facilitate"))
    yield from (cut(f" {line}", columns) for line in rows_of(rows, (14, 24, 5)))
    yield ""
    yield from next_lines(report, columns)


def _state_row(state: IssueState, found: Sequence[IssueAssessment], report: FieldReport) -> tuple[str, str, str, str]:
    named = " ".join(f"#{each.issue}" for each in found[:_NAMED])
    more = " …" if len(found) > _NAMED else ""
    return str(state), f"{named}{more}", f"{len(found):>4}", _remark(state, found, report)


def _remark(state: IssueState, found: Sequence[IssueAssessment], report: FieldReport) -> str:
    """What is worth saying about all of a state, in a few words."""
    match state:
        case IssueState.BLOCKED:
            return " · ".join(f"#{each.issue} {each.blockers[0].detail}" for each in found[:2] if each.blockers)
        case IssueState.REVIEW_PENDING | IssueState.IN_PROGRESS | IssueState.UNKNOWN:
            numbers = {each.issue for each in found}
            best = next((each for each in report.recommendation.suggestions if each.issue in numbers), None)
            told = f"#{found[0].issue} {found[0].evidence[0]}" if found[0].evidence else ""
            return best.command if best is not None and state is IssueState.REVIEW_PENDING else told
    return ""


def next_lines(report: FieldReport, columns: int, most: int = _NEXT) -> Iterator[str]:
    """What to type, the best first."""
    found = report.recommendation.suggestions[:most]
    if not found:
        yield f" next  nothing: {cell(report.recommendation.reason)}"
        return
    rows = [(f"{each.score:.2f}", each.priority, each.command, _why(each)) for each in found]
    for at, line in enumerate(rows_of(rows, (4, 6, 60))):
        yield cut(f" {'next' if at == 0 else '    '}  {line}", columns)


def _why(suggestion: Suggestion) -> str:
    waits = next((part.why for part in suggestion.parts if part.name == "unblocking" and part.why), "")
    return "; ".join(part for part in (suggestion.description, waits) if part)


def facilitate_lines(report: FieldReport, now: datetime, columns: int) -> Iterator[str]:
    """Every issue that is not closed, with why, what is in its way, and the next command."""
    yield heading(report, now)
    yield from health_lines(report)
    shown = [each for each in report.assessments if not each.closed]
    closed = len(report.assessments) - len(shown)
    commands: dict[int, str] = {}
    for suggestion in report.recommendation.suggestions:
        if suggestion.issue is not None:
            commands.setdefault(suggestion.issue, suggestion.command)
    yield ""
    for each in shown[:_MOST_ROWS]:
        yield from _issue_lines(each, commands.get(each.issue, ""), columns)
    if len(shown) > _MOST_ROWS:
        yield f" and {len(shown) - _MOST_ROWS} more   genba facilitate --json"
    if closed:
        yield f" {closed} closed"
    yield from _stranded_lines(report, columns)
    yield from _action_lines(report, columns)
    yield ""
    yield from next_lines(report, columns, most=10)


def _issue_lines(each: IssueAssessment, command: str, columns: int) -> Iterator[str]:
    changed = "  changed" if each.changed else ""
    head = f" {_MARKS[each.state]} {cell(f'#{each.issue}'):<6} {each.state:<14} {each.freshness:<6}  {cell(each.title)}"
    yield cut(f"{head}{changed}", columns)
    if each.evidence:
        yield cut(f"          {cell(each.evidence[0])}", columns)
    for blocker in each.blockers:
        owner = f"  ({blocker.owner})" if blocker.owner else ""
        if blocker.detail != (each.evidence[0] if each.evidence else "") or owner:
            yield cut(f"          in its way: {cell(blocker.detail)}{owner}", columns)
    if command:
        yield f"          {cell(command)}"


def _stranded_lines(report: FieldReport, columns: int) -> Iterator[str]:
    if not report.stranded:
        return
    yield ""
    yield " stranded"
    for each in report.stranded[:_MOST_ROWS]:
        yield cut(f"   #{each.issue} {cell(each.detail)}", columns)
        yield f"      {cell(each.command)}"


def _action_lines(report: FieldReport, columns: int) -> Iterator[str]:
    if not report.actions:
        return
    yield ""
    yield " said" if report.applied else " would be said   genba facilitate --apply"
    for action in report.actions:
        yield cut(f"   #{action.issue} {cell(_action(action))}", columns)


def _action(action: FacilitateAction) -> str:
    match action.action:
        case "label":
            changes = [f"+{action.label}"] if action.label else []
            return f"label {' '.join([*changes, *(f'-{label}' for label in action.remove)])}: {action.body}"
        case "attention":
            return f"needs a person: {action.body}"
    first = next((line for line in action.body.split("\n") if line), "")
    return f"{action.action} {first}"


def mermaid(assessments: Sequence[IssueAssessment], field: Mapping[int, IssueFacts]) -> Iterator[str]:
    """The issues that are left and what they wait for, as a graph that GitHub and most editors draw."""
    yield "flowchart LR"
    waited_for = {number for each in assessments if not each.closed for number in field[each.issue].dependencies}
    shown = [each for each in assessments if not each.closed or each.issue in waited_for][:_MOST_NODES]
    known = {each.issue for each in shown}
    for each in shown:
        yield f'  i{each.issue}["#{each.issue} {_quoted(each.title)}<br/>{each.state}"]:::{each.state}'
    for each in shown:
        for other in field[each.issue].dependencies:
            if other in known:
                yield f"  i{other} --> i{each.issue}"
        parent = field[each.issue].parent
        if parent in known:
            yield f"  i{each.issue} -.-> i{parent}"
    for state, colour in _COLOURS.items():
        yield f"  classDef {state} fill:{colour}"


_COLOURS = {
    IssueState.DONE: "#d5f0d5",
    IssueState.REVIEW_PENDING: "#d5e5f5",
    IssueState.IN_PROGRESS: "#fff3c4",
    IssueState.BLOCKED: "#f8d0d0",
    IssueState.INCOMPLETE: "#eeeeee",
    IssueState.UNKNOWN: "#e8d5f5",
}


def _quoted(title: str) -> str:
    """A title that cannot end its own quotes, nor be read as a command of the graph."""
    plain = cut(cell(title), 50)
    return "".join(letter if letter.isalnum() or letter in " .,:-/()+…" else " " for letter in plain)


def _numbers(numbers: Sequence[int], most: int) -> str:
    shown = " ".join(f"#{number}" for number in numbers[:most])
    return f"{shown} and {len(numbers) - most} more" if len(numbers) > most else shown


def screen(columns: int) -> int:
    """Wide enough to say something."""
    return max(60, columns)
