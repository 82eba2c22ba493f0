"""Where the work of a connection is, and whether it is done: what the workflow needs of git and of goals."""

from typing import Protocol

import msgspec

from genba.domain.workflow.actions import AgentConnection, Evidence


class WorkLocation(msgspec.Struct, frozen=True, kw_only=True):
    """Where an instance works."""

    branch: str
    base_branch: str = ""
    path: str = ""
    """Its working tree, as the instance sees it; empty for a manager, who has none to write in."""
    note: str = ""
    """What those who tried before have left."""
    goals: tuple[str, ...] = ()
    """What the work is held to, a line each: the project's, the type's and its own."""


class VerificationResult(msgspec.Struct, frozen=True, kw_only=True):
    """What a verification came to."""

    done: bool
    commit: str = ""
    evidence: Evidence | None = None
    """Why it is not done."""


class WorkVerifier(Protocol):
    """Verifies the work of a connection. It believes git alone."""

    async def place(self, connection: AgentConnection) -> WorkLocation: ...

    async def judge(self, connection: AgentConnection) -> VerificationResult:
        """Verify the work of the connection's task as it stands: the commits of its branch, in a clean checkout.

        For a manager that is the branch its parts were merged into. What was seen is on the blackboard afterwards.
        """
        ...

    async def judge_subtask(self, connection: AgentConnection, number: int) -> VerificationResult:
        """Verify the goals of one subtask of a plan on the newest commit of the branch that it is made on."""
        ...

    async def take(self, connection: AgentConnection, number: int) -> AgentConnection:
        """An external agent takes a task: a session and a working tree of its own. Refused when it is taken already."""
        ...

    async def hand_over(self, connection: AgentConnection, commit: str) -> None:
        """The work of an external agent is verified: review and merge queue take it from here. Safe to repeat.

        For an instance that Genba started nothing is done: its run hands over when the instance has ended.
        """
        ...

    async def let_go(self, connection: AgentConnection, why: str) -> None:
        """An external agent has left without a result: its commits stay on its branch, and the task is open again."""
        ...
