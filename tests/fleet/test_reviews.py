"""Reviews: bound to one commit, never by the author, and what they find goes back to who wrote it."""

import json
from typing import Any

from genba.domain.fleet.records import EscalationKind
from genba.domain.tasks.task import TaskStatus
from tests.fleet.yard import Yard, summary

FINDING = {"path": "task-1.txt", "line": 1, "severity": "must", "text": "it says too little"}
CHANGES = {"status": "completed", "verdict": "changes", "findings": [FINDING], "summary": "Nearly."}
APPROVE = {"status": "completed", "verdict": "approve", "findings": [], "summary": "Good."}
ANSWERS = {"type": "structuredSignal", "config": {"outputSchema": {"type": "object", "required": ["verdict"]}}}
NONSENSE = {"status": "completed", "verdict": "approve", "findings": [FINDING]}


def reviewer(yard: Yard, *replies: dict[str, Any], name: str = "reviewer", do: str = "true") -> None:
    """An agent that gives one verdict after the other in each of its sessions."""
    turns = [{"do": [{"run": f"echo {name} >> {yard.starts}; {do}"}], "reply": reply} for reply in replies]
    yard.project.agent(
        name,
        script={"turns": turns, "repeat": True},
        parameters={"issue": {"type": "number"}},
        completion=ANSWERS,
    )


def reviewer_by_rounds(yard: Yard, *replies: dict[str, Any]) -> None:
    """A reviewer who says another thing of every version: it looks at how many lines there are."""
    script = yard.project.root.parent / "verdict.sh"
    lines = [f"{at}) echo '```json'; echo '{json.dumps(reply)}'; echo '```';;" for at, reply in enumerate(replies, 1)]
    count = "$(wc -l < task-1.txt | tr -d ' ')"
    script.write_text("\n".join([f"echo reviewer >> {yard.starts}", f"case {count} in", *lines, "esac", ""]))
    yard.project.agent(
        "reviewer",
        adapter={"type": "custom", "command": ["sh", str(script)]},
        parameters={"issue": {"type": "number"}},
        completion=ANSWERS,
    )


def author(yard: Yard, name: str = "worker") -> None:
    yard.agent(name, script="echo $GENBA_ISSUE >> task-$GENBA_ISSUE.txt")


def reviews_of(yard: Yard, number: int) -> list[str]:
    with yard.board() as board:
        return [found.status for found in board.field().reviews if found.of == number]


def test_a_review_without_a_reviewer_is_a_persons_and_the_screen_says_why(small_yard: Yard) -> None:
    yard = small_yard
    yard.set(review={"agent": "nobody"})
    author(yard)
    yard.task(1, requires_review=True, reviewer_type="ai")

    done = yard.work(check=1)

    why = 'review.agent names "nobody"'
    assert any("is asked for of a person, since" in line and why in line for line in done.err.splitlines()), done.err
    asked = summary(done)["needs"][0]
    assert asked["kind"] == "review"
    assert why in asked["question"]


def test_findings_go_back_to_the_author_until_the_reviewer_approves(yard: Yard) -> None:
    yard.set(work={"workers": 1})
    author(yard)
    reviewer_by_rounds(yard, CHANGES, CHANGES, APPROVE)
    yard.task(1, requires_review=True, reviewer_type="ai")

    yard.work()

    assert yard.look(1).status is TaskStatus.DONE
    with yard.board() as board:
        (session,) = board.sessions(1)
    assert session.reviews == 2
    result = yard.project.prompts(session.run)
    assert len(result) == 3
    assert all("must: task-1.txt:1: it says too little" in prompt for prompt in result[1:])
    assert yard.started() == ["1", "reviewer", "1", "reviewer", "1", "reviewer"]
    assert yard.project.git("show", "main:task-1.txt").split() == ["1", "1", "1"]
    assert not [name for name in yard.project.branches() if "review" in name], "what a reviewer had is gone"
    assert not yard.unreachable()
    assert not yard.left_running()


def test_after_the_rounds_of_a_review_a_person_decides(small_yard: Yard) -> None:
    yard = small_yard
    yard.set(review={"rounds": 1})
    author(yard)
    reviewer(yard, CHANGES)
    yard.task(1, requires_review=True, reviewer_type="ai")

    yard.work(check=1)

    with yard.board() as board:
        (asked,) = board.escalations()
    assert asked.kind is EscalationKind.REVIEW
    assert "more than 1 times" in asked.question
    assert asked.evidence["findings"] == ["must: task-1.txt:1: it says too little"]
    yard.genba("approve", "1")
    yard.work()
    assert yard.look(1).status is TaskStatus.DONE


def test_a_person_approves_a_commit_and_it_lands(yard: Yard) -> None:
    yard.set()
    author(yard)
    yard.task(1, requires_review=True)

    waiting = summary(yard.work(check=1))

    assert yard.look(1).status is TaskStatus.REVIEW
    assert [need["command"] for need in waiting["needs"]] == ["genba approve 1"]
    assert "task-1.txt" not in yard.files()
    yard.genba("approve", "1")
    yard.work()
    assert yard.look(1).status is TaskStatus.DONE
    assert yard.started() == ["1"], "nobody was asked again"


def test_what_a_person_rejects_goes_back_with_the_reason_and_another_commit_is_judged(small_yard: Yard) -> None:
    yard = small_yard
    yard.set()
    author(yard)
    yard.task(1, requires_review=True)
    yard.work(check=1)
    with yard.board() as board:
        first = board.escalations()[0].commit

    yard.genba("reject", "1", "--reason", "It needs a second line.")
    yard.work(check=1)

    with yard.board() as board:
        (asked,) = board.escalations()
        (session,) = board.sessions(1)
    assert "It needs a second line." in yard.project.prompts(session.run)[-1]
    assert asked.commit != first
    refused = yard.genba("approve", "1", first[:12], check=None)
    assert refused.code != 0
    assert "is not what is to be approved" in refused.err
    yard.genba("approve", "1", asked.commit[:12])
    yard.work()
    assert yard.look(1).status is TaskStatus.DONE
    assert yard.project.git("show", "main:task-1.txt").split() == ["1", "1"]


def test_the_author_never_reviews_its_own_work(small_yard: Yard) -> None:
    yard = small_yard
    yard.set(work={"agent": "reviewer"}, review={"agent": "reviewer"})
    author(yard, "reviewer")
    yard.task(1, requires_review=True, reviewer_type="ai")

    yard.work(check=1)

    assert yard.started() == ["1"]
    with yard.board() as board:
        (asked,) = board.escalations()
    assert asked.kind is EscalationKind.REVIEW, "a person is asked instead"


def test_a_verdict_that_contradicts_itself_is_asked_for_again_and_then_counts_for_nothing(small_yard: Yard) -> None:
    yard = small_yard
    yard.set(attempts={"max": 1, "per_agent": 1})
    author(yard)
    reviewer(yard, NONSENSE, NONSENSE, NONSENSE, NONSENSE)
    yard.task(1, requires_review=True, reviewer_type="ai")

    yard.work(check=1)

    assert yard.started() == ["1", "reviewer", "reviewer", "reviewer"]
    assert yard.look(1).status is TaskStatus.REVIEW
    with yard.board() as board:
        (asked,) = board.escalations()
        (result,) = board.sessions(2)
    assert asked.kind is EscalationKind.REVIEW
    assert "approves, and a finding says what must be changed first" in yard.project.prompts(result.run)[-1]
    yard.genba("approve", "1")
    yard.work()
    assert yard.look(1).status is TaskStatus.DONE


def test_what_a_reviewer_commits_is_kept_aside_and_not_used(small_yard: Yard) -> None:
    yard = small_yard
    yard.set()
    author(yard)
    reviewer(yard, APPROVE, do="echo x > mine.txt; git add -A; git commit -qm mine")
    yard.task(1, requires_review=True, reviewer_type="ai")

    done = yard.work()

    assert yard.look(1).status is TaskStatus.DONE
    assert "the engine met an error" not in done.err
    assert any("approves, 0 findings" in line for line in done.err.splitlines()), done.err
    with yard.board() as board:
        (session,) = (found for found in board.sessions(2) if found.agent == "reviewer")
    notices = [event["message"] for event in yard.project.events(session.run) if event["event"] == "notice"]
    assert any("what it wrote is not used, and is kept" in message for message in notices), notices
    assert "mine.txt" not in yard.files()
    kept = yard.project.git("for-each-ref", "--format=%(refname)", "refs/genba/rescue").split()
    assert any("mine.txt" in yard.files(ref) for ref in kept)
    assert not [name for name in yard.project.branches() if "review" in name]
    assert not yard.unreachable()
