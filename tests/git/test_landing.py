"""The user's checkout is brought forward whenever nothing in it would be lost."""

import os
from pathlib import Path

import pytest

from genba.connections.git.merging.fast_forward import Landing, _Record
from genba.connections.git.repository.layout import RepositoryLayout
from genba.connections.git.repository.locks import held
from genba.domain.sessions.workspaces import MergeStatus, Proposal
from tests.project import Project

WRITE = {"write": {"path": "README.md", "text": "from the agent\n"}}
TURN = {"do": [WRITE, {"commit": "Change the first lines"}], "reply": "done"}


def test_a_file_that_was_only_touched_is_no_change_in_the_way(project: Project) -> None:
    project.agent(script={"turns": [TURN]})
    os.utime(project.root / "README.md", (1, 1))

    result = project.run("worker")

    assert result["merge"] == "merged"
    assert project.read("README.md") == "from the agent\n"
    assert project.git("status", "--porcelain") == ""


def test_a_base_that_is_checked_out_elsewhere_is_brought_forward_there(project: Project) -> None:
    project.agent(script={"turns": [TURN]})
    project.git("switch", "-q", "-c", "mine")
    project.git("worktree", "add", "-q", str(project.root.parent / "elsewhere"), "main")

    result = project.run("worker", "--base-branch", "main")

    assert result["merge"] == "merged"
    assert (project.root.parent / "elsewhere" / "README.md").read_text() == "from the agent\n"
    assert project.read("README.md") != "from the agent\n"


async def test_a_checkout_that_cannot_be_restored_is_restored_by_the_next_merge(
    project: Project, tmp_path: Path
) -> None:
    broken = tmp_path / "broken"
    project.git("config", "filter.moody.smudge", f"test ! -e {broken} && cat")
    project.git("config", "filter.moody.clean", "cat")
    project.git("config", "filter.moody.required", "true")
    project.write(".gitattributes", "a.txt filter=moody\n")
    project.write("a.txt", "before\n")
    project.commit("Before")
    project.git("switch", "-q", "-c", "work")
    project.write("a.txt", "after\n")
    project.write("b.txt", "new\n")
    project.commit("After")
    commit, base = project.git("rev-parse", "work"), project.git("rev-parse", "main")
    project.git("switch", "-q", "main")
    layout = await RepositoryLayout.find(project.root)
    async with held(layout.repository_lock, "test") as lock:
        landing = Landing(layout, lock)
        changes = await landing.changes(base, commit)
        broken.touch()
        proposal = Proposal(base=base, commit=commit, tree=project.git("rev-parse", "work^{tree}"))

        result = await landing.fast_forward(project.root, "refs/heads/main", proposal, changes)

        assert result is not None
        assert result.status is MergeStatus.CHECKOUT_IN_THE_WAY
        assert "could not be put back" in result.detail
        broken.unlink()
        await landing.put_back_what_was_cut_off(project.root)
    assert (project.git("rev-parse", "HEAD"), project.git("status", "--porcelain")) == (base, "")
    assert project.read("a.txt") == "before\n"


async def _proposed(project: Project) -> Proposal:
    """A line more in a file of main, on a branch of its own."""
    project.write("a.txt", "one\ntwo\nthree\n")
    project.commit("Before")
    project.git("switch", "-q", "-c", "work")
    project.write("a.txt", "one\ntwo\nthree\nfour\n")
    project.commit("After")
    project.git("switch", "-q", "main")
    return Proposal(
        base=project.git("rev-parse", "main"),
        commit=project.git("rev-parse", "work"),
        tree=project.git("rev-parse", "work^{tree}"),
    )


async def test_a_checkout_that_git_refused_to_change_is_the_users_own_again(project: Project) -> None:
    proposal = await _proposed(project)
    lock = project.root / ".git" / "index.lock"
    lock.touch()  # a git of the user's is busy
    layout = await RepositoryLayout.find(project.root)
    async with held(layout.repository_lock, "test") as held_lock:
        landing = Landing(layout, held_lock)
        changes = await landing.changes(proposal.base, proposal.commit)

        result = await landing.fast_forward(project.root, "refs/heads/main", proposal, changes)

        assert result is not None
        assert result.status is MergeStatus.CHECKOUT_IN_THE_WAY
        assert "index.lock" in result.detail
        lock.unlink()
        project.write("a.txt", "one\ntwo\n")  # which is the beginning of what was to come
        await landing.put_back_what_was_cut_off(project.root)
    assert project.read("a.txt") == "one\ntwo\n"


@pytest.mark.parametrize(("later", "put_back"), [(1, True), (3600, False), (-3600, False)])
async def test_half_a_file_is_put_back_only_if_the_git_that_died_may_have_written_it(
    project: Project, later: int, put_back: bool
) -> None:
    proposal = await _proposed(project)
    layout = await RepositoryLayout.find(project.root)
    async with held(layout.repository_lock, "test") as lock:
        landing = Landing(layout, lock)
        landing._write(
            _Record(checkout=str(project.root), ref="refs/heads/main", base=proposal.base, commit=proposal.commit)
        )
        project.write("a.txt", "one\ntwo\n")
        when = landing.record.stat().st_mtime + later
        os.utime(project.root / "a.txt", (when, when))

        await landing.put_back_what_was_cut_off(project.root)

    assert project.read("a.txt") == ("one\ntwo\nthree\n" if put_back else "one\ntwo\n")


async def test_files_of_any_name_and_kind_are_the_users_own_again_too(project: Project) -> None:
    names = ["plain.txt", "with space.txt", "two\nlines.txt", '"quoted".txt', "naïve.txt"]
    for name in names:
        project.write(name, "before\n")
    (project.root / "link").symlink_to("plain.txt")
    proposal = await _proposed(project)
    project.git("switch", "-q", "work")
    for name in names:
        project.write(name, "after\n")
    (project.root / "link").unlink()
    (project.root / "link").symlink_to("naïve.txt")
    project.commit("Change all")
    commit, tree = project.git("rev-parse", "work"), project.git("rev-parse", "work^{tree}")
    project.git("switch", "-q", "main")
    (project.root / ".git" / "index.lock").touch()
    layout = await RepositoryLayout.find(project.root)
    async with held(layout.repository_lock, "test") as lock:
        landing = Landing(layout, lock)
        changes = await landing.changes(proposal.base, commit)

        result = await landing.fast_forward(
            project.root, "refs/heads/main", Proposal(base=proposal.base, commit=commit, tree=tree), changes
        )

    assert len(changes) == len(names) + 2
    assert result is not None
    assert "index.lock" in result.detail
    assert not landing.record.exists()
