"""The same against the GitHub of the tests: every request and answer is held to GitHub's schemas."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from genba.blackboard.tasks.board import Blackboard
from genba.connections.github.issues import GitHubIssues
from genba.coordination.tracker.tracker_sync import Synchronizer
from genba.definitions.project.tracker_section import BoardSettings
from genba.domain.tasks.task import TaskStatus
from genba.testing.doubles import ManualClock
from tests.github.offices import SHOP, connected, settings, settle
from tests.standins.github.server import GitHub


@pytest.fixture
def shop(hub: GitHub) -> GitHub:
    return settle(hub)


@pytest.fixture
def address(tmp_path: Path) -> str:
    """SQLite alone: what both databases do is tried with the tracker in memory."""
    return str(tmp_path / "board.db")


@pytest.fixture
async def sync(shop: GitHub, board: Blackboard) -> AsyncIterator[Synchronizer]:
    async with connected(shop) as client:
        yield Synchronizer(GitHubIssues(client), board, settings(shop.url), ManualClock())


async def test_all_that_people_do_arrives(shop: GitHub, board: Blackboard, sync: Synchronizer) -> None:
    one = shop.add_issue(SHOP, title="Add login", body="please", labels=["bug"])
    two, part = shop.add_issue(SHOP, title="Schema"), shop.add_issue(SHOP, title="A part")
    shop.commit(SHOP, "topic", {"a.txt": "a"}, "Add a")
    shop.open_pull_request(SHOP, "topic")
    shop.block(SHOP, one, two)
    shop.add_sub_issue(SHOP, two, part)
    shop.comment(SHOP, one, "as soon as you can", by="rita")
    await sync.sync()
    assert [task.number for task in board.find()] == [one, two, part]
    assert (board.get(one).dependencies, board.get(two).children) == ((two,), (part,))
    assert [(output.author, output.body) for output in board.comments(one)] == [("rita", "as soon as you can")]

    shop.advance(3600)
    shop.close(SHOP, two, "not_planned")
    shop.edit(SHOP, one, title="Add a login page")
    result = await sync.sync()
    assert result.closed == (two,)
    assert (board.get(one).title, board.get(one).dependencies) == ("Add a login page", ())

    shop.add_repository("acme/other", collaborators={"octocat": "write"})
    shop.transfer(SHOP, part, "acme/other")
    shop.delete(SHOP, one)
    result = await sync.sync(full=True)
    assert set(result.gone) == {one, part}
    assert board.get(part).status is board.get(one).status is TaskStatus.CANCELLED


async def test_a_look_where_nothing_changed_is_one_request_that_has_no_answer(
    shop: GitHub, board: Blackboard, sync: Synchronizer
) -> None:
    shop.add_issue(SHOP, title="one")
    shop.advance(3600)
    await sync.sync()
    await sync.sync()
    shop.forget_requests()
    result = await sync.sync()
    assert [(one.method, one.status) for one in shop.requests] == [("GET", 304)]
    assert (result.requests, result.points) == (1, 0)


async def test_a_board_chooses_the_issues(shop: GitHub, board: Blackboard) -> None:
    shop.add_organization("acme", members=["octocat"])
    number = shop.add_project("acme")
    on_board, later = shop.add_issue(SHOP, title="on"), shop.add_issue(SHOP, title="later")
    shop.set_card("acme", number, SHOP, on_board, "Todo")
    chosen = settings(shop.url, board=BoardSettings(number=number))
    async with connected(chosen) as client:
        sync = Synchronizer(GitHubIssues(client), board, chosen, ManualClock())
        assert (await sync.sync()).added == (on_board,)
        shop.set_card("acme", number, SHOP, later, "Todo")
        assert (await sync.sync()).added == (later,)
        shop.remove_card("acme", number, SHOP, on_board)
        assert (await sync.sync(full=True)).closed == (on_board,)


async def test_ten_thousand_issues_of_github(shop: GitHub, sync: Synchronizer) -> None:
    shop.add_issues(SHOP, 10_000, spread=30)
    result = await sync.sync()
    assert len(result.added) == 10_000
    assert result.requests <= 110
    assert result.points <= 400
    await sync.sync()
    result = await sync.sync()
    assert (result.requests, result.points) == (1, 0)
