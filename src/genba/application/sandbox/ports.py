"""What the environments of agents and goals need of the connections."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

if TYPE_CHECKING:
    from genba.application.ports import Files
    from genba.domain.sessions.agent_adapter import BaseAdapter
    from genba.domain.sessions.egress import EgressListener
    from genba.domain.sessions.sandbox import EgressPort, Network, Provider


class EgressServer(Protocol):
    """Serves the connections to one egress port."""

    async def serve(self, reader: Any, writer: Any) -> None: ...


class EgressServers(Protocol):
    """Makes what serves egress ports. A server whose settings may be wrong fails when it is made."""

    def broker(self, provider: Provider, key: str, report: EgressListener) -> tuple[EgressServer, str]:
        """Forwards calls to a model with the user's key; with the token that the agent uses in its place."""
        ...

    def proxy(self, network: Network, allow: tuple[str, ...], report: EgressListener, *, checked: bool) -> EgressServer:
        """A proxy to the hosts of a list; `checked` when the list must be valid before anything starts."""
        ...

    def forward(self, host: str, port: int, report: EgressListener) -> EgressServer: ...

    def socket_forward(self, path: Callable[[], str], report: EgressListener) -> EgressServer: ...

    def on_loopback(self, ports: tuple[EgressPort, ...]) -> AbstractAsyncContextManager[Mapping[str, int]]:
        """Open egress ports on the loopback of the host, for an agent without a sandbox."""
        ...


class Host(Protocol):
    """The machine that a sandbox is on."""

    def readable_folders(
        self, adapter: BaseAdapter | None, named: tuple[str, ...], environment: Mapping[str, str]
    ) -> tuple[str, ...]:
        """Folders that a sandbox shows read-only: toolchains, the agent's own program, and what the project names."""
        ...

    def toolchain_variables(self, environment: Mapping[str, str]) -> dict[str, str]: ...

    def reserved_ports(self, count: int) -> AbstractContextManager[Sequence[int]]:
        """Free ports that no other session of this machine gets until the end."""
        ...

    def delete_later(self, *folders: Path) -> None:
        """Delete folders in the background."""
        ...

    def remove_tree(self, folder: Path) -> bool: ...


class EnvironmentPorts(msgspec.Struct, frozen=True, kw_only=True):
    """How environments reach the outside."""

    egress: EgressServers
    host: Host
    files: Files
