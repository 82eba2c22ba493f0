"""What a session sees of GitHub."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import msgspec

from genba.application.tracker.github import FreshTracker
from genba.connections.git.merging.merge_target import GitRework
from genba.domain.events import Notice

if TYPE_CHECKING:
    from genba.application.tracker.github import GitHubOffice
    from genba.connections.git.repository.layout import RepositoryLayout
    from genba.execution.run import RunPlan
    from genba.execution.session_context import SessionContext


def with_github(
    office: GitHubOffice, layout: RepositoryLayout, world: SessionContext, plan: RunPlan, alone: bool
) -> SessionContext:
    """What a run sees of GitHub. One that is `alone` looks itself; in a fleet somebody looks for all."""
    finalize = plan.definition.file.runner.execution.finalize
    proposes = finalize.create_pr and office.context.project.file.forge is None
    dressed = msgspec.structs.replace(world, follows=proposes)
    if finalize.create_pr:
        dressed = msgspec.structs.replace(dressed, rework=GitRework(layout, finalize.remote))
    if not alone or plan.issue is None:
        return dressed

    def say(told: str) -> None:
        world.journal.emit(Notice(message=world.redact(told)))

    if proposes:
        dressed = msgspec.structs.replace(dressed, forge=office.forge(plan.run, say))
    tracker = FreshTracker(world.tracker, office, say)
    return msgspec.structs.replace(dressed, tracker=tracker, refresh=partial(office.refresh, say=say))
