"""The workers: who carries out what now, how much room there is, and who did what when."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from genba.entrypoints.web.layout import ROW, drawn, ticks
from genba.entrypoints.web.site import Site

REACHES = {"1h": "1 hour", "24h": "24 hours", "7d": "7 days"}
_LISTED = 200


def routes(site: Site) -> list[Route]:
    async def workers(request: Request) -> Response:
        reach = request.query_params.get("reach", "")
        reach = reach if reach in REACHES else "24h"
        by = "agent" if request.query_params.get("by") == "agent" else "worker"
        picture = await site.look(lambda: site.queries.workers(reach, by))
        line = picture.timeline
        everything = (stretch for lane in line.lanes for stretch in lane.stretches)
        listed = sorted(everything, key=lambda each: (each.began, each.run), reverse=True)[:_LISTED]
        return await site.page(
            request,
            "workers.html",
            "workers",
            picture=picture,
            lanes=drawn(line),
            ticks=ticks(line),
            listed=listed,
            reach=reach,
            by=by,
            reaches=REACHES,
            row=ROW,
        )

    return [Route("/workers", endpoint=workers, methods=["GET"])]
