"""The one next move of an issue: who, by which command, and how much it matters.

A score is a sum of parts, each in [0, 1], with weights that add up to 1. The rationale names every part.
"""

import shlex
from collections.abc import Mapping, Sequence
from datetime import date
from typing import Literal

import msgspec

from genba.domain.facilitation import (
    AvailableAgent,
    FieldBlocker,
    Freshness,
    How,
    IssueAssessment,
    IssueBlockerKind,
    IssueFacts,
    IssueState,
    Part,
    SeenSession,
    Suggestion,
)
from genba.domain.fleet.records import WaitsFor
from genba.domain.sessions.session import SessionStatus
from genba.domain.tasks.task import Priority, TaskStatus
from genba.domain.tracker.remote import ReviewDecision
from genba.judgement.scheduling.assignment import PhaseCompleted
from genba.judgement.triage.work_evidence import open_requests, sent_back

NO_AGENT = "none"
WORK = "genba work --until-empty"
_WEIGHTS = {"urgency": 0.35, "fit": 0.15, "priority": 0.15, "freshness": 0.1, "history": 0.05, "unblocking": 0.2}
_URGENCY = {
    IssueState.IN_PROGRESS: (1.0, "work has begun"),
    IssueState.REVIEW_PENDING: (0.9, "finished work waits"),
    IssueState.BLOCKED: (0.8, "a person can clear the blocker"),
    IssueState.INCOMPLETE: (0.6, "nothing in its way"),
    IssueState.UNKNOWN: (0.5, "its state is not known"),
    IssueState.DONE: (0.2, "only its issue is open"),
}
_IMPORTANCE = {Priority.CRITICAL: 1.0, Priority.HIGH: 0.8, Priority.MEDIUM: 0.5, Priority.LOW: 0.2}
_BEGUN = {Freshness.STALE: 1.0, Freshness.RECENT: 0.8, Freshness.ACTIVE: 0.6}
"""Work that was begun and left lying comes first."""
_FRESH = {Freshness.ACTIVE: 1.0, Freshness.RECENT: 0.7, Freshness.STALE: 0.4}
_AT_ONCE, _SOON, _SOME_DAY = 1.0, 0.9, 0.8
"""How much an issue matters at least whose deadline has come, comes within a week, or comes later."""
_WEEK = 7
_MINOR = ("refactor", "refactoring", "improvement", "enhancement", "cleanup", "chore", "nice-to-have")
_LOWEST = 0.3
"""Below it others come first."""
_BY_A_PERSON = (1.0, 0.5)
_NAMED_BY = (How.TRAILER, How.KEYWORD)
"""How a commit on the base names the issue so surely that it can be verified as its work."""


class TriageContext(msgspec.Struct, frozen=True, kw_only=True):
    """What commands need to know besides the issues."""

    repository: str = ""
    """owner/name, where the issues live on GitHub."""
    worker: str = ""
    """The agent that works on issues without an assignee."""
    reviewer: str = ""
    """The agent that reviews, where one can be run."""
    label: str = ""
    project: int | None = None
    """The board that the report is limited to."""
    project_owner: str = ""
    """Who owns that board, where it is not the owner of the repository."""
    today: str = ""
    """The day of the look, by which deadlines are near or over."""
    resting: int = 0
    """Issues that are done and left out."""
    unread: tuple[str, ...] = ()
    """What of the field was never read, in words."""


class SuggestedCommand(msgspec.Struct, frozen=True):
    """A command that brings an issue on, and what it does."""

    command: str
    description: str


# ── by an agent ──────────────────────────────────────────────────────────────────────────────────────────────────────


def success_of(agent: AvailableAgent) -> float:
    """How often it came to a result; an agent without a past stands in the middle."""
    return (agent.succeeded + 1) / (agent.succeeded + agent.failed + 2)


def can_be_called(agent: AvailableAgent) -> bool:
    """Whether an issue is all that it needs."""
    return "issue" in agent.parameters and can_be_staged(agent)


def can_be_staged(agent: AvailableAgent) -> bool:
    """Whether it needs nothing besides an issue. At its stage every agent takes one."""
    return all(name == "issue" or not _is_required(each) for name, each in agent.parameters.items())


def _is_required(parameter: object) -> bool:
    if isinstance(parameter, Mapping):
        return bool(parameter.get("required")) and parameter.get("default") is None
    return bool(getattr(parameter, "required", False)) and getattr(parameter, "default", None) is None


def move_of_agent(assessment: IssueAssessment, facts: IssueFacts, agent: AvailableAgent) -> SuggestedCommand:
    number = facts.number
    result = {IssueState.IN_PROGRESS: "Go on with", IssueState.REVIEW_PENDING: "Review"}.get(assessment.state, "Start")
    session = left_lying(facts) if assessment.state is IssueState.IN_PROGRESS else None
    if session is not None:
        return SuggestedCommand(f"genba run --resume {shlex.quote(session.run)}", f"Go on with #{number}")
    if agent.asks:
        return SuggestedCommand(WORK, f"{result} #{number}")
    parameter = agent.parameters.get("issue")
    option = parameter.get("cli") if isinstance(parameter, Mapping) else getattr(parameter, "cli", None)
    option = option if isinstance(option, str) and option else "--issue"
    return SuggestedCommand(
        f"genba run {shlex.quote(agent.name)} {shlex.quote(option)} {number}", f"{result} #{number}"
    )


def left_lying(facts: IssueFacts) -> SeenSession | None:
    """A session that a command continues: suspended, or cut off. One of a stage that is over does not."""
    found = [
        each
        for each in facts.sessions
        if not each.alive
        and facts.stage in (None, each.agent)
        and (
            each.status == SessionStatus.RUNNING
            or (each.status == SessionStatus.WAITING and each.waits_for == WaitsFor.RESUME)
        )
    ]
    return max(found, key=lambda each: (each.last_at, each.started_at, each.run), default=None)


# ── by a person ──────────────────────────────────────────────────────────────────────────────────────────────────────


def move_of_person(assessment: IssueAssessment, facts: IssueFacts, around: TriageContext) -> SuggestedCommand | None:
    """The decision that an issue needs, if it needs one."""
    match assessment.state:
        case IssueState.DONE:
            message = f"Close #{facts.number}: its work is on the base"
            return None if assessment.closed else SuggestedCommand(closing_command(assessment, facts, around), message)
        case IssueState.UNKNOWN:
            message = assessment.evidence[0] if assessment.evidence else "its state is not known"
            return SuggestedCommand(looking_command(facts, around), f"Look at #{facts.number}: {message}")
        case IssueState.BLOCKED:
            ways = (_clearing(facts, blocker, around) for blocker in assessment.blockers)
            return next((way for way in ways if way is not None), None)
        case IssueState.REVIEW_PENDING:
            return _of_review(facts, around)
        case _:
            return _of_waiting(facts)


def move_of_stage(facts: IssueFacts, around: TriageContext) -> SuggestedCommand:
    """What a person does about a task whose stages are all complete, or whose stage has no agent that can begin."""
    number, stage = facts.number, facts.stage
    if not stage:
        message = f"Decide on #{number}: all of its stages are complete, and the last one left it open"
        return SuggestedCommand(looking_command(facts, around), message)
    message = f'Look at #{number}: it is at the stage of "{stage}", and no such agent can be called with an issue'
    return SuggestedCommand(f"genba agent check {shlex.quote(stage)}", message)


def move_of_phase(facts: IssueFacts, found: PhaseCompleted) -> SuggestedCommand:
    """What a person does about a task that an agent left open when its phase was complete."""
    return SuggestedCommand(found.command, f"Say who goes on with #{facts.number}: {found.why}")


def move_of_assignee(facts: IssueFacts, around: TriageContext) -> SuggestedCommand:
    """What there is to do about a task of a person, or of an agent that cannot be started here."""
    message = f'Leave #{facts.number} to "{facts.assignee}": no agent of this name can be started here with an issue'
    return SuggestedCommand(looking_command(facts, around), message)


def closing_command(assessment: IssueAssessment, facts: IssueFacts, around: TriageContext) -> str:
    """What closes an issue whose work is there."""
    if around.repository:
        return f"gh issue close {facts.number} --repo {shlex.quote(around.repository)}"
    if facts.status is TaskStatus.REVIEW or facts.verified:
        return f"genba task done {facts.number}"
    named = assessment.named_by in _NAMED_BY
    return f"genba verify {facts.number}" if named or facts.sessions else looking_command(facts, around)


def looking_command(facts: IssueFacts, around: TriageContext) -> str:
    if around.repository and facts.status is None:
        return f"gh issue view {facts.number} --repo {shlex.quote(around.repository)}"
    return f"genba task show {facts.number}"


def _clearing(facts: IssueFacts, blocker: FieldBlocker, around: TriageContext) -> SuggestedCommand | None:
    number = facts.number
    match blocker.kind:
        case IssueBlockerKind.QUESTION:
            return SuggestedCommand(f'genba answer {number} "…"', f"Answer #{number}: {blocker.detail}")
        case IssueBlockerKind.CYCLE:
            first = blocker.chain[1] if len(blocker.chain) > 1 else number
            message = f"Break the circle of #{number}: {blocker.detail}"
            return SuggestedCommand(f"genba task depend {number} --remove {first}", message)
        case IssueBlockerKind.DEPENDENCY if blocker.issue is not None and blocker.known:
            return None  # the work on its dependency clears the blocker
        case IssueBlockerKind.ELSEWHERE | IssueBlockerKind.LABEL | IssueBlockerKind.DEPENDENCY:
            return SuggestedCommand(looking_command(facts, around), f"Clear the way of #{number}: {blocker.detail}")
    return SuggestedCommand(f"genba task unblock {number}", f"Clear the way of #{number}: {blocker.detail}")


def _of_review(facts: IssueFacts, around: TriageContext) -> SuggestedCommand | None:
    number = facts.number
    requests = [each for each in open_requests(facts) if not each.draft and not sent_back(each)]
    if facts.status is TaskStatus.REVIEW and facts.verified:
        if facts.requires_review and facts.approved != facts.verified:
            command = review_command(facts, around.reviewer)
            message = "Approve" if command.startswith("genba approve") else "Review"
            return SuggestedCommand(command, f"{message} {facts.verified[:7]} of #{number}")
        if not requests:
            return SuggestedCommand(WORK, f"Merge {facts.verified[:7]} of #{number}: it is verified")
    approved = [each for each in requests if each.decision == ReviewDecision.APPROVED and each.green]
    if approved and around.repository:
        command = f"gh pr merge {approved[0].number} --repo {shlex.quote(around.repository)}"
        return SuggestedCommand(command, f"Merge pull request #{approved[0].number} of #{number}: it is approved")
    return None


def review_command(facts: IssueFacts, reviewer: str) -> str:
    """What has a verified commit reviewed: an agent, the fleet that waits for it, or a person."""
    authors = {each.agent for each in facts.sessions}
    if facts.reviewer_type != "ai" or facts.asks_person:
        return f"genba approve {facts.number}"
    if any(each.status == SessionStatus.WAITING and each.waits_for == WaitsFor.REVIEW for each in facts.sessions):
        return WORK
    if not reviewer or reviewer in authors:
        return f"genba approve {facts.number}"
    return f"genba run {shlex.quote(reviewer)} --issue {facts.number}"


def reviewer_on_offer(name: str, agents: Sequence[AvailableAgent]) -> str:
    """The agent that reviews, if it can be run; else nothing."""
    found = next((each for each in agents if each.name == name), None)
    return name if found is not None and found.answers and can_be_called(found) else ""


def _of_waiting(facts: IssueFacts) -> SuggestedCommand | None:
    """A session that waits is not to be doubled by another one."""
    number = facts.number
    waiting = {each.waits_for for each in facts.sessions if each.status == SessionStatus.WAITING and not each.alive}
    if WaitsFor.REVIEW in waiting and facts.reviewer_type == "ai" and not facts.asks_person:
        return SuggestedCommand(WORK, f"Review #{number}: its session waits for it")
    if waiting & {WaitsFor.REVIEW, WaitsFor.BUDGET}:
        return SuggestedCommand(f"genba approve {number}", f"Decide on #{number}: its session waits for you")
    if WaitsFor.ANSWER in waiting and not facts.question:
        return SuggestedCommand(WORK, f"Go on with #{number}: its question is answered")
    if WaitsFor.ANSWER in waiting:
        return SuggestedCommand(f'genba answer {number} "…"', f"Answer #{number}")
    if waiting & {WaitsFor.MERGE, WaitsFor.PULL_REQUEST, WaitsFor.PARTS}:
        return SuggestedCommand(WORK, f"Go on with #{number}: its session waits for the fleet")
    return None


# ── the score ────────────────────────────────────────────────────────────────────────────────────────────────────────


def importance(facts: IssueFacts, today: str) -> float:
    """How much an issue matters: by its priority, and by its deadline."""
    by_priority = _IMPORTANCE[facts.priority]
    if not facts.due or not today:
        return max(by_priority, _SOME_DAY) if facts.due else by_priority
    left = (date.fromisoformat(facts.due) - date.fromisoformat(today)).days
    return max(by_priority, _AT_ONCE if left <= 0 else _SOON if left <= _WEEK else _SOME_DAY)


def deadline_of(facts: IssueFacts, today: str) -> str:
    """Its deadline in words; empty without one."""
    if not facts.due:
        return ""
    return f"overdue since {facts.due}" if today > facts.due else f"due {facts.due}"


def score_of(
    assessment: IssueAssessment, facts: IssueFacts, waiting: int, fits: float, history: float, today: str
) -> float:
    """The sum of the parts, without their words."""
    ages = _BEGUN if assessment.state is IssueState.IN_PROGRESS else _FRESH
    return round(
        0.35 * _URGENCY[assessment.state][0]
        + 0.15 * fits
        + 0.15 * importance(facts, today)
        + 0.1 * ages[assessment.freshness]
        + 0.05 * history
        + 0.2 * (1 - 1 / (1 + waiting)),
        2,
    )


def suggestion_of_person(
    assessment: IssueAssessment, facts: IssueFacts, waiting: int, move: SuggestedCommand, today: str
) -> Suggestion:
    fits, history = _BY_A_PERSON
    parts = (*_parts(assessment, facts, waiting, today), _part("fit", fits, "a person"), _part("history", history, ""))
    return _suggestion(NO_AGENT, move, parts, assessment, facts, waiting, today)


def suggestion_of_agent(
    assessment: IssueAssessment, facts: IssueFacts, waiting: int, agent: AvailableAgent, fits: float, today: str
) -> Suggestion:
    tries = agent.succeeded + agent.failed
    past = f"{agent.succeeded} of {tries} came to a result" if tries else "no past"
    parts = (
        *_parts(assessment, facts, waiting, today),
        _part("fit", fits, _why_it_fits(assessment, facts, agent)),
        _part("history", success_of(agent), past),
    )
    return _suggestion(agent.name, move_of_agent(assessment, facts, agent), parts, assessment, facts, waiting, today)


def _why_it_fits(assessment: IssueAssessment, facts: IssueFacts, agent: AvailableAgent) -> str:
    if facts.stage is None and facts.assignee == agent.name:
        return f"assigned to {agent.name}"
    return f"{'the stage' if facts.stage else assessment.required_capability} of {agent.name}"


def _parts(assessment: IssueAssessment, facts: IssueFacts, waiting: int, today: str) -> tuple[Part, ...]:
    urgency, why = _URGENCY[assessment.state]
    ages = _BEGUN if assessment.state is IssueState.IN_PROGRESS else _FRESH
    priority = f"priority {facts.priority}"
    waits = f"{waiting} {'issue waits' if waiting == 1 else 'issues wait'} for it" if waiting else ""
    return (
        _part("urgency", urgency, why),
        _part("unblocking", 1 - 1 / (1 + waiting), waits),
        _part("priority", importance(facts, today), ", ".join(filter(None, (priority, deadline_of(facts, today))))),
        _part("freshness", ages[assessment.freshness], str(assessment.freshness)),
    )


def _part(name: str, value: float, why: str) -> Part:
    return Part(name=name, value=round(value, 3), weight=_WEIGHTS[name], why=why)


def _suggestion(
    agent: str,
    move: SuggestedCommand,
    parts: Sequence[Part],
    assessment: IssueAssessment,
    facts: IssueFacts,
    waiting: int,
    today: str,
) -> Suggestion:
    by_name = {part.name: part.value for part in parts}
    score = score_of(assessment, facts, waiting, by_name["fit"], by_name["history"], today)
    return Suggestion(
        agent=agent,
        command=move.command,
        description=move.description,
        priority=_priority(facts, assessment, waiting, score),
        score=score,
        rationale="; ".join(f"{part.why} ({part.name} {part.value:.2f})" for part in parts if part.why),
        issue=assessment.issue,
        parts=tuple(parts),
        deadline=deadline_of(facts, today),
    )


def _priority(
    facts: IssueFacts, assessment: IssueAssessment, waiting: int, score: float
) -> Literal["high", "medium", "low"]:
    """high: others wait for it, a blocker is cleared, it has a deadline, or it matters most.

    low: an improvement that can wait.
    """
    if (
        waiting
        or facts.due
        or facts.priority in (Priority.CRITICAL, Priority.HIGH)
        or assessment.state is IssueState.BLOCKED
    ):
        return "high"
    minor = facts.priority is Priority.LOW or any(label.casefold() in _MINOR for label in facts.labels)
    return "low" if minor or score < _LOWEST else "medium"
