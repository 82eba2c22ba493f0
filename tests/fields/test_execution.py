"""runner.execution: the working tree, and what becomes of the branch."""

from typing import Any

import pytest

from tests.fields.flows import configure, idle, work
from tests.project import Project

RECORD = """#!/bin/sh
for word in "$@"; do echo "$word" >> "$(dirname "$0")/asked.txt"; done
echo "opening" >&2
echo https://forge.invalid/pull/9
"""


@pytest.fixture
def remote(project: Project) -> str:
    """A second repository, known as origin and as upstream."""
    bare = project.root.parent / "remote.git"
    project.git("init", "-q", "--bare", str(bare))
    project.git("remote", "add", "origin", str(bare))
    project.git("remote", "add", "upstream", str(project.root.parent / "upstream.git"))
    project.git("init", "-q", "--bare", str(project.root.parent / "upstream.git"))
    return str(bare)


@pytest.fixture
def forge(project: Project) -> None:
    """A forge that is a small script: it writes down its words."""
    script = project.root.parent / "forge.sh"
    script.write_text(RECORD, encoding="utf-8")
    script.chmod(0o755)
    configure(project, f'forge: {{open: ["{script}", "{{branch}}", "{{target}}"]}}\n')


def asked(project: Project) -> list[str]:
    return (project.root.parent / "asked.txt").read_text("utf-8").splitlines()


def heads(project: Project, where: str) -> list[str]:
    """The branches of a remote."""
    lines = project.git("ls-remote", "--heads", where).splitlines()
    return [line.partition("refs/heads/")[2] for line in lines]


def finalizing(project: Project, **finalize: Any) -> None:
    project.agent(execution={"finalize": finalize})


def test_the_agent_works_in_a_tree_of_its_own(project: Project) -> None:
    project.agent(script={"turns": [work(run="pwd > where.txt && git add -A && git commit -qm where")]})
    result = project.run("worker")
    assert project.read("where.txt").strip() == result["workdir"]
    assert result["workdir"].startswith(f"{project.root}/.worktrees/")


def test_without_a_worktree_the_agent_works_in_the_checkout(project: Project) -> None:
    project.agent(execution={"worktree": {"enabled": False}})
    result = project.run("worker")
    assert (result["workdir"], result["branch"]) == (str(project.root), "main")
    assert project.git("log", "-1", "--format=%s") == "work"


def test_working_trees_are_made_below_their_root(project: Project) -> None:
    project.agent(execution={"worktree": {"root": "tmp/trees"}})
    assert project.run("worker")["workdir"].startswith(f"{project.root}/tmp/trees/")
    assert project.git("status", "--porcelain") == ""


def test_a_root_outside_of_the_repository_is_refused(project: Project) -> None:
    project.agent(execution={"worktree": {"root": "../trees"}})
    assert "leaves the repository" in project.genba("run", "worker", check=3).err


def test_the_branch_is_merged_into_its_base_by_default(project: Project) -> None:
    project.agent()
    result = project.run("worker")
    assert project.git("rev-parse", "main") == result["merged"]
    assert project.branches() == ["main"]


def test_without_auto_merge_the_branch_is_left(project: Project) -> None:
    finalizing(project, autoMerge=False)
    result = project.run("worker")
    assert (result["outcome"], result["merged"]) == ("completed", "")
    assert sorted(project.branches()) == sorted(["main", result["branch"]])
    assert not (project.root / "work.txt").exists()


def test_no_merge_on_the_command_line_leaves_the_branch(project: Project) -> None:
    project.agent()
    result = project.run("worker", "--no-merge")
    assert project.git("log", "-1", "--format=%s", result["branch"]) == "work"
    assert result["merged"] == ""


def test_the_merged_base_is_pushed(project: Project, remote: str) -> None:
    finalizing(project, push=True)
    result = project.run("worker")
    assert project.git("ls-remote", remote, "refs/heads/main").split()[0] == result["merged"]


def test_nothing_is_pushed_by_default(project: Project, remote: str) -> None:
    project.agent()
    project.run("worker")
    assert heads(project, remote) == []


def test_push_on_the_command_line_pushes(project: Project, remote: str) -> None:
    project.agent()
    project.run("worker", "--push")
    assert heads(project, remote) == ["main"]


def test_without_a_merge_the_branch_itself_is_pushed(project: Project, remote: str) -> None:
    project.agent()
    result = project.run("worker", "--no-merge", "--push")
    assert heads(project, remote) == [result["branch"]]


def test_the_remote_says_where_to_push(project: Project, remote: str) -> None:
    finalizing(project, push=True, remote="upstream")
    project.run("worker")
    assert (heads(project, remote), heads(project, "upstream")) == ([], ["main"])


def test_push_remote_on_the_command_line_says_where_to_push(project: Project, remote: str) -> None:
    finalizing(project, push=True)
    project.run("worker", "--push-remote", "upstream")
    assert (heads(project, remote), heads(project, "upstream")) == ([], ["main"])


def test_a_push_that_fails_is_not_success_and_keeps_the_work(project: Project) -> None:
    project.git("remote", "add", "nowhere", "../nowhere.git")
    finalizing(project, push=True, remote="nowhere")
    result = project.run("worker", check=1)
    assert result["outcome"] == "incomplete"
    assert "could not be pushed to nowhere" in result["reason"]


@pytest.mark.usefixtures("forge", "remote")
def test_create_pr_opens_a_pull_request_instead_of_merging(project: Project) -> None:
    finalizing(project, createPr=True)
    result = project.run("worker")
    assert (result["merged"], result["pull_request"]) == ("", "https://forge.invalid/pull/9")
    assert asked(project) == [result["branch"], "main"]
    assert heads(project, "origin") == [result["branch"]]


@pytest.mark.usefixtures("forge", "remote")
def test_create_pr_on_the_command_line_opens_a_pull_request(project: Project) -> None:
    project.agent()
    assert project.run("worker", "--create-pr")["pull_request"] == "https://forge.invalid/pull/9"
    assert not (project.root / "work.txt").exists()


@pytest.mark.usefixtures("forge", "remote")
def test_the_pull_request_has_its_target(project: Project) -> None:
    finalizing(project, createPr=True, prTarget="develop")
    result = project.run("worker")
    assert asked(project) == [result["branch"], "develop"]


@pytest.mark.usefixtures("forge", "remote")
def test_pr_target_on_the_command_line_names_the_target(project: Project) -> None:
    project.agent()
    result = project.run("worker", "--create-pr", "--pr-target", "release")
    assert asked(project) == [result["branch"], "release"]


def test_a_pull_request_without_a_forge_is_refused_before_anything_starts(project: Project) -> None:
    finalizing(project, createPr=True)
    assert "the project names no forge" in project.genba("run", "worker", check=3).err
    assert project.branches() == ["main"]


@pytest.mark.usefixtures("forge")
def test_a_pull_request_without_a_worktree_is_refused_and_pushes_nothing(project: Project, remote: str) -> None:
    project.agent(execution={"worktree": {"enabled": False}})
    assert "a pull request needs a branch of its own" in project.genba("run", "worker", "--create-pr", check=3).err
    assert heads(project, remote) == []


def test_nothing_is_merged_of_a_run_that_did_not_complete(project: Project) -> None:
    project.agent(script={"turns": [work(), idle()]}, completion={"type": "checkBudget", "config": {"maxChecks": 9}})
    result = project.run("worker", "--set", "runner.limits.maxIterations=2", check=6)
    assert result["merged"] == ""
    assert project.git("log", "-1", "--format=%s", result["branch"]) == "work"
