"""What a project stands on here: whether its commands can be run, and who git takes its user for."""

import os
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from genba.connections.git.repository.commands import ask_git
from genba.connections.own_processes import own_environment

if TYPE_CHECKING:
    from genba.wiring.project.project_context import ProjectContext

_PACKAGES = frozenset({"pytest", "build", "ruff", "flake8", "pylint", "mypy", "tox", "nox", "coverage"})
"""Modules whose package has the same name."""


def in_the_way(command: str, folder: Path, environment_path: str | None) -> str:
    """Why a command could not be run on this machine, as far as a look along a PATH tells; empty when it could."""
    try:
        words = shlex.split(command)
    except ValueError:
        return ""
    if not words:
        return ""
    program = words[0]
    if "/" in program:
        return "" if os.access(folder / program, os.X_OK) else f"{program} is no program"
    found = shutil.which(program, path=environment_path)
    if found is None:
        return f"{program} is not installed" if _is_a_program(program) else ""
    if program.startswith("python") and words[1:2] == ["-m"] and words[2:]:
        look = f"import importlib.util, sys; sys.exit(importlib.util.find_spec({words[2].partition('.')[0]!r}) is None)"
        own = {"PATH": environment_path or os.defpath}
        try:
            result = subprocess.run(
                [found, "-I", "-c", look],
                check=False,
                capture_output=True,
                cwd=folder,
                env=own_environment(own),
                timeout=60,
            )
        except subprocess.TimeoutExpired:
            return f"{program} does not start"
        return "" if result.returncode == 0 else f"{program} has no module {words[2]}"
    return ""


def _is_a_program(word: str) -> bool:
    """Whether a word names a program, and is none of the shell's own."""
    builtins = ("cd", "export", "set", "test", "[", "exec", "eval", "source", ".", "if", "for", "while", "!", "(", "{")
    return "=" not in word and "$" not in word and word not in builtins


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
    from genba.connections.goals.detection import detect_in  # noqa: PLC0415  (only who looks)

    rules, top = context.project.rules, context.layout.top
    detected = detect_in(top)
    by_type = {"lint_passes": detected.lint, "build_succeeds": detected.build, "tests_pass": detected.test}
    from genba.domain.goals.goal import goal_type  # noqa: PLC0415

    for goal in rules.dod if rules is not None else ():
        kind = goal_type(goal)
        named = getattr(goal, "command", None) or getattr(goal, "script", None) or by_type.get(kind)
        if kind in by_type and not named:
            yield kind, "", "no command was found for it"
            continue
        command = named if isinstance(named, str) else shlex.join(named or ())
        problem = in_the_way(command, top, environment_path)
        if problem:
            yield kind, command, problem


def identity(folder: Path) -> str:
    """The address under which git would commit here; empty where it knows none."""
    return ask_git(folder, "config", "user.email").stdout.strip()
