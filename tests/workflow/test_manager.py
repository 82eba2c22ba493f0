"""A manager plans, gives its parts away, waits for those who carry them out, and never works itself."""

import asyncio

from genba.coordination.workflow.answers import Caller
from genba.coordination.workflow.service import WorkflowService
from genba.coordination.workflow.subtasks import TaskTypes
from genba.domain.fleet.records import Escalation, EscalationKind, PartEnd, Purpose, WaitsFor
from genba.domain.tasks.task import Blocker, BlockerKind, StatusChange, TaskStatus
from genba.domain.workflow.actions import ErrorCode, SubtaskDraft
from tests.workflow.house import CREW, HUMAN, House, RealTimes, block, drafts, finish, until, wait_for_parts


async def delegated(house: House, *titles: str) -> tuple[Caller, int, list[int]]:
    """A manager whose parts are all given away: its caller, its task, and the parts."""
    task = house.task()
    caller = await house.fetched(await house.manager(task))
    parts = await house.planned(caller, *titles)
    for number in parts:
        await house.service.assign_task(caller, number, "writer")
    return caller, task, parts


async def test_a_manager_goes_through_the_whole_flow_with_three_workers(house: House) -> None:
    task = house.task()
    caller = await house.fetched(await house.manager(task))
    run = house.fleet.sessions(task)[0].run
    assert await house.told(caller) == "create_subtasks"
    parts = await house.planned(caller, "Cut it", "Glue it", "Paint it")
    assert [house.status(number) for number in parts] == ["backlog"] * 3
    crew = await house.service.list_workers(caller)
    assert [worker.name for worker in crew.workers] == ["boss", "tester", "writer"]
    for number in parts:
        assert await house.told(caller) == f"delegate #{number}"
        moved = await house.service.assign_task(caller, number, "writer")
        assert (moved.task.assignee, str(moved.task.status)) == ("writer", "open")
    assert await house.told(caller) == "wait"
    workers = [await house.spawn(number) for number in parts]
    for worker in workers:
        await house.fetched(worker)
        assert (await house.service.report_completed(worker)).verified
    assert await house.told(caller) == "wait"
    for number in parts:
        finish(house, number)
    assert await house.told(caller) == "report_completion"
    assert (await house.service.report_completed(caller)).verified
    assert await house.told(caller) == "exit completed"
    assert (await house.runs.standing(run)).completed


async def test_a_wait_is_answered_as_soon_as_a_part_ends(house: House) -> None:
    caller, _, parts = await delegated(house, "Cut it")
    run = house.begin(parts[0])
    times = RealTimes()
    house.restart(times=times, wait_seconds=50, park_seconds=1000)
    held = asyncio.create_task(house.next(caller))
    await until(lambda: times.slept >= 2)
    assert not held.done()
    worker = await house.enter(run)
    await house.fetched(worker)
    await house.service.report_completed(worker)
    finish(house, parts[0])
    answer = await asyncio.wait_for(held, 20)
    assert answer.action == "report_completion"


async def test_one_call_of_a_seat_is_held_and_a_newer_one_ends_it(house: House) -> None:
    caller, _, parts = await delegated(house, "Cut it")
    house.begin(parts[0])
    times = RealTimes()
    house.restart(times=times, wait_seconds=50, park_seconds=1000)
    held = asyncio.create_task(house.next(caller))
    await until(lambda: times.slept > 0)
    for _ in range(4):
        newer = asyncio.create_task(house.next(caller))
        assert (await asyncio.wait_for(held, 60)).action == "wait"
        assert not newer.done()
        held = newer
    held.cancel()
    await asyncio.gather(held, return_exceptions=True)


async def test_a_wait_with_nothing_new_is_answered_after_its_time(house: House) -> None:
    caller, _, parts = await delegated(house, "Cut it")
    house.begin(parts[0])
    house.restart(wait_seconds=10, park_seconds=1000)
    assert (await house.next(caller)).action == "wait"
    assert 10 <= sum(house.times.slept) <= 10.5


async def test_a_manager_that_only_waits_is_sent_home_and_goes_on_when_it_is_woken(house: House) -> None:
    caller, task, parts = await delegated(house, "Cut it")
    house.begin(parts[0])
    run = house.fleet.sessions(task)[0].run
    house.restart(wait_seconds=20, park_seconds=60)
    told = [await house.told(caller) for _ in range(4)]
    assert told == ["wait", "wait", "exit parked", "exit parked"]
    standing = await house.runs.standing(run)
    assert standing.parked
    assert not standing.completed
    await house.runs.leave(run, "its process ended")
    wait_for_parts(house.fleet, run)
    block(house, parts[0])
    house.resume(run)
    caller = await house.enter(run)
    await house.fetched(caller)
    assert await house.told(caller) == f"handle_blocked #{parts[0]}"


async def test_a_blocked_part_is_tried_again_with_a_note_or_given_to_another(house: House) -> None:
    caller, _, (part,) = await delegated(house, "Cut it")
    house.begin(part)
    block(house, part)
    action = await house.next(caller)
    assert action.action == "handle_blocked"
    assert set(action.choices) >= {"retry", "reassign", "cancel", "ask_human"}
    moved = await house.service.assign_task(caller, part, "tester", note="Use the big scissors.")
    assert (moved.task.assignee, str(moved.task.status)) == ("tester", "open")
    assert await house.told(caller) == "wait"


async def test_a_part_that_is_with_a_person_is_not_handled_twice(house: House) -> None:
    caller, _, (part,) = await delegated(house, "Cut it")
    house.begin(part)
    block(house, part)
    assert await house.told(caller) == f"handle_blocked #{part}"
    await house.service.report_blocked(caller, "Is paper fine?", task_id=part)
    assert [one.question for one in house.fleet.escalations()] == ["Is paper fine?"]
    assert await house.told(caller) == "wait"


async def test_a_part_is_split_by_cancelling_it_and_adding_others(house: House) -> None:
    caller, task, (part,) = await delegated(house, "Cut it")
    house.begin(part)
    block(house, part)
    smaller = await house.planned(caller, "Cut the left half", "Cut the right half")
    await house.service.update_task_status(caller, part, "cancelled", reason="it was too large")
    assert house.children(task) == [
        "Cut it: cancelled",
        "Cut the left half: backlog",
        "Cut the right half: backlog",
    ]
    assert await house.told(caller) == f"delegate #{smaller[0]}"


async def test_a_red_claim_lets_a_manager_add_parts(house: House) -> None:
    caller, task, (part,) = await delegated(house, "Cut it")
    house.land(part)
    house.desk.script[task] = [False]
    assert not (await house.service.report_completed(caller)).verified
    assert (await house.next(caller)).action == "rework"
    (more,) = await house.planned(caller, "Cut it again")
    assert await house.told(caller) == f"delegate #{more}"


async def test_managers_nest_as_deep_as_the_settings_allow(house: House) -> None:
    caller = await house.fetched(await house.manager(house.task()))
    (part,) = await house.planned(caller, "The frame")
    await house.service.assign_task(caller, part, "boss")
    boss = await house.fetched(await house.manager(part, "boss"))
    (inner,) = await house.planned(boss, "One stick")
    refusal = await house.refused(house.service.assign_task(boss, inner, "chief"))
    assert refusal.code is ErrorCode.LIMIT
    await house.service.assign_task(boss, inner, "writer")
    assert [piece.number for piece in (await house.service.list_tasks(caller)).tasks][1:] == [part, inner]
    refusal = await house.refused(house.service.assign_task(caller, inner, "tester"))
    assert refusal.code is ErrorCode.OUT_OF_ORDER


async def test_a_manager_and_its_worker_tell_each_other_things(house: House) -> None:
    caller, _, (part,) = await delegated(house, "Cut it")
    worker = await house.spawn(part)
    await house.service.send_message(caller, "Mind your fingers.", task_id=part)
    assert (await house.next(worker)).messages == 1
    inbox = await house.service.get_messages(worker)
    assert [(message.sender, message.content) for message in inbox.messages] == [("chief", "Mind your fingers.")]
    assert (await house.service.get_messages(worker)).messages == ()
    await house.service.send_message(worker, "I will.")
    assert [message.content for message in (await house.service.get_messages(caller)).messages] == ["I will."]


async def test_a_load_counts_what_somebody_has_and_what_waits_for_them(house: House) -> None:
    caller, _, _ = await delegated(house, "Cut it", "Glue it")
    block(house, (await house.service.list_tasks(caller)).tasks[1].number)
    loads = {worker.name: worker.load for worker in (await house.service.list_workers(caller)).workers}
    assert loads["writer"] == 1
    assert loads["tester"] == 0


async def test_a_subtask_may_not_bring_leave_to_change_tests(house: House) -> None:
    caller = await house.fetched(await house.manager(house.task()))
    refusal = await house.refused(
        house.service.create_tasks_batch(caller, (SubtaskDraft(title="Loosen the tests", type="test"),))
    )
    assert refusal.code is ErrorCode.VALIDATION


async def test_a_manager_whose_task_is_cancelled_stops(house: House) -> None:
    caller, task, _ = await delegated(house, "Cut it")
    house.board.change_status(task, StatusChange(to=TaskStatus.CANCELLED, actor=HUMAN))
    assert await house.told(caller) == "exit cancelled"


async def test_two_plans_at_once_are_one_plan(house: House) -> None:
    task = house.task()
    caller = await house.fetched(await house.spawn(task, "chief", Purpose.MANAGE))
    other = house.another()
    results = await asyncio.gather(
        house.service.create_tasks_batch(caller, drafts("Cut it", "Glue it")),
        other.create_tasks_batch(caller, drafts("Cut it", "Glue it")),
    )
    assert results[0].subtasks == results[1].subtasks
    assert len(house.children(task)) == 2


async def test_a_part_is_reviewed_like_every_task_of_its_type(house: House) -> None:
    types = TaskTypes(("task", "story"), {"story": "human"})
    house.service = WorkflowService(
        house.workflow, house.fleet, house.desk, house.settings, house.project, {}, lambda: CREW, house.times, types
    )
    caller = await house.fetched(await house.manager(house.task()))

    (story,) = await house.planned(caller, "The frame", type="story")
    unknown = await house.code(house.service.create_task(caller, SubtaskDraft(title="The tail", type="whim")))
    (plain,) = (await house.service.create_task(caller, SubtaskDraft(title="The tail"))).subtasks

    assert [house.board.get(number).requires_review for number in (story, plain.number)] == [True, False]
    assert house.board.get(story).reviewer_type == "human"
    assert unknown is ErrorCode.VALIDATION
    await house.service.settle()
    house.service.close()


async def test_a_manager_does_not_answer_the_questions_of_a_part_for_ever(house: House) -> None:
    caller, _, (part,) = await delegated(house, "Cut it")
    run = house.begin(part)
    answered = 0
    while "retry" in (await asks(house, caller, part, run)):
        await house.service.assign_task(caller, part, "writer", note="blue")
        house.resume(run)
        answered += 1

    assert answered == house.settings.workflow.max_reworks
    assert "ask_human" in (await house.next(caller)).choices


async def asks(house: House, manager: Caller, part: int, run: str) -> tuple[str, ...]:
    """The worker on a part asks something: what its manager can do."""
    question = Escalation(task=part, kind=EscalationKind.QUESTION, question="which colour?", run=run)
    house.fleet.escalate(question, Blocker(BlockerKind.NEEDS_INPUT, "which colour?"))
    end = PartEnd(run=run, part=house.fleet.session(run).part, waits_for=WaitsFor.ANSWER, state="{}")
    house.fleet.end_part(end)
    return (await house.next(manager)).choices
