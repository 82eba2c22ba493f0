"""A worker asks, plans, carries out its plan step by step, and is believed when the goals pass."""

import asyncio

from genba.domain.errors import GitError
from genba.domain.tasks.task import StatusChange, TaskStatus
from genba.domain.workflow.actions import ErrorCode, SubtaskDraft, WorkflowError
from tests.workflow.house import HUMAN, House, drafts, until

FILE = {"type": "file_exists", "path": "tail.txt"}


async def test_a_worker_goes_through_the_whole_flow(house: House) -> None:
    task = house.task(body="With a long tail.")
    caller = await house.spawn(task)
    run = house.fleet.sessions(task)[0].run
    assert await house.told(caller) == "get_task"
    brief = await house.service.get_my_task(caller)
    assert (brief.task.title, brief.task.body, brief.branch) == ("Build a kite", "With a long tail.", f"genba/{task}")
    assert brief.path
    assert await house.told(caller) == "create_subtasks"
    made = await house.service.create_tasks_batch(
        caller,
        (
            SubtaskDraft(title="Glue it", local_id="glue", depends_on=("cut",)),
            SubtaskDraft(title="Cut it", local_id="cut"),
        ),
    )
    by_title = {piece.title: piece.number for piece in made.subtasks}
    glue, cut = by_title["Glue it"], by_title["Cut it"]
    for number in (cut, glue):
        assert await house.told(caller) == f"start_subtask #{number}"
        await house.service.update_task_status(caller, number, "in_progress")
        assert await house.told(caller) == f"execute_subtask #{number}"
        moved = await house.service.update_task_status(caller, number, "done")
        assert moved.done
        assert house.status(number) == "done"
    assert await house.told(caller) == "report_completion"
    claimed = await house.service.report_completed(caller, summary="It flies.")
    assert claimed.verified
    assert await house.told(caller) == "exit completed"
    standing = await house.runs.standing(run)
    assert standing.completed
    assert standing.seated
    assert house.status(task) == "in_progress"  # the run hands over, when the instance has ended


async def test_the_instruction_names_the_task_and_the_next_call(house: House) -> None:
    caller = await house.fetched(await house.spawn(house.task()))
    action = await house.next(caller)
    assert "create_tasks_batch" in action.instruction
    assert "get_next_action" in action.instruction


async def test_instructions_are_written_in_the_language_of_the_project(house: House) -> None:
    caller = await house.spawn(house.task())
    house.restart(language="ja")
    action = await house.next(caller)
    assert any("ぁ" <= letter <= "ん" for letter in action.instruction)


async def test_red_goals_are_reworked_with_the_evidence_until_they_pass(house: House) -> None:
    task = house.task()
    caller = await house.fetched(await house.spawn(task))
    house.desk.script[task] = [False, True]
    claimed = await house.service.report_completed(caller)
    assert not claimed.verified
    assert claimed.evidence is not None
    action = await house.next(caller)
    assert action.action == "rework"
    assert action.evidence is not None
    assert action.evidence.task == task
    assert (await house.service.report_completed(caller)).verified
    assert await house.told(caller) == "exit completed"


async def test_a_task_that_needs_no_subtasks_is_carried_out_as_it_is(house: House) -> None:
    task = house.task()
    caller = await house.fetched(await house.spawn(task))
    await house.service.update_task_status(caller, task, "in_progress", reason="atomic")
    assert await house.told(caller) == "execute_subtask"
    assert (await house.service.report_completed(caller)).verified
    assert house.children(task) == []


async def test_a_plan_can_be_made_call_by_call_until_its_first_step_begins(house: House) -> None:
    caller = await house.fetched(await house.spawn(house.task()))
    first = (await house.service.create_task(caller, SubtaskDraft(title="Cut it"))).subtasks[0].number
    second = (
        await house.service.create_task(caller, SubtaskDraft(title="Glue it", depends_on=(str(first),)))
    ).subtasks[0]
    assert second.dependencies == (first,)
    await house.service.update_task_status(caller, first, "in_progress")
    refusal = await house.refused(house.service.create_task(caller, SubtaskDraft(title="Paint it")))
    assert refusal.code is ErrorCode.OUT_OF_ORDER


async def test_a_step_with_goals_is_done_when_they_pass_and_not_before(house: House) -> None:
    task = house.task()
    caller = await house.fetched(await house.spawn(task))
    (step,) = await house.planned(caller, "Cut it", goals=(FILE,))
    house.desk.script[step] = [False, True]
    await house.service.update_task_status(caller, step, "in_progress")
    moved = await house.service.update_task_status(caller, step, "done")
    assert not moved.done
    assert moved.evidence is not None
    assert house.status(step) == "in_progress"
    assert await house.told(caller) == f"rework #{step}"
    assert (await house.service.update_task_status(caller, step, "done")).done
    assert house.status(step) == "done"
    assert await house.told(caller) == "report_completion"


async def test_after_too_many_red_claims_the_session_has_failed(house: House) -> None:
    house.restart(max_reworks=2)
    task = house.task()
    caller = await house.fetched(await house.spawn(task))
    run = house.fleet.sessions(task)[0].run
    house.desk.script[task] = [False, False]
    await house.service.report_completed(caller)
    assert await house.told(caller) == "rework"
    await house.service.report_completed(caller)
    assert await house.told(caller) == "exit no_progress"
    assert (await house.runs.standing(run)).refused
    assert await house.code(house.service.report_completed(caller)) is ErrorCode.OUT_OF_ORDER


async def test_a_worker_that_cannot_go_on_is_sent_home_with_its_reason(house: House) -> None:
    task = house.task()
    caller = await house.fetched(await house.spawn(task))
    run = house.fleet.sessions(task)[0].run
    await house.service.report_blocked(caller, "Which colour?")
    assert await house.told(caller) == "exit blocked"
    assert (await house.runs.standing(run)).blocked == "Which colour?"
    assert house.status(task) == "in_progress"  # its run asks the person


async def test_a_worker_blocked_in_a_step_blocks_its_task(house: House) -> None:
    caller = await house.fetched(await house.spawn(house.task()))
    (step,) = await house.planned(caller, "Cut it")
    await house.service.update_task_status(caller, step, "in_progress")
    told = await house.service.report_blocked(caller, "No scissors.", task_id=step)
    assert told.reason == f"subtask #{step}: No scissors."


async def test_who_asks_again_and_again_is_warned_and_then_told_to_stop(house: House) -> None:
    house.restart(max_repeats=6)
    task = house.task()
    caller = await house.fetched(await house.spawn(task))
    asked = [await house.next(caller) for _ in range(7)]
    assert [bool(action.warning) for action in asked] == [False, False, False, True, True, True, False]
    assert [str(action.action) for action in asked] == ["create_subtasks"] * 6 + ["exit"]
    assert asked[-1].reason == "no_progress"
    run = house.fleet.sessions(task)[0].run
    assert (await house.runs.standing(run)).refused


async def test_a_change_makes_the_count_begin_anew(house: House) -> None:
    house.restart(max_repeats=6)
    caller = await house.fetched(await house.spawn(house.task()))
    for _ in range(5):
        await house.next(caller)
    await house.planned(caller, "Cut it")
    assert (await house.next(caller)).warning == ""


async def test_the_same_answer_is_the_same_object_while_nothing_changes(house: House) -> None:
    caller = await house.fetched(await house.spawn(house.task()))
    first = await house.next(caller)
    assert await house.next(caller) is first
    house.task("Something else")
    assert (await house.next(caller)).action is first.action


async def test_two_claims_at_once_are_one_verification(house: House) -> None:
    task = house.task()
    caller = await house.fetched(await house.spawn(task))
    house.desk.held = asyncio.Event()
    first = asyncio.create_task(house.service.report_completed(caller))
    await asyncio.wait_for(house.desk.judging.wait(), 20)
    second = asyncio.create_task(house.service.report_completed(caller))
    await until(lambda: house.service.waiting == 2)
    house.desk.held.set()
    assert await first == await second
    assert house.desk.judged == [task]


async def test_a_few_calls_wait_for_one_claim_and_more_are_refused(house: House) -> None:
    task = house.task()
    caller = await house.fetched(await house.spawn(task))
    house.desk.held = asyncio.Event()
    calls = [asyncio.create_task(house.service.report_completed(caller)) for _ in range(20)]
    await until(lambda: sum(call.done() for call in calls) == 12)
    house.desk.held.set()
    told = await asyncio.gather(*calls, return_exceptions=True)
    refused = [one for one in told if isinstance(one, WorkflowError)]
    assert {one.code for one in refused} == {ErrorCode.LIMIT}
    assert len(refused) == 12
    assert house.desk.judged == [task]
    assert house.service.waiting == 0


async def test_whoever_hangs_up_finds_the_verification_made(house: House) -> None:
    task = house.task()
    caller = await house.fetched(await house.spawn(task))
    house.desk.held = asyncio.Event()
    first = asyncio.create_task(house.service.report_completed(caller))
    await asyncio.wait_for(house.desk.judging.wait(), 20)
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    house.desk.held.set()
    await house.service.settle()
    assert await house.told(caller) == "exit completed"
    assert house.desk.judged == [task]


async def test_a_verification_that_breaks_is_no_verdict(house: House) -> None:
    task = house.task()
    caller = await house.fetched(await house.spawn(task))
    house.desk.script[task] = [GitError("git said no"), True]
    refusal = await house.refused(house.service.report_completed(caller))
    assert (refusal.code, refusal.action) == (ErrorCode.CONFLICT, "retry")
    assert (await house.service.report_completed(caller)).verified


async def test_what_was_written_down_is_there_for_whoever_goes_on(house: House) -> None:
    task = house.task()
    caller = await house.fetched(await house.spawn(task))
    await house.service.save_context(caller, progress="half of it", next_steps="the other half")
    notes = (await house.service.get_my_task(caller)).notes
    assert ("half of it", "the other half") in [(note.progress, note.next_steps) for note in notes]


async def test_a_note_is_never_taken_for_a_phase(house: House) -> None:
    task = house.task()
    caller = await house.fetched(await house.spawn(task))
    await house.service.save_context(caller, progress="workflow:completed")
    assert await house.told(caller) == "create_subtasks"


async def test_help_tells_what_may_be_called_now(house: House) -> None:
    caller = await house.spawn(house.task())
    told = await house.service.help(caller)
    assert set(map(str, told.tools)) >= {"get_my_task", "get_next_action", "logout"}
    assert "assign_task" not in set(map(str, told.tools))
    assert "never" in (await house.service.help(caller, tool="assign_task")).text
    assert await house.code(house.service.help(caller, tool="asign_task")) is ErrorCode.NOT_FOUND


async def test_a_worker_sees_its_task_and_its_steps_and_nothing_else(house: House) -> None:
    other = house.task("Another")
    task = house.task()
    caller = await house.fetched(await house.spawn(task))
    steps = await house.planned(caller, "Cut it", "Glue it")
    listed = await house.service.list_tasks(caller)
    assert [piece.number for piece in listed.tasks] == [task, *steps]
    assert (await house.service.get_task(caller, steps[0])).parent == task
    assert await house.code(house.service.get_task(caller, other)) is ErrorCode.NOT_FOUND


async def test_a_cancelled_task_sends_its_worker_home(house: House) -> None:
    task = house.task()
    caller = await house.fetched(await house.spawn(task))
    assert await house.told(caller) == "create_subtasks"
    house.board.change_status(task, StatusChange(to=TaskStatus.CANCELLED, actor=HUMAN))
    assert await house.told(caller) == "exit cancelled"


async def test_the_steps_of_a_plan_are_no_tasks_for_others(house: House) -> None:
    task = house.task()
    caller = await house.fetched(await house.spawn(task))
    await house.service.create_tasks_batch(caller, drafts("Cut it", "Glue it"))
    assert house.board.ready() == []


async def test_a_step_whose_claimant_hung_up_is_judged_to_the_end(house: House) -> None:
    caller = await house.fetched(await house.spawn(house.task()))
    (step,) = await house.planned(caller, "Cut it", goals=(FILE,))
    await house.service.update_task_status(caller, step, "in_progress")
    house.desk.held = asyncio.Event()
    first = asyncio.create_task(house.service.update_task_status(caller, step, "done"))
    await asyncio.wait_for(house.desk.judging.wait(), 20)
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    second = asyncio.create_task(house.service.update_task_status(caller, step, "done"))
    await until(lambda: house.service.waiting == 1)
    house.desk.held.set()
    assert (await second).done
    assert house.desk.judged == [step]


async def test_what_an_instance_was_told_last_is_known_when_it_has_ended(house: House) -> None:
    task = house.task()
    caller = await house.fetched(await house.spawn(task))
    await house.next(caller)
    await house.service.settle()
    run = house.fleet.sessions(task)[0].run
    await house.runs.leave(run, "its process ended")
    standing = await house.runs.standing(run)
    assert (standing.last_action, standing.calls) == ("create_subtasks", 3)
    assert not any((standing.completed, standing.blocked, standing.parked, standing.refused))


async def test_another_instance_of_a_run_fetches_the_task_anew(house: House) -> None:
    run = house.begin(house.task())
    first = await house.fetched(await house.enter(run))
    assert await house.told(first) == "create_subtasks"
    second = await house.enter(run)
    assert await house.told(second) == "get_task"
    assert await house.code(house.service.create_tasks_batch(second, drafts("Cut it"))) is ErrorCode.OUT_OF_ORDER
    await house.service.get_my_task(second)
    house.restart()
    assert await house.told(second) == "create_subtasks"
