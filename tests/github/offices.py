"""Connections of the tests to a GitHub of the tests."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import httpx

from genba.connections.github.access.credentials import Credentials, TokenCredentials
from genba.connections.github.access.destinations import Destination, destination
from genba.connections.github.client import GitHubClient
from genba.definitions.project.tracker_section import BoardSettings, GitHubSettings
from genba.domain.ports import Clock
from genba.testing.doubles import ManualClock
from tests.standins.github.server import GitHub

SHOP = "acme/shop"
TOKEN = "ghp_of_octocat"


def settle(hub: GitHub) -> GitHub:
    """octocat has a token; rita belongs to the shop as well; a stranger does not."""
    hub.add_token(TOKEN, "octocat")
    hub.add_user("rita")
    hub.add_user("stranger")
    hub.add_repository(SHOP, collaborators={"octocat": "write", "rita": "write"})
    return hub


def settings(
    url: str, repository: str = SHOP, board: BoardSettings | None = None, timeout: float = 20.0
) -> GitHubSettings:
    return GitHubSettings(repository=repository, url=url, board=board, timeout_seconds=timeout)


def named(url: str) -> Destination:
    """A place that the user of the tests named."""
    return destination(url, {"GENBA_GITHUB_HOST": url})


@asynccontextmanager
async def connected(
    where: GitHub | GitHubSettings,
    *,
    credentials: Credentials | None = None,
    clock: Clock | None = None,
    transport: httpx.AsyncBaseTransport | None = None,
) -> AsyncIterator[GitHubClient]:
    wanted = settings(where.url) if isinstance(where, GitHub) else where
    shown = credentials or TokenCredentials(TOKEN, "the test", named(wanted.url))
    client = GitHubClient(wanted, shown, clock or ManualClock(), transport=transport)
    try:
        yield client
    finally:
        await client.close()
