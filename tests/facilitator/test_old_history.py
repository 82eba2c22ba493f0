"""Evidence is newer than the task and belongs to its tracker: a number in an old history says nothing of a new task."""

import os
import subprocess

import pytest

from genba.domain.goals.verification import Subject, VerdictStatus, Verification
from genba.domain.tasks.task import TaskStatus
from genba.judgement.triage.evidence_ownership import texts_are_ours
from tests.project import COMMIT, Project

LONG_AGO = "2016-05-04T03:02:01+00:00"
HOSTED = "https://github.com/acme/shop.git"
NAMING = {
    1: "Fix the parser\n\nFixes #1",
    2: "Merge pull request #70 from someone/2-fix-things",
    3: "Merge branch 'issue-3'",
    4: "Merge branch '4.x'",
    5: "Update docs (closes #5)",
    6: "Add a page\n\nIssue: 6",
    7: "Add a page\n\nIssue: #7\nAgent: iterator\nSession: iterator-7-1",
    8: "Resolve #8: do it",
    9: "Merge remote-tracking branch 'origin/fix/9'",
    10: "See #10 (#10)",
    11: "Merge branch 'genba/11-task-11'",
    12: "Merge branch '12-factor'",
}


def write_at(project: Project, message: str, when: str = "") -> str:
    """A commit of a new file, by a clock that says `when`."""
    project.write(f"file-{len(project.git('rev-list', '--all').split())}.txt", f"{message}\n")
    project.git("add", "-A")
    clock = {"GIT_COMMITTER_DATE": when, "GIT_AUTHOR_DATE": when} if when else {}
    subprocess.run(["git", "commit", "-qm", message], cwd=project.root, check=True, env={**os.environ, **clock})
    return project.git("rev-parse", "HEAD")


def states(project: Project) -> dict[int, str]:
    report = project.genba("facilitate", "--json", "--offline").json
    return {each["issue"]: each["state"] for each in report["assessments"]}


@pytest.fixture
def old(project: Project) -> Project:
    """A clone of a project with ten years of history, in which the numbers of twelve new tasks occur."""
    for message in NAMING.values():
        write_at(project, message, LONG_AGO)
    for branch in ("4.x", "12-factor", "fix/9", "3"):
        project.git("branch", branch)
        project.git("update-ref", f"refs/remotes/origin/{branch}", "HEAD")
    project.git("remote", "add", "origin", HOSTED)
    for number in NAMING:
        project.issue(number, f"Task {number}")
    return project


def test_no_new_task_is_done_by_an_old_history(old: Project) -> None:
    assert states(old) == dict.fromkeys(NAMING, "incomplete")
    shown = old.genba("status", check=0).out
    assert "done" not in shown.replace("task done", "")


@pytest.mark.parametrize("number", [1, 6, 7])
def test_an_old_commit_is_not_verified_as_the_work_on_a_new_task(old: Project, number: int) -> None:
    refused = old.genba("verify", str(number), check=5)
    assert "no commit is its work" in refused.err
    assert old.genba("task", "done", str(number)).code == 5
    assert old.task(number).status is TaskStatus.OPEN


def test_nothing_is_commented_about_an_old_history(old: Project) -> None:
    old.genba("facilitate", "--apply", "--offline")
    for number in NAMING:
        with old.board() as board:
            assert not [each.body for each in board.comments(number) if "done" in each.body]


def test_a_verdict_on_an_old_commit_does_not_make_a_task_done(old: Project) -> None:
    """As an older version of Genba has written it."""
    commit = old.git("rev-parse", "HEAD~11")
    with old.board() as board:
        board.record_verification(1, "", _verdict(commit, old.git("rev-parse", f"{commit}^")))
    refused = old.genba("task", "done", "1", check=5)
    assert "is not work on task #1" in refused.err
    assert old.task(1).status is TaskStatus.OPEN


def _verdict(commit: str, base: str) -> Verification:
    subject = Subject(commit=commit, base=base, branch="", base_branch="main")
    return Verification(status=VerdictStatus.DONE, subject=subject, tree="", commits=1)


def test_a_number_of_the_forge_says_nothing_of_a_local_task(project: Project) -> None:
    project.git("remote", "add", "origin", HOSTED)
    for number in (1, 2, 3):
        project.issue(number, "Add a page")
    write_at(project, "Add a page\n\nFixes #1")
    write_at(project, "Merge pull request #9 from someone/fix/2")
    write_at(project, "Add a page\n\nIssue: 3")
    assert states(project) == {1: "incomplete", 2: "incomplete", 3: "done"}
    assert project.genba("verify", "1", check=5).err
    project.genba("verify", "3", check=0)


def test_a_keyword_in_a_commit_by_hand_does_not_outweigh_a_verdict(project: Project) -> None:
    project.write(".genba/config.yaml", "dod: [no_secrets]\n")
    project.commit("Settings")
    project.genba("task", "add", "Write by hand", "--goal", "file_exists:docs/hand.md", check=0)
    write_at(project, "Fixes #1")
    assert project.genba("verify", "1").code == 1
    assert states(project)[1] != "done"


def test_without_a_remote_the_only_tracker_is_the_local_one(project: Project) -> None:
    for number, title in ((1, "Add a page"), (2, "Add a page"), (12, "Configure by environment"), (4, "Add four")):
        project.issue(number, title)
    write_at(project, "Add a page\n\nFixes #1")
    write_at(project, "Merge branch '2-add-a-page'")
    write_at(project, "Merge branch '12-factor'")
    write_at(project, "Merge branch '4.x'")
    assert states(project) == {1: "done", 2: "done", 4: "incomplete", 12: "incomplete"}


def test_sessions_are_known_by_their_record_and_not_by_dates(project: Project) -> None:
    project.git("remote", "add", "origin", HOSTED)
    project.issue(1, "Add a page")
    old_clock = f"GIT_COMMITTER_DATE={LONG_AGO} GIT_AUTHOR_DATE={LONG_AGO}"
    run = COMMIT.replace("git commit", f"{old_clock} git commit")
    project.agent(script={"turns": [{"do": [{"run": run}], "reply": "done"}]}, parameters={"issue": {"type": "number"}})
    left = project.run("worker", "--issue", "1", "--no-merge")
    project.git("merge", "-q", "--ff-only", left["branch"])
    project.genba("verify", "1", check=0)
    project.genba("task", "done", "1", check=0)
    assert project.task(1).status is TaskStatus.DONE


def test_work_that_was_taken_back_is_not_verified(project: Project) -> None:
    project.issue(1, "Add a page")
    commit = write_at(project, "Add a page\n\nIssue: 1")
    project.git("revert", "--no-edit", commit)
    assert "no commit is its work" in project.genba("verify", "1", check=5).err


@pytest.mark.parametrize(
    ("remotes", "repository", "ours"),
    [
        ((), "", True),
        ((HOSTED,), "", False),
        (("/srv/shop.git",), "", False),
        ((), "acme/shop", True),
        ((HOSTED,), "acme/shop", True),
        (("git@github.com:Acme/Shop.git",), "acme/shop", True),
        (("ssh://git@github.com/acme/shop",), "acme/shop", True),
        (("https://github.com/acme/other.git",), "acme/shop", False),
        (("https://github.com/me/shop", HOSTED), "acme/shop", True),
        (("/srv/shop.git",), "acme/shop", True),
    ],
)
def test_a_number_belongs_to_the_tracker_of_its_repository(
    remotes: tuple[str, ...], repository: str, ours: bool
) -> None:
    assert texts_are_ours(remotes, repository) is ours
