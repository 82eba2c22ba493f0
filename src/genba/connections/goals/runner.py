"""Runs the goals that need more than what git shows: commands, files, services, secrets."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Protocol

import msgspec

from genba.connections.goals.commands import Folders, GoalCommands, PlainFolders, bounded_line, is_empty, judged
from genba.connections.goals.endpoints import Endpoints, RunnerSettings
from genba.connections.goals.installed_copies import (
    HIDING_FAILED,
    MOST_LOST,
    imported_by_tests,
    lost_packages,
    places_of,
    untested_package,
    without,
)
from genba.connections.goals.regression import fails_on_base
from genba.connections.goals.suites import SuiteEnd, counted, judged_suite, ran_no_test, run_suite
from genba.connections.untrusted_files import UntrustedFolder
from genba.domain.goals.detection import is_gitleaks, names_tests
from genba.domain.goals.goal import (
    BuildSucceeds,
    CommandLine,
    CustomScript,
    EndpointResponds,
    FileExists,
    Goal,
    LintPasses,
    NoSecrets,
    ResponseContains,
    TestAdded,
    TestsPass,
    goal_type,
)
from genba.domain.goals.verification import Place
from genba.domain.ports import Processes
from genba.domain.sessions.evidence import CheckResult, CheckStatus

_GLOB = re.compile(r"[*?\[]")
_GIT = ".git"


Listing = Callable[[str], Awaitable[tuple[str, ...]]]
ByCommand = LintPasses | BuildSucceeds | TestsPass | CustomScript | NoSecrets


class SecretScanner(Protocol):
    """Looks for secrets in every commit of a branch."""

    async def scan(self, base: str, commit: str, timeout_seconds: float, mark: str) -> CheckResult: ...


class GoalEngine:
    """Checks one goal in one place. What could not be run is an error, and never reported as a failure.

    Goals that run at the same time need marks of their own: the end of a command ends all that carry its mark.
    """

    def __init__(
        self,
        processes: Processes,
        environment: Mapping[str, str],
        secrets: SecretScanner,
        settings: RunnerSettings | None = None,
        folders: Folders | None = None,
        own_network: bool = False,
        repository: Path | None = None,
        listing: Listing | None = None,
    ) -> None:
        self.environment = environment
        self.listing = listing
        """The paths of a commit; None where there are only files."""
        self.repository = repository
        """The folder of which the user may have installed a copy; None where it is the copy that is to be tested."""
        self.folders = folders or PlainFolders()
        self.commands = GoalCommands(processes, environment, self.folders)
        self.endpoints = Endpoints(processes, environment, settings or RunnerSettings(), self.folders, own_network)
        self.secrets = secrets

    async def run(self, goal: Goal, place: Place, mark: str) -> CheckResult:
        name = goal_type(goal)
        match goal:
            case TestsPass(command=command):
                found = command if command is not None else await self._detected(goal, place)
                return await self._suite(goal, found, place, mark)
            case LintPasses(command=command) | BuildSucceeds(command=command):
                found = command if command is not None else await self._detected(goal, place)
                return await self._command(goal, found, place, mark)
            case CustomScript(script=script, empty_output=empty):
                result = await self._script(goal, script, place, mark)
                return _silent(result) if empty else result
            case TestAdded(must_fail_on_base=True):
                command = goal.command if goal.command is not None else await self._detected(goal, place)
                if command is None or is_empty(command):
                    return _no_command(goal, command)
                result = await fails_on_base(self.commands, goal, command, place, mark)
                return await self._of_commit(result, place, command, mark)
            case FileExists(path=path):
                there = await asyncio.to_thread(file_exists, Path(place.folder), path)
                complaint = "" if there else f"there is no file {bounded_line(path)}"
                return CheckResult(name, CheckStatus.PASSED if there else CheckStatus.FAILED, complaint)
            case NoSecrets(command=command):
                if command is not None and not is_gitleaks(command):
                    return await self._command(goal, command, place, mark)
                result = await self.secrets.scan(place.base, place.commit, goal.timeout_seconds, mark)
                return msgspec.structs.replace(result, name=name)
            case EndpointResponds() | ResponseContains():
                return await self.endpoints.ask(goal, place, mark)
        return CheckResult(name, CheckStatus.ERROR, "not run in a checkout")

    async def _command(self, goal: ByCommand, command_line: CommandLine | None, place: Place, mark: str) -> CheckResult:
        if command_line is None or is_empty(command_line):
            return _no_command(goal, command_line)
        done = await self.commands.run(command_line, place.folder, goal.timeout_seconds, mark)
        return judged(goal_type(goal), command_line, goal.timeout_seconds, done)

    async def _suite(self, goal: TestsPass, command_line: CommandLine | None, place: Place, mark: str) -> CheckResult:
        if command_line is None or is_empty(command_line):
            return _no_command(goal, command_line)
        end = await run_suite(self.commands, command_line, place.folder, goal.timeout_seconds, mark)
        result = judged_suite(goal_type(goal), command_line, goal.timeout_seconds, end)
        return await self._of_commit(result, place, command_line, mark)

    async def _of_commit(self, result: CheckResult, place: Place, command_line: CommandLine, mark: str) -> CheckResult:
        """The result of tests, unless they passed on an installed copy of the project."""
        if not result.passed or self.repository is None:
            return result
        files = Path(self.folders.files(place.folder))
        path = self.environment.get("PATH", "")
        copy = await asyncio.to_thread(untested_package, path, self.repository, files)
        copy = copy or await self._lost_package(result, place, command_line, mark)
        if not copy:
            return result
        detail = f"the tests import {copy}, not this commit: install it in verification.setup, or remove that copy"
        return msgspec.structs.replace(result, status=CheckStatus.ERROR, detail=detail)

    async def _lost_package(self, result: CheckResult, place: Place, command_line: CommandLine, mark: str) -> str:
        """A package of the base that the commit no longer has in its place, and whose tests pass without it."""
        if self.listing is None or not place.base or place.base == place.commit:
            return ""
        after = frozenset(await self.listing(place.commit))
        lost = lost_packages(await self.listing(place.base), after)
        files = Path(self.folders.files(place.folder))
        names = await asyncio.to_thread(imported_by_tests, lost, files, after) if lost else []
        limit = max(60.0, 3 * result.seconds)
        for name in names[:MOST_LOST]:
            hidden = places_of(name, after)
            if not hidden or await self._passes_without(hidden, command_line, place, limit, mark):
                return f"{name}, which this commit has lost, of another place"
        return ""

    async def _passes_without(
        self, hidden: list[str], command_line: CommandLine, place: Place, limit: float, mark: str
    ) -> bool:
        """The control: whether tests pass while these files and folders are hidden."""
        done = await self.commands.run(without(hidden, command_line), place.folder, limit, mark)
        return not done.never_ran and done.code in (0, HIDING_FAILED)

    async def _script(self, goal: CustomScript, command_line: CommandLine, place: Place, mark: str) -> CheckResult:
        """A script is judged by its exit code; one that names tests must have run one, where its output tells."""
        if is_empty(command_line):
            return _no_command(goal, command_line)
        done = await self.commands.run(command_line, place.folder, goal.timeout_seconds, mark)
        result = judged(goal_type(goal), command_line, goal.timeout_seconds, done)
        if not result.passed or not names_tests(command_line):
            return result
        end = SuiteEnd(done=done, count=await counted(done))
        if end.ran_none:
            return ran_no_test(goal_type(goal), command_line, end)
        return await self._of_commit(result, place, command_line, mark)

    async def _detected(self, goal: Goal, place: Place) -> str | None:
        from genba.connections.goals.detection import detect_in  # noqa: PLC0415  (most goals name their command)

        found = await asyncio.to_thread(detect_in, self.folders.files(place.folder))
        match goal:
            case LintPasses():
                return found.lint
            case BuildSucceeds():
                return found.build
        return found.test


def file_exists(folder: Path, path: str) -> bool:
    """Whether a file of the folder has this path, or fits it. A link that leads out of the folder leads to nothing."""
    inside = UntrustedFolder(folder)
    if inside.is_file(path) and not inside.is_within(path, _GIT):
        return True
    return _GLOB.search(path) is not None and inside.has_file_like(path, _GIT)


def _silent(result: CheckResult) -> CheckResult:
    """A script that must also print nothing."""
    if not result.passed or not result.output:
        return result
    message = f"printed something: {bounded_line(result.output.splitlines()[0])}"
    return msgspec.structs.replace(result, status=CheckStatus.FAILED, detail=message)


def _no_command(goal: Goal, command_line: CommandLine | None) -> CheckResult:
    if command_line is not None:
        return CheckResult(goal_type(goal), CheckStatus.ERROR, "the command is empty")
    kind, example = "test", "pytest -q"
    if isinstance(goal, LintPasses):
        kind, example = "lint", "ruff check ."
    elif isinstance(goal, BuildSucceeds):
        kind, example = "build", "make build"
    return CheckResult(goal_type(goal), CheckStatus.ERROR, f"no {kind} command was found; name one: command: {example}")
