"""`genba verify`: is it done? The verdict first, then the reasons, each with its evidence."""

from collections.abc import Iterator
from functools import partial

import click

from genba.application.verification import verify_target
from genba.application.verification.verify_target import Examination
from genba.domain.goals.descriptions import GUARDS
from genba.domain.goals.detection import names_tests
from genba.domain.goals.goal import GoalLevel
from genba.domain.goals.verification import GoalResult, VerdictStatus, Verification
from genba.domain.sessions.evidence import CheckStatus
from genba.entrypoints.cli.failures import show_hint, show_warning
from genba.entrypoints.cli.project_lookup import project_here, run_async
from genba.entrypoints.cli.rendering.event_lines import duration
from genba.entrypoints.cli.rendering.json_output import print_json
from genba.entrypoints.cli.rendering.printable import in_one_line, printable
from genba.entrypoints.cli.rendering.progress import Progress
from genba.entrypoints.cli.rendering.tables import table
from genba.entrypoints.cli.rendering.task_view import goal_line
from genba.execution.verification.policy import Policy

_LEVELS = {GoalLevel.DOD: "dod", GoalLevel.TYPE_RULE: "type", GoalLevel.ACCEPTANCE_CRITERIA: "ac"}
_MARKS = {CheckStatus.PASSED: "✓", CheckStatus.FAILED: "✗", CheckStatus.ERROR: "!"}
_DONE = {CheckStatus.PASSED: "holds", CheckStatus.FAILED: "fails", CheckStatus.ERROR: "could not be checked"}
_SHOWN_LINES = 12
_WIDTH = 56
_SHORT = 7


@click.command("verify")
@click.argument("target", required=False, metavar="TASK|BRANCH|SHA")
@click.option("--base-branch", metavar="NAME", help="The branch it should merge into.  [default: the base branch]")
@click.option("--may-change", multiple=True, metavar="GLOB", help="A protected path that the work may change.")
@click.option("--fresh", is_flag=True, help="Check every goal again; use no cached result.")
@click.option("--explain", is_flag=True, help="Show the goals and their sources; check nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def verify(
    target: str | None,
    base_branch: str | None,
    may_change: tuple[str, ...],
    fresh: bool,
    explain: bool,
    as_json: bool,
) -> int:
    """Verify a task, a branch or a commit.

    Its goals are checked on the exact commit, in a clean checkout.
    """
    context = project_here()
    examination = run_async(verify_target.resolve(context, target, base_branch, may_change, needs_commit=not explain))
    if explain:
        _explain(examination, as_json)
        return 0
    with Progress("checking the goals", quiet=as_json) as progress:
        found = run_async(verify_target.verify(context, examination, fresh, partial(_show_result, progress)))
    if as_json:
        print_json({"task": examination.number, "verification": found})
    else:
        for line in verdict_lines(examination, found):
            click.echo(line)
        _hint(examination, found)
    return 0 if found.done else 1


def verdict_lines(examination: Examination, found: Verification) -> Iterator[str]:
    """The whole picture of a verification."""
    name = f"#{examination.number}" if examination.number is not None else examination.shown
    subject = found.subject
    on = f" on {subject.branch}" if subject.branch else ""
    over = subject.base_branch or subject.base[:_SHORT]
    count = f"{found.commits} commit{'' if found.commits == 1 else 's'} over {over}"
    yield in_one_line(f"{name} {found.verdict}      commit {subject.commit[:_SHORT]}{on}, {count}")
    yield ""
    if found.missing:
        yield f" missing  {', '.join(found.missing)}"
    for message in found.findings:
        yield in_one_line(f" seen     {message}")
    if found.results:
        if found.missing or found.findings:
            yield ""
        yield from _table(found.results)


def _table(results: tuple[GoalResult, ...]) -> Iterator[str]:
    rows = [("level", "goal", "result", "", "from")]
    for each in results:
        spent = "cached" if each.cached else (duration(each.result.seconds) if each.result.seconds else "")
        optional = "" if each.goal.goal.required else " (reported only)"
        result = each.result.detail or _passed(each)
        rows.append(
            (
                _LEVELS[each.goal.level],
                each.goal.type,
                f"{_MARKS[each.result.status]}  {_cut(result)}{optional}",
                spent,
                each.goal.origin,
            )
        )
    lines = [f" {line}" for line in table(rows)]
    yield lines[0]
    for line, each in zip(lines[1:], results, strict=True):
        yield line
        if not each.result.passed:
            yield from _output(each)


def _passed(each: GoalResult) -> str:
    """What a goal that passed has looked at."""
    goal = each.goal.goal
    command = getattr(goal, "command", None) or getattr(goal, "script", None)
    if command:
        return command if isinstance(command, str) else " ".join(command)
    return goal_line(goal).partition(": ")[2] or GUARDS.get(each.goal.type, "")


def _cut(text: str) -> str:
    return text if len(text) <= _WIDTH else f"{text[: _WIDTH - 1]}…"


def _output(each: GoalResult) -> Iterator[str]:
    """What a goal that was missed has to show: its whole complaint where the table has no room, then its last lines."""
    lines = printable(each.result.output).strip().splitlines()[-_SHOWN_LINES:]
    if len(each.result.detail) > _WIDTH and not any(each.result.detail in line for line in lines):
        lines = [in_one_line(each.result.detail), *lines]
    for line in lines:
        yield f"        │ {line[:160]}"
    if each.log:
        yield f"        log: genba logs goal {each.log}"


def _explain(examination: Examination, as_json: bool) -> None:
    policy = examination.policy
    if as_json:
        print_json({"task": examination.number, "policy": policy})
        return
    rows = [("level", "goal", "from")]
    for frozen in policy.goals:
        rows.append((_LEVELS[frozen.level], goal_line(frozen.goal), frozen.origin))
    for line in table(rows):
        click.echo(f" {line}")
    for name, value in _terms(policy):
        click.echo(in_one_line(f" {name:<10} {value}"))


def _terms(policy: Policy) -> Iterator[tuple[str, str]]:
    yield "read from", policy.base[:_SHORT]
    yield "artifacts", ", ".join(policy.artifacts) or "none"
    if policy.may_change:
        yield "may change", ", ".join(policy.may_change)
    if policy.protected is not None:
        yield "protected", ", ".join(policy.protected)
    if policy.setup:
        yield "setup", policy.setup if isinstance(policy.setup, str) else " ".join(policy.setup)


def _hint(examination: Examination, found: Verification) -> None:
    if found.done:
        if not any(_runs_tests(each) for each in found.results):
            show_warning(
                "no goal runs tests: broken work would be done as well   name one under dod in .genba/config.yaml"
            )
        return
    if found.status is VerdictStatus.ERROR:
        broken = next((each.goal.type for each in found.results if each.broken), "")
        show_hint(f"genba verify {examination.shown} --explain   shows where {broken or 'each goal'} comes from")
    elif examination.number is not None:
        show_hint(f"genba run {examination.agent} --issue {examination.number}     goes on with this evidence")


def _runs_tests(each: GoalResult) -> bool:
    command = getattr(each.goal.goal, "command", None) or getattr(each.goal.goal, "script", None)
    return each.goal.type in ("tests_pass", "test_added") or names_tests(command or "")


def _show_result(progress: Progress, each: GoalResult) -> None:
    progress.doing = f"checking the goals, {each.goal.type} {_DONE[each.result.status]}"
    if not each.cached and each.result.seconds > 1:
        progress.say(f" {_MARKS[each.result.status]} {each.goal.type}  {duration(each.result.seconds)}")
