"""A manager plans, gives its parts away, waits for those who carry them out, and never works itself."""

import asyncio

from genba.coordination.workflow.answers import Caller
from genba.coordination.workflow.service import WorkflowService
from genba.coordination.workflow.subtasks import TaskTypes
from genba.domain.fleet.records import Escalation, EscalationKind, Purpose, SegmentEnd, WaitsFor
from genba.domain.tasks.task import Blocker, BlockerKind, StatusChange, TaskStatus
from genba.domain.workflow.actions import ErrorCode, SubtaskDraft
from tests.workflow.context import CREW, HUMAN, House, RealTimes, block, drafts, finish, until, wait_for_parts


async def delegated(context: House, *titles: str) -> tuple[Caller, int, list[int]]:
    """A manager whose parts are all given away: its caller, its task, and the parts."""
    task = context.task()
    caller = await context.fetched(await context.manager(task))
    parts = await context.planned(caller, *titles)
    for number in parts:
        await context.service.assign_task(caller, number, "writer")
    return caller, task, parts


async def test_a_manager_goes_through_the_whole_flow_with_three_workers(context: House) -> None:
    task = context.task()
    caller = await context.fetched(await context.manager(task))
    run = context.fleet.sessions(task)[0].run
    assert await context.told(caller) == "create_subtasks"
    parts = await context.planned(caller, "Cut it", "Glue it", "Paint it")
    assert [context.status(number) for number in parts] == ["backlog"] * 3
    crew = await context.service.list_workers(caller)
    assert [worker.name for worker in crew.workers] == ["boss", "tester", "writer"]
    for number in parts:
        assert await context.told(caller) == f"delegate #{number}"
        moved = await context.service.assign_task(caller, number, "writer")
        assert (moved.task.assignee, str(moved.task.status)) == ("writer", "open")
    assert await context.told(caller) == "wait"
    workers = [await context.spawn(number) for number in parts]
    for worker in workers:
        await context.fetched(worker)
        assert (await context.service.report_completed(worker)).verified
    assert await context.told(caller) == "wait"
    for number in parts:
        finish(context, number)
    assert await context.told(caller) == "report_completion"
    assert (await context.service.report_completed(caller)).verified
    assert await context.told(caller) == "exit completed"
    assert (await context.runs.standing(run)).completed


async def test_a_wait_is_answered_as_soon_as_a_part_ends(context: House) -> None:
    caller, _, parts = await delegated(context, "Cut it")
    run = context.begin(parts[0])
    times = RealTimes()
    context.restart(times=times, wait_seconds=50, suspend_seconds=1000)
    held = asyncio.create_task(context.next(caller))
    await until(lambda: times.slept >= 2)
    assert not held.done()
    worker = await context.enter(run)
    await context.fetched(worker)
    await context.service.report_completed(worker)
    finish(context, parts[0])
    answer = await asyncio.wait_for(held, 20)
    assert answer.action == "report_completion"


async def test_one_call_of_a_connection_is_held_and_a_newer_one_ends_it(context: House) -> None:
    caller, _, parts = await delegated(context, "Cut it")
    context.begin(parts[0])
    times = RealTimes()
    context.restart(times=times, wait_seconds=50, suspend_seconds=1000)
    held = asyncio.create_task(context.next(caller))
    await until(lambda: times.slept > 0)
    for _ in range(4):
        newer = asyncio.create_task(context.next(caller))
        assert (await asyncio.wait_for(held, 60)).action == "wait"
        assert not newer.done()
        held = newer
    held.cancel()
    await asyncio.gather(held, return_exceptions=True)


async def test_a_wait_with_nothing_new_is_answered_after_its_time(context: House) -> None:
    caller, _, parts = await delegated(context, "Cut it")
    context.begin(parts[0])
    context.restart(wait_seconds=10, suspend_seconds=1000)
    assert (await context.next(caller)).action == "wait"
    assert 10 <= sum(context.times.slept) <= 10.5


async def test_a_manager_that_only_waits_is_sent_home_and_goes_on_when_it_is_woken(context: House) -> None:
    caller, task, parts = await delegated(context, "Cut it")
    context.begin(parts[0])
    run = context.fleet.sessions(task)[0].run
    context.restart(wait_seconds=20, suspend_seconds=60)
    lines = [await context.told(caller) for _ in range(4)]
    assert lines == ["wait", "wait", "exit suspended", "exit suspended"]
    standing = await context.runs.standing(run)
    assert standing.suspended
    assert not standing.completed
    await context.runs.leave(run, "its process ended")
    wait_for_parts(context.fleet, run)
    block(context, parts[0])
    context.resume(run)
    caller = await context.enter(run)
    await context.fetched(caller)
    assert await context.told(caller) == f"handle_blocked #{parts[0]}"


async def test_a_blocked_part_is_tried_again_with_a_note_or_given_to_another(context: House) -> None:
    caller, _, (part,) = await delegated(context, "Cut it")
    context.begin(part)
    block(context, part)
    action = await context.next(caller)
    assert action.action == "handle_blocked"
    assert set(action.choices) >= {"retry", "reassign", "cancel", "ask_human"}
    moved = await context.service.assign_task(caller, part, "tester", note="Use the big scissors.")
    assert (moved.task.assignee, str(moved.task.status)) == ("tester", "open")
    assert await context.told(caller) == "wait"


async def test_a_part_that_is_with_a_person_is_not_handled_twice(context: House) -> None:
    caller, _, (part,) = await delegated(context, "Cut it")
    context.begin(part)
    block(context, part)
    assert await context.told(caller) == f"handle_blocked #{part}"
    await context.service.report_blocked(caller, "Is paper fine?", task_id=part)
    assert [one.question for one in context.fleet.escalations()] == ["Is paper fine?"]
    assert await context.told(caller) == "wait"


async def test_a_part_is_split_by_cancelling_it_and_adding_others(context: House) -> None:
    caller, task, (part,) = await delegated(context, "Cut it")
    context.begin(part)
    block(context, part)
    smaller = await context.planned(caller, "Cut the left half", "Cut the right half")
    await context.service.update_task_status(caller, part, "cancelled", reason="it was too large")
    assert context.children(task) == [
        "Cut it: cancelled",
        "Cut the left half: backlog",
        "Cut the right half: backlog",
    ]
    assert await context.told(caller) == f"delegate #{smaller[0]}"


async def test_a_red_claim_lets_a_manager_add_parts(context: House) -> None:
    caller, task, (part,) = await delegated(context, "Cut it")
    context.land(part)
    context.desk.script[task] = [False]
    assert not (await context.service.report_completed(caller)).verified
    assert (await context.next(caller)).action == "rework"
    (more,) = await context.planned(caller, "Cut it again")
    assert await context.told(caller) == f"delegate #{more}"


async def test_managers_nest_as_deep_as_the_settings_allow(context: House) -> None:
    caller = await context.fetched(await context.manager(context.task()))
    (part,) = await context.planned(caller, "The frame")
    await context.service.assign_task(caller, part, "boss")
    boss = await context.fetched(await context.manager(part, "boss"))
    (inner,) = await context.planned(boss, "One stick")
    refusal = await context.refused(context.service.assign_task(boss, inner, "chief"))
    assert refusal.code is ErrorCode.LIMIT
    await context.service.assign_task(boss, inner, "writer")
    assert [piece.number for piece in (await context.service.list_tasks(caller)).tasks][1:] == [part, inner]
    refusal = await context.refused(context.service.assign_task(caller, inner, "tester"))
    assert refusal.code is ErrorCode.OUT_OF_ORDER


async def test_a_manager_and_its_worker_tell_each_other_things(context: House) -> None:
    caller, _, (part,) = await delegated(context, "Cut it")
    worker = await context.spawn(part)
    await context.service.send_message(caller, "Mind your fingers.", task_id=part)
    assert (await context.next(worker)).messages == 1
    inbox = await context.service.get_messages(worker)
    assert [(message.sender, message.content) for message in inbox.messages] == [("chief", "Mind your fingers.")]
    assert (await context.service.get_messages(worker)).messages == ()
    await context.service.send_message(worker, "I will.")
    assert [message.content for message in (await context.service.get_messages(caller)).messages] == ["I will."]


async def test_the_load_of_an_agent_counts_its_tasks_and_what_waits_for_it(context: House) -> None:
    caller, _, _ = await delegated(context, "Cut it", "Glue it")
    block(context, (await context.service.list_tasks(caller)).tasks[1].number)
    loads = {worker.name: worker.load for worker in (await context.service.list_workers(caller)).workers}
    assert loads["writer"] == 1
    assert loads["tester"] == 0


async def test_a_subtask_may_not_bring_leave_to_change_tests(context: House) -> None:
    caller = await context.fetched(await context.manager(context.task()))
    refusal = await context.refused(
        context.service.create_tasks_batch(caller, (SubtaskDraft(title="Loosen the tests", type="test"),))
    )
    assert refusal.code is ErrorCode.VALIDATION


async def test_a_manager_whose_task_is_cancelled_stops(context: House) -> None:
    caller, task, _ = await delegated(context, "Cut it")
    context.board.change_status(task, StatusChange(to=TaskStatus.CANCELLED, actor=HUMAN))
    assert await context.told(caller) == "exit cancelled"


async def test_two_plans_at_once_are_one_plan(context: House) -> None:
    task = context.task()
    caller = await context.fetched(await context.spawn(task, "chief", Purpose.MANAGE))
    other = context.another()
    results = await asyncio.gather(
        context.service.create_tasks_batch(caller, drafts("Cut it", "Glue it")),
        other.create_tasks_batch(caller, drafts("Cut it", "Glue it")),
    )
    assert results[0].subtasks == results[1].subtasks
    assert len(context.children(task)) == 2


async def test_a_part_is_reviewed_like_every_task_of_its_type(context: House) -> None:
    types = TaskTypes(("task", "story"), {"story": "human"})
    context.service = WorkflowService(
        context.workflow,
        context.fleet,
        context.desk,
        context.settings,
        context.project,
        {},
        lambda: CREW,
        context.times,
        types,
    )
    caller = await context.fetched(await context.manager(context.task()))

    (story,) = await context.planned(caller, "The frame", type="story")
    unknown = await context.code(context.service.create_task(caller, SubtaskDraft(title="The tail", type="whim")))
    (plain,) = (await context.service.create_task(caller, SubtaskDraft(title="The tail"))).subtasks

    assert [context.board.get(number).requires_review for number in (story, plain.number)] == [True, False]
    assert context.board.get(story).reviewer_type == "human"
    assert unknown is ErrorCode.VALIDATION
    await context.service.settle()
    context.service.close()


async def test_a_manager_does_not_answer_the_questions_of_a_part_for_ever(context: House) -> None:
    caller, _, (part,) = await delegated(context, "Cut it")
    run = context.begin(part)
    answered = 0
    while "retry" in (await asks(context, caller, part, run)):
        await context.service.assign_task(caller, part, "writer", note="blue")
        context.resume(run)
        answered += 1

    assert answered == context.settings.workflow.max_reworks
    assert "ask_human" in (await context.next(caller)).choices


async def asks(context: House, manager: Caller, part: int, run: str) -> tuple[str, ...]:
    """The worker on a part asks something: what its manager can do."""
    question = Escalation(task=part, kind=EscalationKind.QUESTION, question="which colour?", run=run)
    context.fleet.escalate(question, Blocker(BlockerKind.NEEDS_INPUT, "which colour?"))
    end = SegmentEnd(run=run, part=context.fleet.session(run).part, waits_for=WaitsFor.ANSWER, state="{}")
    context.fleet.end_part(end)
    return (await context.next(manager)).choices
