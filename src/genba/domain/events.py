"""What the journal tells: one typed event per line.

Every event carries the run, and where they apply the issue, the step and the iteration. An event says what happened;
it never decides anything.
"""

from typing import Any

import msgspec

from genba.domain.sessions.evidence import CheckResult, Commit
from genba.domain.sessions.outcomes import Outcome
from genba.domain.sessions.replies import Usage
from genba.domain.sessions.workspaces import MergeStatus, Workspace


class _Event(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="event"):
    time: str = ""
    run: str = ""
    agent: str = ""
    issue: int | None = None
    step: str | None = None
    iteration: int | None = None


class RunStarted(_Event, frozen=True, kw_only=True, tag="run_started"):
    adapter: str
    model: str
    definition: str
    """The hash of the frozen definition that runs."""
    workspace: Workspace
    project: str = ""
    commits: int = 0
    """How many commits the branch has already: the work of an earlier run that this one goes on with."""
    title: str = ""
    parameters: dict[str, Any] = {}
    limits: dict[str, Any] = {}
    process: int = 0
    sandbox: str = ""
    """The kind of sandbox."""
    network: str = ""


class RunResumed(_Event, frozen=True, kw_only=True, tag="run_resumed"):
    process: int = 0
    commits: int = 0
    """How many commits the branch had already."""
    started: RunStarted | None = None
    """The same facts that a start tells, as they are now."""


class Notice(_Event, frozen=True, kw_only=True, tag="notice"):
    message: str


class IterationStarted(_Event, frozen=True, kw_only=True, tag="iteration_started"):
    model: str
    prompt_from: str
    prompt: str = ""


class AgentStarted(_Event, frozen=True, kw_only=True, tag="agent_started"):
    process: int


class AgentOutput(_Event, frozen=True, kw_only=True, tag="agent_output"):
    stream: str
    text: str
    """One or more whole lines, as they were printed together."""


class OutputLeftOut(_Event, frozen=True, kw_only=True, tag="output_left_out"):
    """Output between the event before and the event after this one that is not in the journal."""

    stream: str
    bytes: int
    lines: int


class ToolUsed(_Event, frozen=True, kw_only=True, tag="tool_used"):
    """The instance used a tool, as its own events tell it."""

    tool: str
    target: str = ""


class EgressUsed(_Event, frozen=True, kw_only=True, tag="egress_used"):
    """The instance asked to leave its sandbox, and was allowed or refused. Once for each target."""

    port: str
    verdict: str
    target: str
    detail: str = ""


class AgentEnded(_Event, frozen=True, kw_only=True, tag="agent_ended"):
    exit_code: int
    seconds: float


class ReplyReceived(_Event, frozen=True, kw_only=True, tag="reply_received"):
    """What the instance answered, before anybody judged it."""

    text: str
    structured: dict[str, Any] | None = None
    session_id: str | None = None
    usage: Usage = Usage()


class AskRetried(_Event, frozen=True, kw_only=True, tag="ask_retried"):
    """A recoverable error; the question is put again after a wait."""

    reason: str
    wait_seconds: float
    attempt: int


class ReplyRefused(_Event, frozen=True, kw_only=True, tag="reply_refused"):
    """A reply that does not fit. With tries left, the question is put again, with the error."""

    reason: str
    attempt: int
    again: bool = True


class ActionHandled(_Event, frozen=True, kw_only=True, tag="action_handled"):
    type: str
    handler: str
    result: str = ""


class ActionRefused(_Event, frozen=True, kw_only=True, tag="action_refused"):
    type: str
    reason: str


class CheckFinished(_Event, frozen=True, kw_only=True, tag="check_finished"):
    result: CheckResult


class GoalChecked(_Event, frozen=True, kw_only=True, tag="goal_checked"):
    """The result of one goal on a commit, in a clean checkout of it."""

    goal: str
    level: str
    result: CheckResult
    required: bool = True
    log: str = ""
    """The whole output: `genba logs goal NAME`."""
    cached: bool = False


class VerificationFinished(_Event, frozen=True, kw_only=True, tag="verification_finished"):
    """The verdict on a commit: done, rejected with the reason, or error."""

    status: str
    commit: str
    reason: str = ""
    findings: tuple[str, ...] = ()
    seconds: float = 0.0


class IterationFinished(_Event, frozen=True, kw_only=True, tag="iteration_finished"):
    intent: str
    verdict: str
    reason: str
    usage: Usage
    seconds: float
    commits: tuple[Commit, ...] = ()
    files: int = 0
    state: dict[str, Any]
    """Everything that the next iteration needs: a killed run goes on from here."""


class WorkSentBack(_Event, frozen=True, kw_only=True, tag="work_sent_back"):
    """A check failed on what would have landed: the loop goes on from this state."""

    reason: str
    state: dict[str, Any]


class LoopEnded(_Event, frozen=True, kw_only=True, tag="loop_ended"):
    outcome: Outcome
    reason: str
    usage: Usage = Usage()
    seconds: float = 0.0
    """What the loop has cost so far, over all resumptions, unfinished iterations included."""


class EffectPlanned(_Event, frozen=True, kw_only=True, tag="effect_planned"):
    """A side effect, recorded before it is carried out."""

    effect: str
    detail: dict[str, Any] = {}


class EffectDone(_Event, frozen=True, kw_only=True, tag="effect_done"):
    effect: str
    detail: dict[str, Any] = {}


class MergeFinished(_Event, frozen=True, kw_only=True, tag="merge_finished"):
    status: MergeStatus
    commit: str = ""
    paths: tuple[str, ...] = ()
    detail: str = ""


class WorkspaceClosed(_Event, frozen=True, kw_only=True, tag="workspace_closed"):
    removed: bool
    path: str
    rescued: str = ""
    reason: str = ""


class RunEnded(_Event, frozen=True, kw_only=True, tag="run_ended"):
    outcome: Outcome
    reason: str
    usage: Usage
    iterations: int
    seconds: float
    merged: str = ""


Event = (
    RunStarted
    | RunResumed
    | Notice
    | IterationStarted
    | AgentStarted
    | AgentOutput
    | OutputLeftOut
    | ToolUsed
    | EgressUsed
    | AgentEnded
    | ReplyReceived
    | AskRetried
    | ReplyRefused
    | ActionHandled
    | ActionRefused
    | CheckFinished
    | GoalChecked
    | VerificationFinished
    | IterationFinished
    | WorkSentBack
    | LoopEnded
    | EffectPlanned
    | EffectDone
    | MergeFinished
    | WorkspaceClosed
    | RunEnded
)
