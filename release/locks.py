"""Read the locks: each package with its version, hashes and dependents."""

import re
from collections.abc import Iterator
from pathlib import Path

import msgspec

ROOT = Path(__file__).parent.parent
_PINNED = re.compile(r"^([a-z0-9][a-z0-9._-]*)(?:\[[^\]]+\])?==([^ ;\\]+)(?: ; ([^\\]+?))?(?: \\)?$")
_HASH = re.compile(r"^    --hash=sha256:([0-9a-f]{64})(?: \\)?$")
_WANTED_BY = re.compile(r"^    #(?: via|  ) ([\w.\[\]-]+)(?: \(.*\))?$")


class Locked(msgspec.Struct, frozen=True):
    """One version of one package. `marker`: the machines on which it is installed; empty: all."""

    name: str
    version: str
    marker: str
    hashes: tuple[str, ...]
    wanted_by: tuple[str, ...]

    @property
    def purl(self) -> str:
        return f"pkg:pypi/{self.name}@{self.version}"


class NotALock(Exception):
    """A line that is not valid in a lock."""


def read(path: Path) -> list[Locked]:
    """The packages of a lock. Raises NotALock for an unknown line."""
    return list(_packages(path))


def _packages(path: Path) -> Iterator[Locked]:
    name, version, marker = "", "", ""
    hashes: list[str] = []
    wanted: list[str] = []
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        if pinned := _PINNED.match(line):
            if name:
                yield Locked(name, version, marker, tuple(sorted(hashes)), tuple(sorted(wanted)))
            name, version, marker = pinned[1], pinned[2], pinned[3] or ""
            hashes, wanted = [], []
        elif found := _HASH.match(line):
            hashes.append(found[1])
        elif by := _WANTED_BY.match(line):
            wanted.append(by[1].partition("[")[0])
        elif line and not line.lstrip().startswith("#"):
            raise NotALock(f"{path.name}:{number}: {line}")
    if name:
        yield Locked(name, version, marker, tuple(sorted(hashes)), tuple(sorted(wanted)))
