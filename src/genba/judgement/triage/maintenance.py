"""What makes the field clearer: one comment per issue that is kept up to date, labels, and what a person must see.

Law: nothing is proposed twice. Nothing here closes, starts, merges or tests anything.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence

import msgspec

from genba.domain.facilitation import (
    CompletionCondition,
    FacilitateAction,
    IssueAssessment,
    IssueBlockerKind,
    IssueFacts,
    IssueState,
)
from genba.domain.text_limits import PARAGRAPH, cut
from genba.domain.tracker.quoting import inline
from genba.judgement.language.evidence_ja import in_japanese
from genba.judgement.triage.blockers import A_PERSON
from genba.judgement.triage.comment_texts import TEXTS, CommentTexts

_LONGEST_LINE = 300
_MOST_LINES = 8
_MOST_CONDITIONS = 20
LOOK_ROUND = "genba status"
"""What is left to do where an issue is closed: the others."""
_OWN_WORDS = ("dependency", "cycle")
"""Blockers whose text is Genba's own: their numbers may link to issues."""


class Keeping(msgspec.Struct, frozen=True, kw_only=True):
    """How the field is kept: the labels of states, and how many actions one look takes at most."""

    labels: Mapping[str, str] = msgspec.field(default_factory=lambda: {"blocked": "blocked"})
    """By state, the label that shows it."""
    most_actions: int = 50
    language: str = "en"
    """Of the comments."""


class Posted(msgspec.Struct, frozen=True, kw_only=True):
    """What was last posted on an issue."""

    digest: str = ""
    state: str = ""


_NOTHING = Posted()


class Known(msgspec.Struct, frozen=True, kw_only=True):
    """What comments say besides the state of an issue."""

    conditions: Mapping[int, tuple[CompletionCondition, ...]] = msgspec.field(default_factory=dict)
    """By issue that is in progress: what completes it."""
    command_for: Callable[[int], str] = str
    """The next command of an issue. It is asked only for comments that are written."""


def actions(
    assessments: Mapping[int, IssueAssessment],
    field: Mapping[int, IssueFacts],
    posted: Mapping[int, Posted],
    keeping: Keeping,
    known: Known,
) -> tuple[FacilitateAction, ...]:
    """What is to be done now, in the order of the issues; what is more than one look takes comes at the next."""
    found: list[FacilitateAction] = []
    for number, assessment in assessments.items():
        before = posted.get(number, _NOTHING)
        if assessment.over and not before.digest:
            continue
        found += _for_issue(assessment, field[number], before, keeping, known)
        if len(found) >= keeping.most_actions:
            break
    return tuple(found[: keeping.most_actions])


def _for_issue(
    assessment: IssueAssessment, facts: IssueFacts, posted: Posted, keeping: Keeping, known: Known
) -> Iterator[FacilitateAction]:
    number = assessment.issue
    quiet = (assessment.closed and not posted.digest) or any(session.alive for session in facts.sessions)
    new = posted.state != assessment.state
    if not quiet:
        result = comment_of(assessment, known.conditions.get(number, ()), keeping.language)
        new = _digest(result) != posted.digest
        if new:
            command = LOOK_ROUND if assessment.over else known.command_for(number)
            following = TEXTS[keeping.language].following.format(command=command.replace("`", ""))
            body = f"{result}{PARAGRAPH}{following}"
            yield FacilitateAction(action="update" if posted.digest else "comment", issue=number, body=body)
    if not assessment.closed:
        yield from _labels(assessment, facts, keeping)
    if new and (why := needs_a_person(assessment)):
        yield FacilitateAction(action="attention", issue=assessment.issue, body=why)


def needs_a_person(assessment: IssueAssessment) -> str:
    """Why only a person can continue an issue; empty otherwise.

    Its state is unknown, or only a decision clears its blocker.
    """
    if assessment.state is IssueState.UNKNOWN:
        return "; ".join(assessment.evidence) or assessment.recommendation
    if assessment.state is IssueState.BLOCKED:
        by_hand = [blocker.detail or blocker.kind for blocker in assessment.blockers if blocker.owner == A_PERSON]
        return "; ".join(by_hand)
    return ""


def _labels(assessment: IssueAssessment, facts: IssueFacts, keeping: Keeping) -> Iterator[FacilitateAction]:
    """The label of its state, and none of another state: by one call."""
    wanted = keeping.labels.get(assessment.state, "")
    others = {label for state, label in keeping.labels.items() if state != assessment.state and label != wanted}
    if assessment.state is IssueState.BLOCKED and any(
        blocker.kind == IssueBlockerKind.LABEL for blocker in assessment.blockers
    ):
        return  # a person put it there for their own reason
    wrong = tuple(label for label in facts.labels if label in others)
    if (wanted and wanted not in facts.labels) or wrong:
        add = wanted if wanted and wanted not in facts.labels else None
        why = assessment.blockers[0].detail if assessment.blockers else _first(assessment)
        yield FacilitateAction(action="label", issue=assessment.issue, body=why, label=add, remove=wrong)


def _first(assessment: IssueAssessment) -> str:
    return assessment.evidence[0] if assessment.evidence else assessment.recommendation


def comment_of(
    assessment: IssueAssessment, conditions: Sequence[CompletionCondition] = (), language: str = "en"
) -> str:
    """The one comment on an issue, without the command. Nothing in it changes by itself."""
    texts, state = TEXTS[language], assessment.state
    output = texts.closed if assessment.over else texts.says[state]
    lines = [texts.state.format(state=state, name=texts.names[state]), "", output, ""]
    ours = {blocker.detail for blocker in assessment.blockers if blocker.kind in _OWN_WORDS}
    for message in assessment.evidence[:_MOST_LINES]:
        shown = in_japanese(message) if language == "ja" else message
        lines.append(f"- {shown}" if message in ours else f"- {inline(cut(shown, _LONGEST_LINE))}")
    owners = dict.fromkeys(blocker.owner for blocker in assessment.blockers if blocker.owner)
    if owners:
        named = ", ".join(texts.a_person if owner == A_PERSON else inline(owner) for owner in owners)
        lines.append(f"- {texts.owners.format(owners=named)}")
    if conditions:
        lines += ["", texts.conditions, "", *(_condition(each, texts) for each in conditions[:_MOST_CONDITIONS])]
        if not any(each.goal for each in conditions):
            lines += ["", texts.no_goal.format(number=assessment.issue)]
    return "\n".join(lines)


def _condition(each: CompletionCondition, texts: CommentTexts) -> str:
    unchecked = f" ({texts.unchecked})" if each.holds is None else ""
    return f"- [{'x' if each.holds else ' '}] {inline(cut(each.text, _LONGEST_LINE))}{unchecked}"


def digest_of(body: str) -> str:
    """What changes with a comment. The command, its last paragraph, changes by itself: that alone is no news."""
    return _digest(body.rpartition(PARAGRAPH)[0])


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]
