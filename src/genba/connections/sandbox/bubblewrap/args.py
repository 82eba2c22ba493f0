"""The words for bubblewrap: what a sandbox sees, as mounts on an empty root."""

import functools
import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

from genba.connections.sandbox.system_folders import etc_folders, is_of_the_system, program_places, system_links
from genba.domain.processes import Command
from genba.domain.sessions.sandbox import Overlay, SandboxSpec

_MEGABYTE = 1024 * 1024
_TEMPORARY_MB = 2048
_SMALL_MB = 64
_OF_ROOT_IN_PROC = ("sysrq-trigger", "irq", "bus", "fs", "mtrr", "acpi", "scsi", "asound")
"""Root may write there even without any of its rights, and would change the host."""
_OF_ALL_IN_PROC = ("sys", "pressure")
_LOADED_BY_ANYTHING = ("GCONV_PATH", "GLIBC_TUNABLES", "LOCPATH", "MALLOC_TRACE", "NLSPATH", "RESOLV_HOST_CONF")


def bubblewrap_args(spec: SandboxSpec, command: Command, status_fd: int, etc: str, proc: str) -> list[str]:
    """Everything after the name of the program.

    `status_fd` is the open file through which it reports; `proc` is where the launcher has mounted the command's own
    view of processes. The launcher makes the process namespace: see there for the reason.
    """
    preloads = loaded_by_anything(command.environment).items()
    return [
        "--unshare-user", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try",
        "--disable-userns", "--die-with-parent", "--new-session", "--cap-drop", "ALL",
        "--uid", str(os.geteuid()), "--gid", str(os.getegid()), "--json-status-fd", str(status_fd),
        *_system(spec, etc, proc), *_places(spec), "--remount-ro", "/",
        *(arg for name, value in preloads for arg in ("--setenv", name, value)),
        "--chdir", command.workdir, "--", *command.argv,
    ]  # fmt: skip


def loaded_by_anything(environment: Mapping[str, str]) -> dict[str, str]:
    """Variables that make any program load files: they are set inside only, never for the programs of the host."""
    return {
        name: value
        for name, value in environment.items()
        if name.startswith("LD_") or name in _LOADED_BY_ANYTHING
    }  # fmt: skip


def overlay_args(overlay: Overlay, tree: str) -> list[str]:
    """How the launcher mounts a layered working tree. The layers keep their notes where any user may."""
    lower = ":".join(_escaped(path) for path in (overlay.lower, *overlay.below))
    message = f"lowerdir={lower},upperdir={_escaped(overlay.upper)},workdir={_escaped(overlay.work)}"
    return ["--overlay", f"userxattr,{message}", tree]


def _escaped(path: str) -> str:
    return path.replace("\\", "\\\\").replace(":", "\\:").replace(",", "\\,")


def _system(spec: SandboxSpec, etc: str, proc: str) -> Iterator[str]:
    """The system itself, read-only, with its own view of processes and devices, and rooms that are gone afterwards."""
    for place in program_places():
        yield from ("--ro-bind", place, place)
    yield from ("--ro-bind", etc, "/etc")
    for place in etc_folders():
        yield from ("--ro-bind", place, place)
    for link, target in system_links().items():
        yield from ("--symlink", target, link)
    if spec.allow_ptrace:  # a debugger writes to the memory of what it looks at
        yield from ("--bind", proc, "/proc", *_narrowed_proc())
    else:  # a process could write to the memory of others, as if it traced them
        yield from ("--ro-bind", proc, "/proc")
    yield from ("--dev", "/dev", *_room("/dev/shm", _SMALL_MB), "--remount-ro", "/dev")  # noqa: S108
    yield from _room("/tmp", min(spec.limits.disk_mb or _TEMPORARY_MB, _TEMPORARY_MB))  # noqa: S108  (the sandbox's own)
    yield from _room("/run", _SMALL_MB)
    yield from ("--dir", "/var", "--symlink", "/tmp", "/var/tmp", "--symlink", "/run", "/var/run")  # noqa: S108


def _narrowed_proc() -> Iterator[str]:
    for name in (*_OF_ALL_IN_PROC, *writable_by_root()):
        yield from ("--ro-bind-try", f"/proc/{name}", f"/proc/{name}")


@functools.cache
def writable_by_root() -> tuple[str, ...]:
    """Each mount takes time at every start: only those that have something to guard, on this machine and from us."""
    if os.geteuid() != 0:
        return ()
    found = []
    for name in _OF_ROOT_IN_PROC:
        path = Path("/proc", name)
        files = (path, *path.rglob("*")) if path.exists() else ()
        if any(file.is_file() and file.stat().st_mode & stat.S_IWUSR for file in files):
            found.append(name)
    return tuple(found)


def _room(folder: str, megabytes: int) -> tuple[str, ...]:
    return ("--perms", "1777", "--size", str(megabytes * _MEGABYTE), "--tmpfs", folder)


def _places(spec: SandboxSpec) -> Iterator[str]:
    """The places of the sandbox, outer ones first, so that none hides another; what is only read wins."""
    places = dict.fromkeys((spec.tree, spec.home, *spec.writable), True)
    places |= {path: False for path in spec.readable if not is_of_the_system(path)}
    for path in sorted(places, key=lambda path: (path.count("/"), path)):
        yield from ("--bind" if places[path] else "--ro-bind-try", path, path)
    for bind in spec.binds:
        yield from ("--bind" if bind.writable else "--ro-bind", bind.source, bind.target)
