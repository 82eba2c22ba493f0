"""The words of a pull request: what was asked, what was verified, who did it.

Law: what others have written is shown and has no effect. It mentions no user, refers to no issue, closes none, is no
markup, and cannot pass for a marker of Genba's own.
"""

import msgspec

from genba.domain.goals.verification import GoalResult, Verification
from genba.domain.sessions.outcomes import ClosureAction
from genba.domain.text_limits import cut, one_line
from genba.domain.tracker.issues import FIRST_OWN_NUMBER
from genba.domain.tracker.quoting import harmless, inline, quoted
from genba.judgement.language.sentences import detail_in, in_language
from genba.judgement.language.wording import say
from genba.judgement.loop.closure import ends_task

LONGEST_BODY = 65_000
"""Characters. A forge takes 65,536 of them, and a marker comes behind."""
LONGEST_TITLE = 250
_LONGEST_ASKED = 20_000
_LONGEST_SHOWN = 1_000
_LONGEST_DETAIL = 300
_MOST_ROWS = 100
_MOST_FINDINGS = 20


class EvidenceRow(msgspec.Struct, frozen=True, kw_only=True):
    """What one goal came to."""

    level: str
    goal: str
    result: str
    detail: str = ""
    required: bool = True
    cached: bool = False


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """What a verification came to, as far as a pull request tells it. It outlives the process that verified."""

    commit: str
    verdict: str
    seconds: float = 0.0
    rows: tuple[EvidenceRow, ...] = ()
    findings: tuple[str, ...] = ()


class PullRequestFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What the text of a pull request is made of."""

    issue: int | None = None
    title: str = ""
    asked: str = ""
    agent: str
    run: str
    iterations: int = 0
    action: ClosureAction | None = None
    """What is done to the issue once the work has landed; None: nothing."""
    evidence: Evidence | None = None
    trailers: str = ""
    language: str = "en"


def evidence_of(verification: Verification) -> Evidence:
    rows = tuple(
        EvidenceRow(
            level=str(found.goal.level),
            goal=found.goal.type,
            result=str(found.result.status),
            detail=cut(one_line(_detail(found)), _LONGEST_DETAIL),
            required=found.goal.goal.required,
            cached=found.cached,
        )
        for found in verification.results[:_MOST_ROWS]
    )
    findings = tuple(cut(one_line(found), _LONGEST_DETAIL) for found in verification.findings[:_MOST_FINDINGS])
    return Evidence(
        commit=verification.subject.commit,
        verdict=verification.verdict,
        seconds=verification.seconds,
        rows=rows,
        findings=findings,
    )


def _detail(found: GoalResult) -> str:
    """What was found; of a goal that passed and says no more, what it has looked at."""
    from genba.domain.goals.descriptions import looked_at  # noqa: PLC0415  (a run without goals does not load them)

    return found.result.detail or (looked_at(found.goal.goal) if found.result.passed else "")


def title_of(facts: PullRequestFacts, branch: str) -> str:
    """The title of the issue in one line, or the name of the branch."""
    return cut(harmless(one_line(facts.title)) or branch, LONGEST_TITLE)


def body_of(facts: PullRequestFacts) -> str:
    """The text of the pull request. Where it would be too long, what was asked is cut first."""
    rest = _sections(facts)
    room = LONGEST_BODY - len(rest) - len(_asked(facts, ""))
    asked = _asked(facts, cut(facts.asked, max(0, min(_LONGEST_ASKED, room // 2))))
    whole = "\n\n".join(part for part in (_reference(facts), asked, rest) if part)
    return whole if len(whole) <= LONGEST_BODY else cut(whole, LONGEST_BODY)


def _reference(facts: PullRequestFacts) -> str:
    if facts.issue is None or facts.issue >= FIRST_OWN_NUMBER:  # a task of our own: the forge has no such number
        return ""
    closes = ends_task(facts.action)
    return f"{'Closes' if closes else 'Refs'} #{facts.issue}"


def _asked(facts: PullRequestFacts, asked: str) -> str:
    if not one_line(facts.title) and not asked.strip():
        return ""
    lines = [
        say(facts.language, "pull_request_asked"),
        "",
        f"**{inline(cut(facts.title, _LONGEST_SHOWN)) or say(facts.language, 'pull_request_no_title')}**",
    ]
    return "\n".join([*lines, "", quoted(asked)] if asked.strip() else lines)


def _sections(facts: PullRequestFacts) -> str:
    language = facts.language
    verified, done_by = say(language, "pull_request_verified"), say(language, "pull_request_done_by")
    parts = [verified, _verified(facts.evidence, language), done_by, _done_by(facts)]
    return "\n\n".join([*parts, *([facts.trailers.strip()] if facts.trailers.strip() else [])])


def _verified(evidence: Evidence | None, language: str) -> str:
    if evidence is None or not evidence.commit:
        return say(language, "pull_request_unverified")
    took = say(language, "pull_request_seconds", seconds=evidence.seconds) if evidence.seconds else ""
    verdict = inline(evidence.verdict)
    lines = [say(language, "pull_request_commit", commit=evidence.commit, verdict=verdict, took=took)]
    if evidence.rows:
        lines += ["", say(language, "pull_request_columns"), "|---|---|---|---|"]
        lines += [_row(row, language) for row in evidence.rows]
    lines += (
        ["", *(f"- {inline(in_language(language, found))}" for found in evidence.findings)] if evidence.findings else []
    )
    return "\n".join(lines)


def _row(row: EvidenceRow, language: str) -> str:
    result = row.result if row.required else say(language, "pull_request_not_required", result=row.result)
    result = say(language, "pull_request_cached", result=result) if row.cached else result
    cells = (inline(row.level), inline(row.goal), inline(result), inline(detail_in(language, row.goal, row.detail)))
    return f"| {' | '.join(cells)} |"


def _done_by(facts: PullRequestFacts) -> str:
    key = "pull_request_iteration" if facts.iterations == 1 else "pull_request_iterations"
    times = say(facts.language, key, count=facts.iterations) if facts.iterations else ""
    more = f"`genba task show {facts.issue}`, " if facts.issue is not None else ""
    more += f"`genba logs {facts.run}`"
    agent, run = inline(facts.agent), inline(facts.run)
    return say(facts.language, "pull_request_session", agent=agent, run=run, times=times, more=more)
