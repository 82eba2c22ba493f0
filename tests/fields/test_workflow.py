"""workflow of .genba/config.yaml: how agents are led that ask for their next action."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from genba.blackboard.tasks.board import Blackboard
from genba.coordination.workflow.answers import Caller
from genba.definitions.project.project import load_project
from genba.domain.errors import ConfigurationError
from genba.domain.workflow.actions import ErrorCode
from tests.workflow.context import House

Build = Callable[[str], House]


@pytest.fixture
async def built(tmp_path: Path) -> AsyncIterator[Build]:
    """A house whose settings are written and read."""
    board = Blackboard.open(str(tmp_path / "board.db"), "a project")
    houses: list[House] = []

    def build(text: str) -> House:
        (tmp_path / ".genba").mkdir(exist_ok=True)
        (tmp_path / ".genba/config.yaml").write_text(f"workflow: {text}\n", encoding="utf-8")
        houses.append(House(lambda: board, load_project(tmp_path).fleet))
        return houses[-1]

    yield build
    for context in houses:
        await context.close()
    board.close()


async def waiting(context: House) -> Caller:
    """A manager that has nothing to do but to wait."""
    caller = await context.fetched(await context.manager(context.task()))
    (part,) = await context.planned(caller, "Cut it")
    await context.service.assign_task(caller, part, "writer")
    context.begin(part)
    return caller


async def asked(context: House) -> str:
    return (await context.next(await context.spawn(context.task()))).instruction


async def test_instructions_are_written_in_the_language_of_the_project(built: Build) -> None:
    english, japanese = [await asked(built(f"{{language: {word}}}")) for word in ("en", "ja")]
    assert not any("ぁ" <= letter <= "ん" for letter in english)
    assert any("ぁ" <= letter <= "ん" for letter in japanese)


@pytest.mark.parametrize("seconds", [0, 5])
async def test_a_call_that_waits_is_held_so_long(built: Build, seconds: int) -> None:
    context = built(f"{{wait_seconds: {seconds}, suspend_seconds: 1000}}")
    caller = await waiting(context)
    context.times.slept.clear()
    assert await context.told(caller) == "wait"
    assert sum(context.times.slept) == seconds


def test_a_call_is_not_held_longer_than_clients_wait(built: Build) -> None:
    with pytest.raises(ConfigurationError):
        built("{wait_seconds: 56}")


async def test_a_manager_that_has_waited_so_long_is_sent_home(built: Build) -> None:
    context = built("{wait_seconds: 10, suspend_seconds: 15}")
    caller = await waiting(context)
    assert [await context.told(caller) for _ in range(2)] == ["wait", "exit suspended"]


@pytest.mark.parametrize(("seconds", "left"), [(100, 1), (1000, 0)])
async def test_an_external_agent_that_is_silent_for_so_long_has_left_its_task(
    built: Build, seconds: int, left: int
) -> None:
    context = built(f"{{lease_seconds: {seconds}}}")
    context.task()
    await context.fetched(await context.come(*await context.external_agent()))
    context.times.pass_(500)
    assert await context.service.sweep() == left


@pytest.mark.parametrize("hours", [0.5, 2.0])
async def test_a_token_is_good_for_so_long(built: Build, hours: float) -> None:
    context = built(f"{{token_hours: {hours}}}")
    caller = await context.spawn(context.task())
    context.times.pass_(hours * 3600 - 1)
    assert await context.told(caller) == "get_task"
    context.times.pass_(2)
    assert await context.code(context.next(caller)) is ErrorCode.NOT_AUTHENTICATED


@pytest.mark.parametrize("calls", [3, 9])
async def test_a_session_makes_so_many_calls_in_a_minute(built: Build, calls: int) -> None:
    context = built(f"{{calls_per_minute: {calls}}}")
    caller = await context.spawn(context.task())
    for _ in range(calls):
        await context.next(caller)
    assert await context.code(context.next(caller)) is ErrorCode.LIMIT


@pytest.mark.parametrize("times", [2, 5])
async def test_an_agent_asks_so_often_while_nothing_changes(built: Build, times: int) -> None:
    context = built(f"{{max_repeats: {times}}}")
    caller = await context.spawn(context.task())
    assert [await context.told(caller) for _ in range(times + 1)] == ["get_task"] * times + ["exit no_progress"]


@pytest.mark.parametrize("times", [1, 3])
async def test_so_many_claims_of_a_session_may_be_red(built: Build, times: int) -> None:
    context = built(f"{{max_reworks: {times}}}")
    task = context.task()
    caller = await context.fetched(await context.spawn(task))
    context.desk.script[task] = [False] * times
    lines = []
    for _ in range(times):
        assert not (await context.service.report_completed(caller)).verified
        lines.append(await context.told(caller))
    assert lines == ["rework"] * (times - 1) + ["exit no_progress"]
