"""Who begins a ready task: assignment, attempts, plans, reviews, parts, budgets."""

from typing import Any

import pytest

from genba.domain.errors import ConfigurationError, GitError
from genba.domain.fleet.records import Cost, EscalationKind, FleetSnapshot, Purpose, SpendingTotals, WaitsFor
from genba.domain.problems import Problem
from genba.domain.tasks.task import TaskStatus
from genba.judgement.scheduling.actions import CreateSubtasks, Escalate, RejectPlan, Start, WaitReason
from genba.judgement.scheduling.attempts import HOPELESS, error_text
from tests.judgement.fleets import (
    COMMIT,
    asked,
    decide,
    failure,
    field,
    in_review,
    none,
    only,
    plan,
    review,
    review_task,
    session,
    settings,
    task,
    verified,
    wait_of,
)

PLANNED = settings(decompose={"approval": "auto"})


# ── assignment ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_assignee_wins_over_a_capability() -> None:
    assert only(Start, decide(field(task(1, type="bug", assignee="iterator")))).agent == "iterator"


@pytest.mark.parametrize("words", [{"type": "bug"}, {"labels": ("docs",)}])
def test_an_agent_that_can_do_what_the_task_is_takes_it(words: dict[str, object]) -> None:
    found = only(Start, decide(field(task(1, **words))))
    assert (found.agent, found.provider) == ("builder", "north")


def test_any_other_task_goes_to_the_agent_of_the_project() -> None:
    assert only(Start, decide(field(task(1)))).agent == "iterator"
    assert only(Start, decide(field(task(1)), settings(work={"agent": "builder"}))).agent == "builder"


def test_a_task_of_a_person_is_left_to_that_person() -> None:
    waits = wait_of(1, decide(field(task(1, assignee="@ada"))))
    assert waits.kind is WaitReason.PERSON
    why, command = waits.why.split("  ")
    assert why == "it is assigned to @ada, a person: an agent takes it once it is assigned to one"
    assert command == "genba task edit 1 --assignee AGENT"


def test_a_task_of_an_agent_that_is_not_there_waits_for_the_agent() -> None:
    waits = wait_of(1, decide(field(task(1, assignee="ada"))))
    assert waits.kind is WaitReason.AGENT
    assert '"ada"' in waits.why


def test_an_agent_that_is_not_there_is_named_with_the_nearest() -> None:
    waits = wait_of(1, decide(field(task(1)), settings(work={"agent": "bulder"})))
    assert "builder" in waits.why


# ── attempts ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_same_agent_tries_again_and_then_another() -> None:
    result_ = settings(attempts={"per_agent": 2, "alternates": ["builder"], "max": 4})
    once = field(task(1), failures={1: (failure(1, 1),)})
    assert only(Start, decide(once, result_)).agent == "iterator"
    twice = field(task(1), failures={1: (failure(1, 1), failure(1, 2))})
    found = only(Start, decide(twice, result_))
    assert (found.agent, found.attempt) == ("builder", 3)
    assert found.reason == "attempt 3: iterator ended failed"


def test_after_the_attempts_a_person_decides_with_all_that_was_tried() -> None:
    failures = (failure(1, 1), failure(1, 2), failure(1, 3, agent="builder", reason="lint_passes failed"))
    here = field(task(1), failures={1: failures}, ledger=SpendingTotals(by_task={1: Cost(cost_usd=2.5, tokens=10)}))
    found = only(Escalate, decide(here))
    result_ = found.escalation
    assert (result_.kind, found.blocker is not None) == (EscalationKind.ATTEMPTS, True)
    assert [one["agent"] for one in result_.evidence["tried"]] == ["iterator", "iterator", "builder"]
    assert (result_.evidence["branch"], result_.evidence["cost_usd"]) == ("genba/1-x", 2.5)
    assert result_.evidence["last_reason"] == "lint_passes failed"


def test_without_another_agent_a_person_decides_when_the_one_has_failed() -> None:
    here = field(task(1), failures={1: (failure(1, 1), failure(1, 2))})
    assert "no other agent" in only(Escalate, decide(here)).escalation.question


def test_a_person_who_allowed_a_retry_learns_of_all_that_was_tried() -> None:
    again = (failure(1, 5), failure(1, 6))
    alone = only(Escalate, decide(field(task(1), failures={1: again}))).escalation.question
    assert alone.startswith("2 attempts failed (6 sessions so far), and no other agent is left to try")
    most = settings(attempts={"per_agent": 5, "max": 2})
    assert (
        "2 of 2 attempts failed (6 sessions so far)"
        in only(Escalate, decide(field(task(1), failures={1: again}), most)).escalation.question
    )


def test_failures_are_waited_out_longer_each_time() -> None:
    result_ = settings(attempts={"backoff_seconds": 100, "backoff_max_seconds": 150, "per_agent": 5, "max": 5})
    just_now = "2026-03-01T11:59:00.000000Z"
    once = field(task(1), failures={1: (failure(1, 1, ended_at=just_now),)})
    assert wait_of(1, decide(once, result_)).until == "2026-03-01T12:00:40.000000Z"
    twice = field(task(1), failures={1: (failure(1, 1), failure(1, 2, ended_at=just_now))})
    assert wait_of(1, decide(twice, result_)).until == "2026-03-01T12:01:30.000000Z"


def test_a_failure_in_the_future_causes_no_backoff() -> None:
    result_ = settings(attempts={"backoff_seconds": 100})
    of_another_host = field(task(1), failures={1: (failure(1, 1, ended_at="2026-03-01T12:01:00.000000Z"),)})
    assert wait_of(1, decide(of_another_host, result_)).until == "2026-03-01T12:02:40.000000Z"
    set_back = field(task(1), failures={1: (failure(1, 1, ended_at="2026-03-01T18:00:00.000000Z"),)})
    assert only(Start, decide(set_back, result_)).task == 1


def test_what_trying_again_cannot_help_goes_to_a_person_at_once() -> None:
    broken = error_text(ConfigurationError((Problem("agent.json", "name", "is missing"),)))
    assert broken.startswith(HOPELESS)
    assert error_text(GitError("git said no")) == "git said no"
    here = field(task(1), failures={1: (failure(1, 1, reason=broken),)})
    assert "cannot be run: agent.json" in only(Escalate, decide(here)).escalation.question


# ── plans ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_task_that_is_taken_apart_begins_with_a_plan() -> None:
    found = only(Start, decide(field(task(1, decompose=True))))
    assert (found.purpose, found.agent) == (Purpose.PLAN, "planner")


@pytest.mark.parametrize("words", [{"type": "epic"}, {"labels": ("large",)}])
def test_types_and_labels_say_which_tasks_are_taken_apart(words: dict[str, object]) -> None:
    result_ = settings(decompose={"types": ["epic"], "labels": ["large"]})
    assert only(Start, decide(field(task(1, **words)), result_)).purpose is Purpose.PLAN


def test_parts_that_are_deep_enough_are_not_taken_apart_further() -> None:
    here = field(
        task(1, children=(2,)), task(2, parent=1, children=(3,)), task(3, parent=2, decompose=True), ready=(3,)
    )
    assert only(Start, decide(here)).purpose is Purpose.WORK
    deeper = settings(decompose={"max_depth": 3})
    assert only(Start, decide(here, deeper)).purpose is Purpose.PLAN


def test_by_policy_the_parts_of_a_plan_are_created() -> None:
    found = only(CreateSubtasks, decide(field(task(1, decompose=True), plans=(plan(1),)), PLANNED))
    assert (found.plan, found.task) == (7, 1)


def test_a_person_sees_the_plan_before_its_parts_are_created() -> None:
    here = field(task(1, decompose=True), plans=(plan(1),))
    found = only(Escalate, decide(here))
    assert (found.escalation.kind, found.blocker) == (EscalationKind.PLAN, None)
    assert [one["title"] for one in found.escalation.evidence["subtasks"]] == ["part 0", "part 1"]
    waiting = field(task(1, decompose=True), plans=(plan(1),), escalations=(asked(1, EscalationKind.PLAN),))
    assert wait_of(1, decide(waiting)).kind is WaitReason.PERSON
    yes = asked(1, EscalationKind.PLAN, "approved", evidence={"plan": 7})
    approved = field(task(1, decompose=True), plans=(plan(1),), escalations=(yes,))
    assert only(CreateSubtasks, decide(approved)).plan == 7


def test_a_plan_that_a_person_rejects_is_made_again_with_the_reason() -> None:
    no = asked(1, EscalationKind.PLAN, "rejected", answer="smaller parts", evidence={"plan": 7})
    here = field(task(1, decompose=True), plans=(plan(1),), escalations=(no,))
    assert only(RejectPlan, decide(here)).reason == "smaller parts"
    made = session(1, purpose=Purpose.PLAN, status="ended", outcome="completed")
    here = field(task(1, decompose=True), plans=(plan(1, status="rejected"),), escalations=(no,), sessions=(made,))
    found = only(Start, decide(here))
    assert (found.purpose, found.attempt) == (Purpose.PLAN, 2)
    assert found.gap is not None
    assert found.gap.detail == "smaller parts"


def test_after_enough_rejected_plans_a_person_decides_whether_there_is_another() -> None:
    made = session(1, purpose=Purpose.PLAN, status="ended", outcome="completed", attempt=3)
    here = field(task(1, decompose=True), plans=(plan(1, status="rejected"),), sessions=(made,))
    found = only(Escalate, decide(here)).escalation
    assert found.kind is EscalationKind.ATTEMPTS
    yes = asked(1, EscalationKind.ATTEMPTS, "approved", evidence=found.evidence)
    again = field(task(1, decompose=True), plans=(plan(1, status="rejected"),), sessions=(made,), escalations=(yes,))
    assert only(Start, decide(again)).attempt == 4


def test_a_plan_with_too_many_subtasks_is_rejected_by_every_kind_of_approval() -> None:
    here = field(task(1, decompose=True), plans=(plan(1, parts=13),))
    assert "at most 12" in only(RejectPlan, decide(here, PLANNED)).reason


def test_a_task_whose_parts_ended_is_brought_home() -> None:
    here = field(task(1, children=(2, 3), decompose=True), task(2, parent=1, status=TaskStatus.DONE))
    assert only(Start, decide(here)).purpose is Purpose.INTEGRATE


def test_a_task_whose_parts_were_all_cancelled_goes_to_a_person() -> None:
    here = field(task(1, children=(2,)), task(2, parent=1, status=TaskStatus.CANCELLED))
    found = only(Escalate, decide(here))
    assert found.escalation.kind is EscalationKind.STOPPED
    assert none(Start, decide(here))


def test_a_review_is_not_a_part() -> None:
    judged = review_task(2, 1, status=TaskStatus.DONE)
    assert only(Start, decide(field(task(1, children=(2,)), judged))).purpose is Purpose.WORK
    here = field(task(1, children=(2,)), reviews=(review(2, 1, status="changes"),))
    assert only(Start, decide(here)).purpose is Purpose.WORK


# ── reviews ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_review_by_an_agent_begins_with_one_that_is_no_author() -> None:
    found = only(Start, decide(_under_review()))
    assert (found.task, found.purpose, found.agent) == (2, Purpose.REVIEW, "reviewer")


def test_an_author_is_not_started_as_reviewer() -> None:
    here = _under_review(author="reviewer")
    found = decide(here)
    assert none(Start, found)
    assert only(Escalate, found).escalation.kind is EscalationKind.REVIEW


def test_a_review_that_comes_to_nothing_goes_to_a_person() -> None:
    failures = tuple(failure(2, attempt, purpose=Purpose.REVIEW, agent="reviewer") for attempt in (1, 2))
    here = _under_review(failures={2: failures})
    found = only(Escalate, decide(here)).escalation
    assert (found.task, found.kind, found.commit) == (1, EscalationKind.REVIEW, COMMIT)


def test_a_review_of_what_is_approved_already_does_not_begin() -> None:
    assert none(Start, decide(_under_review(approved=COMMIT)))


def _under_review(author: str = "iterator", approved: str = "", **more: Any) -> FleetSnapshot:
    parent = in_review(1, requires_review=True, reviewer_type="ai", children=(2,), approved=approved)
    judged = review_task(2, 1, reviewer_type="ai")
    sessions = (verified(1, WaitsFor.REVIEW, agent=author),)
    return field(parent, judged, sessions=sessions, reviews=(review(2, 1),), **more)


# ── budgets ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_task_whose_budget_is_used_up_goes_to_a_person() -> None:
    spent = SpendingTotals(by_task={1: Cost(cost_usd=3.0)})
    found = only(Escalate, decide(field(task(1), ledger=spent), settings(budget={"task_usd": 3})))
    assert found.escalation.kind is EscalationKind.BUDGET
    own = field(task(1, budget_usd=4), ledger=spent)
    assert only(Start, decide(own, settings(budget={"task_usd": 3}))).task == 1


def test_a_daily_budget_stops_all_workers_until_midnight_and_is_reported_once() -> None:
    here = field(task(1), task(2), ledger=SpendingTotals(today=Cost(cost_usd=10)))
    found = decide(here, settings(budget={"day_usd": 10}))
    assert none(Start, found)
    assert none(Escalate, found)
    assert wait_of(0, found).until == "2026-03-02T00:00:00.000000Z"


def test_the_budget_of_the_project_stops_everybody() -> None:
    here = field(task(1), ledger=SpendingTotals(project=Cost(cost_usd=10)))
    assert "budget.project_usd" in wait_of(0, decide(here, settings(budget={"project_usd": 10}))).why


def test_the_budget_of_an_agent_stops_that_agent() -> None:
    here = field(
        task(1), task(2, assignee="builder"), ledger=SpendingTotals(by_agent_today={"iterator": Cost(cost_usd=2)})
    )
    found = decide(here, settings(budget={"agent_day_usd": 2}))
    assert only(Start, found).task == 2
    assert wait_of(1, found).kind is WaitReason.BUDGET
