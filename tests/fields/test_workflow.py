"""workflow of .genba/config.yaml: how agents are led that ask for their next action."""

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from genba.blackboard.tasks.board import Blackboard
from genba.coordination.workflow.answers import Caller
from genba.definitions.project.project import load_project
from genba.domain.errors import ConfigurationError
from genba.domain.workflow.actions import ErrorCode
from tests.workflow.house import House

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
    for house in houses:
        await house.close()
    board.close()


async def waiting(house: House) -> Caller:
    """A manager that has nothing to do but to wait."""
    caller = await house.fetched(await house.manager(house.task()))
    (part,) = await house.planned(caller, "Cut it")
    await house.service.assign_task(caller, part, "writer")
    house.begin(part)
    return caller


async def asked(house: House) -> str:
    return (await house.next(await house.spawn(house.task()))).instruction


async def test_instructions_are_written_in_the_language_of_the_project(built: Build) -> None:
    english, japanese = [await asked(built(f"{{language: {word}}}")) for word in ("en", "ja")]
    assert not any("ぁ" <= letter <= "ん" for letter in english)
    assert any("ぁ" <= letter <= "ん" for letter in japanese)


@pytest.mark.parametrize("seconds", [0, 5])
async def test_a_call_that_waits_is_held_so_long(built: Build, seconds: int) -> None:
    house = built(f"{{wait_seconds: {seconds}, park_seconds: 1000}}")
    caller = await waiting(house)
    house.times.slept.clear()
    assert await house.told(caller) == "wait"
    assert sum(house.times.slept) == seconds


def test_a_call_is_not_held_longer_than_clients_wait(built: Build) -> None:
    with pytest.raises(ConfigurationError):
        built("{wait_seconds: 56}")


async def test_a_manager_that_has_waited_so_long_is_sent_home(built: Build) -> None:
    house = built("{wait_seconds: 10, park_seconds: 15}")
    caller = await waiting(house)
    assert [await house.told(caller) for _ in range(2)] == ["wait", "exit parked"]


@pytest.mark.parametrize(("seconds", "left"), [(100, 1), (1000, 0)])
async def test_a_guest_that_is_silent_for_so_long_has_left_its_task(built: Build, seconds: int, left: int) -> None:
    house = built(f"{{lease_seconds: {seconds}}}")
    house.task()
    await house.fetched(await house.come(*await house.guest()))
    house.times.pass_(500)
    assert await house.service.sweep() == left


@pytest.mark.parametrize("hours", [0.5, 2.0])
async def test_a_token_is_good_for_so_long(built: Build, hours: float) -> None:
    house = built(f"{{token_hours: {hours}}}")
    caller = await house.spawn(house.task())
    house.times.pass_(hours * 3600 - 1)
    assert await house.told(caller) == "get_task"
    house.times.pass_(2)
    assert await house.code(house.next(caller)) is ErrorCode.NOT_AUTHENTICATED


@pytest.mark.parametrize("calls", [3, 9])
async def test_a_session_makes_so_many_calls_in_a_minute(built: Build, calls: int) -> None:
    house = built(f"{{calls_per_minute: {calls}}}")
    caller = await house.spawn(house.task())
    for _ in range(calls):
        await house.next(caller)
    assert await house.code(house.next(caller)) is ErrorCode.LIMIT


@pytest.mark.parametrize("times", [2, 5])
async def test_an_agent_asks_so_often_while_nothing_changes(built: Build, times: int) -> None:
    house = built(f"{{max_repeats: {times}}}")
    caller = await house.spawn(house.task())
    assert [await house.told(caller) for _ in range(times + 1)] == ["get_task"] * times + ["exit no_progress"]


@pytest.mark.parametrize("times", [1, 3])
async def test_so_many_claims_of_a_session_may_be_red(built: Build, times: int) -> None:
    house = built(f"{{max_reworks: {times}}}")
    task = house.task()
    caller = await house.fetched(await house.spawn(task))
    house.desk.script[task] = [False] * times
    told = []
    for _ in range(times):
        assert not (await house.service.report_completed(caller)).verified
        told.append(await house.told(caller))
    assert told == ["rework"] * (times - 1) + ["exit no_progress"]
