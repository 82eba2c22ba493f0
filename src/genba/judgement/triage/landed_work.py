"""What of an issue's work is on the base: not reverted, not before the issue was reopened, not only a phase of it."""

from collections.abc import Iterator

import msgspec

from genba.domain.facilitation import How, IssueFacts, SeenCommit
from genba.domain.tracker.remote import PullRequestState, TrackedPullRequest


class Landing(msgspec.Struct, frozen=True):
    """Work that is on the base: when the newest of it was made, and how it is seen."""

    time: str
    evidence: tuple[str, ...]
    named_by: How | None = None
    """How its newest commit names the issue."""


def landed(facts: IssueFacts, base: str = "") -> Landing | None:
    """What has landed, if anything. With the name of the base, what was merged elsewhere does not count."""
    since, phases = facts.reopened_at, facts.phase_runs
    number, first, newest = 0, None, ""
    for commit in facts.commits:
        if not commit.on_base or commit.reverted_by or commit.how is How.MENTION or (since and commit.time <= since):
            continue
        if phases and commit.run in phases:
            continue
        if facts.rejected and not commit.run:  # by hand: what it says does not outweigh what was looked at
            continue
        number += 1
        if first is None or commit.time > newest or (commit.time == newest and commit.sha > first.sha):
            first, newest = commit, commit.time
    lines: list[str] = []
    if first is not None:
        more = f", and {number - 1} more" if number > 1 else ""
        lines.append(f"commit {first.sha[:7]} is on the base ({first.how}){more}")
    if facts.pull_requests or facts.branches:
        for time, words in (*_of_requests(facts, base), *_of_branches(facts)):
            if not since or time > since:
                lines.append(words)
                newest = max(newest, time)
    return Landing(newest, tuple(lines), first.how if first is not None else None) if lines else None


def _of_requests(facts: IssueFacts, base: str) -> Iterator[tuple[str, str]]:
    gone = {commit.sha for commit in facts.commits if commit.reverted_by}
    phases = _phase_branches(facts)
    for request in sorted(facts.pull_requests, key=lambda each: each.number):
        if request.state is not PullRequestState.MERGED or request.merged_commit in gone or request.branch in phases:
            continue
        if not elsewhere(request, base):
            how = f" as {request.merged_commit[:7]}" if request.merged_commit else ""
            yield request.merged_at, f"pull request #{request.number} was merged{how}"


def elsewhere(request: TrackedPullRequest, base: str) -> bool:
    """Whether it went into another branch than the base."""
    return bool(base and request.target and request.target != base)


def _of_branches(facts: IssueFacts) -> Iterator[tuple[str, str]]:
    """A branch of a session has landed only with the commit that was verified: others may have made the same change."""
    phases = _phase_branches(facts)
    of_sessions = {each.branch for each in facts.sessions}
    for branch in sorted(facts.branches, key=lambda each: each.name):
        if branch.name in of_sessions and not _may_land(facts, branch.tip):
            continue
        if branch.landed and branch.name not in phases:
            yield branch.time, f"the work of {branch.name} is on the base"


def _may_land(facts: IssueFacts, tip: str) -> bool:
    """True for the commit that was verified, and approved where a review is required."""
    return tip == facts.verified and not facts.rejected and (not facts.requires_review or facts.approved == tip)


def _phase_branches(facts: IssueFacts) -> frozenset[str]:
    if not facts.phase_runs:
        return frozenset()
    return frozenset(each.branch for each in facts.sessions if each.run in facts.phase_runs and each.branch)


def work_of(facts: IssueFacts) -> Iterator[SeenCommit]:
    """Commits that are work on it: a mere mention is none."""
    return (commit for commit in facts.commits if commit.how is not How.MENTION)


def newest_reverted(facts: IssueFacts) -> SeenCommit | None:
    """The last of its commits that was taken back."""
    gone = [commit for commit in work_of(facts) if commit.on_base and commit.reverted_by]
    return max(gone, key=lambda each: (each.time, each.sha), default=None)
