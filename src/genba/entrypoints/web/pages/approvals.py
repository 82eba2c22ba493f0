"""Approvals: what only a person can decide, each with everything that is needed to decide it."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from genba.application.dashboard.decisions import ApprovalsWindow
from genba.entrypoints.web.links import linked
from genba.entrypoints.web.site import Site
from genba.judgement.scheduling.plans import goal_line


def routes(site: Site) -> list[Route]:
    window = ApprovalsWindow(site.queries)

    async def approvals(request: Request) -> Response:
        picture = await site.look(window.picture)
        return await site.page(
            request, "approvals.html", "approvals", picture=picture, linked=linked, goal_line=goal_line
        )

    return [Route("/approvals", endpoint=approvals, methods=["GET"])]
