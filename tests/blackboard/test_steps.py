"""Steps that a worker begins and ends, and parts that a manager gives away, gives up or gives to a person."""

from collections.abc import Callable
from functools import partial

import pytest

from genba.blackboard.fleet.fleet_board import FleetBoard
from genba.blackboard.tasks.board import Blackboard
from genba.blackboard.workflow.workflow_board import WorkflowBoard
from genba.domain.errors import GenbaError, NotFoundError, StateConflictError
from genba.domain.fleet.records import Escalation, EscalationKind, FleetSession, Purpose, SegmentEnd, WaitsFor
from genba.domain.goals.verification import VerdictStatus
from genba.domain.sessions.session import SessionStart
from genba.domain.tasks.task import Blocker, BlockerKind, StatusChange, TaskDraft, TaskStatus
from genba.domain.workflow.actions import SubtaskDraft
from genba.testing.conformance import a_verification
from tests.blackboard.acting import HUMAN, MANAGER, ORCHESTRATOR, WORKER, everything, finish, statuses
from tests.blackboard.connecting import at_work
from tests.blackboard.fleets import begin, fail

GOAL = {"type": "file_exists", "path": "x"}


@pytest.fixture
def workflow(board: Blackboard) -> WorkflowBoard:
    return WorkflowBoard(board)


@pytest.fixture
def fleet(board: Blackboard) -> FleetBoard:
    return FleetBoard(board)


def refusal_of(board: Blackboard, act: Callable[[], object]) -> GenbaError:
    before = everything(board)
    with pytest.raises(GenbaError) as caught:
        act()
    assert everything(board) == before
    return caught.value


def planned(board: Blackboard, workflow: WorkflowBoard) -> tuple[FleetSession, int, int]:
    session, _ = at_work(board)
    drafts = (
        SubtaskDraft(title="One", local_id="a"),
        SubtaskDraft(title="Two", local_id="b", depends_on=("a",), goals=(GOAL,)),
    )
    one, two = workflow.create_subtasks(session.task, drafts, in_plan=True, actor=WORKER)
    return session, one.number, two.number


def managed(board: Blackboard, workflow: WorkflowBoard) -> tuple[FleetSession, int]:
    session, _ = at_work(board, Purpose.MANAGE)
    (part,) = workflow.create_subtasks(session.task, [SubtaskDraft(title="Part")], in_plan=False, actor=MANAGER)
    return session, part.number


def test_steps_are_made_one_after_the_other_and_the_task_is_judged_as_a_whole(
    board: Blackboard, workflow: WorkflowBoard
) -> None:
    session, one, two = planned(board, workflow)
    run, task = session.run, session.task
    assert "depends on" in refusal_of(board, lambda: workflow.start_step(task, two, run=run, actor=WORKER)).message
    for _ in range(2):
        assert workflow.start_step(task, one, run=run, actor=WORKER).status is TaskStatus.IN_PROGRESS
    for _ in range(2):
        assert workflow.finish_step(task, one, run=run, actor=WORKER).status is TaskStatus.DONE
    workflow.start_step(task, two, run=run, actor=WORKER)

    for commit in ("", "c1"):
        refusal_of(board, partial(workflow.finish_step, task, two, run=run, actor=WORKER, commit=commit))
    board.record_verification(two, run, a_verification("c1", VerdictStatus.REJECTED))
    refusal_of(board, lambda: workflow.finish_step(task, two, run=run, actor=WORKER, commit="c1"))
    board.record_verification(task, run, a_verification("c1"))
    to_review = StatusChange(to=TaskStatus.REVIEW, actor=ORCHESTRATOR, commit="c1")
    assert "before its parts have ended" in refusal_of(board, lambda: board.change_status(task, to_review)).message

    board.record_verification(two, run, a_verification("c1"))
    assert workflow.finish_step(task, two, run=run, actor=WORKER, commit="c1").status is TaskStatus.DONE
    board.change_status(task, to_review)
    assert finish(board, task).status is TaskStatus.DONE


def test_one_step_is_in_progress_at_a_time(board: Blackboard, workflow: WorkflowBoard) -> None:
    session, one, _ = planned(board, workflow)
    (three,) = workflow.create_subtasks(
        session.task, [SubtaskDraft(title="Three")], in_plan=True, actor=WORKER, more=True
    )
    workflow.start_step(session.task, one, run=session.run, actor=WORKER)
    error = refusal_of(board, lambda: workflow.start_step(session.task, three.number, run=session.run, actor=WORKER))
    assert f"#{one} is in progress" in error.message


def test_a_step_is_moved_only_by_the_run_that_works_on_its_task(board: Blackboard, workflow: WorkflowBoard) -> None:
    session, one, _ = planned(board, workflow)
    other, _ = at_work(board)
    for parent, number, run in (
        (session.task, one, other.run),
        (session.task, one, "no-such-run"),
        (other.task, one, other.run),
        (session.task, other.task, session.run),
    ):
        with pytest.raises((StateConflictError, NotFoundError)):
            workflow.start_step(parent, number, run=run, actor=WORKER)
    FleetBoard(board).end_part(SegmentEnd(run=session.run, part=1, outcome="failed"))
    with pytest.raises(StateConflictError, match="does not work on"):
        workflow.start_step(session.task, one, run=session.run, actor=WORKER)
    assert statuses(board, one) == ["open"]


def test_nothing_but_a_step_is_done_by_a_worker(board: Blackboard, workflow: WorkflowBoard) -> None:
    session, _ = at_work(board)
    board.record_verification(session.task, session.run, a_verification("c1"))
    done = StatusChange(to=TaskStatus.DONE, actor=WORKER, commit="c1", finalized="merged")
    assert "no step of a plan" in refusal_of(board, lambda: board.change_status(session.task, done)).message


def test_a_version_that_was_changed_meanwhile_is_refused(board: Blackboard, workflow: WorkflowBoard) -> None:
    session, one, _ = planned(board, workflow)
    error = refusal_of(board, lambda: workflow.start_step(session.task, one, run=session.run, actor=WORKER, version=7))
    assert "changed meanwhile" in error.message
    manager, part = managed(board, workflow)
    for act in (
        lambda: workflow.assign(part, "painter", actor=MANAGER, version=7),
        lambda: workflow.cancel(part, actor=MANAGER, version=7),
    ):
        assert "changed meanwhile" in refusal_of(board, act).message
    assert manager.purpose is Purpose.MANAGE


def test_steps_wait_with_their_blocked_task_and_go_on_with_it(board: Blackboard, workflow: WorkflowBoard) -> None:
    session, one, two = planned(board, workflow)
    workflow.start_step(session.task, one, run=session.run, actor=WORKER)
    blocker = Blocker(BlockerKind.NEEDS_INPUT, "which colour?")
    board.change_status(session.task, StatusChange(to=TaskStatus.BLOCKED, actor=ORCHESTRATOR, blocker=blocker))
    assert statuses(board, one, two) == ["blocked", "blocked"]
    refusal_of(board, lambda: workflow.start_step(session.task, one, run=session.run, actor=WORKER))
    board.change_status(session.task, StatusChange(to=TaskStatus.OPEN, actor=HUMAN))
    assert statuses(board, one, two) == ["open", "open"]


def test_cancelled_steps_do_not_keep_their_task_from_being_done(board: Blackboard, workflow: WorkflowBoard) -> None:
    session, one, two = planned(board, workflow)
    for number in (one, two):
        board.change_status(number, StatusChange(to=TaskStatus.CANCELLED, actor=HUMAN))
    board.record_verification(session.task, session.run, a_verification("c1"))
    board.change_status(session.task, StatusChange(to=TaskStatus.REVIEW, actor=ORCHESTRATOR, commit="c1"))


def test_a_manager_gives_a_part_away_and_the_fleet_can_begin_it(
    board: Blackboard, workflow: WorkflowBoard, fleet: FleetBoard
) -> None:
    session, part = managed(board, workflow)
    assert fleet.field().ready == ()
    for _ in range(2):
        given = workflow.assign(part, "painter", actor=MANAGER, note="mind the gap", run=session.run)
        assert (given.status, given.assignee) == (TaskStatus.OPEN, "painter")
    assert fleet.field().ready == (part,)
    assert workflow.assign(part, "writer", actor=MANAGER).assignee == "writer"
    (note,) = workflow.open_messages(begin(fleet, part).run)
    assert (note.type, note.content, note.status) == ("instruction", "mind the gap", "pending")
    assert "in_progress" in refusal_of(board, lambda: workflow.assign(part, "painter", actor=MANAGER)).message


def test_a_manager_answers_the_question_of_a_part_by_giving_it_back(
    board: Blackboard, workflow: WorkflowBoard, fleet: FleetBoard
) -> None:
    session, part = managed(board, workflow)
    workflow.assign(part, "writer", actor=MANAGER)
    asking = begin(fleet, part)
    question = Escalation(task=part, kind=EscalationKind.QUESTION, question="red or blue?", run=asking.run)
    fleet.escalate(question, Blocker(BlockerKind.NEEDS_INPUT, "red or blue?"))
    fleet.end_part(SegmentEnd(run=asking.run, part=1, waits_for=WaitsFor.ANSWER))

    given = workflow.assign(part, "writer", actor=MANAGER, note="blue", run=session.run)
    assert (given.status, given.blocker) == (TaskStatus.OPEN, None)
    decided = fleet.escalation(part)
    assert (decided.status, decided.answer, decided.answered_by) == ("answered", "blue", MANAGER.name)
    assert fleet.session(asking.run).waits_for is WaitsFor.ANSWER


def test_another_agent_begins_again_and_earlier_failures_do_not_count(
    board: Blackboard, workflow: WorkflowBoard, fleet: FleetBoard
) -> None:
    session, part = managed(board, workflow)
    workflow.assign(part, "writer", actor=MANAGER)
    fail(fleet, begin(fleet, part))
    second = begin(fleet, part, 2)
    question = Escalation(task=part, kind=EscalationKind.QUESTION, question="how?", run=second.run)
    fleet.escalate(question, Blocker(BlockerKind.NEEDS_INPUT, "how?"))
    fleet.end_part(SegmentEnd(run=second.run, part=1, waits_for=WaitsFor.ANSWER))
    assert fleet.field().failures[part]

    workflow.assign(part, "painter", actor=MANAGER, run=session.run)
    assert fleet.session(second.run).status == "ended"
    field = fleet.field()
    assert (field.ready, field.failures.get(part)) == ((part,), None)
    assert fleet.escalation(part).status == "approved"
    assert workflow.piece(part).attempts == 2
    begin(fleet, part, 3, "painter")


def test_a_manager_gives_a_part_up_once_and_never_one_that_is_done(board: Blackboard, workflow: WorkflowBoard) -> None:
    session, part = managed(board, workflow)
    for _ in range(2):
        assert workflow.cancel(part, actor=MANAGER, reason="not needed").status is TaskStatus.CANCELLED
    refusal_of(board, lambda: workflow.assign(part, "painter", actor=MANAGER))
    worker, one, _ = planned(board, workflow)
    workflow.start_step(worker.task, one, run=worker.run, actor=WORKER)
    workflow.finish_step(worker.task, one, run=worker.run, actor=WORKER)
    refusal_of(board, lambda: workflow.cancel(one, actor=MANAGER))
    assert "step of a plan" in refusal_of(board, lambda: workflow.assign(one, "x", actor=MANAGER)).message
    assert session.purpose is Purpose.MANAGE


def test_a_manager_gives_the_matter_to_a_person_whatever_the_part_waits_in(
    board: Blackboard, workflow: WorkflowBoard, fleet: FleetBoard
) -> None:
    session, part = managed(board, workflow)
    in_backlog = workflow.ask_human(part, "is it needed?", run=session.run, actor=MANAGER)
    assert (in_backlog.status, in_backlog.evidence) == ("open", {"by": session.run})
    assert workflow.piece(part).with_human
    fleet.answer(part, "yes", HUMAN)
    assert not workflow.piece(part).with_human

    workflow.assign(part, "writer", actor=MANAGER)
    asking = begin(fleet, part)
    question = Escalation(task=part, kind=EscalationKind.QUESTION, question="how?", run=asking.run, evidence={"k": 1})
    fleet.escalate(question, Blocker(BlockerKind.NEEDS_INPUT, "how?"))
    assert not workflow.piece(part).with_human
    for _ in range(2):
        found = workflow.ask_human(part, "I do not know either", run=session.run, actor=MANAGER)
        assert found.question == "how?"
        assert found.evidence == {"k": 1, "by": session.run, "manager": "I do not know either"}
    assert [one.with_human for one in workflow.pieces(session.task)] == [True]
    assert sum(event.data.get("by") == session.run for event in board.events(part)) == 1


def test_a_subtask_that_has_not_begun_waits_for_the_person_too(
    board: Blackboard, workflow: WorkflowBoard, fleet: FleetBoard
) -> None:
    session, part = managed(board, workflow)
    workflow.assign(part, "writer", actor=MANAGER)
    workflow.ask_human(part, "shall we?", run=session.run, actor=MANAGER)
    assert statuses(board, part) == ["blocked"]
    fleet.answer(part, "yes", HUMAN)
    assert statuses(board, part) == ["open"]


def test_an_agent_with_another_plan_is_not_delayed(board: Blackboard, workflow: WorkflowBoard) -> None:
    session, one, two = planned(board, workflow)
    workflow.start_step(session.task, one, run=session.run, actor=WORKER)
    fail(FleetBoard(board), session)
    other = begin(FleetBoard(board), session.task, 2, "painter")
    board.record_verification(session.task, other.run, a_verification("c1"))
    to_review = StatusChange(to=TaskStatus.REVIEW, actor=ORCHESTRATOR, commit="c1", session=other.run)

    board.change_status(session.task, to_review)

    assert statuses(board, one, two) == ["cancelled", "cancelled"]
    assert finish(board, session.task).status is TaskStatus.DONE


def test_the_next_action_follows_the_existing_plan(board: Blackboard, workflow: WorkflowBoard) -> None:
    session, one, two = planned(board, workflow)
    board.record_verification(session.task, session.run, a_verification("c1"))
    to_review = StatusChange(to=TaskStatus.REVIEW, actor=ORCHESTRATOR, commit="c1", session=session.run)

    error = refusal_of(board, lambda: board.change_status(session.task, to_review))

    assert "before its parts have ended" in error.message
    assert statuses(board, one, two) == ["open", "open"]


def test_a_step_is_nobodys_task_and_nothing_is_below_it(board: Blackboard, workflow: WorkflowBoard) -> None:
    session, one, _ = planned(board, workflow)
    by_hand = SessionStart(run="by-hand", agent="painter", branch="b", base="c0", workdir="/w", host="h")
    for act in (
        lambda: begin(FleetBoard(board), one, 1, "painter"),
        lambda: board.begin_session(one, by_hand),
        lambda: board.add(TaskDraft(title="Below", parent=one), HUMAN),
    ):
        assert f"a step of the plan of #{session.task}" in refusal_of(board, act).message
