from pathlib import Path

import pytest

from genba.connections.git.repository.layout import RepositoryLayout, is_folder
from genba.connections.git.worktrees.registration import register
from genba.connections.git.worktrees.worktrees import GitWorkingTrees
from genba.domain.errors import StateConflictError
from tests.git.conftest import request
from tests.project import Project


def _listed(project: Project) -> list[str]:
    lines = project.git("worktree", "list", "--porcelain").splitlines()
    return [line for line in lines if line.startswith(("worktree ", "branch ", "prunable", "locked"))]


async def _trees(project: Project) -> GitWorkingTrees:
    return GitWorkingTrees(await RepositoryLayout.find(project.root))


@pytest.mark.parametrize("own_settings", [False, True])
async def test_git_knows_a_new_working_tree_by_hand_or_by_itself(project: Project, own_settings: bool) -> None:
    if own_settings:  # then git is asked to make it
        project.git("config", "extensions.worktreeConfig", "true")
        project.git("config", "--worktree", "core.fileMode", "true")
    workspace = await (await _trees(project)).open(request())

    tree = Path(workspace.path)
    assert _listed(project)[-2:] == [f"worktree {tree}", "branch refs/heads/genba/work"]
    assert project.git("-C", str(tree), "status", "--porcelain", "--branch") == "## genba/work"
    assert project.git("-C", str(tree), "rev-parse", "--absolute-git-dir") == workspace.git_dir
    assert project.git("worktree", "prune", "--dry-run", "--verbose") == ""
    assert "Created from" in project.git("reflog", "show", "genba/work")
    (tree / "new.txt").write_text("new\n")
    project.git("-C", str(tree), "add", "-A")
    project.git("-C", str(tree), "commit", "-q", "-m", "Inside")
    assert project.git("log", "-1", "--format=%s", "genba/work") == "Inside"
    project.git("worktree", "remove", str(tree))
    assert not is_folder(tree)


async def test_two_working_trees_whose_folders_have_one_name_have_two_places(project: Project) -> None:
    layout = await RepositoryLayout.find(project.root)
    for number in (1, 2):
        project.git("branch", f"side-{number}")
        register(layout, project.root.parent / f"away-{number}" / "tree", f"side-{number}")

    names = sorted(path.name for path in (layout.common / "worktrees").iterdir())
    assert names == ["tree", "tree1"]
    assert [line for line in _listed(project) if line.startswith("branch ")][1:] == [
        "branch refs/heads/side-1",
        "branch refs/heads/side-2",
    ]


async def test_a_folder_that_is_there_is_not_taken(project: Project) -> None:
    layout = await RepositoryLayout.find(project.root)
    project.git("branch", "side")
    there = project.root.parent / "there"
    there.mkdir()

    with pytest.raises(Exception, match="could not be made"):
        register(layout, there, "side")

    assert list(there.iterdir()) == []
    assert [path.name for path in layout.own.iterdir() if path.name.startswith("registering")] == []


async def test_a_branch_that_cannot_be_beside_another_one_is_refused(project: Project) -> None:
    trees = await _trees(project)

    with pytest.raises(StateConflictError, match="no working tree can be made"):
        await trees.open(request("main/x"))

    assert len(_listed(project)) == 2
    assert project.git("branch", "--format=%(refname:short)") == "main"
