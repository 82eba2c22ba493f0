"""What happened in the field, as one list in the order of time: from all sources, each thing once."""

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType

import msgspec

from genba.domain.facilitation import Fact, FactKind, IssueFacts, SeenSession, Source
from genba.domain.sessions.session import SessionStatus
from genba.domain.tracker.remote import PullRequestState, TrackedPullRequest

_PLAIN = len("2026-01-01T00:00:00Z")


def chronicle(
    field: Mapping[int, IssueFacts], more: Iterable[Fact] = (), times: Mapping[str, str] = MappingProxyType({})
) -> tuple[Fact, ...]:
    """Oldest first: the facts of issues, and further facts of the same issues.

    `times` are those of the commits that took others back. What has no time has no place in it.
    """
    found = {fact.key: fact for facts in field.values() for fact in _of_issue(facts, times) if fact.time}
    for fact in more:
        if fact.issue in field and fact.time:
            found[fact.key] = msgspec.structs.replace(fact, time=_uniform(fact.time))
    return tuple(sorted(found.values(), key=lambda fact: (fact.time, fact.issue, fact.key)))


def _of_issue(facts: IssueFacts, times: Mapping[str, str]) -> Iterator[Fact]:
    number = facts.number
    home = Source.TRACKER if facts.status is None else Source.BLACKBOARD
    closed = facts.state == "closed"
    for kind, at, why in (
        (FactKind.ISSUE_CREATED, facts.created_at, ""),
        (FactKind.ISSUE_CLOSED, facts.closed_at if closed else "", facts.state_reason),
        (FactKind.ISSUE_REOPENED, facts.reopened_at, ""),
    ):
        yield Fact(key=f"{number}:{kind}:{at}", time=at, type=kind, issue=number, source=home, detail=why)
    for commit in facts.commits:
        yield Fact(
            key=f"{number}:commit:{commit.sha}",
            time=commit.time,
            type=FactKind.MERGED if commit.on_base else FactKind.COMMIT,
            issue=number,
            source=Source.GIT,
            sha=commit.sha,
            agent=commit.agent,
            run=commit.run,
            detail=f"reverted by {commit.reverted_by[:7]}" if commit.reverted_by else commit.subject,
        )
        if commit.reverted_by:
            yield Fact(
                key=f"{number}:{FactKind.REVERTED}:{commit.sha}",
                time=times.get(commit.reverted_by, ""),
                type=FactKind.REVERTED,
                issue=number,
                source=Source.GIT,
                sha=commit.sha,
                detail=f"by {commit.reverted_by[:7]}",
            )
    for request in facts.pull_requests:
        yield from _of_request(number, request)
    for session in facts.sessions:
        yield from _of_session(number, session)


def _of_request(number: int, request: TrackedPullRequest) -> Iterator[Fact]:
    lines = [(FactKind.PULL_REQUEST_OPENED, request.created_at, request.author)]
    if request.state is PullRequestState.MERGED:
        lines.append((FactKind.PULL_REQUEST_MERGED, request.merged_at, request.merged_by))
    elif request.state is PullRequestState.CLOSED:
        lines.append((FactKind.PULL_REQUEST_CLOSED, request.updated_at, ""))
    for kind, at, who in lines:
        yield Fact(
            key=f"{number}:{kind}:{request.number}",
            time=_uniform(at),
            type=kind,
            issue=number,
            source=Source.TRACKER,
            pull_request=request.number,
            branch=request.branch,
            who=who,
        )
    for review in request.reviews:
        yield Fact(
            key=f"{number}:review:{review.id}",
            time=_uniform(review.submitted_at),
            type=FactKind.REVIEWED,
            issue=number,
            source=Source.TRACKER,
            pull_request=request.number,
            who=review.author,
            detail=str(review.verdict),
        )


def _of_session(number: int, session: SeenSession) -> Iterator[Fact]:
    ended = session.last_at if session.status == SessionStatus.ENDED else ""
    for kind, at, detail in (
        (FactKind.AGENT_STARTED, session.started_at, ""),
        (FactKind.AGENT_ENDED, ended, session.outcome),
    ):
        yield Fact(
            key=f"{number}:{kind}:{session.run}",
            time=at,
            type=kind,
            issue=number,
            source=Source.LOG,
            agent=session.agent,
            run=session.run,
            branch=session.branch,
            detail=detail,
        )


def _uniform(text: str) -> str:
    """A time of the tracker in the form of all others."""
    return f"{text[:-1]}.000000Z" if len(text) == _PLAIN and text.endswith("Z") else text
