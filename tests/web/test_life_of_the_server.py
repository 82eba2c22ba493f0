import asyncio
import contextlib
import json
import os
import signal
import socket
import sqlite3
import subprocess
import time
from collections.abc import Iterator

import httpx
import pytest

from genba.domain.tasks.task import TaskDraft
from genba.entrypoints.web.live import LOOK_SECONDS, Hub
from tests import preloaded
from tests.blackboard.conftest import Postgres, postgres  # noqa: F401  (a fixture)
from tests.project import GENBA, Project, furnish, ordinary_environment, until
from tests.web.serving import OPERATOR, PERSON, Dashboard

_HEADERS = {"authorization": f"Bearer {OPERATOR}"}


@contextlib.contextmanager
def serve(project: Project, *options: str, **more: str) -> Iterator[tuple[subprocess.Popen[bytes], httpx.Client]]:
    """The real command, and a program that asks it."""
    output = project.root.parent / "serve.log"
    own = more or {"GENBA_SERVE_TOKEN": OPERATOR}
    environment = {**ordinary_environment(), **project.environment, **own}
    with output.open("wb") as log:
        process = preloaded.start(
            [str(GENBA), "serve", "--port", "0", *options],
            cwd=project.root,
            env=environment,
            stdout=log.fileno(),
            stderr=log.fileno(),
        )
    try:
        until(lambda: "serving" in output.read_text("utf-8"))
        url = output.read_text("utf-8").partition("/enter")[0].splitlines()[-1]
        url = f"http://127.0.0.1:{options[options.index('--port') + 1]}" if "--port" in options else url
        with httpx.Client(base_url=url, headers=_HEADERS, timeout=60) as client:
            yield process, client
    finally:
        if process.poll() is None:
            process.kill()
        process.wait()


@contextlib.contextmanager
def listening(client: httpx.Client, number: int) -> Iterator[list[Iterator[str]]]:
    with contextlib.ExitStack() as stack:
        streams = []
        limits = httpx.Limits(max_connections=None)
        many = stack.enter_context(httpx.Client(base_url=client.base_url, headers=_HEADERS, timeout=60, limits=limits))
        for _ in range(number):
            lines = stack.enter_context(many.stream("GET", "/live")).iter_lines()
            received(lines)
            streams.append(lines)
        yield streams


def received(lines: Iterator[str]) -> None:
    assert next(line for line in lines if line.startswith("event:")) == "event: changed"


def test_it_ends_soon_though_a_client_listens(project: Project) -> None:
    furnish(project.root / ".genba" / "genba.db")
    with serve(project) as (process, client), listening(client, 3):
        began = time.monotonic()
        os.kill(process.pid, signal.SIGINT)
        process.wait(60)
        seconds = time.monotonic() - began
    assert process.returncode == 0
    assert seconds < 20, "on a machine with nothing else to do it is less than one"
    assert "ERROR" not in (project.root.parent / "serve.log").read_text("utf-8"), "nobody had to be cut off"


def test_two_hundred_listen_at_once_and_all_are_updated(served: Dashboard) -> None:
    with served.client() as client, listening(client, 200) as streams:
        assert served.hub.listeners == 200
        served.board.board.add(TaskDraft(title="Make tea"), PERSON)
        for lines in streams:
            received(lines)
        assert client.get("/board").status_code == 200
    until(lambda: served.hub.listeners == 0)


async def test_without_listeners_the_database_is_not_read() -> None:
    looks: list[int] = []

    def look() -> int:
        looks.append(1)
        return len(looks)

    hub = Hub(look)
    async with contextlib.aclosing(hub.changes()) as changes:
        for _ in range(3):  # each look finds something else
            assert await anext(changes) == "changed"
    assert hub.listeners == 0
    assert looks
    seen = len(looks)
    await asyncio.sleep(3 * LOOK_SECONDS)
    assert len(looks) <= seen + 1, "the look that was under way was the last"


def test_a_blackboard_that_is_locked_or_gone_is_reported_in_words_and_found_again(project: Project) -> None:
    project.write(".genba/config.yaml", "database:\n  busy_seconds: 1\n")
    project.issue(1, "Make tea")
    file = project.root / ".genba" / "genba.db"
    away = project.root.parent / "away"
    with serve(project) as (_, client):
        assert "Make tea" in client.get("/board").text
        with contextlib.closing(sqlite3.connect(file, isolation_level=None)) as other:
            other.execute("BEGIN EXCLUSIVE")
            assert "Make tea" in client.get("/board").text, "whoever looks waits for nobody who writes"
        away.mkdir()
        for each in file.parent.glob("genba.db*"):
            each.rename(away / each.name)
        gone = client.get("/board")
        assert gone.status_code in (200, 503), gone.text
        assert "Traceback" not in gone.text
        for each in file.parent.glob("genba.db*"):
            each.unlink()
        for each in away.iterdir():
            each.rename(file.parent / each.name)
        until(lambda: "Make tea" in client.get("/board").text)


def test_it_looks_at_postgresql_and_tells_of_what_others_write_there(
    project: Project,
    postgres: Postgres,  # noqa: F811  (the fixture)
) -> None:
    project.environment["GENBA_DATABASE_URL"] = postgres.furnished()
    with serve(project) as (_, client), listening(client, 1) as (lines,):
        project.genba("task", "add", "Make tea", check=0)
        received(lines)
        for path in ("/", "/board", "/tasks/1", "/approvals", "/workers", "/queue", "/graph", "/agents", "/cost"):
            answer = client.get(path)
            assert answer.status_code == 200, (path, answer.text)
        assert "Make tea" in client.get("/board").text
        assert client.get("/api/board").json()


def _enters(client: httpx.Client, token: str) -> str:
    """The cookie that a token gets; empty where it opens nothing."""
    return str(
        client.post("/enter", data={"token": token}, headers={"authorization": ""}).headers.get("set-cookie", "")
    )


def test_new_tokens_make_old_links_and_cookies_worthless(project: Project) -> None:
    kept = project.root / ".git" / "genba" / "serve.json"
    with serve(project, GENBA_SERVE_TOKEN="") as (_, client):
        link = json.loads(kept.read_text("utf-8"))["operator"]
        name, _, value = _enters(client, link).partition(";")[0].partition("=")
        port = str(client.base_url.port)
        in_with_it = {"cookie": f"{name}={value}", "authorization": ""}
        assert client.get("/board", headers=in_with_it).status_code == 200

    with serve(project, "--new-token", "--port", port, GENBA_SERVE_TOKEN="") as (_, client):
        assert client.get("/board", headers=in_with_it).status_code == 303
        assert not _enters(client, link)
        assert _enters(client, json.loads(kept.read_text("utf-8"))["operator"])


@pytest.mark.parametrize(("address", "secure"), [("https://genba.example", True), ("http://genba.example", False)])
def test_behind_a_proxy_with_tls_the_cookie_goes_over_tls_only(project: Project, address: str, secure: bool) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    with serve(project, "--public-url", address, "--port", port) as (_, client):
        assert ("secure" in _enters(client, OPERATOR).lower().split("; ")) is secure


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.org"])
def test_the_dashboard_is_kept_from_other_machines_unless_a_setting_allows_them(project: Project, host: str) -> None:
    done = project.genba("serve", "--host", host, "--port", "0")

    assert done.code == 2
    assert f"{host} can be reached from other machines" in done.err
    assert "--i-accept-the-risk" in done.err
    assert not (project.root / ".git" / "genba" / "serve.json").exists()
