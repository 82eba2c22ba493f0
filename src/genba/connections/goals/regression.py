"""New tests that must be red on the base and green on the branch: a test that was never red proves nothing."""

from genba.connections.goals.commands import GoalCommands, complaint, not_run, output_of, shown, too_long
from genba.connections.goals.suites import SuiteEnd, counted, run_suite
from genba.connections.goals.test_selection import SuiteRun, narrow
from genba.domain.goals.goal import CommandLine, TestAdded
from genba.domain.goals.verification import Place
from genba.domain.processes import Ending, Exit
from genba.domain.sessions.evidence import CheckResult, CheckStatus

_NAME = "test_added"
_PYTEST_BROKEN = (3, 4)
"""An internal error, and a command line that pytest does not take."""


async def fails_on_base(
    commands: GoalCommands, goal: TestAdded, command: CommandLine, place: Place, mark: str
) -> CheckResult:
    """First the base, then the branch: red there and green here."""
    if not place.base_folder:
        return CheckResult(_NAME, CheckStatus.ERROR, "there is no checkout of the base to run the new tests on")
    if not place.files:
        return CheckResult(_NAME, CheckStatus.FAILED, "the branch adds no test")
    suite, limit = narrow(command, place.files, commands.folders.files(place.folder)), goal.timeout_seconds
    on_base = await commands.run(suite.command_line, place.base_folder, limit, mark, suite.more)
    verdict = _on_base(suite, place.files, SuiteEnd(done=on_base, count=await counted(on_base)))
    if verdict is not None:
        status, detail = verdict
        return CheckResult(_NAME, status, detail, output_of(on_base), on_base.seconds)
    end = await run_suite(commands, suite.command_line, place.folder, limit, mark, suite.more)
    here = end.done
    status, detail = (CheckStatus.FAILED, end.doubt) if end.doubt else _on_branch(suite, end, limit)
    output = f"on the base:\n{output_of(on_base)}\n\non the branch:\n{output_of(here)}"
    timed_out = here.ending is not Ending.EXITED and status is CheckStatus.FAILED
    return CheckResult(_NAME, status, detail, output, on_base.seconds + here.seconds, timed_out=timed_out)


def _on_base(suite: SuiteRun, files: tuple[str, ...], end: SuiteEnd) -> tuple[CheckStatus, str] | None:
    """Why the run on the base decides already; None when it is red, as it should be. To hang there is red as well."""
    done = end.done
    if (broken := _broken(suite, done)) is not None:
        return CheckStatus.ERROR, f"on the base: {broken}"
    if done.violations:
        return CheckStatus.ERROR, f"on the base: {'; '.join(each.detail for each in done.violations)}"
    if end.ran_none:
        return CheckStatus.FAILED, f"{shown(files[:1])} adds no test that runs"
    if done.ending is Ending.EXITED and done.code == 0:
        others = f" and {len(files) - 1} more pass" if len(files) > 1 else " passes"
        return CheckStatus.FAILED, f"{shown(files[:1])}{others} on the base as well"
    return None


def _on_branch(suite: SuiteRun, end: SuiteEnd, limit: float) -> tuple[CheckStatus, str]:
    done = end.done
    if (broken := _broken(suite, done)) is not None:
        return CheckStatus.ERROR, broken
    if done.violations:
        return CheckStatus.FAILED, "; ".join(each.detail for each in done.violations)
    if done.ending is not Ending.EXITED:
        return CheckStatus.FAILED, too_long(limit)
    if end.ran_none:
        return CheckStatus.FAILED, "adds no test that runs"
    if done.code != 0:
        return CheckStatus.FAILED, complaint(done)
    return CheckStatus.PASSED, "red on the base, green on the branch"


def _broken(suite: SuiteRun, done: Exit) -> str | None:
    """Why a run says nothing at all about the tests."""
    if (reason := not_run(suite.command_line, done)) is not None:
        return reason
    if suite.pytest and done.ending is Ending.EXITED and done.code in _PYTEST_BROKEN:
        return f"pytest did not run the tests: {complaint(done)}"
    return None
