"""GitHub passes the suites of the ports that it stands behind, with GraphQL and without."""

from collections.abc import AsyncIterator

import pytest

from genba.connections.github.client import GitHubClient
from genba.connections.github.forge import GitHubForge
from genba.connections.github.issues import GitHubIssues
from genba.connections.github.remote_changes import GitHubChanges
from genba.connections.github.tracker import GitHubTracker
from genba.domain.sessions.workspaces import PullRequest
from genba.domain.tracker.issues import IssueChange
from genba.domain.tracker.outbox import PostComment
from genba.testing.conformance import ForgeSuite, TrackerSuite
from genba.testing.outbox_conformance import DeedsSuite
from tests.github.conftest import Hubs
from tests.github.offices import SHOP, connected, settings, settle
from tests.standins.github.server import GitHub


@pytest.fixture(params=["graphql", "rest"])
def shop(request: pytest.FixtureRequest, hubs: Hubs) -> GitHub:
    hub = settle(hubs(graphql=request.param == "graphql"))
    hub.add_issue(SHOP, title="One", body="Text", labels=["docs", "old"])
    hub.commit(SHOP, "genba/1", {"a.txt": "x"}, "Add a.txt")
    return hub


@pytest.fixture
async def client(shop: GitHub) -> AsyncIterator[GitHubClient]:
    async with connected(shop) as made:
        yield made


class TestTracker(TrackerSuite):
    @pytest.fixture
    def tracker(self, client: GitHubClient) -> GitHubTracker:
        return GitHubTracker(client)


class TestForge(ForgeSuite):
    @pytest.fixture
    def forge(self, client: GitHubClient) -> GitHubForge:
        return GitHubForge(client)


class TestDeeds(DeedsSuite):
    @pytest.fixture
    def changes(self, client: GitHubClient) -> GitHubChanges:
        return GitHubChanges(client)

    @pytest.fixture
    def head(self, shop: GitHub) -> str:
        return shop.repository(SHOP).git.refs()["refs/heads/genba/1"]


async def test_a_change_that_is_repeated_leaves_one_comment(shop: GitHub, client: GitHubClient) -> None:
    tracker = GitHubTracker(client)
    for _ in range(2):
        await tracker.change(1, IssueChange(comment="It is done.", add_labels=("done",)))
    assert len(shop.issue(SHOP, 1).comments) == 1
    await tracker.change(1, IssueChange())


async def test_a_pull_request_is_no_issue_of_the_tracker(shop: GitHub, client: GitHubClient) -> None:
    shop.open_pull_request(SHOP, "genba/1")
    shop.label(SHOP, 2, "docs")
    assert [issue.number for issue in await GitHubTracker(client).labelled("docs")] == [1]


async def test_a_forge_brings_its_pull_request_up_to_date(shop: GitHub, client: GitHubClient) -> None:
    forge = GitHubForge(client)
    addresses = {
        await forge.open(PullRequest(branch="genba/1", target="main", title=title, body="Why")) for title in ("A", "B")
    }
    assert len(addresses) == 1
    assert [pull.title for pull in shop.repository(SHOP).pulls] == ["B"]


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
