import asyncio
import contextlib
from collections.abc import AsyncIterator

import httpx
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from genba.entrypoints.listeners import bound_port, serving
from genba.entrypoints.web.live import MOST_OF_A_VISITOR, MOST_STREAMS, Hub, stream
from genba.entrypoints.web.security import Principal, Role


@contextlib.asynccontextmanager
async def hearing(hub: Hub) -> AsyncIterator[httpx.AsyncClient]:
    """A server with nothing but the stream. Its visitors say by a header who they are."""

    async def live(request: Request) -> Response:
        request.scope["visitor"] = Principal(role=Role.VIEWER, csrf=request.headers["who"])
        return stream(request, hub)

    async def page(_: Request) -> Response:
        return PlainTextResponse("a page")

    app = Starlette(routes=[Route("/live", live), Route("/page", page)])
    with contextlib.closing(bound_port("127.0.0.1", 0, "")) as listening:
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        limits = httpx.Limits(max_connections=None)
        async with (
            serving(app, listening),
            contextlib.aclosing(hub),
            httpx.AsyncClient(base_url=url, timeout=60, limits=limits) as client,
        ):
            yield client


async def listen(stack: contextlib.AsyncExitStack, client: httpx.AsyncClient, who: str) -> httpx.Response:
    return await stack.enter_async_context(client.stream("GET", "/live", headers={"who": who}))


async def test_a_client_that_opens_streams_without_end_is_limited_and_others_are_not() -> None:
    hub = Hub(lambda: 1, most=5, most_of_a_visitor=3)
    async with hearing(hub) as client, contextlib.AsyncExitStack() as stack:
        mine = [(await listen(stack, client, "ada")).status_code for _ in range(5)]
        refused = await client.get("/live", headers={"who": "ada"})
        others = [(await listen(stack, client, "bob")).status_code for _ in range(2)]
        full = await client.get("/live", headers={"who": "eve"})
        page = await client.get("/page")

    assert mine == [200, 200, 200, 503, 503]
    assert (refused.status_code, refused.headers["retry-after"]) == (503, "30")
    assert "hint: close other pages" in refused.text
    assert others == [200, 200]
    assert full.status_code == 503, "bob is within his own, and all are taken"
    assert page.status_code == 200


async def test_a_place_is_free_again_when_its_page_is_closed() -> None:
    hub = Hub(lambda: 1, most=1)
    async with hearing(hub) as client:
        async with contextlib.AsyncExitStack() as stack:
            assert (await listen(stack, client, "ada")).status_code == 200
            assert (await client.get("/live", headers={"who": "bob"})).status_code == 503
        async with asyncio.timeout(60):
            while True:
                async with contextlib.AsyncExitStack() as stack:
                    if (await listen(stack, client, "bob")).status_code == 200:
                        break


def test_the_places_of_all_leave_room_for_the_pages() -> None:
    assert MOST_OF_A_VISITOR < MOST_STREAMS < 1024, "so many connections are answered at once"
