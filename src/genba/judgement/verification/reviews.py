"""Reviews: the verdict of a reviewer agent, read into a value, or everything that is wrong with it.

A verdict is one only when it says what it means: a request for changes names at least one, and an approval has
found nothing that stands in the way.
"""

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from genba.domain.convert import shape
from genba.domain.problems import Problem
from genba.domain.sessions.evidence import CheckResult, CheckStatus
from genba.domain.sessions.loop_state import Feedback
from genba.domain.tasks.task import Task
from genba.judgement.language.sentences import problem_in
from genba.judgement.language.wording import say
from genba.judgement.verification.paths import shown

ROUNDS = 2
"""How often a verdict that cannot be used goes back to its reviewer."""

CHECK = "review"
"""The name of the gaps of a review: of the author's, and of the reviewer's."""

_SAME_VERDICT = {"changes_requested": "changes", "request_changes": "changes", "approved": "approve"}
_SAME_KEYS = {"file": "path", "what": "text"}
_FINDINGS, _TEXT, _PATH, _SUMMARY = 50, 4_000, 500, 8_000
_SHOWN, _LINE = 40, 600


class Severity(StrEnum):
    MUST = "must"
    """It stands in the way."""
    SHOULD = "should"
    NOTE = "note"


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that a reviewer found."""

    text: str
    path: str = ""
    line: Annotated[int, Meta(ge=0)] | None = None
    severity: Severity = Severity.SHOULD


class ReviewVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """What a reviewer says about one commit."""

    approved: bool
    findings: tuple[Finding, ...] = ()
    summary: str = ""

    @property
    def lines(self) -> tuple[str, ...]:
        """The findings as the blackboard keeps them; the gravest first."""
        order = list(Severity)
        return tuple(finding_line(found) for found in sorted(self.findings, key=lambda one: order.index(one.severity)))


class _Answer(msgspec.Struct, frozen=True, kw_only=True):
    verdict: Literal["approve", "changes"]
    findings: tuple[Finding, ...] = ()
    summary: str = ""


def read_verdict(raw: Mapping[str, Any]) -> ReviewVerdict | tuple[Problem, ...]:
    """The verdict in a structured output; or every problem at once."""
    read, problems = shape(_usual(raw), _Answer, "")
    if read is None:
        return problems
    found = tuple(_wrong(read))
    if found:
        return found
    return ReviewVerdict(
        approved=read.verdict == "approve", findings=read.findings, summary=read.summary.strip()[:_SUMMARY]
    )


def _usual(raw: Mapping[str, Any]) -> dict[str, Any]:
    """The same answer in the words of this house: agents of your own may say `file` for `path`."""
    verdict, findings = raw.get("verdict"), raw.get("findings")
    usual = {key: raw[key] for key in ("verdict", "findings", "summary") if raw.get(key) is not None}
    if "summary" not in usual and isinstance(raw.get("reason"), str):
        usual["summary"] = raw["reason"]
    if isinstance(verdict, str):
        word = verdict.strip().lower()
        usual["verdict"] = _SAME_VERDICT.get(word, word)
    if isinstance(findings, list):
        usual["findings"] = [
            {_SAME_KEYS.get(key, key): value for key, value in found.items() if value is not None}
            if isinstance(found, dict)
            else found
            for found in findings
        ]
    return usual


def _wrong(read: _Answer) -> Iterator[Problem]:
    if len(read.findings) > _FINDINGS:
        message = f"has {len(read.findings)} of them, and at most {_FINDINGS} are allowed"
        yield Problem("", "findings", message, "name those that matter")
    for at, found in enumerate(read.findings):
        if not found.text.strip():
            yield Problem("", f"findings[{at}].text", "is empty", "say what is wrong and why it matters")
        for name, text, most in (("text", found.text, _TEXT), ("path", found.path, _PATH)):
            if len(text) > most:
                message = f"has {len(text)} characters, and at most {most} are allowed"
                yield Problem("", f"findings[{at}].{name}", message)
    grave = [found for found in read.findings if found.severity is not Severity.NOTE]
    if read.verdict == "changes" and not grave:
        message = "wants changes, and no finding says which"
        yield Problem("", "verdict", message, "name a finding that is `must` or `should`, or approve")
    if read.verdict == "approve" and any(found.severity is Severity.MUST for found in read.findings):
        message = "approves, and a finding says what must be changed first"
        yield Problem("", "verdict", message, "`changes`, or a finding that is no `must`")


def finding_line(found: Finding) -> str:
    """A finding in one line, for the blackboard, a screen and a prompt."""
    line = f":{found.line}" if found.line else ""
    where = f"{shown(found.path)}{line}: " if found.path else ""
    text = _flat(found.text)
    return f"{found.severity}: {where}{text if len(text) <= _LINE else text[: _LINE - 1] + '…'}"


def findings_gap(
    findings: Sequence[str],
    *,
    commit: str = "",
    reviewer: str = "",
    round: int = 1,  # noqa: A002  (the word of the house)
    rounds: int = 3,
    language: str = "en",
) -> Feedback:
    """The message to the author of a review that requests changes. The reviewer's text is marked as such."""
    who = say(language, "the_reviewer", name=_flat(reviewer)[:60]) if reviewer else say(language, "a_reviewer")
    on = say(language, "on_commit", commit=commit[:7]) if commit else ""
    lines = [_flat(found) for found in findings[:_SHOWN]] or [say(language, "findings_none")]
    if len(findings) > _SHOWN:
        lines.append(say(language, "more", count=len(findings) - _SHOWN))
    return Feedback(
        check=CHECK,
        detail=say(language, "findings", who=who, on=on),
        output="\n".join(lines),
        claim="",
        attempt=round,
        max_attempts=max(rounds, round),
    )


def next_of_review(task: Task) -> tuple[str, str]:
    """What a task in review waits for, and the commands that go on with it."""
    number = task.number
    if task.approved or not task.requires_review:
        ways = (
            f"genba work   merges it, or names what it waits for\ngenba task done {number}   if you merged it yourself"
        )
        return "its verified work waits to be merged", ways
    if task.reviewer_type == "ai":
        ways = f"genba work   has it reviewed, and merges it\ngenba approve {number}   approves it yourself"
        return "its verified work waits for a review", ways
    return "its verified work waits for a review", f"genba approve {number}   or: genba reject {number} --reason TEXT"


def verdict_check(raw: Mapping[str, Any] | None, language: str = "en") -> CheckResult | None:
    """Why the answer of a reviewer is no verdict, as a check that fails; None when it is one."""
    read = read_verdict(raw or {})
    return None if isinstance(read, ReviewVerdict) else _failed(read, language)


def _failed(problems: Sequence[Problem], language: str = "en") -> CheckResult:
    lines = [problem_in(language, problem) for problem in problems[:_SHOWN]]
    return CheckResult(
        CHECK, CheckStatus.FAILED, "the verdict cannot be used. Give the whole verdict again.", "\n".join(lines)
    )


def _flat(text: str) -> str:
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())
