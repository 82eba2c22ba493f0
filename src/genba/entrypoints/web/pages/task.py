"""One task: what it says, how it stands and why, its goals with their evidence, who worked on it, what was changed."""

from collections.abc import Awaitable, Callable, Mapping

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from genba.application.dashboard.start_session import start_run
from genba.application.dashboard.stop_session import stop_task
from genba.application.dashboard.task import TaskWindow
from genba.domain.errors import NotFoundError
from genba.domain.tasks.task import TaskStatus
from genba.domain.views.summary import ActionResult
from genba.entrypoints.web.links import is_web_address, linked
from genba.entrypoints.web.site import Site
from genba.judgement.scheduling.plans import goal_line
from genba.judgement.views.event_text import event_sentence
from genba.judgement.views.task_actions import ways_of

_LONGEST_NUMBER = 18
_LONGEST_WORDS = 100_000
_ENDED = (TaskStatus.DONE, TaskStatus.CANCELLED)
_Work = Callable[[int, Mapping[str, str]], Awaitable[ActionResult]]


def routes(site: Site) -> list[Route]:
    window = TaskWindow(site.queries)

    async def task(request: Request) -> Response:
        number = number_in(request)
        picture = await site.look(lambda: window.picture(number))
        return await site.page(
            request,
            "task.html",
            "board",
            picture=picture,
            task=picture.task,
            linked=linked,
            is_web_address=is_web_address,
            event_sentence=event_sentence,
            goal_line=goal_line,
            ways_of=ways_of,
        )

    async def goal_log(request: Request) -> Response:
        number_in(request)
        text, cut = await site.look(lambda: window.goal_log(request.path_params["log"]))
        return await site.fragment(request, "task_pieces.html", "goal_log", text=text, cut=cut)

    async def verdict(request: Request) -> Response:
        number, id_ = number_in(request), number_in(request, "id")
        found = await site.look(lambda: window.verdict(number, id_))
        return await site.fragment(request, "task_pieces.html", "verdict", verification=found, task_number=number)

    async def changes(request: Request) -> Response:
        number = number_in(request)
        diff = await window.compare(number)
        return await site.page(request, "diff.html", "board", diff=diff)

    async def file(request: Request) -> Response:
        number = number_in(request)
        path = request.query_params.get("path", "")
        diff = await window.compare(number)
        found = await site.look(lambda: window.file(diff, path))
        return await site.fragment(request, "diff_pieces.html", "lines", file=found)

    address = "/tasks/{number}"
    posts = [
        Route(f"{address}/{name}", endpoint=_action(site, work), methods=["POST"])
        for name, work in _actions(site).items()
    ]
    return [
        Route(address, endpoint=task, methods=["GET"]),
        Route(f"{address}/goals/{{log}}", endpoint=goal_log, methods=["GET"]),
        Route(f"{address}/verdicts/{{id}}", endpoint=verdict, methods=["GET"]),
        Route(f"{address}/diff", endpoint=changes, methods=["GET"]),
        Route(f"{address}/diff/file", endpoint=file, methods=["GET"]),
        *posts,
    ]


def _actions(site: Site) -> dict[str, _Work]:
    """What the buttons of a task do, by the last word of their addresses."""
    decisions = site.decisions

    def moved(to: TaskStatus, only_from: tuple[TaskStatus, ...]) -> _Work:
        return lambda number, given: site.do(
            lambda: decisions.move(number, to, _text(given, "reason"), only_from=only_from)
        )

    living = tuple(status for status in TaskStatus if not status.ended)
    return {
        "run": lambda number, given: start_run(site.queries.context, _text(given, "agent"), number),
        "stop": lambda number, given: stop_task(decisions, number, _text(given, "reason")),
        "pause": lambda number, _: site.do(lambda: decisions.pause(number)),
        "resume": lambda number, _: site.do(lambda: decisions.resume(number)),
        "unblock": moved(TaskStatus.OPEN, (TaskStatus.BLOCKED,)),
        "reopen": moved(TaskStatus.OPEN, _ENDED),
        "cancel": moved(TaskStatus.CANCELLED, living),
        "comment": lambda number, given: site.do(lambda: decisions.comment(number, _text(given, "text"))),
        "answer": lambda number, given: site.do(lambda: decisions.answer(number, _text(given, "text"), _asked(given))),
        "approve": lambda number, given: site.do(
            lambda: decisions.approve(number, _text(given, "commit") or None, _text(given, "reason"), _asked(given))
        ),
        "reject": lambda number, given: site.do(
            lambda: decisions.reject(number, _text(given, "reason"), _asked(given))
        ),
    }


def _action(site: Site, work: _Work) -> Callable[[Request], Awaitable[Response]]:
    """Do it, and lead back to the task where there is no script."""

    async def answer(request: Request) -> Response:
        number = number_in(request)

        async def done(_: Request, given: Mapping[str, str]) -> ActionResult:
            return await work(number, given)

        return await site.deed(done, f"/tasks/{number}")(request)

    return answer


def number_in(request: Request, name: str = "number") -> int:
    """A number in the address; what is none leads nowhere."""
    text = str(request.path_params[name])
    if not (text.isascii() and text.isdigit() and len(text) <= _LONGEST_NUMBER):
        raise NotFoundError("there is no such page", hint="go to the board: /board")
    return int(text)


def _asked(given: Mapping[str, str]) -> int | None:
    """What was shown where the decision was made: a page may be older than the newest question."""
    text = given.get("asked", "")
    if not text:
        return None
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _LONGEST_NUMBER else 0


def _text(given: Mapping[str, str], name: str) -> str:
    return given.get(name, "")[:_LONGEST_WORDS].strip()
