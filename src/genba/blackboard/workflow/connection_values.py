"""What the blackboard says of those who call: their credentials, their seats, and the numbers they are held to."""

import msgspec

from genba.domain.errors import StateConflictError
from genba.domain.workflow.actions import AgentConnection


class Credential(msgspec.Struct, frozen=True, kw_only=True):
    """A secret that is good for one authentication of one run. Only its hash is kept."""

    id: str
    run: str
    agent: str
    agent_id: str
    task: int
    secret_hash: str
    expires_at: str
    used_at: str = ""
    revoked_at: str = ""

    def is_good(self, at: str) -> bool:
        """Whether it may still be used; times are compared as the blackboard writes them."""
        return not self.used_at and not self.revoked_at and at < self.expires_at


class StoredConnection(msgspec.Struct, frozen=True, kw_only=True):
    """A seat, with all that is needed to believe whoever comes with its token."""

    seat: AgentConnection
    token_hash: str
    expires_at: str
    agent_active: bool = True
    exit: str = ""
    """The reason for which it was sent home; empty while it may go on."""
    said: str = ""
    calls: int = 0
    last_action: str = ""

    def is_good(self, at: str) -> bool:
        """Whether its token is still good; times are compared as the blackboard writes them."""
        return self.seat.status == "active" and self.agent_active and at < self.expires_at


class WorkflowLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Numbers of the settings that the next action depends on."""

    park_seconds: float = 60.0
    most_repeats: int = 25
    most_reworks: int = 10
    most_parts: int = 12
    most_depth: int = 2
    """How many levels below a task may be taken apart further."""


LIMITS = WorkflowLimits()


class PlannedAlreadyError(StateConflictError):
    """The parent has its subtasks already: those are the ones to go on with."""

    def __init__(self, message: str, numbers: tuple[int, ...], hint: str = "") -> None:
        super().__init__(message, unchanged="nothing was changed.", hint=hint)
        self.numbers = numbers
