from hypothesis import given
from hypothesis import strategies as st

from genba.domain.fleet.records import Escalation, EscalationKind, FleetSession
from genba.domain.goals.goal import FrozenGoal, GoalLevel, GoalSource, LintPasses, TestsPass
from genba.domain.goals.verification import GoalResult, RejectionReason, Subject, VerdictStatus, Verification
from genba.domain.sessions.evidence import CheckResult, CheckStatus
from genba.domain.sessions.loop_state import ANSWER
from genba.domain.tasks.task import Task
from genba.judgement.workflow.handovers import LONGEST, answer_gap, handover, quoted

TASK = Task(id=1, number=12, title="Add a login")


def session(attempt: int, **more: object) -> FleetSession:
    given_ = {"status": "ended", "outcome": "incomplete", "branch": "genba/12-add-a-login", **more}
    return FleetSession(run=f"r{attempt}", task=12, agent="iterator", attempt=attempt, **given_)  # type: ignore[arg-type]


def result(goal: TestsPass | LintPasses, status: CheckStatus, detail: str, output: str = "") -> GoalResult:
    frozen = FrozenGoal(level=GoalLevel.DOD, source=GoalSource.PROJECT_CONFIG, origin="config", goal=goal)
    return GoalResult(goal=frozen, result=CheckResult(name=frozen.type, status=status, detail=detail, output=output))


def rejected(*results: GoalResult) -> Verification:
    return Verification(
        status=VerdictStatus.REJECTED,
        reason=RejectionReason.GOALS_NOT_MET,
        subject=Subject(commit="5c1a0f2" + "0" * 33, base="b" * 40),
        tree="t",
        commits=1,
        results=results,
    )


def test_the_next_attempt_gets_what_was_tried_and_the_status() -> None:
    note = handover(
        TASK,
        [
            session(1, reason="tests_pass does not hold", iterations=5, tokens=4000, cost_usd=0.4),
            session(2, outcome="failed", reason="no model", iterations=1, tokens=100, cost_usd=0.01, rounds=2),
        ],
        last=rejected(
            result(TestsPass(), CheckStatus.FAILED, "2 failed: test_a, test_b"),
            result(LintPasses(), CheckStatus.PASSED, "fine"),
            result(LintPasses(required=False), CheckStatus.FAILED, "only reported"),
        ),
        conflicts=["app.py", "lib/b.py"],
        escalations=[
            Escalation(
                task=12,
                kind=EscalationKind.QUESTION,
                question="Which?",
                status="answered",
                answer="Both.",
                answered_by="ann",
            ),
            Escalation(task=12, kind=EscalationKind.ATTEMPTS, question="Go on?"),
        ],
        notes=["the cache is stale"],
    )

    assert note == (
        "Task #12 was tried before: 2 attempts, for 4100 tokens and $0.41.\n"
        "- attempt 1 by iterator: incomplete after 5 iterations\n"
        "  > tests_pass does not hold\n"
        "- attempt 2 by iterator: failed after 1 iteration, 2× back from the merge queue\n"
        "  > no model\n"
        "The work so far is on the branch genba/12-add-a-login, last looked at in 5c1a0f2.\n"
        "The last verdict was rejected: goals_not_met.\n"
        "- the goal tests_pass failed\n"
        "  > 2 failed: test_a, test_b\n"
        "It conflicts with its target in: app.py, lib/b.py.\n"
        "An agent asked:\n"
        "  > Which?\n"
        "ann answered:\n"
        "  > Both.\n"
        "A note was left:\n"
        "  > the cache is stale"
    )


def test_before_the_first_attempt_there_is_nothing_to_hand_over() -> None:
    assert handover(TASK, []) == ""
    assert handover(TASK, [session(1, status="running", outcome="")]) == ""


def test_an_answer_is_handed_over_before_the_attempt_has_ended() -> None:
    answered = Escalation(task=12, kind=EscalationKind.QUESTION, question="Which?", status="answered", answer="A.")

    note = handover(TASK, [session(1, status="waiting", outcome="")], escalations=[answered])

    assert note == "An agent asked:\n  > Which?\na person answered:\n  > A."


def test_a_goal_that_could_not_be_checked_did_not_fail() -> None:
    broken = rejected(result(TestsPass(), CheckStatus.ERROR, "", "x\nno space left\n"))

    note = handover(TASK, [session(1)], last=broken)

    assert "- the goal tests_pass could not be checked\n  > no space left" in note


HOSTILE = st.text(alphabet=st.sampled_from("#->`A \n\r\x0b\x85\u2028\u2029\x1b\0"), min_size=1, max_size=80)


@given(HOSTILE)
def test_no_quoted_output_stands_alone_on_a_line(reply: str) -> None:
    marked = f"EVIL{reply}EVIL"
    escalation = Escalation(
        task=12, kind=EscalationKind.QUESTION, question=marked, status="answered", answer=marked, answered_by="ann"
    )
    last = rejected(result(TestsPass(), CheckStatus.FAILED, marked))

    note = handover(TASK, [session(1, reason=marked)], last=last, escalations=[escalation], notes=[marked])

    spoken = [line for line in note.split("\n") if "EVIL" in line]
    assert len(spoken) >= 5
    assert all(line.startswith("  > ") and line.isprintable() for line in spoken)


def test_a_note_has_an_end() -> None:
    long = "word " * 20_000
    sessions = [session(at, reason=long) for at in range(1, 40)]
    last = rejected(*[result(TestsPass(), CheckStatus.FAILED, long, long)] * 50)
    asked = [Escalation(task=12, kind=EscalationKind.QUESTION, question=long, status="answered", answer=long)] * 50

    note = handover(TASK, sessions, last=last, conflicts=["p" * 90] * 500, escalations=asked, notes=[long] * 90)

    assert len(note) <= LONGEST
    assert "39 attempts" in note
    assert "The last 5:" in note


def test_a_quotation_is_cut_where_it_is_too_long() -> None:
    assert quoted("one\ntwo\nthree", lines=2) == ["  > one", "  > two…"]
    assert quoted("") == []


def test_an_answer_goes_to_the_next_prompt_with_its_question() -> None:
    gap = answer_gap("MIT or Apache-2.0?\n", " MIT ")

    assert (gap.check, gap.claim, gap.detail) == (ANSWER, "MIT or Apache-2.0?", "MIT")
