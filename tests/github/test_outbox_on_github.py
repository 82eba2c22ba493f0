"""The outbox and GitHub together: whatever goes wrong on the way, each change is there once and in order."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest

from genba.blackboard.tasks.board import Blackboard
from genba.blackboard.tracker.outbox import Outbox
from genba.connections.clock import SystemClock
from genba.connections.github.access.credentials import TokenCredentials
from genba.connections.github.remote_changes import GitHubChanges
from genba.coordination.tracker.outbox_sender import Sender
from genba.domain.tracker.outbox import (
    CloseIssue,
    KeepComment,
    MergePullRequest,
    OpenPullRequest,
    OutboxStatus,
    PostComment,
    Relabel,
    RemoteChange,
)
from tests.blackboard.outboxes import Desk
from tests.github.offices import SHOP, TOKEN, connected, named, settings, settle
from tests.standins.github.server import GitHub

STORMS = {
    "502 before": lambda hub, method: hub.faults.fail(method, status=502),
    "502 after": lambda hub, method: hub.faults.fail(method, status=502, effect=True),
    "504 after, twice": lambda hub, method: hub.faults.fail(method, status=504, effect=True, times=2),
    "cut before": lambda hub, method: hub.faults.cut(method),
    "cut after": lambda hub, method: hub.faults.cut(method, effect=True),
    "garbled after": lambda hub, method: hub.faults.garble(method),
    "limited": lambda hub, method: hub.faults.limit(method, retry_after=90),
    "limited by 429 without a time": lambda hub, method: hub.faults.limit(method, status=429, retry_after=None),
    "refused credentials": lambda hub, method: hub.faults.fail(method, status=401, message="Bad credentials"),
}


@pytest.fixture
def shop(hub: GitHub) -> GitHub:
    settle(hub)
    hub.add_issue(SHOP, title="One", labels=["docs", "old"])
    hub.commit(SHOP, "genba/1", {"a.txt": "x"}, "Add a.txt")
    return hub


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with Blackboard.open(str(tmp_path / "board.db"), "shop") as board:
        yield Desk(board)


@asynccontextmanager
async def sending(hub: GitHub, desk: Desk, token: str = TOKEN) -> AsyncIterator[Sender]:
    async with connected(
        hub, credentials=TokenCredentials(token, "the test", named(hub.url)), clock=desk.clock
    ) as client:
        yield Sender(desk.outbox, GitHubChanges(client), settings(hub.url), desk.clock)


def changes(hub: GitHub) -> tuple[tuple[str, RemoteChange], ...]:
    head = hub.repository(SHOP).git.refs()["refs/heads/genba/1"]
    return (
        ("labels", Relabel(issue=1, add=("busy",), remove=("old",))),
        ("comment", PostComment(issue=1, body="It began.")),
        ("kept", KeepComment(issue=1, name="status", body="Half of it.")),
        ("pull-request", OpenPullRequest(branch="genba/1", target="main", title="A", body="Refs #1", issue=1)),
        ("merge", MergePullRequest(number=2, commit=head, issue=1)),
        ("close", CloseIssue(issue=1)),
    )


def check(hub: GitHub, desk: Desk) -> None:
    issue = hub.issue(SHOP, 1)
    assert {label.name for label in issue.labels} == {"docs", "busy"}
    assert [comment.body.splitlines()[0] for comment in issue.comments] == ["It began.", "Half of it."]
    assert issue.state == "closed"
    (pull,) = hub.repository(SHOP).pulls
    assert (pull.number, pull.title) == (2, "A")
    assert pull.merged_at
    assert [entry.status for entry in desk.outbox.list(all=True)] == [OutboxStatus.DONE] * 6


async def test_everything_arrives_in_its_order_and_at_its_pace(shop: GitHub, desk: Desk) -> None:
    for key, change in changes(shop):
        desk.outbox.record(key, change)
    async with sending(shop, desk) as sender:
        result = await sender.send()
    assert [entry.key for entry in result.sent] == [key for key, _ in effects_of(desk)]
    check(shop, desk)
    assert desk.clock.elapsed() - desk.begun >= len(shop.mutations) - 1


def effects_of(desk: Desk) -> list[tuple[str, RemoteChange]]:
    return [(entry.key, entry.change) for entry in desk.outbox.list(all=True)]


@pytest.mark.parametrize("method", ["POST", "PATCH", "PUT", "DELETE"])
@pytest.mark.parametrize("storm", list(STORMS))
async def test_whatever_goes_wrong_nothing_is_lost_and_nothing_is_doubled(
    shop: GitHub, desk: Desk, storm: str, method: str
) -> None:
    for key, change in changes(shop):
        desk.outbox.record(key, change)
    STORMS[storm](shop, method)
    async with sending(shop, desk) as sender:
        for _ in range(3):
            await sender.send()
    check(shop, desk)


async def test_a_token_that_expires_in_the_middle_loses_nothing(shop: GitHub, desk: Desk) -> None:
    shop.add_token("ghp_new", "octocat")
    for key, change in changes(shop):
        desk.outbox.record(key, change)
    shop.faults.fail("*", status=401, message="Bad credentials", skip=4, times=1000)
    async with sending(shop, desk) as sender:
        result = await sender.send()
    assert result.refused
    assert 0 < result.left < 6
    shop.faults.clear()
    async with sending(shop, desk, "ghp_new") as sender:
        desk.outbox.unpause()
        assert (await sender.send()).left == 0
    check(shop, desk)


async def test_two_who_send_to_github_at_once_double_nothing(shop: GitHub, desk: Desk) -> None:
    for key, change in changes(shop):
        desk.outbox.record(key, change)
    by_the_clock, clock = Outbox(desk.outbox.store), SystemClock()
    quick = msgspec.structs.replace(settings(shop.url), mutation_pause_seconds=0)
    async with connected(quick, clock=clock) as one, connected(quick, clock=clock) as other:
        senders = [Sender(by_the_clock, GitHubChanges(client), quick, clock) for client in (one, other)]
        await asyncio.gather(*(sender.send() for sender in senders))
    check(shop, desk)


async def test_a_kept_comment_is_edited_and_other_words_of_a_pull_request_bring_it_up_to_date(
    shop: GitHub, desk: Desk
) -> None:
    async with sending(shop, desk) as sender:
        for words in ("one", "two"):
            desk.outbox.record("kept", KeepComment(issue=1, name="status", body=words))
            request = OpenPullRequest(branch="genba/1", target="main", title=words, body="Why", issue=1)
            desk.outbox.record(f"pull-request:{words}", request)
            await sender.send()
    assert [comment.body.splitlines()[0] for comment in shop.issue(SHOP, 1).comments] == ["two"]
    assert [pull.title for pull in shop.repository(SHOP).pulls] == ["two"]


def test_no_two_marks_of_the_outbox_are_the_same(shop: GitHub, desk: Desk) -> None:
    for key, change in changes(shop):
        desk.outbox.record(key, change)
        desk.outbox.record(key, msgspec.structs.replace(change))
    assert len(desk.outbox.list()) == 6
