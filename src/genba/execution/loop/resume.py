"""Going on after a killed run: its state is what the journal says of its last finished iteration."""

from collections.abc import Iterable

import msgspec

from genba.domain.decoding import fitted
from genba.domain.errors import NotFoundError, StateConflictError
from genba.domain.events import (
    Event,
    IterationFinished,
    LoopEnded,
    MergeFinished,
    RunEnded,
    RunResumed,
    RunStarted,
    WorkSentBack,
    WorkspaceClosed,
)
from genba.domain.sessions.loop_state import LoopState
from genba.domain.sessions.outcomes import Outcome
from genba.domain.sessions.workspaces import MergeStatus, Workspace


class Resumption(msgspec.Struct, frozen=True, kw_only=True):
    """What a run left behind."""

    workspace: Workspace
    state: LoopState | None
    merged: str = ""
    """The merge commit, when the run was cut off after its merge."""
    delivered: bool = False
    """Whether the working tree was already removed, so that only the closure is left."""
    commits: int = 0


def read_resumption(run: str, events: Iterable[Event]) -> Resumption:
    """Where a run stands, by its own journal."""
    started: RunStarted | None = None
    state: LoopState | None = None
    ended: RunEnded | None = None
    spent: LoopEnded | None = None
    merged, delivered, commits = "", False, 0
    for event in events:
        match event:
            case RunStarted():
                started = event
            case IterationFinished(state=raw):
                state = _state(raw, run)
                commits = len(event.commits)
            case WorkSentBack(state=raw):
                state = _state(raw, run)
            case WorkspaceClosed(removed=True):
                delivered = True
            case MergeFinished(status=MergeStatus.MERGED, commit=commit):
                merged = commit
            case RunResumed():
                ended = None
            case LoopEnded():
                spent = event
            case RunEnded():
                ended = event
            case _:
                continue
    if started is None:
        raise NotFoundError(f"the journal of {run} has no beginning", hint="genba logs")
    if ended is not None and ended.outcome is Outcome.COMPLETED:
        raise StateConflictError(f"{run} is completed; there is nothing to resume", hint=f"genba logs {run}")
    return Resumption(
        workspace=started.workspace,
        state=_reopened(state, spent),
        merged=merged,
        delivered=delivered,
        commits=commits,
    )


def _state(raw: dict[str, object], run: str) -> LoopState:
    try:
        return fitted(raw, LoopState)
    except msgspec.ValidationError as error:
        raise StateConflictError(
            f"the journal of {run} cannot be resumed from: {error}", hint="start a new run on the same branch"
        ) from error


def _reopened(state: LoopState | None, spent: LoopEnded | None) -> LoopState | None:
    """A run that ended without completing gets another chance; one that completed still has to be finalized."""
    if state is None or state.outcome is Outcome.COMPLETED:
        return state
    fresh = msgspec.structs.replace(state, outcome=None, reason="", last_failure=None, attempts={})
    if spent is None or spent.seconds < state.seconds:
        return fresh
    return msgspec.structs.replace(fresh, usage=spent.usage, seconds=spent.seconds)
