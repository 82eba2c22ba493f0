"""Handover notes: what the attempts before have left for the next one, and for whoever decides.

The words of Genba and the words of others are told apart by their first character: what an agent, a goal or a person
said stands behind `>`, line by line, cut to a length. So nothing that was said can pose as an instruction of ours.
"""

from collections.abc import Iterator, Sequence

from genba.domain.evidence import CheckStatus
from genba.domain.fleet import Escalation, EscalationKind, FleetSession
from genba.domain.loop_state import ANSWER, Gap
from genba.domain.tasks import Task
from genba.domain.verification import GoalResult, Verification
from genba.judgement.paths import shown, some

LONGEST = 6_000
"""Characters of one note."""

_SESSIONS, _GOALS, _ANSWERS, _NOTES, _PATHS = 5, 10, 5, 5, 20
_QUOTED, _QUOTED_LINES = 400, 4
_DECIDED = ("answered", "approved", "rejected")
_CUT = "(the note is longer; the rest is on the blackboard)"


def handover(
    task: Task,
    sessions: Sequence[FleetSession],
    *,
    last: Verification | None = None,
    conflicts: Sequence[str] = (),
    escalations: Sequence[Escalation] = (),
    notes: Sequence[str] = (),
) -> str:
    """What was tried, by whom, how it ended, what failed, where the work is, and what people said.

    Before the first try, and before the first answer, there is nothing to hand over: an empty text.
    """
    tried = [session for session in sessions if session.status == "ended"]
    decided = [one for one in escalations if one.status in _DECIDED]
    if not tried:
        return _within([*_answers(decided)])
    lines = [
        *_tries(task, tried),
        *_place(sessions, last),
        *_failures(last),
        *_conflicts(conflicts),
        *_answers(decided),
        *_notes(notes),
    ]
    return _within(lines)


def answer_gap(question: str, answer: str) -> Gap:
    """What the next prompt must know of a question that a person answered."""
    return Gap(check=ANSWER, detail=answer.strip(), output="", claim=question.strip(), attempt=1, max_attempts=1)


def quoted(text: str, most: int = _QUOTED, lines: int = _QUOTED_LINES) -> list[str]:
    """Somebody's words, each line behind `>`: no line of them can stand alone."""
    said = [_clean(line) for line in text[: most + 1].splitlines()]
    said = [line for line in said if line]
    more = len(text) > most or len(said) > lines
    kept = said[:lines]
    if more and kept:
        kept[-1] = kept[-1][: most - 1] + "…"
    return [f"  > {line}" for line in kept]


def _tries(task: Task, tried: Sequence[FleetSession]) -> Iterator[str]:
    count = "1 attempt" if len(tried) == 1 else f"{len(tried)} attempts"
    cost, tokens = sum(one.cost_usd for one in tried), sum(one.tokens for one in tried)
    spent = f", for {tokens} tokens and ${cost:.2f}" if tokens or cost else ""
    yield f"Task #{task.number} was tried before: {count}{spent}."
    if len(tried) > _SESSIONS:
        yield f"The last {_SESSIONS}:"
    for session in tried[-_SESSIONS:]:
        turns = "1 iteration" if session.iterations == 1 else f"{session.iterations} iterations"
        ended = session.outcome or "ended"
        back = f", {session.rounds}× back from the merge queue" if session.rounds else ""
        back += f", {session.reviews}× back from review" if session.reviews else ""
        yield f"- attempt {session.attempt} by {_clean(session.agent)}: {ended} after {turns}{back}"
        yield from quoted(session.reason)


def _place(sessions: Sequence[FleetSession], last: Verification | None) -> Iterator[str]:
    branches = [session.branch for session in sessions if session.branch]
    if not branches:
        return
    at = f", last looked at in {last.subject.commit[:7]}" if last is not None and last.subject.commit else ""
    yield f"The work so far is on the branch {shown(branches[-1])}{at}."


def _failures(last: Verification | None) -> Iterator[str]:
    if last is None or last.done:
        return
    yield f"The last verdict was {last.verdict}."
    if last.missing:
        yield f"Missing: {', '.join(last.missing)}."
    failed = [result for result in last.results if result.rejects or result.broken]
    for result in failed[:_GOALS]:
        word = "could not be checked" if result.result.status is CheckStatus.ERROR else "failed"
        yield f"- the goal {result.goal.type} {word}"
        yield from quoted(_line_of_evidence(result), lines=2)
    if len(failed) > _GOALS:
        yield f"- and {len(failed) - _GOALS} more goals"


def _line_of_evidence(result: GoalResult) -> str:
    """What the check says, or else the last line that it printed."""
    printed = [line for line in result.result.output.splitlines() if line.strip()]
    return result.result.detail or (printed[-1] if printed else "")


def _conflicts(paths: Sequence[str]) -> Iterator[str]:
    if paths:
        yield f"It conflicts with its target in: {some(list(paths), _PATHS)}."


def _answers(decided: Sequence[Escalation]) -> Iterator[str]:
    """What people decided, oldest first."""
    for one in decided[-_ANSWERS:]:
        who = _clean(one.answered_by) or "a person"
        if one.kind is EscalationKind.QUESTION:
            yield "An agent asked:"
            yield from quoted(one.question)
            yield f"{who} answered:"
        else:
            yield f"{who} decided about its {one.kind}: {one.status}"
        yield from quoted(one.answer, most=2 * _QUOTED, lines=2 * _QUOTED_LINES)


def _notes(notes: Sequence[str]) -> Iterator[str]:
    for note in notes[-_NOTES:]:
        if note.strip():
            yield "A note was left:"
            yield from quoted(note)


def _within(lines: Sequence[str]) -> str:
    """As many whole lines as a note can have."""
    kept: list[str] = []
    left = LONGEST - len(_CUT) - 1
    for line in lines:
        left -= len(line) + 1
        if left < 0:
            return "\n".join((*kept, _CUT))
        kept.append(line)
    return "\n".join(kept)


def _clean(text: str) -> str:
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())
