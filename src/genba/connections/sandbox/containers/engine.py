"""Talking to docker or podman: which words start its client, what the client may see, and what it answers."""

import asyncio
import json
import os
import secrets
import shutil
import subprocess
import time
from collections.abc import Mapping

import msgspec

from genba.connections.own_processes import own_environment
from genba.connections.sandbox.containers.options import sorted_options
from genba.domain.errors import AgentUnavailable, UnrecoverableError
from genba.domain.ports import Processes
from genba.domain.processes import Command, Ending, Exit
from genba.domain.sessions.sandbox import SandboxKind

RUN, MARK, GATES = "genba.run", "genba.mark", "genba.gates"
"""The labels of a container: its run, the mark of its command, and the container that holds its network."""
_PATIENCE_SECONDS = 60.0
_FOR_EVER_SECONDS = 1e9
_UNDER_WAY = ("in progress", "did not die within timeout")
"""What an engine says of a container that it is still ending: asking again helps."""
_POLL_SECONDS = 0.05
_CLIENT_SEES = frozenset({
    "PATH", "HOME", "USER", "LOGNAME", "LANG", "TMPDIR", "DBUS_SESSION_BUS_ADDRESS",
    "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME",
    "DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG", "DOCKER_TLS_VERIFY", "DOCKER_CERT_PATH",
    "CONTAINER_HOST", "CONTAINERS_CONF", "CONTAINERS_STORAGE_CONF", "STORAGE_DRIVER", "STORAGE_OPTS",
})  # fmt: skip
_INSTALL = {
    SandboxKind.DOCKER: "apt-get install docker.io",
    SandboxKind.PODMAN: "apt-get install podman",
}
_START = {
    SandboxKind.DOCKER: "systemctl start docker, and let your user be in the group docker",
    SandboxKind.PODMAN: "podman info",
}


class Engine(msgspec.Struct, frozen=True, kw_only=True):
    """How the client is called."""

    kind: SandboxKind
    environment: Mapping[str, str]
    client_options: tuple[str, ...] = ()
    run_options: tuple[str, ...] = ()

    @property
    def argv(self) -> tuple[str, ...]:
        return (self.kind.value, *self.client_options)

    @property
    def install(self) -> str:
        return _INSTALL[self.kind]


class Traits(msgspec.Struct, frozen=True, kw_only=True):
    """The engine's report about itself."""

    rootless: bool
    remaps_users: bool = False


def engine(
    kind: SandboxKind,
    host: str,
    options: tuple[str, ...],
    environment: Mapping[str, str],
    project_options: tuple[str, ...] = (),
) -> Engine:
    """Raises UnrecoverableError for an option that is not on the list."""
    seen = {name: value for name, value in environment.items() if name in _CLIENT_SEES or name.startswith("LC_")}
    if host:
        seen["DOCKER_HOST" if kind is SandboxKind.DOCKER else "CONTAINER_HOST"] = host
    client, run = sorted_options(kind, options, project_options)
    return Engine(kind=kind, environment=seen, client_options=client, run_options=run)


def problem(engine: Engine) -> str:
    """Why the engine cannot be used here; empty when it can."""
    name = engine.kind.value
    if shutil.which(name, path=engine.environment.get("PATH")) is None:
        return f"{name} is not installed: {engine.install}"
    host = engine.environment.get("DOCKER_HOST" if engine.kind is SandboxKind.DOCKER else "CONTAINER_HOST", "")
    if host and not host.startswith("unix://"):
        return f"{name} is on another machine ({host}); the folders of a working tree are only seen on this one"
    try:
        asked = subprocess.run(
            [*engine.argv, "info", "--format", "{{json .}}"],
            env=own_environment(engine.environment),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_PATIENCE_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"{name} does not answer: {error}"
    if asked.returncode == 0 and not _complaints(asked.stdout):
        return ""
    output = asked.stderr.decode(errors="replace").strip() or "; ".join(_complaints(asked.stdout))
    return f"{name} cannot be reached: {_last_line(output)}; start it: {_START[engine.kind]}"


def _complaints(output: bytes) -> list[str]:
    """Docker's client answers for itself, with exit code 0, when there is no server behind it."""
    try:
        answer = json.loads(output)
    except ValueError:
        return []
    return list(answer.get("ServerErrors") or []) if isinstance(answer, dict) else []


class Client:
    """Short questions to the engine, through the one place that starts processes."""

    def __init__(self, engine: Engine, processes: Processes) -> None:
        self.engine = engine
        self._processes = processes
        self._traits: Traits | None = None

    async def ask(self, *args: str) -> Exit:
        return await self._run(args, _PATIENCE_SECONDS)

    async def hold(self, *args: str) -> Exit:
        """Ask for something that lasts; returns when it has ended."""
        return await self._run(args, _FOR_EVER_SECONDS)

    async def _run(self, args: tuple[str, ...], patience: float) -> Exit:
        command = Command(
            argv=(*self.engine.argv, *args),
            workdir="/",
            environment=self.engine.environment,
            timeout_seconds=patience,
            idle_seconds=patience,
            mark=f"genba-client-{secrets.token_hex(8)}",
        )
        return await self._processes.run(command, _unheard)

    async def output(self, *args: str) -> str:
        """The answer, or an error with the engine's own words."""
        asked = await self.ask(*args)
        if asked.ending is Ending.EXITED and asked.code == 0:
            return asked.stdout.strip()
        name = self.engine.kind.value
        if asked.ending is Ending.CANNOT_START:
            raise UnrecoverableError(f"{name} is not installed", hint=self.engine.install)
        raise AgentUnavailable(
            f"{name} {args[0]} failed: {_last_line(asked.stderr) or asked.ending}", hint=f"{name} info"
        )

    async def traits(self) -> Traits:
        """Asked once."""
        if self._traits is None:
            if self.engine.kind is SandboxKind.PODMAN:
                self._traits = Traits(rootless=os.geteuid() != 0)
            else:
                output = await self.output("info", "--format", "{{json .SecurityOptions}}")
                self._traits = Traits(rootless="name=rootless" in output, remaps_users="name=userns" in output)
        return self._traits

    async def is_there(self, name: str) -> bool:
        """Whether there is a container of this name, living or dead."""
        asked = await self.ask("container", "inspect", "--format", "{{.Id}}", name)
        if asked.code == 0 and asked.ending is Ending.EXITED:
            return True
        if "no such" in asked.stderr.lower():
            return False
        raise AgentUnavailable(f"{self.engine.kind.value} no longer answers: {_last_line(asked.stderr)}")

    async def remove(self, name: str) -> None:
        """End a container and take away all that it left. Safe to repeat."""
        at_once = ("--time", "0") if self.engine.kind is SandboxKind.PODMAN else ()
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while True:
            asked = await self.ask("rm", "--force", "--volumes", *at_once, name)
            if asked.code == 0 or "no such container" in asked.stderr.lower() or not await self.is_there(name):
                return
            if not any(phrase in asked.stderr for phrase in _UNDER_WAY) or time.monotonic() > deadline:
                raise AgentUnavailable(
                    f"a container could not be ended: {_last_line(asked.stderr)}",
                    hint=f"{self.engine.kind.value} rm --force {name}",
                )
            await asyncio.sleep(_POLL_SECONDS)

    async def marked(self, mark: str) -> dict[str, str]:
        """All containers with a mark, also those that have ended: the id of each, and the name of its egress ports."""
        egress_ports = f'index .Labels "{GATES}"' if self.engine.kind is SandboxKind.PODMAN else f'.Label "{GATES}"'
        args = (
            "--all",
            "--no-trunc",
            "--filter",
            f"label={MARK}={mark}",
            "--format",
            "{{.ID}} {{" + egress_ports + "}}",
        )
        lines = (await self.output("ps", *args)).splitlines()
        return {line.split(" ")[0]: line.partition(" ")[2].strip() for line in lines}


def _unheard(_stream: str, _line: str) -> None:
    """What the client says to a short question is in its answer."""


def _last_line(text: str) -> str:
    lines = [line for line in text.strip().splitlines() if line.strip() and not line.startswith("Run 'docker")]
    return lines[-1].strip() if lines else ""
