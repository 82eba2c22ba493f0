"""A question to an instance, and what it answered."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import msgspec

from genba.domain.processes import OUTPUT_BYTES
from genba.domain.sessions.outcomes import PermissionMode

if TYPE_CHECKING:  # ports name these types themselves
    from genba.domain.ports import Processes
    from genba.domain.sessions.sandbox import McpServer


MOST_TOKENS, MOST_USD = 10**10, 10_000.0
"""More than any single reply costs."""


class Usage(msgspec.Struct, frozen=True):
    """What a reply cost. Always a delta, never a running total of a session."""

    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float = 0.0

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens

    def believable(self) -> bool:
        """False for numbers that no reply can have cost: an agent that is a command reports them itself."""
        counts = (self.input_tokens, self.output_tokens)
        return all(0 <= count <= MOST_TOKENS for count in counts) and 0 <= self.cost_usd <= MOST_USD

    def plus(self, other: Usage) -> Usage:
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cost_usd + other.cost_usd,
        )


class Ask(msgspec.Struct, frozen=True, kw_only=True):
    """Everything an adapter needs for one turn. It holds no secret."""

    run: str
    agent: str
    step: str
    iteration: int
    number: int
    """How many times this run has asked, this one included: re-asks and retries count."""
    number_in_step: int
    prompt: str
    system_prompt: str
    model: str
    allowed_tools: tuple[str, ...] | None
    permission_mode: PermissionMode
    session_id: str | None
    output_schema: dict[str, Any] | None
    issue: int | None
    timeout_seconds: float
    idle_seconds: float
    output_bytes: int = OUTPUT_BYTES
    """How much of what the agent prints is reported: what the journal has room for."""


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """What an instance answered in one iteration."""

    text: str
    structured: dict[str, Any] | None = None
    """Structured output that the adapter received as such; otherwise it is looked for in the text."""
    session_id: str | None = None
    usage: Usage = Usage()
    tools_used: tuple[str, ...] = ()
    tools_denied: tuple[str, ...] = ()
    """What it wanted to use and was not allowed to."""
    exit_code: int = 0
    seconds: float = 0.0
    failure: str = ""
    """Why its end is no answer by itself. The work may be done all the same: the caller looks at it."""


class InstanceStatus(StrEnum):
    IDLE = "idle"
    RUNNING = "running"
    STOPPED = "stopped"


class AgentSession(msgspec.Struct, frozen=True, kw_only=True):
    """Where an instance lives: its working tree, its own folders, its environment, and what runs it."""

    run: str
    agent: str
    workdir: str
    folder: str
    """For the files of the questions. The instance can read and write it."""
    environment: Mapping[str, str]
    processes: Processes
    """What starts the instance, in its sandbox where there is one."""
    home: str = ""
    """The private HOME of this session; it lasts as long as the run can be resumed."""
    sandboxed: bool = False
    model_url: str = ""
    """Where the model is asked; empty: where the tool itself knows."""
    model_key: str = ""
    """What is sent as the key: with a broker a word that is good for this session alone."""
    proxy_url: str = ""
    """The way to the rest of the network; empty where there is none, or none is needed."""
    mcp: tuple[McpServer, ...] = ()
