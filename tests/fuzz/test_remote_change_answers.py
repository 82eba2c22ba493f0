"""Whatever GitHub answers to a change, Genba raises its own errors only, and a repeat applies the change once."""

import asyncio
import contextlib
import itertools
import random
from collections.abc import Callable, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from genba.connections.github.remote_changes import GitHubChanges
from genba.domain.errors import GenbaError
from genba.domain.tracker.outbox import (
    CloseIssue,
    KeepComment,
    OpenPullRequest,
    PostComment,
    Relabel,
    RemoteChange,
    marker,
)
from tests.fuzz.outside import tried
from tests.fuzz.test_sync_processes import another
from tests.github import material
from tests.github.offices import SHOP, connected, settle
from tests.standins.github.server import GitHub

SOON = 60.0
_NUMBERS = itertools.count(1)


@pytest.fixture(scope="module")
def hub() -> Iterator[GitHub]:
    with GitHub(schema=material.sdl()) as made:
        settle(made)
        yield made


def _once(hub: GitHub, issue: int, key: str) -> bool:
    return sum(marker(key) in comment.body for comment in hub.issue(SHOP, issue).comments) == 1


def _kept(hub: GitHub, issue: int, _key: str) -> bool:
    return [comment.body.splitlines()[0] for comment in hub.issue(SHOP, issue).comments] == ["It goes on."]


def _labelled(hub: GitHub, issue: int, _key: str) -> bool:
    return sorted(label.name for label in hub.issue(SHOP, issue).labels) == ["new", "stays"]


def _closed(hub: GitHub, issue: int, _key: str) -> bool:
    return hub.issue(SHOP, issue).state == "closed"


def _proposed(hub: GitHub, issue: int, _key: str) -> bool:
    return sum(pull.head == f"genba/{issue}" for pull in hub.repository(SHOP).pulls) == 1


EFFECTS: dict[str, tuple[Callable[[int], RemoteChange], Callable[[GitHub, int, str], bool]]] = {
    "comment": (lambda issue: PostComment(issue=issue, body="It is done."), _once),
    "status comment": (lambda issue: KeepComment(issue=issue, name="status", body="It goes on."), _kept),
    "labels": (lambda issue: Relabel(issue=issue, add=("new",), remove=("old",)), _labelled),
    "close": (lambda issue: CloseIssue(issue=issue), _closed),
    "pull request": (
        lambda issue: OpenPullRequest(
            branch=f"genba/{issue}", target="main", title="A change", body="Why.", issue=issue
        ),
        _proposed,
    ),
}


@pytest.mark.parametrize("name", EFFECTS)
def test_whatever_is_answered_to_a_deed_it_is_there_once_in_the_end(hub: GitHub, name: str) -> None:
    deed_of, holds = EFFECTS[name]

    @given(seed=st.integers(0, 2**32))
    @tried(4)
    def send(seed: int) -> None:
        asyncio.run(sent(hub, seed))

    async def sent(hub: GitHub, seed: int) -> None:
        issue, key = hub.add_issue(SHOP, title="One", labels=["old", "stays"]), f"key-{next(_NUMBERS)}"
        hub.commit(SHOP, f"genba/{issue}", {f"{issue}.txt": "x"}, "Add a file")
        change, fault = deed_of(issue), another(seed)
        fault.effect = random.Random(seed).random() < 0.5
        hub.faults.clear()
        hub.faults.add(fault)
        async with connected(hub) as client, asyncio.timeout(SOON):
            changes = GitHubChanges(client)
            with contextlib.suppress(GenbaError):
                if await changes.find(change, key) is None:
                    await changes.apply(change, key)
            hub.faults.clear()
        async with connected(hub) as client, asyncio.timeout(SOON):
            changes = GitHubChanges(client)
            if await changes.find(change, key) is None:
                await changes.apply(change, key)
        assert holds(hub, issue, key), (fault, hub.issue(SHOP, issue))

    send()
