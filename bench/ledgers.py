"""The ledgers: measurements in `docs/measured/`, a file for each part, from which the page of numbers is made."""

import os
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import msgspec

from bench import machine as here
from bench.measuring import Row

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "docs" / "measured"


@dataclass(frozen=True)
class Ledger:
    """The measurements of one part, with machine, day and command."""

    about: str
    command: str
    date: str
    """The day, in UTC."""
    commit: str
    """The short id of the code that was measured; a `+` says that there were changes on top of it; empty if unknown."""
    machine: dict[str, str]
    rows: tuple[Row, ...]
    more: dict[str, Any] = field(default_factory=dict)
    """The fields of this part alone; in the file they are beside the others."""


def write(
    part: str,
    about: str,
    command: str,
    rows: Sequence[Row],
    *,
    machine: Mapping[str, str] | None = None,
    commit_: str | None = None,
    folder: Path = FOLDER,
    **more: Any,
) -> None:
    """Replace the ledger of a part, and write the page of numbers.

    `machine`, `commit_`: facts that were taken before it began.
    """
    ledger = {
        "about": about,
        "command": command,
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "commit": commit() if commit_ is None else commit_,
        "machine": dict(machine if machine is not None else here.facts()),
        "rows": [asdict(row) for row in rows],
    }
    taken = sorted(set(ledger) & set(more))
    if taken:
        raise ValueError(f"a ledger has {', '.join(taken)} already")
    text = msgspec.json.format(msgspec.json.encode(ledger | more), indent=2)
    folder.mkdir(parents=True, exist_ok=True)
    draft = folder / f".{part}.json.{os.getpid()}"
    draft.write_bytes(text + b"\n")
    draft.replace(folder / f"{part}.json")
    if folder == FOLDER:
        from bench import page  # noqa: PLC0415  (the page is made of ledgers, so it imports this)

        page.write()


def read(folder: Path = FOLDER) -> dict[str, Ledger]:
    """Every ledger by the name of its part."""
    return {file.stem: _read(file) for file in sorted(folder.glob("[!.]*.json"))}


def _read(file: Path) -> Ledger:
    known = {each.name for each in fields(Ledger)} - {"more"}
    try:
        found = msgspec.json.decode(file.read_bytes(), type=dict[str, Any])
        kept = {name: found.pop(name) for name in known & set(found)}
        return msgspec.convert(kept | {"more": found}, Ledger)
    except msgspec.MsgspecError as error:
        raise ValueError(f"docs/measured/{file.name} is no ledger: {error}") from error


def commit() -> str:
    """The code that is measured."""
    try:
        head = _git("rev-parse", "--short=10", "HEAD")
        changed = _git("status", "--porcelain", "--", "src")
    except (OSError, subprocess.CalledProcessError):
        return ""
    return head + ("+" if changed else "")


def source(*folders: str) -> str:
    """Some folders as they are now, whatever else has changed; empty with uncommitted changes."""
    try:
        changed = _git("status", "--porcelain", "--", *folders)
        return "" if changed else " ".join(_git("rev-parse", f"HEAD:{folder}") for folder in folders)
    except (OSError, subprocess.CalledProcessError):
        return ""


def _git(*words: str) -> str:
    return subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True, text=True).stdout.strip()
