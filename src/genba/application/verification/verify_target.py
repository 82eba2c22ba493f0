"""Finding out what a user means by a task, a branch or a commit, and looking at it."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from genba.application.project import base_branch as base_branches
from genba.application.sessions.stages import command_to_work
from genba.application.verification.commits import known_commit
from genba.application.verification.maker import Maker, maker_of_branch
from genba.application.verification.policies import policy_resolver
from genba.application.verification.task_work import is_own_work, landed_by_hand
from genba.domain.errors import NotFoundError, StateConflictError
from genba.domain.goals.verification import GoalResult, Subject, Verification
from genba.domain.processes import VERIFYING
from genba.domain.tasks.task import Task

if TYPE_CHECKING:
    from genba.application.ports import CommitHistory
    from genba.application.project.project_context import ProjectContext
    from genba.execution.verification.policy import Policy


class Examination(msgspec.Struct, frozen=True, kw_only=True):
    """What `genba verify` is to look at, and what it is held to."""

    shown: str
    """As the user named it."""
    number: int | None
    """The task, where it is one."""
    agent: str = "iterator"
    """Who worked on the task last, to go on with it."""
    maker: Maker = Maker()
    subject: Subject | None
    policy: Policy
    recorded: bool = True
    """Whether the verdict counts for the task: not when it was held to less than the task is."""


async def resolve(
    context: ProjectContext,
    target: str | None,
    base_branch: str | None,
    may_change: tuple[str, ...],
    needs_commit: bool,
) -> Examination:
    """What is to be verified, and the policy of its base."""
    history = context.ports.repository.history()
    task = _task(context, target)
    subject = None
    if needs_commit or target is not None:
        if target is None:
            raise NotFoundError("say what to verify: a task, a branch or a commit", hint="genba verify 12")
        subject = await _subject(context, history, target, task, base_branch, needs_commit)
    base_name = (
        subject.base_branch
        if subject is not None
        else base_branch or (await base_branches.base_branch(context) or "HEAD")
    )
    tip = await known_commit(history, base_name)
    policy = await policy_resolver(context).freeze(tip, base_name, task, may_change)
    session = context.board().newest_session(task.number) if task is not None else None
    if session is not None:
        maker = Maker(agent=session.agent, run=session.run)
    else:
        maker = maker_of_branch(context, subject.branch if subject is not None else "")
    return Examination(
        shown=target or base_name,
        number=task.number if task is not None else None,
        agent=(session.agent if session is not None else "") or "iterator",
        maker=maker,
        subject=subject,
        policy=policy,
        recorded=not may_change and base_branch is None,
    )


async def verify(
    context: ProjectContext, examination: Examination, fresh: bool, on_goal: Callable[[GoalResult], None]
) -> Verification:
    """The verdict. That of a task is written on the blackboard; its status stays as it is."""
    assert examination.subject is not None  # noqa: S101  (asked for with needs_commit)
    mark = f"{VERIFYING}{os.getpid()}-{os.urandom(3).hex()}"
    found = await context.ports.verifier(examination.maker, mark).verify(
        examination.subject, examination.policy, on_goal, fresh
    )
    if examination.number is not None and examination.recorded:
        context.board().record_verification(examination.number, "", found)
    return found


def _task(context: ProjectContext, target: str | None) -> Task | None:
    """The task that is meant; a number that is no task may still be a commit."""
    digits = (target or "").removeprefix("#")
    if target is None or not (digits.isascii() and digits.isdigit()):
        return None
    number = int(digits[:18])
    if not context.has_board():
        if target.startswith("#"):
            raise NotFoundError(f"there is no task #{number}", hint='genba task add "what is to be done"')
        return None
    try:
        return context.board().get(number)
    except NotFoundError:
        if len(target) >= 7 and not target.startswith("#"):  # noqa: PLR2004  (a short commit may be all digits)
            return None
        raise


async def _subject(
    context: ProjectContext,
    history: CommitHistory,
    target: str,
    task: Task | None,
    base_branch: str | None,
    needs_commit: bool,
) -> Subject | None:
    branch, commit = "", None
    if task is not None:
        found = await _of_task(context, history, task)
        if isinstance(found, Subject):
            return found
        branch = found
        if not branch and not needs_commit:
            return None
        if not branch:
            raise StateConflictError(
                f"task #{task.number} has no branch yet, and no commit is its work",
                unchanged="nothing was changed.",
                hint=command_to_work(context, task, context.board().newest_session(task.number).agent),
            )
    else:
        branch = await history.branch_of(target)
    commit = await known_commit(history, branch or target)
    base_name = base_branch or await _base_for(context, branch)
    base_tip = await known_commit(history, base_name)
    fork = await history.fork_point(base_tip, commit)
    if fork is None:
        raise StateConflictError(f"{target} and {base_name} have no commit in common", hint="--base-branch NAME")
    dirty, strayed = await _tree_of(context, branch)
    return Subject(commit=commit, base=fork, branch=branch, base_branch=base_name, dirty=dirty, strayed=strayed)


async def _of_task(context: ProjectContext, history: CommitHistory, task: Task) -> Subject | str:
    """The branch of a task's newest session; for work that has landed, the commit that was verified last."""
    board = context.board()
    branch = board.newest_session(task.number).branch
    if branch and await history.branch_of(branch) and not await _has_landed(context, history, branch):
        return branch
    last = board.last_verification(task.number)
    base = await base_branches.base_branch(context) or "HEAD"
    there = last is not None and await history.commit_of(last.subject.commit) is not None
    if last is not None and there and await is_own_work(context, task, last.subject, last.subject.base_branch or base):
        return last.subject
    if branch and await history.branch_of(branch):
        return branch
    return (await landed_by_hand(context, task, base) if not branch else None) or ""


async def _has_landed(context: ProjectContext, history: CommitHistory, branch: str) -> bool:
    """Whether the base has all of a branch already."""
    base = await _base_for(context, branch)
    tip = await known_commit(history, branch)
    return base != branch and await context.layout.git.is_ancestor(tip, await known_commit(history, base))


async def _tree_of(context: ProjectContext, branch: str) -> tuple[tuple[str, ...], str]:
    """What the working tree of a branch has not committed, where it has one."""
    checkouts = await context.layout.checkouts()
    folder = checkouts.get(branch)
    if not branch or folder is None or not folder.is_dir():
        return (), ""
    return await context.ports.repository.worktrees().uncommitted(folder), ""


async def _base_for(context: ProjectContext, branch: str) -> str:
    """The branch that a branch is compared with; itself where the repository has no other."""
    base = await base_branches.base_branch(context, besides=branch) or branch
    if not base:
        raise StateConflictError("your checkout is on no branch", hint="--base-branch NAME")
    return base
