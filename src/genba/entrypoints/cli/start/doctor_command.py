"""`genba doctor`: what is installed, what works, and the command for what is missing."""

import os
from collections.abc import Iterator

import click

from genba.application.project.doctor import Checkup, Finding, Health, check_up
from genba.domain.sessions.sandbox import SandboxKind
from genba.entrypoints.cli.failures import show_hint
from genba.entrypoints.cli.project_lookup import here, run_async
from genba.entrypoints.cli.rendering.json_output import print_json
from genba.entrypoints.cli.rendering.printable import in_one_line
from genba.entrypoints.cli.rendering.progress import Progress
from genba.entrypoints.cli.rendering.tables import table
from genba.wiring.project.machine import this_machine

_MARKS = {Health.FINE: "✓", Health.MISSING: "–", Health.WRONG: "✗"}
_WIDTH = 72
_NO_WORKERS = ("facilitator", "planner", "reviewer")
_NEEDED = ("identity", "lint_passes", "build_succeeds", "tests_pass")
"""What no run stops at, and no task gets done without."""
_AREAS = ("machine", "agents", "sandbox", "project")


@click.command("doctor")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def doctor(as_json: bool) -> int:
    """Check what works here, and how to get what is missing."""
    with Progress("checking the machine, the agents and the sandbox", quiet=as_json):
        found = run_async(check_up(here(), os.environ, this_machine()))
    if as_json:
        print_json({"can_run": found.can_run, "sandbox": found.sandbox, "why": found.why, "findings": found.findings})
    else:
        for line in checkup_lines(found):
            click.echo(line)
        show_hint(_next_command(found))
    return 0 if found.can_run else 1


def checkup_lines(found: Checkup) -> Iterator[str]:
    """The whole picture: by area, then what to install."""
    named = [finding for area in _AREAS for finding in found.findings if finding.area == area]
    rows = [(f"{_MARKS[each.health]} {each.name}", each.version, _cut(each.detail)) for each in named]
    area = ""
    for each, line in zip(named, table(rows), strict=True):
        if each.area != area:
            yield each.area
            area = each.area
        yield f" {line}"
    yield ""
    yield in_one_line(_sandbox_line(found))
    installable = [(f"{each.name}:", each.install) for each in named if each.install]
    if installable:
        yield ""
        yield "to get what is missing"
        yield from (f" {line}" for line in table(installable))


def _cut(text: str) -> str:
    line = in_one_line(text)
    return line if len(line) <= _WIDTH else f"{line[: _WIDTH - 1]}…"


def _sandbox_line(found: Checkup) -> str:
    if found.sandbox is SandboxKind.WORKTREE:
        why = f" ({found.why})" if found.why else ""
        return f"agents work in their own worktree, without a sandbox{why}"
    return f"agents work in a sandbox: {found.sandbox}"


def _next_command(found: Checkup) -> str:
    wrong = next((each for each in found.findings if each.health is Health.WRONG), None)
    if wrong is not None:
        return _cure(wrong)
    if not found.in_project:
        return "cd to a git repository of yours, or look around first: genba demo"
    workers = [name for name in found.answering if name not in _NO_WORKERS]
    if not found.agents and not workers:
        return "install an agent, or watch one work that needs no model: genba demo"
    unready = next((each for each in found.findings if each.name in _NEEDED and each.health is not Health.FINE), None)
    if unready is not None:
        return unready.install
    worker = "iterator" if "iterator" in workers or not workers else workers[0]
    return f"genba agent check   then  genba run {worker} --issue NUMBER"


def _cure(wrong: Finding) -> str:
    return wrong.install or {"config": "genba agent check"}.get(wrong.name, f"fix {wrong.name}, then: genba doctor")
