"""What was spent: today and in all against the budgets, by day, by agent, by task."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from genba.domain.views.cost import BudgetKind
from genba.entrypoints.web.site import Site

_DAYS = (7, 30, 90)
_NAMES = {BudgetKind.DAY: "the project, today", BudgetKind.PROJECT: "the project, over all time"}


def routes(site: Site) -> list[Route]:
    async def cost(request: Request) -> Response:
        asked = request.query_params.get("days", "")
        days = int(asked) if asked in {str(each) for each in _DAYS} else 30
        picture = await site.look(lambda: site.queries.cost(days))
        return await site.page(request, "cost.html", "cost", picture=picture, days=days, choices=_DAYS, names=_NAMES)

    return [Route("/cost", endpoint=cost, methods=["GET"])]
