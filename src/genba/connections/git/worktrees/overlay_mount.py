"""Overlays: a working tree that is a thin layer over a template, and is mounted only where something runs in it.

Each command has a mount of its own, in a namespace of its own: when it ends, nothing is left mounted.
"""

import os
import subprocess
from pathlib import Path

import msgspec

from genba.connections.atomic_write import put
from genba.connections.private_folders import make_private_folder
from genba.connections.removal import removed_afterwards
from genba.domain.decoding import reader
from genba.domain.sessions.sandbox import Overlay

_RECORD = "overlay.json"
_UNTOLD = set(',:\\"\n')
"""What the options of a mount give a meaning to."""
_MOUNT = 'mount -t overlay overlay -o "$1" "$2" && shift 2 && exec "$@"'


def read_overlay(private_dir: Path) -> Overlay | None:
    """The overlay of a private repository, or None for a plain folder."""
    try:
        return reader(Overlay).decode((private_dir / _RECORD).read_bytes())
    except (OSError, ValueError, RecursionError):
        return None


def write_overlay(private_dir: Path, overlay: Overlay) -> None:
    put(private_dir / _RECORD, msgspec.json.encode(overlay))


def forget_overlay(private_dir: Path) -> None:
    (private_dir / _RECORD).unlink(missing_ok=True)


def mounted(overlay: Overlay, tree: Path, argv: list[str]) -> list[str]:
    """The command that runs another one where the overlay is mounted at its tree, and nowhere else."""
    # As the sandbox mounts it: what one of them notes about a layer, the other must be able to read.
    options = f"nosuid,nodev,userxattr,lowerdir={overlay.lower},upperdir={overlay.upper},workdir={overlay.work}"
    space = ("unshare", "-m") if os.geteuid() == 0 else ("unshare", "-Urm")
    return [*space, "sh", "-c", _MOUNT, "sh", options, str(tree), *argv]


def can_overlay(own: Path) -> bool:
    """Whether an overlay can be mounted below Genba's own folder. That it can is remembered until the next boot."""
    memory = own / "overlays"
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
        mark = f"{boot} {os.getuid()} {own}"
        if memory.is_file() and memory.read_text("utf-8") == mark:
            return True
    except OSError:
        mark = ""
    if overlay_problem(own):
        return False
    if mark:
        put(memory, mark.encode())
    return True


def overlay_problem(folder: Path) -> str:
    """Why no overlay can be mounted below a folder; empty when one can. It is found out by mounting one."""
    if _UNTOLD & set(str(folder)):
        return f"an overlay cannot have the path {folder}"
    make_private_folder(folder)
    with removed_afterwards(folder, "trial-") as made:
        parts = {name: made / name for name in ("lower", "upper", "work", "tree")}
        for part in parts.values():
            part.mkdir()
        (parts["lower"] / "seen").touch()
        overlay = Overlay(lower=str(parts["lower"]), upper=str(parts["upper"]), work=str(parts["work"]))
        line = 'cd "$1" && rm seen && mkdir -p kept && rmdir kept && touch kept'
        args = mounted(overlay, parts["tree"], ["sh", "-c", line, "sh", str(parts["tree"])])
        try:
            done = subprocess.run(args, cwd="/", capture_output=True, text=True, timeout=20, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            return f"no overlay can be mounted: {error}"
        if done.returncode != 0 or not (parts["upper"] / "kept").exists():
            lines = done.stderr.strip().splitlines()
            return f"no overlay can be mounted: {lines[-1] if lines else 'it kept nothing'}"
    return ""
