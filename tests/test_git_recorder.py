"""The recording git of the tests sees what it must see."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import git_recorder
from tests.project import Project

_MINIMAL = ("PATH", "HOME")


@pytest.fixture
def recorder(monkeypatch: pytest.MonkeyPatch) -> Iterator[git_recorder.Recorder]:
    monkeypatch.setenv("PATH", os.environ["PATH"])
    made = git_recorder.record()
    if made is None and os.environ.get("CI"):
        pytest.fail(git_recorder.NOT_RUN)
    if made is None:
        pytest.skip(git_recorder.NOT_RUN)
    yield made
    shutil.rmtree(made.folder)


def _git(folder: Path, *words: str, **more: str) -> None:
    environment = {name: value for name, value in os.environ.items() if name in _MINIMAL}
    git = shutil.which("git")
    assert git is not None
    subprocess.run(
        [git, "-c", git_recorder.HARDENED, *words],
        cwd=folder,
        env={**environment, **more},
        capture_output=True,
        check=False,
    )


@pytest.fixture
def worktree(project: Project) -> Path:
    tree = project.root / ".worktrees" / "some-session"
    tree.mkdir(parents=True)
    return tree


@pytest.fixture
def sandboxed(worktree: Path, project: Project) -> Path:
    (project.root / ".git" / "genba" / "private" / worktree.name / "repository").mkdir(parents=True)
    return worktree


def test_git_started_in_a_worktree_is_a_violation(recorder: git_recorder.Recorder, worktree: Path) -> None:
    _git(worktree, "-c", git_recorder.HARDENED, "status")
    assert "what an agent or a goal can write" in "".join(git_recorder.violations(recorder.take()))


@pytest.mark.parametrize(
    "words",
    [
        ("-C", "{tree}", "status"),
        ("--work-tree={tree}", "status"),
        ("--work-tree", "{tree}", "status"),
        ("-C", ".worktrees", "-C", "some-session", "status"),
        ("fetch", "{tree}"),
        ("add", ".worktrees/some-session/file"),
    ],
)
def test_a_path_argument_in_a_worktree_is_a_violation(
    recorder: git_recorder.Recorder, worktree: Path, project: Project, words: tuple[str, ...]
) -> None:
    _git(project.root, *(word.format(tree=worktree) for word in words))
    assert git_recorder.violations(recorder.take())


def test_a_variable_of_git_that_names_a_worktree_is_a_violation(
    recorder: git_recorder.Recorder, worktree: Path, project: Project
) -> None:
    _git(project.root, "status", GIT_WORK_TREE=str(worktree))
    assert git_recorder.violations(recorder.take())


def test_git_on_a_private_repository_is_a_violation(
    recorder: git_recorder.Recorder, sandboxed: Path, project: Project
) -> None:
    private = project.root / ".git" / "genba" / "private" / sandboxed.name / "repository"
    _git(project.root, "--git-dir", str(private), "log")
    assert git_recorder.violations(recorder.take())


def test_git_of_the_product_with_the_whole_environment_is_a_violation(
    recorder: git_recorder.Recorder, project: Project
) -> None:
    subprocess.run(["git", "-c", git_recorder.HARDENED, "status"], cwd=project.root, capture_output=True, check=False)
    assert "whole environment" in "".join(git_recorder.violations(recorder.take()))


def test_the_repository_itself_and_new_checkouts_are_no_violation(
    recorder: git_recorder.Recorder, sandboxed: Path, project: Project
) -> None:
    hardened = ("-c", git_recorder.HARDENED)
    _git(project.root, *hardened, "--git-dir", str(project.root / ".git" / "worktrees" / sandboxed.name), "log")
    _git(project.root, *hardened, "status")
    _git(project.root, *hardened, "--work-tree", str(project.root / ".git/genba/fresh/1"), "reset", "--hard")
    assert not git_recorder.violations(recorder.take())


def test_a_key_in_the_environment_of_git_is_a_violation(recorder: git_recorder.Recorder, project: Project) -> None:
    _git(project.root, "status", ANTHROPIC_API_KEY="sk-ant-key")
    assert "ANTHROPIC_API_KEY" in "".join(git_recorder.violations(recorder.take()))


def test_looking_for_the_top_of_a_worktree_with_other_words_is_a_violation(
    recorder: git_recorder.Recorder, worktree: Path
) -> None:
    _git(worktree, "status", "--show-toplevel")
    assert git_recorder.violations(recorder.take())


def test_any_git_on_the_host_over_a_sandboxed_worktree_is_a_violation(
    recorder: git_recorder.Recorder, sandboxed: Path
) -> None:
    environment = {name: value for name, value in os.environ.items() if name in _MINIMAL}
    subprocess.run(["git", "status"], cwd=sandboxed, env=environment, capture_output=True, check=False)
    assert "a session in a sandbox" in "".join(git_recorder.violations(recorder.take()))


def test_an_agent_without_a_sandbox_may_use_git(recorder: git_recorder.Recorder, worktree: Path) -> None:
    subprocess.run(["git", "status"], cwd=worktree, capture_output=True, check=False)
    assert not git_recorder.violations(recorder.take())
