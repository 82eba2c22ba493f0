"""Whether a project is let in where its issues live: one question, and what its answer means."""

import msgspec

from genba.domain.errors import GenbaError, NotFoundError
from genba.wiring.project.project_context import ProjectContext
from genba.wiring.tracker.github import GitHubOffice


class Access(msgspec.Struct, frozen=True, kw_only=True):
    """What was found when somebody knocked."""

    repository: str
    source: str = ""
    """Where the credentials come from; never what they are."""
    seen: str = ""
    problem: str = ""
    hint: str = ""


class _Permissions(msgspec.Struct, frozen=True):
    push: bool = False


class _Repository(msgspec.Struct, frozen=True):
    open_issues_count: int = 0
    has_issues: bool = True
    archived: bool = False
    permissions: _Permissions | None = None
    """What the token may; not everybody who asks is told."""


async def try_access(context: ProjectContext) -> Access:
    """Ask for the repository of the project. Nothing is changed, and nothing that goes wrong is raised."""
    settings = context.project.file.tracker.github
    if settings is None:
        return Access(repository="", problem="this project names no tracker", hint="genba init --github owner/name")
    office = GitHubOffice(context, settings)
    source = ""
    try:
        source = (await office.credentials()).source
        client = await office.client()
        found = (await client.get(client.repository())).read(_Repository)
    except NotFoundError as error:
        message = f"GitHub has no repository {settings.repository}, or does not show it to this token"
        return Access(repository=settings.repository, source=source, problem=message, hint=error.hint)
    except GenbaError as error:
        return Access(repository=settings.repository, source=source, problem=error.message, hint=error.hint)
    finally:
        await office.close()
    seen = f"{found.open_issues_count} open issues and pull requests, by {source}"
    problem, hint = _problem(found, source)
    return Access(repository=settings.repository, source=source, seen=seen, problem=problem, hint=hint)


def _problem(found: _Repository, source: str) -> tuple[str, str]:
    """What would stand in the way of work, and the way out."""
    if found.archived:
        return "the repository is archived: nothing can be changed there", ""
    if not found.has_issues:
        return "the repository has no issues: they are turned off there", ""
    if found.permissions is not None and not found.permissions.push:
        return f"{source} may only read: no work can be pushed", "give it a token that may write to the repository"
    return "", ""
