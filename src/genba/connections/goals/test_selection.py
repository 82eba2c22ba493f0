"""Running only some test files. Their names are hostile input: no shell ever reads them."""

import re
from pathlib import Path

import msgspec

from genba.domain.goals.detection import plain_words
from genba.domain.goals.goal import CommandLine

_FILES = "{files}"
_PYTHON = re.compile(r"python[\d.]*")
_LAUNCHERS = (("npx",), ("pnpm", "exec"), ("pnpm",), ("yarn",), ("uv", "run"), ("poetry", "run"), ("pipenv", "run"))
_TAKE_A_VALUE = frozenset({
    "-c", "-k", "-m", "-n", "-o", "-p", "-r", "-W", "--rootdir", "--confcutdir", "--ignore", "--ignore-glob",
    "--deselect", "--basetemp", "--junitxml", "--junit-xml", "--maxfail", "--tb", "--durations", "--color", "--cov",
    "--cov-config", "--cov-report", "--import-mode", "--log-file", "--timeout", "--dist",
})  # fmt: skip


class SuiteRun(msgspec.Struct, frozen=True, kw_only=True):
    """A command that runs tests, and the words behind it."""

    command_line: CommandLine
    more: tuple[str, ...] = ()
    narrowed: bool = False
    """Whether it runs the given files only."""
    pytest: bool = False
    """Whether its exit codes are those of pytest."""


def narrow(command: CommandLine, files: tuple[str, ...], folder: Path) -> SuiteRun:
    """The command for these files alone, where it accepts files; otherwise the command as it is."""
    names = tuple(_named(path) for path in files)
    by_pytest = "pytest" in (command if isinstance(command, str) else " ".join(command))
    if any(_FILES in arg for arg in ((command,) if isinstance(command, str) else command)):
        return _placed(command, names, by_pytest)
    command_line = plain_words(command)
    match runner_of(command_line) if command_line else "":
        case "pytest":
            kept = _without_targets(command_line or (), folder)
            return SuiteRun(command_line=kept, more=names, narrowed=True, pytest=True)
        case "jest":
            return SuiteRun(command_line=command_line or (), more=("--runTestsByPath", *names), narrowed=True)
        case "vitest":
            return SuiteRun(command_line=command_line or (), more=names, narrowed=True)
    return SuiteRun(command_line=command, pytest=by_pytest)


def _placed(command: CommandLine, names: tuple[str, ...], by_pytest: bool) -> SuiteRun:
    """The files where `{files}` stands. A shell gets them as "$@": whatever quotes are around it, it runs no name."""
    if isinstance(command, str):
        return SuiteRun(command_line=command.replace(_FILES, '"$@"'), more=names, narrowed=True, pytest=by_pytest)
    spread: list[str] = []
    for arg in command:
        spread += [arg.replace(_FILES, name) for name in names] if _FILES in arg else [arg]
    return SuiteRun(command_line=tuple(spread), narrowed=True, pytest=by_pytest)


def _named(path: str) -> str:
    """A path that no tool takes for an option, or for a file with options in it."""
    return path if path[:1].isalnum() or path[:1] in ("_", "/") else f"./{path}"


def runner_of(command_line: tuple[str, ...]) -> str:
    """Which test runner a plain line calls; an empty string for one that is not known."""
    for launcher in _LAUNCHERS:
        if command_line[: len(launcher)] == launcher:
            command_line = command_line[len(launcher) :]
            break
    first = Path(command_line[0]).name if command_line else ""
    if _PYTHON.fullmatch(first):
        return (
            command_line[2]
            if command_line[1:2] == ("-m",) and command_line[2:3] in (("pytest",), ("unittest",))
            else ""
        )
    return {"pytest": "pytest", "py.test": "pytest", "jest": "jest", "vitest": "vitest"}.get(first, "")


def _without_targets(command_line: tuple[str, ...], folder: Path) -> tuple[str, ...]:
    """The words of a pytest line without the folders and files that it names as what to run."""
    begin = next(at for at, arg in enumerate(command_line) if Path(arg).name in ("pytest", "py.test")) + 1
    kept = list(command_line[:begin])
    for at in range(begin, len(command_line)):
        arg, before = command_line[at], command_line[at - 1]
        if arg.startswith("-") or before in _TAKE_A_VALUE or not (folder / arg.partition("::")[0]).exists():
            kept.append(arg)
    return tuple(kept)
