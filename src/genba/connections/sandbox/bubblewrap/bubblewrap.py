"""Bubblewrap: namespaces of its own for every command, on an empty root with what the spec names.

Each command has its own processes, network, mounts and users, so nothing of it is left when it ends: the kernel ends
a process namespace with its first process, and that one ends with bubblewrap, which ends with Genba. The process that
reports the exit code of a command is outside of the namespace of the command: see `launcher`.
"""

import asyncio
import contextlib
import functools
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import msgspec

from genba.connections.atomic_write import put
from genba.connections.own_processes import own_environment
from genba.connections.removal import removed_afterwards
from genba.connections.sandbox.bubblewrap import launcher
from genba.connections.sandbox.bubblewrap.args import (
    bubblewrap_args,
    loaded_by_anything,
    overlay_args,
    writable_by_root,
)
from genba.connections.sandbox.bubblewrap.status_line import Line
from genba.connections.sandbox.limits import Group, hierarchies, launcher_args, make_group
from genba.connections.sandbox.port_server import PortServer
from genba.connections.sandbox.seccomp_filter import filter_program
from genba.connections.sandbox.system_folders import copy_etc, etc_texts
from genba.connections.sandbox.watch import Watch, disk_of
from genba.domain.errors import UnrecoverableError
from genba.domain.ports import Processes
from genba.domain.processes import Command, Ending, Exit, OutputListener
from genba.domain.sessions.sandbox import SandboxLimits, SandboxSpec

_PROGRAM = "bwrap"
_INSTALL = "apt-get install bubblewrap"
_TRIAL_SECONDS = 20.0
_LAST_PROCESS_SECONDS = 5.0
_DIALS = 180
"""Connections that a service can be asked by. Those that find nothing listening do not count."""
_OVER_A_SIGNAL = 128
_LAST_SIGNAL = 64
_NOT_FOUND = 127
_EXEC_FAILED = f"{_PROGRAM}: execvp "


class BubblewrapSandbox:
    """A sandbox that an ordinary user can start, and that costs milliseconds."""

    def __init__(self, processes: Processes, program: str = "", groups: bool = True) -> None:
        self.processes = processes
        self.program = program or _on_path(_PROGRAM)
        self.groups = groups
        """Whether control groups may be used, where the machine has them."""
        self._copied = ""

    def problem(self) -> str:
        """Tries it out once: whether it works depends on the kernel, and on who may do what."""
        import tempfile  # noqa: PLC0415  (tried once; see `_on_path` for what it brings along)

        if not sys.platform.startswith("linux"):
            return "bubblewrap needs Linux"
        if not self.program:
            return f"{_PROGRAM} is not installed: {_INSTALL}"
        if filter_program(os.uname().machine) is None:
            return _no_filter()
        with removed_afterwards(tempfile.gettempdir(), "genba-trial-") as place:
            folder = str(place)
            spec = SandboxSpec(run="trial", folder=folder, tree=folder, home=folder)
            etc = self.etc(folder)
            environment = {"PATH": "/usr/bin:/bin"}
            command = Command(
                argv=("true",), workdir=folder, environment=environment, timeout_seconds=0, idle_seconds=0, mark=""
            )
            with Line.open() as line:
                args = _launcher_args(self.program, etc, spec, command, line, Group())
                try:
                    done = subprocess.run(
                        args,
                        env=own_environment(environment),
                        stdin=subprocess.DEVNULL,
                        capture_output=True,
                        timeout=_TRIAL_SECONDS,
                        pass_fds=(line.far,),
                        check=False,
                    )
                except (OSError, subprocess.SubprocessError) as error:
                    return f"{_PROGRAM} does not work here: {error}"
        output = done.stderr.decode("utf-8", errors="replace").strip()
        if "--disable-userns" in output:
            return f"{_PROGRAM} is too old: version 0.8 or newer is needed"
        return (
            f"{_PROGRAM} does not work here: {output or f'it ended with {done.returncode}'}" if done.returncode else ""
        )

    async def open(self, spec: SandboxSpec) -> "BubblewrapHandle":
        for folder in (spec.folder, spec.tree, spec.home):
            os.makedirs(folder, exist_ok=True)  # noqa: PTH103  (three folders, once)
        self.etc(spec.folder)
        return BubblewrapHandle(self, spec, {egress_port.name: egress_port.port for egress_port in spec.egress_ports})

    def etc(self, folder: str) -> str:
        """What is shown as /etc: one copy for all sandboxes, as long as the folder that it is in is there."""
        if not self._copied or not Path(self._copied).is_dir():
            self._copied = f"{folder}/etc"
            copy_etc(self._copied)
        return self._copied


class BubblewrapHandle:
    """One sandbox. Its commands share its places, and nothing else."""

    def __init__(self, sandbox: BubblewrapSandbox, spec: SandboxSpec, ports: Mapping[str, int]) -> None:
        self.sandbox = sandbox
        self.processes = sandbox.processes
        self.spec = spec
        self.ports = ports
        self.disk = disk_of(spec)
        self.running: list[str] = []
        """The marks of commands that have not ended."""

    async def run(self, command: Command, on_output: OutputListener) -> Exit:
        self.running.append(command.mark)
        at_home = msgspec.structs.replace(command, environment={**command.environment, "HOME": self.spec.home})
        has_limits = self.spec.limits != SandboxLimits()
        group = make_group(self.spec.limits) if has_limits and self.sandbox.groups else Group()
        with Line.open() as line:
            one = _OneCommand(self, line, group)
            try:
                return await one.run(at_home, on_output, has_limits)
            finally:
                await asyncio.shield(one.leave_nothing())
                self.running.remove(command.mark)

    async def sweep(self, mark: str) -> int:
        return await self.processes.sweep(mark)

    async def close(self) -> None:
        for mark in tuple(self.running):
            await self.processes.sweep(mark)


class _OneCommand:
    """A command on its way through the sandbox."""

    def __init__(self, handle: BubblewrapHandle, line: Line, group: Group) -> None:
        self.handle = handle
        self.line = line
        self.group = group
        self.port_server = PortServer()
        self.outer: int | None = None
        self.watch = Watch(handle.spec.limits, group, handle.disk, lambda: line.first, self.end)

    async def run(self, command: Command, on_output: OutputListener, has_limits: bool) -> Exit:
        def noticing(stream: str, text: str) -> None:
            if stream == "started":
                self.outer = int(text)
                self.line.leave_to_others()
                if self.group.folders:  # the kernel takes its time; meanwhile the launcher loads, and then makes sure
                    asyncio.get_running_loop().run_in_executor(None, self.group.take_in, self.outer)
            on_output(stream, text)

        spec = self.handle.spec
        tasks = [asyncio.create_task(self.line.listen(spec.egress_ports, self.port_server, spec.entry))]
        if has_limits:
            tasks.append(asyncio.create_task(self.watch.guard()))
        try:
            done = await self.handle.processes.run(self._wrapped(command), noticing)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        self.line.read_rest()
        if has_limits:
            await self.watch.last_look()
            self.watch.hear(done)
        return self._seen_from_outside(command, done)

    def end(self) -> None:
        """End everything at once: the first process takes all others with it."""
        self.line.kill_first()
        if self.outer is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(self.outer, signal.SIGKILL)

    async def leave_nothing(self) -> None:
        """Returns when the last process is gone, and the egress ports are closed."""
        self.line.read_rest()
        await self.line.last_process_gone(_LAST_PROCESS_SECONDS)
        await self.port_server.close()
        if self.group.folders:
            await asyncio.to_thread(self.group.remove)

    def _wrapped(self, command: Command) -> Command:
        sandbox, spec = self.handle.sandbox, self.handle.spec
        args = _launcher_args(sandbox.program, sandbox.etc(spec.folder), spec, command, self.line, self.group)
        hidden = loaded_by_anything(command.environment)
        return msgspec.structs.replace(
            command,
            argv=tuple(args),
            workdir="/",
            environment={name: value for name, value in command.environment.items() if name not in hidden},
            inherited=(*command.inherited, self.line.far),
        )

    def _seen_from_outside(self, command: Command, done: Exit) -> Exit:
        """As without a sandbox: a signal is a signal, and what never ran did not fail."""
        violations = (self.watch.found,) if self.watch.found is not None else ()
        done = msgspec.structs.replace(done, violations=violations)
        if done.ending is not Ending.EXITED:
            return done
        if _OVER_A_SIGNAL < done.code <= _OVER_A_SIGNAL + _LAST_SIGNAL:
            return msgspec.structs.replace(done, code=_OVER_A_SIGNAL - done.code)
        if self.line.ran or done.code <= 0 or violations:
            return done
        output = done.stderr.strip().removeprefix(_EXEC_FAILED) or f"{command.argv[0]} could not be started"
        return msgspec.structs.replace(done, ending=Ending.CANNOT_START, code=_NOT_FOUND, stderr=f"{output}\n")


def look_around() -> None:
    """Find out what a sandbox needs to know of this machine, before the first is opened. It is remembered."""
    etc_texts()
    hierarchies()
    writable_by_root()
    filter_program(os.uname().machine)
    _launcher()


def _on_path(program: str) -> str:
    """Where a program is. What `shutil` has for it brings four compressors along."""
    paths = (os.path.join(folder, program) for folder in os.get_exec_path())  # noqa: PTH118  (at every start)
    return next((path for path in paths if os.path.isfile(path) and os.access(path, os.X_OK)), "")  # noqa: PTH113


@functools.cache
def _launcher() -> str:
    """The file of the launcher, compiled where the import has left it so: a sixth of its time is its compilation."""
    compiled = launcher.__spec__.cached if launcher.__spec__ is not None else None
    is_fresh = compiled is not None and not sys.dont_write_bytecode and Path(compiled).exists()
    return compiled if compiled is not None and is_fresh else launcher.__file__


def _launcher_args(program: str, etc: str, spec: SandboxSpec, command: Command, line: Line, group: Group) -> list[str]:
    """The launcher, what it does first, and the bubblewrap that it becomes."""
    egress_ports = [arg for egress_port in spec.egress_ports for arg in ("--egress-port", str(egress_port.port))]
    dials = [] if spec.entry is None else ["--dial", str(_DIALS)]
    overlays = ((spec.overlay, spec.tree), (spec.home_overlay, spec.home))
    overlay = [arg for each, place in overlays if each is not None for arg in overlay_args(each, place)]
    first, calls = _made_for_the_launcher(spec)
    return [
        sys.executable, "-I", "-S", _launcher(), str(line.far), str(os.getpid()),
        "--processes-at", first, "--calls", calls, "--network", *egress_ports, *dials, *overlay,
        *launcher_args(spec.limits, group, os.geteuid() == 0),
        "--", program, *bubblewrap_args(spec, command, line.far, etc, f"{first}/proc"),
    ]  # fmt: skip


def _made_for_the_launcher(spec: SandboxSpec) -> tuple[str, str]:
    """The root of the first process, and the file with the filter of system calls; neither is seen inside."""
    first, calls = f"{spec.folder}/first", f"{spec.folder}/calls-{'traced' if spec.allow_ptrace else 'plain'}"
    os.makedirs(f"{first}/proc", exist_ok=True)  # noqa: PTH103  (at every start)
    program = filter_program(os.uname().machine, spec.allow_ptrace)
    if program is None:
        raise UnrecoverableError(_no_filter(), hint="set sandbox.kind to docker or podman")
    try:
        is_there = Path(calls).read_bytes() == program
    except OSError:
        is_there = False
    if not is_there:
        put(Path(calls), program)
    return first, calls


def _no_filter() -> str:
    return f"bubblewrap: Genba has no filter of system calls for {os.uname().machine} machines"
