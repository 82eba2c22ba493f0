"""What becomes of a session that waits."""

from typing import Any

import pytest

from genba.domain.fleet.records import (
    Cause,
    Cost,
    EntryStatus,
    Escalation,
    EscalationKind,
    FleetSession,
    SpendingTotals,
    WaitsFor,
)
from genba.domain.sessions.loop_state import ANSWER
from genba.domain.tasks.task import Blocker, BlockerKind, Task, TaskStatus
from genba.judgement.scheduling.actions import (
    AskReview,
    Close,
    Continue,
    EndSession,
    Escalate,
    Queue,
    SchedulerAction,
    Start,
    Wait,
    WaitReason,
)
from tests.judgement.fleets import (
    COMMIT,
    NOW,
    asked,
    decide,
    entry,
    field,
    in_review,
    none,
    only,
    review,
    review_task,
    session,
    settings,
    task,
    verified,
    wait_of,
)

CHANGED = "d" * 40


# ── an answer ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_new_question_is_put_to_a_person() -> None:
    here = field(task(1, status=TaskStatus.IN_PROGRESS), sessions=(_asks(),))
    found = only(Escalate, decide(here))
    assert (found.escalation.kind, found.escalation.question) == (EscalationKind.QUESTION, "MIT or Apache?")
    assert found.blocker == Blocker(BlockerKind.NEEDS_INPUT, "MIT or Apache?")


def test_a_question_waits_for_its_answer() -> None:
    here = field(
        task(1, status=TaskStatus.BLOCKED), sessions=(_asks(),), escalations=(asked(1, EscalationKind.QUESTION),)
    )
    assert wait_of(1, decide(here)).why == 'it asks: which one?  genba answer 1 "…"'


def test_the_answer_goes_to_the_same_session_and_not_to_a_new_one() -> None:
    result = asked(1, EscalationKind.QUESTION, "answered", answer="MIT", evidence={"part": 2})
    found = decide(field(task(1), sessions=(_asks(part=2),), escalations=(result,)))
    onward = only(Continue, found)
    assert (onward.run, onward.part, onward.cause) == ("run-1", 3, Cause.ANSWER)
    assert onward.gap is not None
    assert (onward.gap.check, onward.gap.claim, onward.gap.detail) == (ANSWER, "which one?", "MIT")
    assert none(Start, found)


def test_the_answer_to_an_earlier_question_is_not_taken_for_this_one() -> None:
    result = asked(1, EscalationKind.QUESTION, "answered", answer="MIT", evidence={"part": 1})
    here = field(task(1, status=TaskStatus.IN_PROGRESS), sessions=(_asks(part=2),), escalations=(result,))
    assert only(Escalate, decide(here)).escalation.question == "MIT or Apache?"


def test_a_question_that_is_rejected_ends_the_session() -> None:
    result = asked(1, EscalationKind.QUESTION, "rejected", answer="drop it")
    here = field(task(1, status=TaskStatus.BLOCKED), sessions=(_asks(),), escalations=(result,))
    assert only(EndSession, decide(here)).reason == "its question was rejected: drop it"


def _asks(part: int = 1) -> FleetSession:
    return session(1, waits_for=WaitsFor.ANSWER, reason="MIT or Apache?", part=part)


# ── the way home ─────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("waits_for", [WaitsFor.REVIEW, WaitsFor.MERGE])
def test_verified_work_that_needs_no_review_is_queued(waits_for: WaitsFor) -> None:
    queued = only(Queue, decide(field(in_review(1), sessions=(verified(1, waits_for),))))
    assert (queued.run, queued.commit, queued.target, queued.round) == ("run-1", COMMIT, "main", 1)


def test_work_that_came_back_from_the_queue_is_queued_again_with_its_new_commit() -> None:
    here = field(
        in_review(1), sessions=(verified(1, verified=CHANGED, rounds=1),), entries=(entry(1, EntryStatus.CONFLICT),)
    )
    queued = only(Queue, decide(here))
    assert (queued.commit, queued.round) == (CHANGED, 2)


def test_work_in_the_queue_waits() -> None:
    here = field(in_review(1), sessions=(verified(1),), entries=(entry(1, EntryStatus.MERGING),))
    assert wait_of(1, decide(here)).kind is WaitReason.MERGE


def test_work_that_landed_is_closed_with_the_commit_on_the_target() -> None:
    here = field(in_review(1), sessions=(verified(1),), entries=(entry(1, EntryStatus.MERGED, landed="f00"),))
    onward = only(Continue, decide(here))
    assert (onward.cause, onward.landed, onward.asks) == (Cause.LANDED, "f00", False)


def test_a_conflict_goes_back_to_its_author_with_the_paths() -> None:
    torn = entry(1, EntryStatus.CONFLICT, paths=("app.py", "lib.py"))
    onward = only(Continue, decide(field(in_review(1), sessions=(verified(1),), entries=(torn,))))
    assert onward.cause is Cause.CONFLICT
    assert onward.gap is not None
    assert "app.py, lib.py" in onward.gap.detail
    assert (onward.gap.attempt, onward.gap.max_attempts) == (1, 3)


def test_work_that_is_red_after_the_merge_goes_back_with_the_failing_goals() -> None:
    red = entry(1, EntryStatus.FAILED, detail="tests_pass: 2 failed")
    onward = only(Continue, decide(field(in_review(1), sessions=(verified(1),), entries=(red,))))
    assert onward.cause is Cause.FAILED
    assert onward.gap is not None
    assert onward.gap.output == "tests_pass: 2 failed"


@pytest.mark.parametrize("status", [EntryStatus.CONFLICT, EntryStatus.FAILED])
def test_after_the_rounds_a_person_decides_whether_there_is_one_more(status: EntryStatus) -> None:
    kind = EscalationKind(str(status))
    torn = entry(1, status, paths=("app.py",), detail="boom")

    def with_(*escalations: object) -> tuple[SchedulerAction, ...]:
        return decide(
            field(in_review(1), sessions=(verified(1, rounds=3),), entries=(torn,), escalations=tuple(escalations))
        )

    escalated = only(Escalate, with_())
    assert (escalated.escalation.kind, escalated.blocker) == (kind, None)
    assert escalated.escalation.evidence["paths"] == ["app.py"]
    assert escalated.escalation.evidence["branch"] == "genba/1-x"
    assert wait_of(1, with_(asked(1, kind))).why.endswith("genba approve 1")
    granted = asked(1, kind, "approved", answer="keep theirs", evidence={"round": 3})
    onward = only(Continue, with_(granted))
    assert onward.gap is not None
    assert "keep theirs" in onward.gap.output
    stale = asked(1, kind, "approved", evidence={"round": 2})
    assert only(Escalate, with_(stale)).escalation.kind is kind
    assert only(EndSession, with_(asked(1, kind, "rejected", evidence={"round": 3}))).outcome == "aborted"


def test_an_entry_that_was_withdrawn_has_its_branch_looked_at_again_and_is_then_queued_again() -> None:
    gone = entry(1, EntryStatus.WITHDRAWN, finished_at="2026-03-01T11:30:00.000000Z")
    before = verified(1, heartbeat_at="2026-03-01T11:29:00.000000Z")
    assert only(Continue, decide(field(in_review(1), sessions=(before,), entries=(gone,)))).cause is Cause.RESUMED
    after = verified(1, heartbeat_at="2026-03-01T11:31:00.000000Z")
    assert only(Queue, decide(field(in_review(1), sessions=(after,), entries=(gone,)))).round == 2


def test_verified_work_whose_task_is_not_in_review_is_handed_over_again() -> None:
    here = field(task(1, status=TaskStatus.IN_PROGRESS), sessions=(verified(1),))
    assert only(Continue, decide(here)).cause is Cause.RESUMED


def test_a_pull_request_is_waited_for() -> None:
    here = field(in_review(1), sessions=(verified(1, WaitsFor.PULL_REQUEST),))
    assert wait_of(1, decide(here)).kind is WaitReason.PULL_REQUEST


# ── reviews ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_commit_that_needs_a_review_has_one_asked_for() -> None:
    wanted = only(AskReview, decide(field(_reviewed("ai"), sessions=(_judged(),))))
    assert (wanted.task, wanted.commit, wanted.reviewer_type, wanted.assignee) == (1, COMMIT, "ai", "reviewer")


def test_an_author_never_reviews_so_a_person_does() -> None:
    wanted = only(AskReview, decide(field(_reviewed("ai"), sessions=(_judged(agent="reviewer"),))))
    assert (wanted.reviewer_type, wanted.assignee) == ("human", "")
    assert wanted.reason == "only reviewer could review it, and has worked on it"


def test_a_person_who_reviews_instead_of_an_agent_learns_why() -> None:
    here = field(
        _reviewed("ai", children=(2,)), review_task(2, 1), sessions=(_judged(agent="reviewer"),),
        reviews=(review(2, 1, reviewer_type="human"),),
    )  # fmt: skip
    asked = only(Escalate, decide(here)).escalation.question
    assert asked.startswith("No agent reviews it: only reviewer could review it, and has worked on it. Is commit ")


def test_a_review_by_a_person_is_an_escalation_and_starts_no_agent() -> None:
    here = field(
        _reviewed("human", children=(2,)), review_task(2, 1), sessions=(_judged(),),
        reviews=(review(2, 1, reviewer_type="human"),),
    )  # fmt: skip
    found = decide(here)
    escalated = only(Escalate, found).escalation
    assert (escalated.task, escalated.kind, escalated.commit) == (1, EscalationKind.REVIEW, COMMIT)
    assert none(Start, found)
    assert wait_of(2, found).why == "a person reviews it  genba approve 1"


def test_a_review_of_an_older_commit_does_not_count() -> None:
    here = field(_reviewed("ai"), sessions=(_judged(),), reviews=(review(2, 1, commit=CHANGED, status="approved"),))
    assert only(AskReview, decide(here)).commit == COMMIT


def test_an_approved_commit_is_queued() -> None:
    here = field(_reviewed("human", approved=COMMIT), sessions=(_judged(),))
    assert only(Queue, decide(here)).commit == COMMIT


def test_findings_go_back_to_the_author() -> None:
    wants = review(2, 1, status="changes", findings=("must: app.py:3: boom",), reviewer="reviewer")
    onward = only(Continue, decide(field(_reviewed("ai"), sessions=(_judged(),), reviews=(wants,))))
    assert onward.cause is Cause.FINDINGS
    assert onward.gap is not None
    assert "app.py:3" in onward.gap.output


def test_after_the_rounds_of_review_a_person_approves_or_says_what_is_missing() -> None:
    wants = review(2, 1, status="changes", findings=("should: x",))
    result = settings(review={"rounds": 2})
    here = field(_reviewed("ai"), sessions=(_judged(reviews=2),), reviews=(wants,))
    escalated = only(Escalate, decide(here, result)).escalation
    assert escalated.evidence["findings"] == ["should: x"]
    no = asked(1, EscalationKind.REVIEW, "rejected", answer="rename it", commit=COMMIT, evidence={"round": 2})
    here = field(_reviewed("ai"), sessions=(_judged(reviews=2),), reviews=(wants,), escalations=(no,))
    onward = only(Continue, decide(here, result))
    assert onward.gap is not None
    assert "rename it" in onward.gap.output


def test_the_same_commit_after_findings_is_put_before_a_person() -> None:
    wants = review(2, 1, status="changes", findings=("must: x",))
    here = field(_reviewed("ai"), sessions=(_judged(reviews=1),), reviews=(wants,))

    escalated = only(Escalate, decide(here)).escalation

    assert escalated.question.startswith("Changes were wanted, and nothing was changed")


def _reviewed(reviewer_type: str, **more: Any) -> Task:
    return in_review(1, requires_review=True, reviewer_type=reviewer_type, **more)


def _judged(**more: Any) -> FleetSession:
    return verified(1, WaitsFor.REVIEW, **more)


# ── budget and suspending ────────────────────────────────────────────────────────────────────────────────────────────


def test_a_session_without_budget_asks_a_person_and_goes_on_when_it_is_approved() -> None:
    spent = SpendingTotals(by_task={1: Cost(cost_usd=5.0)})
    waiting = session(1, waits_for=WaitsFor.BUDGET)
    here = field(task(1, status=TaskStatus.IN_PROGRESS, budget_usd=4), sessions=(waiting,), ledger=spent)
    escalated = only(Escalate, decide(here))
    assert "$5 of $4" in escalated.escalation.question
    assert escalated.blocker is not None
    yes = asked(1, EscalationKind.BUDGET, "approved", evidence=escalated.escalation.evidence)
    here = field(task(1, budget_usd=4), sessions=(waiting,), ledger=spent, escalations=(yes,))
    assert only(Continue, decide(here)).cause is Cause.RESUMED


def test_a_session_without_budget_goes_on_when_the_budget_is_raised() -> None:
    spent = SpendingTotals(by_task={1: Cost(cost_usd=5.0)})
    here = field(task(1, budget_usd=20), sessions=(session(1, waits_for=WaitsFor.BUDGET),), ledger=spent)
    assert only(Continue, decide(here)).reason == "there is budget again"


def test_a_session_that_the_budget_of_the_day_suspended_goes_on_tomorrow() -> None:
    here = field(
        task(1, status=TaskStatus.IN_PROGRESS), sessions=(session(1, waits_for=WaitsFor.BUDGET),),
        ledger=SpendingTotals(today=Cost(cost_usd=9)),
    )  # fmt: skip
    assert wait_of(1, decide(here, settings(budget={"day_usd": 9}))).until == "2026-03-02T00:00:00.000000Z"


def test_a_session_that_was_suspended_goes_on_unless_a_person_stopped_it() -> None:
    suspended = session(1, waits_for=WaitsFor.RESUME)
    assert only(Continue, decide(field(task(1), sessions=(suspended,)))).cause is Cause.RESUMED
    stopped = field(task(1), sessions=(suspended,), escalations=(asked(1, EscalationKind.STOPPED),))
    assert wait_of(1, decide(stopped)).kind is WaitReason.PERSON
    held = field(task(1), sessions=(suspended,), held=frozenset({1}))
    assert all(isinstance(move, Wait) for move in decide(held))


def test_a_session_of_a_task_that_has_ended_ends() -> None:
    here = field(task(1, status=TaskStatus.CANCELLED), sessions=(session(1, waits_for=WaitsFor.ANSWER),))
    assert only(EndSession, decide(here)).reason == "#1 is cancelled"


def test_work_that_leaves_the_queue_again_and_again_is_put_to_a_person() -> None:
    out = entry(1, EntryStatus.WITHDRAWN, detail="genba/1-x is gone", finished_at=NOW)
    result = settings(merge={"rounds": 2})

    def with_(rounds: int, *result_before: Escalation) -> tuple[SchedulerAction, ...]:
        here = field(in_review(1), sessions=(verified(1, rounds=rounds),), entries=(out,), escalations=result_before)
        return decide(here, result)

    assert only(Continue, with_(1)).cause is Cause.RESUMED
    found = only(Escalate, with_(2)).escalation
    assert (found.kind, found.evidence["round"]) == (EscalationKind.CONFLICT, 2)
    assert "genba/1-x is gone" in found.question
    assert only(Continue, with_(2, asked(1, found.kind, "approved", evidence={"round": 2}))).cause is Cause.RESUMED
    assert only(EndSession, with_(2, asked(1, found.kind, "rejected", evidence={"round": 2}))).part == 1


def test_a_closure_that_fails_is_tried_again_later_each_time_and_then_put_to_a_person() -> None:
    result = settings(attempts={"backoff_seconds": 10, "max": 3})
    landed = "e" * 40

    def with_(failed_at: str, *result_before: Escalation) -> tuple[SchedulerAction, ...]:
        tried = verified(1, WaitsFor.MERGE, part=3, reason="the push was refused", heartbeat_at=failed_at)
        merged = entry(1, EntryStatus.MERGED, landed=landed, finished_at="2026-03-01T11:58:00.000000Z")
        return decide(field(in_review(1), sessions=(tried,), entries=(merged,), escalations=result_before), result)

    assert only(Continue, with_("2026-03-01T11:58:05.000000Z")).cause is Cause.LANDED
    wait = wait_of(1, with_("2026-03-01T11:59:10.000000Z"))
    assert (wait.kind, wait.until) == (WaitReason.BACKOFF, "2026-03-01T12:00:20.000000Z")
    late = "2026-03-01T11:59:30.000000Z"
    found = only(Escalate, with_(late))
    assert found.blocker is None
    assert (found.escalation.kind, found.escalation.evidence["landed"]) == (EscalationKind.ATTEMPTS, landed)
    assert "the push was refused" in found.escalation.question
    assert wait_of(1, with_(late, asked(1, EscalationKind.ATTEMPTS))).kind is WaitReason.PERSON
    of_others = asked(1, EscalationKind.ATTEMPTS, "approved")
    assert only(Escalate, with_(late, of_others)), "what was decided about attempts before does not count"
    evidence = {"landed": landed, "part": 3}
    again = asked(1, EscalationKind.ATTEMPTS, "approved", evidence=evidence)
    assert only(Continue, with_(late, again)).landed == landed
    enough = asked(1, EscalationKind.ATTEMPTS, "rejected", evidence=evidence)
    assert only(Close, with_(late, enough)) == Close(task=1, run="run-1", commit=COMMIT, landed=landed)


def test_a_closure_that_met_a_full_disk_is_tried_until_there_is_room_without_a_question() -> None:
    result = settings(attempts={"backoff_seconds": 10, "max": 3})

    def with_(failed_at: str) -> tuple[SchedulerAction, ...]:
        cut = verified(1, WaitsFor.RESUME, part=9, reason="the disk is full", heartbeat_at=failed_at)
        merged = entry(1, EntryStatus.MERGED, landed="f00", finished_at="2026-02-01T00:00:00.000000Z")
        return decide(field(in_review(1), sessions=(cut,), entries=(merged,)), result)

    wait = wait_of(1, with_("2026-03-01T11:59:55.000000Z"))
    assert (wait.kind, wait.until) == (WaitReason.BACKOFF, "2026-03-01T12:00:05.000000Z")
    assert "the disk is full" in wait.why
    onward = only(Continue, with_("2026-03-01T11:59:45.000000Z"))
    assert (onward.cause, onward.landed) == (Cause.LANDED, "f00")
