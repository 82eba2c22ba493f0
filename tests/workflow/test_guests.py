"""Agents that came by themselves: they take a task, keep it while they call, and give it back when they go."""

import asyncio
from collections.abc import Awaitable

import pytest

from genba.domain.fleet.records import Purpose
from genba.domain.tasks.task import TaskStatus
from genba.domain.workflow.actions import ErrorCode, Hierarchy, WorkflowError
from tests.workflow.context import House


async def test_an_external_agent_takes_the_next_ready_task_and_hands_it_over(context: House) -> None:
    task = context.task()
    caller = await context.come(*await context.external_agent())
    assert await context.told(caller) == "get_task"
    assert context.status(task) == "in_progress"
    await context.service.get_my_task(caller)
    assert (await context.service.report_completed(caller)).verified
    assert context.desk.handed_over == [(task, "c1")]
    assert context.status(task) == "review"
    assert await context.told(caller) == "exit completed"


async def test_an_external_agent_that_asks_again_gets_the_next_task(context: House) -> None:
    first, second = context.task("First"), context.task("Second")
    caller = await context.come(*await context.external_agent())
    await context.fetched(caller)
    await context.service.report_completed(caller)
    assert await context.told(caller) == "exit completed"
    await context.fetched(caller)
    assert context.desk.taken == [first, second]


async def test_an_external_agent_without_a_task_is_informed_and_gets_one_later(context: House) -> None:
    caller = await context.come(*await context.external_agent())
    action = await context.next(caller)
    assert (action.action, action.reason, action.retry_after) == ("exit", "no_task", 60)
    context.task()
    assert await context.told(caller) == "get_task"


async def test_an_external_agent_takes_what_is_assigned_to_it_or_fits_its_capabilities(context: House) -> None:
    others = context.task("For another", assignee="writer")
    misfit = context.task("No fit", type="feature")
    fits = context.task("A fit", labels=("docs",))
    mine = context.task("Mine", assignee="visitor")
    caller = await context.come(*await context.external_agent(capabilities=("docs",)))
    await context.fetched(caller)
    await context.service.report_completed(caller)
    await context.told(caller)
    await context.fetched(caller)
    assert sorted(context.desk.taken) == [fits, mine]
    assert (context.status(others), context.status(misfit)) == ("open", "open")


async def test_an_external_agent_that_comes_back_has_its_task_still(context: House) -> None:
    task = context.task()
    context.task("Another")
    agent, passkey = await context.external_agent()
    first = await context.fetched(await context.come(agent, passkey))
    again = await context.come(agent, passkey)
    assert await context.told(again) == "get_task"
    assert (await context.service.get_my_task(again)).task.number == task
    assert await context.code(context.service.get_next_action(first)) is ErrorCode.NOT_AUTHENTICATED


async def test_two_external_agents_take_two_tasks(context: House) -> None:
    tasks = {context.task("First"), context.task("Second")}
    one = await context.fetched(await context.come(*await context.external_agent("one")))
    two = await context.fetched(await context.come(*await context.external_agent("two")))
    held = {(await context.service.list_tasks(caller)).tasks[0].number for caller in (one, two)}
    assert held == tasks


async def test_an_external_agent_that_logs_out_gives_its_task_back(context: House) -> None:
    task = context.task()
    caller = await context.fetched(await context.come(*await context.external_agent()))
    await context.service.logout(caller, reason="I have to go.")
    assert context.status(task) == "open"
    assert context.desk.let_go_of == [(task, "I have to go.")]


async def test_an_external_agent_that_is_silent_for_too_long_has_left(context: House) -> None:
    context.restart(lease_seconds=900)
    task = context.task()
    caller = await context.fetched(await context.come(*await context.external_agent()))
    context.times.pass_(800)
    assert await context.service.sweep() == 0
    await context.service.help(caller)
    await context.service.settle()
    context.times.pass_(800)
    assert await context.service.sweep() == 0
    context.times.pass_(200)
    assert await context.service.sweep() == 1
    assert context.status(task) == "open"
    assert await context.code(context.service.get_next_action(caller)) is ErrorCode.NOT_AUTHENTICATED
    assert await context.service.sweep() == 0


@pytest.mark.parametrize("hours", [6, -6])
async def test_an_external_agent_has_left_when_it_was_silent_for_long_whatever_the_clock_is_set_to(
    context: House, hours: int
) -> None:
    context.restart(lease_seconds=900)
    context.task()
    await context.fetched(await context.come(*await context.external_agent()))

    context.times.set_clock(hours * 3600)
    assert await context.service.sweep() == 0
    context.times.pass_(899)
    assert await context.service.sweep() == 0
    context.times.pass_(2)
    assert await context.service.sweep() == 1


async def test_an_external_agent_whose_claim_is_being_verified_is_not_silent(context: House) -> None:
    task = context.task()
    caller = await context.fetched(await context.come(*await context.external_agent()))
    context.desk.held = asyncio.Event()
    claim = asyncio.create_task(context.service.report_completed(caller))
    await asyncio.wait_for(context.desk.judging.wait(), 20)
    context.times.pass_(2000)
    assert await context.service.sweep() == 0
    context.desk.held.set()
    assert (await claim).verified
    assert context.status(task) == "review"


async def test_an_instance_of_genba_has_no_lease(context: House) -> None:
    context.restart(lease_seconds=1)
    caller = await context.spawn(context.task())
    context.times.pass_(3600)
    assert await context.service.sweep() == 0
    assert await context.told(caller) == "get_task"


async def test_an_external_agent_that_cannot_go_on_leaves_a_question(context: House) -> None:
    task = context.task()
    caller = await context.fetched(await context.come(*await context.external_agent()))
    await context.service.report_blocked(caller, "Which colour?")
    assert context.board.get(task).status is TaskStatus.BLOCKED
    assert [one.question for one in context.fleet.escalations()] == ["Which colour?"]
    assert await context.told(caller) == "exit blocked"


async def test_an_external_agent_that_manages_takes_only_what_is_assigned_to_it(context: House) -> None:
    context.task("For anybody")
    mine = context.task("For the external agent", assignee="visitor")
    caller = await context.come(*await context.external_agent(hierarchy=Hierarchy.MANAGER))
    await context.fetched(caller)
    assert context.desk.taken == [mine]
    assert context.fleet.sessions(mine)[0].purpose is Purpose.MANAGE


async def test_an_external_agent_is_never_sent_home_for_waiting(context: House) -> None:
    context.restart(wait_seconds=20, suspend_seconds=1)
    context.task("For the external agent", assignee="visitor")
    caller = await context.fetched(await context.come(*await context.external_agent(hierarchy=Hierarchy.MANAGER)))
    (part,) = await context.planned(caller, "Cut it")
    await context.service.assign_task(caller, part, "writer")
    context.begin(part)
    assert [await context.told(caller) for _ in range(30)] == ["wait"] * 30


async def test_an_external_agent_does_not_leave_while_its_work_is_verified(context: House) -> None:
    task = context.task()
    caller = await context.fetched(await context.come(*await context.external_agent()))
    context.desk.held = asyncio.Event()
    claim = asyncio.create_task(context.service.report_completed(caller))
    await asyncio.wait_for(context.desk.judging.wait(), 20)

    assert await code_at_once(context.service.logout(caller)) is ErrorCode.CONFLICT
    context.desk.held.set()

    assert (await claim).verified
    assert context.status(task) == "review"
    await context.service.logout(caller)


async def code_at_once(call: Awaitable[object]) -> ErrorCode:
    """The code of a refusal, while something else is under way."""
    with pytest.raises(WorkflowError) as refusal:
        await call
    return refusal.value.code
