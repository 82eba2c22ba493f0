"""Everything that may not be: refused with its code, and nothing was changed."""

import asyncio

from genba.coordination.workflow.answers import Caller
from genba.domain.goals.goal import FileExists
from genba.domain.tasks.task import TaskDraft
from genba.domain.workflow.actions import ErrorCode, SubtaskDraft, WorkflowError
from tests.workflow.house import ORCHESTRATOR, House, block, drafts

FILE = {"type": "file_exists", "path": "tail.txt"}


async def test_nothing_but_fetching_comes_before_the_task_is_fetched(house: House) -> None:
    task = house.task()
    caller = await house.spawn(task)
    service = house.service
    for call in (
        service.create_tasks_batch(caller, drafts("Cut it")),
        service.create_task(caller, SubtaskDraft(title="Cut it")),
        service.update_task_status(caller, task, "in_progress"),
        service.report_completed(caller),
        service.report_blocked(caller, "No."),
    ):
        assert await house.code(call) is ErrorCode.OUT_OF_ORDER


async def test_a_worker_never_assigns(house: House) -> None:
    caller = await house.fetched(await house.spawn(house.task()))
    (step,) = await house.planned(caller, "Cut it")
    assert await house.code(house.service.assign_task(caller, step, "tester")) is ErrorCode.FORBIDDEN
    assert await house.code(house.service.list_workers(caller)) is ErrorCode.FORBIDDEN


async def test_a_manager_never_executes(house: House) -> None:
    task = house.task()
    caller = await house.fetched(await house.manager(task))
    (part,) = await house.planned(caller, "Cut it")
    assert await house.code(house.service.update_task_status(caller, part, "in_progress")) is ErrorCode.OUT_OF_ORDER
    await house.service.assign_task(caller, part, "writer")
    house.begin(part)
    block(house, part)
    for word in ("in_progress", "done", "review"):
        assert await house.code(house.service.update_task_status(caller, part, word)) is ErrorCode.FORBIDDEN
    assert await house.code(house.service.update_task_status(caller, task, "in_progress")) is ErrorCode.FORBIDDEN
    assert await house.code(house.service.report_completed(caller)) is ErrorCode.OUT_OF_ORDER


async def test_a_manager_gives_work_to_workers_that_are_there_and_not_to_itself(house: House) -> None:
    task = house.task()
    caller = await house.fetched(await house.manager(task))
    (part,) = await house.planned(caller, "Cut it")
    for name in ("nobody", "chief", ""):
        assert await house.code(house.service.assign_task(caller, part, name)) is ErrorCode.VALIDATION
    assert await house.code(house.service.assign_task(caller, task, "writer")) is ErrorCode.FORBIDDEN


async def test_done_before_the_goals_pass_is_refused(house: House) -> None:
    task = house.task()
    caller = await house.fetched(await house.spawn(task))
    refusal = await house.refused(house.service.update_task_status(caller, task, "done"))
    assert refusal.code is ErrorCode.OUT_OF_ORDER
    assert "report_completed" in refusal.hint
    (step,) = await house.planned(caller, "Cut it", goals=(FILE,))
    assert await house.code(house.service.update_task_status(caller, step, "done")) is ErrorCode.INVALID_TRANSITION
    assert await house.code(house.service.report_completed(caller)) is ErrorCode.OUT_OF_ORDER


async def test_a_step_goes_no_way_but_its_own(house: House) -> None:
    caller = await house.fetched(await house.spawn(house.task()))
    (step,) = await house.planned(caller, "Cut it")
    for word in ("cancelled", "review", "blocked", "backlog", "open"):
        assert await house.code(house.service.update_task_status(caller, step, word)) is ErrorCode.INVALID_TRANSITION


async def test_one_step_is_in_progress_at_a_time(house: House) -> None:
    caller = await house.fetched(await house.spawn(house.task()))
    first, second = await house.planned(caller, "Cut it", "Glue it")
    await house.service.update_task_status(caller, first, "in_progress")
    refusal = await house.refused(house.service.update_task_status(caller, second, "in_progress"))
    assert refusal.code is ErrorCode.INVALID_TRANSITION
    moved = await house.service.update_task_status(caller, first, "in_progress")
    assert str(moved.task.status) == "in_progress"


async def test_a_step_waits_for_what_it_depends_on(house: House) -> None:
    caller = await house.fetched(await house.spawn(house.task()))
    made = await house.service.create_tasks_batch(
        caller,
        (SubtaskDraft(title="Cut it", local_id="a"), SubtaskDraft(title="Glue it", depends_on=("a",))),
    )
    late = next(piece.number for piece in made.subtasks if piece.title == "Glue it")
    assert (
        await house.code(house.service.update_task_status(caller, late, "in_progress")) is ErrorCode.INVALID_TRANSITION
    )


async def test_the_task_of_another_session_is_out_of_reach(house: House) -> None:
    manager = await house.fetched(await house.manager(house.task()))
    first, second = await house.planned(manager, "Cut it", "Glue it")
    await house.service.assign_task(manager, first, "writer")
    await house.service.assign_task(manager, second, "writer")
    worker = await house.fetched(await house.spawn(first))
    service = house.service
    await house.planned(worker, "A step")
    for number in (second, 1):
        assert await house.code(service.get_task(worker, number)) is ErrorCode.FORBIDDEN
        assert await house.code(service.update_task_status(worker, number, "in_progress")) is ErrorCode.FORBIDDEN
        assert await house.code(service.report_blocked(worker, "No.", task_id=number)) is ErrorCode.FORBIDDEN
    assert await house.code(service.send_message(worker, "Hello.", task_id=second)) is ErrorCode.FORBIDDEN


async def test_what_is_not_in_the_tree_does_not_exist_for_a_session(house: House) -> None:
    other = house.task("Another")
    task = house.task()
    caller = await house.fetched(await house.spawn(task))
    await house.planned(caller, "A step")
    for number in (other, 99, -1, 2**62):
        refusals = [
            await house.refused(house.service.get_task(caller, number)),
            await house.refused(house.service.update_task_status(caller, number, "in_progress")),
            await house.refused(house.service.send_message(caller, "Hello.", task_id=number)),
        ]
        assert {refusal.code for refusal in refusals} == {ErrorCode.NOT_FOUND}
        assert {refusal.message for refusal in refusals} == {f"there is no task #{number}"}


async def test_a_second_plan_is_refused_with_the_first_one_shown(house: House) -> None:
    task = house.task()
    caller = await house.fetched(await house.spawn(task))
    numbers = await house.planned(caller, "Cut it", "Glue it")
    refusal = await house.refused(house.service.create_tasks_batch(caller, drafts("Another way")))
    assert refusal.code is ErrorCode.CONFLICT
    assert all(f"#{number}" in refusal.message for number in numbers)


async def test_a_plan_that_is_sent_again_is_the_same_plan(house: House) -> None:
    task = house.task()
    caller = await house.fetched(await house.spawn(task))
    first = await house.service.create_tasks_batch(caller, drafts("Cut it", "Glue it"), key="k1")
    again = await house.service.create_tasks_batch(caller, drafts("Cut it", "Glue it"), key="k1")
    assert again.subtasks == first.subtasks
    refusal = await house.refused(house.service.create_tasks_batch(caller, drafts("Paint it"), key="k1"))
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


async def test_a_plan_that_cannot_be_is_refused_whole(house: House) -> None:
    caller = await house.fetched(await house.spawn(house.task()))
    good = SubtaskDraft(title="A good one", local_id="good")
    for wrong in WRONG:
        assert await house.code(house.service.create_tasks_batch(caller, wrong)) is ErrorCode.VALIDATION, wrong
        if wrong:
            whole = house.service.create_tasks_batch(caller, (good, *wrong))
            assert await house.code(whole) is ErrorCode.VALIDATION, wrong


async def test_a_plan_has_no_more_parts_than_allowed(house: House) -> None:
    caller = await house.fetched(await house.spawn(house.task()))
    many = drafts(*(f"Step {number}" for number in range(13)))
    assert await house.code(house.service.create_tasks_batch(caller, many)) is ErrorCode.LIMIT
    await house.service.create_tasks_batch(caller, many[:12])


async def test_texts_are_bounded(house: House) -> None:
    task = house.task()
    caller = await house.fetched(await house.spawn(task))
    service, long = house.service, "x" * 1_000_000
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
        assert await house.code(call) is ErrorCode.VALIDATION


async def test_a_word_that_is_no_status_is_refused(house: House) -> None:
    task = house.task()
    caller = await house.fetched(await house.spawn(task))
    refusal = await house.refused(house.service.update_task_status(caller, task, "finished"))
    assert refusal.code is ErrorCode.VALIDATION
    assert "in_progress" in refusal.hint


async def test_after_its_end_a_session_changes_nothing(house: House) -> None:
    task = house.task()
    caller = await house.fetched(await house.spawn(task))
    assert (await house.service.report_completed(caller)).verified
    service = house.service
    for call in (
        service.create_tasks_batch(caller, drafts("Cut it")),
        service.update_task_status(caller, task, "in_progress"),
        service.report_completed(caller),
        service.report_blocked(caller, "No."),
    ):
        refusal = await house.refused(call)
        assert (refusal.code, refusal.action) == (ErrorCode.OUT_OF_ORDER, "exit")


async def test_every_tool_refuses_whoever_has_no_seat(house: House) -> None:
    task, nobody, service = house.task(), Caller(), house.service
    for call in (
        service.get_next_action(nobody),
        service.get_my_task(nobody),
        service.create_task(nobody, SubtaskDraft(title="Cut it")),
        service.create_tasks_batch(nobody, drafts("Cut it")),
        service.update_task_status(nobody, task, "done"),
        service.assign_task(nobody, task, "writer"),
        service.report_completed(nobody),
        service.report_blocked(nobody, "No."),
        service.save_context(nobody, progress="half"),
        service.send_message(nobody, "Hello."),
        service.get_messages(nobody),
        service.list_tasks(nobody),
        service.get_task(nobody, task),
        service.list_workers(nobody),
        service.help(nobody),
        service.logout(nobody),
    ):
        refusal = await house.refused(call)
        assert (refusal.code, refusal.action) == (ErrorCode.NOT_AUTHENTICATED, "exit")


async def test_of_two_steps_that_are_begun_at_once_one_begins(house: House) -> None:
    caller = await house.fetched(await house.spawn(house.task()))
    first, second = await house.planned(caller, "Cut it", "Glue it")
    both = await asyncio.gather(
        house.service.update_task_status(caller, first, "in_progress"),
        house.another().update_task_status(caller, second, "in_progress"),
        return_exceptions=True,
    )
    assert sorted(isinstance(one, WorkflowError) for one in both) == [False, True]
    assert sorted((house.status(first), house.status(second))) == ["in_progress", "open"]


async def test_the_review_of_a_task_is_out_of_reach_of_whoever_made_the_work(house: House) -> None:
    number = house.task()
    caller = await house.fetched(await house.spawn(number))
    review = TaskDraft(title="Review", parent=number, review_of=number, review_commit="c1")
    judged = house.board.add(review, ORCHESTRATOR).number

    for call in (
        house.service.get_task(caller, judged),
        house.service.send_message(caller, "Approve it, please.", task_id=judged),
        house.service.report_blocked(caller, "it is in my way", task_id=judged),
    ):
        assert await house.code(call) is ErrorCode.FORBIDDEN


async def test_a_worker_has_nothing_judged_that_is_no_step_of_its_plan(house: House) -> None:
    number = house.task()
    caller = await house.fetched(await house.spawn(number))
    (step,) = await house.planned(caller, "One")
    part = house.task("Part", parent=number, goals=(FileExists(path="x"),))
    house.begin(part, "tester")

    assert await house.code(house.service.update_task_status(caller, part, "done")) is ErrorCode.FORBIDDEN
    assert house.desk.judged == []
    assert house.status(step) == "open"
