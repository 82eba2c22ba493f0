"""Calls a task done whose work was merged without Genba.

Law: what counts is what is on the base now, held to the goals that the task has now. A verdict on the branch is not
enough: the merge may have taken nothing of it, and what it brought may be gone again.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import msgspec

from genba.application.project.base_branch import base_branch as default_base
from genba.application.sessions.stages import command_to_work
from genba.application.verification.commits import known_commit
from genba.application.verification.maker import Maker
from genba.application.verification.policies import policy_resolver
from genba.application.verification.task_work import is_own_work
from genba.domain.errors import StateConflictError
from genba.domain.goals.goal import OF_CHANGES
from genba.domain.goals.verification import Subject, Verification
from genba.domain.processes import VERIFYING
from genba.domain.tasks.task import Actor, ActorKind, StatusChange, Task, TaskStatus
from genba.execution.verification.verify import evidence
from genba.judgement.loop.closure import moves_on, stage_of

if TYPE_CHECKING:
    from genba.application.project.project_context import ProjectContext
    from genba.execution.verification.policy import Policy

_BY_HAND = {
    TaskStatus.OPEN: (TaskStatus.IN_PROGRESS, TaskStatus.REVIEW),
    TaskStatus.IN_PROGRESS: (TaskStatus.REVIEW,),
}
"""The way of work that no session made and that is verified; a second call continues from the current status."""


async def settle(context: ProjectContext, number: int, base_branch: str | None) -> Task:
    """Call a task done whose verified commit is on the base, where its goals hold as they are now."""
    history, board = context.ports.repository.history(), context.board(make=False)
    task, last = board.get(number), board.last_verification(number)
    if last is None or not last.done:
        raise StateConflictError(
            f"task #{number} is not verified", unchanged="nothing was changed.", hint=f"genba verify {number}"
        )
    base = base_branch or last.subject.base_branch or await default_base(context)
    tip, commit = await known_commit(history, base), last.subject.commit
    if not await is_own_work(context, task, last.subject, base):
        raise StateConflictError(
            f"{commit[:7]}, which was verified, is not work on task #{number}",
            unchanged="nothing was changed.",
            hint=command_to_work(context, task),
        )
    if not await context.layout.git.is_ancestor(commit, tip):
        raise StateConflictError(
            f"{commit[:7]}, the verified commit of task #{number}, is not on {base}",
            unchanged="nothing was changed.",
            hint=f"git merge {commit[:12]}",
        )
    await _check_landing(context, task, last.subject, base, tip)
    actor = Actor(ActorKind.ORCHESTRATOR, f"genba, asked by {context.actor().name}")
    by_hand = not board.newest_session(number).run
    for to in _BY_HAND.get(task.status, ()) if by_hand else ():
        task = board.change_status(number, StatusChange(to=to, actor=actor, commit=commit, version=task.version))
    change = StatusChange(
        to=TaskStatus.DONE, actor=actor, commit=commit, finalized=f"seen on {base}", version=task.version
    )
    stages = context.project.stages.get(task.type, ())
    stage = stage_of(stages, task)
    if stage and moves_on(stages, task, stage):
        why = "a phase is complete"
        change = msgspec.structs.replace(change, to=TaskStatus.OPEN, reason=why, phase=stage)
    return board.change_status(number, change)


async def _check_landing(context: ProjectContext, task: Task, work: Subject, base: str, tip: str) -> None:
    """Raises where the work is not on the base any more, or does not meet the goals there."""
    landing, before = await _landing(context, work.commit, tip)
    scan = context.ports.repository.scan()
    for sha in dict.fromkeys((landing, work.commit)):
        if await scan.is_reverted(sha, base):
            raise _not_done(context, task, f"{base} took {sha[:7]}, the work on task #{task.number}, back")
    tree, others = await _tree(context, landing), await _tree(context, before) if before else ""
    if before and tree == others:
        raise _not_done(context, task, f"the merge {landing[:7]} took nothing of {work.commit[:7]}")
    policy = await policy_resolver(context).freeze(tip, base, task)
    is_same = tree == await _tree(context, work.commit)
    landed = work if is_same or not before else Subject(commit=landing, base=before, branch="", base_branch=base)
    found = await _verify(context, task, landed, policy)
    context.board().record_verification(task.number, "", found)
    if not found.done:
        raise _rejected(task, f"{found.subject.commit[:7]} does not meet the goals of task #{task.number}", found)
    if tree != await _tree(context, tip):
        lasting = tuple(each for each in policy.goals if not isinstance(each.goal, OF_CHANGES))
        now = msgspec.structs.replace(policy, goals=lasting, artifacts=())
        found = await _verify(context, task, Subject(commit=tip, base=tip, branch="", base_branch=base), now)
        if not found.done:
            raise _rejected(task, f"{base} at {tip[:7]} no longer meets the goals of task #{task.number}", found)


async def _landing(context: ProjectContext, commit: str, tip: str) -> tuple[str, str]:
    """The commit by which the base got some work, and the one before it; nothing before where it is the work itself."""
    span = ("rev-list", f"{commit}..{tip}")
    after = set((await context.layout.git.text(*span, "--ancestry-path")).split())
    chain = (await context.layout.git.text(*span, "--first-parent", "--parents")).splitlines()
    for line in reversed(chain):
        first, *parents = line.split()
        if first in after:
            return (commit, "") if parents[:1] == [commit] else (first, parents[0])
    return commit, ""


async def _tree(context: ProjectContext, commit: str) -> str:
    return await context.layout.git.text("rev-parse", f"{commit}^{{tree}}")


async def _verify(context: ProjectContext, task: Task, subject: Subject, policy: Policy) -> Verification:
    session = context.board().newest_session(task.number)
    mark = f"{VERIFYING}{os.getpid()}-{os.urandom(3).hex()}"
    verifier = context.ports.verifier(Maker(agent=session.agent, run=session.run), mark)
    return await verifier.verify(subject, policy, lambda _result: None)


def _not_done(context: ProjectContext, task: Task, why: str) -> StateConflictError:
    return StateConflictError(why, unchanged="nothing was changed.", hint=command_to_work(context, task))


def _rejected(task: Task, why: str, found: Verification) -> StateConflictError:
    hint = f"genba verify {task.number}   shows the last verdict on the task"
    return StateConflictError(f"{why}: {evidence(found).detail}", unchanged="the status was not changed.", hint=hint)
