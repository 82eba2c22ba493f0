"""What git shows of issues: real histories, and what is read out of them."""

import subprocess
from pathlib import Path

import pytest

from genba.connections.git.repository.layout import RepositoryLayout
from genba.connections.git.scanning.issue_scan import GitScan
from genba.domain.facilitation import How, Scanned
from genba.domain.tracker.branch_names import numbered
from tests.project import Project


class Field:
    """A repository, and what is seen in it."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.count = 0

    def change(self, message: str, *, on: str = "main") -> str:
        """A commit of its own file on a branch."""
        self.count += 1
        if on != self.project.git("branch", "--show-current"):
            known = self.project.git("branch", "--list", on)
            self.project.git("switch", "-q", *([on] if known else ["-c", on]))
        self.project.write(f"file-{self.count}.txt", f"{self.count}\n")
        self.project.git("add", "-A")
        subprocess.run(
            ["git", "commit", "-q", "--cleanup=verbatim", "-F", "-"],
            cwd=self.project.root,
            input=message.encode("utf-8", "surrogateescape"),
            check=True,
        )
        return self.project.git("rev-parse", "HEAD")

    def git(self, *words: str) -> str:
        return self.project.git(*words)

    async def look(self, last: Scanned | None = None, base: str = "main") -> Scanned:
        layout = await RepositoryLayout.find(self.project.root)
        return await GitScan(layout).scan(base, last.position if last else None)


@pytest.fixture
def field(project: Project) -> Field:
    return Field(project)


@pytest.mark.parametrize(
    ("message", "number", "how"),
    [
        ("Add it\n\nIssue: 12\n", 12, How.TRAILER),
        ("Add it\n\nIssue: #12\nAgent: iterator\nSession: run-1\n", 12, How.TRAILER),
        ("Add it\n\nCloses #12\n", 12, How.KEYWORD),
        ("Fixes: #12", 12, How.KEYWORD),
        ("Add it\n\nThis RESOLVES #12, I hope", 12, How.KEYWORD),
        ("Merge branch '12-login'\n", 12, How.BRANCH),
        ("Merge branch 'genba/12-add-login' into main\n", 12, How.BRANCH),
        ("Merge remote-tracking branch 'origin/issue-12'\n", 12, How.BRANCH),
        ("See #12 for the reason", 12, How.MENTION),
    ],
)
async def test_a_commit_names_its_issue(field: Field, message: str, number: int, how: How) -> None:
    sha = field.change(message)
    found = await field.look()
    assert [(commit.sha, commit.how, commit.on_base) for commit in found.on_base[number]] == [(sha, how, True)]


@pytest.mark.parametrize(
    "message",
    [
        "Issue: 12 was hard\n",
        "Add it\n\nIssue: 99999999999999\n",
        "Add it\n\nIssue: twelve\n",
        "See other/repository#12",
        "Colour &#12; of a page",
        "abc#12",
    ],
)
async def test_what_looks_like_a_number_and_is_none(field: Field, message: str) -> None:
    field.change(message)
    assert not (await field.look()).on_base


async def test_trailers_name_the_author(field: Field) -> None:
    field.change("Add it\n\nIssue: 12\nAgent: iterator\nSession: iterator-12-1-abcdef\n")
    commit = (await field.look()).on_base[12][0]
    assert (commit.agent, commit.run, commit.subject) == ("iterator", "iterator-12-1-abcdef", "Add it")


async def test_the_surest_way_in_which_a_commit_names_an_issue_counts(field: Field) -> None:
    field.change("Add it, see #12 and #13\n\nCloses #13\n\nIssue: 12\n")
    found = await field.look()
    assert {number: commits[0].how for number, commits in found.on_base.items()} == {
        12: How.TRAILER,
        13: How.KEYWORD,
    }


@pytest.mark.parametrize("subject", ["Add login (#31)", "Merge pull request #31 from acme/12-login"])
async def test_a_commit_that_was_a_pull_request_names_it(field: Field, subject: str) -> None:
    sha = field.change(f"{subject}\n\nSome words")
    found = await field.look()
    assert [commit.sha for commit in found.of_requests[31]] == [sha]
    assert 31 not in found.on_base
    assert (12 in found.on_base) is subject.startswith("Merge")


async def test_work_on_a_branch_is_not_on_the_base(field: Field) -> None:
    field.change("Begin")
    sha = field.change("Try\n", on="12-login")
    found = await field.look()
    assert not found.on_base
    assert [(commit.sha, commit.how, commit.on_base) for commit in found.off_base[12]] == [(sha, How.BRANCH, False)]
    assert [(branch.name, branch.tip, branch.ahead, branch.landed) for branch in found.branches[12]] == [
        ("12-login", sha, 1, False)
    ]


async def test_a_branch_that_was_squashed_has_landed(field: Field) -> None:
    field.change("Begin")
    field.change("One", on="12-login")
    field.change("Two", on="12-login")
    field.git("switch", "-q", "main")
    field.git("merge", "-q", "--squash", "12-login")
    field.git("commit", "-qm", "Add login")
    assert (await field.look()).branches[12][0].landed
    field.change("Go on")
    assert (await field.look()).branches[12][0].landed


async def test_a_squashed_branch_is_found_after_its_lines_were_changed_again(field: Field) -> None:
    field.project.write("text.txt", "one\ntwo\nthree\n")
    field.change("Begin")
    field.git("switch", "-qc", "12-login")
    field.project.write("text.txt", "one\n2\nthree\n")
    field.git("commit", "-qam", "Say 2")
    field.git("switch", "-q", "main")
    field.git("merge", "-q", "--squash", "12-login")
    field.git("commit", "-qm", "Say two as a number")
    field.project.write("text.txt", "one\ntwo and a half\nthree\n")
    field.git("commit", "-qam", "Say it better")
    assert (await field.look()).branches[12][0].landed


async def test_what_was_reverted_is_reported_with_who_did(field: Field) -> None:
    sha = field.change("Add it\n\nIssue: 12\n")
    field.git("revert", "--no-edit", sha)
    by = field.git("rev-parse", "HEAD")
    found = await field.look()
    assert found.reverts[sha] == by
    assert [commit.sha for commit in found.on_base[12]] == [sha]


async def test_who_reverts_a_merge_takes_back_all_that_it_brought(field: Field) -> None:
    field.change("Begin")
    inner = field.change("Add it\n\nIssue: 12\n", on="work")
    field.git("switch", "-q", "main")
    field.git("merge", "-q", "--no-ff", "-m", "Merge branch 'work'", "work")
    merge = field.git("rev-parse", "HEAD")
    field.git("revert", "--no-edit", "-m", "1", "HEAD")
    found = await field.look()
    assert {merge, inner} <= set(found.reverts)


async def test_a_pull_request_that_was_reverted_is_reported(field: Field) -> None:
    field.change("Add login (#31)")
    sha = field.change('Revert "Add login (#31)" (#32)\n\nReverts acme/shop#31')
    found = await field.look()
    assert found.reverted_requests == {31: sha}


async def test_the_second_look_reads_only_what_is_new(field: Field) -> None:
    field.change("Add it\n\nIssue: 12\n")
    first = await field.look()
    assert first.full
    assert not (await field.look(first)).on_base
    field.change("Add more\n\nIssue: 13\n")
    second = await field.look(first)
    assert (second.full, list(second.on_base)) == (False, [13])


async def test_a_base_that_was_rewritten_is_read_again(field: Field) -> None:
    field.change("Begin")
    field.change("Add it\n\nIssue: 12\n")
    first = await field.look()
    field.git("reset", "-q", "--hard", "HEAD~1")
    field.change("Add other\n\nIssue: 13\n")
    second = await field.look(first)
    assert (second.full, list(second.on_base)) == (True, [13])


async def test_another_base_is_read_again(field: Field) -> None:
    field.change("Begin")
    first = await field.look()
    field.change("Add it\n\nIssue: 12\n", on="develop")
    second = await field.look(first, base="develop")
    assert (second.full, list(second.on_base)) == (True, [12])


async def test_a_branch_that_is_gone_is_not_seen_any_more(field: Field) -> None:
    field.change("Begin")
    field.change("Try", on="12-login")
    first = await field.look()
    field.git("switch", "-q", "main")
    field.git("branch", "-qD", "12-login")
    second = await field.look(first)
    assert (12 in first.branches, second.branches, second.off_base) == (True, {}, {})


async def test_a_shallow_clone_says_so(field: Field, tmp_path: Path) -> None:
    field.change("Add it\n\nIssue: 12\n")
    field.change("Add more\n\nIssue: 13\n")
    clone = tmp_path / "clone"
    field.git("clone", "-q", "--depth=1", f"file://{field.project.root}", str(clone))
    found = await GitScan(await RepositoryLayout.find(clone)).scan("main")
    assert list(found.on_base) == [13]
    assert "shallow" in found.notes[0]


async def test_a_base_that_is_not_there_is_reported(field: Field) -> None:
    found = await field.look(base="nowhere")
    assert "there is no branch nowhere" in found.notes[0]


async def test_hostile_messages_are_read_like_others(field: Field) -> None:
    field.change("Add \udcff\udcfe it\n\nIssue: 12\nAgent: \udcff\n")
    field.change("x" * 3_000_000 + "\n\nIssue: 13\n")
    field.change("#" * 200_000 + "\n\nIssue: 14\n")
    field.change("Merge branch '" + "9" * 5000 + "-x'\n")
    found = await field.look()
    assert sorted(found.on_base) == [12, 13, 14]


async def test_settings_of_the_user_change_nothing(field: Field) -> None:
    for name, value in {
        "log.showSignature": "true",
        "log.date": "relative",
        "log.decorate": "full",
        "format.pretty": "oneline",
        "log.follow": "true",
        "color.ui": "always",
        "i18n.logOutputEncoding": "UTF-16",
    }.items():
        field.git("config", name, value)
    sha = field.change("Add it\n\nIssue: 12\n")
    assert [commit.sha for commit in (await field.look()).on_base[12]] == [sha]


@pytest.mark.parametrize(
    ("branch", "number"),
    [
        ("12", 12),
        ("12-login", 12),
        ("genba/12-login", 12),
        ("fix/12-login", 12),
        ("feature/GH-12-login", 12),
        ("issue-12", 12),
        ("issue/12", 12),
        ("ada/12_login", 12),
        ("login", None),
        ("release/12", None),
        ("v12", None),
        ("release-12", None),
        ("dependabot/npm/12-x", None),
        ("login-12", None),
        ("0-login", None),
    ],
)
def test_a_branch_tells_its_issue(branch: str, number: int | None) -> None:
    found = numbered(branch)
    assert (found[0] if found is not None else None) == number


async def test_a_pull_request_that_was_read_before_is_taken_back_with_all_that_it_brought(field: Field) -> None:
    field.change("Begin")
    work = field.change("Work\n\nIssue: 12\n", on="topic")
    field.git("switch", "-q", "main")
    field.git("merge", "-q", "--no-ff", "-m", "Merge pull request #31 from acme/topic", "topic")
    merged = field.git("rev-parse", "HEAD")
    field.git("branch", "-D", "topic")
    first = await field.look()
    back = field.change('Revert "Add login" (#33)\n\nReverts acme/shop#31\n')
    second = await field.look(first)
    assert second.reverts == {merged: back, work: back}
    again = field.change('Revert "Revert it" (#34)\n\nReverts #33\n')
    assert (await field.look(second)).reverts == {back: again}
    assert (await field.look()).reverts == {merged: back, work: back, back: again}


@pytest.mark.parametrize("message", ["Begin", 'Revert "it"'])
async def test_a_branch_that_brings_nothing_has_not_landed(field: Field, message: str) -> None:
    field.change("First")
    field.git("switch", "-qc", "12-login")
    field.git("commit", "-q", "--allow-empty", "-m", message)
    assert not (await field.look()).branches[12][0].landed


@pytest.mark.parametrize(
    ("message", "result"),
    [
        ("Add it\n\nIssue: 12\nAgent: iterator\nSession: run-1\n", (12, "Add it", "iterator", "run-1")),
        ("Add it\n\nIssue:12\nAgent:iterator\nSession:run-1\n\n\n", (12, "Add it", "iterator", "run-1")),
        ("Add it\nIssue: 12\nAgent: iterator\nSession: run-1", (12, "Add it", "iterator", "run-1")),
        ("Add it\n\nIssue: 12 \nAgent:  an agent \nSession: run-1 \n", (12, "Add it", "an agent", "run-1")),
        ("Add it\n\nSession: run-1\nIssue: 12\nAgent: iterator\n", (12, "Add it", "iterator", "run-1")),
        ("Add it\n\nIssue: 11\n\nIssue: 12\nAgent: a\nSession: b\nReviewed-by: kim\n", (12, "Add it", "a", "b")),
        ("a" * 200 + "\n\nIssue: 12\nAgent: a\nSession: b\n", (12, "a" * 120, "a", "b")),
        ("é" * 119 + "\n\nIssue: 12\nAgent: a\nSession: b\n", (12, "é" * 119, "a", "b")),
        ("Add \udcff it\n\nIssue: 12\nAgent: a\nSession: b\n", (12, "Add ÿ it", "a", "b")),
    ],
)
async def test_trailers_are_read_the_same_however_they_are_written(
    field: Field, message: str, result: tuple[int, str, str, str]
) -> None:
    sha = field.change(message)
    number, subject, agent, run = result
    (commit,) = (await field.look()).on_base[number]
    assert (commit.sha, commit.how, commit.subject, commit.agent, commit.run) == (sha, How.TRAILER, subject, agent, run)


async def test_digits_of_other_scripts_and_no_number_at_all_name_no_issue(field: Field) -> None:
    for number in ("\uff11\uff12", "0", "twelve", "1234567890"):
        field.change(f"Add it\n\nIssue: {number}\nAgent: a\nSession: b\n")
    assert (await field.look()).on_base == {}


async def test_commits_are_read_again_by_their_names_as_they_were_read_first(field: Field) -> None:
    for message in ("Work\n\nIssue: 12\nAgent: a\nSession: b", "Work on #12 (#31)", "Fixes #12", "Nothing"):
        field.change(message)
    seen = await field.look()
    names = {each.sha for part in (seen.on_base, seen.of_requests) for all_ in part.values() for each in all_}
    again = await GitScan(await RepositoryLayout.find(field.project.root)).again([*names, "0" * 40])
    assert {number: set(all_) for number, all_ in again.on_base.items()} == {
        number: set(all_) for number, all_ in seen.on_base.items()
    }
    assert again.of_requests == seen.of_requests
    assert (await GitScan(await RepositoryLayout.find(field.project.root)).again([])).on_base == {}
