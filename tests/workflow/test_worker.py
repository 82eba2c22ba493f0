"""A worker asks, plans, carries out its plan step by step, and is believed when the goals pass."""

import asyncio

from genba.domain.errors import GitError
from genba.domain.tasks.task import StatusChange, TaskStatus
from genba.domain.workflow.actions import ErrorCode, SubtaskDraft, WorkflowError
from tests.workflow.context import HUMAN, House, drafts, until

FILE = {"type": "file_exists", "path": "tail.txt"}


async def test_a_worker_goes_through_the_whole_flow(context: House) -> None:
    task = context.task(body="With a long tail.")
    caller = await context.spawn(task)
    run = context.fleet.sessions(task)[0].run
    assert await context.told(caller) == "get_task"
    brief = await context.service.get_my_task(caller)
    assert (brief.task.title, brief.task.body, brief.branch) == ("Build a kite", "With a long tail.", f"genba/{task}")
    assert brief.path
    assert await context.told(caller) == "create_subtasks"
    made = await context.service.create_tasks_batch(
        caller,
        (
            SubtaskDraft(title="Glue it", local_id="glue", depends_on=("cut",)),
            SubtaskDraft(title="Cut it", local_id="cut"),
        ),
    )
    by_title = {piece.title: piece.number for piece in made.subtasks}
    glue, cut = by_title["Glue it"], by_title["Cut it"]
    for number in (cut, glue):
        assert await context.told(caller) == f"start_subtask #{number}"
        await context.service.update_task_status(caller, number, "in_progress")
        assert await context.told(caller) == f"execute_subtask #{number}"
        moved = await context.service.update_task_status(caller, number, "done")
        assert moved.done
        assert context.status(number) == "done"
    assert await context.told(caller) == "report_completion"
    claimed = await context.service.report_completed(caller, summary="It flies.")
    assert claimed.verified
    assert await context.told(caller) == "exit completed"
    standing = await context.runs.standing(run)
    assert standing.completed
    assert standing.connected
    assert context.status(task) == "in_progress"  # the run hands over, when the instance has ended


async def test_the_instruction_names_the_task_and_the_next_call(context: House) -> None:
    caller = await context.fetched(await context.spawn(context.task()))
    action = await context.next(caller)
    assert "create_tasks_batch" in action.instruction
    assert "get_next_action" in action.instruction


async def test_instructions_are_written_in_the_language_of_the_project(context: House) -> None:
    caller = await context.spawn(context.task())
    context.restart(language="ja")
    action = await context.next(caller)
    assert any("ぁ" <= letter <= "ん" for letter in action.instruction)


async def test_red_goals_are_reworked_with_the_evidence_until_they_pass(context: House) -> None:
    task = context.task()
    caller = await context.fetched(await context.spawn(task))
    context.desk.script[task] = [False, True]
    claimed = await context.service.report_completed(caller)
    assert not claimed.verified
    assert claimed.evidence is not None
    action = await context.next(caller)
    assert action.action == "rework"
    assert action.evidence is not None
    assert action.evidence.task == task
    assert (await context.service.report_completed(caller)).verified
    assert await context.told(caller) == "exit completed"


async def test_a_task_that_needs_no_subtasks_is_carried_out_as_it_is(context: House) -> None:
    task = context.task()
    caller = await context.fetched(await context.spawn(task))
    await context.service.update_task_status(caller, task, "in_progress", reason="atomic")
    assert await context.told(caller) == "execute_subtask"
    assert (await context.service.report_completed(caller)).verified
    assert context.children(task) == []


async def test_a_plan_can_be_made_call_by_call_until_its_first_step_begins(context: House) -> None:
    caller = await context.fetched(await context.spawn(context.task()))
    first = (await context.service.create_task(caller, SubtaskDraft(title="Cut it"))).subtasks[0].number
    second = (
        await context.service.create_task(caller, SubtaskDraft(title="Glue it", depends_on=(str(first),)))
    ).subtasks[0]
    assert second.dependencies == (first,)
    await context.service.update_task_status(caller, first, "in_progress")
    refusal = await context.refused(context.service.create_task(caller, SubtaskDraft(title="Paint it")))
    assert refusal.code is ErrorCode.OUT_OF_ORDER


async def test_a_step_with_goals_is_done_when_they_pass_and_not_before(context: House) -> None:
    task = context.task()
    caller = await context.fetched(await context.spawn(task))
    (step,) = await context.planned(caller, "Cut it", goals=(FILE,))
    context.desk.script[step] = [False, True]
    await context.service.update_task_status(caller, step, "in_progress")
    moved = await context.service.update_task_status(caller, step, "done")
    assert not moved.done
    assert moved.evidence is not None
    assert context.status(step) == "in_progress"
    assert await context.told(caller) == f"rework #{step}"
    assert (await context.service.update_task_status(caller, step, "done")).done
    assert context.status(step) == "done"
    assert await context.told(caller) == "report_completion"


async def test_after_too_many_red_claims_the_session_has_failed(context: House) -> None:
    context.restart(max_reworks=2)
    task = context.task()
    caller = await context.fetched(await context.spawn(task))
    run = context.fleet.sessions(task)[0].run
    context.desk.script[task] = [False, False]
    await context.service.report_completed(caller)
    assert await context.told(caller) == "rework"
    await context.service.report_completed(caller)
    assert await context.told(caller) == "exit no_progress"
    assert (await context.runs.standing(run)).refused
    assert await context.code(context.service.report_completed(caller)) is ErrorCode.OUT_OF_ORDER


async def test_a_worker_that_cannot_go_on_is_sent_home_with_its_reason(context: House) -> None:
    task = context.task()
    caller = await context.fetched(await context.spawn(task))
    run = context.fleet.sessions(task)[0].run
    await context.service.report_blocked(caller, "Which colour?")
    assert await context.told(caller) == "exit blocked"
    assert (await context.runs.standing(run)).blocked == "Which colour?"
    assert context.status(task) == "in_progress"  # its run asks the person


async def test_a_worker_blocked_in_a_step_blocks_its_task(context: House) -> None:
    caller = await context.fetched(await context.spawn(context.task()))
    (step,) = await context.planned(caller, "Cut it")
    await context.service.update_task_status(caller, step, "in_progress")
    result = await context.service.report_blocked(caller, "No scissors.", task_id=step)
    assert result.reason == f"subtask #{step}: No scissors."


async def test_an_agent_that_asks_again_and_again_is_warned_and_then_stopped(context: House) -> None:
    context.restart(max_repeats=6)
    task = context.task()
    caller = await context.fetched(await context.spawn(task))
    asked = [await context.next(caller) for _ in range(7)]
    assert [bool(action.warning) for action in asked] == [False, False, False, True, True, True, False]
    assert [str(action.action) for action in asked] == ["create_subtasks"] * 6 + ["exit"]
    assert asked[-1].reason == "no_progress"
    run = context.fleet.sessions(task)[0].run
    assert (await context.runs.standing(run)).refused


async def test_a_change_makes_the_count_begin_again(context: House) -> None:
    context.restart(max_repeats=6)
    caller = await context.fetched(await context.spawn(context.task()))
    for _ in range(5):
        await context.next(caller)
    await context.planned(caller, "Cut it")
    assert (await context.next(caller)).warning == ""


async def test_the_same_answer_is_the_same_object_while_nothing_changes(context: House) -> None:
    caller = await context.fetched(await context.spawn(context.task()))
    first = await context.next(caller)
    assert await context.next(caller) is first
    context.task("Something else")
    assert (await context.next(caller)).action is first.action


async def test_two_claims_at_once_are_one_verification(context: House) -> None:
    task = context.task()
    caller = await context.fetched(await context.spawn(task))
    context.desk.held = asyncio.Event()
    first = asyncio.create_task(context.service.report_completed(caller))
    await asyncio.wait_for(context.desk.judging.wait(), 20)
    second = asyncio.create_task(context.service.report_completed(caller))
    await until(lambda: context.service.waiting == 2)
    context.desk.held.set()
    assert await first == await second
    assert context.desk.judged == [task]


async def test_a_few_calls_wait_for_one_claim_and_more_are_refused(context: House) -> None:
    task = context.task()
    caller = await context.fetched(await context.spawn(task))
    context.desk.held = asyncio.Event()
    calls = [asyncio.create_task(context.service.report_completed(caller)) for _ in range(20)]
    await until(lambda: sum(call.done() for call in calls) == 12)
    context.desk.held.set()
    result = await asyncio.gather(*calls, return_exceptions=True)
    refused = [one for one in result if isinstance(one, WorkflowError)]
    assert {one.code for one in refused} == {ErrorCode.LIMIT}
    assert len(refused) == 12
    assert context.desk.judged == [task]
    assert context.service.waiting == 0


async def test_a_client_that_hangs_up_finds_the_verification_made(context: House) -> None:
    task = context.task()
    caller = await context.fetched(await context.spawn(task))
    context.desk.held = asyncio.Event()
    first = asyncio.create_task(context.service.report_completed(caller))
    await asyncio.wait_for(context.desk.judging.wait(), 20)
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    context.desk.held.set()
    await context.service.settle()
    assert await context.told(caller) == "exit completed"
    assert context.desk.judged == [task]


async def test_a_verification_that_breaks_is_no_verdict(context: House) -> None:
    task = context.task()
    caller = await context.fetched(await context.spawn(task))
    context.desk.script[task] = [GitError("git said no"), True]
    refusal = await context.refused(context.service.report_completed(caller))
    assert (refusal.code, refusal.action) == (ErrorCode.CONFLICT, "retry")
    assert (await context.service.report_completed(caller)).verified


async def test_the_journal_is_there_for_the_next_session(context: House) -> None:
    task = context.task()
    caller = await context.fetched(await context.spawn(task))
    await context.service.save_context(caller, progress="half of it", next_steps="the other half")
    notes = (await context.service.get_my_task(caller)).notes
    assert ("half of it", "the other half") in [(note.progress, note.next_steps) for note in notes]


async def test_a_note_is_never_taken_for_a_phase(context: House) -> None:
    task = context.task()
    caller = await context.fetched(await context.spawn(task))
    await context.service.save_context(caller, progress="workflow:completed")
    assert await context.told(caller) == "create_subtasks"


async def test_help_tells_what_may_be_called_now(context: House) -> None:
    caller = await context.spawn(context.task())
    result = await context.service.help(caller)
    assert set(map(str, result.tools)) >= {"get_my_task", "get_next_action", "logout"}
    assert "assign_task" not in set(map(str, result.tools))
    assert "never" in (await context.service.help(caller, tool="assign_task")).text
    assert await context.code(context.service.help(caller, tool="asign_task")) is ErrorCode.NOT_FOUND


async def test_a_worker_sees_its_task_and_its_steps_and_nothing_else(context: House) -> None:
    other = context.task("Another")
    task = context.task()
    caller = await context.fetched(await context.spawn(task))
    steps = await context.planned(caller, "Cut it", "Glue it")
    listed = await context.service.list_tasks(caller)
    assert [piece.number for piece in listed.tasks] == [task, *steps]
    assert (await context.service.get_task(caller, steps[0])).parent == task
    assert await context.code(context.service.get_task(caller, other)) is ErrorCode.NOT_FOUND


async def test_a_cancelled_task_sends_its_worker_home(context: House) -> None:
    task = context.task()
    caller = await context.fetched(await context.spawn(task))
    assert await context.told(caller) == "create_subtasks"
    context.board.change_status(task, StatusChange(to=TaskStatus.CANCELLED, actor=HUMAN))
    assert await context.told(caller) == "exit cancelled"


async def test_the_steps_of_a_plan_are_no_tasks_for_others(context: House) -> None:
    task = context.task()
    caller = await context.fetched(await context.spawn(task))
    await context.service.create_tasks_batch(caller, drafts("Cut it", "Glue it"))
    assert context.board.ready() == []


async def test_a_step_whose_claimant_hung_up_is_judged_to_the_end(context: House) -> None:
    caller = await context.fetched(await context.spawn(context.task()))
    (step,) = await context.planned(caller, "Cut it", goals=(FILE,))
    await context.service.update_task_status(caller, step, "in_progress")
    context.desk.held = asyncio.Event()
    first = asyncio.create_task(context.service.update_task_status(caller, step, "done"))
    await asyncio.wait_for(context.desk.judging.wait(), 20)
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    second = asyncio.create_task(context.service.update_task_status(caller, step, "done"))
    await until(lambda: context.service.waiting == 1)
    context.desk.held.set()
    assert (await second).done
    assert context.desk.judged == [step]


async def test_the_last_prompt_of_an_instance_is_known_when_it_has_ended(context: House) -> None:
    task = context.task()
    caller = await context.fetched(await context.spawn(task))
    await context.next(caller)
    await context.service.settle()
    run = context.fleet.sessions(task)[0].run
    await context.runs.leave(run, "its process ended")
    standing = await context.runs.standing(run)
    assert (standing.last_action, standing.calls) == ("create_subtasks", 3)
    assert not any((standing.completed, standing.blocked, standing.suspended, standing.refused))


async def test_another_instance_of_a_run_fetches_the_task_again(context: House) -> None:
    run = context.begin(context.task())
    first = await context.fetched(await context.enter(run))
    assert await context.told(first) == "create_subtasks"
    second = await context.enter(run)
    assert await context.told(second) == "get_task"
    assert await context.code(context.service.create_tasks_batch(second, drafts("Cut it"))) is ErrorCode.OUT_OF_ORDER
    await context.service.get_my_task(second)
    context.restart()
    assert await context.told(second) == "create_subtasks"
