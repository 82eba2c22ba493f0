"""What a pull request means for the task whose work it brings.

Law: Genba merges only the commit that it verified. Feedback of a reviewer or a check goes to the author once, however
often it is read: `handed` names what was handed over already.
"""

import msgspec

from genba.domain.sessions.loop_state import CONFLICT, Feedback
from genba.domain.tasks.task import Task, TaskStatus
from genba.domain.text_limits import cut
from genba.domain.tracker.remote import (
    Mergeable,
    PullRequestState,
    RemoteCheck,
    RemoteReview,
    ReviewDecision,
    ReviewVerdict,
    Terms,
    TrackedPullRequest,
)
from genba.judgement.verification.reviews import CHECK

PEOPLE, APPROVED, GREEN = "people", "approved", "green"
_UNTRIED = "GitHub has not tried yet whether it can be merged"
FAILED_CHECKS = "checks"
"""The check of a gap whose work fails on the forge."""
_MERGEABLE = ("", "clean", "has_hooks", "unstable")
_FINDINGS, _WORDS = 40, 8_000
_MAX_NAMES = 5


class Merged(msgspec.Struct, frozen=True, kw_only=True):
    """It was merged."""

    finalized: str
    by: str = ""
    approved_by: str = ""
    """Who approved it there; else who merged it."""
    note: str = ""
    """What is odd about it: other commits than the verified one were merged."""


class Rework(msgspec.Struct, frozen=True, kw_only=True):
    """It goes back to its author."""

    gap: Feedback
    reason: str
    handed: tuple[str, ...]
    """What this hands over: reviews, and checks at their commit."""


class Conflict(msgspec.Struct, frozen=True, kw_only=True):
    """It cannot be merged into its target any more."""

    gap: Feedback
    reason: str
    handed: tuple[str, ...]


class ClosedUnmerged(msgspec.Struct, frozen=True, kw_only=True):
    """It was closed without a merge: a person decides about the task."""

    question: str


class Merge(msgspec.Struct, frozen=True, kw_only=True):
    """Genba merges it."""

    number: int
    commit: str
    why: str
    approved_by: str = ""


class Wait(msgspec.Struct, frozen=True, kw_only=True):
    """Nothing is to be done now."""

    why: str
    untried: bool = False
    """Whether GitHub has not tried yet whether it can be merged."""


Verdict = Merged | Rework | Conflict | ClosedUnmerged | Merge | Wait


def read_back(
    task: Task,
    terms: Terms,
    found: TrackedPullRequest,
    handed: frozenset[str] = frozenset(),
    checks_to_come: bool = False,
) -> Verdict:
    """What is to be done about a pull request, for a task that has not ended.

    `checks_to_come`: the repository has checks, and those of this head may not have begun yet.
    """
    if found.state is PullRequestState.MERGED:
        return _merged(terms, found)
    if task.status is not TaskStatus.REVIEW:
        return Wait(why=f"it is worked on again: #{task.number} is {task.status}")
    if found.state is PullRequestState.CLOSED:
        return ClosedUnmerged(
            question=f"Pull request #{found.number} was closed without a merge. Shall the work go on, and how?"
        )
    rework = _rework(terms, found, handed)
    if rework is not None:
        return rework
    if found.mergeable == Mergeable.CONFLICTING and _moved(terms, found) == "":
        return _conflict(found, handed)
    return _merge_or_wait(task, terms, found, checks_to_come)


def review_key(review: RemoteReview) -> str:
    return f"review:{review.id}"


def check_key(check: RemoteCheck, commit: str) -> str:
    return f"check:{check.name}@{commit}"


def conflict_key(found: TrackedPullRequest) -> str:
    return f"conflict:{found.number}@{found.commit}"


def approvals(terms: Terms, found: TrackedPullRequest) -> tuple[RemoteReview, ...]:
    """Who of those that may write approves the verified commit, and no other."""
    return tuple(
        review
        for review in found.reviews
        if review.trusted
        and review.may_write
        and review.verdict is ReviewVerdict.APPROVED
        and terms.commit
        and review.commit == terms.commit
    )


def standing_of(found: TrackedPullRequest) -> str:
    """How a pull request stands, in a few words for people."""
    if found.state is not PullRequestState.OPEN:
        return f"{found.state} by {found.merged_by}" if found.merged_by else str(found.state)
    parts = ["draft"] if found.draft else []
    for word, verdict in (("approved by", ReviewVerdict.APPROVED), ("changes wanted by", ReviewVerdict.CHANGES)):
        names = [review.author for review in found.reviews if review.verdict is verdict]
        parts += [f"{word} {', '.join(names)}"] if names else []
    if not parts:
        parts = ["open"]
    failed, running = found.failed_checks, _running(found)
    if failed:
        parts.append(f"failed: {_names(failed)}")
    elif running:
        parts.append(f"running: {_names(running)}")
    elif found.checks:
        parts.append("checks are green")
    if found.mergeable == Mergeable.CONFLICTING:
        parts.append(f"conflicts with {found.target}")
    return ", ".join(parts)


def waits_for(found: TrackedPullRequest) -> str:
    """What an open pull request waits for, in a few words for people."""
    standing = standing_of(found)
    return "waits for a review" if standing == "open" else standing.replace("open, ", "waits for a review, ", 1)


def _merged(terms: Terms, found: TrackedPullRequest) -> Merged:
    landed = (found.merged_commit or found.commit)[:7]
    judges = [review.author for review in approvals(terms, found)]
    moved = _moved(terms, found)
    return Merged(
        finalized=f"merged {landed} in pull request #{found.number}",
        by=found.merged_by,
        approved_by=judges[-1] if judges else found.merged_by,
        note=f"pull request #{found.number} was merged, and {moved}" if moved else "",
    )


def _moved(terms: Terms, found: TrackedPullRequest) -> str:
    """Why its head is not what was verified; an empty string when it is."""
    if not terms.commit:
        return "nothing of it was verified"
    if found.commit == terms.commit:
        return ""
    return f"its head is {found.commit[:7]}, and {terms.commit[:7]} was verified"


def _rework(terms: Terms, found: TrackedPullRequest, handed: frozenset[str]) -> Rework | None:
    wanted = [
        review
        for review in found.reviews
        if review.trusted and review.verdict is ReviewVerdict.CHANGES and review_key(review) not in handed
    ]
    failed = [] if _moved(terms, found) else [one for one in found.failed_checks if _is_new(one, found, handed)]
    if failed and _running(found):
        failed = []  # the others may fail as well: all of them go back at once
    if not wanted and not failed:
        return None
    reasons = [f"{review.author} wants changes" for review in wanted]
    reasons += [f"failed: {_names(failed)}"] if failed else []
    reason = f"pull request #{found.number}: {'; '.join(reasons)}"
    parts = [_words(review) for review in wanted] + [_details(check) for check in failed]
    what = "Make the changes that are asked for" if wanted else "Make the checks pass"
    gap = Feedback(
        check=CHECK if wanted else FAILED_CHECKS,
        detail=f"{reason}. {what}, and commit. What others wrote stands below.",
        output=cut("\n\n".join(parts), _WORDS),
        claim="",
        attempt=1,
        max_attempts=1,
    )
    keys = [review_key(review) for review in wanted] + [check_key(check, found.commit) for check in failed]
    return Rework(gap=gap, reason=reason, handed=tuple(keys))


def _is_new(check: RemoteCheck, found: TrackedPullRequest, handed: frozenset[str]) -> bool:
    return check_key(check, found.commit) not in handed


def _words(review: RemoteReview) -> str:
    on = f" on {review.commit[:7]}" if review.commit else ""
    lines = [f"{review.author} wants changes{on}:"]
    lines += [review.body.strip()] if review.body.strip() else []
    lines += [f"- {finding}" for finding in review.findings[:_FINDINGS]]
    if len(review.findings) > _FINDINGS:
        lines.append(f"- and {len(review.findings) - _FINDINGS} more")
    return "\n".join(lines)


def _details(check: RemoteCheck) -> str:
    return "\n".join(text for text in (f"{check.name} failed", check.detail.strip(), check.url) if text)


def _conflict(found: TrackedPullRequest, handed: frozenset[str]) -> Conflict | Wait:
    key = conflict_key(found)
    reason = f"pull request #{found.number} conflicts with {found.target}"
    if key in handed:
        return Wait(why=f"{reason}, and its author knows")
    gap = Feedback(
        check=CONFLICT,
        detail=f"{reason}. {found.target} is merged into the branch, with markers where the two conflict. Keep what "
        "both sides want, remove every marker, and commit.",
        output="",
        claim="",
        attempt=1,
        max_attempts=1,
    )
    return Conflict(gap=gap, reason=reason, handed=(key,))


def _merge_or_wait(task: Task, terms: Terms, found: TrackedPullRequest, checks_to_come: bool) -> Merge | Wait:
    moved = _moved(terms, found)
    if moved:
        return Wait(why=f"{moved}: Genba does not merge it")
    if found.draft:
        return Wait(why="it is a draft")
    if found.failed_checks:
        return Wait(why=f"failed: {_names(found.failed_checks)}")
    if _running(found):
        return Wait(why=f"checks are running: {_names(_running(found))}")
    unhappy = [review.author for review in found.reviews if review.verdict is ReviewVerdict.CHANGES and review.trusted]
    if unhappy or found.decision == ReviewDecision.CHANGES_REQUESTED:
        return Wait(why=f"waits for another review by {', '.join(unhappy) or 'who wanted changes'}")
    approved = approvals(terms, found)
    needs_approval = terms.merge == APPROVED or task.requires_review or found.decision == ReviewDecision.REVIEW_REQUIRED
    if needs_approval and not approved:
        return Wait(why="waits for a review")
    if terms.merge not in (APPROVED, GREEN):
        return Wait(why="approved: waits for a person to merge it" if approved else "waits for people")
    if checks_to_come and not found.checks:
        return Wait(why="no check has begun yet")
    if found.mergeable != Mergeable.MERGEABLE:
        return Wait(why=_UNTRIED, untried=True)
    if found.merge_state not in _MERGEABLE:
        return Wait(why=f"the rules of the repository hold it back: {found.merge_state}")
    why = f"approved by {approved[-1].author}, and green" if approved else "green"
    judge = approved[-1].author if approved else ""
    return Merge(number=found.number, commit=terms.commit, why=why, approved_by=judge)


def _running(found: TrackedPullRequest) -> tuple[RemoteCheck, ...]:
    return tuple(check for check in found.checks if check.state == "pending")


def _names(checks: tuple[RemoteCheck, ...] | list[RemoteCheck]) -> str:
    names = [check.name for check in checks]
    return ", ".join(names[:_MAX_NAMES]) + (f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else "")
