"""Goals that are commands: what is a pass, what a failure, and what only says that nothing could be run."""

import os
import sys
from pathlib import Path

import pytest

from genba.connections.goals.runner import GoalEngine
from genba.connections.processes.supervisor import ProcessSupervisor
from genba.domain.goals.goal import (
    BuildSucceeds,
    CommitsExist,
    CustomScript,
    FileExists,
    Goal,
    LintPasses,
    NoSecrets,
)
from genba.domain.goals.goal import TestAdded as TestAddedGoal
from genba.domain.goals.goal import TestsPass as TestsPassGoal
from genba.domain.goals.verification import Place
from genba.domain.sessions.evidence import CheckStatus
from tests.goals.conftest import ENVIRONMENT, RememberingScanner, Write

PASSED, FAILED, ERROR = CheckStatus.PASSED, CheckStatus.FAILED, CheckStatus.ERROR


@pytest.mark.parametrize("kind", [LintPasses, BuildSucceeds, TestsPassGoal])
async def test_a_command_that_ends_with_0_passes_and_its_output_is_kept(
    engine: GoalEngine, place: Place, mark: str, kind: type[LintPasses]
) -> None:
    result = await engine.run(kind(command="echo all is well; echo a warning >&2"), place, mark)

    assert (result.status, result.output) == (PASSED, "all is well\na warning")
    assert result.seconds > 0


async def test_a_failure_tells_the_first_test_that_failed(engine: GoalEngine, place: Place, mark: str) -> None:
    script = (
        "printf '\\033[31mFAILED tests/a.py::b - assert 1 == 2\\033[0m\\nFAILED tests/c.py::d\\n2 failed\\n'; exit 1"
    )

    result = await engine.run(TestsPassGoal(command=script), place, mark)

    assert (result.status, result.detail) == (FAILED, "FAILED tests/a.py::b - assert 1 == 2 (exit code 1)")


async def test_a_failure_tells_the_last_line_that_names_an_error(engine: GoalEngine, place: Place, mark: str) -> None:
    result = await engine.run(CustomScript(script="echo ValueError: no; echo done; exit 3"), place, mark)

    assert (result.status, result.detail) == (FAILED, "ValueError: no (exit code 3)")


async def test_a_silent_failure_tells_its_exit_code(engine: GoalEngine, place: Place, mark: str) -> None:
    assert (await engine.run(CustomScript(script="exit 9"), place, mark)).detail == "exit code 9"


@pytest.mark.parametrize("command", ["no-such-linter --all", ("no-such-linter", "--all"), "./not-executable"])
async def test_a_command_that_cannot_be_run_is_an_error_that_names_it(
    engine: GoalEngine, place: Place, mark: str, write: Write, command: str | tuple[str, ...]
) -> None:
    write("not-executable", "")
    result = await engine.run(LintPasses(command=command), place, mark)

    assert result.status is ERROR
    assert (command if isinstance(command, str) else " ".join(command)) in result.detail


async def test_a_tool_that_is_not_installed_is_an_error_and_no_failure(
    engine: GoalEngine, place: Place, mark: str, write: Write
) -> None:
    write("python3", f'#!/bin/sh\nexec {sys.executable} -S "$@"\n').chmod(0o755)
    result = await engine.run(TestsPassGoal(command="./python3 -m pytest -q"), place, mark)

    assert (result.status, result.detail) == (
        ERROR,
        "`./python3 -m pytest -q` cannot be run: pytest is not installed",
    )


@pytest.mark.parametrize("command", ["", "  ", (), ("",)])
async def test_an_empty_command_is_an_error(
    engine: GoalEngine, place: Place, mark: str, command: str | tuple[str, ...]
) -> None:
    assert (await engine.run(LintPasses(command=command), place, mark)).status is ERROR


async def test_what_takes_too_long_is_a_failure_and_is_ended(engine: GoalEngine, place: Place, mark: str) -> None:
    result = await engine.run(CustomScript(script="sleep 600 & sleep 600", timeout_seconds=0.3), place, mark)

    assert (result.status, result.detail, result.timed_out) == (FAILED, "took longer than 0.3 s", True)
    assert await ProcessSupervisor().sweep(mark) == 0


async def test_the_words_of_a_list_are_read_by_no_shell(engine: GoalEngine, place: Place, mark: str) -> None:
    result = await engine.run(CustomScript(script=("printf", "%s", "$(id); `id` 'x'")), place, mark)

    assert result.output == "$(id); `id` 'x'"


async def test_a_long_output_keeps_its_head_and_its_tail(engine: GoalEngine, place: Place, mark: str) -> None:
    script = "echo the very beginning; yes filler | head -c 2000000; echo; echo the very end"

    result = await engine.run(CustomScript(script=script), place, mark)

    assert result.output.startswith("the very beginning")
    assert result.output.endswith("the very end")
    assert "characters are left out" in result.output
    assert len(result.output) < 300_000


async def test_a_script_that_must_be_silent_fails_when_it_is_not(engine: GoalEngine, place: Place, mark: str) -> None:
    silent = await engine.run(CustomScript(script="true", empty_output=True), place, mark)
    loud = await engine.run(CustomScript(script="echo left over", empty_output=True), place, mark)

    assert silent.status is PASSED
    assert (loud.status, loud.detail) == (FAILED, "printed something: left over")


async def test_python_code_is_taken_from_this_checkout_and_not_from_an_installation(
    place: Place, folder: Path, mark: str, write: Write, tmp_path: Path
) -> None:
    (tmp_path / "installed").mkdir()
    (tmp_path / "installed/thing.py").write_text("WHERE = 'installed'\n")
    write("pyproject.toml", "")
    write("src/thing.py", "WHERE = 'the checkout'\n")
    surroundings = {**ENVIRONMENT, "PYTHONPATH": str(tmp_path / "installed")}
    engine = GoalEngine(ProcessSupervisor(), surroundings, RememberingScanner())

    result = await engine.run(CustomScript(script="python3 -c 'import thing; print(thing.WHERE)'"), place, mark)

    assert result.output == "the checkout"
    assert not any("__pycache__" in names for _, names, _ in os.walk(folder))


async def test_other_projects_keep_the_python_path_as_it_is(engine: GoalEngine, place: Place, mark: str) -> None:
    assert (
        await engine.run(CustomScript(script="echo ${PYTHONPATH-none}${CI-none}"), place, mark)
    ).output == "nonenone"


@pytest.mark.parametrize(
    ("goal", "reported"),
    [
        (LintPasses(), "no lint command was found; name one: command: ruff check ."),
        (BuildSucceeds(), "no build command was found; name one: command: make build"),
        (TestsPassGoal(), "no test command was found; name one: command: pytest -q"),
        (TestAddedGoal(must_fail_on_base=True), "no test command was found; name one: command: pytest -q"),
    ],
)
async def test_without_a_command_and_without_a_sign_of_one_there_is_an_error(
    engine: GoalEngine, place: Place, mark: str, goal: Goal, reported: str
) -> None:
    result = await engine.run(goal, place, mark)

    assert (result.status, result.detail) == (ERROR, reported)


async def test_a_command_that_is_not_named_is_detected(
    engine: GoalEngine, place: Place, mark: str, write: Write
) -> None:
    write("Makefile", "lint:\n\t@echo linted\nbuild:\n\t@echo built\ntest:\n\t@echo tested\n")

    goals: tuple[Goal, ...] = (LintPasses(), BuildSucceeds(), TestsPassGoal())
    outputs = [(await engine.run(goal, place, mark)).output for goal in goals]

    assert outputs == ["linted", "built", "tested"]


@pytest.mark.parametrize(
    ("path", "there"),
    [
        ("docs/guide.md", True),
        ("docs/*.md", True),
        ("**/guide.*", True),
        ("docs", False),
        ("docs/*.txt", False),
        ("[odd].txt", True),
        ("out.txt", False),
        ("out*", False),
        ("outside/secret.txt", False),
        ("outside/*", False),
        ("../secret/secret.txt", False),
        ("../secret/*", False),
        ("loop", False),
        ("/etc/passwd", False),
        ("/etc/pass*", False),
        ("\0", False),
        ("x" * 5000, False),
        (".git/config", False),
    ],
)
async def test_a_file_is_there_only_inside_the_checkout(
    engine: GoalEngine, place: Place, mark: str, write: Write, path: str, there: bool, folder: Path, tmp_path: Path
) -> None:
    write("docs/guide.md", "")
    write("[odd].txt", "")
    write(".git/config", "")
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret/secret.txt").write_text("")
    (folder / "out.txt").symlink_to(tmp_path / "secret/secret.txt")
    (folder / "outside").symlink_to(tmp_path / "secret")
    (folder / "loop").symlink_to("loop")

    result = await engine.run(FileExists(path=path), place, mark)

    assert result.status is (PASSED if there else FAILED)
    assert there or result.detail.startswith("there is no file")


@pytest.mark.parametrize("goal", [CommitsExist(), TestAddedGoal()])
async def test_what_git_shows_is_not_run_in_a_checkout(engine: GoalEngine, place: Place, mark: str, goal: Goal) -> None:
    result = await engine.run(goal, place, mark)

    assert (result.status, result.detail) == (ERROR, "not run in a checkout")


@pytest.mark.parametrize("command", [None, "gitleaks detect", ("gitleaks", "detect"), "/usr/bin/gitleaks git ."])
async def test_the_secret_scan_cannot_be_switched_off(
    engine: GoalEngine,
    scanner: RememberingScanner,
    place: Place,
    mark: str,
    command: str | tuple[str, ...] | None,
) -> None:
    result = await engine.run(NoSecrets(command=command), place, mark)

    assert (result.name, result.status, result.detail) == ("no_secrets", PASSED, "nothing found")
    assert scanner.scanned == [(place.base, place.commit)]


@pytest.mark.parametrize("command", ["echo own scan; exit 1", "gitleaks version && echo own scan && exit 1"])
async def test_a_scanner_of_the_users_own_is_run_as_it_is(
    engine: GoalEngine, scanner: RememberingScanner, place: Place, mark: str, command: str
) -> None:
    result = await engine.run(NoSecrets(command=command), place, mark)

    assert (result.status, scanner.scanned) == (FAILED, [])
    assert "own scan" in result.output
