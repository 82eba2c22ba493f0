"""The connection of a project to GitHub, opened when it is first used."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import msgspec

from genba.connections.github.access.credentials import AppCredentials, Credentials, find_credentials, gh_by
from genba.connections.github.access.destinations import destination
from genba.domain.errors import AccessRefusedError, GenbaError, NotFoundError
from genba.domain.tracker.remote import TrackerAccess

if TYPE_CHECKING:
    from genba.connections.github.client import GitHubClient
    from genba.connections.github.issues import GitHubIssues
    from genba.connections.github.remote_changes import GitHubChanges
    from genba.connections.github.settings import GitHubSettings
    from genba.domain.ports import Clock, Processes, RemoteChanges, RemoteIssues
    from genba.domain.tracker.outbox import DeliveryReceipt, RemoteChange
    from genba.domain.tracker.remote import CardPage, Details, IssuePage, TrackedPullRequest

T = TypeVar("T")


class GitHubConnection:
    """One client with one set of credentials. No credentials are looked for before the first request."""

    def __init__(self, settings: GitHubSettings, processes: Processes, folder: Path, clock: Clock) -> None:
        self.settings = settings
        self.processes = processes
        self.folder = folder
        self.clock = clock
        self.issues: RemoteIssues = LazyIssues(self)
        self.changes: RemoteChanges = LazyChanges(self)
        self._client: GitHubClient | None = None
        self._left: list[GitHubClient] = []
        """Clients whose credentials were refused. A request may still wait for an answer to one of them."""
        self._credentials: Credentials | None = None

    async def credentials(self) -> Credentials:
        if self._credentials is None:
            environ = dict(os.environ)
            run_gh = gh_by(self.processes, environ, self.folder)
            self._credentials = await find_credentials(self.settings, environ, run_gh)
        return self._credentials

    async def client(self) -> GitHubClient:
        if self._client is None:
            from genba.connections.github.client import GitHubClient  # noqa: PLC0415  (httpx is slow to import)

            self._client = GitHubClient(self.settings, await self.credentials(), self.clock)
        return self._client

    def start_over(self) -> None:
        """Forget credentials that were refused: the user may have logged in again."""
        self._left += [self._client] if self._client is not None else []
        self._client = self._credentials = None

    async def close(self) -> None:
        """Close the connections. Safe to repeat."""
        clients, self._client, self._left = [*self._left, self._client], None, []
        for client in clients:
            if client is not None:
                await client.close()

    async def token(self, origin: str) -> str:
        """The token for git at an origin. Raises AccessRefusedError where that may get none."""
        credentials = await self.credentials()
        if not credentials.destination.covers_git(origin):
            destination(origin, os.environ)
        if isinstance(credentials, AppCredentials):
            return await (await self.client()).token()
        return credentials.token

    async def check(self) -> TrackerAccess:
        """Read the repository. Nothing is changed, and no failure is raised."""
        name, source = self.settings.repository, ""
        try:
            source = (await self.credentials()).source
            client = await self.client()
            answer = (await client.get(client.repository())).read(_Repository)
        except NotFoundError as error:
            message = f"GitHub has no repository {name}, or does not show it to this token"
            return TrackerAccess(repository=name, source=source, problem=message, hint=error.hint)
        except GenbaError as error:
            return TrackerAccess(repository=name, source=source, problem=error.message, hint=error.hint)
        seen = f"{answer.open_issues_count} open issues and pull requests, by {source}"
        problem, hint = _problem(answer, source)
        return TrackerAccess(repository=name, source=source, seen=seen, problem=problem, hint=hint)


class LazyIssues:
    """Reads issues. Without requests no credentials are looked for."""

    def __init__(self, connection: GitHubConnection) -> None:
        self.connection = connection
        self._issues: GitHubIssues | None = None

    async def _ask(self, work: Callable[[GitHubIssues], Awaitable[T]]) -> T:
        from genba.connections.github.issues import GitHubIssues  # noqa: PLC0415  (see client)

        client = await self.connection.client()
        if self._issues is None or self._issues.client is not client:
            self._issues = GitHubIssues(client)
        try:
            return await work(self._issues)
        except AccessRefusedError:
            self.connection.start_over()
            raise

    async def page(self, *, since: str = "", following: str = "", etag: str = "", label: str = "") -> IssuePage:
        return await self._ask(lambda one: one.page(since=since, following=following, etag=etag, label=label))

    async def details(self, references: Sequence[str]) -> Details:
        return await self._ask(lambda one: one.details(references))

    async def issue(self, number: int) -> Details:
        return await self._ask(lambda one: one.issue(number))

    async def pull_requests(self, numbers: Sequence[int]) -> tuple[TrackedPullRequest, ...]:
        return await self._ask(lambda one: one.pull_requests(numbers))

    async def pull_request_of(self, branch: str) -> TrackedPullRequest | None:
        return await self._ask(lambda one: one.pull_request_of(branch))

    async def cards(self, owner: str, project: int, field: str, following: str = "", since: str = "") -> CardPage:
        return await self._ask(lambda one: one.cards(owner, project, field, following=following, since=since))

    @property
    def spent(self) -> tuple[int, int]:
        return self._issues.spent if self._issues is not None else (0, 0)

    @property
    def notes(self) -> tuple[str, ...]:
        return self._issues.notes if self._issues is not None else ()


class LazyChanges:
    """Sends changes. Without changes no credentials are looked for."""

    def __init__(self, connection: GitHubConnection) -> None:
        self.connection = connection
        self._changes: GitHubChanges | None = None

    async def _ask(self, work: Callable[[GitHubChanges], Awaitable[T]]) -> T:
        from genba.connections.github.remote_changes import GitHubChanges  # noqa: PLC0415  (see client)

        client = await self.connection.client()
        if self._changes is None or self._changes.client is not client:
            self._changes = GitHubChanges(client)
        try:
            return await work(self._changes)
        except AccessRefusedError:
            self.connection.start_over()
            raise

    async def find(self, change: RemoteChange, key: str) -> DeliveryReceipt | None:
        return await self._ask(lambda one: one.find(change, key))

    async def apply(self, change: RemoteChange, key: str) -> DeliveryReceipt:
        return await self._ask(lambda one: one.apply(change, key))


class _Permissions(msgspec.Struct, frozen=True):
    push: bool = False


class _Repository(msgspec.Struct, frozen=True):
    open_issues_count: int = 0
    has_issues: bool = True
    archived: bool = False
    permissions: _Permissions | None = None
    """What the token may; GitHub does not show it to every token."""


def _problem(repository: _Repository, source: str) -> tuple[str, str]:
    """What would stop work on this repository, and the remedy."""
    if repository.archived:
        return "the repository is archived: nothing can be changed there", ""
    if not repository.has_issues:
        return "the repository has no issues: they are turned off there", ""
    if repository.permissions is not None and not repository.permissions.push:
        return f"{source} may only read: no work can be pushed", "give it a token that may write to the repository"
    return "", ""
