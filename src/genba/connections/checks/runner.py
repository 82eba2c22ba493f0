"""Runs the checks that need the working tree: commands, tests, files."""

import re
from collections.abc import Mapping
from pathlib import Path

from genba.domain.evidence import (
    Check,
    CheckResult,
    CheckStatus,
    CommandCheck,
    FileExistsCheck,
    TestsPassCheck,
)
from genba.domain.ports import Processes
from genba.domain.processes import Command, Ending, Exit
from genba.domain.workspaces import Workspace

_ERROR = re.compile(r"\b\w*(Error|Exception)\b|\berror\b:", re.ASCII)


class CheckRunner:
    """A command that cannot be run is an error: neither a pass nor a fail."""

    def __init__(self, processes: Processes, environment: Mapping[str, str]) -> None:
        self.processes = processes
        self.environment = environment

    async def run(self, name: str, check: Check, workspace: Workspace, mark: str) -> CheckResult:
        tree = Path(workspace.path)
        match check:
            case FileExistsCheck(path=path):
                return _file_exists(name, tree, path)
            case TestsPassCheck(timeout_seconds=limit):
                from genba.connections.checks.detection import test_command  # noqa: PLC0415  (rarely needed)

                line = test_command(tree)
                if line is None:
                    told = "no test command was found: declare tests-pass under validators"
                    return CheckResult(name, CheckStatus.ERROR, told)
                return await self._command(name, CommandCheck(command=line, timeout_seconds=limit), tree, mark)
            case CommandCheck():
                return await self._command(name, check, tree, mark)
        return CheckResult(name, CheckStatus.ERROR, "this check is not run in a working tree")

    async def _command(self, name: str, check: CommandCheck, tree: Path, mark: str) -> CheckResult:
        argv = ("sh", "-c", check.command) if isinstance(check.command, str) else check.command
        done = await self.processes.run(
            Command(
                argv=argv,
                workdir=str(tree),
                environment=self.environment,
                timeout_seconds=check.timeout_seconds,
                idle_seconds=check.timeout_seconds,
                mark=mark,
            ),
            lambda _stream, _line: None,
        )
        return _judged(name, check, done)


def _judged(name: str, check: CommandCheck, done: Exit) -> CheckResult:
    output = (done.stdout + done.stderr).strip()
    if done.never_ran:
        told = f"the command cannot be run: {output.splitlines()[-1] if output else check.command}"
        return CheckResult(name, CheckStatus.ERROR, told, output, done.seconds)
    if done.ending is not Ending.EXITED:
        told = f"took longer than {check.timeout_seconds:g} s"
        return CheckResult(name, CheckStatus.FAILED, told, output, done.seconds)
    if done.code != 0:
        telling = _telling_line(output)
        told = f"{telling} (exit code {done.code})" if telling else f"exit code {done.code}"
        return CheckResult(name, CheckStatus.FAILED, told, output, done.seconds)
    if check.success_when == "emptyOutput" and output:
        told = f"printed something: {output.splitlines()[0][:200]}"
        return CheckResult(name, CheckStatus.FAILED, told, output, done.seconds)
    return CheckResult(name, CheckStatus.PASSED, "", output, done.seconds)


def _telling_line(output: str) -> str:
    """The last line that names an error, or else the last line."""
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    errors = [line for line in lines if _ERROR.search(line)]
    return (errors or lines or [""])[-1][:200]


def _file_exists(name: str, tree: Path, path: str) -> CheckResult:
    try:
        target = (tree / path).resolve()
        there = target.is_relative_to(tree.resolve()) and target.is_file()
    except (OSError, ValueError, RuntimeError):
        there = False  # a link that leads round in a circle is no file
    status = CheckStatus.PASSED if there else CheckStatus.FAILED
    return CheckResult(name, status, "" if there else f"there is no file {path}")
