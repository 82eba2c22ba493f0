"""The board: every task in the column of its status, and why it is there."""

from collections.abc import Mapping

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from genba.application.dashboard.queries import SHOWN
from genba.blackboard.views.board_views import ColumnQuery
from genba.domain.errors import NotFoundError
from genba.domain.tasks.task import TaskStatus
from genba.domain.views.summary import ActionResult
from genba.entrypoints.web.site import Site

_LONGEST_TEXT = 200
_MOST = 2000
"""Cards of one column that are drawn at once, however far it is unfolded."""


def routes(site: Site) -> list[Route]:
    async def board(request: Request) -> Response:
        text = request.query_params.get("text", "")[:_LONGEST_TEXT]
        # An unfolded column is drawn again as far as it is visible.
        asked = {each: _number(request.query_params.get(f"show-{each}", "0")) for each in TaskStatus}
        reach = {each: min(number, _MOST) for each, number in asked.items() if number > SHOWN}
        picture = await site.look(lambda: site.queries.board(text, reach))
        return await site.page(request, "board.html", "board", picture=picture, text=text, shown=SHOWN, reach=reach)

    async def more(request: Request) -> Response:
        """The next cards of a column, for who has scrolled that far."""
        word = request.path_params["status"]
        if word not in set(TaskStatus):
            raise NotFoundError(f'"{word[:40]}" is not a status', hint="/board")
        text = request.query_params.get("text", "")[:_LONGEST_TEXT]
        skip = _number(request.query_params.get("skip", "0"))
        wanted = ColumnQuery(status=TaskStatus(word), text=text, limit=SHOWN, skip=skip)
        column = await site.look(lambda: site.queries.column(wanted))
        return await site.fragment(
            request, "board.html", "cards", column=column, text=text, skip=skip + SHOWN, full=SHOWN
        )

    async def pause(_: Request, given: Mapping[str, str]) -> ActionResult:
        deed = site.decisions.resume if given.get("on") == "no" else site.decisions.pause
        return await site.do(deed)

    return [
        Route("/board", endpoint=board, methods=["GET"]),
        Route("/board/{status}", endpoint=more, methods=["GET"]),
        Route("/pause", endpoint=site.deed(pause, "/board"), methods=["POST"]),
    ]


def _number(text: str) -> int:
    return min(int(text), 10**6) if text.isascii() and text.isdigit() and len(text) < 10 else 0  # noqa: PLR2004
