"""Handover notes: what earlier attempts have left for the next one, and for the person who decides.

Text of Genba and text of others differ in the first character: what an agent, a goal or a person
wrote stands behind `>`, line by line, cut to a length. So no foreign text can pose as an instruction of Genba.
"""

from collections.abc import Iterator, Sequence

from genba.domain.fleet.records import Escalation, EscalationKind, FleetSession
from genba.domain.goals.verification import GoalResult, Verification
from genba.domain.sessions.evidence import CheckStatus
from genba.domain.sessions.loop_state import ANSWER, Feedback
from genba.domain.tasks.task import Task
from genba.judgement.language.sentences import detail_in, in_language
from genba.judgement.language.wording import say
from genba.judgement.verification.paths import shown, some

LONGEST = 6_000
"""Characters of one note."""

_SESSIONS, _GOALS, _ANSWERS, _NOTES, _PATHS = 5, 10, 5, 5, 20
_QUOTED, _QUOTED_LINES = 400, 4
_DECIDED = ("answered", "approved", "rejected")


def handover(
    task: Task,
    sessions: Sequence[FleetSession],
    *,
    last: Verification | None = None,
    conflicts: Sequence[str] = (),
    escalations: Sequence[Escalation] = (),
    notes: Sequence[str] = (),
    language: str = "en",
) -> str:
    """What was tried, by whom, how it ended, what failed, where the work is, and what people wrote.

    Before the first try, and before the first answer, there is nothing to hand over: an empty text.
    """
    tried = [session for session in sessions if session.status == "ended"]
    decided = [one for one in escalations if one.status in _DECIDED]
    if not tried:
        return _within([*_answers(decided, language)], language)
    lines = [
        *_tries(task, tried, language),
        *_place(sessions, last, language),
        *_failures(last, language),
        *_conflicts(conflicts, language),
        *_answers(decided, language),
        *_notes(notes, language),
    ]
    return _within(lines, language)


def answer_gap(question: str, answer: str) -> Feedback:
    """What the next prompt must know of a question that a person answered."""
    return Feedback(check=ANSWER, detail=answer.strip(), output="", claim=question.strip(), attempt=1, max_attempts=1)


def quoted(text: str, most: int = _QUOTED, lines: int = _QUOTED_LINES) -> list[str]:
    """Foreign text, each line behind `>`."""
    messages = [_clean(line) for line in text[: most + 1].splitlines()]
    messages = [line for line in messages if line]
    more = len(text) > most or len(messages) > lines
    kept = messages[:lines]
    if more and kept:
        kept[-1] = kept[-1][: most - 1] + "…"
    return [f"  > {line}" for line in kept]


def _tries(task: Task, tried: Sequence[FleetSession], language: str) -> Iterator[str]:
    count = say(language, "one_attempt" if len(tried) == 1 else "attempts", count=len(tried))
    cost, tokens = sum(one.cost_usd for one in tried), sum(one.tokens for one in tried)
    spent = say(language, "attempts_spent", tokens=tokens, cost=cost) if tokens or cost else ""
    yield say(language, "tried_before", number=task.number, count=count, spent=spent)
    if len(tried) > _SESSIONS:
        yield say(language, "last_attempts", count=_SESSIONS)
    for session in tried[-_SESSIONS:]:
        key = "one_iteration" if session.iterations == 1 else "iterations"
        back = say(language, "back_from_queue", count=session.rounds) if session.rounds else ""
        back += say(language, "back_from_review", count=session.reviews) if session.reviews else ""
        yield say(
            language,
            "attempt",
            number=session.attempt,
            agent=_clean(session.agent),
            ended=session.outcome or "ended",
            turns=say(language, key, count=session.iterations),
            back=back,
        )
        yield from quoted(in_language(language, session.reason))


def _place(sessions: Sequence[FleetSession], last: Verification | None, language: str) -> Iterator[str]:
    branches = [session.branch for session in sessions if session.branch]
    if not branches:
        return
    commit = last.subject.commit[:7] if last is not None else ""
    at = say(language, "looked_at", commit=commit) if commit else ""
    yield say(language, "work_so_far", branch=shown(branches[-1]), at=at)


def _failures(last: Verification | None, language: str) -> Iterator[str]:
    if last is None or last.done:
        return
    yield say(language, "last_verdict", verdict=last.verdict)
    if last.missing:
        yield say(language, "missing", names=", ".join(last.missing))
    failed = [result for result in last.results if result.rejects or result.broken]
    for result in failed[:_GOALS]:
        key = "goal_broken" if result.result.status is CheckStatus.ERROR else "goal_failed"
        yield say(language, key, goal=result.goal.type)
        yield from quoted(_line_of_evidence(result, language), lines=2)
    if len(failed) > _GOALS:
        yield say(language, "more_goals", count=len(failed) - _GOALS)


def _line_of_evidence(result: GoalResult, language: str) -> str:
    """What the check says, or else the last line that it printed."""
    printed = [line for line in result.result.output.splitlines() if line.strip()]
    return detail_in(language, result.goal.type, result.result.detail) or (printed[-1] if printed else "")


def _conflicts(paths: Sequence[str], language: str) -> Iterator[str]:
    if paths:
        yield say(language, "conflicts_in", paths=some(list(paths), _PATHS))


def _answers(decided: Sequence[Escalation], language: str) -> Iterator[str]:
    """What people decided, oldest first."""
    for one in decided[-_ANSWERS:]:
        who = _clean(one.answered_by) or say(language, "a_person")
        if one.kind is EscalationKind.QUESTION:
            yield say(language, "agent_asked")
            yield from quoted(one.question)
            yield say(language, "person_answered", who=who)
        else:
            yield say(language, "person_decided", who=who, kind=one.kind, status=one.status)
        yield from quoted(one.answer, most=2 * _QUOTED, lines=2 * _QUOTED_LINES)


def _notes(notes: Sequence[str], language: str) -> Iterator[str]:
    for note in notes[-_NOTES:]:
        if note.strip():
            yield say(language, "note_left")
            yield from quoted(note)


def _within(lines: Sequence[str], language: str) -> str:
    """As many whole lines as a note can have."""
    kept: list[str] = []
    cut = say(language, "note_cut")
    left = LONGEST - len(cut) - 1
    for line in lines:
        left -= len(line) + 1
        if left < 0:
            return "\n".join((*kept, cut))
        kept.append(line)
    return "\n".join(kept)


def _clean(text: str) -> str:
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())
