"""The one next action, state by state."""

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from genba.definitions.project.instructions import NAMES, PLACEHOLDERS
from genba.domain.tasks.task import Blocker, BlockerKind, TaskStatus
from genba.domain.workflow.actions import (
    ALWAYS,
    Action,
    ActionKind,
    ErrorCode,
    Evidence,
    ExitReason,
    Hierarchy,
    Phase,
    Snapshot,
    SubtaskView,
    Tool,
)
from genba.judgement.workflow.next_action import allowed, decide

S, K, T = TaskStatus, ActionKind, Tool
TASK = SubtaskView(number=7, title="Add a login", status=S.IN_PROGRESS)
RED = Evidence(task=7, commit="5c1a0f2", verdict="goals_failed", failing=("tests_pass",))
STUCK = Blocker(BlockerKind.NEEDS_INPUT, "which region?")


def step(number: int, status: TaskStatus = S.OPEN, *needs: int, **more: Any) -> SubtaskView:
    return SubtaskView(number=number, title=f"Step {number}", status=status, dependencies=needs, **more)


def worker(*pieces: SubtaskView, **more: Any) -> Snapshot:
    return Snapshot(**{"agent": "ada", "task": TASK, "phase": Phase.FETCHED, "pieces": pieces, **more})


def manager(*pieces: SubtaskView, **more: Any) -> Snapshot:
    return worker(*pieces, hierarchy=Hierarchy.MANAGER, **more)


def given(number: int, *needs: int, **more: Any) -> SubtaskView:
    """A subtask that was given away and waits for its turn."""
    return step(number, S.OPEN, *needs, assignee="bob", **more)


def numbers(action: Action) -> list[int]:
    return [piece.number for piece in action.subtasks]


def exits(snapshot: Snapshot) -> str:
    action = decide(snapshot)
    assert (action.action, action.tools) == (K.EXIT, ())
    return action.reason


# ── everybody ────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("reason", ExitReason)
@pytest.mark.parametrize("role", Hierarchy)
def test_a_stop_interrupts_every_activity(reason: ExitReason, role: Hierarchy) -> None:
    assert exits(worker(step(8, S.IN_PROGRESS), hierarchy=role, ending=reason, evidence=RED)) == reason


def test_without_a_task_there_is_nothing_to_do() -> None:
    assert exits(worker(task=None)) == ExitReason.NO_TASK


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (S.CANCELLED, ExitReason.CANCELLED),
        (S.BLOCKED, ExitReason.BLOCKED),
        (S.REVIEW, ExitReason.COMPLETED),
        (S.DONE, ExitReason.COMPLETED),
    ],
)
def test_a_task_that_is_out_of_its_hands_ends_the_instance(status: TaskStatus, reason: ExitReason) -> None:
    assert exits(worker(task=msgspec.structs.replace(TASK, status=status))) == reason


@pytest.mark.parametrize("role", Hierarchy)
def test_the_task_is_fetched_before_anything_else_also_by_a_successor(role: Hierarchy) -> None:
    for pieces in ((), (step(8, S.IN_PROGRESS),), (step(8, S.DONE),)):
        action = decide(worker(*pieces, hierarchy=role, phase=Phase.NEW, evidence=RED))
        assert (action.action, action.tools, action.task) == (K.GET_TASK, (T.GET_MY_TASK,), TASK)


@pytest.mark.parametrize("role", Hierarchy)
def test_verified_work_is_completed(role: Hierarchy) -> None:
    assert exits(worker(step(8, S.DONE), hierarchy=role, phase=Phase.COMPLETED, verified="c0ffee")) == "completed"


@pytest.mark.parametrize("role", Hierarchy)
def test_a_phase_alone_completes_nothing(role: Hierarchy) -> None:
    action = decide(worker(step(8, S.DONE), hierarchy=role, phase=Phase.COMPLETED))
    assert action.action is K.REPORT_COMPLETION


@pytest.mark.parametrize("role", Hierarchy)
def test_a_red_verdict_after_the_green_one_counts(role: Hierarchy) -> None:
    values = {"hierarchy": role, "phase": Phase.COMPLETED, "verified": "c0ffee", "evidence": RED}
    assert decide(worker(step(8, S.DONE), **values)).action is K.REWORK


def test_unread_messages_come_with_every_action() -> None:
    assert decide(worker(messages=3)).messages == 3


# ── workers ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_worker_plans_its_task_or_says_that_it_needs_no_plan() -> None:
    action = decide(worker())
    assert action.action is K.CREATE_SUBTASKS
    assert action.tools == (
        T.CREATE_TASKS_BATCH,
        T.CREATE_TASK,
        T.UPDATE_TASK_STATUS,
        T.REPORT_COMPLETED,
        T.REPORT_BLOCKED,
        T.GET_MY_TASK,
    )


@pytest.mark.parametrize("more", [{"atomic": True}, {"may_split": False}, {"max_subtasks": 0}])
def test_a_task_without_subtasks_is_done_itself(more: dict[str, Any]) -> None:
    action = decide(worker(phase=Phase.EXECUTING, **more))
    assert (action.action, action.subtask, action.task) == (K.EXECUTE_SUBTASK, None, TASK)
    assert action.tools == (T.REPORT_COMPLETED, T.REPORT_BLOCKED, T.GET_MY_TASK)


def test_a_worker_starts_the_first_step_of_its_plan() -> None:
    action = decide(worker(step(8), step(9)))
    assert (action.action, action.subtask) == (K.START_SUBTASK, step(8))


def test_dependencies_decide_which_step_is_the_first() -> None:
    action = decide(worker(step(8, S.OPEN, 10), step(9, S.OPEN, 8), step(10)))
    assert action.subtask == step(10)


def test_steps_whose_dependencies_are_done_can_begin() -> None:
    assert decide(worker(step(8, S.DONE), step(9, S.OPEN, 8))).subtask == step(9, S.OPEN, 8)


def test_what_lies_outside_the_plan_is_left_to_the_gateway() -> None:
    assert decide(worker(step(8, S.BACKLOG, 99))).action is K.START_SUBTASK


def test_a_worker_goes_on_with_the_step_in_progress() -> None:
    action = decide(worker(step(8), step(9, S.IN_PROGRESS)))
    assert (action.action, action.subtask) == (K.EXECUTE_SUBTASK, step(9, S.IN_PROGRESS))
    assert action.tools == (T.UPDATE_TASK_STATUS, T.REPORT_BLOCKED, T.GET_MY_TASK)


def test_a_plan_that_is_made_call_by_call_may_grow_until_its_first_step_begins() -> None:
    assert T.CREATE_TASK in decide(worker(step(8), step(9))).tools
    assert T.CREATE_TASK not in decide(worker(step(8), step(9), max_subtasks=2)).tools
    assert T.CREATE_TASK not in decide(worker(step(8, S.IN_PROGRESS), step(9))).tools
    assert T.CREATE_TASK not in decide(worker(step(8, S.DONE), step(9))).tools


def test_a_step_that_failed_its_goals_is_fixed() -> None:
    red = Evidence(task=8)
    action = decide(worker(step(8, S.IN_PROGRESS), step(9), evidence=red))
    assert (action.action, action.subtask, action.evidence) == (K.REWORK, step(8, S.IN_PROGRESS), red)
    assert action.tools == (T.UPDATE_TASK_STATUS, T.REPORT_BLOCKED, T.GET_MY_TASK)


def test_a_verdict_on_a_step_that_is_no_longer_in_progress_says_nothing() -> None:
    red = Evidence(task=8)
    assert decide(worker(step(8, S.DONE), step(9), evidence=red)).action is K.START_SUBTASK
    assert decide(worker(step(8, S.DONE), evidence=red)).action is K.REPORT_COMPLETION


def test_work_that_failed_its_goals_is_fixed() -> None:
    for snapshot in (worker(step(8, S.DONE), evidence=RED), worker(atomic=True, evidence=RED), worker(evidence=RED)):
        action = decide(snapshot)
        assert (action.action, action.subtask, action.evidence) == (K.REWORK, None, RED)
        assert action.tools == (T.REPORT_COMPLETED, T.REPORT_BLOCKED, T.GET_MY_TASK)


def test_steps_that_are_left_come_before_a_verdict_on_the_whole() -> None:
    assert decide(worker(step(8, S.DONE), step(9), evidence=RED)).action is K.START_SUBTASK


@pytest.mark.parametrize("role", Hierarchy)
def test_work_that_is_red_too_often_ends_the_session(role: Hierarchy) -> None:
    values = {"hierarchy": role, "evidence": RED, "reworks": 10, "max_reworks": 10}
    assert exits(worker(step(8, S.DONE), **values)) == ExitReason.NO_PROGRESS
    assert decide(worker(step(8, S.DONE), **values)).evidence == RED


def test_a_step_that_is_red_too_often_ends_the_session() -> None:
    values = {"evidence": Evidence(task=8), "reworks": 2, "max_reworks": 2}
    assert exits(worker(step(8, S.IN_PROGRESS), **values)) == ExitReason.NO_PROGRESS


def test_work_that_cannot_be_judged_comes_back_only_so_often() -> None:
    broken = Evidence(task=7, verdict="error", round=10)
    assert exits(worker(step(8, S.DONE), evidence=broken, reworks=0, max_reworks=10)) == ExitReason.NO_PROGRESS


def test_a_worker_whose_steps_have_ended_reports() -> None:
    action = decide(worker(step(8, S.DONE), step(9, S.CANCELLED)))
    assert (action.action, action.tools) == (K.REPORT_COMPLETION, (T.REPORT_COMPLETED, T.REPORT_BLOCKED, T.GET_MY_TASK))


def test_a_worker_whose_plan_was_cancelled_makes_another_one() -> None:
    gone = (step(8, S.CANCELLED), step(9, S.CANCELLED))
    action = decide(worker(*gone))
    assert (action.action, action.subtasks) == (K.CREATE_SUBTASKS, gone)
    assert decide(worker(*gone, max_subtasks=2)).action is K.EXECUTE_SUBTASK


def test_a_worker_goes_on_with_other_steps_before_it_tells_of_a_blocked_one() -> None:
    assert decide(worker(step(8, S.BLOCKED, blocker=STUCK), step(9))).subtask == step(9)


def test_a_worker_whose_steps_are_all_blocked_asks_a_person() -> None:
    held = step(8, S.BLOCKED, blocker=STUCK)
    action = decide(worker(held, step(9, S.OPEN, 8), step(10, S.DONE)))
    assert (action.action, action.reason, action.subtask) == (K.HANDLE_BLOCKED, "blocked", held)
    assert (action.choices, action.tools) == (("ask_human",), (T.REPORT_BLOCKED, T.GET_MY_TASK))


@pytest.mark.parametrize(
    "pieces",
    [
        (step(8, S.OPEN, 9), step(9, S.OPEN, 8)),
        (step(8, S.OPEN, 8), step(9, S.DONE)),
        (step(8, S.CANCELLED), step(9, S.OPEN, 8)),
    ],
)
def test_a_worker_whose_steps_can_never_begin_asks_a_person(pieces: tuple[SubtaskView, ...]) -> None:
    action = decide(worker(*pieces))
    assert (action.action, action.reason, action.choices) == (K.HANDLE_BLOCKED, "deadlock", ("ask_human",))


def test_a_worker_waits_only_for_a_step_that_others_review() -> None:
    action = decide(worker(step(8, S.REVIEW), step(9, S.OPEN, 8)))
    assert (action.action, numbers(action)) == (K.WAIT, [8, 9])


# ── managers ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_manager_plans_for_others() -> None:
    action = decide(manager())
    assert action.action is K.CREATE_SUBTASKS
    assert action.tools == (T.CREATE_TASKS_BATCH, T.CREATE_TASK, T.LIST_WORKERS, T.REPORT_BLOCKED, T.GET_MY_TASK)


def test_a_manager_never_does_the_task_itself() -> None:
    assert decide(manager(atomic=True)).action is K.CREATE_SUBTASKS
    action = decide(manager(may_split=False))
    assert (action.action, action.reason, action.choices) == (K.HANDLE_BLOCKED, "depth", ("ask_human",))


def test_a_manager_gives_away_everything_at_once_with_what_can_begin_first() -> None:
    action = decide(manager(step(8, S.BACKLOG, 9), step(9, S.BACKLOG), step(10, S.OPEN), given(11)))
    assert (action.action, numbers(action)) == (K.DELEGATE, [9, 10, 8])
    assert action.tools == (T.ASSIGN_TASK, T.LIST_WORKERS, T.REPORT_BLOCKED, T.GET_MY_TASK)


def test_a_manager_may_add_to_its_plan_until_something_is_given_away() -> None:
    assert T.CREATE_TASK in decide(manager(step(8, S.BACKLOG, assignee="bob"), step(9, S.BACKLOG))).tools
    assert T.CREATE_TASK not in decide(manager(given(8), step(9, S.BACKLOG))).tools


@pytest.mark.parametrize("at_work", [given(8), step(8, S.IN_PROGRESS), step(8, S.REVIEW)])
def test_a_manager_waits_while_others_work(at_work: SubtaskView) -> None:
    action = decide(manager(at_work, given(9, 8), step(10, S.DONE)))
    assert (action.action, action.reason, numbers(action)) == (K.WAIT, "others", [8, 9])
    assert action.retry_after == 1.0
    assert action.tools == (T.GET_MY_TASK,)


def test_a_manager_waits_for_a_person_who_was_asked() -> None:
    action = decide(manager(step(8, S.BLOCKED, blocker=STUCK, with_human=True), step(9, S.DONE)))
    assert (action.action, action.reason, action.retry_after) == (K.WAIT, "people", 30.0)


def test_a_manager_that_takes_the_place_of_a_worker_is_sent_home() -> None:
    assert decide(manager(given(8))).action is K.WAIT
    assert exits(manager(given(8), worker_needed=True)) == ExitReason.SUSPENDED
    assert exits(manager(given(8), waited_seconds=60, suspend_seconds=60)) == ExitReason.SUSPENDED


def test_an_external_agent_may_wait_as_long_as_it_likes() -> None:
    values = {"spawned": False, "worker_needed": True, "waited_seconds": 9_999, "repeats": 999}
    assert decide(manager(given(8), **values)).action is K.WAIT


def test_a_manager_handles_what_is_blocked_before_it_gives_anything_away() -> None:
    held = step(8, S.BLOCKED, blocker=STUCK, assignee="bob")
    action = decide(manager(step(9, S.BACKLOG), held, step(10, S.IN_PROGRESS)))
    assert (action.action, action.reason, action.subtask) == (K.HANDLE_BLOCKED, "blocked", held)
    assert action.choices == ("retry", "reassign", "split", "cancel", "ask_human")
    assert action.tools == (
        T.ASSIGN_TASK,
        T.LIST_WORKERS,
        T.CREATE_TASKS_BATCH,
        T.CREATE_TASK,
        T.UPDATE_TASK_STATUS,
        T.REPORT_BLOCKED,
        T.GET_MY_TASK,
    )


def test_failures_differ_from_questions() -> None:
    failed = step(8, S.BLOCKED, blocker=Blocker(BlockerKind.FAILED, "red"), attempts=3)
    assert decide(manager(failed)).reason == "failed"


def test_what_failed_too_often_is_not_tried_again() -> None:
    failed = step(8, S.BLOCKED, blocker=Blocker(BlockerKind.FAILED, "red"), attempts=10)
    action = decide(manager(failed))
    assert action.choices == ("split", "cancel", "ask_human")
    assert T.ASSIGN_TASK not in action.tools


def test_nothing_is_split_when_there_is_no_room() -> None:
    action = decide(manager(step(8, S.BLOCKED, blocker=STUCK), max_subtasks=1))
    assert action.choices == ("retry", "reassign", "cancel", "ask_human")
    assert T.CREATE_TASKS_BATCH not in action.tools


def test_what_is_with_a_person_is_not_handled_twice() -> None:
    held = step(8, S.BLOCKED, blocker=STUCK, with_human=True)
    assert decide(manager(held, step(9, S.BACKLOG))).action is K.DELEGATE
    assert decide(manager(held, given(9, 8))).action is K.WAIT


@pytest.mark.parametrize(
    ("pieces", "locked"),
    [
        ((given(8, 9), given(9, 8)), [8, 9]),
        ((given(8, 8), step(9, S.IN_PROGRESS)), [8]),
        ((step(8, S.CANCELLED), step(9, S.BACKLOG, 8)), [9]),
        ((given(8, 9), given(9, 10), step(10, S.CANCELLED)), [9, 8]),
        ((step(8, S.BACKLOG, 9), step(9, S.BACKLOG, 10), step(10, S.BACKLOG, 8), given(11)), [8, 9, 10]),
    ],
)
def test_a_deadlock_is_named(pieces: tuple[SubtaskView, ...], locked: list[int]) -> None:
    action = decide(manager(*pieces))
    assert (action.action, action.reason, numbers(action)) == (K.HANDLE_BLOCKED, "deadlock", locked)
    assert action.choices == ("split", "cancel", "ask_human")
    assert T.ASSIGN_TASK not in action.tools


def test_what_waits_for_one_that_a_person_decides_about_is_no_deadlock() -> None:
    with_person = step(8, S.BACKLOG, 9, with_human=True)
    action = decide(manager(with_person, given(9, 8)))
    assert (action.action, numbers(action)) == (K.WAIT, [8, 9])


def test_what_waits_for_a_blocked_one_is_no_deadlock() -> None:
    action = decide(manager(step(8, S.BLOCKED, blocker=STUCK), given(9, 8)))
    assert (action.reason, numbers(action)) == ("blocked", [8])


def test_a_manager_whose_subtasks_have_ended_reports() -> None:
    assert decide(manager(step(8, S.DONE), step(9, S.CANCELLED))).action is K.REPORT_COMPLETION


def test_a_manager_whose_subtasks_were_all_cancelled_plans_again_while_there_is_room() -> None:
    gone = (step(8, S.CANCELLED), step(9, S.CANCELLED))
    assert decide(manager(*gone)).action is K.CREATE_SUBTASKS
    action = decide(manager(*gone, max_subtasks=2))
    assert (action.action, action.reason, action.choices) == (K.HANDLE_BLOCKED, "no_room", ("ask_human",))


def test_a_manager_has_failed_work_fixed_by_others() -> None:
    action = decide(manager(step(8, S.DONE), evidence=RED))
    assert (action.action, action.evidence, numbers(action)) == (K.REWORK, RED, [8])
    assert action.tools == (
        T.CREATE_TASKS_BATCH,
        T.CREATE_TASK,
        T.LIST_WORKERS,
        T.REPORT_COMPLETED,
        T.REPORT_BLOCKED,
        T.GET_MY_TASK,
    )


def test_a_manager_leads_the_fix_before_it_gets_the_verdict_again() -> None:
    assert decide(manager(step(8, S.DONE), step(9, S.BACKLOG), evidence=RED)).action is K.DELEGATE
    assert decide(manager(step(8, S.DONE), given(9), evidence=RED)).action is K.WAIT
    assert decide(manager(step(8, S.DONE), step(9, S.DONE), evidence=RED)).action is K.REWORK
    fixed = decide(manager(step(8, S.DONE), step(9, S.DONE), evidence=RED, answered=True))
    assert fixed.action is K.REPORT_COMPLETION


def test_a_manager_without_room_for_a_fixing_subtask_claims_again_or_asks() -> None:
    action = decide(manager(step(8, S.DONE), evidence=RED, max_subtasks=1))
    assert action.tools == (T.REPORT_COMPLETED, T.REPORT_BLOCKED, T.GET_MY_TASK)


# ── asking again and again ───────────────────────────────────────────────────────────────────────────────────────────


def test_an_agent_that_asks_again_and_again_is_warned_and_then_stopped() -> None:
    lines = [decide(worker(repeats=repeats, max_repeats=4)) for repeats in range(5)]
    assert [action.action for action in lines] == [K.CREATE_SUBTASKS] * 4 + [K.EXIT]
    assert [bool(action.warning) for action in lines] == [False, False, True, True, False]
    assert lines[4].reason == ExitReason.NO_PROGRESS
    assert lines[2].warning == "Nothing has changed since you asked 2 times. After 4 times you have to stop."


def test_an_external_agent_that_makes_no_progress_is_asked_to_stop_as_well() -> None:
    assert exits(worker(spawned=False, repeats=25)) == ExitReason.NO_PROGRESS


def test_waiting_is_no_loop() -> None:
    waits = manager(given(8), repeats=24)
    assert (decide(waits).action, decide(waits).warning) == (K.WAIT, "")
    assert exits(msgspec.structs.replace(waits, repeats=25)) == ExitReason.SUSPENDED


# ── tools ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("snapshot", [worker(), manager(), worker(task=None), worker(ending=ExitReason.PAUSED)])
def test_some_tools_may_be_called_at_any_time(snapshot: Snapshot) -> None:
    assert [tool for tool in (*ALWAYS, T.AUTHENTICATE) if allowed(snapshot, tool) is not None] == []


@pytest.mark.parametrize("tool", [T.ASSIGN_TASK, T.LIST_WORKERS])
def test_a_worker_never_leads_others(tool: Tool) -> None:
    for snapshot in (worker(), worker(step(8)), worker(phase=Phase.NEW), worker(ending=ExitReason.PAUSED)):
        assert allowed(snapshot, tool) is ErrorCode.FORBIDDEN


def test_a_tool_at_the_wrong_time_is_out_of_order() -> None:
    fresh = worker(phase=Phase.NEW)
    assert allowed(fresh, T.GET_MY_TASK) is None
    for tool in (T.CREATE_TASK, T.CREATE_TASKS_BATCH, T.UPDATE_TASK_STATUS, T.REPORT_COMPLETED, T.REPORT_BLOCKED):
        assert allowed(fresh, tool) is ErrorCode.OUT_OF_ORDER
    assert allowed(worker(step(8, S.IN_PROGRESS)), T.REPORT_COMPLETED) is ErrorCode.OUT_OF_ORDER
    assert allowed(manager(given(8)), T.UPDATE_TASK_STATUS) is ErrorCode.OUT_OF_ORDER
    assert allowed(manager(given(8)), T.ASSIGN_TASK) is ErrorCode.OUT_OF_ORDER
    assert allowed(manager(step(8, S.BACKLOG)), T.ASSIGN_TASK) is None


def test_after_the_end_nothing_is_allowed_that_changes_anything() -> None:
    over = manager(step(8, S.DONE), ending=ExitReason.REVOKED)
    for tool in set(Tool) - {*ALWAYS, T.AUTHENTICATE}:
        assert allowed(over, tool) is ErrorCode.OUT_OF_ORDER


def test_a_plan_that_is_sent_again_reaches_the_one_who_has_the_first() -> None:
    assert allowed(worker(step(8, S.IN_PROGRESS)), T.CREATE_TASKS_BATCH) is None
    assert allowed(worker(atomic=True), T.CREATE_TASKS_BATCH) is ErrorCode.OUT_OF_ORDER


# ── the reference ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_reference_tells_every_action_tool_reason_text_and_placeholder() -> None:
    page = (Path(__file__).parents[2] / "docs/reference/workflow.md").read_text("utf-8")
    result = {word for span in re.findall(r"`([^`\n]+)`", page) for word in re.findall(r"[\w-]+", span)}
    fields = {field.name for field in msgspec.structs.fields(Action)}
    wanted = {*ActionKind, *Tool, *ExitReason, *NAMES, *PLACEHOLDERS, *fields} - {T.AUTHENTICATE}
    assert {str(word) for word in wanted} - result == set()
