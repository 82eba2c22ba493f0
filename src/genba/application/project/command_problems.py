"""What a project stands on here: whether its commands can be run, and who git takes its user for."""

import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from genba.application.project.project_context import ProjectContext

_PACKAGES = frozenset({"pytest", "build", "ruff", "flake8", "pylint", "mypy", "tox", "nox", "coverage"})
"""Modules whose package has the same name."""


def remedy(problem: str) -> str:
    """The command that brings what a command lacks, where it is known."""
    *_, name = problem.split()
    if " has no module " in problem:
        return f"pip install {name}" if name in _PACKAGES else ""
    program = problem.partition(" ")[0]
    known = {
        "make": "apt-get install make",
        "npm": "apt-get install npm",
        "go": "apt-get install golang",
        "cargo": "apt-get install cargo",
        "mvn": "apt-get install maven",
        "gradle": "apt-get install gradle",
        "ruff": "pip install ruff",
        "flake8": "pip install flake8",
        "pylint": "pip install pylint",
    }
    return known.get(program, "")


def goals_in_the_way(context: "ProjectContext", environment_path: str | None) -> Iterator[tuple[str, str, str]]:
    """The goals of the Definition of Done that cannot be checked here: each with its command, and why."""
    rules, top = context.project.rules, context.layout.top
    detected = context.ports.detection.detect_in(top)
    by_type = {"lint_passes": detected.lint, "build_succeeds": detected.build, "tests_pass": detected.test}
    from genba.domain.goals.goal import goal_type  # noqa: PLC0415

    for goal in rules.dod if rules is not None else ():
        kind = goal_type(goal)
        named = getattr(goal, "command", None) or getattr(goal, "script", None) or by_type.get(kind)
        if kind in by_type and not named:
            yield kind, "", "no command was found for it"
            continue
        command = named if isinstance(named, str) else shlex.join(named or ())
        problem = context.ports.detection.command_problem(command, top, environment_path)
        if problem:
            yield kind, command, problem


async def identity(context: "ProjectContext") -> str:
    """The email address under which git would commit here; empty where it knows none."""
    output = await context.layout.git.run("config", "user.email", allow=(0, 1))
    return output.stdout.strip()
