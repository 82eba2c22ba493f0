"""Making subtasks: all of them or none, once for each key, within limits."""

import threading
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from genba.blackboard.fleet.fleet_board import FleetBoard
from genba.blackboard.tasks.board import Blackboard
from genba.blackboard.workflow.connection_values import PlannedAlreadyError, WorkflowLimits
from genba.blackboard.workflow.workflow_board import WorkflowBoard
from genba.domain.errors import GenbaError, StateConflictError
from genba.domain.fleet.records import Purpose
from genba.domain.goals.goal import FileExists
from genba.domain.tasks.task import Priority, TaskDraft, TaskStatus
from genba.domain.workflow.actions import ErrorCode, SubtaskDraft, SubtaskView, WorkflowError
from tests.blackboard.acting import HUMAN, MANAGER, WORKER, add, cancel, everything, start
from tests.blackboard.connecting import at_work


@pytest.fixture
def workflow(board: Blackboard) -> WorkflowBoard:
    return WorkflowBoard(board)


def draft(title: str, local_id: str = "", *on: str, **more: Any) -> SubtaskDraft:
    return SubtaskDraft(title=title, local_id=local_id, depends_on=on, **more)


def plan(workflow: WorkflowBoard, parent: int, *drafts: SubtaskDraft, **more: Any) -> tuple[SubtaskView, ...]:
    """Steps of a worker's own plan."""
    return workflow.create_subtasks(parent, drafts, in_plan=True, actor=WORKER, **more)


def refusal_of(board: Blackboard, act: Callable[[], object]) -> GenbaError:
    before = everything(board)
    with pytest.raises(GenbaError) as caught:
        act()
    assert everything(board) == before
    return caught.value


def test_a_plan_is_made_as_a_whole_in_an_order_that_can_be_carried_out(
    board: Blackboard, workflow: WorkflowBoard
) -> None:
    session, _ = at_work(board)
    last, first, second = plan(
        workflow,
        session.task,
        draft("Ship it", "c", "a", "b"),
        draft("Read", "a", priority=Priority.HIGH, body="All of it."),
        draft("Write", "b", "a", goals=({"type": "file_exists", "path": "x.py"},), scope=("x.py",)),
        run=session.run,
    )
    assert [first.number, second.number, last.number] == sorted((first.number, second.number, last.number))
    assert last.dependencies == (first.number, second.number)
    assert (first.priority, first.body, first.status) == (Priority.HIGH, "All of it.", TaskStatus.OPEN)
    assert (second.goals, second.scope) == (("file_exists: x.py",), ("x.py",))
    task = board.get(second.number)
    assert (task.in_plan, task.parent, task.goals) == (True, session.task, (FileExists(path="x.py"),))
    assert workflow.pieces(session.task) == (first, second, last)
    assert board.events(session.task)[-1].kind == "parts_created"


def test_the_same_key_makes_the_same_subtasks_and_another_request_is_refused(
    board: Blackboard, workflow: WorkflowBoard
) -> None:
    session, _ = at_work(board)
    made = plan(workflow, session.task, draft("One"), draft("Two"), key="k")
    assert plan(workflow, session.task, draft("One"), draft("Two"), key="k") == made
    error = refusal_of(board, lambda: plan(workflow, session.task, draft("Three"), key="k", more=True))
    assert isinstance(error, StateConflictError)
    assert "another request" in error.message
    workflow.start_step(session.task, made[0].number, run=session.run, actor=WORKER)
    again = plan(workflow, session.task, draft("One"), draft("Two"), key="k")
    assert [one.number for one in again] == [one.number for one in made]
    assert again[0].status is TaskStatus.IN_PROGRESS


def test_of_many_who_send_one_key_at_once_one_set_is_made(
    board: Blackboard, open_board: Callable[..., Blackboard]
) -> None:
    session, _ = at_work(board)
    others, line = [WorkflowBoard(open_board()) for _ in range(4)], threading.Barrier(4)
    found: list[tuple[int, ...]] = []

    def send(other: WorkflowBoard) -> None:
        line.wait()
        made = plan(other, session.task, draft("One", "a"), draft("Two", "b", "a"), key="k", run=session.run)
        found.append(tuple(one.number for one in made))

    threads = [threading.Thread(target=send, args=(other,)) for other in others]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    assert len(set(found)) == 1
    assert board.get(session.task).children == found[0]


def test_a_task_has_one_plan_unless_there_may_be_more(board: Blackboard, workflow: WorkflowBoard) -> None:
    session, _ = at_work(board)
    one, two = plan(workflow, session.task, draft("One"), draft("Two"), key="first")
    error = refusal_of(board, lambda: plan(workflow, session.task, draft("Other"), key="second"))
    assert isinstance(error, PlannedAlreadyError)
    assert error.numbers == (one.number, two.number)
    (three,) = plan(workflow, session.task, draft("Three", "", f"#{one.number}", str(two.number)), more=True)
    assert three.dependencies == (one.number, two.number)

    for number in (one.number, two.number, three.number):
        cancel(board, number)
    (anew,) = plan(workflow, session.task, draft("One"))
    assert anew.number > three.number


def test_every_problem_of_a_request_is_reported_at_once(board: Blackboard, workflow: WorkflowBoard) -> None:
    session, _ = at_work(board)
    (there,) = plan(workflow, session.task, draft("There"))
    cancel(board, there.number)
    plan(workflow, session.task, draft("Kept"))
    error = refusal_of(
        board,
        lambda: plan(
            workflow,
            session.task,
            draft("  kept "),
            draft("Twin", "a"),
            draft("twin", "a"),
            draft("", "b"),
            draft("Lost", "c", "nowhere", "99999999999999999999", str(there.number)),
            draft("Aims", "d", goals=({"type": "no_such_goal"}, {"type": "file_exists"})),
            draft("N\0l"),
            more=True,
        ),
    )
    assert isinstance(error, WorkflowError)
    assert error.code is ErrorCode.VALIDATION
    for words in (
        "'  kept ' is there already: #",
        "'twin' is there already: in this request",
        "two have the local id 'a'",
        "its title is empty",
        "depends on 'nowhere'",
        "depends on '99999999999999999999'",
        "which was cancelled",
        "no_such_goal",
        "`path`",
        "NUL",
    ):
        assert words in error.message, words


def test_subtasks_that_wait_for_each_other_are_refused_with_the_circle(
    board: Blackboard, workflow: WorkflowBoard
) -> None:
    session, _ = at_work(board)
    for drafts, circle in (
        ((draft("A", "a", "b"), draft("B", "b", "c"), draft("C", "c", "b"), draft("D", "d")), "b → c → b"),
        ((draft("A", "a", "a"),), "a → a"),
    ):
        error = refusal_of(board, partial(plan, workflow, session.task, *drafts))
        assert circle in error.message
    nothing = refusal_of(board, lambda: plan(workflow, session.task))
    assert "there is no subtask" in nothing.message


def test_parts_are_bounded_in_number_and_depth_and_steps_only_in_number(
    board: Blackboard, workflow: WorkflowBoard
) -> None:
    top = add(board)
    middle = add(board, "Middle", top)
    low, _ = at_work(board, task=add(board, "Low", middle))
    limits = WorkflowLimits(max_subtasks=2, max_depth=2)
    many = [draft(f"Part {at}") for at in range(3)]

    def parts(parent: int, *drafts: SubtaskDraft, **more: Any) -> tuple[SubtaskView, ...]:
        return workflow.create_subtasks(parent, drafts, in_plan=False, actor=MANAGER, limits=limits, **more)

    for act in (lambda: parts(middle, *many, more=True), lambda: parts(low.task, many[0])):
        error = refusal_of(board, act)
        assert isinstance(error, WorkflowError)
        assert error.code is ErrorCode.LIMIT
    made = parts(top, draft("Part", assignee="painter"), more=True)
    assert (made[0].status, made[0].assignee) == (TaskStatus.BACKLOG, "painter")
    assert not board.get(made[0].number).in_plan
    assert "at most 2" in refusal_of(board, lambda: parts(top, draft("Other"), more=True)).message
    assert len(plan(workflow, low.task, *many[:2], limits=limits)) == 2
    error = refusal_of(board, lambda: plan(workflow, low.task, many[2], limits=limits, more=True))
    assert "at most 2 subtasks, and it has 2" in error.message


def test_parts_are_reviewed_like_others_of_their_type_and_steps_are_not(
    board: Blackboard, workflow: WorkflowBoard
) -> None:
    session, _ = at_work(board, Purpose.MANAGE)
    reviewed = {"bug": "ai"}
    (part,) = workflow.create_subtasks(
        session.task, [draft("Fix", type="bug")], in_plan=False, actor=MANAGER, reviewed=reviewed
    )
    (step,) = plan(workflow, session.task, draft("Move", type="bug"), reviewed=reviewed)
    assert (board.get(part.number).requires_review, board.get(part.number).reviewer_type) == (True, "ai")
    assert not board.get(step.number).requires_review


def test_nothing_is_made_below_what_has_ended_nor_below_a_step(board: Blackboard, workflow: WorkflowBoard) -> None:
    session, _ = at_work(board)
    (step,) = plan(workflow, session.task, draft("Step"))
    assert "a step itself" in refusal_of(board, lambda: plan(workflow, step.number, draft("Below"))).message
    cancel(board, session.task)
    assert "is cancelled" in refusal_of(board, lambda: plan(workflow, session.task, draft("X"), more=True)).message


def test_the_fleet_does_not_see_the_steps_of_a_plan(board: Blackboard, workflow: WorkflowBoard) -> None:
    fleet = FleetBoard(board)
    fleet.field()
    session, _ = at_work(board)
    one, two = plan(workflow, session.task, draft("One", "a"), draft("Two", "b", "a"))
    other = board.add(TaskDraft(title="Waits for a step", dependencies=(one.number,)), HUMAN).number
    for view in (fleet.field(), FleetBoard(board).field()):
        assert view.tasks[session.task].children == ()
        assert two.number not in view.tasks
        assert view.ready == ()
        assert view.tasks[one.number].in_plan
        assert other in view.tasks
    assert board.ready() == []
    assert board.get(session.task).children == (one.number, two.number)
    assert workflow.below(session.task) == {one.number, two.number}


def test_open_steps_do_not_keep_a_task_from_being_started_again(board: Blackboard, workflow: WorkflowBoard) -> None:
    number = add(board)
    plan(workflow, number, draft("One"))
    assert [task.number for task in board.ready()] == [number]
    assert FleetBoard(board).field().ready == (number,)
    start(board, number)
