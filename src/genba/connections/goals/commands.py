"""Running a command of a goal, and what its end means. What could not be run is an error: neither a pass nor a fail."""

import re
import shlex
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Protocol

from genba.connections.removal import remove_tree
from genba.connections.untrusted_files import UntrustedFolder
from genba.domain.goals.goal import CommandLine
from genba.domain.ports import Processes
from genba.domain.processes import Command, Ending, Exit
from genba.domain.sessions.evidence import CheckResult, CheckStatus

_PYTHON_FILES = ("pyproject.toml", "setup.py", "setup.cfg")
_KEPT_HEAD, _KEPT_TAIL = 64 * 1024, 192 * 1024
_DETAIL = 200

_COLOUR = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
_FAILURE = re.compile(r"(FAILED|--- FAIL:|not ok|FAIL) (?!\()")
_ERROR = re.compile(r"\b\w*(Error|Exception)\b|\berror\b(:|\[)|^Found \d+ error", re.ASCII)
_NO_MODULE = re.compile(r"^\S*python[\d.]*: No module named '?(\w+)", re.MULTILINE)
_TOOLS = frozenset({"pytest", "ruff", "flake8", "pylint", "mypy", "build", "tox", "nox", "unittest", "compileall"})


class Folders(Protocol):
    """What the host sees of the folders that commands run in: they may be mounted only where a command runs."""

    def files(self, folder: str) -> Path:
        """Where the files of the commit can be looked at."""
        ...

    def reports(self, folder: str) -> Path:
        """Where a command in the folder can write what the host reads afterwards."""
        ...


class PlainFolders:
    """Folders that are what they seem."""

    def files(self, folder: str) -> Path:
        return Path(folder)

    def reports(self, folder: str) -> Path:
        return Path(folder)


class GoalCommands:
    """Runs commands in a checkout."""

    def __init__(self, processes: Processes, environment: Mapping[str, str], folders: Folders | None = None) -> None:
        self.processes = processes
        self.environment = environment
        self.folders = folders or PlainFolders()

    async def run(
        self, command_line: CommandLine, folder: str, limit: float, mark: str, more: tuple[str, ...] = ()
    ) -> Exit:
        """Run a command; `more` are words behind it, which a shell line knows as "$@"."""
        return await self.processes.run(
            Command(
                argv=argv_of(command_line, more),
                workdir=folder,
                environment=surroundings(self.environment, folder, self.folders),
                timeout_seconds=limit,
                idle_seconds=limit,
                mark=mark,
            ),
            lambda _stream, _line: None,
        )

    @contextmanager
    def report(self, folder: str, name: str) -> Iterator["Report"]:
        """A file that one command in the folder can write, in a folder of its own; gone afterwards."""
        root = self.folders.reports(folder)
        own = Path(tempfile.mkdtemp(prefix=".genba-", dir=root))
        try:
            yield Report(root, own / name)
        finally:
            remove_tree(own)


class Report:
    """A file that code which is tested can write in place of its runner: it is read as such."""

    def __init__(self, root: Path, path: Path) -> None:
        self.root = root
        self.path = path

    def start(self, most: int) -> str | None:
        """The beginning of the report; None where there is no regular file of that name."""
        found = UntrustedFolder(self.root).read_start(str(self.path.relative_to(self.root)), most)
        return None if found is None else found.decode("utf-8", errors="replace")


def argv_of(command_line: CommandLine, more: tuple[str, ...] = ()) -> tuple[str, ...]:
    return ("sh", "-c", command_line, "sh", *more) if isinstance(command_line, str) else (*command_line, *more)


def surroundings(environment: Mapping[str, str], folder: str, folders: Folders) -> dict[str, str]:
    """What a command in a checkout sees. An editable install elsewhere must not be what is tested here."""
    seen = {**environment, "PYTHONDONTWRITEBYTECODE": "1"}
    files = UntrustedFolder(folders.files(folder))
    if any(files.is_file(name) for name in _PYTHON_FILES):
        places = [f"{folder}/src"] if files.is_folder("src") else []
        inherited = environment.get("PYTHONPATH", "")
        seen["PYTHONPATH"] = ":".join([*places, folder, *([inherited] if inherited else [])])
    return seen


def is_empty(command_line: CommandLine) -> bool:
    return (
        not command_line.strip() if isinstance(command_line, str) else not command_line or not command_line[0].strip()
    )


def shown(command_line: CommandLine) -> str:
    """A command as one line."""
    return bounded_line(command_line if isinstance(command_line, str) else shlex.join(command_line))


def judged(name: str, command_line: CommandLine, limit: float, done: Exit) -> CheckResult:
    """The result of a command that must end with 0."""
    output = output_of(done)
    if (reason := not_run(command_line, done)) is not None:
        return CheckResult(name, CheckStatus.ERROR, reason, output, done.seconds)
    if done.violations:
        message = "; ".join(each.detail for each in done.violations)
        return CheckResult(name, CheckStatus.FAILED, message, output, done.seconds)
    if done.ending is not Ending.EXITED:
        return CheckResult(name, CheckStatus.FAILED, too_long(limit), output, done.seconds, timed_out=True)
    if done.code != 0:
        return CheckResult(name, CheckStatus.FAILED, complaint(done), output, done.seconds)
    return CheckResult(name, CheckStatus.PASSED, "", output, done.seconds)


def not_run(command_line: CommandLine, done: Exit) -> str | None:
    """Why a command did not run at all; None when it did."""
    if done.never_ran:
        output = error_line(done.stdout + done.stderr)
        return f"`{shown(command_line)}` cannot be run{': ' if output else ''}{output}"
    absent = _NO_MODULE.search(done.stderr) if done.ending is Ending.EXITED and done.code == 1 else None
    if absent and absent[1] in _TOOLS:
        return f"`{shown(command_line)}` cannot be run: {absent[1]} is not installed"
    return None


def too_long(limit: float) -> str:
    return f"took longer than {limit:g} s"


def complaint(done: Exit) -> str:
    """What went wrong, in one line."""
    telling = error_line(done.stdout + done.stderr)
    return f"{telling} (exit code {done.code})" if telling else f"exit code {done.code}"


def output_of(done: Exit) -> str:
    return bounded((done.stdout + done.stderr).strip())


def bounded(text: str) -> str:
    """The head and the tail of a text that is too long to keep."""
    if len(text) <= _KEPT_HEAD + _KEPT_TAIL:
        return text
    left_out = len(text) - _KEPT_HEAD - _KEPT_TAIL
    return f"{text[:_KEPT_HEAD]}\n… {left_out} characters are left out …\n{text[-_KEPT_TAIL:]}"


def bounded_line(text: str) -> str:
    """A text as one short line without control characters."""
    line = "".join(letter if letter.isprintable() else " " for letter in text).strip()
    return line if len(line) <= _DETAIL else f"{line[:_DETAIL]}…"


def error_line(output: str) -> str:
    """The first test that failed; else the last line that names an error; else the last line."""
    lines = [line.strip() for line in _COLOUR.sub("", bounded(output)).splitlines() if line.strip()]
    failures = [line for line in lines if _FAILURE.match(line)]
    errors = [line for line in lines if _ERROR.search(line)]
    chosen = failures[:1] or errors[-1:] or lines[-1:]
    return bounded_line(chosen[0]) if chosen else ""
