"""The GitHub connection passes the suites of its ports."""

from collections.abc import AsyncIterator

import pytest

from genba.connections.github.client import GitHubClient
from genba.connections.github.issues import GitHubIssues
from genba.connections.github.remote_changes import GitHubChanges
from genba.domain.tracker.outbox import PostComment
from genba.testing.outbox_conformance import RemoteChangesSuite
from tests.github.offices import SHOP, connected, settings, settle
from tests.standins.github.server import GitHub


@pytest.fixture
def shop(hub: GitHub) -> GitHub:
    settle(hub)
    hub.add_issue(SHOP, title="One", body="Text", labels=["docs", "old"])
    hub.commit(SHOP, "genba/1", {"a.txt": "x"}, "Add a.txt")
    return hub


@pytest.fixture
async def client(shop: GitHub) -> AsyncIterator[GitHubClient]:
    async with connected(shop) as made:
        yield made


class TestDeeds(RemoteChangesSuite):
    @pytest.fixture
    def changes(self, client: GitHubClient) -> GitHubChanges:
        return GitHubChanges(client)

    @pytest.fixture
    def head(self, shop: GitHub) -> str:
        return shop.repository(SHOP).git.refs()["refs/heads/genba/1"]


async def test_an_enterprise_server_is_spoken_to_by_its_own_paths(shop: GitHub) -> None:
    shop.add_issues(SHOP, 120)
    async with connected(settings(shop.enterprise_url)) as client:
        issues = GitHubIssues(client)
        first = await issues.page()
        second = await issues.page(following=first.following)
        assert len({issue.number for issue in (*first.issues, *second.issues)}) == 121
        assert len((await issues.details([issue.reference for issue in first.issues[:3]])).issues) == 3
        await GitHubChanges(client).apply(PostComment(issue=1, body="Hello."), "key")
        assert await GitHubChanges(client).find(PostComment(issue=1, body="Hello."), "key") is not None
