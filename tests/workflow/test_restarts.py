"""The service may die after any call, and before any answer: the next one goes on from the blackboard."""

import contextlib
from collections.abc import Awaitable, Callable

import pytest

from genba.coordination.workflow.answers import Caller
from genba.domain.errors import GenbaError
from genba.domain.workflow.actions import SubtaskDraft
from genba.testing.conformance import a_verification
from tests.workflow.house import House, drafts, finish

Call = Callable[[], Awaitable[object]]


async def worker_call(house: House, caller: Caller, task: int) -> bool:
    """Do what the next action says. False: it said to stop."""
    service, action = house.service, await house.next(caller)
    subtask = action.subtask.number if action.subtask else 0
    calls: dict[str, Call] = {
        "get_task": lambda: service.get_my_task(caller),
        "create_subtasks": lambda: service.create_tasks_batch(caller, drafts("Step one", "Step two"), key="plan"),
        "start_subtask": lambda: service.update_task_status(caller, subtask, "in_progress"),
        "execute_subtask": lambda: service.update_task_status(caller, subtask, "done"),
        "rework": lambda: service.report_completed(caller),
        "report_completion": lambda: service.report_completed(caller),
    }
    if action.action == "exit":
        assert action.reason == "completed"
        return False
    await twice(house, calls[action.action])
    return True


async def twice(house: House, call: Call) -> None:
    """A call whose answer was lost, so that it is made once more; then the service dies."""
    await call()
    with contextlib.suppress(GenbaError):  # it may be out of order by now: the answer was not heard, but it was done
        await call()
    house.restart()


async def test_a_worker_ends_the_same_when_the_service_dies_after_each_call(house: House) -> None:
    task = house.task()
    caller = await house.spawn(task)
    house.desk.script[task] = [False]
    for _ in range(40):
        if not await worker_call(house, caller, task):
            break
    assert await house.told(caller) == "exit completed"
    assert house.children(task) == ["Step one: done", "Step two: done"]


async def test_a_manager_ends_the_same_when_the_service_dies_after_each_call(house: House) -> None:
    task = house.task()
    caller = await house.manager(task)
    for _ in range(40):
        action = await house.next(caller)
        match action.action:
            case "get_task":
                await twice(house, lambda: house.service.get_my_task(caller))
            case "create_subtasks":
                await twice(house, lambda: house.service.create_tasks_batch(caller, drafts("Cut it", "Glue it")))
            case "delegate":
                for piece in action.subtasks:
                    number = piece.number
                    await twice(house, lambda number=number: house.service.assign_task(caller, number, "writer"))  # type: ignore[misc]
            case "wait":
                for piece in action.subtasks:
                    worker = await house.spawn(piece.number)
                    while await worker_call(house, worker, piece.number):
                        pass
                    finish(house, piece.number)
            case "report_completion":
                await twice(house, lambda: house.service.report_completed(caller))
            case "exit":
                break
    assert await house.told(caller) == "exit completed"
    assert house.children(task) == ["Cut it: done", "Glue it: done"]


@pytest.mark.parametrize("keyed", [True, False])
async def test_subtasks_made_one_by_one_are_not_doubled(house: House, keyed: bool) -> None:
    task = house.task()
    caller = await house.fetched(await house.spawn(task))
    for title in ("Cut it", "Glue it"):
        for _ in range(2):
            await house.service.create_task(caller, SubtaskDraft(title=title), key=title if keyed else "")
            house.restart()
    assert house.children(task) == ["Cut it: open", "Glue it: open"]


async def test_a_claim_that_died_with_its_service_is_judged_again(house: House) -> None:
    task = house.task()
    caller = await house.fetched(await house.spawn(task))
    run = house.fleet.sessions(task)[0].run
    house.board.record_verification(task, run, a_verification("c1"))  # it died before it wrote that this is the end
    house.restart()
    assert not (await house.runs.standing(run)).completed
    assert (await house.service.report_completed(caller)).verified
    assert (await house.runs.standing(run)).completed


async def test_another_instance_of_a_run_goes_on_with_the_plan_of_the_first(house: House) -> None:
    task = house.task()
    run = house.begin(task)
    caller = await house.fetched(await house.enter(run))
    first, second = await house.planned(caller, "Cut it", "Glue it")
    await house.service.update_task_status(caller, first, "in_progress")
    await house.runs.leave(run, "it was killed")
    house.restart()
    again = await house.enter(run)
    while await worker_call(house, again, task):
        pass
    assert house.children(task) == ["Cut it: done", "Glue it: done"]
    assert house.status(second) == "done"
