import asyncio
import contextlib
import resource
import socket
import subprocess
import time
from collections.abc import Iterator

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from genba.entrypoints.connection_limits import Crowd
from genba.entrypoints.listeners import Patience, bound_port, serving
from tests.project import GENBA, Project, ordinary_environment, until
from tests.web.serving import OPERATOR

MANY = 1100
SOON = 10.0
DESCRIPTORS = 1024
"""The usual limit of a process of an ordinary user."""
WAYS = {
    "silent": b"",
    "half a line": b"GET / HT",
    "half a head": b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: ",
    "half a body": b"POST /enter HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 1000\r\n\r\ntoken=",
    "half an agent's call": b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    b"Accept: application/json, text/event-stream\r\nContent-Length: 1000\r\n\r\n{",
    "kept alive": b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
    "a stream of an agent": b"GET /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/event-stream\r\n\r\n",
}


@pytest.fixture(autouse=True)
def descriptors() -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 2 * MANY:
        pytest.skip(f"not run: {hard} descriptors are too few for {MANY} connections")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2 * MANY), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@contextlib.contextmanager
def serve(project: Project, *words: str) -> Iterator[int]:
    """The real command with as many descriptors as an ordinary user has: its port."""
    output = project.root.parent / "serve.log"
    limited = ["prlimit", f"--nofile={DESCRIPTORS}:{DESCRIPTORS}", str(GENBA), *words]
    with output.open("wb") as log:
        environment = {**ordinary_environment(), **project.environment, "GENBA_SERVE_TOKEN": OPERATOR}
        process = subprocess.Popen(limited, cwd=project.root, env=environment, stdout=log, stderr=log)
    try:
        until(lambda: "http://" in output.read_text("utf-8"))
        yield int(output.read_text("utf-8").partition("http://127.0.0.1:")[2].partition("/")[0].split()[0])
    finally:
        process.kill()
        process.wait()


@contextlib.contextmanager
def connections(port: int, *sent: bytes) -> Iterator[list[socket.socket]]:
    made: list[socket.socket] = []
    try:
        for number in range(MANY):
            one = socket.socket()
            one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            made.append(one)
            one.settimeout(SOON)
            one.connect(("127.0.0.1", port))
            with contextlib.suppress(OSError):
                one.setblocking(False)
                one.send(sent[number % len(sent)])
        yield made
    finally:
        for one in made:
            one.close()


def answers(port: int, path: str, token: str = OPERATOR) -> float:
    """How long a new visitor waits for a page."""
    begun = time.monotonic()
    headers = {"authorization": f"Bearer {token}"}
    with httpx.Client(timeout=SOON, trust_env=False) as client:
        answer = client.get(f"http://127.0.0.1:{port}{path}", headers=headers)
    assert answer.status_code == 200, answer.text
    return time.monotonic() - begun


@pytest.mark.parametrize("ways", [["silent"], list(WAYS)], ids=["silent", "mixed"])
def test_a_thousand_waiting_connections_do_not_block_the_dashboard(project: Project, ways: list[str]) -> None:
    project.genba("task", "add", "One", check=0)
    with serve(project, "serve", "--port", "0") as port:
        answers(port, "/board")
        with connections(port, *(WAYS[way] for way in ways)):
            waited = [answers(port, path) for path in ("/healthz", "/board", "/healthz", "/board")]
            with connections(port, *(WAYS[way] for way in ways)):
                waited += [answers(port, path) for path in ("/healthz", "/board")]
        assert max(waited) < SOON
        answers(port, "/board")


def test_a_thousand_connections_that_wait_keep_no_agent_from_its_door(project: Project) -> None:
    project.genba("task", "add", "One", check=0)
    with (
        serve(project, "mcp", "--http", "--port", "0") as port,
        connections(port, WAYS["half a head"]),
        connections(port, b""),
    ):
        assert answers(port, "/healthz") < SOON


async def test_an_answer_that_is_not_read_is_not_waited_for() -> None:
    async def long(_: Request) -> Response:
        return Response(b"x" * 20_000_000)

    with contextlib.closing(bound_port("127.0.0.1", 0, "")) as listening:
        app = Starlette(routes=[Route("/", long)])
        async with serving(app, listening, Patience(reading=0.3)):
            reader, writer = await asyncio.open_connection("127.0.0.1", listening.getsockname()[1], limit=1024)
            writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            async with asyncio.timeout(SOON):
                while not writer.is_closing():
                    with contextlib.suppress(OSError):
                        writer.write(b"x")
                        await writer.drain()
                    await asyncio.sleep(0.05)
            del reader
            writer.transport.abort()


class One:
    """A connection, by its name and where it comes from."""

    def __init__(self, name: str, address: str, ended: list[str]) -> None:
        self.name, self.address, self._ended = name, address, ended

    def end(self) -> None:
        self._ended.append(self.name)


def test_who_works_is_never_ended_for_who_waits() -> None:
    ended: list[str] = []
    crowd = Crowd(most=3, most_of_an_address=3)
    working, idle = One("working", "a", ended), One("idle", "a", ended)
    for one in (working, idle):
        crowd.enter(one)
        crowd.works(one)
    crowd.waits(idle)
    for number in range(4):
        crowd.enter(One(f"{number}", "b", ended))
    assert ended == ["idle", "0", "1"]
    crowd.leave(working)
    crowd.enter(One("last", "c", ended))
    assert ended == ["idle", "0", "1"]


def test_one_address_has_so_many_that_wait_and_others_are_let_be() -> None:
    ended: list[str] = []
    crowd = Crowd(most=100, most_of_an_address=2)
    crowd.enter(One("other", "b", ended))
    for number in range(5):
        crowd.enter(One(f"a{number}", "a", ended))
    assert ended == ["a0", "a1", "a2"]
    assert len(crowd) == 3
