"""Which branches there are is read from files, and left to git where files do not tell."""

from genba.connections.git.merging.merge import GitRepository
from genba.connections.git.repository.branches import branches_beside
from genba.connections.git.repository.layout import RepositoryLayout
from genba.connections.git.worktrees.worktrees import GitWorkingTrees
from genba.domain.sessions.workspaces import WorkspaceRequest
from tests.project import Project

AUTHOR = "worker@agents.invalid"


def by_the_agent(project: Project, branch: str, *words: str) -> None:
    project.git("branch", branch)
    tree = project.git("rev-parse", f"{branch}^{{tree}}")
    commit = project.git(
        "-c", "user.name=worker", "-c", f"user.email={AUTHOR}", "commit-tree", tree, "-p", branch, "-m", "left", *words
    )
    project.git("update-ref", f"refs/heads/{branch}", commit)


def test_branches_with_and_without_a_file_are_found_and_a_folder_is_left_aside(project: Project) -> None:
    first, place = project.commit("one"), project.root / ".git"
    for name in ("genba/1-task", "side/deep/one", "packed", "moved"):
        project.git("branch", name)
    project.git("pack-refs", "--all")
    project.write("file", "two\n")
    second = project.commit("two")
    project.git("branch", "--force", "moved", "main")
    project.git("branch", "genba/2-task")

    found = branches_beside(place, "genba/")

    assert found == {"main": second, "moved": second, "side/deep/one": first, "packed": first}


def test_a_branch_that_stands_for_another_one_and_too_many_are_left_to_git(project: Project) -> None:
    tip, place = project.commit("one"), project.root / ".git"
    for number in range(60):
        (place / "refs" / "heads" / f"b{number}").write_text(f"{tip}\n")
    assert branches_beside(place, "genba/") is None
    for number in range(60):
        (place / "refs" / "heads" / f"b{number}").unlink()
    assert branches_beside(place, "genba/") == {"main": tip}
    project.git("symbolic-ref", "refs/heads/alias", "refs/heads/main")
    assert branches_beside(place, "genba/") is None


async def test_work_that_was_left_on_another_branch_is_found_packed_or_not(project: Project) -> None:
    project.commit("one")
    layout = await RepositoryLayout.find(project.root)
    repository, trees = GitRepository(layout), GitWorkingTrees(layout)
    request = WorkspaceRequest(
        run="worker-1", agent="worker", root=".worktrees", isolated=True, branch="genba/1", base_branch=None,
        issue=None, issue_title="",
    )  # fmt: skip
    workspace = await trees.open(request)
    by_the_agent(project, "genba/2-other")
    project.git("branch", "of-the-user")
    assert await repository.left_elsewhere(AUTHOR, workspace) == ()

    by_the_agent(project, "stray")
    assert await repository.left_elsewhere(AUTHOR, workspace) == ("stray",)
    project.git("pack-refs", "--all")
    project.git("repack", "-a", "-d", "--quiet")
    assert await repository.left_elsewhere(AUTHOR, workspace) == ("stray",)
    trees.release()
