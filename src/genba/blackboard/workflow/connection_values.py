"""Credentials and connections of agents as the blackboard stores them, and the limits of the workflow."""

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
    """A connection with what is needed to check its token."""

    connection: AgentConnection
    token_hash: str
    expires_at: str
    agent_active: bool = True
    exit: str = ""
    """The reason for which it was stopped; empty while it may go on."""
    message: str = ""
    calls: int = 0
    last_action: str = ""

    def is_good(self, at: str) -> bool:
        """Whether its token is still good; times are compared as the blackboard writes them."""
        return self.connection.status == "active" and self.agent_active and at < self.expires_at


class WorkflowLimits(msgspec.Struct, frozen=True, kw_only=True):
    """Numbers of the settings that the next action depends on."""

    suspend_seconds: float = 60.0
    max_repeats: int = 25
    max_reworks: int = 10
    max_subtasks: int = 12
    max_depth: int = 2
    """How many levels below a task may be taken apart further."""


LIMITS = WorkflowLimits()


class PlannedAlreadyError(StateConflictError):
    """The parent has its subtasks already: those are the ones to go on with."""

    def __init__(self, message: str, numbers: tuple[int, ...], hint: str = "") -> None:
        super().__init__(message, unchanged="nothing was changed.", hint=hint)
        self.numbers = numbers
