"""Judging an answer by a JSONPath in a process of its own.

Both the path and the answer may be hostile: an expression in a filter, or a descent into a descent, can take for ever,
and nothing inside a process can stop that. A process can be ended.
"""

import sys
from pathlib import Path

import msgspec

from genba.connections.goals.commands import bounded_line, error_line, too_long
from genba.connections.goals.contents import Unusable, expectation_of
from genba.domain.decoding import reader
from genba.domain.goals.goal import ResponseContains
from genba.domain.ports import Processes
from genba.domain.processes import Command, Ending

_PACKAGES = Path(__file__).resolve().parents[3]


class _Asked(msgspec.Struct, frozen=True):
    goal: ResponseContains
    text: str


async def judged_by_path(processes: Processes, goal: ResponseContains, text: str, mark: str) -> tuple[bool, str]:
    """Whether an answer has what the goal wants at its path, and what it has. Too long is a TimeoutError."""
    encodable = text.encode("utf-8", "replace").decode()
    done = await processes.run(
        Command(
            argv=(sys.executable, "-P", "-s", "-X", "utf8", "-m", __name__),
            workdir="/",
            environment={"PYTHONPATH": str(_PACKAGES)},
            stdin=msgspec.json.encode(_Asked(goal, encodable)).decode(),
            timeout_seconds=goal.timeout_seconds,
            idle_seconds=goal.timeout_seconds,
            mark=mark,
        ),
        lambda _stream, _line: None,
    )
    if done.ending in (Ending.TIMED_OUT, Ending.WENT_SILENT):
        raise TimeoutError(f"to look for {bounded_line(goal.json_path or '$')} {too_long(goal.timeout_seconds)}")
    try:
        return reader(tuple[bool, str]).decode(done.stdout)
    except (ValueError, RecursionError) as error:
        message = error_line(done.stderr) or f"exit code {done.code}"
        raise Unusable(f"the answer could not be judged by its JSONPath: {message}") from error


def _main() -> None:
    asked = reader(_Asked).decode(sys.stdin.buffer.read())
    found = expectation_of(asked.goal).judge_by_path(asked.text)
    sys.stdout.buffer.write(msgspec.json.encode(found))


if __name__ == "__main__":
    _main()
