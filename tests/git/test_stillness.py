"""Git is not asked again of a tree in which nothing has changed, and of any other it is."""

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from genba.connections.git.repository.commands import Git
from genba.connections.git.repository.layout import RepositoryLayout
from genba.connections.git.worktrees.status_cache import take_prints
from genba.connections.git.worktrees.worktree_status import tree_status
from tests.project import Project

DEADLINE = 30.0


async def _seen_still(project: Project) -> Git:
    """Git, after it has looked at a clean tree in which nothing has changed for a while."""
    project.write("kept.txt", "kept\n")
    project.write("folder/inner.txt", "inner\n")
    project.write(".gitignore", "*.log\n")
    project.commit("one")
    git = (await RepositoryLayout.find(project.root)).git
    deadline = time.monotonic() + DEADLINE
    while time.monotonic() < deadline:
        await tree_status(git, project.root, git.git_dir)
        prints, _ = take_prints(project.root, git.git_dir, git.git_dir)
        if git.stillness.recall(project.root, prints) is not None:
            return git
    raise TimeoutError("it was never still")


async def test_an_unchanged_worktree_is_recognised_without_git(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    git = await _seen_still(project)
    head = project.git("rev-parse", "HEAD")
    monkeypatch.setenv("PATH", "/nowhere")  # git cannot be started now

    assert await tree_status(git, project.root, git.git_dir) == (head, "main", ())


def _same_size_and_time(root: Path) -> None:
    path = root / "kept.txt"
    before = path.stat()
    path.write_text("KEPT\n")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


CHANGES: dict[str, tuple[Callable[[Path], object], str]] = {
    "a new file": (lambda root: (root / "folder" / "new.txt").write_text("new\n"), "folder/new.txt"),
    "a file that is gone": (lambda root: (root / "kept.txt").rename(root / "moved.log"), "kept.txt"),
    "other words of the same length, with the time set back": (_same_size_and_time, "kept.txt"),
    "another mode": (lambda root: (root / "kept.txt").chmod(0o755), "kept.txt"),
    "a link instead of a file": (
        lambda root: (root / "kept.txt").rename(root / "moved.log").with_name("kept.txt").symlink_to("folder"),
        "kept.txt",
    ),
}


@pytest.mark.parametrize("change", CHANGES)
async def test_what_has_changed_since_is_seen(project: Project, change: str) -> None:
    git = await _seen_still(project)
    make, path = CHANGES[change]

    make(project.root)

    assert (await tree_status(git, project.root, git.git_dir))[2] == (path,)


async def test_what_is_staged_and_nowhere_else_is_seen(project: Project) -> None:
    git = await _seen_still(project)

    project.git("rm", "--quiet", "--cached", "kept.txt")

    assert "kept.txt" in (await tree_status(git, project.root, git.git_dir))[2]


async def test_a_branch_that_a_person_moved_under_the_tree_is_seen(project: Project) -> None:
    git = await _seen_still(project)
    other = project.git("commit-tree", "HEAD^{tree}", "-m", "elsewhere")

    project.git("update-ref", "refs/heads/main", other)

    assert (await tree_status(git, project.root, git.git_dir))[0] == other


async def test_a_file_that_is_no_longer_ignored_is_seen(project: Project) -> None:
    project.write("build.tmp", "made\n")
    exclude = project.root / ".git" / "info" / "exclude"
    exclude.parent.mkdir(exist_ok=True)
    exclude.write_text("*.tmp\n")
    git = await _seen_still(project)

    exclude.write_text("\n")

    assert (await tree_status(git, project.root, git.git_dir))[2] == ("build.tmp",)


async def test_a_tree_with_many_files_is_left_to_git(project: Project) -> None:
    for number in range(500):
        project.write(f"many/{number}.txt", "x")
    project.commit("many")

    assert take_prints(project.root, project.root / ".git", project.root / ".git")[0] is None


async def test_a_change_of_this_moment_is_not_trusted(project: Project) -> None:
    git = await _seen_still(project)
    project.write("kept.txt", "changed\n")
    project.commit("two")
    prints, taken = take_prints(project.root, git.git_dir, git.git_dir)
    assert prints is not None
    newest = max(one[5] for one in prints)

    git.stillness.remember(project.root, prints, newest + 1_000_000, ("0" * 40, "main", ()))

    assert git.stillness.recall(project.root, prints) is None, taken
