"""The tracker in memory and GitHub's, held to the same."""

from collections.abc import AsyncIterator

import msgspec
import pytest

from genba.connections.github.issues import GitHubIssues
from genba.testing.tracker_conformance import RemoteIssuesSuite
from genba.testing.tracker_doubles import MemoryIssues
from tests.github.offices import SHOP, connected, settle
from tests.standins.github.server import GitHub


class MemoryPeople:
    def __init__(self, remote: MemoryIssues) -> None:
        self.remote = remote

    def open(self, title: str, labels: tuple[str, ...] = ()) -> int:
        return self.remote.add(title, labels=labels)

    def rename(self, number: int, title: str) -> None:
        self.remote.change(number, title=title)

    def close(self, number: int) -> None:
        self.remote.close(number)

    def delete(self, number: int) -> None:
        self.remote.delete(number)

    def block(self, number: int, by: int) -> None:
        self.remote.change(number, blocked_by=(by,))

    def put_below(self, number: int, parent: int) -> None:
        self.remote.change(number, parent=parent)


class HubPeople:
    def __init__(self, hub: GitHub) -> None:
        self.hub = hub

    def open(self, title: str, labels: tuple[str, ...] = ()) -> int:
        self.hub.advance(1)
        return self.hub.add_issue(SHOP, title=title, labels=labels)

    def rename(self, number: int, title: str) -> None:
        self.hub.advance(1)
        self.hub.edit(SHOP, number, title=title)

    def close(self, number: int) -> None:
        self.hub.advance(1)
        self.hub.close(SHOP, number)

    def delete(self, number: int) -> None:
        self.hub.delete(SHOP, number)

    def block(self, number: int, by: int) -> None:
        self.hub.block(SHOP, number, by)

    def put_below(self, number: int, parent: int) -> None:
        self.hub.add_sub_issue(SHOP, parent, number)


class TestMemoryIssues(RemoteIssuesSuite):
    @pytest.fixture
    def people(self, remote: MemoryIssues) -> MemoryPeople:
        return MemoryPeople(remote)


class TestGitHubIssues(RemoteIssuesSuite):
    @pytest.fixture
    def people(self, hub: GitHub) -> HubPeople:
        return HubPeople(settle(hub))

    @pytest.fixture
    async def remote(self, people: HubPeople) -> AsyncIterator[GitHubIssues]:
        async with connected(people.hub) as client:
            yield GitHubIssues(client)


def test_the_double_lists_no_details(remote: MemoryIssues) -> None:
    remote.add("one", blocked_by=(2,))
    assert msgspec.structs.asdict(remote.issues[1])["blocked_by"] == (2,)
