"""New tests must be red on the base and green on the branch. The names of their files are hostile input."""

import os
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from genba.connections.goals.runner import GoalEngine
from genba.connections.goals.test_selection import narrow
from genba.domain.goals.goal import CommandLine
from genba.domain.goals.goal import TestAdded as TestAddedGoal
from genba.domain.goals.verification import Place
from genba.domain.sessions.evidence import CheckStatus

PASSED, FAILED, ERROR = CheckStatus.PASSED, CheckStatus.FAILED, CheckStatus.ERROR
GOAL = TestAddedGoal(must_fail_on_base=True, command="python3 -m pytest -q -p no:cacheprovider")

Branch = Callable[..., Place]


@pytest.fixture
def branch(place: Place, folder: Path, tmp_path: Path) -> Branch:
    """A base where `adding.add` subtracts, a branch where it adds, and a test of the branch in both."""

    def make(test: str, *files: str, fixed: str = "a + b") -> Place:
        base, files = tmp_path / "base", files or ("tests/test_adding.py",)
        for where, body in ((base, "a - b"), (folder, fixed)):
            for file in files:
                (where / file).parent.mkdir(parents=True, exist_ok=True)
                (where / file).write_text(test)
            (where / "pyproject.toml").write_text("[tool.pytest.ini_options]\n")
            (where / "adding.py").write_text(f"def add(a, b):\n    return {body}\n")
        return msgspec.structs.replace(place, base_folder=str(base), files=files)

    return make


TEST = "from adding import add\n\n\ndef test_it_adds():\n    assert add(2, 2) == 4\n"


async def test_red_on_the_base_and_green_on_the_branch_passes(engine: GoalEngine, branch: Branch, mark: str) -> None:
    result = await engine.run(GOAL, branch(TEST), mark)

    assert (result.name, result.status) == ("test_added", PASSED)
    assert "1 failed" in result.output
    assert "1 passed" in result.output


async def test_the_detected_command_is_taken_where_none_is_named(engine: GoalEngine, branch: Branch, mark: str) -> None:
    assert (await engine.run(TestAddedGoal(must_fail_on_base=True), branch(TEST), mark)).status is PASSED


async def test_a_test_that_passes_on_the_base_as_well_proves_nothing(
    engine: GoalEngine, branch: Branch, mark: str
) -> None:
    result = await engine.run(GOAL, branch("def test_nothing():\n    assert True\n"), mark)

    assert (result.status, result.detail) == (FAILED, "tests/test_adding.py passes on the base as well")


async def test_a_test_that_is_red_on_the_branch_fails_with_its_telling_line(
    engine: GoalEngine, branch: Branch, mark: str
) -> None:
    result = await engine.run(GOAL, branch(TEST, fixed="a * b + 1"), mark)

    assert result.status is FAILED
    assert result.detail.startswith("FAILED tests/test_adding.py::test_it_adds")


async def test_a_test_that_cannot_be_imported_on_the_base_is_red_there(
    engine: GoalEngine, branch: Branch, mark: str
) -> None:
    place = branch("from adding import extra\n\n\ndef test_extra():\n    assert extra\n", fixed="1\n\n\nextra = 1")

    assert (await engine.run(GOAL, place, mark)).status is PASSED


@pytest.mark.parametrize(
    "test",
    [
        "x = 1\n",
        "import pytest\n\n\n@pytest.mark.skip\ndef test_it():\n    assert False\n",
        "import pytest, adding\n\n\ndef test_it():\n    assert adding.add(2, 2) == 4\n    pytest.skip()\n",
        "import pytest, adding\n\n\ndef test_it():\n    assert adding.add(2, 2) == 4\n    pytest.xfail()\n",
    ],
    ids=["no test at all", "skipped everywhere", "skipped on the branch", "expected to fail on the branch"],
)
async def test_a_file_without_a_test_that_runs_is_no_proof(
    engine: GoalEngine, branch: Branch, mark: str, test: str
) -> None:
    assert (await engine.run(GOAL, branch(test), mark)).status is FAILED


async def test_only_the_new_files_are_run(engine: GoalEngine, branch: Branch, mark: str, folder: Path) -> None:
    place = branch(TEST)
    (folder / "tests/test_other.py").write_text("def test_red():\n    assert False\n")
    goal = TestAddedGoal(must_fail_on_base=True, command="pytest -q -p no:cacheprovider tests")

    assert (await engine.run(goal, place, mark)).status is PASSED


HOSTILE = (
    "tests/test_$(touch pwned).py",
    "tests/test_`touch pwned`.py",
    "tests/test_a; touch pwned.py",
    "tests/test_'; touch pwned; '.py",
    'tests/test_"; touch pwned; ".py',
    "--co/test_option.py",
    "@test_file.py",
    "tests/test_ü with spaces.py",
)


@pytest.mark.parametrize(
    "command",
    [
        "pytest -q -p no:cacheprovider",
        "pytest -q -p no:cacheprovider {files}",
        'pytest -q -p no:cacheprovider "{files}"',
        ("pytest", "-q", "-p", "no:cacheprovider", "{files}"),
    ],
    ids=["appended", "placed", "placed in quotes", "placed in a list"],
)
async def test_the_name_of_a_test_file_is_never_run(
    engine: GoalEngine, branch: Branch, mark: str, command: CommandLine, tmp_path: Path
) -> None:
    result = await engine.run(TestAddedGoal(must_fail_on_base=True, command=command), branch(TEST, *HOSTILE), mark)

    assert not any(name.startswith("pwned") for _, _, names in os.walk(tmp_path) for name in names)
    assert (isinstance(command, str) and '"' in command) or result.status is PASSED, result.detail


async def test_a_command_that_pytest_does_not_take_is_an_error(engine: GoalEngine, branch: Branch, mark: str) -> None:
    goal = TestAddedGoal(must_fail_on_base=True, command="pytest --no-such-option")

    assert (await engine.run(goal, branch(TEST), mark)).status is ERROR


async def test_a_command_that_cannot_be_run_is_an_error(engine: GoalEngine, branch: Branch, mark: str) -> None:
    goal = TestAddedGoal(must_fail_on_base=True, command="no-such-runner")
    result = await engine.run(goal, branch(TEST), mark)

    assert result.status is ERROR
    assert "no-such-runner" in result.detail


async def test_a_suite_that_cannot_be_narrowed_is_run_whole(engine: GoalEngine, branch: Branch, mark: str) -> None:
    goal = TestAddedGoal(must_fail_on_base=True, command="grep -q 'a + b' adding.py || exit 1")

    assert (await engine.run(goal, branch(TEST), mark)).status is PASSED


async def test_a_test_that_hangs_on_the_base_is_red_there(engine: GoalEngine, branch: Branch, mark: str) -> None:
    goal = TestAddedGoal(must_fail_on_base=True, command="grep -q 'a + b' adding.py || sleep 600", timeout_seconds=10)

    assert (await engine.run(goal, branch(TEST), mark)).status is PASSED


async def test_a_test_that_hangs_on_the_branch_is_a_failure(engine: GoalEngine, branch: Branch, mark: str) -> None:
    goal = TestAddedGoal(
        must_fail_on_base=True, command="grep -q 'a - b' adding.py && exit 1; sleep 600", timeout_seconds=2
    )
    result = await engine.run(goal, branch(TEST), mark)

    assert (result.status, result.timed_out) == (FAILED, True)


async def test_without_a_checkout_of_the_base_nothing_can_be_proved(
    engine: GoalEngine, branch: Branch, mark: str
) -> None:
    place = msgspec.structs.replace(branch(TEST), base_folder="")

    assert (await engine.run(GOAL, place, mark)).status is ERROR


async def test_without_a_test_file_there_is_no_test(engine: GoalEngine, branch: Branch, mark: str) -> None:
    result = await engine.run(GOAL, msgspec.structs.replace(branch(TEST), files=()), mark)

    assert (result.status, result.detail) == (FAILED, "the branch adds no test")


@pytest.mark.parametrize(
    ("command", "words", "more"),
    [
        ("python3.12 -m pytest -x", ("python3.12", "-m", "pytest", "-x"), ("a.py", "./-b.py")),
        (".venv/bin/pytest -k tests tests", (".venv/bin/pytest", "-k", "tests"), ("a.py", "./-b.py")),
        ("uv run pytest tests::x", ("uv", "run", "pytest"), ("a.py", "./-b.py")),
        ("npx jest --ci", ("npx", "jest", "--ci"), ("--runTestsByPath", "a.py", "./-b.py")),
        ("pnpm exec vitest run", ("pnpm", "exec", "vitest", "run"), ("a.py", "./-b.py")),
    ],
)
def test_known_runners_get_the_files(folder: Path, command: str, words: tuple[str, ...], more: tuple[str, ...]) -> None:
    (folder / "tests").mkdir()
    run = narrow(command, ("a.py", "-b.py"), folder)

    assert (run.command_line, run.more, run.narrowed) == (words, more, True)


@pytest.mark.parametrize("command", ["make test", "pytest -q && true", "npm test", "cd x; pytest", "python3 run.py"])
def test_other_commands_stay_as_they_are(folder: Path, command: str) -> None:
    run = narrow(command, ("a.py",), folder)

    assert (run.command_line, run.more, run.narrowed) == (command, (), False)


def test_a_word_around_the_files_is_repeated_for_each(folder: Path) -> None:
    assert narrow(("run", "--file={files}"), ("a", "b"), folder).command_line == ("run", "--file=a", "--file=b")
