"""Agents that came by themselves: they take a task, keep it while they call, and give it back when they go."""

import asyncio
from collections.abc import Awaitable

import pytest

from genba.domain.fleet.records import Purpose
from genba.domain.tasks.task import TaskStatus
from genba.domain.workflow.actions import ErrorCode, Hierarchy, WorkflowError
from tests.workflow.house import House


async def test_a_guest_takes_the_next_ready_task_and_hands_it_over(house: House) -> None:
    task = house.task()
    caller = await house.come(*await house.guest())
    assert await house.told(caller) == "get_task"
    assert house.status(task) == "in_progress"
    await house.service.get_my_task(caller)
    assert (await house.service.report_completed(caller)).verified
    assert house.desk.handed_over == [(task, "c1")]
    assert house.status(task) == "review"
    assert await house.told(caller) == "exit completed"


async def test_a_guest_that_asks_again_gets_the_next_task(house: House) -> None:
    first, second = house.task("First"), house.task("Second")
    caller = await house.come(*await house.guest())
    await house.fetched(caller)
    await house.service.report_completed(caller)
    assert await house.told(caller) == "exit completed"
    await house.fetched(caller)
    assert house.desk.taken == [first, second]


async def test_a_guest_without_a_task_is_told_so_and_gets_one_later(house: House) -> None:
    caller = await house.come(*await house.guest())
    action = await house.next(caller)
    assert (action.action, action.reason, action.retry_after) == ("exit", "no_task", 60)
    house.task()
    assert await house.told(caller) == "get_task"


async def test_a_guest_takes_what_is_assigned_to_it_or_fits_its_capabilities(house: House) -> None:
    others = house.task("For another", assignee="writer")
    misfit = house.task("No fit", type="feature")
    fits = house.task("A fit", labels=("docs",))
    mine = house.task("Mine", assignee="visitor")
    caller = await house.come(*await house.guest(capabilities=("docs",)))
    await house.fetched(caller)
    await house.service.report_completed(caller)
    await house.told(caller)
    await house.fetched(caller)
    assert sorted(house.desk.taken) == [fits, mine]
    assert (house.status(others), house.status(misfit)) == ("open", "open")


async def test_a_guest_that_comes_back_has_its_task_still(house: House) -> None:
    task = house.task()
    house.task("Another")
    agent, passkey = await house.guest()
    first = await house.fetched(await house.come(agent, passkey))
    again = await house.come(agent, passkey)
    assert await house.told(again) == "get_task"
    assert (await house.service.get_my_task(again)).task.number == task
    assert await house.code(house.service.get_next_action(first)) is ErrorCode.NOT_AUTHENTICATED


async def test_two_guests_take_two_tasks(house: House) -> None:
    tasks = {house.task("First"), house.task("Second")}
    one = await house.fetched(await house.come(*await house.guest("one")))
    two = await house.fetched(await house.come(*await house.guest("two")))
    held = {(await house.service.list_tasks(caller)).tasks[0].number for caller in (one, two)}
    assert held == tasks


async def test_a_guest_that_logs_out_gives_its_task_back(house: House) -> None:
    task = house.task()
    caller = await house.fetched(await house.come(*await house.guest()))
    await house.service.logout(caller, reason="I have to go.")
    assert house.status(task) == "open"
    assert house.desk.let_go_of == [(task, "I have to go.")]


async def test_a_guest_that_is_silent_for_too_long_has_left(house: House) -> None:
    house.restart(lease_seconds=900)
    task = house.task()
    caller = await house.fetched(await house.come(*await house.guest()))
    house.times.pass_(800)
    assert await house.service.sweep() == 0
    await house.service.help(caller)
    await house.service.settle()
    house.times.pass_(800)
    assert await house.service.sweep() == 0
    house.times.pass_(200)
    assert await house.service.sweep() == 1
    assert house.status(task) == "open"
    assert await house.code(house.service.get_next_action(caller)) is ErrorCode.NOT_AUTHENTICATED
    assert await house.service.sweep() == 0


@pytest.mark.parametrize("hours", [6, -6])
async def test_a_guest_has_left_when_it_was_silent_for_long_whatever_the_clock_is_set_to(
    house: House, hours: int
) -> None:
    house.restart(lease_seconds=900)
    house.task()
    await house.fetched(await house.come(*await house.guest()))

    house.times.set_clock(hours * 3600)
    assert await house.service.sweep() == 0
    house.times.pass_(899)
    assert await house.service.sweep() == 0
    house.times.pass_(2)
    assert await house.service.sweep() == 1


async def test_a_guest_whose_claim_is_being_verified_is_not_silent(house: House) -> None:
    task = house.task()
    caller = await house.fetched(await house.come(*await house.guest()))
    house.desk.held = asyncio.Event()
    claim = asyncio.create_task(house.service.report_completed(caller))
    await asyncio.wait_for(house.desk.judging.wait(), 20)
    house.times.pass_(2000)
    assert await house.service.sweep() == 0
    house.desk.held.set()
    assert (await claim).verified
    assert house.status(task) == "review"


async def test_an_instance_of_genba_has_no_lease(house: House) -> None:
    house.restart(lease_seconds=1)
    caller = await house.spawn(house.task())
    house.times.pass_(3600)
    assert await house.service.sweep() == 0
    assert await house.told(caller) == "get_task"


async def test_a_guest_that_cannot_go_on_leaves_a_question(house: House) -> None:
    task = house.task()
    caller = await house.fetched(await house.come(*await house.guest()))
    await house.service.report_blocked(caller, "Which colour?")
    assert house.board.get(task).status is TaskStatus.BLOCKED
    assert [one.question for one in house.fleet.escalations()] == ["Which colour?"]
    assert await house.told(caller) == "exit blocked"


async def test_a_guest_that_manages_takes_only_what_is_assigned_to_it(house: House) -> None:
    house.task("For anybody")
    mine = house.task("For the guest", assignee="visitor")
    caller = await house.come(*await house.guest(hierarchy=Hierarchy.MANAGER))
    await house.fetched(caller)
    assert house.desk.taken == [mine]
    assert house.fleet.sessions(mine)[0].purpose is Purpose.MANAGE


async def test_a_guest_is_never_sent_home_for_waiting(house: House) -> None:
    house.restart(wait_seconds=20, park_seconds=1)
    house.task("For the guest", assignee="visitor")
    caller = await house.fetched(await house.come(*await house.guest(hierarchy=Hierarchy.MANAGER)))
    (part,) = await house.planned(caller, "Cut it")
    await house.service.assign_task(caller, part, "writer")
    house.begin(part)
    assert [await house.told(caller) for _ in range(30)] == ["wait"] * 30


async def test_a_guest_does_not_leave_while_its_work_is_verified(house: House) -> None:
    task = house.task()
    caller = await house.fetched(await house.come(*await house.guest()))
    house.desk.held = asyncio.Event()
    claim = asyncio.create_task(house.service.report_completed(caller))
    await asyncio.wait_for(house.desk.judging.wait(), 20)

    assert await code_at_once(house.service.logout(caller)) is ErrorCode.CONFLICT
    house.desk.held.set()

    assert (await claim).verified
    assert house.status(task) == "review"
    await house.service.logout(caller)


async def code_at_once(call: Awaitable[object]) -> ErrorCode:
    """The code of a refusal, while something else is under way."""
    with pytest.raises(WorkflowError) as refusal:
        await call
    return refusal.value.code
