"""Running test suites. Of a runner that is known, its own count is believed, and not the exit code alone.

Code that is tested runs in the process of the runner, and can end it with 0 before a test has failed. A command that
ran no test has shown nothing: that is an error, neither a pass nor a fail.
"""

import asyncio
import re

import msgspec

from genba.connections.goals.commands import GoalCommands, Report, judged, output_of, shown
from genba.connections.goals.test_selection import runner_of
from genba.domain.goals.detection import plain_words
from genba.domain.goals.goal import CommandLine
from genba.domain.goals.test_counts import SuiteCount, count_tests
from genba.domain.processes import Ending, Exit
from genba.domain.sessions.evidence import CheckResult, CheckStatus

_HEAD = 4096
_USAGE, _NOTHING_COLLECTED = 4, 5
"""The exit codes of pytest for an option that it does not know, and for no test."""
_ALL_WELL = re.compile(r"^Ran \d+ tests? in .*\s+OK\b", re.MULTILINE)
_BY_EXIT_CODE = "exit code only: the output has no count of tests"
_NEXT = (
    "name the command that runs the tests: `- tests_pass: COMMAND` under dod in .genba/config.yaml; "
    "what they need is installed by verification.setup"
)


class SuiteEnd(msgspec.Struct, frozen=True, kw_only=True):
    """How a command that runs tests ended."""

    done: Exit
    doubt: str = ""
    """Why a 0 is not believed, or nothing."""
    count: SuiteCount | None = None
    """The tests that ran; None where the runner is not known."""

    @property
    def ran_none(self) -> bool:
        """Whether it ran to its end without a test. What failed for another reason has failed."""
        if self.count is None or self.done.ending is not Ending.EXITED or self.done.violations:
            return False
        if self.done.code == 0:
            return self.count.passed == 0
        return self.count.ran_none and self.count.says_none


async def run_suite(
    commands: GoalCommands, command_line: CommandLine, folder: str, limit: float, mark: str, more: tuple[str, ...] = ()
) -> SuiteEnd:
    """Run tests; `more` are words behind the command."""
    plain = plain_words(command_line) or ()
    match runner_of(plain) if plain else "":
        case "pytest":
            return await _by_pytest(commands, plain, folder, limit, mark, more)
        case "unittest":
            done = await commands.run(plain, folder, limit, mark, more)
            doubt = "" if _ALL_WELL.search(done.stderr) else "unittest did not come to its end"
        case _:
            done, doubt = await commands.run(command_line, folder, limit, mark, more), ""
    return SuiteEnd(done=done, doubt=_doubt_of(done, doubt), count=await counted(done))


async def counted(done: Exit) -> SuiteCount | None:
    """The tests that a command ran, by its output; None where no known summary is found."""
    return await asyncio.to_thread(count_tests, done.stdout, done.stderr)


def judged_suite(name: str, command_line: CommandLine, limit: float, end: SuiteEnd) -> CheckResult:
    """The result of a command that must end with 0, and have run tests."""
    result = judged(name, command_line, limit, end.done)
    if end.doubt:
        return msgspec.structs.replace(result, status=CheckStatus.FAILED, detail=end.doubt)
    if result.status is CheckStatus.ERROR:
        return result
    if end.ran_none:
        return ran_no_test(name, command_line, end)
    if result.passed:
        return msgspec.structs.replace(result, detail=str(end.count) if end.count is not None else _BY_EXIT_CODE)
    return result


def ran_no_test(name: str, command_line: CommandLine, end: SuiteEnd) -> CheckResult:
    """The result of a command that ran no test, and what to do about it."""
    skipped, failed = (end.count.skipped, end.count.failed) if end.count is not None else (0, 0)
    why = f" ({skipped} skipped)" if skipped else ""
    what = f"ran no test{why}" if not failed else f"ended with 0, but no test passed, and {failed} failed"
    detail = f"`{shown(command_line)}` {what}: {_NEXT}"
    return CheckResult(name, CheckStatus.ERROR, detail, output_of(end.done), end.done.seconds, ran_no_test=not failed)


async def _by_pytest(
    commands: GoalCommands, command_line: tuple[str, ...], folder: str, limit: float, mark: str, more: tuple[str, ...]
) -> SuiteEnd:
    with commands.report(folder, "report.xml") as report:
        done = await commands.run(command_line, folder, limit, mark, (f"--junitxml={report.path}", *more))
        if done.code == _USAGE and "--junitxml" in done.stderr:  # a project may switch that plugin off
            done = await commands.run(command_line, folder, limit, mark, more)
            return SuiteEnd(done=done, count=await counted(done))
        doubt, count = await asyncio.to_thread(_reported, report, done)
        return SuiteEnd(done=done, doubt=_doubt_of(done, doubt), count=count or await counted(done))


def _reported(report: Report, done: Exit) -> tuple[str, SuiteCount | None]:
    """What pytest wrote down at its very end. Names of tests, which are hostile input, come after the counts."""
    suite = re.search(r"<testsuite [^>]*>", report.start(_HEAD) or "")
    if suite is None:
        return "pytest did not come to its end", None
    numbers = {name: int(number) for name, number in re.findall(r' (\w+)="(\d{1,9})"', suite[0])}
    wrong = {name: numbers.get(name, 0) for name in ("errors", "failures")}
    failed, skipped = sum(wrong.values()), numbers.get("skipped", 0)
    lines = [f"{number} {name}" for name, number in wrong.items() if number]
    count = SuiteCount(
        passed=max(0, numbers.get("tests", 0) - failed - skipped),
        failed=failed,
        skipped=skipped,
        says_none=done.code == _NOTHING_COLLECTED,
    )
    return f"pytest counted {', '.join(lines)}" if lines else "", count if "tests" in numbers else None


def _doubt_of(done: Exit, doubt: str) -> str:
    green = done.ending is Ending.EXITED and done.code == 0
    return f"ended with 0, but {doubt}" if green and doubt else ""
