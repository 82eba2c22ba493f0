import json
import os
import shutil
from pathlib import Path

import pytest

from genba.connections.git.repository.layout import is_folder
from genba.connections.git.worktrees.worktrees import GitWorkingTrees
from genba.domain.errors import GitError, StateConflictError
from genba.domain.sessions.workspaces import Workspace
from tests.git.conftest import Floor

COMMIT = "echo work > work.txt && git add -A && git commit -qm 'Some work'"


def _private_dir(workspace: Workspace) -> Path:
    git_dir = Path(workspace.git_dir)
    return git_dir.parent.parent / "genba" / "private" / git_dir.name


async def test_unseen_commits_are_there_after_a_resume(floor: Floor) -> None:
    workspace = await floor.open()
    await floor.inside(workspace, COMMIT)

    later = await floor.anew()
    again = await later.trees.reopen(workspace)
    facts = await later.trees.observe(again)

    assert [commit.subject for commit in facts.commits] == ["Some work"]
    later.trees.release()


async def test_another_run_takes_the_tree_over_with_what_was_committed_in_it(floor: Floor) -> None:
    workspace = await floor.open()
    await floor.inside(workspace, COMMIT + "; echo loose > loose.txt; git switch -q --detach")

    later = await floor.anew()
    taken = await later.open()

    assert taken.taken_from == workspace.run
    facts = await later.trees.observe(taken)
    assert ([commit.subject for commit in facts.commits], facts.dirty) == (["Some work"], ("loose.txt",))
    assert facts.strayed == ""
    seen = await later.inside(taken, "git branch --show-current; git status --porcelain")
    assert seen.stdout == "genba/work\n?? loose.txt\n"
    later.trees.release()


@pytest.mark.parametrize("left", ["nothing", "half", "all"])
async def test_a_private_repository_that_was_cut_off_in_its_making_is_made_again(floor: Floor, left: str) -> None:
    workspace = await floor.open()
    await floor.inside(workspace, COMMIT)
    await floor.trees.observe(workspace)
    private_dir = _private_dir(workspace)
    state = json.loads((private_dir / "state.json").read_text())
    (private_dir / "state.json").write_text(json.dumps({**state, "ready": False}))
    if left == "nothing":
        shutil.rmtree(private_dir)
    elif left == "half":
        shutil.rmtree(private_dir / "repository/refs")
        (private_dir / "repository/HEAD").unlink()

    later = await floor.anew()
    again = await later.trees.reopen(workspace)

    seen = await later.inside(again, "git status --porcelain; git log --format=%s main..")
    assert seen.stdout == "Some work\n"
    later.trees.release()


async def test_a_death_after_the_branch_moved_and_before_the_tree_followed_is_made_good(floor: Floor) -> None:
    workspace = await floor.open()
    private_dir, git_dir = _private_dir(workspace), Path(workspace.git_dir)
    before = {path: path.read_bytes() for path in (private_dir / "state.json", git_dir / "index", git_dir / "HEAD")}
    await floor.inside(workspace, COMMIT)
    await floor.trees.observe(workspace)
    for path, content in before.items():
        path.write_bytes(content)

    later = await floor.anew()
    facts = await later.trees.observe(await later.trees.reopen(workspace))

    assert ([commit.subject for commit in facts.commits], facts.dirty) == (["Some work"], ())
    later.trees.release()


async def test_what_the_user_committed_in_the_tree_is_what_the_instance_goes_on_from(floor: Floor) -> None:
    workspace = await floor.open()
    await floor.inside(workspace, COMMIT)
    await floor.trees.observe(workspace)
    tree = Path(workspace.path)
    (tree / "mine.txt").write_text("by hand\n")
    floor.project.git("add", "-A", cwd=tree)
    floor.project.git("commit", "-qm", "By hand", cwd=tree)

    later = await floor.anew()
    again = await later.trees.reopen(workspace)

    seen = await later.inside(again, "git status --porcelain; git log --format=%s main..")
    assert seen.stdout == "By hand\nSome work\n"
    later.trees.release()


async def test_when_both_have_moved_the_user_is_followed_and_the_instance_loses_nothing(floor: Floor) -> None:
    workspace = await floor.open()
    await floor.inside(workspace, COMMIT)
    tree = Path(workspace.path)
    floor.project.git("add", "-A", cwd=tree)
    floor.project.git("commit", "-qm", "By hand", cwd=tree)

    later = await floor.anew()
    again = await later.trees.reopen(workspace)

    assert (await later.inside(again, "git log --format=%s main..")).stdout == "By hand\n"
    parted = later.project.git("for-each-ref", "--format=%(refname)", f"refs/genba/private/{workspace.run}/parted")
    assert later.project.git("log", "-1", "--format=%s", parted) == "Some work"
    later.trees.release()


async def test_a_tree_that_the_user_deleted_is_made_again_with_what_was_committed_in_it(floor: Floor) -> None:
    workspace = await floor.open()
    await floor.inside(workspace, COMMIT)
    shutil.rmtree(workspace.path)

    later = await floor.anew()
    again = await later.trees.reopen(workspace)

    facts = await later.trees.observe(again)
    assert ([commit.subject for commit in facts.commits], facts.dirty) == (["Some work"], ())
    assert (await later.inside(again, "cat work.txt; git status --porcelain")).stdout == "work\n"
    later.trees.release()


async def test_a_run_without_a_sandbox_never_removes_work_that_was_not_brought_back(floor: Floor) -> None:
    workspace = await floor.open()
    await floor.inside(workspace, COMMIT)
    floor.trees.release()

    plain = GitWorkingTrees(floor.trees.layout)
    removal = await plain.close(await plain.reopen(workspace))

    assert not removal.removed
    assert "not brought back" in removal.reason
    later = await floor.anew()
    assert (await later.trees.close(await later.trees.reopen(workspace))).removed
    assert floor.project.git("show", "genba/work:work.txt") == "work"


async def test_a_removal_that_was_cut_off_is_carried_out_to_the_end(floor: Floor) -> None:
    workspace = await floor.open()
    os.rename(workspace.path, Path(workspace.path).with_name("gone"))  # noqa: PTH104

    assert (await floor.trees.close(workspace)).removed
    assert not is_folder(_private_dir(workspace))


async def test_two_instances_never_have_the_same_branch(floor: Floor) -> None:
    await floor.open()
    with pytest.raises(StateConflictError, match="in use"):
        await floor.open()


async def test_a_private_repository_that_is_broken_is_reported_with_the_way_on(floor: Floor) -> None:
    workspace = await floor.open()
    await floor.inside(workspace, f"{COMMIT}; rm -rf $(git rev-parse --git-dir)/objects")
    later = await floor.anew()
    with pytest.raises(GitError) as result:
        await later.trees.reopen(workspace)
    command, name, *_ = result.value.hint.split()
    assert command == "rm"
    later = await later.anew()

    os.unlink(name)  # noqa: PTH108
    again = await later.trees.reopen(workspace)

    assert (await later.inside(again, "git status --porcelain; cat work.txt")).stdout == "?? work.txt\nwork\n"
    later.trees.release()


async def test_a_lock_that_a_git_of_the_host_left_on_the_branch_is_no_fault_of_the_instance(floor: Floor) -> None:
    workspace = await floor.open()
    await floor.inside(workspace, "echo w > w.txt && git add -A && git commit -qm work")
    left = floor.project.root / ".git" / f"refs/heads/{workspace.branch}.lock"
    left.touch()

    facts = await floor.trees.observe(workspace)

    assert [commit.subject for commit in facts.commits] == ["work"]
    assert floor.project.git("rev-parse", workspace.branch) == facts.head
    assert not left.exists()
