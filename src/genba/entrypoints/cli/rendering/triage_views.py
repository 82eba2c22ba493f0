"""The report on all issues: states, blockers and next commands."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import NamedTuple

from genba.domain.facilitation import (
    FacilitateAction,
    FieldReport,
    IssueAssessment,
    IssueFacts,
    IssueState,
    OrphanedWork,
    Suggestion,
)
from genba.entrypoints.cli.rendering.columns import cell, cut, rows_of
from genba.entrypoints.cli.rendering.fleet_views import ago
from genba.judgement.triage.maintenance import needs_a_person
from genba.judgement.triage.recommendations import NO_AGENT

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
_STRANDED = {
    "not_merged": "verified, and not on the base",
    "dead_session": "held by sessions whose processes are gone",
    "merged_but_open": "landed, and still open",
    "no_reviewer": "pull requests without a reviewer",
    "dirty_tree": "worktrees with uncommitted changes and no session",
    "wrong_label": "labels that contradict the facts",
}
_NAMED = 4
_NEXT = 5
_MOST_BLOCKERS = 3
_MOST_EVIDENCE = 2
_LEAST_REMARK = 12
"""Columns below which words say nothing."""
_BEFORE_COMMAND = 20
_MOST_ROWS = 60
_MOST_NODES = 200


def heading(report: FieldReport, now: datetime) -> str:
    updated = ago(report.looked_at, now)
    count = len(report.assessments) + len(report.resting)
    return cell(f"{report.project} · {count} {'issue' if count == 1 else 'issues'} · updated {updated}")


def health_lines(report: FieldReport, columns: int) -> Iterator[str]:
    """The four conditions, and who offends them."""
    shown = (f"{_HEALTH[each.name]} {'✓' if each.holds else '✗'}" for each in report.health)
    yield f" health   {'   '.join(shown)}"
    if report.unread:
        yield cut(f"          {cell(report.health[0].detail)}", columns)
        return
    for each in report.health:
        if not each.holds:
            offend = _numbers(each.offenders, 10)
            yield cut(f"          {_HEALTH[each.name]}: {cell(each.detail)} {offend}".rstrip(), columns)


def status_lines(report: FieldReport, now: datetime, columns: int) -> Iterator[str]:
    """The short view."""
    yield heading(report, now)
    yield from health_lines(report, columns)
    if report.assessments or report.resting:
        yield ""
        yield from _table(list(_rows(report, now)), columns)
    yield ""
    yield from next_lines(report, columns)


class _Row(NamedTuple):
    """Issues with the same remark. The command is shown whole; the remark is cut."""

    mark: str
    word: str
    issues: Sequence[int]
    remark: str = ""
    command: str = ""


def _rows(report: FieldReport, now: datetime) -> Iterator[_Row]:
    by_state: dict[IssueState, list[IssueAssessment]] = {}
    for each in report.assessments:
        by_state.setdefault(each.state, []).append(each)
    for state in _ORDER:
        found = by_state.get(state, [])
        resting = report.resting if state is IssueState.DONE else ()
        if found or resting:
            issues = sorted((*(each.issue for each in found), *resting))
            yield _Row(_MARKS[state], state, issues, *_remark(state, found, report, now))
    waiting = [each for each in report.assessments if needs_a_person(each)]
    if waiting:
        command, first = _next_of(report, waiting)
        why = needs_a_person(first)
        yield _Row("!", "attention", [each.issue for each in waiting], f"#{first.issue} {why}", command)
    kinds: dict[str, list[OrphanedWork]] = {}
    for lying in report.orphaned:
        kinds.setdefault(lying.kind, []).append(lying)
    for kind, all_ in kinds.items():
        result = all_[0].detail if len(all_) == 1 else _STRANDED.get(kind, all_[0].detail)
        yield _Row("!", "orphaned", [each.issue for each in all_], result, all_[0].command)


def _table(rows: Sequence[_Row], columns: int) -> Iterator[str]:
    """One line per state: the issues, their number, a remark and a command."""
    named = [_named(row.issues) for row in rows]
    words = max(len(row.word) for row in rows)
    wide = max(6, *(len(each) for each in named))
    most = max(len(str(len(row.issues))) for row in rows)
    yield f"   {'state':<{words}}  issues"
    for row, issues in zip(rows, named, strict=True):
        start = f" {row.mark} {row.word:<{words}}  {issues:<{wide}}  {len(row.issues):>{most}}"
        room = columns - len(start) - 3 - (len(row.command) + 3 if row.command else 0)
        lines = [cut(cell(row.remark), room)] if row.remark and room >= _LEAST_REMARK else []
        lines += [cell(row.command)] if row.command else []
        yield f"{start}   {'   '.join(lines)}".rstrip()


def _named(numbers: Sequence[int]) -> str:
    return " ".join(f"#{number}" for number in numbers[:_NAMED]) + (" …" if len(numbers) > _NAMED else "")


def _remark(state: IssueState, found: Sequence[IssueAssessment], report: FieldReport, now: datetime) -> tuple[str, str]:
    """What is worth saying about all of a state, in a few words, and the command that goes with it."""
    match state:
        case IssueState.BLOCKED:
            return " · ".join(f"#{each.issue} {each.blockers[0].detail}" for each in found[:2] if each.blockers), ""
        case IssueState.IN_PROGRESS:
            newest = max(found, key=lambda each: each.last_at)
            when = f", {ago(newest.last_at, now)}" if newest.last_at else ""
            return f"#{newest.issue} {newest.evidence[0]}{when}" if newest.evidence else "", ""
        case IssueState.REVIEW_PENDING:
            command, first = _next_of(report, found)
            return f"#{first.issue} {first.evidence[0]}" if first.evidence else "", command
    return "", ""


def _next_of(report: FieldReport, found: Sequence[IssueAssessment]) -> tuple[str, IssueAssessment]:
    """The best move of some issues, and of which one it is."""
    by_number = {each.issue: each for each in found}
    for suggestion in report.recommendation.suggestions:
        if suggestion.issue in by_number:
            return suggestion.command, by_number[suggestion.issue]
    return "genba facilitate", found[0]


def next_lines(report: FieldReport, columns: int, most: int = _NEXT) -> Iterator[str]:
    """What to type, the best first; what works off the whole field at last."""
    all_ = report.recommendation.suggestions
    if not all_:
        yield cut(f" next  nothing: {cell(report.recommendation.reason)}", columns)
        return
    whole = [each for each in all_ if each.issue is None]
    found = [each for each in all_ if each.issue is not None][: most - len(whole)] + whole
    titles = {each.issue: each.title for each in report.assessments}
    rows = [
        (f"{each.score:.2f}", each.priority, each.command, _why(each, titles.get(each.issue or 0, "")))
        for each in found
    ]
    for at, line in enumerate(rows_of(rows, (4, 6, columns))):
        yield cut(f" {'next' if at == 0 else '    '}  {line}", max(columns, len(rows[at][2]) + _BEFORE_COMMAND))


def _why(suggestion: Suggestion, title: str) -> str:
    """What there is to do, and why it comes first. What an agent does, its command says."""
    whys = {part.name: part.why for part in suggestion.parts}
    if suggestion.agent != NO_AGENT and title:
        first = " · ".join(filter(None, (whys.get("unblocking"), suggestion.deadline))) or whys.get("urgency", "")
        return f"{first} · {title}"
    return " · ".join(filter(None, (suggestion.description, whys.get("unblocking"), suggestion.deadline)))


def facilitate_lines(
    report: FieldReport, now: datetime, columns: int, command_for: Callable[[int], str]
) -> Iterator[str]:
    """Every issue about which something is left to do, with why, what is in its way, and the next command."""
    yield heading(report, now)
    yield from health_lines(report, columns)
    shown = [each for each in report.assessments if not each.over]
    closed = len(report.assessments) - len(shown) + len(report.resting)
    yield ""
    for each in shown[:_MOST_ROWS]:
        yield from _issue_lines(each, command_for(each.issue), columns)
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
    head = f" {_MARKS[each.state]} {f'#{each.issue}':<6} {each.state:<14} {each.freshness:<6}  "
    yield f"{head}{cut(cell(each.title), columns - len(head) - len(changed))}{changed}".rstrip()
    for blocker in each.blockers[:_MOST_BLOCKERS]:
        owner = f" ({blocker.owner})" if blocker.owner else ""
        yield cut(f"          in its way: {cell(f'{blocker.detail or blocker.kind}{owner}')}", columns)
    lines = [each.detail for each in each.blockers]
    for evidence in [line for line in each.evidence if line not in lines][:_MOST_EVIDENCE]:
        yield cut(f"          {cell(evidence)}", columns)
    if command:
        yield f"          {cell(command)}"


def _stranded_lines(report: FieldReport, columns: int) -> Iterator[str]:
    if not report.orphaned:
        return
    yield ""
    yield " orphaned"
    for each in report.orphaned[:_MOST_ROWS]:
        yield cut(f"   #{each.issue} {cell(each.detail)}", columns)
        yield f"      {cell(each.command)}"


def _action_lines(report: FieldReport, columns: int) -> Iterator[str]:
    if not report.actions:
        return
    yield ""
    yield " comments and labels" if report.applied else " comments and labels, not sent   genba facilitate --apply"
    for action in report.actions:
        yield cut(f"   #{action.issue} {cell(_action(action))}", columns)


def _action(action: FacilitateAction) -> str:
    match action.action:
        case "label":
            changes = [f"+{action.label}"] if action.label else []
            return f"label {' '.join([*changes, *(f'-{label}' for label in action.remove)])}: {action.body}"
        case "attention":
            return f"needs a person: {action.body}"
    lines = [line.strip("* ") for line in action.body.split("\n") if line]
    return f"{action.action} {' · '.join(lines[:2])}"


def mermaid(assessments: Sequence[IssueAssessment], field: Mapping[int, IssueFacts]) -> Iterator[str]:
    """The issues that are left and what they wait for, as a graph that GitHub and most editors draw."""
    yield "flowchart LR"
    waited_for = {number for each in assessments if not each.closed for number in field[each.issue].dependencies}
    all_ = [each for each in assessments if not each.closed or each.issue in waited_for]
    shown = all_[:_MOST_NODES]
    if len(all_) > len(shown):
        yield f"  %% {len(all_) - len(shown)} more issues are not drawn"
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
