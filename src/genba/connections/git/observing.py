"""What git shows of a working tree, asked from outside of it."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from genba.connections.git.commands import Git
from genba.connections.git.layout import RepositoryLayout
from genba.domain.evidence import Commit
from genba.domain.workspaces import Workspace

LOG_FORMAT = ("log", "-z", "--name-only", "--format=%x01%H%x02%T%x02%s")


async def tree_status(git: Git, workspace: Workspace) -> tuple[str, str, tuple[str, ...]]:
    """The commit, the branch and the uncommitted paths of a working tree."""
    words = ("status", "--porcelain=v2", "--branch", "-z", "--untracked-files=all", "--ignore-submodules=all",
             "--no-renames")  # fmt: skip
    done = await git.run(*words, tree=Path(workspace.path), git_dir=Path(workspace.git_dir))
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


def parse_log(output: str) -> tuple[tuple[Commit, ...], str, tuple[str, ...]]:
    """Commits, newest first; the tree of the newest; and every file they changed."""
    commits: list[Commit] = []
    newest_tree = ""
    files: set[str] = set()
    for record in output.split("\x01")[1:]:
        header, _, names = record.partition("\0")
        sha, tree, subject = header.split("\x02", 2)
        newest_tree = newest_tree or tree
        commits.append(Commit(sha, subject))
        files.update(name for name in names.removeprefix("\n").split("\0") if name)
    return tuple(commits), newest_tree, tuple(sorted(files))


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
