"""Whatever GitHub answers: an error of the house or a whole copy, never a fault; and the next look goes well."""

import asyncio
import contextlib
import functools
import gzip
import json
import random
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from genba.blackboard.tasks.board import Blackboard
from genba.connections.github.client import GitHubClient
from genba.connections.github.issues import GitHubIssues
from genba.coordination.tracker.tracker_sync import Synchronizer
from genba.definitions.project.tracker_section import GitHubSettings
from genba.domain.errors import GenbaError, RecoverableError, RemoteUnavailable
from genba.testing.doubles import ManualClock
from tests.egress.places import listening
from tests.fuzz.outside import spoil, tried
from tests.github import material
from tests.github.offices import SHOP, connected, settings, settle
from tests.project import furnish
from tests.standins.github.faults import Fault
from tests.standins.github.server import GitHub

SOON = 60.0
TITLES = ["Add login", "Schema", "A part"]


@pytest.fixture(scope="module")
def hub() -> Iterator[GitHub]:
    """Issues that need each other, are talked about, have a pull request and lie on a board."""
    with GitHub(schema=material.sdl()) as made:
        settle(made)
        one, two, part = (made.add_issue(SHOP, title=title, labels=["bug"]) for title in TITLES)
        made.commit(SHOP, "topic", {"a.txt": "a"}, "Add a")
        made.open_pull_request(SHOP, "topic", body=f"Closes #{one}")
        made.block(SHOP, one, two)
        made.add_sub_issue(SHOP, two, part)
        made.comment(SHOP, one, "as soon as you can", by="rita")
        yield made


@contextlib.asynccontextmanager
async def syncing(hub: GitHub, board: Blackboard) -> AsyncIterator[Synchronizer]:
    async with connected(hub) as client:
        wanted = GitHubSettings(repository=SHOP, url=hub.url, timeout_seconds=SOON)
        yield Synchronizer(GitHubIssues(client), board, wanted, ManualClock())


async def looked(hub: GitHub, board: Blackboard, fault: Fault) -> GenbaError | None:
    """A whole look during which something is wrong; then one during which nothing is, which must find everything."""
    hub.faults.clear()
    hub.faults.add(fault)
    result = None
    async with syncing(hub, board) as sync, asyncio.timeout(SOON):
        try:
            await sync.sync(full=True)
        except GenbaError as error:
            result = error
        hub.faults.clear()
        await sync.sync(full=True)
    assert [task.title for task in board.find()] == TITLES
    return result


def test_an_answer_in_which_one_thing_is_wrong_is_taken_or_refused_and_the_next_look_is_whole(
    hub: GitHub, tmp_path: Path
) -> None:
    furnish(tmp_path / "board.db")

    @given(skip=st.integers(0, 6), seed=st.integers(0, 2**32))
    @tried(8)
    def look(skip: int, seed: int) -> None:
        def other(body: bytes) -> bytes:
            return json.dumps(spoil(json.loads(body), random.Random(seed))).encode() if body else body

        with Blackboard.open(str(tmp_path / "board.db"), "a project") as board:
            asyncio.run(looked(hub, board, Fault(skip=skip, spoil=other)))

    look()


# ── named ones ───────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "headers",
    [
        {"retry-after": "-1"},
        {"retry-after": "NaN"},
        {"retry-after": "9" * 30},
        {"retry-after": "9" * 5_000},
        {"retry-after": "Fri, 31 Dec 9999 23:59:59 GMT"},
        {"retry-after": "Mon, 01 Jan 0001 00:00:00 -0000"},
        {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "9" * 5_000},
        {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "99999999999999"},
        {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "-5", "date": "never"},
        {"date": "Fri, 31 Dec 9999 23:59:59 -2359", "retry-after": "Mon, 01 Jan 0001 00:00:00 +2359"},
    ],
)
@pytest.mark.parametrize("status", [403, 429, 503])
async def test_a_time_to_come_back_that_is_absurd_is_bounded(headers: dict[str, str], status: int) -> None:
    async with answering(printed(status, b'{"message": 5}', **headers)) as client:
        with pytest.raises(RecoverableError) as refused:
            await client.get("repos/acme/shop")

    assert 0 <= (refused.value.retry_after or 0) <= 86_400


@pytest.mark.parametrize(
    "location",
    [
        "",
        "http://[",
        "http://127.0.0.1:99999/x",
        "//evil.example/x",
        "http://evil.example/",
        "file:///etc/passwd",
        "\xff",
    ],
)
async def test_no_redirect_is_followed(location: str) -> None:
    async with answering(printed(302, b"", location=location)) as client:
        with pytest.raises(RemoteUnavailable):
            await client.get("repos/acme/shop")


async def test_who_is_sent_round_in_circles_stops() -> None:
    async with answering(lambda port: printed(302, b"", location=f"http://127.0.0.1:{port}/again")(port)) as client:
        with pytest.raises(RemoteUnavailable, match="circles"):
            await client.get("repos/acme/shop")


async def test_a_list_whose_next_page_is_itself_ends() -> None:
    def page(port: int) -> bytes:
        return printed(200, b"[]", link=f'<http://127.0.0.1:{port}/repos/acme/shop/x>; rel="next"')(port)

    async with answering(page) as client:
        assert len([each async for each in client.pages("repos/acme/shop/x", most=5)]) == 5


@pytest.mark.parametrize(
    "link", ['<http://[>; rel="next"', '<http://evil.example/>; rel="next"', "<;=>,", "next", "\0"]
)
async def test_a_next_page_elsewhere_is_not_asked_for(link: str) -> None:
    async with answering(printed(200, b"[]", link=link)) as client:
        with contextlib.suppress(RemoteUnavailable):
            answer = await client.get("repos/acme/shop/x")
            assert answer.following == ""


@functools.cache
def packed(times: int, size: int) -> bytes:
    raw = b"[" + b" " * size + b"]"
    for _ in range(times):
        raw = gzip.compress(raw)
    return raw


@pytest.mark.parametrize("encoding", ["gzip, gzip", "gzip,gzip,gzip", "deflate, gzip", "br", "zstd", "x"])
@pytest.mark.parametrize("status", [200, 500])
async def test_an_answer_that_is_packed_twice_is_not_unpacked(encoding: str, status: int) -> None:
    async with answering(printed(status, packed(2, 30_000_000), **{"content-encoding": encoding})) as client:
        with pytest.raises(RemoteUnavailable):
            await client.get("repos/acme/shop")


@pytest.mark.parametrize(
    "raw",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"\0" * 500, id="no HTTP"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n{}", id="half of what it promised"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n{}", id="a length below nothing"),
        pytest.param(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{}", id="no chunk"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}", id="not packed"),
        pytest.param(b"HTTP/1.1 999 What\r\nContent-Length: 0\r\n\r\n", id="a status of its own"),
        pytest.param(b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 40_000 + b"\r\n", id="headers without an end"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\n<html>", id="a page"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 10000\r\n\r\n" + b"[" * 10_000, id="ten thousand levels"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n\xff\xfe", id="no text"),
        pytest.param(b'HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n"\\ud800"  ', id="half a character"),
        pytest.param(b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\n", id="another protocol"),
        pytest.param(b"HTTP/1.1 204 Nothing\r\n\r\n", id="nothing to read"),
    ],
)
async def test_what_is_no_answer_is_reported_as_such(raw: bytes) -> None:
    async with answering(lambda _: raw) as client, asyncio.timeout(SOON):
        with pytest.raises(GenbaError):
            (await client.get("repos/acme/shop")).read(dict)
        with pytest.raises(GenbaError):
            await client.query("query { x }", {})


@pytest.mark.parametrize(
    "output",
    [
        {"data": {"rateLimit": "x"}},
        {"data": {"rateLimit": {"cost": 10**400}}},
        {"data": {"rateLimit": {"cost": -5}}, "errors": []},
        {"data": {"repository": "x", "nodes": "x"}},
        {"data": {"repository": [], "nodes": {"a": 1}}},
        {"data": {"repository": {"nameWithOwner": "acme/shop"}, "nodes": [[]]}},
        {"data": {"repository": {"issueOrPullRequest": ["Issue"]}}},
        {"data": {"repository": {"issueOrPullRequest": {"__typename": "Issue", "number": 2**70}}}},
        {"data": {"repository": {"p1": "x"}}, "errors": [{"type": "NOT_FOUND", "path": [1, 2, 3]}]},
        {"data": None, "errors": None},
        {"data": {}, "errors": [{"message": "\u202e\x1b[31m", "extensions": {"code": 5}}]},
        {"errors": "no"},
        [],
    ],
)
async def test_graphql_that_is_shaped_otherwise_is_reported_as_such(output: object) -> None:
    async with answering(printed(200, json.dumps(output).encode())) as client:
        issues = GitHubIssues(client)
        for asked in (issues.issue(1), issues.details(["I_1"]), issues.pull_requests([1])):
            with pytest.raises(GenbaError):
                await asked


async def test_an_answer_that_drips_is_not_waited_for_longer_than_the_limit() -> None:
    async with answering(printed(200, b"{}"), drip=0.05, patience=0.5) as client:
        with pytest.raises(RemoteUnavailable, match="did not answer"):
            await client.get("repos/acme/shop")


def printed(status: int, body: bytes, **headers: str) -> Callable[[int], bytes]:
    lines = [f"HTTP/1.1 {status} Status", f"content-length: {len(body)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    head = "\r\n".join([*lines, "connection: close", "", ""]).encode("latin-1")
    return lambda _: head + body


@contextlib.asynccontextmanager
async def answering(
    answer: Callable[[int], bytes], *, drip: float = 0.0, patience: float = 20.0
) -> AsyncIterator[GitHubClient]:
    """A client at a port where each connection is answered with these bytes, whatever it asks."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            await reader.readuntil(b"\r\n\r\n")
            raw = answer(writer.get_extra_info("sockname")[1])
            for piece in [raw[at : at + 1] for at in range(len(raw))] if drip else [raw]:
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(drip)  # the pace of the other side

    async with listening(serve) as port, connected(settings(f"http://127.0.0.1:{port}", timeout=patience)) as client:
        yield client
