"""What a session commits is evidence for its own task: no number that it writes anywhere moves another task."""

import pytest

from tests.project import Project

OWN = {"parameters": {"issue": {"type": "number"}}}


def states(project: Project) -> dict[int, str]:
    report = project.genba("facilitate", "--json", "--offline").json
    return {each["issue"]: each["state"] for each in report["assessments"]}


def worked(project: Project, line: str, *more: str, sandbox: str = "worktree") -> str:
    """A session on task 1 runs this line in its worktree, and its work is merged."""
    project.write(".genba/config.yaml", f"sandbox:\n  kind: {sandbox}\n")
    script = {"turns": [{"do": [{"run": line}], "reply": "done"}]}
    project.agent(script=script, **OWN)  # type: ignore[arg-type]
    return str(project.run("worker", "--issue", "1", *more)["branch"])


def _commit(message: str, options: str = "") -> str:
    return f'echo work >> work.txt && git add -A && git {options} commit -qm "{message}"'


@pytest.fixture
def two(project: Project) -> Project:
    for number, title in ((1, "Add a page"), (2, "Configure the parser")):
        project.issue(number, title)
    return project


@pytest.mark.parametrize(
    "message",
    [
        "Add a page\n\nFixes #2",
        "Fix the parser, see #2",
        "Merge branch 'fix/2'",
        "Merge pull request #9 from someone/fix/2",
        "Add a page\n\nIssue: 2",
        "Add a page\n\nIssue: 2\nAgent: worker\nSession: worker-2-1",
    ],
)
@pytest.mark.parametrize("sandbox", ["worktree", "bubblewrap"])
def test_a_number_in_a_commit_of_a_session_says_nothing_of_another_task(
    two: Project, message: str, sandbox: str
) -> None:
    worked(two, _commit(message), sandbox=sandbox)

    assert states(two)[2] == "incomplete"
    assert states(two)[1] == "done"


@pytest.mark.parametrize("number", ["Fixes #2", "Issue: 2"])
def test_a_commit_that_goes_around_the_hook_says_nothing_of_another_task(two: Project, number: str) -> None:
    line = _commit(f"Add a page\n\n{number}", "-c core.hooksPath=/dev/null")

    worked(two, line, sandbox="bubblewrap")

    assert states(two) == {1: "done", 2: "incomplete"}


@pytest.mark.parametrize("sandbox", ["worktree", "bubblewrap"])
def test_a_number_in_work_that_is_not_merged_says_nothing_of_another_task(two: Project, sandbox: str) -> None:
    worked(two, _commit("Add a page\n\nFixes #2"), "--no-merge", sandbox=sandbox)

    assert states(two)[2] == "incomplete"
    report = two.genba("facilitate", "--json", "--offline").json
    (evidence,) = [each["evidence"] for each in report["assessments"] if each["issue"] == 2]
    assert evidence == ["no commit, no branch, no pull request, no session"]


def test_a_branch_of_a_session_with_the_number_of_another_task_is_no_work_on_it(two: Project) -> None:
    worked(two, _commit("Add a page") + " && git branch fix/2", "--no-merge", sandbox="bubblewrap")
    two.git("branch", "fix/2", f"{_branch_of(two)}")

    assert states(two)[2] == "incomplete"


def test_a_squash_of_the_work_of_a_session_says_nothing_of_another_task(two: Project) -> None:
    branch = worked(two, _commit("Add a page\n\nFixes #2"), "--no-merge", sandbox="bubblewrap")
    two.git("merge", "-q", "--squash", branch)
    two.git("commit", "-qm", f"Add a page (#9)\n\n* {two.git('log', '-1', '--format=%B', branch)}")

    assert states(two) == {1: "done", 2: "incomplete"}


def test_a_commit_of_a_person_that_quotes_a_session_closes_what_the_person_says(two: Project) -> None:
    worked(two, _commit("Add a page\n\nFixes #2"))
    quoted = two.git("log", "-1", "--format=%B", "HEAD").replace("\n", "\n> ")
    assert states(two)[2] == "incomplete"
    two.write("parser.txt", "parser\n")
    two.commit(f"Configure the parser\n\nFixes #2\n\nThe session wrote:\n> {quoted}")

    assert states(two)[2] == "done"


def test_a_session_that_says_that_it_takes_work_back_does_not_undo_another_task(two: Project) -> None:
    two.write("parser.txt", "parser\n")
    landed = two.commit("Configure the parser\n\nFixes #2")
    assert states(two)[2] == "done"

    worked(two, _commit(f"Add a page\n\nThis reverts commit {landed}."))

    assert states(two)[2] == "done"


def test_a_session_that_takes_work_back_undoes_it(two: Project) -> None:
    two.write("parser.txt", "parser\n")
    landed = two.commit("Configure the parser\n\nFixes #2")
    assert states(two)[2] == "done"

    worked(two, f"git revert --no-edit {landed} && " + _commit("Add a page"))

    assert states(two)[2] == "incomplete"


def test_a_session_on_another_host_is_known_by_its_record(two: Project) -> None:
    """Its commit came by a pull. Its record is on the blackboard that both share, and no journal of it is here."""
    worked(two, _commit("Add a page\n\nIssue: 2"))
    run = _run_of(two)
    assert states(two)[2] == "incomplete"
    two.write("more.txt", "more\n")
    two.commit(f"Go on\n\nIssue: 2\nAgent: worker\nSession: {run}")
    for journal in two.root.glob(".genba/**/*.jsonl"):
        journal.unlink()

    assert states(two)[2] == "incomplete"


def _branch_of(project: Project) -> str:
    with project.board() as board:
        return board.places_of(1)[0][1]


def _run_of(project: Project) -> str:
    with project.board() as board:
        return board.places_of(1)[0][0]


def test_a_commit_of_a_session_is_not_verified_as_the_work_on_another_task(two: Project) -> None:
    worked(two, _commit("Add a page\n\nFixes #2"))

    assert "no commit is its work" in two.genba("verify", "2", check=5).err


@pytest.mark.parametrize("sandbox", ["worktree", "bubblewrap"])
def test_a_session_that_says_it_reverted_work_takes_nothing_from_another_task(two: Project, sandbox: str) -> None:
    two.write("parser.txt", "configured\n")
    two.commit("Configure the parser\n\nIssue: 2")
    done = two.git("rev-parse", "HEAD").strip()

    worked(two, _commit(f"Add a page\n\nThis reverts commit {done}."), sandbox=sandbox)

    assert two.genba("verify", "2", "--json", check=0).json["verification"]["subject"]["commit"] == done


@pytest.mark.parametrize("sandbox", ["worktree", "bubblewrap"])
def test_work_that_was_rejected_is_not_done_by_what_another_session_merged(two: Project, sandbox: str) -> None:
    two.write(".genba/config.yaml", f"sandbox:\n  kind: {sandbox}\n")
    two.genba("task", "edit", "2", "--goal", "file_exists: never.txt", check=0)
    two.agent(script={"turns": [{"do": [{"run": _commit("Share")}], "reply": "done"}]}, **OWN)  # type: ignore[arg-type]
    two.genba("run", "worker", "--issue", "2")

    two.run("worker", "--issue", "1")

    assert states(two) == {1: "done", 2: "incomplete"}


@pytest.mark.parametrize("sandbox", ["worktree", "bubblewrap"])
def test_an_agent_that_amends_the_commit_of_its_base_has_done_nothing(two: Project, sandbox: str) -> None:
    two.write("last.txt", "last\n")
    two.commit("The last change")

    two.write(".genba/config.yaml", f"sandbox:\n  kind: {sandbox}\n")
    script = {"turns": [{"do": [{"run": "git commit -q --amend --no-edit --reset-author"}], "reply": "done"}]}
    two.agent(script=script, **OWN)  # type: ignore[arg-type]
    two.genba("run", "worker", "--issue", "1")

    assert states(two)[1] != "done"


def test_work_that_waits_for_a_review_is_not_done_by_what_another_session_merged(two: Project) -> None:
    two.genba("task", "edit", "2", "--review", check=0)
    two.write(".genba/config.yaml", "sandbox:\n  kind: worktree\n")
    two.agent(script={"turns": [{"do": [{"run": _commit("Share")}], "reply": "done"}]}, **OWN)  # type: ignore[arg-type]
    two.genba("run", "worker", "--issue", "2")

    two.run("worker", "--issue", "1")

    assert states(two) == {1: "done", 2: "review_pending"}
