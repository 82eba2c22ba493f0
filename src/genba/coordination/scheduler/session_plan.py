"""What a session is held to from its first part to its last, and what one part leaves for the next."""

from typing import Any

import msgspec

from genba.definitions.agent.definition import AgentDefinition
from genba.domain.decoding import reader
from genba.domain.fleet.records import Purpose, SegmentOrder
from genba.domain.sessions.loop_state import LoopState
from genba.domain.sessions.outcomes import Outcome
from genba.domain.sessions.workspaces import Workspace
from genba.execution.run_values import RunPlan


class SessionPlan(msgspec.Struct, frozen=True, kw_only=True):
    """Frozen when the session begins, and kept on the blackboard: any host can go on with it."""

    definition: AgentDefinition
    parameters: dict[str, Any]
    project: str = ""
    branch: str
    base_branch: str
    start_at: str = ""
    """The commit that a new branch begins at; by default the tip of the base branch."""
    may_change: tuple[str, ...] = ()


class SegmentState(msgspec.Struct, frozen=True, kw_only=True):
    """What a part leaves behind."""

    loop: LoopState
    workspace: Workspace
    conflicts: tuple[str, ...] = ()
    """Paths that were in conflict once, and must have no markers left."""


def run_plan(order: SegmentOrder, plan: SessionPlan, kept: SegmentState | None, process: int) -> RunPlan:
    """The next part of a session, as a run that begins or goes on."""
    state = kept.loop if kept is not None else None
    if state is None and order.purpose is Purpose.INTEGRATE:
        begin = plan.definition.entry_step(None)
        state = LoopState(step=begin).end(Outcome.COMPLETED, "its parts are merged")
    return RunPlan(
        run=order.run,
        definition=plan.definition,
        parameters=plan.parameters,
        project=plan.project,
        branch=plan.branch,
        base_branch=plan.base_branch,
        workspace=kept.workspace if kept is not None else None,
        state=_going_on(state),
        merged=order.landed,
        delivered=bool(order.landed),
        gap=order.gap,
        handover=order.handover,
        over=order.over,
        conflicts=tuple(dict.fromkeys((*(kept.conflicts if kept is not None else ()), *order.paths))),
        may_change=plan.may_change,
        process=process,
    )


def _going_on(state: LoopState | None) -> LoopState | None:
    """A loop that was cut off goes on; one that completed has only to be verified and delivered again."""
    if state is None or state.outcome in (None, Outcome.COMPLETED):
        return state
    return msgspec.structs.replace(
        state, outcome=None, reason="", hint="", suspended="", waits_for_subtasks=False, last_failure=None, attempts={}
    )


def write_state(state: SegmentState) -> str:
    return msgspec.json.encode(state).decode()


def read_state(text: str) -> SegmentState | None:
    return reader(SegmentState).decode(text) if text else None
