"""Test suites whose exit code lies: what the runner itself counted is believed."""

import sys

import pytest

from genba.connections.goals.runner import GoalEngine
from genba.domain.evidence import CheckStatus
from genba.domain.goals import TestsPass as TestsPassGoal
from genba.domain.verification import Place
from tests.goals.conftest import Write

PYTEST = "python3 -m pytest -q -p no:cacheprovider"
UNITTEST = "python3 -m unittest -q"
RED = """
import unittest

from code_ import answer


class AnswerTest(unittest.TestCase):
    def test_it(self):
        assert answer() == 42
"""
ENDS_ON_IMPORT = "import os\n\nos._exit(0)\n"
ENDS_IN_A_CALL = "import os\n\n\ndef answer():\n    os._exit(0)\n"
ENDS_AT_THE_END = "import atexit\nimport os\n\natexit.register(os._exit, 0)\n\n\ndef answer():\n    return 41\n"
RIGHT = "def answer():\n    return 42\n"


@pytest.mark.parametrize("command", [PYTEST, UNITTEST, tuple(PYTEST.split()), "pytest -q -p no:cacheprovider"])
@pytest.mark.parametrize("code", [ENDS_ON_IMPORT, ENDS_IN_A_CALL, ENDS_AT_THE_END])
async def test_a_runner_that_was_ended_with_0_has_not_passed(
    engine: GoalEngine, place: Place, mark: str, write: Write, command: str, code: str
) -> None:
    write("code_.py", code)
    write("test_it.py", RED)
    write("pyproject.toml", "")

    result = await engine.run(TestsPassGoal(command=command), place, mark)

    assert result.status is CheckStatus.FAILED
    assert "ended with 0, but" in result.detail


@pytest.mark.parametrize(
    "command",
    [
        PYTEST,
        UNITTEST,
        f"{PYTEST} -qq -o console_output_style=classic",
        f"{PYTEST} -p no:junitxml",
        f"{PYTEST} test_it.py",
    ],
)
async def test_a_suite_that_passes_is_believed_however_little_it_says(
    engine: GoalEngine, place: Place, mark: str, write: Write, command: str
) -> None:
    write("code_.py", RIGHT)
    write("test_it.py", RED)
    write("pyproject.toml", "")

    result = await engine.run(TestsPassGoal(command=command), place, mark)

    assert result.status is CheckStatus.PASSED, result.output


async def test_a_runner_that_is_not_known_is_taken_at_its_exit_code(
    engine: GoalEngine, place: Place, mark: str
) -> None:
    result = await engine.run(TestsPassGoal(command=(sys.executable, "-c", "print('fine')")), place, mark)

    assert result.status is CheckStatus.PASSED
