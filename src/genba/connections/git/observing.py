"""What git shows of a working tree, asked from outside of it."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from genba.connections.git.commands import Git
from genba.connections.git.layout import RepositoryLayout
from genba.domain.evidence import Commit
from genba.domain.workspaces import Workspace

COMMITS = ("log", "-z", "--format=%H%x00%T%x00%s")
NAMES = ("log", "-z", "--name-only", "--format=")


async def tree_status(git: Git, tree: Path, git_dir: Path) -> tuple[str, str, tuple[str, ...]]:
    """The commit, the branch and the uncommitted paths of a working tree."""
    words = ("status", "--porcelain=v2", "--branch", "-z", "--untracked-files=all", "--ignore-submodules=all",
             "--no-renames")  # fmt: skip
    done = await git.run(*words, tree=tree, git_dir=git_dir)
    head, on, dirty = "", "", []
    for entry in done.stdout.split("\0"):
        if entry.startswith("# branch.oid "):
            head = entry[13:]
        elif entry.startswith("# branch.head "):
            on = "" if entry[14:] == "(detached)" else entry[14:]
        elif entry.startswith("? "):
            dirty.append(entry[2:])
        elif entry[:2] in ("1 ", "u "):
            dirty.append(entry.split(" ", 8 if entry[0] == "1" else 10)[-1])
    return head, on, tuple(sorted(dirty))


async def snapshot(layout: RepositoryLayout, workspace: Workspace) -> str:
    """The tree as it stands, uncommitted and untracked files included, without touching its index."""
    tree, git_dir = Path(workspace.path), Path(workspace.git_dir)
    with _copied_index(git_dir, layout.own / f"index-{workspace.run}-{os.getpid()}") as index:
        environment = {"GIT_INDEX_FILE": str(index)}
        await layout.git.run("add", "-A", tree=tree, git_dir=git_dir, environment=environment)
        done = await layout.git.run("write-tree", git_dir=git_dir, environment=environment)
    return done.stdout.strip()


def parse_commits(output: str) -> tuple[tuple[Commit, ...], str]:
    """Commits, newest first, and the tree of the newest. No text of a commit can pose as another one."""
    fields = output.split("\0")
    triples = list(zip(fields[::3], fields[1::3], fields[2::3], strict=False))
    return tuple(Commit(sha, subject) for sha, _, subject in triples), triples[0][1] if triples else ""


def parse_names(output: str) -> tuple[str, ...]:
    return tuple(sorted({name for name in output.split("\0") if name.strip("\n")}))


@contextmanager
def _copied_index(git_dir: Path, copy: Path) -> Iterator[Path]:
    """A copy of an index to work on, gone afterwards."""
    copy.parent.mkdir(parents=True, exist_ok=True)
    copy.unlink(missing_ok=True)
    if (git_dir / "index").is_file():
        copy.write_bytes((git_dir / "index").read_bytes())
    try:
        yield copy
    finally:
        copy.unlink(missing_ok=True)
