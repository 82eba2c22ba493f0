"""Running test suites. Of a runner that is known, its own count is believed, and not the exit code alone.

Code that is tested runs in the process of the runner, and can end it with 0 before a test has failed.
"""

import asyncio
import re
import tempfile
from pathlib import Path

from genba.connections.goals.commands import GoalCommands
from genba.connections.goals.narrowing import runner_of
from genba.domain.detection import plain_words
from genba.domain.goals import Words
from genba.domain.processes import Ending, Exit

_HEAD = 4096
_USAGE = 4
"""The exit code of pytest for an option that it does not know."""
_ALL_WELL = re.compile(r"^Ran \d+ tests? in .*\s+OK\b", re.MULTILINE)


async def run_suite(
    commands: GoalCommands, words: Words, folder: str, limit: float, mark: str, more: tuple[str, ...] = ()
) -> tuple[Exit, str]:
    """Run tests; `more` are words behind the command. With the end comes why a 0 is not believed, or nothing."""
    plain = plain_words(words) or ()
    match runner_of(plain) if plain else "":
        case "pytest":
            return await _by_pytest(commands, plain, folder, limit, mark, more)
        case "unittest":
            done = await commands.run(plain, folder, limit, mark, more)
            doubt = "" if _ALL_WELL.search(done.stderr) else "unittest did not come to its end"
        case _:
            done, doubt = await commands.run(words, folder, limit, mark, more), ""
    return done, _told(done, doubt)


async def _by_pytest(
    commands: GoalCommands, words: tuple[str, ...], folder: str, limit: float, mark: str, more: tuple[str, ...]
) -> tuple[Exit, str]:
    # In the checkout: behind walls nothing else is seen from both sides. Nobody looks for tests behind a dot.
    with tempfile.TemporaryDirectory(prefix=".genba-", dir=folder) as own:
        report = Path(own) / "report.xml"
        done = await commands.run(words, folder, limit, mark, (f"--junitxml={report}", *more))
        if done.code == _USAGE and "--junitxml" in done.stderr:  # a project may switch that plugin off
            return await commands.run(words, folder, limit, mark, more), ""
        return done, _told(done, await asyncio.to_thread(_counted, report))


def _counted(report: Path) -> str:
    """What pytest wrote down at its very end. Names of tests, which are hostile input, come after the counts."""
    try:
        with report.open(encoding="utf-8", errors="replace") as file:
            head = file.read(_HEAD)
    except OSError:
        return "pytest did not come to its end"
    suite = re.search(r"<testsuite [^>]*>", head)
    counts = dict(re.findall(r' (errors|failures)="(\d+)"', suite[0])) if suite else {}
    told = [f"{count} {name}" for name, count in counts.items() if count != "0"]
    return f"pytest counted {', '.join(told)}" if told else ""


def _told(done: Exit, doubt: str) -> str:
    green = done.ending is Ending.EXITED and done.code == 0
    return f"ended with 0, but {doubt}" if green and doubt else ""
