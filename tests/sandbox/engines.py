"""Docker and podman for the tests: what this machine has running, or a private engine that ends with the tests.

All workers of one test run share one engine: who comes first starts it, who leaves last ends it.
"""

import asyncio
import contextlib
import fcntl
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from genba.connections.processes.supervisor import ProcessSupervisor
from genba.connections.sandbox.containers.containers import ContainerSandbox
from genba.domain.processes import Command
from genba.domain.sessions.sandbox import SandboxKind, SandboxSpec

_DEADLINE_SECONDS = 60.0
_POLL_SECONDS = 0.05
_NEEDED_HERE = ("--runtime", "runc", "--ulimit", "nofile=4096:4096", "--ulimit", "nproc=4096:4096")
"""For machines where crun has no way with the control groups, and root may not raise a limit."""


class Engine(msgspec.Struct, frozen=True):
    """An engine that works, and how it is spoken to."""

    kind: SandboxKind
    host: str = ""
    options: tuple[str, ...] = ()
    folder: str = ""
    """Where a private engine keeps its things."""
    pid: int = 0
    unusable: str = ""

    def sandbox(self) -> ContainerSandbox:
        return ContainerSandbox(self.kind, ProcessSupervisor(), self.host, self.options)

    def ask(self, *args: str) -> str:
        """The engine's answer to words of the tests' own."""
        places = self.options[: self.options.index("--runtime")] if "--root" in self.options else ()
        argv = [self.kind.value, *places, *args]
        environment = {**os.environ, **({"DOCKER_HOST": self.host} if self.host else {})}
        asked = subprocess.run(argv, env=environment, capture_output=True, text=True, timeout=60, check=True)
        return asked.stdout.strip()


@contextlib.contextmanager
def engine_of(kind: SandboxKind, shared: Path) -> Iterator[Engine]:
    """The engine for this test run, or a loud skip."""
    record = shared / f"engine-{kind}.json"
    with _locked(record):
        users, engine = _read(record)
        if engine is None:
            engine = _docker() if kind is SandboxKind.DOCKER else _podman()
        record.write_bytes(msgspec.json.encode([users + 1, engine]))
    try:
        if engine.unusable and os.environ.get("GENBA_REQUIRE_SANDBOXES") == "1":
            pytest.fail(f"{kind} is required here, and cannot be used: {engine.unusable}")
        if engine.unusable:
            pytest.skip(f"not run: {kind}: {engine.unusable}")
        yield engine
    finally:
        with _locked(record):
            users, _ = _read(record)
            record.write_bytes(msgspec.json.encode([users - 1, engine]))
            if users <= 1:
                record.unlink()
                _end(engine)


def _read(record: Path) -> tuple[int, Engine | None]:
    if not record.exists():
        return 0, None
    users, engine = json.loads(record.read_bytes())
    return users, msgspec.convert(engine, Engine)


@contextlib.contextmanager
def _locked(record: Path) -> Iterator[None]:
    with record.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _docker() -> Engine:
    running = Engine(SandboxKind.DOCKER)
    why = running.sandbox().problem()
    if not why:
        return _tried(running)
    if shutil.which("docker") is None or shutil.which("dockerd") is None or os.geteuid() != 0:
        return msgspec.structs.replace(running, unusable=why)
    folder = tempfile.mkdtemp(prefix="genba-docker-")
    socket = f"unix://{folder}/docker.sock"
    argv = ["dockerd", "--data-root", f"{folder}/data", "--exec-root", f"{folder}/exec", "--pidfile", f"{folder}/pid"]
    argv += ["--host", socket, "--bridge=none", "--iptables=false", "--ip6tables=false"]
    pid = _start(argv, f"{folder}/log")
    engine = Engine(SandboxKind.DOCKER, host=socket, folder=folder, pid=pid)
    deadline = time.monotonic() + _DEADLINE_SECONDS
    while why := engine.sandbox().problem():
        if not _lives(pid) or time.monotonic() > deadline:
            lines = Path(folder, "log").read_text(errors="replace").strip().splitlines()
            _end(engine)
            return Engine(SandboxKind.DOCKER, unusable=f"{why}; dockerd said: {lines[-1] if lines else 'nothing'}")
        time.sleep(_POLL_SECONDS)
    return _tried(engine)


def _start(argv: list[str], log: str) -> int:
    """A process that outlives the worker who starts it, and that any worker can end."""
    lines = (os.POSIX_SPAWN_OPEN, 1, log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    silent = (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0)
    actions = [silent, lines, (os.POSIX_SPAWN_DUP2, 1, 2)]
    return os.posix_spawnp(argv[0], argv, os.environ, file_actions=actions, setsid=True)


def _podman() -> Engine:
    if why := Engine(SandboxKind.PODMAN).sandbox().problem():
        return Engine(SandboxKind.PODMAN, unusable=why)
    folder = ""
    own: tuple[str, ...] = ()
    if os.geteuid() == 0:
        folder = tempfile.mkdtemp(prefix="genba-podman-")
        own = ("--root", f"{folder}/root", "--runroot", f"{folder}/run", "--events-backend", "file")
    engine = Engine(SandboxKind.PODMAN)
    for needed in ((), _NEEDED_HERE):
        options = (*own, *needed) if needed else own
        engine = _tried(Engine(SandboxKind.PODMAN, options=options, folder=folder), ends=bool(needed))
        if not engine.unusable:
            break
    return engine


def _tried(engine: Engine, *, ends: bool = True) -> Engine:
    with tempfile.TemporaryDirectory(prefix="genba-trial-") as folder:
        output = asyncio.run(_trial(engine, folder))
    if output and ends:
        _end(engine)
    return msgspec.structs.replace(engine, unusable=output)


async def _trial(engine: Engine, folder: str) -> str:
    spec = SandboxSpec(run="trial", folder=folder, tree=folder, home=folder)
    handle = await engine.sandbox().open(spec)
    command = Command(
        argv=("true",), workdir="/", environment={}, timeout_seconds=60, idle_seconds=60, mark=f"trial-{os.getpid()}"
    )
    try:
        ended = await handle.run(command, lambda _stream, _line: None)
    finally:
        await handle.close()
    return "" if ended.code == 0 else ended.stderr.strip() or f"a container ended with {ended.code}"


def _end(engine: Engine) -> None:
    if engine.pid:
        with contextlib.suppress(ProcessLookupError):
            os.kill(engine.pid, signal.SIGTERM)
        deadline = time.monotonic() + _DEADLINE_SECONDS
        while _lives(engine.pid) and time.monotonic() < deadline:
            time.sleep(_POLL_SECONDS)
    if engine.folder:
        mounts = [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]
        for mount in sorted((mount for mount in mounts if mount.startswith(engine.folder)), reverse=True):
            subprocess.run(["umount", mount], check=False)
        shutil.rmtree(engine.folder, ignore_errors=True)


def _lives(pid: int) -> bool:
    """Whether a process still runs; its remains, when another worker started it, do not count."""
    with contextlib.suppress(ChildProcessError):
        return os.waitpid(pid, os.WNOHANG) == (0, 0)
    try:
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
