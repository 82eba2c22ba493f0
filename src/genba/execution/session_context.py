"""The outside, as one run sees it: a bundle of ports."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any

import msgspec

from genba.domain.ports import (
    AgentAdapter,
    Checks,
    Clock,
    Forge,
    Inbox,
    Journal,
    Processes,
    Repository,
    Rework,
    Steps,
    TaskLedger,
    Tracker,
    Workflow,
    WorkingTrees,
)
from genba.domain.sessions.replies import AgentSession
from genba.domain.sessions.workspaces import Workspace
from genba.execution.loop.journal_steps import PlainSteps
from genba.judgement.loop.completion import CompletionHandler

if TYPE_CHECKING:
    from genba.domain.sessions.evidence import CheckResult
    from genba.execution.delivery.finalize import Finalized
    from genba.execution.loop.state_driven import Control
    from genba.execution.verification.policy import PolicyResolver
    from genba.execution.verification.verify import Verifier

ActionHandler = Callable[[dict[str, Any]], object]
Quarters = Callable[[Workspace], AbstractAsyncContextManager[AgentSession]]


class SessionContext(msgspec.Struct, frozen=True, kw_only=True):
    adapter: AgentAdapter
    adapter_commits: bool
    """Whether Genba commits what the instance left: its adapter asks for it, and the working tree is its own."""
    trees: WorkingTrees
    repository: Repository
    checks: Checks
    processes: Processes
    tracker: Tracker
    forge: Forge | None
    journal: Journal
    clock: Clock
    redact: Callable[[str], str]
    """Hides secrets in a text that leaves the run."""
    jitter: Callable[[], float]
    """A number in [0, 1) that spreads the retries of many workers."""
    completion_handlers: Mapping[str, CompletionHandler]
    action_handlers: Mapping[str, ActionHandler]
    quarters: Quarters
    """Opens the place where the instances of a run live, and closes it with everything in it."""
    sandbox: str = ""
    """The kind of walls around the quarters."""
    network: str = ""
    fallen_back: str = ""
    """Why there are no walls, where nobody chose to have none."""
    ledger: TaskLedger | None = None
    """The blackboard, for a run that works on a task of it."""
    rulebook: PolicyResolver | None = None
    """What the project calls done; None when neither a task nor the settings ask for a verification."""
    verifier: Verifier | None = None
    is_running: Callable[[str], bool] = lambda _branch: False
    """Whether some run on this machine holds a branch."""
    host: str = ""
    """The name of this machine, for the session on the blackboard."""
    steps: Steps = PlainSteps()
    """What remembers how far the run has come, besides its journal."""
    durable: bool = False
    """Whether somebody else goes on with the run when this process ends: a stop leaves it as it is."""
    rework: Rework | None = None
    """Brings what happened on the base into work that came back from it."""
    accepts: Callable[[dict[str, Any] | None], CheckResult | None] = lambda _output: None
    """What is wrong with the structured output of a run whose answer is its work, such as a plan; None: nothing."""
    inbox: Inbox | None = None
    """What other agents say, for a run that works on a task of the blackboard."""
    answers: Callable[[dict[str, Any] | None, Workspace], Awaitable[Finalized]] | None = None
    """Delivers the structured output of a run whose answer is its work. Safe to repeat."""
    reviewer: str = "reviewer"
    """The agent that reviews the work of others."""
    review_rounds: int = 3
    """How often reviewers may request changes before a person decides."""
    workflow: Workflow | None = None
    """What an agent asks for its next action, as the run sees it; None for agents that are asked themselves."""
    control: Control | None = None
    """What such an agent is told of itself."""
    follows: bool = False
    """Whether somebody follows the pull requests of the forge: they are reviewed there, and their end is noticed."""
    refresh: Callable[[int], Awaitable[None]] | None = None
    """Reads the issue of the run anew; None where somebody else keeps what is known of it."""
    stages: Mapping[str, tuple[str, ...]] = {}
    """By type of task: the agents that work on it one after the other."""
    knows_agent: Callable[[str], bool] = lambda _name: True
    """Whether there is an agent of that name."""
    hands_over: bool = False
    """Whether verified work is handed to a merge queue, rather than landed by the run itself."""
