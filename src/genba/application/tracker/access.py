"""Checks whether the tracker of a project lets it in."""

from genba.application.project.project_context import ProjectContext
from genba.domain.tracker.remote import TrackerAccess


async def try_access(context: ProjectContext) -> TrackerAccess:
    """Read the repository of the project. Nothing is changed, and no failure is raised."""
    settings = context.project.file.tracker.github
    if settings is None:
        problem = "this project names no tracker"
        return TrackerAccess(repository="", problem=problem, hint="genba init --github owner/name")
    github = context.ports.github(settings)
    try:
        return await github.check()
    finally:
        await github.close()
