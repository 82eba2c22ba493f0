"""Constructs what the environments of agents and goals need: egress servers, and tools of the host."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractContextManager, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from genba.application.sandbox.ports import EgressServer, EnvironmentPorts
from genba.wiring.project.connections import OwnFiles

if TYPE_CHECKING:
    from genba.domain.sessions.agent_adapter import BaseAdapter
    from genba.domain.sessions.egress import EgressListener
    from genba.domain.sessions.sandbox import EgressPort, Network, Provider


class LazyServer:
    """A server that is made at its first connection: an agent takes longer to start than it takes to load one.

    One whose settings may be wrong is made at once, so that it fails before anything starts.
    """

    def __init__(self, make: Callable[[], EgressServer], now: bool) -> None:
        self.make = make
        self.made: EgressServer | None = make() if now else None

    async def serve(self, reader: Any, writer: Any) -> None:
        if self.made is None:
            self.made = self.make()
        await self.made.serve(reader, writer)


class Egress:
    """Egress servers; their code is loaded at the first connection."""

    def broker(self, provider: Provider, key: str, report: EgressListener) -> tuple[EgressServer, str]:
        from genba.connections.egress.session_token import new_token  # noqa: PLC0415  (only with a key)

        token = new_token()

        def make() -> EgressServer:
            from genba.connections.egress.broker import Broker  # noqa: PLC0415  (see LazyServer)
            from genba.connections.egress.model_calls import calls_of  # noqa: PLC0415
            from genba.connections.egress.upstream import proxy_for  # noqa: PLC0415

            proxy = proxy_for(provider.url, os.environ)
            calls = calls_of(provider.name, os.environ)
            return Broker(provider.url, provider.header, key, token, report, calls=calls, proxy=proxy)

        return LazyServer(make, "://" not in provider.url or "GENBA_MODEL_CALLS" in os.environ), token

    def proxy(self, network: Network, allow: tuple[str, ...], report: EgressListener, *, checked: bool) -> EgressServer:
        def make() -> EgressServer:
            from genba.connections.egress.proxy import AllowListProxy  # noqa: PLC0415  (see LazyServer)

            return AllowListProxy(network, allow, report, environment=os.environ)

        return LazyServer(make, checked)

    def forward(self, host: str, port: int, report: EgressListener) -> EgressServer:
        from genba.connections.egress.port_forward import Forward  # noqa: PLC0415  (only a sandbox needs it)

        return Forward(host, port, report)

    def socket_forward(self, path: Callable[[], str], report: EgressListener) -> EgressServer:
        def make() -> EgressServer:
            from genba.connections.egress.socket_forward import SocketForward  # noqa: PLC0415  (see LazyServer)

            return SocketForward(path, report)

        return LazyServer(make, now=False)

    @asynccontextmanager
    async def on_loopback(self, ports: tuple[EgressPort, ...]) -> AsyncIterator[Mapping[str, int]]:
        from genba.connections.sandbox.port_server import PortServer  # noqa: PLC0415  (only agents that ask need it)

        server = PortServer()
        try:
            yield await server.open_on_loopback(ports)
        finally:
            await server.close()


class ThisHost:
    """Tools of this machine."""

    def readable_folders(
        self, adapter: BaseAdapter | None, named: tuple[str, ...], environment: Mapping[str, str]
    ) -> tuple[str, ...]:
        from genba.wiring.sandbox.readable_paths import readable_folders  # noqa: PLC0415  (only a sandbox needs it)

        return readable_folders(adapter, named, environment)

    def toolchain_variables(self, environment: Mapping[str, str]) -> dict[str, str]:
        from genba.connections.sandbox.system_folders import toolchain_variables  # noqa: PLC0415  (see above)

        return toolchain_variables(environment)

    def reserved_ports(self, count: int) -> AbstractContextManager[Sequence[int]]:
        from genba.connections.processes.ports import reserved_ports  # noqa: PLC0415  (only agents with ports need it)

        return reserved_ports(count)

    def delete_later(self, *folders: Path) -> None:
        from genba.connections.git.worktrees.trash import delete_later  # noqa: PLC0415  (only with something to delete)

        delete_later(*folders)

    def remove_tree(self, folder: Path) -> bool:
        from genba.connections.removal import remove_tree  # noqa: PLC0415  (see above)

        return remove_tree(folder)


def environment_ports() -> EnvironmentPorts:
    return EnvironmentPorts(egress=Egress(), host=ThisHost(), files=OwnFiles())
