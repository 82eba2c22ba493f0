"""The service may die after any call, and before any answer: the next one goes on from the blackboard."""

import contextlib
from collections.abc import Awaitable, Callable

import pytest

from genba.coordination.workflow.answers import Caller
from genba.domain.errors import GenbaError
from genba.domain.workflow.actions import SubtaskDraft
from genba.testing.conformance import a_verification
from tests.workflow.context import House, drafts, finish

Call = Callable[[], Awaitable[object]]


async def worker_call(context: House, caller: Caller, task: int) -> bool:
    service, action = context.service, await context.next(caller)
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
    await twice(context, calls[action.action])
    return True


async def twice(context: House, call: Call) -> None:
    """A call whose answer was lost, so that it is made once more; then the service dies."""
    await call()
    with contextlib.suppress(GenbaError):  # it may be out of order by now: the answer was lost, but it was done
        await call()
    context.restart()


async def test_a_worker_ends_the_same_when_the_service_dies_after_each_call(context: House) -> None:
    task = context.task()
    caller = await context.spawn(task)
    context.desk.script[task] = [False]
    for _ in range(40):
        if not await worker_call(context, caller, task):
            break
    assert await context.told(caller) == "exit completed"
    assert context.children(task) == ["Step one: done", "Step two: done"]


async def test_a_manager_ends_the_same_when_the_service_dies_after_each_call(context: House) -> None:
    task = context.task()
    caller = await context.manager(task)
    for _ in range(40):
        action = await context.next(caller)
        match action.action:
            case "get_task":
                await twice(context, lambda: context.service.get_my_task(caller))
            case "create_subtasks":
                await twice(context, lambda: context.service.create_tasks_batch(caller, drafts("Cut it", "Glue it")))
            case "delegate":
                for piece in action.subtasks:
                    number = piece.number
                    await twice(context, lambda number=number: context.service.assign_task(caller, number, "writer"))  # type: ignore[misc]
            case "wait":
                for piece in action.subtasks:
                    worker = await context.spawn(piece.number)
                    while await worker_call(context, worker, piece.number):
                        pass
                    finish(context, piece.number)
            case "report_completion":
                await twice(context, lambda: context.service.report_completed(caller))
            case "exit":
                break
    assert await context.told(caller) == "exit completed"
    assert context.children(task) == ["Cut it: done", "Glue it: done"]


@pytest.mark.parametrize("keyed", [True, False])
async def test_subtasks_made_one_by_one_are_not_doubled(context: House, keyed: bool) -> None:
    task = context.task()
    caller = await context.fetched(await context.spawn(task))
    for title in ("Cut it", "Glue it"):
        for _ in range(2):
            await context.service.create_task(caller, SubtaskDraft(title=title), key=title if keyed else "")
            context.restart()
    assert context.children(task) == ["Cut it: open", "Glue it: open"]


async def test_a_claim_that_died_with_its_service_is_judged_again(context: House) -> None:
    task = context.task()
    caller = await context.fetched(await context.spawn(task))
    run = context.fleet.sessions(task)[0].run
    context.board.record_verification(task, run, a_verification("c1"))  # it died before it wrote that this is the end
    context.restart()
    assert not (await context.runs.standing(run)).completed
    assert (await context.service.report_completed(caller)).verified
    assert (await context.runs.standing(run)).completed


async def test_another_instance_of_a_run_goes_on_with_the_plan_of_the_first(context: House) -> None:
    task = context.task()
    run = context.begin(task)
    caller = await context.fetched(await context.enter(run))
    first, second = await context.planned(caller, "Cut it", "Glue it")
    await context.service.update_task_status(caller, first, "in_progress")
    await context.runs.leave(run, "it was killed")
    context.restart()
    again = await context.enter(run)
    while await worker_call(context, again, task):
        pass
    assert context.children(task) == ["Cut it: done", "Glue it: done"]
    assert context.status(second) == "done"
