"""What begins, in which order, and what keeps it from beginning."""

from typing import Any

import pytest

from genba.domain.fleet.records import EntryStatus, Executor, FleetSession, ProviderPause, Purpose, Resources, WaitsFor
from genba.domain.tasks.task import Blocker, BlockerKind, Priority, TaskStatus
from genba.judgement.scheduling.actions import (
    Close,
    Continue,
    EndSession,
    Escalate,
    Queue,
    Reopen,
    RunQueue,
    Start,
    Wait,
    WaitReason,
    Withdraw,
)
from tests.judgement.fleets import (
    COMMIT,
    NOW,
    decide,
    entry,
    failure,
    field,
    in_review,
    none,
    only,
    session,
    settings,
    started,
    task,
    verified,
    wait_of,
)

LATER = "2026-03-01T12:05:00.000000Z"


# ── the ready queue ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_higher_priority_begins_first() -> None:
    here = field(task(1), task(2, priority=Priority.HIGH), task(3, priority=Priority.CRITICAL))
    assert started(decide(here)) == [3, 2, 1]


def test_among_equals_the_one_that_most_wait_for_in_a_chain_begins_first() -> None:
    here = field(
        task(1),
        task(2),
        task(3, dependencies=(2,)),
        task(4, dependencies=(3,)),
        task(5, dependencies=(1,)),
        ready=(1, 2),
    )
    assert started(decide(here)) == [2, 1]


def test_a_part_is_waited_for_by_what_it_is_a_part_of() -> None:
    here = field(task(1), task(2, parent=3), task(3, children=(2,)), ready=(1, 2))
    assert started(decide(here)) == [2, 1]


def test_among_equals_the_older_begins_first_and_then_the_smaller_number() -> None:
    old = "2026-03-01T10:00:00.000000Z"
    assert started(decide(field(task(1), task(2), task(3, created_at=old)))) == [3, 1, 2]


def test_what_has_waited_for_days_overtakes_a_higher_priority_that_is_new() -> None:
    old = "2026-02-26T12:00:00.000000Z"
    here = field(task(1, priority=Priority.HIGH), task(2, priority=Priority.LOW, created_at=old))
    assert started(decide(here)) == [2, 1]


def test_a_task_that_is_worked_on_is_not_begun_again() -> None:
    found = decide(field(task(1), task(2), sessions=(session(1),)))
    assert started(found) == [2]


def test_the_attempt_is_never_a_number_that_was_there() -> None:
    here = field(task(1), sessions=(failure(1, 4),), failures={1: (failure(1, 3),)})
    assert only(Start, decide(here)).attempt == 5


def test_a_task_without_a_parent_begins_at_the_base_branch_of_the_project() -> None:
    here = field(task(1), task(2, parent=3), task(3, children=(2,)), ready=(1, 2))
    bases = {
        move.task: move.base_branch
        for move in decide(here, settings(merge={"base_branch": "develop"}))
        if isinstance(move, Start)
    }
    assert bases == {1: "develop", 2: ""}


# ── limits ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_no_more_begin_than_there_are_free_workers() -> None:
    found = decide(field(*(task(number) for number in range(1, 6))), workers=3, running=1)
    assert started(found) == [1, 2]
    assert wait_of(3, found).kind is WaitReason.WORKERS


def test_the_limit_of_the_project_counts_the_sessions_of_all_hosts() -> None:
    here = field(task(1), task(2), task(3), sessions=(session(3, executor="there"),))
    found = decide(here, settings(work={"max_sessions": 2}))
    assert started(found) == [1]
    assert "work.max_sessions" in wait_of(2, found).why


def test_the_limit_of_an_agent_counts_the_sessions_of_all_hosts() -> None:
    here = field(task(1), task(2, assignee="builder"), task(3), sessions=(session(3, executor="there"),))
    found = decide(here, settings(work={"max_per_agent": {"iterator": 1}}))
    assert started(found) == [2]
    assert "iterator has 1" in wait_of(1, found).why


def test_the_limit_of_a_provider_counts_all_of_its_agents() -> None:
    here = field(task(1), task(2, assignee="builder"), task(3, assignee="reviewer"))
    assert started(decide(here, settings(work={"max_per_provider": {"north": 1}}))) == [1, 3]


def test_little_free_memory_keeps_everything_from_beginning() -> None:
    found = decide(field(task(1)), resources=Resources(free_memory_mb=100))
    assert none(Start, found)
    assert wait_of(1, found).kind is WaitReason.RESOURCES
    assert "100 MB of memory" in wait_of(0, found).why


def test_little_free_disk_keeps_everything_from_beginning() -> None:
    found = decide(field(task(1)), resources=Resources(free_disk_mb=10))
    assert "10 MB of disk" in wait_of(1, found).why


def test_sessions_that_begin_at_one_look_share_the_free_memory() -> None:
    result = settings(work={"min_free_memory_mb": 100, "memory_per_worker_mb": 300})
    found = decide(field(task(1), task(2), task(3)), result, resources=Resources(free_memory_mb=600))
    assert started(found) == [1, 2]


# ── pauses and filters ───────────────────────────────────────────────────────────────────────────────────────────────


def test_a_paused_provider_is_not_asked_and_one_time_is_reported() -> None:
    pause = ProviderPause(provider="north", until=LATER, reason="429")
    here = field(
        task(1), task(2, assignee="reviewer"), task(3, status=TaskStatus.OPEN), pauses=(pause,),
        sessions=(session(3, waits_for=WaitsFor.RESUME),), ready=(1, 2),
    )  # fmt: skip
    found = decide(here)
    assert started(found) == [2]
    assert none(Continue, found)
    assert (wait_of(0, found).kind, wait_of(0, found).until) == (WaitReason.PROVIDER, LATER)


def test_a_pause_that_is_over_stops_no_worker() -> None:
    over = ProviderPause(provider="north", until="2026-03-01T11:59:59.000000Z")
    assert started(decide(field(task(1), pauses=(over,)))) == [1]


def test_while_the_project_is_paused_no_agent_is_asked_and_finished_work_still_lands() -> None:
    here = field(
        task(1), in_review(2), in_review(3), task(4, status=TaskStatus.IN_PROGRESS), paused=True, ready=(1,),
        sessions=(verified(2), verified(3), session(4, waits_for=WaitsFor.RESUME)),
        entries=(entry(3, EntryStatus.MERGED, landed="f00"),),
    )  # fmt: skip
    found = decide(here)
    assert none(Start, found)
    assert [move.task for move in found if isinstance(move, Continue)] == [3]
    assert only(Queue, found).task == 2
    assert wait_of(0, found).kind is WaitReason.PAUSED


def test_a_held_task_and_all_below_it_stay_as_they_are() -> None:
    here = field(
        task(1, children=(2,)), task(2, parent=1), in_review(3), ready=(2,), held=frozenset({1, 3}),
        sessions=(verified(3),),
    )  # fmt: skip
    found = decide(here)
    assert all(isinstance(move, Wait) for move in found)
    assert wait_of(2, found).why == "#1 is paused  genba resume 1"


def test_a_held_task_leaves_the_merge_queue() -> None:
    here = field(in_review(3), held=frozenset({3}), sessions=(verified(3),), entries=(entry(3),))
    found = decide(here)
    assert only(Withdraw, found).entry == 3
    assert none(RunQueue, found)


def test_when_all_workers_are_stopped_nothing_is_done() -> None:
    here = field(task(1), in_review(2), stopping=True, sessions=(verified(2),), entries=(entry(2),))
    found = decide(here)
    assert {type(move) for move in found} == {Wait}
    assert {move.task for move in found if isinstance(move, Wait)} == {0, 1, 2}


def test_an_executor_for_one_label_takes_only_tasks_with_it_and_what_belongs_to_them() -> None:
    here = field(
        task(1), task(2, labels=("web",)), task(3, parent=4), task(4, labels=("web",), children=(3,)), ready=(1, 2, 3)
    )
    assert sorted(started(decide(here, only_label="web"))) == [2, 3]


def test_an_executor_for_one_board_takes_only_its_issues_and_what_belongs_to_them() -> None:
    here = field(task(1), task(2), task(3, parent=4), task(4, children=(3,)), ready=(1, 2, 3))
    found = decide(here, only_board="acme/5", on_board=frozenset({2, 4}))
    assert sorted(started(found)) == [2, 3]
    assert wait_of(1, found).kind is WaitReason.FILTER
    assert not started(decide(here, only_board="acme/5"))


def test_an_executor_for_one_agent_takes_only_its_tasks() -> None:
    found = decide(field(task(1), task(2, assignee="builder")), only_agent="builder")
    assert started(found) == [2]
    assert wait_of(1, found).kind is WaitReason.FILTER


# ── overlap ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_task_waits_while_another_writes_the_same_paths() -> None:
    here = field(
        task(1, scope=("src/app/**",)),
        task(2, scope=("docs/",)),
        task(3, scope=("src/**/*.py",)),
        sessions=(session(3),),
    )
    found = decide(here)
    assert started(found) == [2]
    assert "#3 writes src/**/*.py" in wait_of(1, found).why


def test_two_ready_tasks_with_the_same_scope_begin_one_after_the_other() -> None:
    found = decide(field(task(1, scope=("src/a.py",)), task(2, scope=("src/",))))
    assert started(found) == [1]
    assert wait_of(2, found).kind is WaitReason.OVERLAP


def test_undeclared_changes_of_a_session_count() -> None:
    here = field(task(1, scope=("src/app.py",)), task(3), sessions=(session(3, changed=("src/app.py",)),))
    assert wait_of(1, decide(here)).why.endswith("#3 has changed src/app.py")


def test_with_prefer_a_task_in_the_way_begins_after_the_others() -> None:
    here = field(task(1, scope=("src/",)), task(2, scope=("docs/",)), task(3, scope=("src/",)), sessions=(session(3),))
    found = decide(here, settings(work={"overlap": "prefer"}))
    assert started(found) == [2, 1]
    assert [move.price for move in found if isinstance(move, Start)] == [0.0, 0.6]


def test_with_allow_overlap_costs_nothing() -> None:
    here = field(task(1, scope=("src/",)), task(2, scope=("docs/",)), task(3, scope=("src/",)), sessions=(session(3),))
    assert started(decide(here, settings(work={"overlap": "allow"}))) == [1, 2]


def test_a_session_in_the_merge_queue_counts_half() -> None:
    here = field(task(1, scope=("src/",)), in_review(3, scope=("src/",)), sessions=(verified(3),), entries=(entry(3),))
    assert only(Start, decide(here)).price == 0.3


def test_one_that_has_waited_for_long_keeps_its_paths_free() -> None:
    """Otherwise others that meet it, and not whom it waits for, could begin before it for ever."""
    old = "2026-02-27T12:00:00.000000Z"
    here = field(
        task(1, scope=("a/", "b/"), created_at=old),
        task(2, scope=("b/",)),
        task(3, scope=("a/",)),
        sessions=(session(3),),
    )
    assert started(decide(here)) == []
    young = field(task(1, scope=("a/", "b/")), task(2, scope=("b/",)), task(3, scope=("a/",)), sessions=(session(3),))
    assert started(decide(young)) == [2]


# ── the merge queue ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_target_with_entries_takes_a_turn_unless_it_does_already() -> None:
    here = field(in_review(1), sessions=(verified(1),), entries=(entry(1),))
    assert only(RunQueue, decide(here)).target == "main"
    assert none(RunQueue, decide(here, turning=frozenset({"main"})))
    assert only(RunQueue, decide(here, turning=frozenset({"develop"}))).target == "main"


def test_a_turn_that_died_is_taken_again() -> None:
    here = field(in_review(1), sessions=(verified(1),), entries=(entry(1, EntryStatus.MERGING),))
    assert only(RunQueue, decide(here, turning=frozenset())).target == "main"
    assert none(RunQueue, decide(here))


def test_a_target_that_was_in_the_way_is_tried_again_after_a_while() -> None:
    stuck = entry(1, EntryStatus.STUCK, detail="a rebase", finished_at="2026-03-01T11:59:50.000000Z")
    here = field(in_review(1), sessions=(verified(1),), entries=(stuck,))
    found = decide(here)
    assert none(RunQueue, found)
    assert wait_of(1, found).until == "2026-03-01T12:00:05.000000Z"
    assert only(RunQueue, decide(here, settings(merge={"retry_seconds": 5}))).target == "main"
    set_back = entry(1, EntryStatus.STUCK, detail="a rebase", finished_at="2026-03-01T18:00:00.000000Z")
    assert only(RunQueue, decide(field(in_review(1), sessions=(verified(1),), entries=(set_back,)))).target == "main"


@pytest.mark.parametrize("status", [TaskStatus.IN_PROGRESS, TaskStatus.CANCELLED])
def test_what_is_no_longer_in_review_leaves_the_queue(status: TaskStatus) -> None:
    here = field(task(1, status=status), entries=(entry(1),), sessions=(session(1),))
    assert only(Withdraw, decide(here)).entry == 1


def test_an_entry_of_another_commit_leaves_the_queue() -> None:
    here = field(in_review(1), sessions=(verified(1),), entries=(entry(1, commit="d" * 40),))
    assert only(Withdraw, decide(here)).reason == "another commit was verified meanwhile"


# ── repairs, executors, standstill ───────────────────────────────────────────────────────────────────────────────────


def test_a_task_in_progress_without_a_worker_is_reopened() -> None:
    here = field(task(1, status=TaskStatus.IN_PROGRESS), sessions=(failure(1, 1),))
    assert only(Reopen, decide(here)).task == 1


def test_a_task_is_opened_again_when_what_blocked_it_is_done() -> None:
    blocker = Blocker(BlockerKind.DEPENDENCY, "needs #2", 2)
    here = field(task(1, status=TaskStatus.BLOCKED, blocker=blocker), task(2, status=TaskStatus.DONE))
    assert only(Reopen, decide(here)).task == 1


def test_an_older_session_that_waits_ends_when_another_has_taken_its_place() -> None:
    older = session(1, run="older", waits_for=WaitsFor.RESUME)
    here = field(task(1, status=TaskStatus.IN_PROGRESS), sessions=(older, session(1, attempt=2)))
    assert only(EndSession, decide(here)).run == "older"


def test_a_session_goes_on_where_its_working_tree_is_or_anywhere_once_its_executor_is_dead() -> None:
    waiting = session(1, waits_for=WaitsFor.RESUME, executor="there")
    here = field(task(1, status=TaskStatus.IN_PROGRESS), sessions=(waiting,), executors=(_executor("live"),))
    assert wait_of(1, decide(here)).kind is WaitReason.ELSEWHERE
    there = field(task(1, status=TaskStatus.IN_PROGRESS), sessions=(waiting,), executors=(_executor("dead"),))
    assert only(Continue, decide(there)).run == "run-1"


def _executor(status: str) -> Executor:
    return Executor(id="there", host="other", process=1, workers=2, status=status)


def test_tasks_that_wait_for_each_other_in_a_circle_are_named() -> None:
    here = field(
        task(1, dependencies=(3,)), task(2, parent=3, dependencies=(1,)), task(3, children=(2,)),
        task(4, dependencies=(1,)),
        ready=(),
    )  # fmt: skip
    found = decide(here)
    assert "#1 → #3 → #2 → #1" in only(Escalate, found).escalation.question
    assert wait_of(1, found).kind is WaitReason.DEADLOCK
    assert wait_of(4, found).why == "it waits for #1"


def test_a_dependency_that_was_cancelled_is_reported_with_the_way_out() -> None:
    here = field(task(1, dependencies=(2,)), task(2, status=TaskStatus.CANCELLED), ready=())
    assert wait_of(1, decide(here)).why.endswith("genba task depend 1 --remove 2")


def test_a_standstill_is_reported_once_for_the_project() -> None:
    blocker = Blocker(BlockerKind.NEEDS_INPUT, "which region?")
    here = field(task(1, status=TaskStatus.BLOCKED, blocker=blocker), task(2, dependencies=(1,)), ready=())
    found = decide(here)
    assert wait_of(0, found).why == "nothing can go on: 2 tasks wait, 1 of them for a person  genba task list"


def test_an_empty_field_has_no_moves() -> None:
    assert decide(field()) == ()


def test_a_task_in_the_backlog_is_left_there() -> None:
    assert wait_of(1, decide(field(task(1, status=TaskStatus.BACKLOG)))).kind is WaitReason.BACKLOG


def test_landed_work_is_closed_before_anything_else_goes_on_or_begins() -> None:
    here = field(
        task(1), task(2, status=TaskStatus.IN_PROGRESS), in_review(3), ready=(1,),
        sessions=(session(2, waits_for=WaitsFor.RESUME), verified(3)),
        entries=(entry(3, EntryStatus.MERGED, landed="f00"),),
    )  # fmt: skip
    found = decide(here, workers=1)
    assert only(Continue, found).landed == "f00"
    assert none(Start, found)


def test_the_same_field_gives_the_same_moves() -> None:
    here = field(*(task(number, dependencies=(number - 1,) if number % 3 == 0 else ()) for number in range(1, 30)))
    assert decide(here) == decide(here)


def test_a_review_begins_before_new_work_however_urgent() -> None:
    parent = in_review(1, requires_review=True, reviewer_type="ai", children=(2,))
    judged = task(2, type="review", parent=1, review_of=1, review_commit=COMMIT, reviewer_type="ai")
    here = field(parent, judged, task(3, priority=Priority.CRITICAL), sessions=(verified(1, WaitsFor.REVIEW),), now=NOW)
    first = only(Start, decide(here, workers=1))
    assert (first.task, first.purpose, first.agent) == (2, Purpose.REVIEW, "reviewer")


# ── work in review that no session brings home ───────────────────────────────────────────────────────────────────────


def ended(number: int, **more: Any) -> FleetSession:
    return failure(number, 1, **{"run": f"run-{number}", "verified": COMMIT, "executor": "here", **more})


def test_landed_work_without_a_session_is_done() -> None:
    here = field(in_review(1), sessions=(ended(1),), entries=(entry(1, EntryStatus.MERGED, landed="e" * 40),))
    assert only(Close, decide(here)) == Close(task=1, run="run-1", commit=COMMIT, landed="e" * 40)


@pytest.mark.parametrize(
    "other",
    [
        {"entries": (entry(1, EntryStatus.MERGED, commit="d" * 40),)},
        {"entries": (entry(1, EntryStatus.WITHDRAWN),)},
        {"entries": (entry(1, EntryStatus.MERGED, run="run-0"),)},
        {},
    ],
)
def test_verified_work_without_a_session_that_has_not_landed_is_tried_again(other: dict[str, Any]) -> None:
    here = field(in_review(1), sessions=(ended(1),), **other)
    assert "its session ended failed: tests_pass failed" in only(Reopen, decide(here)).reason


def test_verified_work_without_a_session_waits_while_it_is_in_the_queue() -> None:
    here = field(in_review(1), sessions=(ended(1),), entries=(entry(1),))
    assert none(Reopen, decide(here))
    assert only(RunQueue, decide(here)).target == "main"


def test_work_of_a_run_without_the_fleet_waits_in_review_for_a_person() -> None:
    here = field(in_review(1), sessions=(ended(1, executor="", outcome="incomplete"),))
    wait = wait_of(1, decide(here))
    assert (wait.kind, wait.why) == (
        WaitReason.PERSON,
        "its work is verified, and waits on genba/1-x  genba run --resume run-1",
    )
    assert "1 of them for a person" in wait_of(0, decide(here)).why


def test_work_that_the_fleet_leaves_on_its_branch_waits_for_a_person() -> None:
    here = field(in_review(1), sessions=(ended(1, outcome="completed"),))
    assert wait_of(1, decide(here)).why.endswith("genba task done 1")
