"""Verifies the work of an agent that claims to be done, and records the verdict."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from typing import TYPE_CHECKING

from genba.application.verification.maker import Maker
from genba.application.verification.policies import policy_resolver
from genba.coordination.workflow.work_verifier import VerificationResult
from genba.domain.errors import StateConflictError
from genba.domain.goals.verification import Subject, VerdictStatus, Verification
from genba.domain.processes import claim_mark
from genba.domain.redaction import Redactor
from genba.domain.workflow.actions import Evidence
from genba.execution.verification.session_verification import goal_checked, verification_finished
from genba.execution.verification.verify import evidence

if TYPE_CHECKING:
    from genba.application.project.project_context import ProjectContext
    from genba.domain.events import Event
    from genba.domain.tasks.task import Task

_LONGEST_OUTPUT = 6_000


async def judge_claim(
    context: ProjectContext,
    task: Task,
    subject: Subject,
    *,
    run: str,
    agent: str,
    own_goals: bool = False,
    emit: Callable[[Event], None] = lambda _event: None,
) -> VerificationResult:
    """Verify a commit against what its task is held to. With `own_goals` only its acceptance criteria count.

    A step of a plan is judged in the middle of the work: what the whole is held to may well fail there.
    `emit` takes what the journal of a run tells of a verification.
    """
    if await context.ports.repository.history().fork_point(subject.base, subject.commit) is None:
        message = f"{subject.branch} shares no commit with {subject.base_branch} any more: it could not land"
        return VerificationResult(
            done=False, commit=subject.commit, evidence=Evidence(task=task.number, summary=message)
        )
    rules = policy_resolver(context)
    policy = await rules.freeze(subject.base, subject.base_branch, task, own_goals=own_goals)
    redact = Redactor(os.environ).text
    verifier = await asyncio.to_thread(context.ports.verifier, Maker(agent=agent, run=run), claim_mark(run))
    found = await verifier.verify(subject, policy, lambda goal: emit(goal_checked(goal)))
    emit(verification_finished(found, redact))
    await asyncio.to_thread(context.board().record_verification, task.number, run, found)
    if found.status is VerdictStatus.ERROR:
        raise StateConflictError(f"the work could not be verified: {evidence(found).detail}")
    return VerificationResult(
        done=found.done, commit=subject.commit, evidence=None if found.done else evidence_of(found, task.number)
    )


def evidence_of(found: Verification, task: int) -> Evidence:
    """Why a verdict is not `done`, for the agent that fixes it."""
    check = evidence(found)
    failing = [f"{one.goal.type} ({one.goal.level}): {one.result.detail}" for one in found.results if one.rejects]
    return Evidence(
        task=task,
        commit=found.subject.commit,
        verdict=found.verdict,
        summary=check.detail,
        failing=tuple(failing) or tuple(found.findings),
        output=check.output[-_LONGEST_OUTPUT:],
    )


async def tip_of(context: ProjectContext, branch: str) -> str:
    """The commit that a branch is at."""
    found = await context.layout.git.commit_of(f"refs/heads/{branch}")
    if found is None:
        raise StateConflictError(f"there is no branch {branch}", unchanged="nothing was changed.")
    return found
