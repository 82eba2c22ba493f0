"""One run: its log as it grows, its iterations with what was asked and answered, what it used and what came of it."""

from collections.abc import Mapping
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from genba.application.dashboard.session import SessionWindow
from genba.application.dashboard.stop_session import stop_run
from genba.domain.views.summary import ActionResult
from genba.entrypoints.web.site import Site

_NOTHING_NEW = 204
_SHOWN = 100
_FIRST = 200
"""So many lines of its log are drawn at first, which is more than a screen: what is not seen is not waited for."""
_LONGEST_PLACE = 15


def routes(site: Site) -> list[Route]:
    window = SessionWindow(site.queries)

    async def session(request: Request) -> Response:
        run = request.path_params["run"]
        picture = await site.look(lambda: window.picture(run))
        # What is drawn again needs no log: the browser has it already, and asks for what follows.
        fresh = not request.headers.get("genba-live")
        log = await site.look(lambda: window.last(run, lines=_FIRST)) if fresh else None
        shown = _place(request.query_params.get("iterations")) or _SHOWN
        return await site.page(
            request, "session.html", "workers", picture=picture, facts=picture.facts, run=run, log=log, shown=shown
        )

    async def log(request: Request) -> Response:
        """What stands before a place of the log, or what was written behind one."""
        run = request.path_params["run"]
        before, after = (_place(request.query_params.get(name)) for name in ("before", "after"))
        if before is not None:
            page = await site.look(lambda: window.last(run, before))
            return await site.fragment(request, "session_pieces.html", "earlier", log=page, run=run)
        page = await site.look(lambda: window.since(run, after or 0))
        if page.end == (after or 0):
            return Response(status_code=_NOTHING_NEW)
        response = await site.fragment(request, "session_pieces.html", "lines", log=page)
        response.headers["genba-log-end"] = str(page.end)
        response.headers["genba-log-more"] = "1" if page.more else "0"
        return response

    async def text(request: Request) -> Response:
        run, at = request.path_params["run"], _place(request.query_params.get("at")) or 0
        found = await site.look(lambda: window.text(run, at))
        return await site.fragment(request, "session_pieces.html", "text", entry=found)

    async def suspend(request: Request, given: Mapping[str, str]) -> ActionResult:
        run = request.path_params["run"]
        picture = await site.look(lambda: window.picture(run))
        facts = picture.facts
        return await stop_run(site.decisions, run, facts.branch, facts.process, given.get("reason", "")[:2000])

    async def stop(request: Request) -> Response:
        return await site.deed(suspend, f"/sessions/{quote(request.path_params['run'], safe='')}")(request)

    return [
        Route("/sessions/{run}", endpoint=session, methods=["GET"]),
        Route("/sessions/{run}/log", endpoint=log, methods=["GET"]),
        Route("/sessions/{run}/text", endpoint=text, methods=["GET"]),
        Route("/sessions/{run}/stop", endpoint=stop, methods=["POST"]),
    ]


def _place(text: str | None) -> int | None:
    """A number in a query; nothing where it is none."""
    return int(text) if text and text.isascii() and text.isdigit() and len(text) <= _LONGEST_PLACE else None
