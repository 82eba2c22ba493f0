"""Bringing a worktree that an agent can write to the files of a commit, without git in that worktree.

Git checks the files out into a folder of the host's own (`staging.Bench`). From there they are copied over what the
worktree has: component by component, so that a link in the worktree is replaced and never followed. Ignored files and
nested repositories stay.
"""

import asyncio
import os
import stat
import subprocess
import sys
from pathlib import Path

import msgspec

from genba.connections.git.agent_trees.safe_open import clear, copy_beneath, made_beneath, remove_beneath, split
from genba.connections.git.agent_trees.staging import Bench
from genba.connections.git.agent_trees.tree_walk import GITLINK, Differences, Index
from genba.connections.git.repository.commands import Git, is_link
from genba.connections.git.repository.environment import LOCAL_SECONDS, host_environment
from genba.connections.git.worktrees.overlay_mount import mounted, read_overlay
from genba.connections.own_processes import own_environment
from genba.domain.decoding import reader
from genba.domain.errors import BoundaryViolationError, DiskFullError, GitError, is_disk_full
from genba.domain.sessions.sandbox import Overlay

_MODULE = "genba.connections.git.agent_trees.checkout_files"
_FULL = 28
"""The exit code of a helper that found the disk full."""
_NO_LIMIT = 1 << 62


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What is done to the files of a worktree. Paths are bytes, relative to it."""

    copies: bytes
    """The folder that has the files to copy."""
    remove: tuple[bytes, ...]
    write: tuple[bytes, ...]
    folders: tuple[bytes, ...]
    """Empty folders that stand for submodules."""


async def lay_out(git: Git, tree: Path, git_dir: Path, commit: str, *, clean: bool = True) -> None:
    """Make the files of a worktree those of a commit; its HEAD and its index stay as they are.

    No agent may be at work in it. When `clean`, files that are neither in the index nor in the commit are removed,
    unless git ignores them.
    """
    if is_link(tree):
        raise BoundaryViolationError(f"{tree} is a link now: nothing is read or written where it leads")
    settings = await git.settings_of_staging()
    with Bench.made(git, settings, commit) as bench:
        plan = await asyncio.to_thread(_planned, bench, tree, git_dir, commit, clean)
        overlay = read_overlay(git.git_dir / "genba" / "private" / git_dir.name)
        if overlay is None:
            await asyncio.to_thread(carry_out, os.fsencode(tree), plan)
        else:
            await asyncio.to_thread(_carry_out_mounted, overlay, bench.folder, plan)


def _planned(bench: Bench, tree: Path, git_dir: Path, commit: str, clean: bool) -> Plan:
    index = bench.read_index(git_dir)
    before, found = index.entries, bench.differences(tree, git_dir, index)
    bench.in_index("read-tree", commit)
    after = bench.read_own_index()
    write = [path for path in after if after[path].mode != GITLINK and _differs(path, before, after, found)]
    remove = [path for path in (*before, *(found.changed if clean else ())) if path not in after]
    bench.copies.mkdir()
    args = ("checkout-index", "--force", "--quiet", "-z", "--stdin")
    bench.in_index(*args, tree=bench.copies, stdin=b"\0".join([*write, b""]))
    return Plan(
        copies=os.fsencode(bench.copies),
        remove=tuple(path for path in remove if path not in before or before[path].mode != GITLINK),
        write=tuple(write),
        folders=tuple(path for path in after if after[path].mode == GITLINK),
    )


def _differs(path: bytes, before: Index, after: Index, found: Differences) -> bool:
    known = before.get(path)
    is_same = known is not None and (known.mode, known.blob) == (after[path].mode, after[path].blob)
    return not is_same or path in found.changed or path in found.gone


def carry_out(root: bytes, plan: Plan) -> None:
    """Do what a plan says. Safe to repeat."""
    try:
        for path in plan.remove:
            remove_beneath(root, path)
        for path in plan.write:
            copy_beneath(plan.copies, root, path, _NO_LIMIT)
        for path in plan.folders:
            _make_folder(root, path)
    except OSError as error:
        if is_disk_full(error):
            raise DiskFullError(f"the disk is full: {os.fsdecode(root)} could not be written") from error
        raise GitError(f"{os.fsdecode(root)} could not be written: {error}") from error


def _make_folder(root: bytes, path: bytes) -> None:
    folder, name = split(path)
    with made_beneath(root, folder) as within:
        try:
            os.mkdir(name, dir_fd=within)
        except FileExistsError:
            if not stat.S_ISDIR(os.stat(name, dir_fd=within, follow_symlinks=False).st_mode):
                clear(within, name)
                os.mkdir(name, dir_fd=within)


def _carry_out_mounted(overlay: Overlay, folder: Path, plan: Plan) -> None:
    """The same where the worktree is an overlay: by a process that has it mounted, at a place of the host's own."""
    place, result = folder / "mount", folder / "plan"
    place.mkdir()
    result.write_bytes(msgspec.json.encode(plan))
    args = mounted(overlay, place, [sys.executable, "-I", "-m", _MODULE, str(place), str(result)])
    done = subprocess.run(
        args, cwd="/", env=own_environment(host_environment()), capture_output=True, text=True, errors="replace",
        start_new_session=True, check=False, timeout=LOCAL_SECONDS,
    )  # fmt: skip
    if done.returncode != 0:
        why = (done.stderr.strip() or "the overlay could not be mounted").splitlines()[-1]
        raise DiskFullError(why) if done.returncode == _FULL else GitError(f"{place} could not be written: {why}")


def _main(place: str, plan_file: str) -> int:
    plan = reader(Plan).decode(Path(plan_file).read_bytes())
    try:
        carry_out(os.fsencode(place), plan)
    except (DiskFullError, GitError) as error:
        sys.stderr.write(f"{error.message}\n")
        return _FULL if isinstance(error, DiskFullError) else 1
    return 0


if __name__ == "__main__":
    sys.exit(_main(*sys.argv[1:]))
