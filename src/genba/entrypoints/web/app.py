"""The application: which page answers where, and what stands before all of them."""

import contextlib
import importlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from genba.domain.errors import GenbaError, NotFoundError, UnexpectedError, UsageError
from genba.entrypoints.web import api
from genba.entrypoints.web.api import failed
from genba.entrypoints.web.security import AuthMiddleware, Passes, TooLargeError, is_api, is_known
from genba.entrypoints.web.site import Site

_log = logging.getLogger("genba.web")
_NOT_FOUND = 404
STATIC = Path(__file__).parent / "static"
PAGES = ("entering", "field", "board", "workers", "queue", "graph", "agents", "cost", "task", "session", "approvals")
"""The modules of `pages`; each has `routes(site)`."""
Background = Callable[[], contextlib.AbstractAsyncContextManager[Any]]
NOTHING: Mapping[str, ASGIApp] = MappingProxyType({})
_Handler = Callable[[Request, Exception], Awaitable[Response]]


class _Assets(StaticFiles):
    """Files that come with the package: a browser asks again, and mostly gets 304."""

    async def get_response(self, path: str, scope: Scope) -> Response:
        response = await super().get_response(path, scope)
        response.headers["cache-control"] = "no-cache"
        return response


def application(
    site: Site,
    passes: Passes,
    hosts: frozenset[str],
    *,
    beside: Mapping[str, ASGIApp] = NOTHING,
    background: Sequence[Background] = (),
) -> Starlette:
    """Everything that `genba serve` answers. `beside`: by path, who else answers there. `background` lives with it."""
    routes: list[BaseRoute] = [
        Route("/healthz", endpoint=_health, methods=["GET"]),
        Mount("/static", app=_Assets(directory=STATIC)),
    ]
    for name in PAGES:
        routes += importlib.import_module(f"genba.entrypoints.web.pages.{name}").routes(site)
    routes += api.routes(site)
    routes += [Route(path, endpoint=app) for path, app in beside.items()]

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        async with contextlib.AsyncExitStack() as stack:
            for each in background:
                await stack.enter_async_context(each())
            yield

    app = Starlette(
        routes=routes,
        middleware=[Middleware(AuthMiddleware, passes=passes, hosts=hosts), Middleware(_Mishaps, site=site)],
        exception_handlers={GenbaError: _of_ours(site), HTTPException: _of_http(site)},
        lifespan=lifespan,
    )
    app.state.site = site
    app.state.passes = passes
    return app


async def _health(_: Request) -> JSONResponse:
    return JSONResponse({"status": "ok"})


def _of_ours(site: Site) -> _Handler:
    async def answer(request: Request, error: Exception) -> Response:
        assert isinstance(error, GenbaError)  # noqa: S101  (it is the handler of these)
        return await _failed(site, request, error)

    return answer


def _of_http(site: Site) -> _Handler:
    async def answer(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)  # noqa: S101  (see above)
        if error.status_code == _NOT_FOUND and is_known(request):
            return await _failed(site, request, NotFoundError("there is no such page", hint="go to the field: /"))
        if is_api(request.url.path):
            answer = failed(UsageError(error.detail, unchanged="nothing was changed.", hint="see /api/docs"))
            answer.status_code = error.status_code
            answer.headers.update(error.headers or {})
            return answer
        return Response(error.detail, error.status_code, headers=error.headers)

    return answer


class _Mishaps:
    """The answer to an unexpected error, with the same headers as every other."""

    def __init__(self, app: ASGIApp, site: Site) -> None:
        self._app = app
        self._site = site

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun = False

        async def noted(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            await self._app(scope, receive, noted)
        except TooLargeError:
            raise
        except ClientDisconnect:
            return  # the client is gone
        except Exception as error:
            _log.exception("unexpected, at %s %s", scope["method"], scope["path"])
            if begun:
                raise
            unexpected = UnexpectedError(f"{type(error).__name__}: {error}", hint="see what genba serve has printed")
            answer = await _failed(self._site, Request(scope), unexpected)
            await answer(scope, receive, send)


async def _failed(site: Site, request: Request, error: GenbaError) -> Response:
    return failed(error) if is_api(request.url.path) else await site.failed(request, error)
