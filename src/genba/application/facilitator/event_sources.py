"""What happened in the field, from all sources: git, the tracker, the journals of runs, and the blackboard."""

from __future__ import annotations

from typing import TYPE_CHECKING

from genba.blackboard.triage.task_events import history
from genba.domain.tracker.commit_time import commit_time
from genba.judgement.triage.event_history import chronicle

if TYPE_CHECKING:
    from collections.abc import Mapping

    from genba.application.project.project_context import ProjectContext
    from genba.domain.facilitation import Fact, IssueFacts

_AT_ONCE = 500
"""Commits that git is asked for by one command."""


async def past_of(context: ProjectContext, field: Mapping[int, IssueFacts]) -> tuple[Fact, ...]:
    """All that is known to have happened to these issues, oldest first."""
    reverts = {commit.reverted_by for facts in field.values() for commit in facts.commits if commit.reverted_by}
    return chronicle(field, history(context.board().store), await _times(context, sorted(reverts)))


async def _times(context: ProjectContext, commits: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for at in range(0, len(commits), _AT_ONCE):
        asked = commits[at : at + _AT_ONCE]
        output = await context.layout.git.text("log", "--no-walk", "--format=%H %ct", *asked, "--")
        for line in output.splitlines():
            sha, _, seconds = line.partition(" ")
            found[sha] = commit_time(seconds)
    return found
