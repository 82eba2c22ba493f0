"""What a container sees of the host, as mounts: a place that is named later lies over what was named before it."""

import csv
import io
from collections.abc import Iterable
from pathlib import Path

import msgspec

from genba.connections.sandbox.system_folders import system_places
from genba.domain.sessions.sandbox import SandboxSpec

_OF_THE_ENGINE = frozenset({"/etc/hosts", "/etc/resolv.conf", "/etc/hostname"})
"""Every container has its own of these."""
_MOUNTS = Path("/proc/self/mountinfo")


class Mount(msgspec.Struct, frozen=True):
    source: str
    target: str
    writable: bool

    @property
    def args(self) -> tuple[str, str]:
        fields = ["type=bind", f"source={self.source}", f"target={self.target}"]
        line = io.StringIO()
        csv.writer(line, lineterminator="").writerow(fields if self.writable else [*fields, "readonly"])
        return "--mount", line.getvalue()


def mounts_of(spec: SandboxSpec, *, with_system: bool) -> tuple[Mount, ...]:
    """The places of a sandbox. The deepest decides, and of two that are equal the one that cannot be written."""
    laid: dict[str, Mount] = {}
    if with_system:
        laid |= {place: Mount(place, place, False) for place in system_places() if place not in _OF_THE_ENGINE}
    own = [Mount(path, path, True) for path in (spec.tree, spec.home, *spec.writable)]
    shown = [Mount(path, path, False) for path in spec.readable if Path(path).exists()]
    for mount in (*own, *shown):
        laid[mount.target] = mount
    laid = {target: mount for target, mount in laid.items() if not _is_seen_anyway(mount, laid)}
    for bind in spec.binds:
        laid = {target: mount for target, mount in laid.items() if not _within(target, bind.target)}
        laid[bind.target] = Mount(bind.source, bind.target, bind.writable)
    return _closed_below(laid)


def _is_seen_anyway(mount: Mount, laid: dict[str, Mount]) -> bool:
    """Whether the next place above shows the same, in the same way."""
    above = [other for other in laid.values() if other.target != mount.target and _within(mount.target, other.target)]
    return bool(above) and max(above, key=lambda other: len(other.target)).writable == mount.writable


def _closed_below(laid: dict[str, Mount]) -> tuple[Mount, ...]:
    """Another file system below a folder that cannot be written is not written either.

    The engines carry such a file system along, and older ones forget to close it.
    """
    below: list[Mount] = []
    points = _mount_points()
    for mount in laid.values():
        if mount.writable or mount.source == "/":
            continue
        for point in points:
            target = mount.target + point[len(mount.source) :]
            if point != mount.source and _within(point, mount.source) and _decides(target, laid) is mount:
                below.append(Mount(point, target, False))
    return (*laid.values(), *below)


def _decides(target: str, laid: dict[str, Mount]) -> Mount | None:
    """Who says what is seen at a path."""
    above = [mount for mount in laid.values() if _within(target, mount.target)]
    return max(above, key=lambda mount: len(mount.target), default=None)


def _mount_points() -> Iterable[str]:
    try:
        lines = _MOUNTS.read_bytes().splitlines()
    except OSError:
        return ()
    return tuple(line.split()[4].decode("unicode_escape").encode("latin-1").decode(errors="replace") for line in lines)


def _within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")
