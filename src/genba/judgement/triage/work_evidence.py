"""Evidence of work on an issue, and the reasons where there is none."""

from collections.abc import Iterator

from genba.domain.facilitation import How, IssueFacts, SeenBranch, SeenSession
from genba.domain.fleet.records import WaitsFor
from genba.domain.sessions.session import SessionStatus
from genba.domain.tasks.task import TaskStatus
from genba.domain.text_limits import cut, one_line
from genba.domain.tracker.remote import Mergeable, PullRequestState, ReviewDecision, ReviewVerdict, TrackedPullRequest
from genba.judgement.triage.landed_work import elsewhere, newest_reverted, work_of

Sign = str
_LONGEST = 160


def signs_of_work(facts: IssueFacts, base: str) -> Iterator[Sign]:
    """Work that was begun and has not landed."""
    for session in sorted(facts.sessions, key=lambda each: each.run):
        if (
            session.status == SessionStatus.WAITING
            and session.waits_for == WaitsFor.ANSWER
            and not (session.alive or facts.question)
        ):
            yield f"{session.run} is answered, and goes on with the next genba work"
        elif (message := session_evidence(session)) is not None:
            yield message
    for request in sorted(facts.pull_requests, key=lambda each: each.number):
        if request.state is PullRequestState.OPEN:
            yield f"pull request #{request.number}: {'a draft' if request.draft else sent_back(request) or 'open'}"
        elif request.state is PullRequestState.MERGED and elsewhere(request, base):
            yield f"pull request #{request.number} was merged into {request.target}, and not into {base}"
    yield from (message for _, message in unmerged_branches(facts))
    yield from _of_commits(facts)
    if facts.status is TaskStatus.IN_PROGRESS:
        yield "its task is in progress"
        if facts.rejected:
            yield f"to be changed: {cut(one_line(facts.rejected), _LONGEST)}"


def _of_commits(facts: IssueFacts) -> Iterator[Sign]:
    since = facts.reopened_at
    loose = [each for each in work_of(facts) if not each.on_base and (not since or each.time > since)]
    if loose and not facts.branches:
        newest = max(loose, key=lambda each: (each.time, each.sha))
        yield f"commit {newest.sha[:7]} is not on the base ({newest.how})"
    if facts.phase_runs:
        phases = [
            each for each in work_of(facts) if each.on_base and not each.reverted_by and each.run in facts.phase_runs
        ]
        if phases:
            newest = max(phases, key=lambda each: (each.time, each.sha))
            yield f"a phase of it has landed in {newest.sha[:7]}"


def unmerged_branches(facts: IssueFacts) -> Iterator[tuple[SeenBranch, Sign]]:
    since = facts.reopened_at
    for branch in sorted(facts.branches, key=lambda each: each.name):
        if branch.ahead and not branch.landed and (not since or branch.time > since):
            are = "is" if branch.ahead == 1 else "are"
            yield branch, f"{branch.name} has {count(branch.ahead, 'commit')} that {are} not on the base"


def session_evidence(session: SeenSession) -> Sign | None:
    if session.alive:
        return f"{session.agent} works on it ({session.run})"
    if session.status == SessionStatus.WAITING:
        return f"{session.run} waits for {session.waits_for.replace('_', ' ') or 'a person'}"
    if session.status == SessionStatus.RUNNING:
        return f"{session.run} was at work, and its process is gone"
    return None


def open_requests(facts: IssueFacts) -> tuple[TrackedPullRequest, ...]:
    if not facts.pull_requests:
        return ()
    found = [request for request in facts.pull_requests if request.state is PullRequestState.OPEN]
    return tuple(sorted(found, key=lambda each: each.number))


def sent_back(request: TrackedPullRequest) -> str:
    """Why an open pull request is with its author again. One that was changed since a review waits for the next."""
    wanting = [
        review
        for review in request.reviews
        if review.verdict is ReviewVerdict.CHANGES and (not review.commit or review.commit == request.commit)
    ]
    answered = any(review.verdict is ReviewVerdict.CHANGES for review in request.reviews) and not wanting
    if (request.decision == ReviewDecision.CHANGES_REQUESTED and not answered) or (
        wanting and request.decision != ReviewDecision.APPROVED
    ):
        return f"changes requested by {wanting[-1].author}" if wanting else "changes requested"
    if request.failed_checks:
        return f"check {cut(one_line(request.failed_checks[0].name), _LONGEST)} failed"
    return f"in conflict with {request.target or 'its target'}" if request.mergeable == Mergeable.CONFLICTING else ""


def not_begun(facts: IssueFacts) -> Iterator[Sign]:
    """Why an issue is open without work."""
    some = False
    if facts.reopened_at:
        some = True
        yield f"reopened {facts.reopened_at[:10]}: nothing was done since"
    if facts.commits:
        reverted = newest_reverted(facts)
        if reverted is not None:
            some = True
            yield f"its work {reverted.sha[:7]} was reverted by {reverted.reverted_by[:7]}"
    tried = [session for session in facts.sessions if session.status == SessionStatus.ENDED]
    if tried:
        some = True
        last = max(tried, key=lambda each: (each.last_at, each.started_at, each.run))
        why = f": {cut(one_line(last.reason), _LONGEST)}" if last.reason else ""
        how = last.outcome or "without a result"
        yield f"{count(len(tried), 'attempt')}, the last by {last.agent} ended {how}{why}"
    closed = [request.number for request in facts.pull_requests if request.state is PullRequestState.CLOSED]
    if closed:
        some = True
        yield f"pull request #{max(closed)} was closed without a merge"
    if not some:
        yield "no commit, no branch, no pull request, no session"
    named = [commit for commit in facts.commits if commit.how is How.MENTION]
    if named:
        yield f"{max(named, key=lambda each: (each.time, each.sha)).sha[:7]} only mentions it"


def count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
