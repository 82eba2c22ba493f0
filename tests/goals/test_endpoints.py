"""Goals that ask a service: it is started from the checkout, asked, and gone afterwards, whatever happens."""

import asyncio
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from genba.connections.goals.endpoints import RunnerSettings
from genba.connections.goals.http_requests import free_port
from genba.connections.goals.runner import GoalEngine
from genba.connections.processes.supervisor import ProcessSupervisor
from genba.connections.processes.tree import living
from genba.domain.goals.goal import EndpointResponds, ResponseContains
from genba.domain.goals.verification import Place
from genba.domain.processes import service_mark
from genba.domain.sessions.evidence import CheckStatus
from tests.goals.conftest import ENVIRONMENT, RememberingScanner, Write

PASSED, FAILED, ERROR = CheckStatus.PASSED, CheckStatus.FAILED, CheckStatus.ERROR

SERVER = """
import http.server, json, os, sys, time

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length).decode()
        path = self.path.partition("?")[0]
        answers = {
            "/": (200, "hello"),
            "/api/login": (200 if self.command == "POST" else 404, '{"token": "abc", "admin": true, "n": [1, 2]}'),
            "/echo": (200, json.dumps({
                "body": body, "headers": dict(self.headers), "method": self.command, "path": self.path
            })),
            "/moved": (302, ""),
            "/broken": (503, "not yet"),
            "/deep": (200, "[" * 900 + "]" * 900),
            "/deeper": (200, "[" * 100000 + "]" * 100000),
            "/text": (200, "no json here"),
            "/huge": (200, "[" + "1," * 1000000 + "1]"),
        }
        if path == "/hang":
            time.sleep(600)
        if path == "/die":
            os._exit(3)
        if path == "/garbage":
            self.wfile.write(b"this is no http\\r\\n\\r\\n")
            return
        status, text = answers.get(path, (404, "nothing here"))
        self.send_response(status)
        if status == 302:
            self.send_header("Location", "/")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text.encode())

    do_POST = do_PUT = do_GET

port = int(sys.argv[1]) if len(sys.argv) > 1 else int(os.environ["PORT"])
server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
print("Ready to serve", flush=True)
server.serve_forever()
"""
SERVE = "python3 server.py {port}"


@pytest.fixture(autouse=True)
def server(write: Write) -> None:
    write("server.py", SERVER)


@pytest.fixture(autouse=True)
def nothing_is_left(mark: str) -> Iterator[None]:
    yield
    assert living(service_mark(mark)) == set()


def responds(url: str, **fields: Any) -> EndpointResponds:
    return EndpointResponds(url=url, **{"serve": SERVE, "timeout_seconds": 20, **fields})


def contains(url: str, **fields: Any) -> ResponseContains:
    return ResponseContains(url=url, **{"serve": SERVE, "timeout_seconds": 20, **fields})


async def test_an_endpoint_that_answers_as_wanted_passes(engine: GoalEngine, place: Place, mark: str) -> None:
    result = await engine.run(responds("/api/login", method="POST"), place, mark)

    assert (result.name, result.status, result.detail) == ("endpoint_responds", PASSED, "POST /api/login → 200")


async def test_another_status_fails_and_shows_the_body(engine: GoalEngine, place: Place, mark: str) -> None:
    result = await engine.run(responds("/nowhere", method="post"), place, mark)

    assert (result.status, result.detail) == (FAILED, "POST /nowhere → 404, wanted 200")
    assert "nothing here" in result.output
    assert "Ready to serve" in result.output


async def test_a_service_may_take_its_port_from_the_environment(engine: GoalEngine, place: Place, mark: str) -> None:
    assert (await engine.run(responds("/", serve="python3 server.py"), place, mark)).status is PASSED


async def test_the_words_of_a_list_are_filled_as_well(engine: GoalEngine, place: Place, mark: str) -> None:
    goal = responds("http://127.0.0.1:{port}/", serve=("python3", "server.py", "{port}"))

    assert (await engine.run(goal, place, mark)).status is PASSED


async def test_the_service_of_the_project_is_taken_where_a_goal_names_none(place: Place, mark: str) -> None:
    settings = RunnerSettings(serve=SERVE, ready_when="Ready to serve")
    engine = GoalEngine(ProcessSupervisor(), ENVIRONMENT, RememberingScanner(), settings)

    assert (await engine.run(responds("/", serve=None), place, mark)).status is PASSED


async def test_a_redirect_is_an_answer_and_is_not_followed(engine: GoalEngine, place: Place, mark: str) -> None:
    assert (await engine.run(responds("/moved", status=302), place, mark)).status is PASSED


async def test_proxies_are_not_asked(place: Place, mark: str) -> None:
    environment = {**ENVIRONMENT, "http_proxy": "http://127.0.0.1:9", "HTTP_PROXY": "http://127.0.0.1:9"}
    engine = GoalEngine(ProcessSupervisor(), environment, RememberingScanner())

    assert (await engine.run(responds("/"), place, mark)).status is PASSED


async def test_headers_and_a_value_are_sent_as_they_are_written(engine: GoalEngine, place: Place, mark: str) -> None:
    goal = contains(
        "/echo?q=a b&ü=1",
        method="PUT",
        headers={"X-Origin": "http://localhost:{port}"},
        body={"name": "ada", "port": "{port}"},
        json_path="$.body",
    )
    result = await engine.run(goal, place, mark)
    output = msgspec.json.decode(result.output.partition("\n\nthe output of the service")[0])

    assert result.status is PASSED
    assert output["headers"]["Content-Type"] == "application/json"
    assert output["headers"]["X-Origin"].removeprefix("http://localhost:").isdigit()
    assert msgspec.json.decode(output["body"])["port"] == output["headers"]["Host"].partition(":")[2]
    assert (output["method"], output["path"]) == ("PUT", "/echo?q=a%20b&%C3%BC=1")


async def test_a_text_is_sent_as_a_text_and_the_goal_may_name_its_type(
    engine: GoalEngine, place: Place, mark: str
) -> None:
    headers = {"content-type": "application/xml"}
    goal = contains("/echo", method="POST", body="<a/>", headers=headers, json_path="$.body", equals="<a/>")
    result = await engine.run(goal, place, mark)

    assert result.status is PASSED
    assert "application/xml" in result.output


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({"json_path": "$.token"}, PASSED),
        ({"json_path": "$.token", "status": 200, "text": "abc"}, PASSED),
        ({"json_path": "$.token", "status": 201}, FAILED),
        ({"json_path": "$.nothing"}, FAILED),
        ({"json_path": "$.token", "equals": "abc"}, PASSED),
        ({"json_path": "$.token", "equals": "abcd"}, FAILED),
        ({"json_path": "$.admin", "equals": True}, PASSED),
        ({"json_path": "$.admin", "equals": 1}, FAILED),
        ({"json_path": "$.n", "equals": [1, 2.0]}, PASSED),
        ({"json_path": "$.n", "equals": [True, 2]}, FAILED),
        ({"json_path": "$.n[*]", "equals": 2}, PASSED),
        ({"json_path": "$.n[?@ > 5]"}, FAILED),
        ({"equals": {"token": "abc", "admin": True, "n": [1, 2]}}, PASSED),
        ({"text": '"token"'}, PASSED),
        ({"text": "nowhere"}, FAILED),
        ({}, ERROR),
        ({"json_path": "$.["}, ERROR),
        ({"json_path": "token"}, ERROR),
        ({"json_path": "$" + "[?(" * 5000}, ERROR),
    ],
)
async def test_an_answer_contains_what_it_should(
    engine: GoalEngine, place: Place, mark: str, fields: dict[str, Any], status: CheckStatus
) -> None:
    result = await engine.run(contains("/api/login", method="POST", **fields), place, mark)

    assert result.status is status, result.detail


async def test_a_wrong_value_is_reported_beside_the_wanted_one(engine: GoalEngine, place: Place, mark: str) -> None:
    goal = contains("/api/login", method="POST", json_path="$.token", equals="xyz")

    assert (await engine.run(goal, place, mark)).detail == ('POST /api/login → 200, $.token is "abc", wanted "xyz"')


@pytest.mark.parametrize("url", ["/deep", "/deeper", "/text", "/huge"])
async def test_an_answer_that_cannot_be_read_as_json_is_a_failure(
    engine: GoalEngine, place: Place, mark: str, url: str
) -> None:
    result = await engine.run(contains(url, json_path="$..x", equals={"a": [1]}), place, mark)

    assert result.status is FAILED
    assert len(result.output) < 300_000


@pytest.mark.parametrize("url", ["/die", "/garbage"])
async def test_no_answer_is_a_failure(engine: GoalEngine, place: Place, mark: str, url: str) -> None:
    result = await engine.run(responds(url), place, mark)

    assert result.status is FAILED
    assert f"GET {url} → no answer" in result.detail


async def test_an_answer_that_never_comes_is_a_failure(engine: GoalEngine, place: Place, mark: str) -> None:
    result = await engine.run(responds("/hang", timeout_seconds=0.5), place, mark)

    assert (result.status, result.detail) == (FAILED, "GET /hang → no answer within 0.5 s")
    assert result.timed_out


@pytest.mark.parametrize("ready_when", ["/", "http://127.0.0.1:{port}/nowhere", "Ready to", None])
async def test_a_service_is_asked_when_it_is_ready(
    engine: GoalEngine, place: Place, mark: str, ready_when: str | None
) -> None:
    serve = f"sleep 0.3; {SERVE}"

    assert (await engine.run(responds("/", serve=serve, ready_when=ready_when), place, mark)).status is PASSED


@pytest.mark.parametrize("ready_when", ["/broken", "A text that never comes"])
async def test_a_service_that_is_not_ready_in_time_is_a_failure(
    engine: GoalEngine, place: Place, mark: str, ready_when: str
) -> None:
    result = await engine.run(responds("/", ready_when=ready_when, ready_seconds=1.5), place, mark)

    assert (result.status, result.timed_out) == (FAILED, True)
    assert "was not ready within 1.5 s" in result.detail


async def test_a_service_on_another_port_than_the_given_one_is_named(
    engine: GoalEngine, place: Place, mark: str
) -> None:
    result = await engine.run(responds("/", serve="sleep 600", ready_seconds=0.3), place, mark)

    assert result.status is FAILED
    assert "nothing listens on port" in result.detail


async def test_a_service_that_ends_before_it_is_ready_fails_with_its_output(
    engine: GoalEngine, place: Place, mark: str
) -> None:
    serve = "echo starting; echo 'ImportError: no module' >&2; exit 4"
    result = await engine.run(responds("/", serve=serve), place, mark)

    assert (result.status, result.detail) == (
        FAILED,
        "the service ended before it was ready: ImportError: no module (exit code 4)",
    )
    assert "starting" in result.output


async def test_a_service_that_cannot_be_started_is_an_error(engine: GoalEngine, place: Place, mark: str) -> None:
    result = await engine.run(responds("/", serve="no-such-server --port {port}"), place, mark)

    assert result.status is ERROR
    assert "no-such-server" in result.detail


async def test_without_a_service_nothing_is_asked(engine: GoalEngine, place: Place, mark: str) -> None:
    result = await engine.run(responds("http://127.0.0.1:80/", serve=None), place, mark)

    assert result.status is ERROR
    assert result.detail.startswith("nothing to ask: no serve command")


@pytest.mark.parametrize(
    "url",
    [
        "http://example.com/",
        "http://localhost.example.com:{port}/",
        "http://10.0.0.1:{port}/",
        "http://[::ffff:10.0.0.1]:{port}/",
        "http://0.0.0.0:{port}/",
        "http://127.0.0.1@example.com/",
        "https://127.0.0.1:{port}/",
        "ftp://127.0.0.1/",
        "http://127.0.0.1:99999/",
        "http://[/",
        "api/login",
    ],
)
async def test_only_the_service_on_this_machine_is_asked(
    engine: GoalEngine, place: Place, mark: str, url: str, folder: Path
) -> None:
    result = await engine.run(responds(url, serve="touch started; sleep 600"), place, mark)

    assert result.status is ERROR
    assert not (folder / "started").exists()


@pytest.mark.parametrize("fields", [{"method": "GET / HTTP/1.1\r\nX: y"}, {"headers": {"X": "a\r\nY: b"}}])
async def test_a_question_that_cannot_be_put_is_an_error(
    engine: GoalEngine, place: Place, mark: str, fields: dict[str, Any]
) -> None:
    assert (await engine.run(responds("/", **fields), place, mark)).status is ERROR


async def test_a_fixed_port_is_used_when_it_is_free(engine: GoalEngine, place: Place, mark: str) -> None:
    goal = responds(f"http://localhost:{free_port()}/")

    assert (await engine.run(goal, place, mark)).status is PASSED


async def test_a_port_of_another_program_is_never_asked(
    engine: GoalEngine, place: Place, mark: str, folder: Path
) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        other.setblocking(False)
        port = other.getsockname()[1]
        result = await engine.run(responds(f"http://127.0.0.1:{port}/", serve="touch started"), place, mark)
        with pytest.raises(BlockingIOError):
            other.accept()

    assert (result.status, result.detail) == (ERROR, f"port {port} is taken by another process")
    assert not (folder / "started").exists()


async def test_a_service_is_ended_with_all_that_it_started(engine: GoalEngine, place: Place, mark: str) -> None:
    serve = f"setsid sleep 600 & (trap '' TERM; sleep 600) & {SERVE}"

    assert (await engine.run(responds("/", serve=serve), place, mark)).status is PASSED
    assert living(service_mark(mark)) == set()


async def test_a_goal_that_is_cancelled_leaves_no_service(
    engine: GoalEngine, place: Place, mark: str, folder: Path
) -> None:
    goal = responds("/", serve="touch started; sleep 600", ready_seconds=600)
    running = asyncio.create_task(engine.run(goal, place, mark))
    async with asyncio.timeout(20):
        while not (folder / "started").exists():  # noqa: ASYNC110  (another process makes it)
            await asyncio.sleep(0.01)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running

    assert living(service_mark(mark)) == set()


async def test_a_service_that_a_dead_process_left_behind_does_not_answer_for_this_commit(
    engine: GoalEngine, place: Place, mark: str, folder: Path
) -> None:
    port = free_port()
    left = await asyncio.create_subprocess_exec(
        "python3",
        str(folder / "server.py"),
        str(port),
        env={**ENVIRONMENT, "GENBA_PROCESS_MARK": service_mark(mark)},
        stdout=asyncio.subprocess.PIPE,
    )
    assert left.stdout is not None
    await left.stdout.readline()

    result = await engine.run(responds(f"http://127.0.0.1:{port}/"), place, mark)

    assert result.status is PASSED
    assert await left.wait() != 0


async def test_two_goals_take_turns_on_one_port(engine: GoalEngine, place: Place, mark: str) -> None:
    goal = responds(f"http://127.0.0.1:{free_port()}/")
    results = await asyncio.gather(engine.run(goal, place, mark), engine.run(goal, place, mark))

    assert [result.status for result in results] == [PASSED, PASSED]
