"""One gateway changes a status: the table, and what must hold besides."""

from collections.abc import Callable
from functools import partial

import pytest

from genba.blackboard.tasks.board import Blackboard
from genba.domain.errors import GenbaError, NotFoundError, StateConflictError, UsageError
from genba.domain.goals.verification import VerdictStatus
from genba.domain.tasks.task import (
    Actor,
    ActorKind,
    Blocker,
    BlockerKind,
    StatusChange,
    TaskDraft,
    TaskEdit,
    TaskStatus,
)
from genba.testing.conformance import a_verification
from tests.blackboard.acting import (
    HUMAN,
    MANAGER,
    ORCHESTRATOR,
    REVIEWER,
    WORKER,
    add,
    block,
    cancel,
    complete,
    everything,
    finish,
    open_,
    review,
    start,
    statuses,
)


def refusal_of(board: Blackboard, act: Callable[[], object]) -> GenbaError:
    """The refusal of what is tried, which must have changed nothing."""
    before = everything(board)
    with pytest.raises(GenbaError) as caught:
        act()
    assert everything(board) == before
    return caught.value


def test_a_task_walks_from_open_to_done_and_each_step_is_reported(board: Blackboard) -> None:
    number = add(board)
    done = complete(board, number)

    assert (done.status, done.version) == (TaskStatus.DONE, 4)
    assert done == board.get(number)
    steps = [event for event in board.events(number) if event.kind == "status_changed"]
    assert [(event.data["from"], event.data["to"], event.version) for event in steps] == [
        ("open", "in_progress", 2),
        ("in_progress", "review", 3),
        ("review", "done", 4),
    ]
    assert steps[-1].data["commit"] == "c1"
    assert steps[-1].data["finalized"] == "merged c2"
    assert steps[-1].actor == ORCHESTRATOR


def test_a_status_change_needs_a_name(board: Blackboard) -> None:
    number = add(board)
    absent = StatusChange(to=TaskStatus.CANCELLED, actor=Actor(ActorKind.HUMAN, "  "))
    error = refusal_of(board, lambda: board.change_status(number, absent))
    assert isinstance(error, UsageError)


def test_the_table_says_who_may_do_what(board: Blackboard) -> None:
    number = add(board)
    error = refusal_of(board, lambda: board.change_status(number, StatusChange(to=TaskStatus.CANCELLED, actor=WORKER)))
    assert "allowed: human, manager" in error.message
    assert error.exit_code == 5


def test_a_status_that_is_reached_already_is_reported(board: Blackboard) -> None:
    number = add(board)
    error = refusal_of(board, lambda: open_(board, number))
    assert error.message == "task #1: it is open already"


def test_a_change_on_an_old_version_is_refused(board: Blackboard) -> None:
    number = add(board)
    seen = board.get(number).version
    board.edit(number, TaskEdit(title="Another"), HUMAN)
    change = StatusChange(to=TaskStatus.CANCELLED, actor=HUMAN, version=seen)
    error = refusal_of(board, lambda: board.change_status(number, change))
    assert isinstance(error, StateConflictError)
    assert "at version 2, not 1" in error.message


def test_a_task_that_is_not_there_is_not_found(board: Blackboard) -> None:
    for number in (7, 0, -1, 2**63, 10**30):
        with pytest.raises(NotFoundError) as caught:
            cancel(board, number)
        assert caught.value.hint == "genba task list"
        with pytest.raises(NotFoundError):
            start(board, number)


def test_a_task_does_not_start_before_its_dependencies_are_done(board: Blackboard) -> None:
    first, second = add(board), add(board)
    third = add(board, "Third", None, first, second)
    complete(board, first)
    error = refusal_of(board, lambda: start(board, third))
    assert "it depends on #2 (open)" in error.message

    cancel(board, second)
    assert statuses(board, third) == ["open"]
    error = refusal_of(board, lambda: start(board, third))
    assert "#2 (cancelled)" in error.message
    assert error.hint == "genba task depend 3 --remove 2"
    board.undepend(third, second, HUMAN)
    assert start(board, third).status is TaskStatus.IN_PROGRESS


def test_only_a_commit_whose_newest_verdict_is_done_goes_to_review(board: Blackboard) -> None:
    number = add(board)
    start(board, number)

    def to_review(commit: str) -> object:
        return board.change_status(number, StatusChange(to=TaskStatus.REVIEW, actor=ORCHESTRATOR, commit=commit))

    assert isinstance(refusal_of(board, lambda: to_review("")), UsageError)
    assert "c1 was not verified" in refusal_of(board, lambda: to_review("c1")).message
    board.record_verification(number, "", a_verification("c1"))
    assert "c2 was not verified" in refusal_of(board, lambda: to_review("c2")).message
    board.record_verification(number, "", a_verification("c1", VerdictStatus.REJECTED))
    assert "rejected: missing_artifacts" in refusal_of(board, lambda: to_review("c1")).message
    board.record_verification(number, "", a_verification("c1", VerdictStatus.ERROR))
    assert "the verdict is error" in refusal_of(board, lambda: to_review("c1")).message
    board.record_verification(number, "", a_verification("c1"))
    to_review("c1")
    assert statuses(board, number) == ["review"]


def test_the_verdict_on_another_task_counts_for_nothing(board: Blackboard) -> None:
    first, second = add(board), add(board)
    start(board, first)
    board.record_verification(second, "", a_verification("c1"))
    change = StatusChange(to=TaskStatus.REVIEW, actor=ORCHESTRATOR, commit="c1")
    refusal_of(board, lambda: board.change_status(first, change))


def test_work_that_was_not_finalized_is_not_done(board: Blackboard) -> None:
    number = add(board)
    review(board, number)
    change = StatusChange(to=TaskStatus.DONE, actor=ORCHESTRATOR, commit="c1", finalized=" ")
    assert isinstance(refusal_of(board, lambda: board.change_status(number, change)), UsageError)


def test_a_task_that_requires_a_review_is_done_only_with_an_approval_of_that_commit(board: Blackboard) -> None:
    number = board.add(TaskDraft(title="Careful", requires_review=True), HUMAN).number
    refusal_of(board, lambda: board.approve(number, "c1", HUMAN))
    review(board, number)
    error = refusal_of(board, lambda: finish(board, number))
    assert error.hint == f"genba task approve {number}"
    board.approve(number, "c2", HUMAN)
    refusal_of(board, lambda: finish(board, number))
    board.approve(number, "c1", HUMAN)
    assert finish(board, number).status is TaskStatus.DONE
    assert [event.data["commit"] for event in board.events(number) if event.kind == "approved"] == ["c2", "c1"]


def test_a_person_s_review_is_not_done_by_an_agent(board: Blackboard) -> None:
    by_person = board.add(TaskDraft(title="One", requires_review=True), HUMAN).number
    by_agent = board.add(TaskDraft(title="Two", requires_review=True, reviewer_type="ai"), HUMAN).number
    review(board, by_person)
    review(board, by_agent)
    refusal_of(board, lambda: board.approve(by_person, "c1", REVIEWER))
    refusal_of(board, lambda: board.approve(by_agent, "c1", WORKER))
    refusal_of(board, lambda: board.approve(by_agent, "c1", ORCHESTRATOR))
    board.approve(by_agent, "c1", REVIEWER)
    assert finish(board, by_agent).status is TaskStatus.DONE


def test_work_that_was_sent_back_is_approved_again(board: Blackboard) -> None:
    number = board.add(TaskDraft(title="Careful", requires_review=True), HUMAN).number
    review(board, number)
    board.approve(number, "c1", HUMAN)
    board.change_status(number, StatusChange(to=TaskStatus.IN_PROGRESS, actor=REVIEWER, reason="not yet"))
    board.change_status(number, StatusChange(to=TaskStatus.REVIEW, actor=ORCHESTRATOR, commit="c1"))
    refusal_of(board, lambda: finish(board, number))
    board.approve(number, "c1", HUMAN)
    assert finish(board, number).status is TaskStatus.DONE


def test_a_parent_is_done_when_its_parts_have_ended_and_one_of_them_is_done(board: Blackboard) -> None:
    parent = add(board)
    first, second = add(board, "First", parent), add(board, "Second", parent)
    start(board, parent)
    board.record_verification(parent, "", a_verification("c1"))
    change = StatusChange(to=TaskStatus.REVIEW, actor=ORCHESTRATOR, commit="c1")
    assert "#2 (open), #3 (open)" in refusal_of(board, lambda: board.change_status(parent, change)).message
    cancel(board, first)
    assert "#3 (open)" in refusal_of(board, lambda: board.change_status(parent, change)).message
    cancel(board, second)
    assert "none is done" in refusal_of(board, lambda: board.change_status(parent, change)).message
    open_(board, second)
    complete(board, second)
    board.change_status(parent, change)
    late = add(board, "Late", parent)
    refusal_of(board, lambda: finish(board, parent))
    cancel(board, late)
    assert finish(board, parent).status is TaskStatus.DONE


def test_blocking_a_task_needs_a_reason(board: Blackboard) -> None:
    number = add(board)
    refusal_of(board, lambda: block(board, number, None))
    refusal_of(board, lambda: block(board, number, Blocker(BlockerKind.RESOURCE, " ")))
    refusal_of(board, lambda: block(board, number, Blocker(BlockerKind.DEPENDENCY, "waits", 99)))
    blocked = block(board, number)
    assert blocked.blocker == Blocker(BlockerKind.NEEDS_INPUT, "which colour?")
    assert board.get(number) == blocked
    assert open_(board, number).blocker is None


def test_a_block_reaches_everything_below_that_could_go_on(board: Blackboard) -> None:
    parent = add(board)
    child, working, planned, reviewed, ended = (add(board, f"Child {at}", parent) for at in range(5))
    grandchild = add(board, "Grandchild", child)
    start(board, working)
    review(board, reviewed)
    cancel(board, ended)
    backlog = board.add(TaskDraft(title="Later", parent=parent, status=TaskStatus.BACKLOG), HUMAN).number
    block(board, planned, Blocker(BlockerKind.RESOURCE, "no machine"))

    block(board, parent)

    below = (child, working, grandchild)
    assert statuses(board, *below) == ["blocked"] * 3
    assert all(
        board.get(number).blocker == Blocker(BlockerKind.DEPENDENCY, "#1 is blocked", parent) for number in below
    )
    assert statuses(board, planned, reviewed, ended, backlog) == ["blocked", "review", "cancelled", "backlog"]
    assert board.events(grandchild)[-1].data["because"] == parent

    open_(board, parent)
    assert statuses(board, *below) == ["open"] * 3
    assert statuses(board, planned, reviewed, ended, backlog) == ["blocked", "review", "cancelled", "backlog"]
    assert board.get(planned).blocker == Blocker(BlockerKind.RESOURCE, "no machine")


def test_nothing_below_a_blocked_task_becomes_open_alone(board: Blackboard) -> None:
    parent = add(board)
    child, own = add(board, "Child", parent), add(board, "Own", parent)
    ended, reviewed = add(board, "Ended", parent), add(board, "Reviewed", parent)
    backlog = board.add(TaskDraft(title="Later", parent=child, status=TaskStatus.BACKLOG), HUMAN).number
    block(board, own)
    cancel(board, ended)
    review(board, reviewed)
    block(board, parent)
    for number in (child, own, ended, backlog):
        error = refusal_of(board, partial(open_, board, number))
        assert "a part of #1, which is blocked" in error.message
    back = StatusChange(to=TaskStatus.IN_PROGRESS, actor=REVIEWER)
    refusal_of(board, lambda: board.change_status(reviewed, back))
    added = board.add(TaskDraft(title="New", parent=child), HUMAN)
    assert added.blocker == Blocker(BlockerKind.DEPENDENCY, "#1 is blocked", parent)

    open_(board, parent)
    assert statuses(board, child, own, added.number) == ["open", "blocked", "open"]
    assert open_(board, own).status is TaskStatus.OPEN


def test_a_dependency_that_is_blocked_itself_keeps_what_it_blocks(board: Blackboard) -> None:
    first, second = add(board), add(board)
    block(board, second, Blocker(BlockerKind.DEPENDENCY, "waits for it", first))
    block(board, first)
    error = refusal_of(board, lambda: open_(board, second))
    assert "#1 stands in its way" in error.message
    open_(board, first)
    assert open_(board, second, ORCHESTRATOR).status is TaskStatus.OPEN


def test_blockers_never_go_in_a_circle(board: Blackboard) -> None:
    first, second = add(board), add(board)
    child = add(board, "Child", first)
    block(board, second, Blocker(BlockerKind.DEPENDENCY, "waits", child))
    for blocker in (first, second, child):
        waits = Blocker(BlockerKind.DEPENDENCY, "waits", blocker)
        refusal_of(board, partial(block, board, first, waits))
    refusal_of(board, lambda: block(board, child, Blocker(BlockerKind.DEPENDENCY, "waits", first)))
    error = refusal_of(board, lambda: block(board, child, Blocker(BlockerKind.DEPENDENCY, "waits", second)))
    assert "#3 → #2 → #3" in error.message


def test_what_is_below_a_cancelled_task_is_cancelled_with_it(board: Blackboard) -> None:
    parent = add(board)
    child, done = add(board, "Child", parent), add(board, "Done", parent)
    grandchild = add(board, "Grandchild", child)
    complete(board, done)
    block(board, child)
    cancel(board, parent)
    assert statuses(board, parent, child, grandchild, done) == ["cancelled", "cancelled", "cancelled", "done"]
    assert board.get(child).blocker is None
    last = board.events(grandchild)[-1]
    assert (last.data["from"], last.data["to"], last.data["because"]) == ("blocked", "cancelled", parent)
    assert last.version == board.get(grandchild).version


def test_nothing_lives_below_an_ended_task(board: Blackboard) -> None:
    parent = add(board)
    child = add(board, "Child", parent)
    cancel(board, parent)
    error = refusal_of(board, lambda: open_(board, child))
    assert "reopen the parent first" in error.hint
    error = refusal_of(board, lambda: board.add(TaskDraft(title="New", parent=parent), HUMAN))
    assert "it is cancelled" in error.message
    open_(board, parent)
    assert open_(board, child).status is TaskStatus.OPEN


def test_a_task_in_the_backlog_is_opened_by_who_plans(board: Blackboard) -> None:
    number = board.add(TaskDraft(title="Later", status=TaskStatus.BACKLOG), HUMAN).number
    refusal_of(board, lambda: start(board, number))
    assert open_(board, number, MANAGER).status is TaskStatus.OPEN
