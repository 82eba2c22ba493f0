"""Coming in: a token becomes a cookie. Going out: the cookie is dropped. And the stream of what has changed."""

import time

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from genba.entrypoints.web.live import stream
from genba.entrypoints.web.security import COOKIE_SECONDS, Passes
from genba.entrypoints.web.site import Site


def routes(site: Site) -> list[Route]:
    async def enter(request: Request) -> Response:
        if request.method != "POST":
            return await site.page(request, "enter.html", "", wrong=False)
        async with request.form(max_files=0, max_fields=4) as form:
            token = str(form.get("token", "")).strip()
        passes: Passes = request.app.state.passes
        if passes.role_of(token) is None:
            return await site.page(request, "enter.html", "", status=403, wrong=True)
        response = RedirectResponse("/", 303)
        response.set_cookie(
            passes.name,
            passes.cookie(token, time.time()),
            max_age=COOKIE_SECONDS,
            httponly=True,
            samesite="strict",
            secure=passes.secure,
        )
        return response

    async def leave(request: Request) -> Response:
        passes: Passes = request.app.state.passes
        response = RedirectResponse("/enter", 303)
        response.delete_cookie(passes.name, httponly=True, samesite="strict", secure=passes.secure)
        return response

    async def live(request: Request) -> Response:
        run = request.query_params.get("run", "")
        if not run:
            return stream(request, site.hub)
        path = await site.look(lambda: site.queries.context.find_journal(run))

        def size() -> int:
            return path.stat().st_size if path.exists() else 0

        return stream(request, site.hub, size)

    return [
        Route("/enter", endpoint=enter, methods=["GET", "POST"]),
        Route("/leave", endpoint=leave, methods=["GET"]),
        Route("/live", endpoint=live, methods=["GET"]),
    ]
