"""`genba init`: the first settings of a project, shown before they are written."""

import sys
from functools import partial

import click

from genba.application.project.project_init import Founded, plan, repository_of, write
from genba.domain.errors import GenbaError
from genba.domain.sessions.evidence import CheckResult, CheckStatus
from genba.entrypoints.cli.failures import show_hint, show_note, show_warning
from genba.entrypoints.cli.project_lookup import project_here, run_async
from genba.entrypoints.cli.rendering.json_output import print_json
from genba.entrypoints.cli.rendering.printable import in_one_line, printable
from genba.entrypoints.cli.rendering.tables import table
from genba.wiring import ProjectContext
from genba.wiring.project.machine import this_machine

_HERE = "."


@click.command("init")
@click.option(
    "--github",
    "repository",
    is_flag=False,
    flag_value=_HERE,
    metavar="[OWNER/NAME]",
    help="Use GitHub issues.  [default repository: remote origin]",
)
@click.option("--name", default="", help="The name of the project; by default that of its folder.")
@click.option("--adapter", default="", metavar="TYPE", help="Who works: claude-code, codex, opencode, …")
@click.option("--yes", "-y", is_flag=True, help="Write it without asking.")
@click.option("--dry-run", is_flag=True, help="Only show what would be written.")
@click.option("--no-run", is_flag=True, help="Do not run the proposed test command once.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def init(repository: str | None, name: str, adapter: str, yes: bool, dry_run: bool, no_run: bool, as_json: bool) -> int:
    """Propose the settings of this project from what is found.

    It changes no existing file.

    The proposed test command is run once. In a terminal the settings are shown first, and you are asked.
    """
    context = project_here()
    named = None if repository is None else run_async(repository_of(context, "" if repository == _HERE else repository))
    trying = None if no_run or dry_run else partial(_try_tests, context)
    planned = plan(context, this_machine(), name=name, adapter=adapter, repository=named, try_tests=trying)
    if not as_json:
        _show(planned, whole=dry_run or _asks(yes))
    if dry_run:
        if as_json:
            print_json({"founded": planned, "access": {"problem": "", "seen": ""}})
        return 0
    if _asks(yes) and not as_json and not click.confirm(f"write {planned.path}?", default=True, err=True):
        click.echo("nothing was written", err=True)
        return 1
    write(context, planned)
    _tell(project_here(), planned, as_json)
    return 0


def _try_tests(context: ProjectContext, command: str, settings: str) -> CheckResult | None:
    from genba.application.project.first_test_run import LIMIT_SECONDS, run_tests_once  # noqa: PLC0415  (only who has tests)

    limit = f"at most {LIMIT_SECONDS / 60:g} minutes; --no-run skips it"
    show_note(f"running `{in_one_line(command)}` once on the newest commit ({limit})")
    try:
        return run_async(run_tests_once(context, command, settings))
    except GenbaError as error:
        return CheckResult("tests_pass", CheckStatus.ERROR, error.message)


def _asks(yes: bool) -> bool:
    """True at a terminal, where a person can answer."""
    return not yes and sys.stdin.isatty() and sys.stderr.isatty()


def _show(planned: Founded, whole: bool) -> None:
    for line in table(_rows(planned)):
        click.echo(f" {in_one_line(line)}", err=not whole)
    for goal, command, problem in planned.left_out:
        show_warning(in_one_line(f"{goal} ({command}) is left out: {problem}"))
    if not planned.added:
        _show_tests(planned)
    if whole:
        click.echo(f"\n{planned.path}{', at its end' if planned.added else ''}")
        for line in printable(planned.text).splitlines():
            click.echo(f" │ {line}")


def _show_tests(planned: Founded) -> None:
    """What the settings do not show yet, and what to set."""
    setup, command = planned.example
    steps = f"in {planned.path}\ndod:\n  - tests_pass: {command}\nverification:\n  setup: {setup}"
    if not planned.has_tests:
        show_warning("NO GOAL RUNS TESTS: `genba verify` cannot tell broken work from good work")
        show_hint(f"name the command that runs them, and what installs their packages, {steps}")
    elif planned.tests_problem:
        named = next(command for goal, command in planned.goals if goal == "tests_pass")
        show_warning(in_one_line(f"NOTHING CAN BE DONE YET: tests_pass ({named}): {planned.tests_problem}"))
        show_hint(f"name the command that runs the tests, and what installs their packages, {steps}")


def _tell(context: ProjectContext, planned: Founded, as_json: bool) -> None:
    problem, seen, hint = "", "", ""
    if planned.repository:
        from genba.application.tracker.access import try_access  # noqa: PLC0415  (only who joins GitHub needs it)

        access = run_async(try_access(context))
        problem, seen, hint = access.problem, access.seen, access.hint
    if as_json:
        print_json({"founded": planned, "access": {"problem": problem, "seen": seen}})
        return
    click.echo(f"{'added the tracker to' if planned.added else 'wrote'} {planned.path}")
    if planned.repository and seen:
        click.echo(f" {in_one_line(f'{planned.repository}: {seen}')}")
    if problem:
        show_warning(f"{planned.repository} cannot be worked on yet: {problem}")
    show_hint("\n".join(filter(None, (hint, *_next(planned, bool(problem))))))


def _rows(planned: Founded) -> list[tuple[str, str]]:
    rows = [("project", " · ".join((planned.project, *planned.languages)))]
    if not planned.added:
        how = f" by your login, ~/{planned.login}, which the agent can read" if planned.login else ""
        rows.append(("works", f"{planned.adapter or 'no agent yet: name one under `agents`'}{how}"))
        goals = [f"{goal} ({command})" if command else goal for goal, command in planned.goals]
        rows.append(("done means", " · ".join(goals)))
        if planned.tests:
            rows.append(("tests", planned.tests))
    if planned.repository:
        where = f"{planned.repository}{f' at {planned.url}' if planned.url else ' on GitHub'}"
        rows.append(("issues", where))
    return rows


def _next(planned: Founded, problem: bool) -> tuple[str, ...]:
    """The commands from here to the first task, line by line."""
    commit = f"git add {planned.path} && git commit -m 'Say what done means'"
    if planned.repository:
        return commit, "genba doctor" if problem else "genba sync"
    if planned.added or planned.adapter:
        return commit, 'genba task add "what is to be done"', "genba run iterator --issue 1"
    return "genba doctor   says which agents there are; name one under `agents`, then:", commit
