"""Reviews that a single session asks for: the review task, the decision of a person, and what came back.

Law: a commit in review is asked about once. What a review requested is known to the next session of the task until a
newer commit is in review.
"""

from collections.abc import Callable
from typing import Any

import msgspec

from genba.blackboard.database.store import Statement, Transaction
from genba.blackboard.fleet.escalations import escalate
from genba.blackboard.reviews.reviews import ask_review, settle_by_hand
from genba.blackboard.tasks.task_rows import task_with_rows
from genba.blackboard.tasks.task_tree import hold_line
from genba.blackboard.tasks.transition_rules import refused, reviewed_commit
from genba.domain.decoding import reader
from genba.domain.fleet.records import Escalation, EscalationKind, Review
from genba.domain.sessions.session import ChangesRequested
from genba.domain.tasks.task import Actor, Task, TaskStatus

_CHANGES = Statement("""
SELECT r."commit", r.reviewer, r.findings, r.decided_at FROM reviews r
WHERE r.of_task_id = :task AND r.status = 'changes' ORDER BY r.id DESC
""")
_REJECTED = Statement("""
SELECT e."commit", e.answered_by, e.answer, e.answered_at FROM escalations e
WHERE e.task_id = :task AND e.kind = 'review' AND e.status = 'rejected' ORDER BY e.id DESC LIMIT 1
""")
_SESSION = Statement("""
SELECT s.branch, a.name FROM sessions s JOIN agents a ON a.id = s.agent_id WHERE s.run = :run
""")

_texts = reader(tuple[str, ...])


def request_review(
    tx: Transaction, of: int, commit: str, run: str, rounds: int, words: Callable[[str], str] = str
) -> Review:
    """Create the review task of a commit; where a person reviews, also the decision.

    A person reviews when the task says so, after `rounds` requests for changes, and when a commit comes back unchanged.
    """
    task = task_with_rows(tx, of).task
    found = ask_review(tx, of, commit, task.reviewer_type, words=words)
    question = words(_question(found, len(tx.all(_CHANGES, task=task.id)), rounds))
    if not question:
        return found
    values: dict[str, Any] = {"round": 0, "review": found.task, "findings": found.findings, "reviewer": found.reviewer}
    session = tx.one(_SESSION, run=run)
    if session is not None:
        values |= {"branch": session[0], "agent": session[1]}
    asked = Escalation(task=of, kind=EscalationKind.REVIEW, question=question, run=run, commit=commit, evidence=values)
    escalate(tx, asked, None)
    return msgspec.structs.replace(found, reviewer_type="human")


def _question(review: Review, count: int, rounds: int) -> str:
    """What a person is asked about a commit; empty while an agent reviews it."""
    if review.status == "changes":
        return "Changes were requested, and nothing was changed. Approve the commit, or say what is missing."
    if review.status != "open":
        return ""
    if review.reviewer_type == "human":
        return f"Is commit {review.commit[:7]} what was wanted?"
    if count >= rounds:
        return f"Reviewers requested changes {count} times. Approve the commit, or say what is missing."
    return ""


def reject_commit(tx: Transaction, number: int, commit: str, reason: str, actor: Actor) -> None:
    """A person requests changes of a commit in review, without being asked for a decision."""
    hold_line(tx, number, with_itself=False)
    task = task_with_rows(tx, number).task
    ask_review(tx, number, commit, task.reviewer_type)
    if not settle_by_hand(tx, number, commit, False, (reason,), actor):
        raise refused(number, f"commit {commit[:12]} was reviewed already", f"genba task show {number}")


def changes_requested(tx: Transaction, task: Task) -> ChangesRequested | None:
    """What a review requested of the commit that was in review last; None when nothing is open."""
    reviews = tx.all(_CHANGES, task=task.id)
    rejected = tx.one(_REJECTED, task=task.id)
    if not reviews and rejected is None:
        return None
    commit = reviewed_commit(tx, task)
    review = next((row for row in reviews if row[0] == commit), None)
    answer = rejected if rejected is not None and rejected[0] == commit else None
    if review is None and answer is None:
        return None
    findings = _texts.decode(review[2]) if review is not None else ()
    reviewer = str(review[1]) if review is not None else ""
    if answer is not None and answer[2] not in findings:
        findings, reviewer = (str(answer[2]), *findings), str(answer[1])
    key = f"{commit} {review[3] if review is not None else ''} {answer[3] if answer is not None else ''}"
    return ChangesRequested(key=key, commit=commit, reviewer=reviewer, findings=findings, count=max(1, len(reviews)))


def commit_in_review(tx: Transaction, number: int) -> str:
    """The commit that waits for its review or to land; empty when the task is not in review."""
    task = task_with_rows(tx, number).task
    return reviewed_commit(tx, task) if task.status is TaskStatus.REVIEW else ""
