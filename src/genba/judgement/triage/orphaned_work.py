"""Finds orphaned work, and names the command that continues it."""

import shlex
from collections.abc import Iterator, Mapping

from genba.domain.facilitation import IssueAssessment, IssueFacts, IssueState, OrphanedWork, SeenSession
from genba.domain.sessions.session import SessionStatus
from genba.domain.tasks.task import TaskStatus
from genba.judgement.triage.suggestions import WORK, TriageContext, closing_command
from genba.judgement.triage.work_evidence import open_requests, sent_back

_IN_PROGRESS_LABELS = ("in-progress", "in progress", "wip")
_DONE_LABELS = ("done",)


def orphaned(
    assessments: Mapping[int, IssueAssessment], field: Mapping[int, IssueFacts], around: TriageContext
) -> tuple[OrphanedWork, ...]:
    """All of it, in the order of the issues."""
    found: list[OrphanedWork] = []
    for number, facts in field.items():
        assessment = assessments[number]
        if not assessment.closed or facts.sessions:
            found += _of_issue(assessment, facts, around)
    return tuple(found)


def _of_issue(assessment: IssueAssessment, facts: IssueFacts, around: TriageContext) -> Iterator[OrphanedWork]:
    number = facts.number
    if assessment.state is IssueState.DONE and not assessment.closed:
        why = (assessment.evidence or ("it is done",))[0]
        yield OrphanedWork(
            kind="merged_but_open",
            issue=number,
            detail=f"{why}, and its issue is open",
            command=closing_command(assessment, facts, around),
        )
    for session in facts.sessions:
        yield from _of_session(session, facts, assessment)
    if assessment.closed:
        return
    yield from _not_merged(facts, assessment)
    for request in open_requests(facts):
        if not (request.draft or request.reviews or request.decision or sent_back(request)):
            where = f" --repo {shlex.quote(around.repository)}" if around.repository else ""
            yield OrphanedWork(
                kind="no_reviewer",
                issue=number,
                detail=f"pull request #{request.number} is open, and no reviewer is requested",
                command=f"gh pr view {request.number}{where}",
            )
    yield from _wrong_labels(facts, assessment, around)


def _of_session(session: SeenSession, facts: IssueFacts, assessment: IssueAssessment) -> Iterator[OrphanedWork]:
    again = f"genba run --resume {shlex.quote(session.run)}"
    if session.status == SessionStatus.RUNNING and not session.alive:
        yield OrphanedWork(
            kind="dead_session",
            issue=facts.number,
            detail=f"{session.run} holds it, and its process is gone",
            command=again,
        )
    if session.dirty_tree and not session.alive:
        done = assessment.closed or assessment.state is IssueState.DONE
        yield OrphanedWork(
            kind="dirty_tree",
            issue=facts.number,
            detail=f"{session.dirty_tree} has changes, and no agent works in it",
            command=f"git -C {shlex.quote(session.dirty_tree)} status" if done else again,
        )


def _not_merged(facts: IssueFacts, assessment: IssueAssessment) -> Iterator[OrphanedWork]:
    """Verified work that is on its way nowhere."""
    waiting = any(session.alive or session.status == SessionStatus.WAITING for session in facts.sessions)
    if assessment.state is IssueState.DONE or waiting or open_requests(facts) or not facts.verified:
        return
    runs = [(session.last_at, session.run) for session in facts.sessions]
    if facts.status is TaskStatus.REVIEW and (not facts.requires_review or facts.approved == facts.verified):
        yield OrphanedWork(
            kind="not_merged",
            issue=facts.number,
            detail=f"{facts.verified[:7]} is verified, and not on the base",
            command=f"genba run --resume {shlex.quote(max(runs)[1])}" if runs else WORK,
        )


def _wrong_labels(facts: IssueFacts, assessment: IssueAssessment, around: TriageContext) -> Iterator[OrphanedWork]:
    names = {label.casefold(): label for label in facts.labels}
    wrong = [names[word] for word in _IN_PROGRESS_LABELS if word in names and assessment.state is IssueState.INCOMPLETE]
    wrong += [names[word] for word in _DONE_LABELS if word in names and assessment.state is not IssueState.DONE]
    for label in wrong:
        why = f": {assessment.evidence[0]}" if assessment.evidence else ""
        message = f"it is labelled {label}, and it is {assessment.state}{why}"
        if around.repository:
            where = shlex.quote(around.repository)
            command = f"gh issue edit {facts.number} --repo {where} --remove-label {shlex.quote(label)}"
        else:
            command = f"genba task edit {facts.number} --remove-label {shlex.quote(label)}"
        yield OrphanedWork(kind="wrong_label", issue=facts.number, detail=message, command=command)
