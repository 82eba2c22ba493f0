"""What programs may ask about the field, its sessions, its merge queue, and what waits for people."""

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
    all: Annotated[bool, Meta(description="The ended or decided ones too.")] = False
    after: AfterId = 0
    limit: Limit = 200


class SessionQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    task: Number | None = None


class QueueQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    target: Annotated[str, Meta(max_length=400, description="Only what wants to land on this branch.")] = ""
    all: Annotated[bool, Meta(description="What has landed or came back too.")] = False
    after: AfterId = 0
    limit: Limit = 200


class BoardQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    text: Annotated[str, Meta(max_length=200, description="What stands in a title.")] = ""


async def _field(site: Site, _: Given) -> Any:
    return await site.window.picture()


async def _status(site: Site, _: Given) -> Any:
    return await site.window.told()


async def _board(site: Site, given: Given) -> Any:
    return await site.look(lambda: site.lookout.board(given.query.text))


async def _sessions(site: Site, given: Given) -> Any:
    return await site.look(lambda: site.lookout.sessions(given.query.task))


async def _session(site: Site, given: Given) -> Any:
    return await site.look(lambda: site.lookout.session(given.path["run"]))


async def _escalations(site: Site, given: Given) -> Any:
    query: AllQuery = given.query
    page = Page(after=query.after, limit=query.limit)
    return await site.look(lambda: site.lookout.fleet.escalations(open_only=not query.all, page=page))


async def _queue(site: Site, given: Given) -> Any:
    query: QueueQuery = given.query
    page = Page(after=query.after, limit=query.limit)
    return await site.look(lambda: site.lookout.fleet.entries(query.target or None, not query.all, page))


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
    _get("/api/field", "field", "Health, what needs you, what runs now, and what to do next.", _field, ProjectView),
    _get(
        "/api/status",
        "status",
        "The facilitator's whole report: every issue with its state, evidence, blocker and next command.",
        _status,
        dict[str, Any],
        "genba status --json",
    ),
    _get("/api/board", "board", "Every column with its first cards.", _board, BoardView, query=BoardQuery),
    _get(
        "/api/sessions",
        "listSessions",
        "The sessions of a task, or the newest of every task that has not ended.",
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
        "What only a person can decide.",
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
    _post("pause", "Begin nothing new."),
    _post("resume", "Go on after a pause or a stop."),
    _post("stop", "Suspend what runs, and let every `genba work` end."),
)
