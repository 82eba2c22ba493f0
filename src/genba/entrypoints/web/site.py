"""What all pages share: looking without blocking, drawing a page or only its living part, telling what a button did."""

import asyncio
import hashlib
import json
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar
from urllib.parse import quote

import jinja2
from starlette.datastructures import FormData, UploadFile
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from genba import __version__
from genba.application.dashboard.project import FieldWindow
from genba.application.dashboard.queries import DashboardQueries
from genba.application.verification.decisions import Decisions
from genba.domain.errors import (
    AccessRefusedError,
    ConfigurationError,
    GenbaError,
    NotFoundError,
    RecoverableError,
    StateConflictError,
    UnavailableError,
    UsageError,
)
from genba.domain.views.summary import ActionResult
from genba.entrypoints.web.filters import FILTERS
from genba.entrypoints.web.live import Hub
from genba.entrypoints.web.security import CSRF_FIELD, CSRF_HEADER, csrf_fits, is_known, visitor_of

T = TypeVar("T")
Deed = Callable[[Request, Mapping[str, str]], Awaitable[ActionResult]]
"""Does what a button says, with what its form holds, and tells what has happened."""

NAVIGATION = (
    ("field", "/", "Field"),
    ("board", "/board", "Board"),
    ("approvals", "/approvals", "Approvals"),
    ("workers", "/workers", "Workers"),
    ("queue", "/queue", "Merge queue"),
    ("graph", "/graph", "Graph"),
    ("agents", "/agents", "Agents"),
    ("cost", "/cost", "Cost"),
)
_STATUSES: tuple[tuple[type[GenbaError], int], ...] = (
    (UsageError, 400),
    (NotFoundError, 404),
    (UnavailableError, 503),
    (StateConflictError, 409),
    (ConfigurationError, 422),
    (AccessRefusedError, 403),
    (RecoverableError, 503),
)
_LIVE = "live"
_READERS, _WRITERS = 16, 8
"""Threads that read and that write; further requests wait for one."""
_NOTHING_NEW = 204
_TO_THE_PAGE = {"target": "body"}
"""Where the result of a button is announced: the button itself may be gone from the page by then."""


class Site:
    """A project as its pages see it."""

    def __init__(self, queries: DashboardQueries, decisions: Decisions, hub: Hub) -> None:
        self.queries = queries
        self.decisions = decisions
        self.hub = hub
        self.window = FieldWindow(queries)
        self._looks = ThreadPoolExecutor(_READERS, "look")
        self._writers = ThreadPoolExecutor(_WRITERS, "writer")
        self._templates = jinja2.Environment(
            loader=jinja2.PackageLoader("genba.entrypoints.web", "templates"),
            autoescape=True,
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._templates.filters.update(FILTERS)
        # What pages draw alike is there in every block: a block that is drawn alone runs none of the imports above it.
        shared = self._templates.get_template("parts.html").module
        self._templates.globals.update(navigation=NAVIGATION, version=__version__, parts=shared)

    async def look(self, work: Callable[[], T]) -> T:
        """Ask the blackboard or git without keeping others waiting."""
        return await asyncio.get_running_loop().run_in_executor(self._looks, work)

    async def do(self, work: Callable[[], T]) -> T:
        """Write in a thread of its own pool: waiting for the database blocks no reader."""
        return await asyncio.get_running_loop().run_in_executor(self._writers, work)

    async def page(self, request: Request, template: str, here: str, status: int = 200, **facts: Any) -> Response:
        """A page; where it lives already in a browser, only its living part, and nothing where that is the same.

        `here` is the entry of the navigation. The living part of a template is its block `live`.
        """
        given = {
            **facts,
            "here": here,
            "visitor": visitor_of(request),
            "project": self.queries.project if is_known(request) else "Genba",
            "address": request.url.path + (f"?{request.url.query}" if request.url.query else ""),
            "needs": await self._needs() if is_known(request) else 0,
        }
        found = self._templates.get_template(template)
        context = found.new_context(given)
        living = "".join(found.blocks[_LIVE](context)) if _LIVE in found.blocks else ""
        digest = hashlib.sha256(living.encode("utf-8", "replace")).hexdigest()[:16]
        needs = {"genba-needs": str(given["needs"])}
        if living and request.headers.get("genba-digest") == digest:
            return Response(status_code=_NOTHING_NEW, headers=needs)
        if living and request.headers.get("genba-live"):
            return _html(living, status, {"genba-digest": digest, **needs})
        return _html(found.render({**given, "digest": digest}), status)

    async def _needs(self) -> int:
        """How much waits for people; a page that tells of a blackboard out of reach does not fail by it once more."""
        try:
            return await self.look(self.queries.needs_count)
        except GenbaError:
            return 0

    async def fragment(self, request: Request, template: str, block: str, **facts: Any) -> Response:
        """One block of a template, loaded on demand."""
        found = self._templates.get_template(template)
        context = found.new_context({**facts, "visitor": visitor_of(request), "project": self.queries.project})
        return _html("".join(found.blocks[block](context)))

    def deed(self, work: Deed, back: str = "/") -> Callable[[Request], Awaitable[Response]]:
        """The answer to a form: done, or the reason why not. `back` leads on where there is no script."""

        async def answer(request: Request) -> Response:
            async with request.form(max_files=0, max_fields=64) as form:
                given = _words(form)
            shown = request.headers.get(CSRF_HEADER) or given.pop(CSRF_FIELD, "")
            given.pop(CSRF_FIELD, None)
            if not csrf_fits(visitor_of(request), shown):
                refused = StateConflictError(
                    "this page is too old to act from", unchanged="nothing was changed.", hint="load the page again"
                )
                return await self.failed(request, refused)
            result = await work(request, given)
            self.hub.wake()
            return await self._announce(request, result, result.leads_to or back)

        return answer

    async def _announce(self, request: Request, result: ActionResult, back: str) -> Response:
        if request.headers.get("hx-request"):
            values = {"message": {"sentence": result.sentence, "hint": result.hint, **_TO_THE_PAGE}}
            headers = {"hx-trigger": json.dumps(values)}
            if result.leads_to:
                headers["hx-redirect"] = quote(result.leads_to, safe="/?=&#%-._~")
            return Response(status_code=_NOTHING_NEW, headers=headers)
        return await self.page(request, "result.html", "", result=result, back=back)

    async def failed(self, request: Request, error: GenbaError) -> Response:
        """What went wrong, in words; the page that asked stays as it is."""
        status = status_of(error)
        problems = [str(problem) for problem in error.problems] if isinstance(error, ConfigurationError) else []
        if request.headers.get("hx-request"):
            values = {"sentence": error.message, "unchanged": error.unchanged, "hint": error.hint, **_TO_THE_PAGE}
            return Response(status_code=status, headers={"hx-trigger": json.dumps({"refused": values})})
        return await self.page(request, "failed.html", "", status, error=error, problems=problems)


def status_of(error: GenbaError) -> int:
    """The status of HTTP that fits an error best."""
    return next((status for kind, status in _STATUSES if isinstance(error, kind)), 500)


def _html(text: str, status: int = 200, headers: Mapping[str, str] | None = None) -> HTMLResponse:
    return HTMLResponse(text.encode("utf-8", "replace"), status, headers=dict(headers or {}))


def _words(form: FormData) -> dict[str, str]:
    """What a form holds, as text; files are not taken."""
    return {name: value for name, value in form.multi_items() if not isinstance(value, UploadFile)}
