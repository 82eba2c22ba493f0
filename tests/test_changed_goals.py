"""Goals that a person changes count from then on; `task done` holds what is on the base to them."""

import shlex
from pathlib import Path

import pytest
import yaml

from genba.domain.goals.goal import FileExists
from genba.domain.tasks.task import TaskStatus
from tests.project import GENBA, Project

WORK = "echo x > x.txt && git add -A && git commit -qm x"


def settings(project: Project, *goals: object) -> None:
    project.write(".genba/config.yaml", yaml.safe_dump({"dod": list(goals)}))
    project.commit("What done means")


def worker(project: Project, line: str = WORK) -> None:
    project.agent(adapter={"type": "custom", "command": line})


def on_base(project: Project, line: str) -> str:
    """A line of shell that does something to the base from inside of a session without a sandbox."""
    return f"cd {shlex.quote(str(project.root))} && {line}"


def in_review(project: Project) -> str:
    """The branch of work that was verified and waits to be merged by hand."""
    settings(project, {"custom_script": "true"})
    project.issue(1, "One", goals=(FileExists(path="x.txt"),))
    worker(project)
    return str(project.run("worker", "--issue", "1", "--no-merge")["branch"])


def merge_by_hand(project: Project, branch: str, *words: str) -> None:
    project.git("merge", "-q", "--no-ff", "-m", "By hand", *words, branch)


def test_a_merge_that_took_nothing_of_the_work_does_not_make_the_task_done(project: Project) -> None:
    merge_by_hand(project, in_review(project), "-s", "ours")
    refused = project.genba("task", "done", "1", check=5)
    assert "took nothing of" in refused.err
    assert "hint: genba run" in refused.err
    assert project.task(1).status is TaskStatus.REVIEW


def test_work_that_the_base_took_back_does_not_make_the_task_done(project: Project) -> None:
    merge_by_hand(project, in_review(project))
    project.git("revert", "-m", "1", "--no-edit", "HEAD")
    refused = project.genba("task", "done", "1", check=5)
    assert "the work on task #1, back" in refused.err
    assert project.task(1).status is TaskStatus.REVIEW


def test_work_that_is_gone_from_the_base_does_not_make_the_task_done(project: Project) -> None:
    merge_by_hand(project, in_review(project))
    project.git("rm", "-q", "x.txt")
    project.commit("Tidy up")
    refused = project.genba("task", "done", "1", check=5)
    assert "no longer meets the goals of task #1: rejected: goals_not_met (file_exists)" in refused.err
    assert project.task(1).status is TaskStatus.REVIEW


def test_other_work_on_the_base_is_no_hindrance(project: Project) -> None:
    branch = in_review(project)
    project.write("other.txt", "other\n")
    project.commit("Other work")
    merge_by_hand(project, branch)
    project.write("later.txt", "later\n")
    project.commit("Later work")
    project.genba("task", "done", "1", check=0)
    assert project.task(1).status is TaskStatus.DONE


@pytest.mark.parametrize("edit", [("--goal", "file_exists:must.txt"), ("--type", "bug")], ids=["goal", "type"])
def test_a_goal_that_was_added_in_review_counts_for_task_done(project: Project, edit: tuple[str, str]) -> None:
    branch = in_review(project)
    project.genba("task", "edit", "1", *edit, check=0)
    merge_by_hand(project, branch)
    refused = project.genba("task", "done", "1", check=5)
    assert "does not meet the goals of task #1" in refused.err
    assert project.task(1).status is TaskStatus.REVIEW


@pytest.mark.parametrize("edit", [("--goal", "file_exists:must.txt"), ("--type", "bug")], ids=["goal", "type"])
def test_a_goal_that_is_added_while_the_agent_works_counts(project: Project, edit: tuple[str, str]) -> None:
    settings(project, {"custom_script": "true"})
    project.issue(1, "One")
    edited = on_base(project, f"env -u GENBA_RUN -u GENBA_AGENT {GENBA} task edit 1 {' '.join(edit)}")
    worker(project, f"{WORK}; ({edited})")
    before = project.git("rev-parse", "main")

    result = project.run("worker", "--issue", "1", check=1)

    assert result["verdict"].startswith("rejected")
    assert project.git("rev-parse", "main") == before


def test_a_goal_that_is_added_after_the_verification_counts_before_the_merge(project: Project) -> None:
    """The last goal of the branch adds another one to its task, as a person would at that moment."""
    edited = on_base(project, f"env -u GENBA_RUN -u GENBA_AGENT {GENBA} task edit 1 --goal file_exists:must.txt")
    settings(
        project,
        {"custom_script": f"test -e {project.root}/../edited || (({edited}) && touch {project.root}/../edited)"},
    )
    project.issue(1, "One")
    worker(project)
    before = project.git("rev-parse", "main")

    result = project.run("worker", "--issue", "1", check=1)

    assert Path(project.root, "../edited").exists()
    assert result["verdict"].startswith("rejected")
    assert project.git("rev-parse", "main") == before


def test_a_stricter_definition_of_done_counts_for_approved_work(project: Project) -> None:
    settings(project, {"custom_script": "true"})
    project.issue(1, "One", requires_review=True)
    worker(project)
    run = project.run("worker", "--issue", "1", check=None)["run"]
    project.genba("approve", "1", check=0)
    settings(project, {"file_exists": "must.txt"})
    before = project.git("rev-parse", "main")

    project.genba("run", "--resume", run, check=1)

    assert project.git("rev-parse", "main") == before
    assert project.task(1).status is not TaskStatus.DONE
