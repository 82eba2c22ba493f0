"""Patterns that an agent writes keep no git of the host busy, and what it wrote stays where it is."""

import time
from pathlib import Path

import pytest

from genba.connections.git.agent_trees.staging import stage
from genba.connections.git.repository.layout import RepositoryLayout
from genba.connections.git.worktrees.worktrees import GitWorkingTrees
from genba.domain.errors import BoundaryViolationError, GitError
from tests.git.conftest import Floor, request
from tests.project import Project

DEEP = "/".join("a" * 60)
HOSTILE = "**/" * 12 + "x.nothing"
SECONDS = 100
"""Far below what such a pattern takes, and far above what a slow machine needs."""


def _worker(project: Project, line: str, sandbox: str) -> None:
    project.write(".genba/config.yaml", f"sandbox:\n  kind: {sandbox}\n")
    project.agent(script={"turns": [{"do": [{"run": line}], "reply": "done"}]})


@pytest.mark.parametrize("sandbox", ["worktree", "bubblewrap"])
@pytest.mark.parametrize(
    ("file", "text"), [(".gitignore", HOSTILE), (".gitattributes", f"{HOSTILE} text"), ("a/.gitignore", HOSTILE)]
)
def test_a_session_with_hostile_patterns_ends_soon_and_keeps_its_files(
    project: Project, file: str, text: str, sandbox: str
) -> None:
    _worker(project, f"mkdir -p {DEEP} && echo work > {DEEP}/work.txt && echo '{text}' > {file}", sandbox)
    began = time.monotonic()

    done = project.genba("run", "worker")

    assert time.monotonic() - began < SECONDS
    assert done.code != 0
    assert f"{file} has a pattern with more than 5 **" in done.err
    (left,) = project.root.glob(f".worktrees/*/{DEEP}/work.txt")
    assert left.read_text() == "work\n"
    project.genba("gc")
    project.genba("gc", "--force")
    assert left.read_text() == "work\n"


@pytest.mark.parametrize("file", [".gitignore", ".gitattributes"])
async def test_hostile_patterns_in_a_commit_are_refused_before_a_checkout_of_it(floor: Floor, file: str) -> None:
    workspace = await floor.open()
    stored = f"$(printf '%s text' '{HOSTILE}' | git hash-object -w --stdin)"
    await floor.inside(
        workspace,
        "echo work > w.txt && git add -A"
        f" && git update-index --add --cacheinfo 100644,{stored},{file}"
        " && git update-ref HEAD $(git commit-tree -p HEAD -m work $(git write-tree))",
    )

    with pytest.raises(BoundaryViolationError, match=r"with more than 5 \*\* in one pattern"):
        await floor.trees.observe(workspace)

    assert Path(workspace.path, "w.txt").read_text() == "work\n"  # noqa: ASYNC240


async def test_patterns_that_take_long_are_stopped_and_named(project: Project) -> None:
    """Many harmless patterns over many names."""
    layout = await RepositoryLayout.find(project.root)
    trees = GitWorkingTrees(layout)
    workspace = await trees.open(request())
    tree = Path(workspace.path)
    (tree / ".gitignore").write_text("".join(f"**/*a*{number}*/**/x{number}\n" for number in range(30_000)))
    for number in range(2_000):
        (tree / f"{'a' * 200}{number}").write_text("work\n")

    with pytest.raises(GitError, match=r"the patterns of \.gitignore take too long: .* 0\.2 seconds") as refused:
        await stage(layout.git, tree, Path(workspace.git_dir), 0.2)

    assert "the files stay in the worktree" in (refused.value.hint or "")
    trees.release()


async def test_ordinary_patterns_of_many_wildcards_are_heeded(project: Project) -> None:
    layout = await RepositoryLayout.find(project.root)
    trees = GitWorkingTrees(layout)
    workspace = await trees.open(request())
    tree = Path(workspace.path)
    (tree / ".gitignore").write_text("**/build/**/*.o\n/**/a/**/b/**/c/**\n*.py[cod]\n")
    for name in ("build/x/y.o", "q/a/b/r/c/s", "m.pyc", "kept.txt"):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text("work\n")

    assert (await stage(layout.git, tree, Path(workspace.git_dir))).dirty == (".gitignore", "kept.txt")
    trees.release()
