"""`genba outbox`, through the real command line: what waits, what failed, and what a person does about it."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import yaml

from genba.blackboard.tracker.outbox import Outbox
from genba.domain.tracker.outbox import (
    CloseIssue,
    KeepComment,
    MergePullRequest,
    OpenPullRequest,
    OutboxStatus,
    Pace,
    PostComment,
    Relabel,
    RemoteChange,
    ReopenIssue,
    SetCardStatus,
)
from tests.github.watched import watched
from tests.project import Project
from tests.standins.github.server import GitHub

CHANGES: tuple[RemoteChange, ...] = (
    PostComment(issue=1, body="It is done.\n\nAll goals hold.\x1b[31m"),
    Relabel(issue=1, add=("done",), remove=("old",)),
    CloseIssue(issue=1),
    KeepComment(issue=2, name="status", body="It began."),
    ReopenIssue(issue=2),
    OpenPullRequest(branch="genba/3-tea", target="main", title="Add tea", body="Closes #3", issue=3, draft=True),
    MergePullRequest(number=31, commit="3f9c2ab0d1e2", issue=4),
    SetCardStatus(issue=4, owner="acme", project=2, field="Status", status="Done"),
)


@contextmanager
def outbox_of(project: Project) -> Iterator[Outbox]:
    with project.board() as board:
        yield Outbox(board.store)


def record(project: Project, *changes: RemoteChange) -> list[int]:
    with outbox_of(project) as outbox:
        return [outbox.record(f"change-{at}", change, run="worker-1").id for at, change in enumerate(changes)]


def refuse(project: Project, number: int, why: str = "the issue is locked") -> None:
    """The other side refused it."""
    with outbox_of(project) as outbox:
        turn = outbox.claim("somebody", Pace(pause_seconds=0))
        assert turn.entry is not None
        assert turn.entry.id == number
        outbox.fail("somebody", turn.entry, why)


def on_github(project: Project, hub: GitHub, **more: object) -> None:
    github = {"repository": "acme/shop", "url": hub.url, "mutation_pause_seconds": 0, **more}
    project.write(".genba/config.yaml", yaml.safe_dump({"tracker": {"github": github}}))
    project.environment["GENBA_GITHUB_HOST"] = hub.url


@pytest.fixture
def hub() -> Iterator[GitHub]:
    with watched() as made:
        made.add_token("ghp_of_octocat", "octocat")
        made.add_repository("acme/shop", collaborators={"octocat": "write"})
        made.add_issue("acme/shop", title="A bug", labels=["old"])
        yield made


def test_an_empty_outbox_says_so_and_makes_nothing(project: Project) -> None:
    for words in (("outbox",), ("outbox", "list"), ("outbox", "send", "--dry-run")):
        project.genba(*words, check=0)
    assert "the outbox is empty" in project.genba("outbox", check=0).err
    assert project.genba("outbox", "--json", check=0).json["entries"] == []
    assert not (project.root / ".genba" / "genba.db").exists()
    assert project.genba("outbox", "show", "1", check=4).err


def test_what_is_no_number_is_no_entry(project: Project) -> None:
    assert "'x' is not the number of an entry" in project.genba("outbox", "show", "x", check=2).err


def test_every_kind_of_deed_is_listed_in_its_order_in_words(project: Project) -> None:
    record(project, *CHANGES)
    listed = project.genba("outbox", check=0)
    lines = listed.out.splitlines()
    assert [line.split()[0] for line in lines] == [str(number) for number in range(1, 9)]
    for words in (
        "#1  comment: It is done.",
        "#1  labels: +done, -old",
        "#1  close as completed",
        "#2  keep the comment status: It began.",
        "#2  reopen",
        "#3  draft pull request of genba/3-tea into main: Add tea",
        "#31  merge 3f9c2ab (merge)",
        "#4  card on acme/2: Status = Done",
    ):
        subject, _, rest = words.partition("  ")
        assert any(subject in line and rest in line for line in lines), (words, lines)
    assert "waits for 1" in lines[1]
    assert "\x1b" not in listed.out
    result = project.genba("outbox", "list", "--json", check=0).json
    assert [entry["change"]["kind"] for entry in result["entries"]][:3] == ["comment", "labels", "close"]


def test_what_failed_is_shown_with_its_answer_and_what_waits_behind_it(project: Project) -> None:
    record(project, *CHANGES[:3])
    refuse(project, 1)
    listed = project.genba("outbox", check=0)
    assert "✗ failed" in listed.out
    assert "the issue is locked" in listed.out
    assert "genba outbox retry 1" in listed.err
    assert project.genba("outbox", "--json", check=0).json["held"] == {"2": 1, "3": 1}
    shown = project.genba("outbox", "show", "1", check=0)
    assert "| All goals hold." in shown.out
    assert "run        worker-1" in shown.out
    assert "error      the issue is locked" in shown.out
    assert "waits for  entry 1" in project.genba("outbox", "show", "2", check=0).out
    assert project.genba("outbox", "show", "2", "--json", check=0).json["status"] == "pending"


def test_a_dry_run_shows_what_would_be_sent_with_its_words_and_changes_nothing(project: Project) -> None:
    record(project, *CHANGES)
    refuse(project, 1)
    shown = project.genba("outbox", "send", "--dry-run", check=0).out
    assert "genba/3-tea" in shown
    assert "| Closes #3" in shown
    assert "labels: +done" not in shown
    result = project.genba("outbox", "send", "--dry-run", "--json", check=0).json
    assert [entry["id"] for entry in result] == [4, 5, 6, 7, 8]
    with outbox_of(project) as outbox:
        assert [entry.attempts for entry in outbox.list()] == [1] + [0] * 7


def test_a_person_retries_or_drops_what_failed(project: Project) -> None:
    record(project, *CHANGES[:2])
    refuse(project, 1)
    assert project.genba("outbox", "retry", "1", check=0).out == "to be tried again: 1\n"
    assert project.genba("outbox", "retry", "--all", check=0).out.startswith("nothing failed")
    dropped = project.genba("outbox", "drop", "1", check=0)
    assert dropped.out == "entry 1 is dropped: the comment does not appear on #1\n"
    assert "it was tried before" in dropped.err
    assert project.genba("outbox", "drop", "2", "--json", check=0).json["status"] == "dropped"
    assert "the outbox is empty" in project.genba("outbox", check=0).err
    assert "– dropped" in project.genba("outbox", "--all", check=0).out
    for words, code in (
        (("drop", "1"), 5),
        (("retry", "2"), 5),
        (("drop", "9"), 4),
        (("retry",), 2),
        (("retry", "1", "--all"), 2),
    ):
        assert "hint:" in project.genba("outbox", *words, check=code).err


def test_what_does_not_happen_is_listed_for_every_kind(project: Project) -> None:
    for number in record(project, *CHANGES):
        result = project.genba("outbox", "drop", str(number), check=0).out
        assert result.startswith(f"entry {number} is dropped: ")
        assert len(result) > len(f"entry {number} is dropped: \n")


def test_an_agent_neither_sends_nor_drops(project: Project) -> None:
    record(project, *CHANGES[:1])
    project.environment["GENBA_RUN"] = "worker-1"
    for words in (("drop", "1"), ("retry", "1"), ("send",)):
        assert "an agent may not" in project.genba("outbox", *words, check=5).err
    project.genba("outbox", check=0)


def test_a_project_that_does_not_live_on_github_has_nowhere_to_send(project: Project) -> None:
    record(project, *CHANGES[:1])
    assert "genba init --github" in project.genba("outbox", "send", check=5).err


def test_what_waits_is_sent_once_and_reported(project: Project, hub: GitHub) -> None:
    on_github(project, hub)
    project.environment["GENBA_GITHUB_TOKEN"] = "ghp_of_octocat"
    record(project, *CHANGES[:3])
    sent = project.genba("outbox", "send", check=0)
    assert [line.split()[:3] for line in sent.out.splitlines()] == [["●", str(number), "#1"] for number in (1, 2, 3)]
    issue = hub.issue("acme/shop", 1)
    assert issue.state == "closed"
    assert "the outbox is empty" in project.genba("outbox", "send", check=0).err
    with outbox_of(project) as outbox:
        assert [entry.status for entry in outbox.list(all=True)] == [OutboxStatus.DONE] * 3
    assert "ghp_of_octocat" not in sent.out + sent.err


def test_credentials_that_are_not_taken_keep_everything_in_the_outbox(project: Project, hub: GitHub) -> None:
    on_github(project, hub)
    project.environment["GENBA_GITHUB_TOKEN"] = "ghp_of_nobody"
    record(project, *CHANGES[:2])
    result = project.genba("outbox", "send", check=3)
    assert "2 changes stay in the outbox." in result.err
    assert "ghp_of_nobody" not in result.out + result.err
    project.environment["GENBA_GITHUB_TOKEN"] = "ghp_of_octocat"
    project.genba("outbox", "send", check=0)


def test_what_github_refuses_is_reported_and_the_rest_is_sent(project: Project, hub: GitHub) -> None:
    on_github(project, hub)
    project.environment["GENBA_GITHUB_TOKEN"] = "ghp_of_octocat"
    record(project, PostComment(issue=99, body="Hello."), PostComment(issue=1, body="Hello."))
    result = project.genba("outbox", "send", check=1)
    assert result.out.splitlines()[0].startswith("✗ 1  #99")
    assert result.out.splitlines()[1].startswith("● 2  #1")
    assert "genba outbox list" in result.err
