"""API operations on the views of the dashboard: workers, graph, agents, cost, the log of a session."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from genba.application.dashboard.session import SessionWindow
from genba.application.dashboard.start_session import start_run
from genba.domain.views.agents import AgentListView, AgentView
from genba.domain.views.cost import CostView
from genba.domain.views.graph import GraphView
from genba.domain.views.session import LogPage, SessionView
from genba.domain.views.summary import ActionResult
from genba.domain.views.workers import WorkerListView
from genba.entrypoints.web.operations import Given, Name, Number, Operation
from genba.entrypoints.web.site import Site

_LARGEST_PLACE = 10**15


class WorkersQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    reach: Annotated[Literal["1h", "24h", "7d"], Meta(description="How far back.")] = "24h"
    by: Annotated[Literal["worker", "agent"], Meta(description="One lane per worker or per agent.")] = "worker"


class GraphQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    all: Annotated[bool, Meta(description="Include ended ones.")] = False
    around: Number | None = None
    depth: Annotated[int, Meta(ge=1, le=6, description="With `around`: the maximum distance.")] = 2


class CostQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    days: Annotated[int, Meta(ge=1, le=366)] = 30


class LogQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    before: (
        Annotated[int, Meta(ge=0, le=_LARGEST_PLACE, description="Only the part before this offset, in bytes.")] | None
    ) = None
    after: Annotated[int, Meta(ge=0, le=_LARGEST_PLACE, description="Only the part after this offset.")] | None = None


class RunBody(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    agent: Name


async def _workers(site: Site, given: Given) -> Any:
    return await site.look(lambda: site.queries.workers(given.query.reach, given.query.by))


async def _graph(site: Site, given: Given) -> Any:
    query: GraphQuery = given.query
    return await site.look(lambda: site.queries.graph(ended_too=query.all, around=query.around, depth=query.depth))


async def _cost(site: Site, given: Given) -> Any:
    return await site.look(lambda: site.queries.cost(given.query.days))


async def _agents(site: Site, _: Given) -> Any:
    return await site.look(site.queries.agents)


async def _agent(site: Site, given: Given) -> Any:
    return await site.look(lambda: site.queries.agent(given.path["name"]))


async def _run(site: Site, given: Given) -> Any:
    return await site.look(lambda: SessionWindow(site.queries).picture(given.path["run"]))


async def _log(site: Site, given: Given) -> Any:
    run, query = given.path["run"], given.query
    window = SessionWindow(site.queries)
    if query.after is not None:
        return await site.look(lambda: window.since(run, query.after))
    return await site.look(lambda: window.last(run, query.before))


async def _start(site: Site, given: Given) -> Any:
    return await start_run(site.queries.context, given.body.agent, given.path["number"])


def _get(path: str, name: str, summary: str, call: Any, answer: Any, **more: Any) -> Operation:
    return Operation(method="GET", path=path, name=name, summary=summary, call=call, answer=answer, **more)


PICTURES: tuple[Operation, ...] = (
    _get(
        "/api/workers",
        "workers",
        "Workers, their sessions and their history.",
        _workers,
        WorkerListView,
        query=WorkersQuery,
        group="fleet",
    ),
    _get("/api/graph", "graph", "The dependencies of tasks.", _graph, GraphView, query=GraphQuery),
    _get("/api/cost", "cost", "Cost by day, agent and task.", _cost, CostView, query=CostQuery),
    _get("/api/agents", "listAgents", "The agents and their success.", _agents, AgentListView, group="agents"),
    _get(
        "/api/agents/{name}",
        "showAgent",
        "One agent: its definition and the origin of each setting.",
        _agent,
        AgentView,
        parameters={"name": Name},
        group="agents",
    ),
    _get(
        "/api/runs/{run}",
        "showRun",
        "One session: its iterations, usage and result.",
        _run,
        SessionView,
        parameters={"run": Name},
        group="fleet",
    ),
    _get(
        "/api/runs/{run}/log",
        "readLog",
        "A part of the log of a session: its end, or the part before or after an offset.",
        _log,
        LogPage,
        parameters={"run": Name},
        query=LogQuery,
        group="fleet",
    ),
    Operation(
        method="POST",
        path="/api/tasks/{number}/run",
        name="runTask",
        summary="Start an agent on the task. The answer arrives when the session has started.",
        call=_start,
        answer=ActionResult,
        parameters={"number": Number},
        body=RunBody,
        group="tasks",
        command="genba run AGENT --issue NUMBER",
    ),
)
