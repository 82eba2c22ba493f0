"""Opens and closes the environment of an instance: its sandbox, its egress ports and its worktree."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from genba.application.sandbox.worktree_setup import Ignored, making_ready
from genba.definitions.agent.definition import AgentDefinition
from genba.definitions.agent.state_driven import SERVER
from genba.domain.events import EgressUsed, Event, Notice
from genba.domain.ports import Processes, Sandbox
from genba.domain.sessions.agent_adapter import BaseAdapter
from genba.domain.sessions.replies import AgentSession
from genba.domain.sessions.sandbox import (
    LOOPBACK,
    Credentials,
    EgressPort,
    McpServer,
    Network,
    Provider,
    SandboxKind,
    SandboxSpec,
    proxy_variables,
)
from genba.domain.sessions.workspaces import Workspace

if TYPE_CHECKING:
    from genba.application.sandbox.ports import EnvironmentPorts, Host
    from genba.domain.sessions.egress import EgressEvent
    from genba.domain.sessions.sandbox import PrivateBinds

PROXY, _MODEL, _WORKFLOW = "proxy", "model", "workflow"
PROXY_PORT, _MODEL_PORT, _WORKFLOW_PORT = 3128, 3129, 3130
"""Ports inside the sandbox that are free."""
CREDENTIAL_VARIABLE, ADDRESS_VARIABLE = "GENBA_CREDENTIAL", "GENBA_MCP_URL"
_LONGEST_CALL_SECONDS = 6 * 3600
"""A claim is answered when it is verified."""


class WorkflowDoor:
    """Where an instance asks what is next, and the secret that it may do so with once."""

    def __init__(self, pointer: str, credential: str) -> None:
        self.pointer = pointer
        """A file that says where the server is. The process that resumes the session writes it again."""
        self.credential = credential

    def place(self) -> str:
        return Path(self.pointer).read_text("utf-8")


class AgentEnvironmentKeeper:
    """Opens the environment of one session. The folder of the session itself is never shown inside."""

    def __init__(
        self,
        *,
        definition: AgentDefinition,
        adapter: BaseAdapter,
        ports: EnvironmentPorts,
        sandbox: Sandbox | None,
        kind: SandboxKind,
        processes: Processes,
        folder: Path,
        top: Path,
        ignored: Ignored,
        environment: Mapping[str, str],
        emit: Callable[[Event], None],
        parts: Callable[[Workspace], PrivateBinds] | None,
        clear: Callable[[Workspace], Sequence[str]] = lambda _workspace: (),
        workflow: WorkflowDoor | None = None,
    ) -> None:
        self.definition = definition
        self.plan = definition.environment
        self.adapter = adapter
        self.ports = ports
        self.sandbox = sandbox
        """None: no sandbox, and no egress ports."""
        self.kind = kind
        self.processes = processes
        self.folder = folder
        self.top = top
        self.ignored = ignored
        self.environment = dict(environment)
        self.emit = emit
        self.parts = parts
        self.clear_locks = clear
        """Removes the locks of git that a dead process left in a worktree."""
        self.workflow = workflow
        """How an instance reaches the server that it asks for its next action."""

    @asynccontextmanager
    async def open(self, workspace: Workspace) -> AsyncIterator[AgentSession]:
        """The session of an instance; nothing of it is left running afterwards."""
        for lock in self.clear_locks(workspace):
            self.emit(Notice(message=f"an earlier session died in git; its lock is removed: {lock}"))
        home = self._folder("home")
        environment = self._environment(home)
        session = AgentSession(
            run=workspace.run,
            agent=self.definition.name,
            workdir=workspace.path,
            folder=str(self._folder("asks")),
            environment=environment,
            processes=self.processes,
            home=str(home),
            sandboxed=self.kind.is_sandboxed,
        )
        with making_ready(self.plan, self.folder, self.top, self.ignored, self.ports) as ready:
            session = msgspec.structs.replace(session, environment={**environment, **ready.variables})
            if self.sandbox is None:
                async with self._without_sandbox(session) as bare:
                    await ready.set_up(session)
                    yield bare
                return
            inside, egress_ports = self._egress_ports(session)
            handle = await self.sandbox.open(self.spec(workspace, egress_ports))
            try:
                session = _reached_by(inside, handle.ports)
                session = msgspec.structs.replace(session, processes=handle)
                await ready.set_up(session)
                yield self._can_ask(session, handle.ports)
            finally:
                await handle.close()

    @asynccontextmanager
    async def _without_sandbox(self, session: AgentSession) -> AsyncIterator[AgentSession]:
        """The session as it is; for an instance that asks what is next, with a way to do so."""
        if self.workflow is None:
            yield session
            return
        async with self.ports.egress.on_loopback((self._way_to_ask(self.workflow),)) as ports:
            yield self._can_ask(session, ports)

    def _can_ask(self, session: AgentSession, ports: Mapping[str, int]) -> AgentSession:
        """The secret goes to the instance alone: whatever makes its place ready does without."""
        if self.workflow is None:
            return session
        url = f"{loopback_address(ports[_WORKFLOW])}/mcp"
        server = McpServer(
            name=SERVER, url=url, token_variable=CREDENTIAL_VARIABLE, patience_seconds=_LONGEST_CALL_SECONDS
        )
        others = tuple(other for other in session.mcp if other.name != SERVER)
        asking = {CREDENTIAL_VARIABLE: self.workflow.credential, ADDRESS_VARIABLE: url}
        return msgspec.structs.replace(session, mcp=(server, *others), environment={**session.environment, **asking})

    def clear(self) -> None:
        """Delete the private HOME of a session that completed, in the background."""
        places = [self.folder / name for name in ("home", "sandbox") if (self.folder / name).is_dir()]
        if any(next(place.iterdir(), None) is not None for place in places):
            self.ports.host.delete_later(*places)
        else:
            for place in places:
                place.rmdir()

    def _folder(self, name: str) -> Path:
        """A folder of this run; it lasts as long as the run can be resumed."""
        path = self.folder / name
        self.ports.files.make_private_folder(path)
        return path

    def _environment(self, home: Path) -> dict[str, str]:
        if not self.kind.is_sandboxed:
            return self.environment
        return sandboxed_environment(self.ports.host, self.environment, str(home))

    def spec(self, workspace: Workspace, egress_ports: tuple[EgressPort, ...] = ()) -> SandboxSpec:
        """What an instance in this workspace can see and write."""
        parts = self.parts(workspace) if self.parts is not None else None
        return SandboxSpec(
            run=workspace.run,
            folder=str(self._folder("sandbox")),
            tree=workspace.path,
            home=str(self._folder("home")),
            writable=(str(self._folder("asks")),),
            readable=(
                *self.ports.host.readable_folders(self.adapter, self.plan.read, self.environment),
                *(parts.readable if parts is not None else ()),
            ),
            binds=parts.binds if parts is not None else (),
            overlay=parts.overlay if parts is not None else None,
            egress_ports=egress_ports,
            limits=self.plan.limits,
            image=self.plan.image,
            allow_ptrace=self.plan.allow_ptrace,
        )

    def _egress_ports(self, session: AgentSession) -> tuple[AgentSession, tuple[EgressPort, ...]]:
        """The ways out that the plan allows, and what the session knows of them."""
        egress_ports: list[EgressPort] = [self._way_to_ask(self.workflow)] if self.workflow is not None else []
        allow = list(self.plan.allow)
        provider = self._provider()
        if provider is not None:
            key = _key(provider)
            if self.plan.credentials is Credentials.BROKER and key:
                egress_port, token = self._broker(provider, key)
                egress_ports.append(egress_port)
                session = msgspec.structs.replace(session, model_url="", model_key=token)
            else:
                held = key if self.plan.credentials is Credentials.ENV else ""
                session = msgspec.structs.replace(session, model_url=provider.url, model_key=held)
                host, port = _address_of(provider.url)
                if host in LOOPBACK and self.kind.is_sandboxed:  # a model of this machine, which no proxy leads to
                    egress_ports.append(self._forward(host, port))
                else:
                    allow.append(f"{host}:{port}")
        servers = self.adapter.mcp_servers()
        session = msgspec.structs.replace(session, mcp=servers)
        if not self.kind.is_sandboxed:
            return session, tuple(egress_ports)
        for host, port in dict.fromkeys(_address_of(server.url) for server in servers if server.url):
            if host in LOOPBACK:
                egress_ports.append(self._forward(host, port))
            elif host:
                allow.append(f"{host}:{port}")
        if self.plan.network is not Network.NONE:
            egress_ports.append(self._proxy(tuple(dict.fromkeys(allow))))
        return session, _apart(egress_ports)

    def _provider(self) -> Provider | None:
        return self.adapter.provider(os.environ)

    def _broker(self, provider: Provider, key: str) -> tuple[EgressPort, str]:
        server, token = self.ports.egress.broker(provider, key, self._report)
        return EgressPort(name=_MODEL, port=_MODEL_PORT, serve=server.serve), token

    def _proxy(self, allow: tuple[str, ...]) -> EgressPort:
        server = self.ports.egress.proxy(self.plan.network, allow, self._report, checked=bool(self.plan.allow))
        return EgressPort(name=PROXY, port=PROXY_PORT, serve=server.serve)

    def _forward(self, host: str, port: int) -> EgressPort:
        server = self.ports.egress.forward(host, port, self._report)
        return EgressPort(name=f"{host}:{port}", port=port, serve=server.serve)

    def _way_to_ask(self, door: WorkflowDoor) -> EgressPort:
        server = self.ports.egress.socket_forward(door.place, self._report)
        return EgressPort(name=_WORKFLOW, port=_WORKFLOW_PORT, serve=server.serve)

    def _report(self, event: EgressEvent) -> None:
        if event.port == _MODEL and event.verdict == "allowed":
            return  # every question goes there; the replies tell of it
        self.emit(EgressUsed(port=event.port, verdict=event.verdict, target=event.target, detail=event.detail))


OF_THE_HOST = frozenset({
    "HOME", "TMPDIR", "TEMP", "TMP", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR", "SHELL",
    "GENBA_DATABASE_URL",
})  # fmt: skip
"""Variables that name places outside of the sandbox."""


def key_variable(provider: Provider) -> str:
    """The variable that holds the user's key, if one does."""
    return next((name for name in provider.key_variables if os.environ.get(name)), "")


def _key(provider: Provider) -> str:
    return os.environ.get(key_variable(provider), "")


def _reached_by(session: AgentSession, ports: Mapping[str, int]) -> AgentSession:
    """The session with the addresses of its gates, now that they are open."""
    if _MODEL in ports:
        session = msgspec.structs.replace(session, model_url=loopback_address(ports[_MODEL]))
    if PROXY in ports:
        way = loopback_address(ports[PROXY])
        environment = {**session.environment, **proxy_variables(way)}
        session = msgspec.structs.replace(session, proxy_url=way, environment=environment)
    return session


def sandboxed_environment(host: Host, environment: Mapping[str, str], home: str) -> dict[str, str]:
    """The variables inside a sandbox: with a HOME of its own, and without names of places outside."""
    own = {name: value for name, value in environment.items() if name not in OF_THE_HOST}
    inside = {"HOME": home, "TMPDIR": "/tmp"}  # noqa: S108  (the cell's own)
    return {**host.toolchain_variables(environment), **own, **inside}


def loopback_address(port: int) -> str:
    return f"http://127.0.0.1:{port}"


def _apart(egress_ports: list[EgressPort]) -> tuple[EgressPort, ...]:
    """Each gate on a port of its own: a server keeps the one that its address names, and the others give way."""
    own = (PROXY, _MODEL, _WORKFLOW)
    taken = {egress_port.port for egress_port in egress_ports if egress_port.name not in own}
    placed = []
    for egress_port in egress_ports:
        port = egress_port.port
        while egress_port.name in own and port in taken:
            port += 10
        taken.add(port)
        placed.append(msgspec.structs.replace(egress_port, port=port))
    return tuple(placed)


def _address_of(url: str) -> tuple[str, int]:
    from urllib.parse import urlsplit  # noqa: PLC0415  (only where there are servers to reach)

    parts = urlsplit(url)
    return parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
