"""Commits that are written without a process are those that git would have made."""

import time
from pathlib import Path

import pytest

from genba.connections.git.repository.commands import Git
from genba.connections.git.repository.commit_writer import Writer, Writing, write_commit
from genba.connections.git.repository.layout import RepositoryLayout
from tests.project import Project

MESSAGE = "Merge ä (#1)\n\nIssue: 1\nAgent: worker"


async def git_of(project: Project) -> Git:
    return (await RepositoryLayout.find(project.root)).git


async def made(git: Git, project: Project, count: int, message: str = MESSAGE) -> list[str]:
    """So many commits, each on the one before."""
    tree, tip = project.git("rev-parse", "HEAD^{tree}"), project.git("rev-parse", "HEAD")
    commits = []
    for number in range(count):
        tip = await git.commit_tree(tree, (tip,), f"{number} {message}")
        commits.append(tip)
    return commits


def without_time(project: Project, commit: str) -> list[str]:
    lines = project.git("cat-file", "commit", commit).split("\n")
    who = ("author", "committer")
    return [line.rsplit(" ", 2)[0] + line[-6:] if line.startswith(who) else line[:1000] for line in lines]


async def test_many_commits_are_made_as_git_makes_them(project: Project) -> None:
    project.commit("one")
    git = await git_of(project)

    commits = await made(git, project, 6)

    assert git.writing.writer is not None
    first, last = (without_time(project, commit) for commit in (commits[0], commits[-1]))
    assert first[2:4] == last[2:4]
    assert last[4:] == ["", f"5 {MESSAGE.splitlines()[0]}", *MESSAGE.splitlines()[1:]]
    assert project.git("rev-list", "--count", commits[-1], "^HEAD") == "6"
    assert project.git("fsck", "--strict", "--no-dangling", commits[-1]) == ""
    for commit in commits:
        assert (project.root / ".git" / "objects" / commit[:2] / commit[2:]).stat().st_mode & 0o777 == 0o444


async def test_the_same_commit_in_the_same_second_is_the_one_of_git(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.commit("one")
    git = await git_of(project)
    tree, parents = project.git("rev-parse", "HEAD^{tree}"), (project.git("rev-parse", "HEAD"),)
    writer = Writer("A <a@localhost>", "B <b@localhost>")

    own = write_commit(git.git_dir, writer, tree, parents, "no end")

    assert own is not None
    when = project.git("log", "-1", "--format=%ad", "--date=raw", own)
    for role, name in (("AUTHOR", "A"), ("COMMITTER", "B")):
        monkeypatch.setenv(f"GIT_{role}_NAME", name)
        monkeypatch.setenv(f"GIT_{role}_EMAIL", f"{name.lower()}@localhost")
        monkeypatch.setenv(f"GIT_{role}_DATE", when)
    assert project.git("commit-tree", tree, "-p", parents[0], "-m", "no end") == own


@pytest.mark.parametrize(
    ("key", "value"),
    [("i18n.commitEncoding", "latin1"), ("core.sharedRepository", "group"), ("core.fsync", "all")],
)
async def test_what_git_writes_in_another_way_is_left_to_git(project: Project, key: str, value: str) -> None:
    project.commit("one")
    project.git("config", key, value)
    git = await git_of(project)

    commits = await made(git, project, 5, "plain")

    assert git.writing.writer is None
    assert project.git("rev-list", "--count", commits[-1], "^HEAD") == "5"


async def test_dates_of_the_environment_are_left_to_git(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    project.commit("one")
    git = await git_of(project)
    monkeypatch.setenv("GIT_AUTHOR_DATE", "1700000000 +0000")

    await made(git, project, 4)

    assert git.writing.writer is None


async def test_what_cannot_be_written_is_left_to_git(project: Project, tmp_path: Path) -> None:
    project.commit("one")
    tree = project.git("rev-parse", "HEAD^{tree}")
    writer = Writer("A <a@localhost>", "A <a@localhost>")

    assert write_commit(tmp_path / "nowhere", writer, tree, (), "x") is None
    assert write_commit(project.root / ".git", writer, "HEAD^{tree}", (), "x") is None
    assert write_commit(project.root / ".git", writer, tree, (), "a\0b") is None
    assert write_commit(project.root / ".git", writer, tree, (), " \n") is None
    assert write_commit(project.root / ".git", writer, tree, (), "\udc80") is None
    assert not list((project.root / ".git" / "objects").glob("*/tmp_obj_*"))
    assert not (tmp_path / "nowhere").exists()


async def test_a_name_that_the_user_changes_is_asked_for_again(project: Project) -> None:
    project.commit("one")
    git = await git_of(project)
    git.writing = Writing(known_seconds=0.5)
    await made(git, project, 4)
    project.git("config", "user.name", "Somebody Else")

    deadline, found = time.monotonic() + 30, ""
    while found != "Somebody Else" and time.monotonic() < deadline:
        found = project.git("log", "-1", "--format=%an", (await made(git, project, 1))[0])

    assert found == "Somebody Else"
