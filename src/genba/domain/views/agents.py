"""Agents on the dashboard: purpose, results and configuration."""

from typing import Any

import msgspec

from genba.domain.problems import Problem


class AgentRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What the sessions of an agent came to."""

    sessions: int = 0
    running: int = 0
    waiting: int = 0
    ended: int = 0
    completed: int = 0
    tokens: int = 0
    cost_usd: float = 0.0
    success: float | None = None
    """The completed among the ended ones, from 0 to 1; nothing where none has ended."""
    last_at: str = ""
    """When its newest session began."""


class AgentCard(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    title: str = ""
    description: str = ""
    capabilities: tuple[str, ...] = ()
    adapter: str = ""
    model: str = ""
    source: str = ""
    """The folder that it is defined in; `registered`: it comes by itself."""
    problems: tuple[Problem, ...] = ()
    """Why it cannot run."""
    record: AgentRecord = AgentRecord()


class AgentListView(msgspec.Struct, frozen=True, kw_only=True):
    agents: tuple[AgentCard, ...] = ()
    gone: tuple[AgentCard, ...] = ()
    """Agents that have worked here, and that are not defined any more."""


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """One effective value, and where it came from."""

    path: str
    value: Any
    source: str
    masked: bool = False
    """The value is a secret, or could be one: it is not shown."""


class StepTransitionView(msgspec.Struct, frozen=True, kw_only=True):
    """Where a step leads, and by which intents."""

    target: str
    """Empty: the end."""
    intents: tuple[str, ...]


class StepView(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    kind: str
    """work | verification | closure"""
    entry: bool = False
    ways: tuple[StepTransitionView, ...] = ()
    conditions: tuple[str, ...] = ()
    prompt: str = ""
    """Where its prompt comes from."""
    model: str = ""
    x: int = 0
    y: int = 0


class AgentParameter(msgspec.Struct, frozen=True, kw_only=True):
    """A parameter of an agent."""

    option: str
    type: str
    required: bool = False
    description: str = ""


class AgentPrompt(msgspec.Struct, frozen=True, kw_only=True):
    use: str
    """`system`, a step, or a step after a failure."""
    source: str
    """Where it is."""


class AgentSession(msgspec.Struct, frozen=True, kw_only=True):
    run: str
    task: int
    title: str
    purpose: str
    attempt: int
    status: str
    """running | waiting | suspended | ended"""
    outcome: str = ""
    reason: str = ""
    iterations: int = 0
    tokens: int = 0
    cost_usd: float = 0.0
    started_at: str = ""
    ended_at: str = ""


class AgentView(msgspec.Struct, frozen=True, kw_only=True):
    card: AgentCard
    completes: str = ""
    """How it completes."""
    digest: str = ""
    parameters: tuple[AgentParameter, ...] = ()
    prompts: tuple[AgentPrompt, ...] = ()
    settings: tuple[Setting, ...] = ()
    steps: tuple[StepView, ...] = ()
    end: tuple[int, int] | None = None
    """Where the end of the flow stands."""
    asks: bool = False
    """It asks for its next action, and has no steps of its own."""
    sessions: tuple[AgentSession, ...] = ()
    """The newest ones first."""
