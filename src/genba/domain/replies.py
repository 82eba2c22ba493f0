"""A question to an instance, and what it answered."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

import msgspec

from genba.domain.outcomes import PermissionMode


class Usage(msgspec.Struct, frozen=True):
    """What a reply cost. Always a delta, never a running total of a session."""

    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float = 0.0

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens

    def plus(self, other: "Usage") -> "Usage":
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


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """What an instance answered in one iteration."""

    text: str
    structured: dict[str, Any] | None = None
    """Structured output that the adapter received as such; otherwise it is looked for in the text."""
    session_id: str | None = None
    usage: Usage = Usage()
    tools_used: tuple[str, ...] = ()
    exit_code: int = 0
    seconds: float = 0.0


class InstanceStatus(StrEnum):
    IDLE = "idle"
    RUNNING = "running"
    STOPPED = "stopped"


class AgentSession(msgspec.Struct, frozen=True, kw_only=True):
    """Where an instance lives: its working tree, its own folder for files, and its environment."""

    run: str
    agent: str
    workdir: str
    folder: str
    environment: Mapping[str, str]
