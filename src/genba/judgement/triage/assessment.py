"""The state of an issue, by what was seen of it: in git, on its tracker, on the blackboard, in logs.

Law: git and the forge say what became of the work; labels, cards and words say nothing by themselves. What contradicts
itself, and what could not be read, is `unknown`. The same facts always give the same state, in whatever order they
were found. An issue depends on nothing but its own facts, its parts, and what it waits for.
"""

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from genba.domain.facilitation import (
    FieldBlocker,
    How,
    IssueAssessment,
    IssueFacts,
    IssueState,
)
from genba.domain.tasks.task import TaskStatus
from genba.domain.tracker.remote import PullRequestState, TrackedPullRequest
from genba.judgement.triage.blockers import blockers_of
from genba.judgement.triage.dependency_cycles import components
from genba.judgement.triage.freshness import Ages, Clock
from genba.judgement.triage.landed_work import Landing, landed, newest_reverted, work_of
from genba.judgement.triage.work_evidence import (
    Sign,
    count,
    not_begun,
    open_requests,
    sent_back,
    session_evidence,
    signs_of_work,
    unmerged_branches,
)

__all__ = ["ISSUE_ACTION", "REVIEW_ACTION", "assess_all", "sent_back"]

ISSUE_ACTION = "issue-action"
REVIEW_ACTION = "review-action"
_DROPPED = ("not_planned", "duplicate")
_REOPENED = "reopened"
_MAY_BE_BLOCKED = (IssueState.IN_PROGRESS, IssueState.INCOMPLETE)
_BEGUN = (IssueState.IN_PROGRESS, IssueState.REVIEW_PENDING, IssueState.DONE)
_CAPABILITIES = {
    IssueState.REVIEW_PENDING: REVIEW_ACTION,
    IssueState.IN_PROGRESS: ISSUE_ACTION,
    IssueState.INCOMPLETE: ISSUE_ACTION,
}
_MOST_SHOWN = 10


class _Judged(msgspec.Struct, frozen=True):
    state: IssueState
    evidence: tuple[str, ...]
    dropped: bool = False
    """Closed, and nothing was done about it."""
    named_by: How | None = None


def assess_all(
    field: Mapping[int, IssueFacts],
    now: str,
    last: Mapping[int, IssueAssessment] | None = None,
    *,
    base: str = "",
    ages: Ages = Ages(),  # noqa: B008  (a frozen value)
) -> dict[int, IssueAssessment]:
    """Every issue of the field.

    An issue is judged the same in any part of the field that holds, with it, its parts and what it waits for, and
    theirs. With the name of the base, a pull request that was merged into another branch has not landed.
    """
    judged = _judge_all(field, base)
    found = blockers_of(field, {number: each.state is IssueState.DONE for number, each in judged.items()})
    clock = Clock(now, ages)
    return {
        number: _assessment(facts, judged[number], found.get(number, ()), clock, last)
        for number, facts in field.items()
    }


def _assessment(
    facts: IssueFacts,
    judged: _Judged,
    blockers: tuple[FieldBlocker, ...],
    clock: Clock,
    last: Mapping[int, IssueAssessment] | None,
) -> IssueAssessment:
    state, evidence = judged.state, judged.evidence
    if blockers:
        stopped = facts.status is TaskStatus.BLOCKED and state not in (IssueState.DONE, IssueState.UNKNOWN)
        if state in _MAY_BE_BLOCKED or stopped:
            state, evidence = IssueState.BLOCKED, (*(each.detail for each in blockers if each.detail), *evidence)
        elif state is not IssueState.REVIEW_PENDING:
            blockers = ()
    before = last.get(facts.number) if last is not None else None
    return IssueAssessment(
        issue=facts.number,
        state=state,
        evidence=evidence,
        recommendation=_recommendation(facts, state, blockers),
        required_capability=_CAPABILITIES.get(state),
        title=facts.title,
        blockers=blockers,
        freshness=clock.freshness_of(facts.last_at),
        last_at=facts.last_at,
        named_by=judged.named_by,
        changed=last is not None and (before is None or (before.state, before.evidence) != (state, evidence)),
        closed=facts.state == "closed",
    )


def _judge_all(field: Mapping[int, IssueFacts], base: str) -> dict[int, _Judged]:
    """Each issue by its own facts; one with parts after its parts."""
    judged = {number: _judge(facts, base, {}) for number, facts in field.items() if not facts.children}
    trees = {number: facts.children for number, facts in field.items() if facts.children}
    for circle in components(trees):  # of one, unless parts are their own wholes, which no tracker allows
        for number in circle:
            if number in trees:
                parts = {child: judged.get(child) for child in trees[number] if child in field and child not in circle}
                judged[number] = _judge(field[number], base, parts)
    return judged


def _judge(facts: IssueFacts, base: str, parts: Mapping[int, _Judged | None]) -> _Judged:
    if facts.missing:
        return _Judged(IssueState.UNKNOWN, tuple(f"not known: {what}" for what in facts.missing))
    there = landed(facts, base)
    contradictions = tuple(_contradictions(facts, there))
    if contradictions:
        return _Judged(IssueState.UNKNOWN, contradictions)
    return _closed(facts, there) if facts.state == "closed" else _open(facts, base, there, parts)


# ── closed ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _closed(facts: IssueFacts, there: Landing | None) -> _Judged:
    by = f" by {facts.closed_by}" if facts.closed_by else ""
    if facts.state_reason in _DROPPED:
        message = f"closed as {facts.state_reason.replace('_', ' ')}{by}"
        return _Judged(IssueState.DONE, (message,), dropped=True)
    if there is not None:
        return _Judged(IssueState.DONE, (f"closed{by}", *there.evidence), named_by=there.named_by)
    nothing = "nothing landed since it was reopened" if facts.reopened_at else "no commit of it is on the base"
    return _Judged(IssueState.DONE, (f"closed{by}", nothing))


def _contradictions(facts: IssueFacts, there: Landing | None) -> Iterator[str]:
    """Facts that cannot all be true."""
    alive = sorted(session.run for session in facts.sessions if session.alive)
    if len(alive) > 1 and len({session.branch for session in facts.sessions if session.alive}) > 1:
        yield f"{len(alive)} sessions work on it at once: {', '.join(alive[:_MOST_SHOWN])}"
    if facts.state == "closed":
        if alive:
            yield f"it is closed, and {alive[0]} works on it"
        if there is None and facts.state_reason not in _DROPPED:
            yield from _closed_too_early(facts)
    elif facts.state_reason == _REOPENED and there is not None and not facts.reopened_at:
        yield f"it was reopened, and nothing says whether that was before: {there.evidence[0]}"
    elif facts.status is TaskStatus.CANCELLED:
        yield "its task was given up, and its issue is open"
    elif facts.status is TaskStatus.DONE and there is None and _has_work(facts):
        yield f"its task is done, and no work of it is on the base{_taken_back(facts)}"


def _closed_too_early(facts: IssueFacts) -> Iterator[str]:
    still_open = open_requests(facts)
    if still_open:
        yield f"it is closed, and pull request #{still_open[0].number} is open and not merged"
    reverted = newest_reverted(facts)
    if reverted is not None:
        yield f"it is closed, and its work {reverted.sha[:7]} was reverted by {reverted.reverted_by[:7]}"


def _has_work(facts: IssueFacts) -> bool:
    """A task that ended with nothing to merge has no commit, and that is no contradiction."""
    return bool(facts.branches or facts.pull_requests or any(work_of(facts)))


def _taken_back(facts: IssueFacts) -> str:
    reverted = newest_reverted(facts)
    return f": {reverted.sha[:7]} was reverted by {reverted.reverted_by[:7]}" if reverted else ""


# ── open ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _open(facts: IssueFacts, base: str, there: Landing | None, parts: Mapping[int, _Judged | None]) -> _Judged:
    requests = open_requests(facts)
    goes_on = tuple(_goes_on(facts, requests, there))
    in_review = tuple(_under_review(facts, requests, beyond=there is None or bool(goes_on)))
    if in_review:
        return _Judged(IssueState.REVIEW_PENDING, in_review)
    left = [number for number, part in parts.items() if part is None or part.state is not IssueState.DONE]
    made = [number for number, part in parts.items() if part is not None and _is_begun(part)]
    if left and made:
        return _Judged(IssueState.IN_PROGRESS, (f"its parts are in work; left: {_numbers(left)}", *goes_on))
    if there is not None and not left and not goes_on:
        return _Judged(IssueState.DONE, (*there.evidence, "its issue is still open"), named_by=there.named_by)
    working = tuple(signs_of_work(facts, base))
    if made and not working:
        return _all_parts_done(facts)
    if working or goes_on:
        return _Judged(IssueState.IN_PROGRESS, tuple(dict.fromkeys((*goes_on, *working))))
    waiting = (f"{count(len(left), 'part')}, and none is begun",) if left else ()
    return _Judged(IssueState.INCOMPLETE, (*waiting, *not_begun(facts)))


def _is_begun(part: _Judged) -> bool:
    return part.state in _BEGUN and not part.dropped


def _all_parts_done(facts: IssueFacts) -> _Judged:
    if facts.status is not None and not facts.status.ended:
        return _Judged(IssueState.IN_PROGRESS, ("all its parts are done, and are still to be brought together",))
    return _Judged(IssueState.DONE, ("all its parts are done", "its issue is still open"))


def _goes_on(facts: IssueFacts, requests: Sequence[TrackedPullRequest], there: Landing | None) -> Iterator[Sign]:
    """What shows that more is made of it than what has landed. Drafts of the past do not."""
    for session in sorted(facts.sessions, key=lambda each: each.run):
        if session.alive and (message := session_evidence(session)):
            yield message
    for request in requests:
        yield f"pull request #{request.number}: {'a draft' if request.draft else sent_back(request) or 'open'}"
    merged = {request.commit for request in facts.pull_requests if request.state is PullRequestState.MERGED}
    for branch, message in unmerged_branches(facts):
        if there is None or (branch.time > there.time and branch.tip not in merged):
            yield message


def _under_review(facts: IssueFacts, requests: Sequence[TrackedPullRequest], *, beyond: bool) -> Iterator[Sign]:
    """Work that waits for a review or a merge. `beyond`: there is work that has not landed."""
    for request in requests:
        if request.draft or sent_back(request):
            continue
        how = {"approved": "approved", "review_required": "waits for a review"}.get(request.decision, "open")
        yield f"pull request #{request.number}: {how}{'' if request.green else ', its checks are running'}"
    if facts.status is TaskStatus.REVIEW and beyond and not any(sent_back(each) for each in requests):
        yield f"{facts.verified[:7]} is verified" if facts.verified else "its task is in review"
        if facts.requires_review and facts.approved != facts.verified:
            yield "waits for a review"


# ── words ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def _recommendation(facts: IssueFacts, state: IssueState, blockers: tuple[FieldBlocker, ...]) -> str:
    match state:
        case IssueState.DONE:
            return "nothing to do" if facts.state == "closed" else "decide whether to close it"
        case IssueState.REVIEW_PENDING:
            return "review it"
        case IssueState.IN_PROGRESS:
            return "go on with it"
        case IssueState.INCOMPLETE:
            return "it can be started"
        case IssueState.BLOCKED:
            owner = blockers[0].owner if blockers else ""
            return f"clear what is in its way{f' ({owner})' if owner else ''}"
        case IssueState.UNKNOWN:
            return "look at it: the facts are missing or contradict each other"


def _numbers(numbers: list[int]) -> str:
    shown = ", ".join(f"#{number}" for number in sorted(numbers)[:_MOST_SHOWN])
    return shown + (f" and {len(numbers) - _MOST_SHOWN} more" if len(numbers) > _MOST_SHOWN else "")
