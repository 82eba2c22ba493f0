import asyncio
import contextlib
import json
import logging
import shutil
import socket
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from genba.domain.tasks.task import TaskDraft
from genba.entrypoints.listeners import Patience, bound_port, serving
from tests.fuzz.outside import everything, texts, tried
from tests.fuzz.spoken import board_file
from tests.project import Project
from tests.web.serving import OPERATOR, PERSON, Dashboard, dashboard

SOON = 60.0


@pytest.fixture(scope="module")
def served(beginning: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dashboard]:
    home = tmp_path_factory.mktemp("home")
    shutil.copytree(beginning, home / "repository", symlinks=True)
    with dashboard(Project(home / "repository", {"HOME": str(home), "GIT_CONFIG_NOSYSTEM": "1"})) as made:
        made.board.board.add(TaskDraft(title="Make tea"), PERSON)
        yield made


def printed(port: int, raw: bytes, *, hang_up: bool) -> bytes:
    """Say something by hand; then go away at once, or read what comes until the other side hangs up."""
    with socket.create_connection(("127.0.0.1", port), SOON) as line:
        with contextlib.suppress(OSError):
            line.sendall(raw)
            line.shutdown(socket.SHUT_WR)
        if hang_up:
            return b""
        received = b""
        with contextlib.suppress(OSError):
            while chunk := line.recv(65536):
                received += chunk
        return received


def port_of(served: Dashboard) -> int:
    return httpx.URL(served.url).port or 0


def head(method: str, path: str, *lines: str) -> bytes:
    wanted = [f"{method} {path} HTTP/1.1", "Host: 127.0.0.1", f"Authorization: Bearer {OPERATOR}", *lines, "", ""]
    return "\r\n".join(wanted).encode("utf-8", "surrogatepass")


FORM, JSON = "application/x-www-form-urlencoded", "application/json"


@pytest.mark.parametrize("length", ["Content-Length: 100", "Transfer-Encoding: chunked"])
@pytest.mark.parametrize(("path", "kind"), [("/api/tasks", JSON), ("/tasks/1/comment", FORM), ("/enter", FORM)])
def test_who_hangs_up_in_the_middle_of_a_request_is_no_fault_of_the_server(
    served: Dashboard, caplog: pytest.LogCaptureFixture, path: str, kind: str, length: str
) -> None:
    before = everything(board_file(served.project))
    with caplog.at_level(logging.WARNING):
        printed(
            port_of(served), head("POST", path, f"Content-Type: {kind}", length) + b'b\r\n{"title":"x', hang_up=False
        )
        printed(
            port_of(served), head("POST", path, f"Content-Type: {kind}", length) + b'b\r\n{"title":"x', hang_up=True
        )
        with served.client() as client:
            assert client.get("/healthz").status_code == 200
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR] == []
    assert everything(board_file(served.project)) == before


@pytest.mark.parametrize(
    "path", ["/live?run=", "/runs/", "/api/runs/", "/agents/", "/api/agents/", "/tasks/", "/static/"]
)
def test_a_name_that_no_file_system_takes_is_not_found(served: Dashboard, path: str) -> None:
    with served.client() as client:
        for name in ("a" * 300, "a" * 5_000, "%F0%9F%90%A2" * 100, "%00", "%ED%A0%80", "..%2f..%2fx"):
            assert client.get(path + name).status_code in (307, 400, 404), name


@given(raw=st.binary(max_size=300), rest=st.binary(max_size=300))
@example(raw=b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: ", rest=b"a" * 100_000)
@example(raw=b"GET /%00%ff HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", rest=b"")
@example(raw=b"POST /api/tasks HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: -1\r\n\r\n", rest=b"")
@example(raw=head("POST", "/api/tasks", "Content-Length: 99999999999999999999"), rest=b"")
@example(raw=head("POST", "/api/tasks", "Content-Type: application/json", "Content-Length: 20000"), rest=b"[" * 20_000)
@example(raw=head("POST", "/tasks/1/comment", "Content-Type: multipart/form-data", "Content-Length: 4"), rest=b"--x\r")
@tried(30)
def test_any_bytes_are_answered_as_no_request_or_as_one(served: Dashboard, raw: bytes, rest: bytes) -> None:
    received = printed(port_of(served), raw + rest, hang_up=False)

    assert received == b"" or received.startswith(b"HTTP/1.1 ")
    assert not received.startswith(b"HTTP/1.1 5")


@given(
    path=st.sampled_from(["/api/tasks", "/api/tasks/1/comments", "/api/tasks/1/answer", "/api/tasks/1/status"]),
    body=st.dictionaries(st.sampled_from(["title", "text", "to", "labels", "goals", "parent"]), st.none() | texts),
)
@example(path="/api/tasks", body={"title": "\ud800"})
@example(path="/api/tasks", body={"title": "\0"})
@tried(30)
def test_what_is_refused_has_changed_nothing(served: Dashboard, path: str, body: dict[str, str]) -> None:
    before = everything(board_file(served.project))
    with served.client() as client:
        answer = client.post(path, content=json.dumps(body), headers={"content-type": "application/json"})
    assert answer.status_code < 500
    if answer.status_code != 200:
        result = answer.json()["error"]
        assert (bool(result["message"]), result["exit_code"] in (1, 2, 4, 5)) == (True, True)
        assert everything(board_file(served.project)) == before


# ── slow ones ────────────────────────────────────────────────────────────────────────────────────────────────────────


@contextlib.asynccontextmanager
async def echoing(patience: Patience) -> AsyncIterator[int]:
    async def echo(request: Request) -> Response:
        return PlainTextResponse(await request.body())

    with contextlib.closing(bound_port("127.0.0.1", 0, "")) as listening:
        async with serving(Starlette(routes=[Route("/", echo, methods=["GET", "POST"])]), listening, patience):
            yield listening.getsockname()[1]


async def received_from(port: int, *pieces: bytes) -> bytes:
    """What a server says to who says no more than this, and then waits for it to hang up."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
        async with asyncio.timeout(SOON):
            return await reader.read()
    finally:
        writer.close()


@pytest.mark.parametrize(
    "begun",
    [
        b"",
        b"GET",
        b"GET / HTTP/1.1\r\nHost: x\r\n",
        b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nab",
        b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\nGET / HT",
    ],
)
async def test_a_request_that_does_not_come_is_not_waited_for(begun: bytes) -> None:
    async with echoing(Patience(silent=0.3, request=0.3)) as port:
        received = await received_from(port, begun)

    assert received.endswith(b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n")


async def test_a_request_that_comes_in_time_is_answered_however_long_the_answer_takes() -> None:
    async def slow(request: Request) -> Response:
        await asyncio.sleep(2)  # twice as long as a request may take to come
        return PlainTextResponse(await request.body())

    with contextlib.closing(bound_port("127.0.0.1", 0, "")) as listening:
        app = Starlette(routes=[Route("/", slow, methods=["POST"])])
        async with serving(app, listening, Patience(silent=1, request=1)):
            url = f"http://127.0.0.1:{listening.getsockname()[1]}/"
            async with httpx.AsyncClient(timeout=SOON) as client:
                answers = [(await client.post(url, content=b"tea")).text for _ in range(2)]

    assert answers == ["tea", "tea"]
