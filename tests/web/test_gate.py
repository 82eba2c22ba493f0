import re
import sqlite3
from collections.abc import Iterator

import httpx
import pytest
from starlette.routing import Mount, Route
from starlette.types import Receive, Scope, Send

from genba.application.dashboard.keys import WebKeys
from genba.domain.tasks.task import TaskDraft
from genba.entrypoints.web.app import application
from genba.entrypoints.web.security import Passes
from tests.fuzz.outside import everything
from tests.project import Project
from tests.web.serving import OPERATOR, PATIENCE, PERSON, VIEWER, Dashboard, dashboard

PAGES = ("/", "/board", "/api/docs", "/live")
_CSRF = re.compile(r'data-csrf="([0-9a-f]+)"')


def csrf_of(client: httpx.Client) -> str:
    found = _CSRF.search(client.get("/board").text)
    assert found
    return found.group(1)


@pytest.mark.parametrize("path", PAGES)
def test_no_page_is_shown_without_a_token(served: Dashboard, path: str) -> None:
    answer = httpx.get(f"{served.url}{path}", timeout=PATIENCE)
    assert (answer.status_code, answer.headers["location"]) == (303, "/enter")


@pytest.mark.parametrize("token", ["", "wrong", OPERATOR[:-1], OPERATOR + "x", "é" * 20, "\0"])
def test_a_wrong_token_opens_nothing(served: Dashboard, token: str) -> None:
    answer = httpx.post(f"{served.url}/enter", data={"token": token}, timeout=PATIENCE)
    assert answer.status_code == 403
    assert "set-cookie" not in answer.headers


def test_the_api_says_how_to_come_in(served: Dashboard) -> None:
    answer = httpx.get(f"{served.url}/api/tasks", timeout=PATIENCE)
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"] == "Bearer"
    assert "Bearer" in answer.json()["error"]["hint"]


def test_the_cookie_is_kept_from_scripts_and_other_sites(served: Dashboard) -> None:
    answer = httpx.post(f"{served.url}/enter", data={"token": OPERATOR}, timeout=PATIENCE)
    cookie = answer.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert OPERATOR not in cookie


@pytest.mark.parametrize("change", ["role", "until", "signature", "cut"])
def test_a_cookie_that_was_changed_is_worth_nothing(served: Dashboard, change: str) -> None:
    with served.visitor(VIEWER) as viewer:
        kind, until, signature = viewer.cookies["genba-tests"].split(".")
    forged = {
        "role": f"o.{until}.{signature}",
        "until": f"{kind}.{int(until) + 1}.{signature}",
        "signature": f"{kind}.{until}.{'0' * len(signature)}",
        "cut": f"{kind}.{until}",
    }[change]
    answer = httpx.get(f"{served.url}/board", cookies={"genba-tests": forged}, timeout=PATIENCE)
    assert answer.status_code == 303


def test_a_viewer_may_look_and_not_act(served: Dashboard) -> None:
    served.board.board.add(TaskDraft(title="Tea"), PERSON)
    with served.client(VIEWER) as viewer:
        assert viewer.get("/board").status_code == 200
        assert 'class="deed"' not in viewer.get("/board").text
        answer = viewer.post("/api/tasks/1/comments", json={"text": "hello"})
        assert answer.status_code == 403
        assert viewer.post("/pause").status_code == 403
    assert not served.board.board.comments(1)
    assert not served.board.field().paused


def test_in_a_read_only_dashboard_the_operator_may_only_look(project: Project) -> None:
    with dashboard(project, read_only=True) as served, served.client() as client:
        assert client.get("/board").status_code == 200
        assert client.post("/api/pause").status_code == 403
        assert not served.board.field().paused


OPEN = {"/enter", "/healthz"}
"""What answers strangers on purpose, beside the files of `/static`."""


def routes_of(served: Dashboard) -> list[Route]:
    """Every route there is, so that one that is added is looked at too."""
    passes = Passes(keys=WebKeys(operator=OPERATOR, viewer=VIEWER, signing="x"), name="genba-tests")
    found = application(served.site, passes, frozenset()).routes
    assert [each.path for each in found if isinstance(each, Mount)] == ["/static"]
    assert {type(each) for each in found} == {Mount, Route}, "the gate looks at what is asked over HTTP"
    return [each for each in found if isinstance(each, Route)]


def requests_of(served: Dashboard) -> Iterator[tuple[str, str]]:
    """A request for each method of each route: the method, and an address."""
    for route in routes_of(served):
        for method in sorted(route.methods or ("GET", "POST", "PUT", "PATCH", "DELETE")):
            yield method, re.sub(r"\{[^}]*\}", "1", route.path)


def changes_of(served: Dashboard) -> list[tuple[str, str]]:
    return [(method, path) for method, path in requests_of(served) if method not in ("GET", "HEAD")]


def refused_changes(served: Dashboard, client: httpx.Client) -> set[tuple[str, str]]:
    database = served.project.root / ".genba" / "genba.db"
    before = everything(database)
    refused = set()
    for method, path in changes_of(served):
        answer = client.request(method, path)
        if answer.status_code == 403 and "you may read only" in answer.text:
            refused.add((method, path))
    assert everything(database) == before
    return refused


@pytest.mark.parametrize("read_only", [False, True])
def test_every_change_is_refused_to_a_reader(project: Project, read_only: bool) -> None:
    with dashboard(project, read_only=read_only) as served:
        served.board.board.add(TaskDraft(title="Tea"), PERSON)
        every = set(changes_of(served)) - {("POST", "/enter")}
        assert len(every) > 20
        token = OPERATOR if read_only else VIEWER
        for opened in (served.client, served.visitor):
            with opened(token) as client:
                assert refused_changes(served, client) == every


def test_no_route_but_the_open_ones_answers_a_stranger(served: Dashboard) -> None:
    served.board.board.add(TaskDraft(title="Tea"), PERSON)
    answered = set()
    with httpx.Client(base_url=served.url, timeout=20) as stranger:
        for method, path in requests_of(served):
            answer = stranger.request(method, path)
            if answer.status_code != 401 and (answer.status_code, answer.headers.get("location")) != (303, "/enter"):
                answered.add(path)
    assert answered == OPEN


def test_a_form_of_another_page_does_nothing(served: Dashboard) -> None:
    with served.visitor() as client:
        right = csrf_of(client)
        assert client.post("/pause").status_code == 409
        assert client.post("/pause", data={"csrf": "0" * 64}).status_code == 409
        lured = {"origin": "https://evil.example", "sec-fetch-site": "cross-site"}
        assert client.post("/pause", data={"csrf": right}, headers=lured).status_code == 403
        assert client.post("/pause", data={"csrf": right}, headers={"sec-fetch-site": "same-site"}).status_code == 403
        assert not served.board.field().paused
        assert client.post("/pause", data={"csrf": right}).status_code == 200
    assert served.board.field().paused


def test_the_api_wants_the_same_of_a_browser(served: Dashboard) -> None:
    with served.visitor() as client:
        assert client.post("/api/pause").status_code == 400
        assert client.post("/api/pause", headers={"genba-csrf": csrf_of(client)}).status_code == 200


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "[::2]", "", "]["])
def test_under_another_name_no_request_is_answered(served: Dashboard, host: str) -> None:
    with served.client() as client:
        answer = client.get("/board", headers={"host": host})
    assert answer.status_code in (400, 421)


@pytest.mark.parametrize("path", ["/board", "/enter", "/static/genba.js", "/api/tasks", "/nothing", "/healthz"])
def test_every_answer_carries_the_policy(served: Dashboard, path: str) -> None:
    with served.client() as client:
        headers = client.get(path).headers
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self';" in policy
    assert "unsafe" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"


def test_a_request_that_is_too_large_is_refused_before_it_is_read(served: Dashboard) -> None:
    with served.client() as client:
        answer = client.post("/api/tasks", content=b'{"title": "' + b"x" * 3_000_000 + b'"}')
        assert answer.status_code == 413
        endless = iter([b"x" * 100_000] * 30)
        answer = client.post("/api/tasks", content=endless, headers={"content-type": "application/json"})
        assert answer.status_code == 413


def test_files_outside_of_the_package_are_not_served(served: Dashboard) -> None:
    with served.client() as client:
        for path in (
            "/static/../app.py",
            "/static/%2e%2e/app.py",
            "/static//etc/passwd",
            "/static/vendor/../../app.py",
        ):
            assert client.get(path).status_code == 404


def test_leaving_drops_the_cookie(served: Dashboard) -> None:
    with served.visitor() as client:
        client.get("/leave")
        assert client.get("/board").status_code == 303


def test_no_page_tells_a_token(served: Dashboard) -> None:
    with served.visitor() as client:
        for path in ("/", "/board", "/api/docs", "/api/openapi.json"):
            text = client.get(path).text
            assert OPERATOR not in text
            assert VIEWER not in text


@pytest.mark.parametrize("path", ["/mcpx", "/mcp/board", "/favicon.ico", "/mcp%2f..%2fboard", "//enter", "/enter/"])
def test_what_looks_like_an_open_door_is_none(served: Dashboard, path: str) -> None:
    answer = httpx.get(f"{served.url}{path}", timeout=PATIENCE)
    assert (answer.status_code, answer.headers["location"]) == (303, "/enter")


@pytest.mark.parametrize("path", ["/enter", "/static/nothing", "/static/%2e%2e/app.py", "/healthz", "/mcp"])
def test_strangers_do_not_learn_whose_dashboard_it_is(served: Dashboard, path: str) -> None:
    with served.client() as client:
        assert served.site.queries.project in client.get("/board").text
    assert served.site.queries.project not in httpx.get(f"{served.url}{path}", timeout=PATIENCE).text


def test_a_plain_form_of_our_own_page_is_taken(served: Dashboard) -> None:
    own = {"origin": "null", "sec-fetch-site": "same-origin"}
    with served.visitor(VIEWER) as client:
        entered = client.post("/enter", data={"token": OPERATOR}, headers=own)
        assert entered.status_code == 303, "whoever is in already can come in by another link"
        client.cookies.update(entered.cookies)
        right = csrf_of(client)
        for lured in ({"origin": "null"}, {"origin": "null", "sec-fetch-site": "cross-site"}):
            assert client.post("/pause", data={"csrf": right}, headers=lured).status_code == 403
        assert not served.board.field().paused
        assert client.post("/pause", data={"csrf": right}, headers=own).status_code == 200
    assert served.board.field().paused


@pytest.mark.parametrize("strange", ['prefs={"a": [1, 2]}', "a=b c", "näme[]=1", "=;;=", "x=" + "y" * 9000])
def test_cookies_of_other_ports_do_not_end_a_login(served: Dashboard, strange: str) -> None:
    with served.visitor() as client:
        mine = client.cookies["genba-tests"]
    for cookie in (f"{strange}; genba-tests={mine}", f"genba-tests={mine}; {strange}"):
        answer = httpx.get(f"{served.url}/board", headers={b"cookie": cookie.encode()}, timeout=PATIENCE)
        assert answer.status_code == 200


@pytest.mark.parametrize("path", ["/board", "/nothing", "/enter", "/api/escalations"])
def test_where_the_blackboard_fails_it_is_reported_in_words(served: Dashboard, path: str) -> None:
    database = served.project.root / ".genba" / "genba.db"
    with sqlite3.connect(database) as connection:
        connection.execute("ALTER TABLE escalations RENAME TO gone")
    connection.close()
    with served.client() as client:
        answer = client.get(path)
    assert answer.status_code == (404 if path == "/nothing" else 200 if path == "/enter" else 500)
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert answer.text != "Internal Server Error"
    if path in ("/board", "/api/escalations"):
        assert "no such table" in answer.text


async def test_an_unexpected_error_is_shown_under_the_same_policy(served: Dashboard) -> None:
    class Stumbles:
        async def __call__(self, _scope: Scope, _receive: Receive, _send: Send) -> None:
            raise ValueError("<b>over a stone</b>")

    passes = Passes(keys=WebKeys(operator=OPERATOR, viewer=VIEWER, signing="x"), name="genba-tests")
    app = application(served.site, passes, frozenset(), beside={"/stone": Stumbles(), "/api/stone": Stumbles()})
    headers = {"authorization": f"Bearer {OPERATOR}"}
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1", headers=headers) as client:
        page, result = await client.get("/stone"), await client.get("/api/stone")
    assert "ValueError: &lt;b&gt;over a stone&lt;/b&gt;" in page.text
    assert result.json()["error"]["message"] == "ValueError: <b>over a stone</b>"
    for answer in (page, result):
        assert answer.status_code == 500
        assert "default-src 'none'" in answer.headers["content-security-policy"]


@pytest.mark.parametrize(
    ("origin", "status"),
    [
        ("https://genba.example.org", 200),
        ("http://127.0.0.1", 200),
        ("https://genba.example.org.evil.example", 403),
        ("https://evil.example", 403),
        ("https://genba.example.org:8443", 403),
        ("null", 403),
        ("", 403),
        ("://", 403),
        ("http://[", 403),
    ],
)
async def test_behind_a_proxy_its_public_address_is_its_own(served: Dashboard, origin: str, status: int) -> None:
    keys = WebKeys(operator=OPERATOR, viewer=VIEWER, signing="x")
    passes = Passes(keys=keys, name="genba-tests", public="genba.example.org")
    app = application(served.site, passes, frozenset({"127.0.0.1", "genba.example.org"}))
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        entered = await client.post("/enter", data={"token": OPERATOR})
        client.cookies.update(entered.cookies)
        found = _CSRF.search((await client.get("/board")).text)
        assert found
        answer = await client.post("/pause", data={"csrf": found.group(1)}, headers={"origin": origin})
    assert answer.status_code == status
    assert served.board.field().paused is (status == 200)
