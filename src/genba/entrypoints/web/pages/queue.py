"""The merge queue: the next entry of each target, its goals, what came back and why, and what has landed."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from genba.entrypoints.web.site import Site


def routes(site: Site) -> list[Route]:
    async def queue(request: Request) -> Response:
        picture = await site.look(site.queries.queue)
        return await site.page(request, "queue.html", "queue", picture=picture)

    return [Route("/queue", endpoint=queue, methods=["GET"])]
