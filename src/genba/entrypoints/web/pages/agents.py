"""The agents: what each is for and how well it did; and of one, what it is made of."""

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from genba.entrypoints.web.layout import flow
from genba.entrypoints.web.site import Site


def routes(site: Site) -> list[Route]:
    async def agents(request: Request) -> Response:
        picture = await site.look(site.queries.agents)
        return await site.page(request, "agents.html", "agents", picture=picture)

    async def agent(request: Request) -> Response:
        name: str = request.path_params["name"]
        picture = await site.look(lambda: site.queries.agent(name))
        values = {each.path: _text(each.value) for each in picture.settings}
        return await site.page(request, "agent.html", "agents", picture=picture, flow=flow(picture), values=values)

    return [
        Route("/agents", endpoint=agents, methods=["GET"]),
        Route("/agents/{name}", endpoint=agent, methods=["GET"]),
    ]


def _text(value: object) -> str:
    """A value as it would stand in agent.json; a plain text without its quotes."""
    return value if isinstance(value, str) and value else msgspec.json.encode(value).decode("utf-8", "replace")
