"""Docker or podman: one container for each command, with no capability, no network and nothing to write on.

The engine starts the command beside the first process of its container, and waits for it from outside: no process
inside has a part in reporting the exit code.

The instance runs as the user who runs Genba, so that what it writes in its tree belongs to that user. Where that user
is root, it is root without a single capability, under seccomp, and sees no file that it could change but its own: the
tree belongs to root, and another user could not work in it. With a user namespace (podman or docker without root) the
instance is the caller outside and has no more rights than that.
"""

import asyncio
import os
import re
import secrets
import time
from collections.abc import Mapping
from pathlib import Path

import msgspec

from genba.connections.atomic_write import put
from genba.connections.sandbox.containers import engine as engines
from genba.connections.sandbox.containers.egress import ContainerEgress, NoEgress
from genba.connections.sandbox.containers.image import image_id, image_of_the_host, image_of_the_user
from genba.connections.sandbox.containers.init_process import FirstProcess
from genba.connections.sandbox.containers.landlock_program import landlock_program
from genba.connections.sandbox.containers.mounts import Mount, mounts_of
from genba.connections.sandbox.containers.script import BEGUN, MISSING, START, carried, first_script, script
from genba.connections.sandbox.containers.seccomp import seccomp_args
from genba.connections.sandbox.containers.watch import ContainerWatch
from genba.connections.sandbox.watch import disk_of
from genba.domain.errors import UnrecoverableError
from genba.domain.ports import Processes
from genba.domain.processes import Command, Ending, Exit, OutputListener
from genba.domain.sessions.sandbox import SandboxKind, SandboxLimits, SandboxSpec

_MARK = "GENBA_PROCESS_MARK"
"""Put by the one place that starts processes into the environment of the client, which hands it on."""
_TEMPORARY_MB = 1024
_MEGABYTE = 1024 * 1024
_EGRESS_LIMITS = SandboxLimits(memory_mb=256, processes=64)
_OVERHEAD_PROCESSES = 4
"""Processes that the sandbox itself needs."""
_SIGNALS = range(129, 160)
_LATE_LOOKS, _LATE_SECONDS = 8, 0.25
_SELINUX = Path("/sys/fs/selinux/enforce")


class ContainerSandbox:
    """Docker or podman. `options` are words that the user's engine needs; a repository may name fewer of them."""

    def __init__(
        self,
        engine: SandboxKind,
        processes: Processes,
        host: str = "",
        options: tuple[str, ...] = (),
        environment: Mapping[str, str] | None = None,
        project_options: tuple[str, ...] = (),
    ) -> None:
        self._processes = processes
        seen = os.environ if environment is None else environment
        self._engine = engines.engine(engine, host, options, seen, project_options)
        self._client = engines.Client(self._engine, processes)

    def problem(self) -> str:
        return engines.problem(self._engine)

    async def image_id(self, name: str) -> str:
        """What an image is now; empty where there is none of that name."""
        return await image_id(self._client, name)

    async def open(self, spec: SandboxSpec) -> "ContainerHandle":
        if spec.overlay is not None or spec.home_overlay is not None:
            raise UnrecoverableError(f"{self._engine.kind} cannot lay a working tree over a template")
        traits = await self._client.traits()
        own = "" if spec.image and not _needs_gates(spec) else await image_of_the_host(self._client)
        image = await image_of_the_user(self._client, spec.image) if spec.image else own
        label = ("--label", f"{engines.RUN}={spec.run}")
        egress_ports = await self._egress_ports(spec, traits, own, label)
        args = (
            *(*label, "--label", f"{engines.GATES}={egress_ports.name}"),
            *_isolation(self._engine, traits, spec, spec.limits),
            *_user(self._engine, traits, egress_ports.name),
            *("--network", _network(egress_ports)),
            *(arg for mount in mounts_of(spec, with_system=not spec.image) for arg in mount.args),
            *_start_args(spec),
        )
        return ContainerHandle(spec, self._client, self._processes, egress_ports, args, image)

    async def _egress_ports(
        self, spec: SandboxSpec, traits: engines.Traits, image: str, label: tuple[str, ...]
    ) -> ContainerEgress | NoEgress:
        if not _needs_gates(spec):
            return NoEgress()
        inside = ContainerEgress(self._client, spec.folder, label)
        try:
            args = (*_isolation(self._engine, traits, spec, _EGRESS_LIMITS), *_user(self._engine, traits, ""))
            await inside.open(spec.egress_ports, args, image, spec.entry)
        except BaseException:
            await asyncio.shield(inside.close())
            raise
        return inside


class ContainerHandle:
    """Processes inside one sandbox."""

    def __init__(
        self,
        spec: SandboxSpec,
        client: engines.Client,
        processes: Processes,
        egress_ports: ContainerEgress | NoEgress,
        args: tuple[str, ...],
        image: str,
    ) -> None:
        self._spec = spec
        self._client = client
        self._processes = processes
        self._egress_ports = egress_ports
        self._args = args
        self._image = image
        self._disk = disk_of(spec)
        self._running: list[str] = []
        self._swept: set[str] = set()
        """The marks of commands that have not ended."""

    @property
    def ports(self) -> Mapping[str, int]:
        return self._egress_ports.ports

    async def run(self, command: Command, on_output: OutputListener) -> Exit:
        name = f"genba-{secrets.token_hex(8)}"
        id_file = Path(self._spec.folder) / f"{name}.id"
        id_file.parent.mkdir(parents=True, exist_ok=True)
        self._running.append(command.mark)
        self._swept.discard(command.mark)
        first = FirstProcess(self._processes, _token())
        watch = ContainerWatch(self._spec.limits, self._disk, id_file, f"{_MARK}={command.mark}")
        guard = asyncio.create_task(self._guard(name, watch))
        try:
            began = time.monotonic()
            args = self._container(command, name, id_file, first.token)
            # A mark of its own: what carries the command's mark is ended with the command, and is asked no more.
            if output := await first.begin(args, self._client.engine.environment, f"{command.mark}.{first.token}"):
                seconds = time.monotonic() - began
                return Exit(ending=Ending.CANNOT_START, code=127, stdout="", stderr=output, seconds=seconds)
            listener = _Listener(on_output, _token())
            ended = await self._processes.run(self._inside(command, name, listener.token), listener)
            result = await self._ended(ended, listener, watch, first)
            if command.mark in self._swept and result.code == 0 and result.ending is Ending.EXITED:
                return msgspec.structs.replace(
                    result, code=-9
                )  # podman may say 0 of what was removed with its container
            return result
        finally:
            if watch.found is None:
                guard.cancel()
            await asyncio.shield(self._end(name, id_file, guard, first))
            self._running.remove(command.mark)

    async def sweep(self, mark: str) -> int:
        """Containers first: their clients end with them. Egress containers of others go too, and ours stays."""
        self._swept.add(mark)
        left = await self._client.marked(mark)
        strangers = {egress_ports for egress_ports in left.values() if egress_ports} - {self._egress_ports.name}
        for name in (*left, *strangers):
            await self._client.remove(name)
        return len(left) + await self._processes.sweep(mark)

    async def close(self) -> None:
        for mark in tuple(self._running):
            await self.sweep(mark)
        await self._egress_ports.close()

    def _container(self, command: Command, name: str, id_file: Path, token: str) -> tuple[str, ...]:
        """The words that start the container, with its first process alone."""
        return (
            *(*self._client.engine.argv, "run", "--interactive", "--name", name, "--cidfile", str(id_file)),
            *("--label", f"{engines.MARK}={command.mark}", *self._args, "--env", _MARK),
            *("--entrypoint", "/bin/sh", self._image, "-c", first_script(token)),
        )

    def _inside(self, command: Command, name: str, token: str) -> Command:
        """The same command, as the client of the engine is asked for it. The engine waits for it, outside."""
        engine = self._client.engine
        at_home = {**command.environment, "HOME": self._spec.home}
        variables = carried(at_home)
        own_image = bool(self._spec.image)
        tools = ("git",) if own_image else ()
        shell = script(
            at_home,
            token,
            tools,
            own_path=own_image,
            closes_proc=_closes_proc(self._spec),
            has_stdin=bool(command.stdin),
        )
        argv = (
            *(*engine.argv, "exec", "--interactive", "--workdir", command.workdir),
            *(arg for variable in (_MARK, *variables) for arg in ("--env", variable)),
            *(name, "/bin/sh", "-c", shell, "sh", *command.argv),
        )
        environment = {**engine.environment, **variables}
        return msgspec.structs.replace(command, argv=argv, workdir="/", environment=environment)

    async def _guard(self, name: str, watch: ContainerWatch) -> None:
        """Ends the container as soon as it passes a limit."""
        await watch.guard()
        await self._client.remove(name)

    async def _ended(self, ended: Exit, listener: "_Listener", watch: ContainerWatch, first: FirstProcess) -> Exit:
        """The end of the command, as if it had been an ordinary process."""
        stderr = listener.without_token(ended.stderr)
        listener.read(ended.stderr)
        if ended.ending is Ending.CANNOT_START:
            return ended
        if listener.missing:
            place = f"in the image {self._image}" if self._spec.image else "in the sandbox"
            return _cannot_start(ended, f"{listener.missing}: not found {place}")
        if watch.found is None and ended.ending is Ending.EXITED and not listener.begun:
            return _cannot_start(
                ended, stderr.strip() or f"{self._client.engine.kind} could not start it (exit code {ended.code})"
            )
        failed = watch.found is None and ended.ending is Ending.EXITED and ended.code != 0
        found = await watch.last_look(await first.limits() if failed and watch.counts else ())
        code = 128 - ended.code if ended.code in _SIGNALS else ended.code
        return msgspec.structs.replace(ended, code=code, stderr=stderr, violations=(found,) if found else ())

    async def _end(self, name: str, id_file: Path, guard: "asyncio.Task[None]", first: FirstProcess) -> None:
        """Nothing is left. A client that was ended early may leave the engine still making what it asked for."""
        await asyncio.gather(guard, return_exceptions=True)
        await self._client.remove(name)
        await first.end()
        late = not first.has_begun and not await asyncio.to_thread(id_file.exists)
        for _ in range(_LATE_LOOKS if late else 0):
            await asyncio.sleep(_LATE_SECONDS)
            await self._client.remove(name)
        await asyncio.to_thread(id_file.unlink, missing_ok=True)


def _token() -> str:
    return f"genba-sandbox-{secrets.token_hex(8)}"


class _Listener:
    """Passes on output, and keeps to itself what is printed before the command begins."""

    def __init__(self, on_output: OutputListener, token: str) -> None:
        self.token = token
        self.missing = ""
        self.begun = False
        self._on_output = on_output

    def __call__(self, stream: str, text: str) -> None:
        if stream != "stderr" or self.token not in text:
            self._on_output(stream, text)
            return
        self.read(text)  # at once: of a long output the end is kept, and not the beginning
        others = [line for line in text.split("\n") if not line.startswith(self.token)]
        if others:
            self._on_output(stream, "\n".join(others))

    def read(self, stderr: str) -> None:
        """What the first process of the container has reported, by the end of the command."""
        for line in stderr.split("\n") if self.token in stderr else ():
            if line.startswith(self.token):
                self._note(line)

    def _note(self, line: str) -> None:
        match line.split(" ", 2)[1:]:
            case [kind, tool] if kind == MISSING:
                self.missing = tool
            case [kind] if kind == BEGUN:
                self.begun = True

    def without_token(self, stderr: str) -> str:
        return re.sub(rf"\n?{self.token}[^\n]*\n", "", stderr)


def _cannot_start(ended: Exit, stderr: str) -> Exit:
    return Exit(ending=Ending.CANNOT_START, code=127, stdout=ended.stdout, stderr=stderr, seconds=ended.seconds)


def _closes_proc(spec: SandboxSpec) -> bool:
    """Whether commands start without the right to write to /proc. A debugger needs that right."""
    return not spec.allow_ptrace and landlock_program(os.uname().machine) is not None


def _start_args(spec: SandboxSpec) -> tuple[str, ...]:
    """The mount of the program that takes that right."""
    program = landlock_program(os.uname().machine)
    if program is None or not _closes_proc(spec):
        return ()
    file = Path(spec.folder) / "start"
    file.parent.mkdir(parents=True, exist_ok=True)
    put(file, program, mode=0o700)
    return Mount(str(file), START, False).args


def _needs_gates(spec: SandboxSpec) -> bool:
    return bool(spec.egress_ports) or spec.entry is not None


def _network(egress_ports: ContainerEgress | NoEgress) -> str:
    return f"container:{egress_ports.name}" if isinstance(egress_ports, ContainerEgress) else "none"


def _isolation(
    engine: engines.Engine, traits: engines.Traits, spec: SandboxSpec, limits: SandboxLimits
) -> tuple[str, ...]:
    """What every container of a sandbox has, whatever it is for."""
    size = min(limits.disk_mb or _TEMPORARY_MB, _TEMPORARY_MB)
    args = [*engine.run_options, "--pull", "never", "--log-driver", "none", "--read-only"]
    for place in ("/tmp", "/var/tmp", "/run"):  # noqa: S108  (a file system of the container's own)
        args += ["--tmpfs", f"{place}:rw,exec,nosuid,nodev,mode=1777,size={size}m"]
    args += ["--shm-size", f"{size}m", "--cap-drop", "ALL", "--security-opt", "no-new-privileges"]
    args += seccomp_args(spec.folder, spec.allow_ptrace)
    if _SELINUX.exists():
        args += ["--security-opt", "label=disable"]
    if engine.kind is SandboxKind.PODMAN:
        args += ["--security-opt", "mask=/proc/pressure"]
        args += ["--http-proxy=false", "--read-only-tmpfs=false"]
    if limits.memory_mb is not None:
        args += ["--memory", f"{limits.memory_mb}m", "--memory-swap", f"{limits.memory_mb}m"]
    if limits.disk_mb is not None and not any("fsize=" in option for option in engine.run_options):
        most_bytes = (limits.disk_mb + limits.disk_mb // 4 + 1) * _MEGABYTE  # the watch names what passes the limit
        args += ["--ulimit", f"fsize={most_bytes}:{most_bytes}"]
    if limits.processes is not None:
        args += ["--pids-limit", str(limits.processes)]
    if limits.processes is not None and engine.kind is SandboxKind.PODMAN and traits.rootless:
        # Where a user may not make control groups this is all that holds; above the limit, so that the watch sees it.
        most = limits.processes + limits.processes // 4 + _OVERHEAD_PROCESSES
        args += ["--ulimit", f"nproc={most}:{most}"]
    if limits.cpus is not None:
        args += ["--cpus", f"{min(limits.cpus, os.cpu_count() or 1):.2f}"]
    return tuple(args)


def _user(engine: engines.Engine, traits: engines.Traits, egress_ports: str) -> tuple[str, ...]:
    """Words that make the instance the caller, as the files of the tree see it.

    Who joins the network of the egress ports must be in their user namespace, where there is one.
    """
    caller = f"{os.getuid()}:{os.getgid()}"
    if engine.kind is SandboxKind.PODMAN and traits.rootless:
        return "--userns", f"container:{egress_ports}" if egress_ports else "keep-id", "--user", caller
    if traits.rootless:
        return "--user", "0:0"
    if traits.remaps_users:
        return "--userns", "host", "--user", caller
    return "--user", caller
