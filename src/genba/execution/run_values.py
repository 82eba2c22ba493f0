"""What a run is asked to do, where it works, and how it ended: values that outlive the process."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from genba.definitions.agent.definition import AgentDefinition
from genba.domain.sessions.loop_state import Feedback, LoopState
from genba.domain.sessions.outcomes import Outcome
from genba.domain.sessions.replies import Usage
from genba.domain.sessions.workspaces import MergeStatus, Workspace
from genba.domain.tracker.issues import Issue


class ReviewOrder(msgspec.Struct, frozen=True, kw_only=True):
    """The commit that a session reviews, and what its verdict counts for."""

    of: int
    """The task whose work is reviewed."""
    commit: str
    task: int | None = None
    """The review task; None where the verdict is advice, and a person decides."""


class ReviewResult(msgspec.Struct, frozen=True, kw_only=True):
    """A verdict on one commit."""

    task: int
    commit: str
    verdict: Literal["approved", "changes_requested"]
    findings: tuple[str, ...]
    summary: str
    reviewer: str
    recorded: bool
    """Whether it counts for the task; advice does not."""


class RunPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What to run. A resumed run has a workspace and a state already."""

    run: str
    definition: AgentDefinition
    parameters: dict[str, Any]
    project: str = ""
    mode: str | None = None
    branch: str | None = None
    base_branch: str | None = None
    workspace: Workspace | None = None
    state: LoopState | None = None
    merged: str = ""
    delivered: bool = False
    """A resumed run whose working tree is already removed: only its closure is left."""
    commits: int = 0
    """How many commits the branch had when the run was cut off."""
    may_change: tuple[str, ...] = ()
    """Protected paths that this run may change, besides those of its task."""
    accepts_risk: bool = False
    """True when the user accepts an agent with bypassPermissions and no sandbox."""
    gap: Feedback | None = None
    """What a run that goes on must know first: an answer, a conflict, a goal that fails, what a reviewer found."""
    handover: str = ""
    """What others who tried before have left for it."""
    over: str = ""
    """The commit of the base that the work came back from: it is merged into the branch first."""
    conflicts: tuple[str, ...] = ()
    """Paths that were in conflict: work that still has the markers in them is not done."""
    process: int = 0
    review: ReviewOrder | None = None
    """The review that the session performs."""

    @property
    def issue(self) -> int | None:
        number = self.parameters.get("issue")
        return int(number) if isinstance(number, int | float) else None


class Opened(msgspec.Struct, frozen=True, kw_only=True):
    """Where a run works, and on what: all that another process needs to go on with it."""

    workspace: Workspace
    issue: Issue | None = None
    requirements: tuple[Issue, ...] = ()
    gap: Feedback | None = None
    conflicts: tuple[str, ...] = ()
    """Paths that have markers of a conflict with what others did to its pull request."""
    reviewed: str = ""
    """The key of the request for changes that `gap` describes."""


class RunResult(msgspec.Struct, frozen=True, kw_only=True):
    """How a run ended, with everything that a screen or a script needs."""

    run: str
    agent: str
    outcome: Outcome
    reason: str
    hint: str = ""
    iterations: int
    seconds: float
    usage: Usage
    branch: str
    workdir: str
    sandbox: str = ""
    """The kind of its sandbox."""
    merged: str = ""
    merge: MergeStatus | None = None
    conflicts: tuple[str, ...] = ()
    pull_request: str = ""
    issue: int | None = None
    verified: str = ""
    """The commit that every required goal passed on; empty when nothing was verified."""
    verdict: str = ""
    """The last verdict: done, rejected with its reason, or error."""
    output: dict[str, Any] | None = None
    """The structured output of the last reply."""
    review: ReviewResult | None = None
    """The verdict of a session that reviewed."""
