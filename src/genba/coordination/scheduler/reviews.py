"""Reviewing: the context of a session that reviews a commit, and what becomes of its verdict.

Law: a verdict counts for the one commit that it was asked for, and only from an agent that did not write it; the
blackboard refuses every other. Safe to repeat.
"""

from collections.abc import Collection
from typing import Any

from genba.blackboard.fleet.fleet_board import FleetBoard
from genba.domain.errors import NotFoundError, StateConflictError
from genba.domain.fleet.records import SegmentEnd, SegmentOrder
from genba.domain.goals.verification import GoalResult, Verification
from genba.domain.sessions.evidence import CheckStatus
from genba.domain.sessions.outcomes import Outcome
from genba.domain.tasks.task import Actor, ActorKind, Task
from genba.execution.run_values import RunResult
from genba.judgement.language.sentences import detail_in
from genba.judgement.language.wording import say
from genba.judgement.scheduling.plans import goal_line
from genba.judgement.verification.reviews import ReviewVerdict, read_verdict

_WORDS = {
    CheckStatus.PASSED: "goal_holds",
    CheckStatus.FAILED: "goal_fails",
    CheckStatus.ERROR: "goal_not_checked",
}
_DETAIL = 200


def review_parameters(
    review: Task,
    reviewed: Task,
    base: str,
    last: Verification | None,
    declared: Collection[str],
    language: str = "en",
) -> dict[str, Any]:
    """The parameters of a session that reviews; a reviewer of your own gets those that it declares."""
    heading = say(language, "reviewed_task", number=reviewed.number, title=reviewed.title)
    values = {
        "issue": review.number,
        "commit": review.review_commit,
        "base": base,
        "task": f"{heading}\n\n{reviewed.body}".rstrip(),
        "results": goal_lines(last, review.review_commit, language),
    }
    return {name: value for name, value in values.items() if name in declared}


def goal_lines(last: Verification | None, commit: str, language: str = "en") -> str:
    """The goals of the work and how they came out on this commit, one on a line."""
    if last is None or last.subject.commit != commit:
        return say(language, "nothing_verified")
    return "\n".join(_goal_line(result, language) for result in last.results) or say(language, "no_goal")


def _goal_line(result: GoalResult, language: str) -> str:
    found = detail_in(language, result.goal.type, result.result.detail)
    detail = " ".join("".join(letter if letter.isprintable() else " " for letter in found).split())
    message = f": {detail[:_DETAIL]}" if detail else ""
    return f"- `{goal_line(result.goal.goal)}` {say(language, _WORDS[result.result.status])}{message}"


def finish_review(result: RunResult, order: SegmentOrder, board: FleetBoard) -> SegmentEnd:
    """Give the verdict that a session came back with. What is still no verdict ends it without one."""
    read = read_verdict(result.output or {})
    if not isinstance(read, ReviewVerdict):
        message = "; ".join(str(problem) for problem in read[:3])
        return _ended(order, Outcome.INCOMPLETE, f"no verdict that can be used: {message}")
    actor = Actor(ActorKind.REVIEWER, order.run)
    try:
        given = board.verdict(order.task, read.approved, read.lines, order.agent, actor, order.run)
    except (StateConflictError, NotFoundError) as error:
        return _ended(order, Outcome.ABORTED, f"the verdict does not count: {error.message}")
    wanted = "approved" if read.approved else "changes"
    if given.status != wanted:
        message = f"the verdict does not count: the review of {given.commit[:7]} is {given.status} by now"
        return _ended(order, Outcome.ABORTED, message)
    count = "1 finding" if len(read.findings) == 1 else f"{len(read.findings)} findings"
    return _ended(order, Outcome.COMPLETED, f"{'approves' if read.approved else 'wants changes'}, {count}")


def _ended(order: SegmentOrder, outcome: Outcome, reason: str) -> SegmentEnd:
    return SegmentEnd(run=order.run, part=order.part, outcome=outcome, reason=reason)
