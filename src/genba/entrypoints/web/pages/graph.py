"""The graph: which task needs which other one, as a drawing and as a list of the same facts."""

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from genba.domain.tasks.task import TaskStatus
from genba.domain.views.graph import EdgeKind, GraphView
from genba.entrypoints.web.site import Site

_LARGEST_NUMBER = 9
_DEPTHS = (1, 2, 3, 6)


class _Asked(msgspec.Struct, frozen=True, kw_only=True):
    """Which part of the graph is wanted."""

    all: bool = False
    around: int | None = None
    depth: int = 2

    @property
    def query(self) -> str:
        if self.around is not None:
            return f"around={self.around}&depth={self.depth}"
        return "show=all" if self.all else ""


def routes(site: Site) -> list[Route]:
    async def look(asked: _Asked) -> GraphView:
        return await site.look(lambda: site.queries.graph(ended_too=asked.all, around=asked.around, depth=asked.depth))

    async def graph(request: Request) -> Response:
        asked = _asked(request)
        picture = await look(asked)
        return await site.page(
            request,
            "graph.html",
            "graph",
            picture=picture,
            asked=asked,
            ties=_ties(picture),
            depths=_DEPTHS,
            statuses=tuple(TaskStatus),
        )

    async def data(request: Request) -> Response:
        """What is drawn; the same facts as on the page."""
        picture = await look(_asked(request))
        return Response(msgspec.json.encode(picture), media_type="application/json")

    return [
        Route("/graph", endpoint=graph, methods=["GET"]),
        Route("/graph/data", endpoint=data, methods=["GET"]),
    ]


def _asked(request: Request) -> _Asked:
    query = request.query_params
    around, depth = query.get("around", "").strip().lstrip("#"), query.get("depth", "")
    return _Asked(
        all=query.get("show") == "all",
        around=int(around) if around.isascii() and around.isdigit() and len(around) <= _LARGEST_NUMBER else None,
        depth=int(depth) if depth in {str(each) for each in _DEPTHS} else 2,
    )


def _ties(picture: GraphView) -> dict[int, dict[str, list[int]]]:
    """By task: what it waits for, its parts, what blocks it, and what waits for it."""
    found: dict[int, dict[str, list[int]]] = {}
    words = {EdgeKind.WAITS_FOR: "waits for", EdgeKind.PART_OF: "has the part", EdgeKind.BLOCKED_BY: "is blocked by"}
    back = {EdgeKind.WAITS_FOR: "before", EdgeKind.PART_OF: "part of", EdgeKind.BLOCKED_BY: "blocks"}
    for edge in picture.edges:
        found.setdefault(edge.later, {}).setdefault(words[edge.kind], []).append(edge.first)
        found.setdefault(edge.first, {}).setdefault(back[edge.kind], []).append(edge.later)
    return found
