"""API operations on the project, its sessions, its merge queue and decisions."""

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from genba.blackboard.database.paging import Page
from genba.domain.fleet.records import Escalation, FleetSession, MergeEntry
from genba.domain.views.project import ProjectView
from genba.domain.views.summary import ActionResult, BoardView
from genba.entrypoints.web.operations import AfterId, Call, Given, Limit, Name, Number, Operation
from genba.entrypoints.web.site import Site


class AllQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    all: Annotated[bool, Meta(description="Include ended or decided ones.")] = False
    after: AfterId = 0
    limit: Limit = 200


class SessionQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    task: Number | None = None


class QueueQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    target: Annotated[str, Meta(max_length=400, description="Only entries for this branch.")] = ""
    all: Annotated[bool, Meta(description="Include landed and returned entries.")] = False
    after: AfterId = 0
    limit: Limit = 200


class BoardQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    text: Annotated[str, Meta(max_length=200, description="Text in the title.")] = ""


async def _field(site: Site, _: Given) -> Any:
    return await site.window.picture()


async def _status(site: Site, _: Given) -> Any:
    return await site.window.report()


async def _board(site: Site, given: Given) -> Any:
    return await site.look(lambda: site.queries.board(given.query.text))


async def _sessions(site: Site, given: Given) -> Any:
    return await site.look(lambda: site.queries.sessions(given.query.task))


async def _session(site: Site, given: Given) -> Any:
    return await site.look(lambda: site.queries.session(given.path["run"]))


async def _escalations(site: Site, given: Given) -> Any:
    query: AllQuery = given.query
    page = Page(after=query.after, limit=query.limit)
    return await site.look(lambda: site.queries.fleet.escalations(open_only=not query.all, page=page))


async def _queue(site: Site, given: Given) -> Any:
    query: QueueQuery = given.query
    page = Page(after=query.after, limit=query.limit)
    return await site.look(lambda: site.queries.fleet.entries(query.target or None, not query.all, page))


def _of_all(name: str) -> Call:
    async def call(site: Site, _: Given) -> Any:
        return await site.do(getattr(site.decisions, name))

    return call


def _get(path: str, name: str, summary: str, call: Call, answer: Any, command: str = "", **more: Any) -> Operation:
    return Operation(
        method="GET", path=path, name=name, summary=summary, call=call, answer=answer, command=command, **more
    )


def _post(verb: str, summary: str) -> Operation:
    return Operation(
        method="POST",
        path=f"/api/{verb}",
        name=verb,
        summary=summary,
        call=_of_all(verb),
        answer=ActionResult,
        group="fleet",
        command=f"genba {verb}",
    )


FLEET: tuple[Operation, ...] = (
    _get("/api/field", "field", "Health, decisions, running sessions and next commands.", _field, ProjectView),
    _get(
        "/api/status",
        "status",
        "The facilitator's whole report: every issue with its state, evidence, blocker and next command.",
        _status,
        dict[str, Any],
        "genba status --json",
    ),
    _get("/api/board", "board", "The columns with their first cards.", _board, BoardView, query=BoardQuery),
    _get(
        "/api/sessions",
        "listSessions",
        "The sessions of a task, or the newest of every open task.",
        _sessions,
        tuple[FleetSession, ...],
        "genba sessions --json",
        query=SessionQuery,
        group="fleet",
    ),
    _get(
        "/api/sessions/{run}",
        "showSession",
        "One session.",
        _session,
        FleetSession,
        parameters={"run": Name},
        group="fleet",
    ),
    _get(
        "/api/escalations",
        "listEscalations",
        "The open decisions.",
        _escalations,
        tuple[Escalation, ...],
        "genba decisions --json",
        query=AllQuery,
        group="fleet",
    ),
    _get(
        "/api/queue",
        "listQueue",
        "The merge queue, in its order.",
        _queue,
        tuple[MergeEntry, ...],
        "genba queue --json",
        query=QueueQuery,
        group="fleet",
    ),
    _post("pause", "Pause the project."),
    _post("resume", "Resume the project."),
    _post("stop", "Suspend all sessions and end every `genba work`."),
)
