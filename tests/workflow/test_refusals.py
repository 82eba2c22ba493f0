"""Everything that may not be: refused with its code, and nothing was changed."""

import asyncio

from genba.coordination.workflow.answers import Caller
from genba.domain.goals.goal import FileExists
from genba.domain.tasks.task import TaskDraft
from genba.domain.workflow.actions import ErrorCode, SubtaskDraft, WorkflowError
from tests.workflow.context import ORCHESTRATOR, House, block, drafts

FILE = {"type": "file_exists", "path": "tail.txt"}


async def test_nothing_but_fetching_comes_before_the_task_is_fetched(context: House) -> None:
    task = context.task()
    caller = await context.spawn(task)
    service = context.service
    for call in (
        service.create_tasks_batch(caller, drafts("Cut it")),
        service.create_task(caller, SubtaskDraft(title="Cut it")),
        service.update_task_status(caller, task, "in_progress"),
        service.report_completed(caller),
        service.report_blocked(caller, "No."),
    ):
        assert await context.code(call) is ErrorCode.OUT_OF_ORDER


async def test_a_worker_never_assigns(context: House) -> None:
    caller = await context.fetched(await context.spawn(context.task()))
    (step,) = await context.planned(caller, "Cut it")
    assert await context.code(context.service.assign_task(caller, step, "tester")) is ErrorCode.FORBIDDEN
    assert await context.code(context.service.list_workers(caller)) is ErrorCode.FORBIDDEN


async def test_a_manager_never_executes(context: House) -> None:
    task = context.task()
    caller = await context.fetched(await context.manager(task))
    (part,) = await context.planned(caller, "Cut it")
    assert await context.code(context.service.update_task_status(caller, part, "in_progress")) is ErrorCode.OUT_OF_ORDER
    await context.service.assign_task(caller, part, "writer")
    context.begin(part)
    block(context, part)
    for word in ("in_progress", "done", "review"):
        assert await context.code(context.service.update_task_status(caller, part, word)) is ErrorCode.FORBIDDEN
    assert await context.code(context.service.update_task_status(caller, task, "in_progress")) is ErrorCode.FORBIDDEN
    assert await context.code(context.service.report_completed(caller)) is ErrorCode.OUT_OF_ORDER


async def test_a_manager_gives_work_to_workers_that_are_there_and_not_to_itself(context: House) -> None:
    task = context.task()
    caller = await context.fetched(await context.manager(task))
    (part,) = await context.planned(caller, "Cut it")
    for name in ("nobody", "chief", ""):
        assert await context.code(context.service.assign_task(caller, part, name)) is ErrorCode.VALIDATION
    assert await context.code(context.service.assign_task(caller, task, "writer")) is ErrorCode.FORBIDDEN


async def test_done_before_the_goals_pass_is_refused(context: House) -> None:
    task = context.task()
    caller = await context.fetched(await context.spawn(task))
    refusal = await context.refused(context.service.update_task_status(caller, task, "done"))
    assert refusal.code is ErrorCode.OUT_OF_ORDER
    assert "report_completed" in refusal.hint
    (step,) = await context.planned(caller, "Cut it", goals=(FILE,))
    assert await context.code(context.service.update_task_status(caller, step, "done")) is ErrorCode.INVALID_TRANSITION
    assert await context.code(context.service.report_completed(caller)) is ErrorCode.OUT_OF_ORDER


async def test_a_step_goes_no_way_but_its_own(context: House) -> None:
    caller = await context.fetched(await context.spawn(context.task()))
    (step,) = await context.planned(caller, "Cut it")
    for word in ("cancelled", "review", "blocked", "backlog", "open"):
        assert (
            await context.code(context.service.update_task_status(caller, step, word)) is ErrorCode.INVALID_TRANSITION
        )


async def test_one_step_is_in_progress_at_a_time(context: House) -> None:
    caller = await context.fetched(await context.spawn(context.task()))
    first, second = await context.planned(caller, "Cut it", "Glue it")
    await context.service.update_task_status(caller, first, "in_progress")
    refusal = await context.refused(context.service.update_task_status(caller, second, "in_progress"))
    assert refusal.code is ErrorCode.INVALID_TRANSITION
    moved = await context.service.update_task_status(caller, first, "in_progress")
    assert str(moved.task.status) == "in_progress"


async def test_a_step_waits_for_what_it_depends_on(context: House) -> None:
    caller = await context.fetched(await context.spawn(context.task()))
    made = await context.service.create_tasks_batch(
        caller,
        (SubtaskDraft(title="Cut it", local_id="a"), SubtaskDraft(title="Glue it", depends_on=("a",))),
    )
    late = next(piece.number for piece in made.subtasks if piece.title == "Glue it")
    assert (
        await context.code(context.service.update_task_status(caller, late, "in_progress"))
        is ErrorCode.INVALID_TRANSITION
    )


async def test_the_task_of_another_session_is_out_of_reach(context: House) -> None:
    manager = await context.fetched(await context.manager(context.task()))
    first, second = await context.planned(manager, "Cut it", "Glue it")
    await context.service.assign_task(manager, first, "writer")
    await context.service.assign_task(manager, second, "writer")
    worker = await context.fetched(await context.spawn(first))
    service = context.service
    await context.planned(worker, "A step")
    for number in (second, 1):
        assert await context.code(service.get_task(worker, number)) is ErrorCode.FORBIDDEN
        assert await context.code(service.update_task_status(worker, number, "in_progress")) is ErrorCode.FORBIDDEN
        assert await context.code(service.report_blocked(worker, "No.", task_id=number)) is ErrorCode.FORBIDDEN
    assert await context.code(service.send_message(worker, "Hello.", task_id=second)) is ErrorCode.FORBIDDEN


async def test_what_is_not_in_the_tree_does_not_exist_for_a_session(context: House) -> None:
    other = context.task("Another")
    task = context.task()
    caller = await context.fetched(await context.spawn(task))
    await context.planned(caller, "A step")
    for number in (other, 99, -1, 2**62):
        refusals = [
            await context.refused(context.service.get_task(caller, number)),
            await context.refused(context.service.update_task_status(caller, number, "in_progress")),
            await context.refused(context.service.send_message(caller, "Hello.", task_id=number)),
        ]
        assert {refusal.code for refusal in refusals} == {ErrorCode.NOT_FOUND}
        assert {refusal.message for refusal in refusals} == {f"there is no task #{number}"}


async def test_a_second_plan_is_refused_with_the_first_one_shown(context: House) -> None:
    task = context.task()
    caller = await context.fetched(await context.spawn(task))
    numbers = await context.planned(caller, "Cut it", "Glue it")
    refusal = await context.refused(context.service.create_tasks_batch(caller, drafts("Another way")))
    assert refusal.code is ErrorCode.CONFLICT
    assert all(f"#{number}" in refusal.message for number in numbers)


async def test_a_plan_that_is_sent_again_is_the_same_plan(context: House) -> None:
    task = context.task()
    caller = await context.fetched(await context.spawn(task))
    first = await context.service.create_tasks_batch(caller, drafts("Cut it", "Glue it"), key="k1")
    again = await context.service.create_tasks_batch(caller, drafts("Cut it", "Glue it"), key="k1")
    assert again.subtasks == first.subtasks
    refusal = await context.refused(context.service.create_tasks_batch(caller, drafts("Paint it"), key="k1"))
    assert refusal.code is ErrorCode.CONFLICT


WRONG: tuple[tuple[SubtaskDraft, ...], ...] = (
    (SubtaskDraft(title=""),),
    (SubtaskDraft(title="x" * 400),),
    (SubtaskDraft(title="two\nlines"),),
    (SubtaskDraft(title="Cut it", body="x" * 20_001),),
    (SubtaskDraft(title="Cut it", type="test"),),
    (SubtaskDraft(title="Cut it", goals=({"type": "no_such_goal"},)),),
    (SubtaskDraft(title="Cut it", goals=({"type": "tests_kept"},)),),
    (SubtaskDraft(title="Cut it", scope=("../outside",)),),
    (SubtaskDraft(title="Cut it", scope=(".genba/config.yaml",)),),
    (SubtaskDraft(title="Cut it"), SubtaskDraft(title="cut  it")),
    (SubtaskDraft(title="Build a kite"),),
    (SubtaskDraft(title="Cut it", depends_on=("nowhere",)),),
    (
        SubtaskDraft(title="A", local_id="a", depends_on=("b",)),
        SubtaskDraft(title="B", local_id="b", depends_on=("a",)),
    ),
    (SubtaskDraft(title="A", local_id="a"), SubtaskDraft(title="B", local_id="a")),
    (SubtaskDraft(title="Cut it", depends_on=("1",)),),
    (SubtaskDraft(title="Cut \0 it"),),
    (),
)


async def test_a_plan_that_cannot_be_is_refused_whole(context: House) -> None:
    caller = await context.fetched(await context.spawn(context.task()))
    good = SubtaskDraft(title="A good one", local_id="good")
    for wrong in WRONG:
        assert await context.code(context.service.create_tasks_batch(caller, wrong)) is ErrorCode.VALIDATION, wrong
        if wrong:
            whole = context.service.create_tasks_batch(caller, (good, *wrong))
            assert await context.code(whole) is ErrorCode.VALIDATION, wrong


async def test_a_plan_has_no_more_parts_than_allowed(context: House) -> None:
    caller = await context.fetched(await context.spawn(context.task()))
    many = drafts(*(f"Step {number}" for number in range(13)))
    assert await context.code(context.service.create_tasks_batch(caller, many)) is ErrorCode.LIMIT
    await context.service.create_tasks_batch(caller, many[:12])


async def test_texts_are_bounded(context: House) -> None:
    task = context.task()
    caller = await context.fetched(await context.spawn(task))
    service, long = context.service, "x" * 1_000_000
    for call in (
        service.save_context(caller, progress=long),
        service.save_context(caller),
        service.send_message(caller, long),
        service.send_message(caller, " "),
        service.report_blocked(caller, long),
        service.report_blocked(caller, ""),
        service.report_completed(caller, summary=long),
        service.update_task_status(caller, task, "in_progress", reason=long),
        service.update_task_status(caller, task, long),
        service.create_tasks_batch(caller, drafts("Cut it"), key=long),
        service.logout(caller, reason=long),
    ):
        assert await context.code(call) is ErrorCode.VALIDATION


async def test_a_word_that_is_no_status_is_refused(context: House) -> None:
    task = context.task()
    caller = await context.fetched(await context.spawn(task))
    refusal = await context.refused(context.service.update_task_status(caller, task, "finished"))
    assert refusal.code is ErrorCode.VALIDATION
    assert "in_progress" in refusal.hint


async def test_after_its_end_a_session_changes_nothing(context: House) -> None:
    task = context.task()
    caller = await context.fetched(await context.spawn(task))
    assert (await context.service.report_completed(caller)).verified
    service = context.service
    for call in (
        service.create_tasks_batch(caller, drafts("Cut it")),
        service.update_task_status(caller, task, "in_progress"),
        service.report_completed(caller),
        service.report_blocked(caller, "No."),
    ):
        refusal = await context.refused(call)
        assert (refusal.code, refusal.action) == (ErrorCode.OUT_OF_ORDER, "exit")


async def test_every_tool_refuses_one_that_has_no_connection(context: House) -> None:
    task, absent, service = context.task(), Caller(), context.service
    for call in (
        service.get_next_action(absent),
        service.get_my_task(absent),
        service.create_task(absent, SubtaskDraft(title="Cut it")),
        service.create_tasks_batch(absent, drafts("Cut it")),
        service.update_task_status(absent, task, "done"),
        service.assign_task(absent, task, "writer"),
        service.report_completed(absent),
        service.report_blocked(absent, "No."),
        service.save_context(absent, progress="half"),
        service.send_message(absent, "Hello."),
        service.get_messages(absent),
        service.list_tasks(absent),
        service.get_task(absent, task),
        service.list_workers(absent),
        service.help(absent),
        service.logout(absent),
    ):
        refusal = await context.refused(call)
        assert (refusal.code, refusal.action) == (ErrorCode.NOT_AUTHENTICATED, "exit")


async def test_of_two_steps_that_are_begun_at_once_one_begins(context: House) -> None:
    caller = await context.fetched(await context.spawn(context.task()))
    first, second = await context.planned(caller, "Cut it", "Glue it")
    both = await asyncio.gather(
        context.service.update_task_status(caller, first, "in_progress"),
        context.another().update_task_status(caller, second, "in_progress"),
        return_exceptions=True,
    )
    assert sorted(isinstance(one, WorkflowError) for one in both) == [False, True]
    assert sorted((context.status(first), context.status(second))) == ["in_progress", "open"]


async def test_the_review_of_a_task_is_out_of_reach_of_its_author(context: House) -> None:
    number = context.task()
    caller = await context.fetched(await context.spawn(number))
    review = TaskDraft(title="Review", parent=number, review_of=number, review_commit="c1")
    judged = context.board.add(review, ORCHESTRATOR).number

    for call in (
        context.service.get_task(caller, judged),
        context.service.send_message(caller, "Approve it, please.", task_id=judged),
        context.service.report_blocked(caller, "it is in my way", task_id=judged),
    ):
        assert await context.code(call) is ErrorCode.FORBIDDEN


async def test_a_worker_has_nothing_judged_that_is_no_step_of_its_plan(context: House) -> None:
    number = context.task()
    caller = await context.fetched(await context.spawn(number))
    (step,) = await context.planned(caller, "One")
    part = context.task("Part", parent=number, goals=(FileExists(path="x"),))
    context.begin(part, "tester")

    assert await context.code(context.service.update_task_status(caller, part, "done")) is ErrorCode.FORBIDDEN
    assert context.desk.judged == []
    assert context.status(step) == "open"
