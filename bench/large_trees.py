"""A worktree of 50,000 files beside `git worktree add`, for the second and every later session of a base commit."""

import asyncio
import itertools
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from bench.measuring import Row, side_by_side
from genba.connections.git.private.sandboxed_worktrees import SandboxedWorktrees
from genba.connections.git.repository.layout import RepositoryLayout
from genba.connections.git.worktrees.overlay_mount import overlay_problem
from genba.connections.git.worktrees.trash import delete_later
from genba.connections.processes.supervisor import ProcessSupervisor
from genba.connections.sandbox.bubblewrap.bubblewrap import BubblewrapSandbox
from genba.domain.sessions.workspaces import Workspace, WorkspaceRequest

FILES = 50_000
ROUNDS = 2


def rows() -> list[Row]:
    folder = Path(tempfile.mkdtemp(prefix="genba-bench-"))
    try:
        sandbox = BubblewrapSandbox(ProcessSupervisor())
        problem = sandbox.problem() or overlay_problem(folder)
        if problem:
            return [Row(f"a worktree of {FILES:,} files / git worktree add", f"NOT RUN: {problem}")]
        root = _repository(folder)
        return _measured(root, asyncio.run(_trees(root, sandbox)))
    finally:
        delete_later(folder)  # it takes longer than all that is measured


def _measured(root: Path, trees: SandboxedWorktrees) -> list[Row]:
    numbers = itertools.count(1)
    opened: list[Workspace] = []

    def worktree() -> None:
        name = f"plain-{next(numbers)}"
        _git(root, "worktree", "add", "-q", "-b", name, str(root.parent / name))

    def layer() -> None:
        opened.append(asyncio.run(trees.open(_request(next(numbers)))))

    def status(of: Callable[[], Path | None]) -> Callable[[], None]:
        def call() -> None:
            tree = of()
            if tree is None:
                asyncio.run(trees.observe(opened[-1]))
            else:
                _git(tree, "status", "--porcelain")

        return call

    made = side_by_side(ROUNDS, layer=layer, worktree=worktree)
    last = sorted(root.parent.glob("plain-*"))[-1]
    seen = side_by_side(ROUNDS, layer=status(lambda: None), worktree=status(lambda: last))

    began = time.perf_counter()
    asyncio.run(trees.close(opened.pop()))
    closed = time.perf_counter() - began
    assert all(workspace.overlay is not None for workspace in opened)
    return [
        _row(f"a worktree of {FILES:,} files / git worktree add", made, 0.1),
        _row(f"reading the changes of a worktree of {FILES:,} files / git status", seen, None),
        Row(f"removing a worktree of {FILES:,} files", f"{closed * 1000:.0f} ms, and the rest in the background"),
    ]


def _row(what: str, found: dict[str, float], limit: float | None) -> Row:
    figure = f"{found['layer'] * 1000:.0f} ms beside {found['worktree'] * 1000:.0f} ms"
    return Row(what, figure, found["layer"] / found["worktree"], limit)


async def _trees(root: Path, sandbox: BubblewrapSandbox) -> SandboxedWorktrees:
    return SandboxedWorktrees(await RepositoryLayout.find(root), sandbox, overlays=True)


def _request(number: int) -> WorkspaceRequest:
    return WorkspaceRequest(
        run=f"bench-{number}",
        agent="bench",
        root=".worktrees",
        isolated=True,
        branch=f"genba/bench-{number}",
        base_branch="main",
        issue=None,
        issue_title="",
    )


def _repository(folder: Path) -> Path:
    """A commit of many small files, made without writing them out."""
    root = folder / "repository"
    subprocess.run(["git", "init", "-q", "-b", "main", str(root)], check=True)
    for name, value in (("user.name", "Bench"), ("user.email", "bench@localhost"), ("gc.auto", "0")):
        _git(root, "config", name, value)
    lines = ["commit refs/heads/main\ncommitter Bench <bench@localhost> 0 +0000\ndata 5\nBegin"]
    for number in range(FILES):
        text = f"This is the file number {number} of many.\n" * 4
        path = f"src/{number % 97}/{number % 31}/{number}.txt"
        lines.append(f"M 100644 inline {path}\ndata {len(text)}\n{text}")
    _git(root, "fast-import", "--quiet", stdin="\n".join([*lines, ""]))
    _git(root, "read-tree", "main")
    return root


def _git(folder: Path, *words: str, stdin: str = "") -> None:
    subprocess.run(["git", *words], cwd=folder, input=stdin, text=True, check=True, capture_output=True)
