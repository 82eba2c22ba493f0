"""Test suites whose exit code lies: what the runner itself counted is believed."""

import sys

import pytest

from genba.connections.goals.runner import GoalEngine
from genba.domain.goals.goal import CustomScript
from genba.domain.goals.goal import TestsPass as TestsPassGoal
from genba.domain.goals.verification import Place
from genba.domain.sessions.evidence import CheckStatus
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


NO_TESTS = "VALUE = 1\n"
SKIPPED = """
import unittest


@unittest.skip("later")
class LaterTest(unittest.TestCase):
    def test_it(self):
        pass
"""
MAKEFILE = "test:\n\tpython3 -m unittest discover\n"


@pytest.mark.parametrize(
    ("command", "text"),
    [
        (PYTEST, NO_TESTS),
        (PYTEST, SKIPPED),
        (f"{PYTEST} -qq", SKIPPED),
        (f"{PYTEST} -p no:junitxml", SKIPPED),
        (f"{PYTEST} --collect-only", RED.replace("from code_ import answer", "answer = lambda: 42")),
        (f"{PYTEST} -k nosuchtest", RED.replace("from code_ import answer", "answer = lambda: 42")),
        (f"{PYTEST} || test $? = 5", NO_TESTS),
        (UNITTEST, NO_TESTS),
        (UNITTEST, SKIPPED),
        ("python3 -m unittest discover", "def test_a_function():\n    assert False\n"),
        ("make test", NO_TESTS),
    ],
)
async def test_a_command_that_ran_no_test_is_an_error_with_the_next_step(
    engine: GoalEngine, place: Place, mark: str, write: Write, command: str, text: str
) -> None:
    write("test_it.py", text)
    write("Makefile", MAKEFILE)
    write("pyproject.toml", "")

    result = await engine.run(TestsPassGoal(command=command), place, mark)

    assert result.status is CheckStatus.ERROR, result.output
    assert "ran no test" in result.detail
    assert "tests_pass: COMMAND" in result.detail
    assert "verification.setup" in result.detail


@pytest.mark.parametrize("script", ["python3 -m unittest discover", "make test", ("python3", "-m", "unittest")])
async def test_a_script_that_names_tests_and_ran_none_is_an_error(
    engine: GoalEngine, place: Place, mark: str, write: Write, script: str | tuple[str, ...]
) -> None:
    write("test_it.py", NO_TESTS)
    write("Makefile", MAKEFILE)

    result = await engine.run(CustomScript(script=script), place, mark)

    assert (result.status, result.ran_no_test) == (CheckStatus.ERROR, True)


async def test_a_package_that_cannot_be_imported_has_failed(
    engine: GoalEngine, place: Place, mark: str, write: Write
) -> None:
    write("test_it.py", RED)
    write("pyproject.toml", "")
    for command in (PYTEST, "python3 -m unittest discover", f"{PYTEST} -p no:junitxml"):
        result = await engine.run(TestsPassGoal(command=command), place, mark)
        assert (command, result.status) == (command, CheckStatus.FAILED), result.output


async def test_a_pass_says_how_many_tests_ran_or_that_only_the_exit_code_is_known(
    engine: GoalEngine, place: Place, mark: str, write: Write
) -> None:
    write("code_.py", RIGHT)
    write("test_it.py", RED)
    write("Makefile", MAKEFILE)
    write("pyproject.toml", "")
    for command in (PYTEST, UNITTEST, "make test"):
        result = await engine.run(TestsPassGoal(command=command), place, mark)
        assert (result.status, result.detail) == (CheckStatus.PASSED, "1 test passed")
    silent = await engine.run(TestsPassGoal(command="true"), place, mark)
    assert silent.status is CheckStatus.PASSED
    assert silent.detail.startswith("exit code only")


async def test_a_printed_count_does_not_turn_a_failure_into_a_pass(
    engine: GoalEngine, place: Place, mark: str, write: Write
) -> None:
    write("run.sh", "echo '5 passed in 0.01s'; exit 1\n")

    result = await engine.run(TestsPassGoal(command="sh run.sh"), place, mark)

    assert result.status is CheckStatus.FAILED
