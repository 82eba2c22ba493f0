"""What makes the field clearer: one comment per issue that is kept up to date, labels, and what a person must see.

Law: nothing is proposed that was said already. Nothing here closes, starts, merges or tests anything.
"""

import hashlib
from collections.abc import Iterator, Mapping

import msgspec

from genba.domain.facilitation import FacilitateAction, IssueAssessment, IssueFacts, IssueState
from genba.domain.forge_texts import inline
from genba.domain.texts import cut
from genba.judgement.blocking import A_PERSON

_LONGEST_LINE = 300
_MOST_LINES = 8
_OWN_WORDS = ("dependency", "cycle")
"""Blockers in which nobody else has written a word: their numbers may lead to their issues."""
_SAYS = {
    IssueState.IN_PROGRESS: "Work on this issue has begun and is not finished. Please go on with it.",
    IssueState.INCOMPLETE: "Nothing stands in the way of this issue: it can be started.",
    IssueState.BLOCKED: "This issue cannot go on before what stands in its way is cleared.",
    IssueState.REVIEW_PENDING: "The work on this issue is finished and waits for a review or a merge.",
    IssueState.DONE: "The work on this issue is on the base branch. Please decide whether to close the issue.",
    IssueState.UNKNOWN: "The facts about this issue are missing or contradict each other. Please say how it stands.",
}
_CLOSED = "This issue is closed, and nothing is left to do."


class Keeping(msgspec.Struct, frozen=True, kw_only=True):
    """How the field is kept: the labels of states, and how many actions one look takes at most."""

    labels: Mapping[str, str] = msgspec.field(default_factory=lambda: {"blocked": "blocked"})
    """By state, the label that shows it."""
    most_actions: int = 50


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """What was said of an issue last."""

    digest: str = ""
    state: str = ""


_NOTHING = Said()


def actions(
    assessments: Mapping[int, IssueAssessment],
    field: Mapping[int, IssueFacts],
    said: Mapping[int, Said],
    keeping: Keeping,
) -> tuple[FacilitateAction, ...]:
    """What is to be done now, in the order of the issues; what is more than one look takes comes at the next."""
    found: list[FacilitateAction] = []
    for number, assessment in assessments.items():
        before = said.get(number, _NOTHING)
        if assessment.closed and assessment.state is IssueState.DONE and not before.digest:
            continue
        found += _for_issue(assessment, field[number], before, keeping)
        if len(found) >= keeping.most_actions:
            break
    return tuple(found[: keeping.most_actions])


def _for_issue(
    assessment: IssueAssessment, facts: IssueFacts, said: Said, keeping: Keeping
) -> Iterator[FacilitateAction]:
    quiet = (assessment.closed and not said.digest) or any(session.alive for session in facts.sessions)
    new = said.state != assessment.state
    if not quiet:
        body = comment_of(assessment, _next(assessment, facts))
        new = digest_of(body) != said.digest
        if new:
            yield FacilitateAction(action="update" if said.digest else "comment", issue=assessment.issue, body=body)
    if not assessment.closed:
        yield from _labels(assessment, facts, keeping)
    if new and (why := needs_a_person(assessment)):
        yield FacilitateAction(action="attention", issue=assessment.issue, body=why)


def needs_a_person(assessment: IssueAssessment) -> str:
    """Why nobody but a person can bring an issue on; empty where that is not so.

    It is not known how it stands, or it is blocked by what only somebody who decides can clear.
    """
    if assessment.state is IssueState.UNKNOWN:
        return "; ".join(assessment.evidence) or assessment.recommendation
    if assessment.state is IssueState.BLOCKED:
        by_hand = [blocker.detail or blocker.kind for blocker in assessment.blockers if blocker.owner == A_PERSON]
        return "; ".join(by_hand)
    return ""


def _next(assessment: IssueAssessment, facts: IssueFacts) -> str:
    """What a person types to decide it. Who works on it next is no matter of a comment: that changes by itself."""
    if assessment.state is IssueState.BLOCKED and any(each.kind == "question" for each in assessment.blockers):
        return f'genba answer {facts.number} "…"'
    waits = facts.requires_review and facts.verified and facts.approved != facts.verified
    return f"genba approve {facts.number}" if assessment.state is IssueState.REVIEW_PENDING and waits else ""


def _labels(assessment: IssueAssessment, facts: IssueFacts, keeping: Keeping) -> Iterator[FacilitateAction]:
    """The label of its state, and none of another state: by one call."""
    wanted = keeping.labels.get(assessment.state, "")
    others = {label for state, label in keeping.labels.items() if state != assessment.state and label != wanted}
    if assessment.state is IssueState.BLOCKED and any(blocker.kind == "label" for blocker in assessment.blockers):
        return  # somebody put it there, and only they know why
    wrong = tuple(label for label in facts.labels if label in others)
    if (wanted and wanted not in facts.labels) or wrong:
        add = wanted if wanted and wanted not in facts.labels else None
        why = assessment.blockers[0].detail if assessment.blockers else _first(assessment)
        yield FacilitateAction(action="label", issue=assessment.issue, body=why, label=add, remove=wrong)


def _first(assessment: IssueAssessment) -> str:
    return assessment.evidence[0] if assessment.evidence else assessment.recommendation


def comment_of(assessment: IssueAssessment, command: str) -> str:
    """The one comment on an issue. Nothing in it changes by itself, so that it is written only when it matters."""
    closed = assessment.closed and assessment.state is IssueState.DONE
    lines = [f"**State: {assessment.state}**", "", _CLOSED if closed else _SAYS[assessment.state], ""]
    ours = {blocker.detail for blocker in assessment.blockers if blocker.kind in _OWN_WORDS}
    for told in assessment.evidence[:_MOST_LINES]:
        lines.append(f"- {told}" if told in ours else f"- {inline(cut(told, _LONGEST_LINE))}")
    owners = dict.fromkeys(blocker.owner for blocker in assessment.blockers if blocker.owner)
    if owners:
        lines.append(f"- in the hands of {', '.join(inline(owner) for owner in owners)}")
    if command:
        lines += ["", f"Next: `{command.replace('`', '')}`"]
    return "\n".join(lines)


def digest_of(body: str) -> str:
    return hashlib.sha256(body.encode("utf-8", "replace")).hexdigest()[:16]
