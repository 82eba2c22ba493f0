"""How requests are sent, counted, repeated and refused: against the GitHub of the tests, and by canned answers."""

import json
import traceback
from collections.abc import AsyncIterator, Callable, Mapping

import httpx
import pytest

from genba.connections.github.access.credentials import TokenCredentials
from genba.connections.github.client import GitHubClient
from genba.connections.github.errors import Refused, TooHeavy, refusal, words_of
from genba.domain.errors import (
    AccessRefusedError,
    GenbaError,
    NotAllowedError,
    NotFoundError,
    RateLimited,
    RemoteUnavailable,
    UnrecoverableError,
)
from genba.testing.doubles import ManualClock
from tests.github.conftest import Hubs
from tests.github.offices import SHOP, TOKEN, connected, named, settings, settle
from tests.standins.github.faults import Fault
from tests.standins.github.server import GitHub

COMMENTS = f"/repos/{SHOP}/issues/1/comments"


@pytest.fixture
def shop(hub: GitHub) -> GitHub:
    settle(hub)
    hub.add_issue(SHOP, title="One")
    return hub


def path(client: GitHubClient) -> str:
    return client.repository("issues", 1)


class Canned(httpx.AsyncBaseTransport):
    """Answers by a function, for what no good server does."""

    def __init__(self, answer: Callable[[httpx.Request], httpx.Response]) -> None:
        self.answer = answer
        self.asked: list[httpx.Request] = []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(request)
        return self.answer(request)


# ------------------------------------------------------------------------------------------------------------ refusals


def refused(status: int, headers: Mapping[str, str] | None = None, message: str = "") -> GenbaError:
    return refusal(
        "GET issues/1", status, httpx.Headers(dict(headers or {})), json.dumps({"message": message}).encode()
    )


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, Refused),
        (401, AccessRefusedError),
        (403, NotAllowedError),
        (404, NotFoundError),
        (405, Refused),
        (408, RemoteUnavailable),
        (409, Refused),
        (410, NotFoundError),
        (422, Refused),
        (429, RateLimited),
        (451, Refused),
        (500, RemoteUnavailable),
        (502, TooHeavy),
        (503, RemoteUnavailable),
    ],
)
def test_each_status_has_one_meaning(status: int, kind: type[GenbaError]) -> None:
    assert type(refused(status)) is kind


@pytest.mark.parametrize(
    ("status", "headers", "message", "seconds"),
    [
        (403, {"retry-after": "17"}, "", 17),
        (429, {"retry-after": "3"}, "", 3),
        (403, {"retry-after": "99999999"}, "", 86400),
        (403, {"retry-after": "soon"}, "", 60),
        (
            403,
            {"retry-after": "Mon, 16 Nov 2026 13:00:30 GMT", "date": "Mon, 16 Nov 2026 13:00:00 GMT"},
            "",
            30,
        ),
        (
            403,
            {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "1794834060", "date": "Mon, 16 Nov 2026 13:00:00 GMT"},
            "",
            61,
        ),
        (403, {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "nonsense"}, "", 60),
        (403, {}, "You have exceeded a secondary rate limit.", 60),
        (429, {}, "", 60),
    ],
)
def test_a_limit_names_the_time_of_the_next_request(
    status: int, headers: dict[str, str], message: str, seconds: float
) -> None:
    error = refused(status, headers, message)
    assert isinstance(error, RateLimited)
    assert error.retry_after == pytest.approx(seconds)


def test_impossible_actions_differ_from_those_this_token_may_not_do() -> None:
    assert isinstance(refused(403, message="Unable to create comment because issue is locked."), Refused)
    assert isinstance(refused(403, message="Repository was archived so is read-only."), Refused)
    assert isinstance(refused(403, message="Resource not accessible by integration"), AccessRefusedError)


def test_the_errors_of_github_are_shown_in_one_safe_and_short_line() -> None:
    errors = [{"message": "No commits between main and x"}, {"field": "base", "code": "invalid"}, "plain", 7]
    body = json.dumps({"message": "Validation\x1b[31m Failed\n", "errors": errors}).encode()
    assert words_of(body) == "Validation [31m Failed; No commits between main and x; base invalid; plain"
    assert len(words_of(json.dumps({"message": "x" * 9999}).encode())) == 500
    for odd in (b"", b"<html>", b"[1]", b'"x"', b'{"errors": {"a": 1}}'):
        assert words_of(odd) == ""


# ------------------------------------------------------------------------------------------------------------- looking


async def test_a_look_is_repeated_a_few_times_and_then_given_up(shop: GitHub) -> None:
    clock = ManualClock()
    shop.faults.fail("GET", path=f"/repos/{SHOP}/issues/1", status=503, times=2)
    async with connected(shop, clock=clock) as client:
        assert (await client.get(path(client))).status == 200
        assert client.requests == 3
        shop.faults.fail("GET", path=f"/repos/{SHOP}/issues/1", status=500, times=9)
        with pytest.raises(RemoteUnavailable):
            await client.get(path(client))
        assert client.requests == 6
    assert len(clock.slept) == 4
    assert all(0.5 <= pause <= 2 for pause in clock.slept)


@pytest.mark.parametrize("fault", [Fault(cut=True), Fault(cut_inside=True), Fault(status=200, body=b"{}")])
async def test_a_cut_answer_is_asked_for_again(shop: GitHub, fault: Fault) -> None:
    fault.path = f"/repos/{SHOP}/issues"
    shop.faults.add(fault)
    async with connected(shop) as client:
        answer = await client.get(client.repository("issues"))
        assert fault.struck == 1
        if fault.body is None:
            assert len(answer.read(list[dict[str, object]])) == 1
        else:
            with pytest.raises(RemoteUnavailable, match="not as it should be"):
                answer.read(list[dict[str, object]])


async def test_silence_ends_after_the_patience_of_the_settings(shop: GitHub) -> None:
    hung = shop.faults.hang("POST", COMMENTS)
    async with connected(settings(shop.url, timeout=0.3)) as client:
        with pytest.raises(
            RemoteUnavailable, match=r"^127\.0\.0\.1:\d+ did not answer POST issues/1/comments in 0\.3 s"
        ):
            await client.change("POST", client.repository("issues", 1, "comments"), {"body": "x"})
    hung.release()


async def test_a_limit_is_never_tried_again_by_itself(shop: GitHub) -> None:
    clock = ManualClock()
    shop.faults.fail("GET", status=403, headers={"retry-after": "42"})
    async with connected(shop, clock=clock) as client:
        with pytest.raises(RateLimited) as raised:
            await client.get(path(client))
        assert raised.value.retry_after == 42
        assert client.requests == 1
    assert clock.slept == []


async def test_a_primary_limit_waits_for_its_reset(shop: GitHub) -> None:
    shop.spend(TOKEN, rest=5000)
    async with connected(shop) as client:
        with pytest.raises(RateLimited) as raised:
            await client.get(path(client))
    assert raised.value.retry_after is not None
    assert 1 <= raised.value.retry_after <= 3602  # a second to be sure, and one that the date of a server may be old


async def test_what_did_not_change_costs_nothing(shop: GitHub) -> None:
    async with connected(shop) as client:
        first = await client.get(client.repository("issues"))
        assert first.etag
        again = await client.get(client.repository("issues"), etag=first.etag)
        assert (again.unchanged, again.status) == (True, 304)


async def test_a_list_is_read_page_by_page(shop: GitHub) -> None:
    shop.add_issues(SHOP, 249)
    async with connected(shop) as client:
        pages = [page async for page in client.pages(client.repository("issues"), {"state": "all"})]
        assert [len(page.read(list[object])) for page in pages] == [100, 100, 50]
        few = [page async for page in client.pages(client.repository("issues"), {"state": "all"}, most=2)]
        assert len(few) == 2


async def test_a_renamed_repository_is_followed_and_reported_once(shop: GitHub) -> None:
    shop.rename_repository(SHOP, "store")
    async with connected(shop) as client:
        for _ in range(2):
            answer = await client.get(path(client))
            assert answer.status == 200
        await client.change("PATCH", path(client), {"title": "Another"})
        assert len(client.notes) == 1
        assert SHOP in client.notes[0]
    assert shop.issue("acme/store", 1).title == "Another"


async def test_no_token_goes_to_another_host() -> None:
    def elsewhere(request: httpx.Request) -> httpx.Response:
        return httpx.Response(301, headers={"location": "https://evil.example/x"}, request=request)

    canned = Canned(elsewhere)
    async with connected(settings("https://api.github.com"), transport=canned) as client:
        with pytest.raises(RemoteUnavailable, match=r"evil\.example"):
            await client.change("POST", client.repository("issues"), {})
    assert {request.url.host for request in canned.asked} == {"api.github.com"}


async def test_a_next_page_on_another_host_is_not_asked_for() -> None:
    def page(request: httpx.Request) -> httpx.Response:
        link = '<https://evil.example/2>; rel="next"'
        return httpx.Response(200, headers={"link": link}, json=[], request=request)

    async with connected(settings("https://api.github.com"), transport=Canned(page)) as client:
        with pytest.raises(RemoteUnavailable, match="another host"):
            await client.get(client.repository("issues"))


async def test_a_circle_of_addresses_has_an_end() -> None:
    canned = Canned(lambda request: httpx.Response(302, headers={"location": str(request.url)}, request=request))
    async with connected(settings("https://api.github.com"), transport=canned) as client:
        with pytest.raises(RemoteUnavailable, match="circles"):
            await client.change("POST", client.repository("issues"), {})
    assert len(canned.asked) == 4


async def test_an_answer_without_an_end_is_given_up() -> None:
    async def flood() -> AsyncIterator[bytes]:
        for _ in range(70):
            yield b"x" * 1024 * 1024

    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, content=flood(), request=request)

    async with connected(settings("https://api.github.com"), transport=Canned(answer)) as client:
        with pytest.raises(TooHeavy, match="larger than 64 MiB"):
            await client.change("POST", client.repository("issues"), {})


async def test_every_request_says_who_sends_it_and_which_version_it_means() -> None:
    canned = Canned(lambda request: httpx.Response(200, json={"data": {}}, request=request))
    async with connected(settings("https://ghe.example/api/v3"), transport=canned) as client:
        await client.get(path(client))
        await client.query("query One { viewer { login } }", {})
    rest, graphql = canned.asked
    assert str(rest.url) == "https://ghe.example/api/v3/repos/acme/shop/issues/1"
    assert str(graphql.url) == "https://ghe.example/api/graphql"
    for request in canned.asked:
        assert request.headers["user-agent"].startswith("genba/")
        assert request.headers["x-github-api-version"] == "2022-11-28"
        assert TOKEN in request.headers["authorization"]
        assert TOKEN not in str(request.url)


def test_words_in_an_address_stay_one_part_of_it() -> None:
    client = GitHubClient(
        settings("https://api.github.com"),
        TokenCredentials(TOKEN, "the test", named("https://api.github.com")),
        ManualClock(),
    )
    assert client.repository("labels", "a/b c?d#e..") == "repos/acme/shop/labels/a%2Fb%20c%3Fd%23e.."


# ------------------------------------------------------------------------------------------------------------ changing


@pytest.mark.parametrize(
    "fault",
    [
        Fault(status=500, effect=True),
        Fault(status=502, effect=True),
        Fault(cut=True, effect=True),
        Fault(cut_inside=True, effect=True),
        Fault(status=503),
        Fault(cut=True),
    ],
)
async def test_a_change_is_sent_once_whatever_happens(shop: GitHub, fault: Fault) -> None:
    fault.method, fault.path, fault.times = "POST", COMMENTS, 9
    shop.faults.add(fault)
    async with connected(shop) as client:
        with pytest.raises(RemoteUnavailable):
            await client.change("POST", client.repository("issues", 1, "comments"), {"body": "x"})
        assert client.requests == 1
    assert len(shop.issue(SHOP, 1).comments) == (1 if fault.effect else 0)


async def test_between_two_changes_there_is_a_pause(shop: GitHub) -> None:
    clock = ManualClock()
    async with connected(shop, clock=clock) as client:
        for _ in range(3):
            await client.change("POST", client.repository("issues", 1, "comments"), {"body": "x"})
    assert clock.slept == [1.0, 1.0]


async def test_what_github_refuses_is_reported_in_its_words_and_without_the_token(shop: GitHub) -> None:
    async with connected(shop) as client:
        with pytest.raises(Refused) as raised:
            await client.change("POST", client.repository("pulls"), {"title": "x", "head": "nobody", "base": "main"})
    assert raised.value.status == 422
    assert raised.value.words
    assert TOKEN not in "".join(traceback.format_exception(raised.value))


# ------------------------------------------------------------------------------------------------------------- GraphQL

VIEWER = "query Viewer { rateLimit { cost } viewer { login } }"


async def test_points_are_counted(shop: GitHub) -> None:
    async with connected(shop) as client:
        result = await client.query(VIEWER, {})
        assert (result.data or {})["viewer"]["login"] == "octocat"
        assert (client.points, client.requests) == (1, 0)


async def test_a_limit_of_graphql_comes_with_the_status_200(shop: GitHub) -> None:
    shop.spend(TOKEN, graphql=5000)
    async with connected(shop) as client:
        with pytest.raises(RateLimited) as raised:
            await client.query(VIEWER, {})
    assert raised.value.retry_after is not None
    assert raised.value.retry_after >= 1


async def test_a_secondary_limit_of_graphql_does_not_wait_for_the_hour_to_end() -> None:
    error = {"type": "RATE_LIMITED", "message": "You have exceeded a secondary rate limit"}
    headers = {"x-ratelimit-reset": "9999999999"}

    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, json={"errors": [error]}, headers=headers, request=request)

    async with connected(settings("https://api.github.com"), transport=Canned(answer)) as client:
        with pytest.raises(RateLimited) as raised:
            await client.query(VIEWER, {})
    assert raised.value.retry_after == 60


async def test_a_query_is_repeated_and_a_mutation_is_not(shop: GitHub) -> None:
    shop.faults.fail(operation="Viewer", status=503)
    async with connected(shop) as client:
        assert (await client.query(VIEWER, {})).data
        shop.faults.fail(operation="Close", status=503, times=5)
        close = "mutation Close($id: ID!) { closeIssue(input: {issueId: $id}) { issue { id } } }"
        with pytest.raises(RemoteUnavailable):
            await client.mutate(close, {"id": shop.issue(SHOP, 1).node})
    assert [one.operation for one in shop.requests].count("Close") == 1


async def test_a_server_without_graphql_is_refused(hubs: Hubs) -> None:
    hub = settle(hubs(graphql=False))
    async with connected(hub) as client:
        with pytest.raises(UnrecoverableError, match="no GraphQL"):
            await client.query(VIEWER, {})


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"type": "RATE_LIMITED", "message": "x"}, RateLimited),
        ({"type": "RATE_LIMIT", "message": "x"}, RateLimited),
        ({"message": "You have exceeded a secondary rate limit"}, RateLimited),
        ({"type": "INSUFFICIENT_SCOPES", "message": "needs read:project"}, AccessRefusedError),
        ({"type": "FORBIDDEN", "message": "x"}, AccessRefusedError),
        ({"type": "NOT_FOUND", "message": "x"}, NotFoundError),
        ({"type": "RESOURCE_LIMITS_EXCEEDED", "message": "x"}, TooHeavy),
        ({"type": "UNPROCESSABLE", "message": "x"}, Refused),
        ({"message": "Field 'x' doesn't exist", "extensions": {"code": "undefinedField"}}, UnrecoverableError),
        ({"message": "Something went wrong while executing your query."}, RemoteUnavailable),
    ],
)
async def test_each_error_of_graphql_has_one_meaning(error: dict[str, object], kind: type[GenbaError]) -> None:
    canned = Canned(lambda request: httpx.Response(200, json={"data": None, "errors": [error]}, request=request))
    async with connected(settings("https://api.github.com"), transport=canned) as client:
        with pytest.raises(kind):
            await client.query(VIEWER, {})


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"null", b'{"data": 7}', b'{"errors": 7}', b"\xff\xfe", b'{"data": null}']
)
async def test_an_answer_of_graphql_that_is_none_is_reported(body: bytes) -> None:
    canned = Canned(lambda request: httpx.Response(200, content=body, request=request))
    async with connected(settings("https://api.github.com"), transport=canned) as client:
        with pytest.raises(RemoteUnavailable):
            await client.query(VIEWER, {})


@pytest.mark.parametrize("status", [422, 500])
async def test_an_error_without_an_end_is_read_for_a_while(status: int) -> None:
    read: list[int] = []

    async def endless() -> AsyncIterator[bytes]:
        while True:
            read.append(len(read))
            assert len(read) < 1_000, "it goes on reading"
            yield b"x" * 65_536

    canned = Canned(lambda request: httpx.Response(status, content=endless(), request=request))
    async with connected(settings("https://api.github.com"), transport=canned) as client:
        with pytest.raises((Refused, RemoteUnavailable), match=str(status)):
            await client.change("POST", client.repository("issues"), {"title": "x"})


@pytest.mark.parametrize("status", [200, 422])
async def test_an_answer_without_a_bottom_is_reported(status: int) -> None:
    deep = b'{"message": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    canned = Canned(lambda request: httpx.Response(status, content=deep, request=request))
    async with connected(settings("https://api.github.com"), transport=canned) as client:
        with pytest.raises((Refused, RemoteUnavailable)):
            (await client.get(client.repository("issues"))).read(dict)
