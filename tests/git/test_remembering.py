import pytest

from genba.connections.git.repository.commands import Git
from genba.connections.git.repository.history import GitHistory
from genba.connections.git.repository.layout import RepositoryLayout
from genba.connections.git.repository.object_cache import Memory
from genba.connections.git.worktrees.worktree_status import changed_files
from genba.domain.sessions.branch_naming import is_plain
from tests.project import Project


async def git_of(project: Project) -> Git:
    return (await RepositoryLayout.find(project.root)).git


async def test_a_branch_that_git_has_packed_is_found_and_one_that_is_gone_is_not(project: Project) -> None:
    tip = project.commit("one")
    project.git("branch", "side/one")
    project.git("pack-refs", "--all")
    git = await git_of(project)

    assert await git.commit_of("refs/heads/side/one") == tip
    assert await git.commit_of("refs/heads/side") is None
    assert await git.commit_of("refs/heads/one") is None
    project.git("branch", "--force", "side/one", project.commit("two"))
    assert await git.commit_of("refs/heads/side/one") == project.git("rev-parse", "HEAD")
    project.git("branch", "--delete", "--force", "side/one")
    assert await git.commit_of("refs/heads/side/one") is None


async def test_a_branch_that_stands_for_another_one_is_followed(project: Project) -> None:
    tip = project.commit("one")
    project.git("symbolic-ref", "refs/heads/alias", "refs/heads/main")

    assert await (await git_of(project)).commit_of("refs/heads/alias") == tip


async def test_the_files_of_a_commit_are_those_of_its_base_and_what_changed(project: Project) -> None:
    project.write("kept.txt", "kept\n")
    project.write("gone/old.txt", "old\n")
    base = project.commit("one")
    project.git("mv", "gone/old.txt", "new name.txt")
    project.write("kept.txt", "changed\n")
    tip = project.commit("two")
    known, fresh = GitHistory(await git_of(project)), GitHistory(await git_of(project))
    await known.files(base)

    facts = await known.facts(base, tip)

    assert sorted(await known.files(tip)) == sorted(await fresh.files(tip))
    names = tuple(f"{tip}:{name}" for name in ("kept.txt", "gone/old.txt", "new name.txt", "nowhere", "gone"))
    assert await known.read(names) == {f"{tip}:kept.txt": "changed\n", f"{tip}:new name.txt": "old\n"}
    assert facts.touched == ("gone/old.txt", "kept.txt", "new name.txt")


async def test_files_touched_by_several_commits_are_listed_though_they_are_unchanged(project: Project) -> None:
    base = project.commit("one")
    project.write("twice.txt", "here\n")
    project.commit("two")
    project.git("rm", "-q", "twice.txt")
    tip = project.commit("three")
    git = await git_of(project)

    facts = await GitHistory(git).facts(base, tip)

    assert (facts.touched, facts.changes) == (("twice.txt",), ())
    assert await changed_files(git, base, tip) == ("twice.txt",)


async def test_an_ancestor_that_is_known_needs_no_git_and_one_that_is_not_is_asked_for(project: Project) -> None:
    first, second = project.commit("one"), project.commit("two")
    git = await git_of(project)
    tree = project.git("rev-parse", "HEAD^{tree}")

    third = await git.commit_tree(tree, (second,), "three")

    assert git.memory.is_known_ancestor(second, third)
    assert not git.memory.is_known_ancestor(first, third)
    assert await git.is_ancestor(first, third)
    assert not await git.is_ancestor(third, first)


def test_a_memory_forgets_what_is_oldest_and_takes_nothing_that_is_huge() -> None:
    memory = Memory()
    room = memory.blobs.most // 4 - 100
    for name in ("a", "b", "c", "d", "e"):
        memory.blobs.put(name, b"x" * room)
    memory.blobs.put("huge", b"x" * (room + 1))

    assert memory.blobs.get("a") is None
    assert memory.blobs.get("huge") is None
    assert memory.blobs.get("e") == b"x" * room


@pytest.mark.parametrize("name", ["genba/1-add-login", "side", "a/b/c"])
def test_git_takes_every_plain_name(name: str, project: Project) -> None:
    assert is_plain(name)
    assert project.git("check-ref-format", "--branch", name) == name


@pytest.mark.parametrize("name", ["-x", "a..b", "a.lock", "a//b", "/a", "a/", "HEAD", "a b", "@", "ä", "a\n", ""])
def test_a_name_that_git_may_refuse_is_not_plain(name: str) -> None:
    assert not is_plain(name)
