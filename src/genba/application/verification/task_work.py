"""The work of one task in git, by the same rules by which `genba status` calls an issue done."""

from __future__ import annotations

from typing import TYPE_CHECKING

from genba.blackboard.triage.triage_board import FieldBoard
from genba.coordination.facilitator.issue_facts import uniform
from genba.domain.facilitation import How
from genba.domain.goals.verification import Subject
from genba.judgement.triage.evidence_ownership import Owner, own_commits, texts_are_ours

if TYPE_CHECKING:
    from genba.application.ports import IssueScan
    from genba.application.project.project_context import ProjectContext
    from genba.domain.facilitation import SeenCommit
    from genba.domain.tasks.task import Task

_ON_BASE = (How.TRAILER, How.KEYWORD)


async def landed_by_hand(context: ProjectContext, task: Task, base: str) -> Subject | None:
    """The newest commit of the base that says it is the work on a task; None when there is none."""
    for commit in await _commits_by_hand(context, task, base):
        if not await context.ports.repository.scan().is_reverted(commit.sha, base):
            parents = (await context.layout.git.text("rev-list", "--parents", "-1", commit.sha)).split()[1:]
            return Subject(commit=commit.sha, base=(parents or [commit.sha])[0], branch="", base_branch=base)
    return None


async def is_own_work(context: ProjectContext, task: Task, subject: Subject, base: str) -> bool:
    """True for a commit that a session of the task made, or that was made by hand after the task."""
    places = context.board().places_of(task.number)
    if subject.branch and subject.branch in {branch for _, branch in places}:
        return True
    return any(commit.sha == subject.commit for commit in await _commits_by_hand(context, task, base))


async def _commits_by_hand(context: ProjectContext, task: Task, base: str) -> list[SeenCommit]:
    scan = context.ports.repository.scan()
    named = [commit for commit in await scan.naming(base, task.number) if commit.how in _ON_BASE]
    return own_commits(named, await _owner(context, task, scan, {each.run for each in named})) if named else []


async def _owner(context: ProjectContext, task: Task, scan: IssueScan, named: set[str]) -> Owner:
    github = context.project.file.tracker.github if task.tracker != "local" else None
    places = context.board().places_of(task.number)
    return Owner(
        number=task.number,
        title=task.title,
        created_at=uniform(_created_at(context, task)),
        texts=texts_are_ours(await scan.remotes(), github.repository if github is not None else ""),
        runs=frozenset(run for run, _ in places),
        branches=frozenset(branch for _, branch in places if branch),
        tasks_of=FieldBoard(context.board()).tasks_of(named),
    )


def _created_at(context: ProjectContext, task: Task) -> str:
    """When the issue was made on its tracker; the task may be a later copy of it."""
    if task.tracker == "local":
        return task.created_at
    from genba.blackboard.tracker.issue_copy import TrackerBoard  # noqa: PLC0415  (only with a tracker)

    row = TrackerBoard(context.board()).row(task.number)
    return (row.issue.created_at if row is not None else "") or task.created_at
