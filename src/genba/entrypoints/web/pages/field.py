"""The field: the first thing seen is health and what needs you, then what runs now, then what to do next."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from genba.entrypoints.web.site import Site

_HEALTH = {
    "states_clear": ("Every state is clear", "Some states are not clear"),
    "next_clear": ("The next move is clear", "The next move is not clear"),
    "blockers_visible": ("Every blocker is visible", "Some blockers are not visible"),
    "startable": ("There is work to start", "There is nothing to start"),
}
"""The text of each condition where it holds, and where it does not."""


def routes(site: Site) -> list[Route]:
    async def field(request: Request) -> Response:
        picture = await site.window.picture()
        return await site.page(request, "field.html", "field", picture=picture, conditions=_HEALTH)

    return [Route("/", endpoint=field, methods=["GET"])]
