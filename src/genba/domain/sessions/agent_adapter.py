"""The base class of adapters: what one says of its agent besides talking to it."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

from genba.domain.ports import AgentInstance
from genba.domain.processes import OutputListener
from genba.domain.sessions.replies import AgentSession, Ask, InstanceStatus, Reply
from genba.domain.sessions.sandbox import McpServer, Provider


class BaseAdapter(ABC):
    """An AgentAdapter with the defaults of a command that reaches no model. Adapters of other packages inherit it."""

    settings_type: ClassVar[type[Any]]
    """A msgspec struct: what `runner.adapter` takes. The adapter is made with these settings."""
    commits: bool = False
    """True when Genba commits what the agent changed, because it cannot do so itself."""
    install: str = ""
    """The command that installs the tool."""
    uses_egress: bool = False
    """True when the agent reaches a model or MCP servers, which takes egress ports even without a sandbox."""

    @abstractmethod
    def __init__(self, settings: Any, folder: Any) -> None:
        """`folder` is the path of the agent's folder."""

    @abstractmethod
    async def start(self, session: AgentSession) -> AgentInstance: ...

    @abstractmethod
    async def execute(self, instance: AgentInstance, ask: Ask, on_output: OutputListener) -> Reply: ...

    @abstractmethod
    async def status(self, instance: AgentInstance) -> InstanceStatus: ...

    @abstractmethod
    async def stop(self, instance: AgentInstance) -> None: ...

    def problem(self, environment: Mapping[str, str]) -> str:  # noqa: ARG002  (for adapters that look at it)
        """Why the agent cannot be started, where that is known before anything is touched; empty when it can."""
        return ""

    def folders(self, environment: Mapping[str, str]) -> tuple[str, ...]:  # noqa: ARG002  (see problem)
        """Folders of the tool itself, which its sandbox shows."""
        return ()

    def provider(self, environment: Mapping[str, str]) -> Provider | None:  # noqa: ARG002  (see problem)
        """The provider of its model; None where that is not known."""
        return None

    def mcp_servers(self) -> tuple[McpServer, ...]:
        return ()
