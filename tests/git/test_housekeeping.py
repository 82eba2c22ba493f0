"""Housekeeping in the repository: a ref goes only while another one has its commits, whatever happens in between."""

import os
import time
from pathlib import Path

from genba.connections.git.repository.layout import RepositoryLayout, is_folder
from genba.connections.git.worktrees.housekeeping import GitHousekeeping
from genba.connections.git.worktrees.worktrees import GitWorkingTrees
from genba.domain.sessions.workspaces import Workspace
from genba.domain.tasks.housekeeping import Candidate, SessionLeftovers
from tests.git.conftest import Floor, request
from tests.project import Project

BRANCH = "genba/1-work"
LATER = 60.0


def over(workspace: Workspace, **fields: object) -> dict[str, SessionLeftovers]:
    values = {"run": workspace.run, "over": True, "why": "#1 is done", "task": 1, "branch": workspace.branch}
    return {workspace.run: SessionLeftovers(**{**values, "base_branch": workspace.base_branch, **fields})}  # type: ignore[arg-type]


def reachable(project: Project) -> set[str]:
    return set(project.git("rev-list", "--all").splitlines())


async def clear(keeping: GitHousekeeping) -> tuple[list[str], dict[str, str]]:
    """What went, by its kind; and what stays, by its name."""
    went, stays = [], {}
    for candidate in await keeping.find():
        why = await candidate.act() if candidate.act is not None else candidate.found.why
        if why:
            stays[candidate.found.name] = why
        else:
            went.append(candidate.found.kind)
    return went, stays


def written(workspace: Workspace, name: str = "work.txt") -> None:
    Path(workspace.path, name).write_text("work\n")


async def test_a_cell_goes_with_its_tree_and_what_was_not_brought_back_stays(floor: Floor) -> None:
    first, second = await floor.open("genba/1-work"), await floor.open("genba/2-work")
    for workspace in (first, second):
        await floor.inside(workspace, "echo work > work.txt && git add -A && git commit -qm work")
    await floor.trees.observe(first)
    floor.trees.release()
    before = reachable(floor.project)

    runs = {**over(first), **over(second, task=2, why="#2 is done")}
    went, stays = await clear(GitHousekeeping(floor.trees.layout, runs, time.time() + LATER))

    assert went.count("working tree") == 1
    assert "was not brought back" in stays[second.path]
    assert stays["genba/1-work"] == "nothing else has its commits"
    assert (is_folder(first.path), is_folder(second.path)) == (False, True)
    assert before <= reachable(floor.project)
    assert [name for name in floor.refs() if first.run in name] == [], "what held the objects for it is gone"
    assert len([name for name in floor.refs() if f"/base/{second.run}/" in name]) == 2, "a cell still borrows them"


async def test_a_keeper_that_goes_in_between_keeps_the_branch(project: Project) -> None:
    layout = await RepositoryLayout.find(project.root)
    trees = GitWorkingTrees(layout)
    workspace = await trees.open(request(BRANCH))
    written(workspace)
    await trees.commit(workspace, "Work", "worker <worker@agents.invalid>")
    trees.release()
    project.git("tag", "kept", BRANCH)
    keeping = GitHousekeeping(layout, over(workspace), time.time() + LATER)
    candidates = [candidate for candidate in await keeping.find() if candidate.act is not None]
    assert [candidate.found.kind for candidate in candidates] == ["working tree", "branch"]

    assert await _act(candidates[0]) == ""
    project.git("tag", "--delete", "kept")

    assert await _act(candidates[1]) == "kept has its commits no longer"
    assert BRANCH in project.git("branch", "--format=%(refname:short)").splitlines()


async def _act(candidate: Candidate) -> str:
    assert candidate.act is not None
    return await candidate.act()


async def test_of_several_refs_with_the_same_commits_the_branch_stays(project: Project) -> None:
    layout = await RepositoryLayout.find(project.root)
    trees = GitWorkingTrees(layout)
    workspace = await trees.open(request(BRANCH))
    written(workspace)
    await trees.commit(workspace, "Work", "worker <worker@agents.invalid>")
    trees.release()
    for kind in ("sessions", "shared", "fetched"):
        project.git("update-ref", f"refs/genba/{kind}/{workspace.run}", BRANCH)
    project.git("update-ref", f"refs/genba/rescue/{workspace.run}", BRANCH)
    before = reachable(project)

    went, stays = await clear(GitHousekeeping(layout, over(workspace), time.time() + LATER))

    assert (sorted(went), list(stays)) == (["ref", "ref", "ref", "rescued work", "working tree"], [BRANCH])
    assert before == reachable(project)


async def test_a_branch_that_an_open_task_builds_on_stays(project: Project) -> None:
    layout = await RepositoryLayout.find(project.root)
    trees = GitWorkingTrees(layout)
    workspace = await trees.open(request(BRANCH))
    trees.release()
    part = SessionLeftovers(run="part", over=False, why="#2 is open", task=2, branch="genba/2-part", base_branch=BRANCH)

    went, _ = await clear(
        GitHousekeeping(layout, {**over(workspace, base_branch=""), "part": part}, time.time() + LATER)
    )

    assert went == ["working tree"]
    assert BRANCH in project.git("branch", "--format=%(refname:short)").splitlines()


async def test_templates_go_when_nothing_lies_over_them(project: Project) -> None:
    layout = await RepositoryLayout.find(project.root)
    old, young = layout.own / "templates" / ("1" * 40), layout.own / "templates" / ("2" * 40)
    for folder in (old, young):
        (folder / "tree").mkdir(parents=True)
    os.utime(old, (1, 1))

    went, stays = await clear(GitHousekeeping(layout, {}, time.time() - LATER))

    assert (went, stays) == (["template"], {})
    assert (old.exists(), young.exists()) == (False, True)
