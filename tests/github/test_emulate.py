"""The REST part of the product, unmodified, against emulate: a stand-in for GitHub that others made."""

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from genba.connections.github.access.credentials import TokenCredentials
from genba.connections.github.issues import GitHubIssues
from genba.connections.github.remote_changes import GitHubChanges
from genba.domain.errors import UnrecoverableError
from genba.domain.tracker.outbox import (
    CloseIssue,
    MergePullRequest,
    OpenPullRequest,
    PostComment,
    Relabel,
    ReopenIssue,
)
from tests.github.emulated import Emulate
from tests.github.offices import connected, named, settings
from tests.github.places import Place, a_place


@pytest.fixture
def place(emulate: Emulate, tmp_path: Path) -> Iterator[Place]:
    """A repository of its own for each test."""
    with a_place(emulate, tmp_path) as made:
        yield made


@dataclass
class Connection:
    issues: GitHubIssues
    changes: GitHubChanges


@pytest.fixture
async def genba(place: Place) -> AsyncIterator[Connection]:
    token = TokenCredentials(place.emulate.tokens["octocat"], "the test", named(place.emulate.url))
    async with connected(settings(place.emulate.url, place.repository), credentials=token) as client:
        yield Connection(GitHubIssues(client), GitHubChanges(client))


# git


def test_what_is_pushed_is_in_emulate_under_the_same_names_and_its_merges_come_back(place: Place) -> None:
    (place.folder / "run.sh").write_text("#!/bin/sh\n")
    (place.folder / "run.sh").chmod(0o755)
    (place.folder / "link").symlink_to("run.sh")
    first = place.push("topic/one", "deep/er/naïve.txt", "ä\n")
    second = place.push("two", "two.bin", "\0two")
    place.run("merge", "-q", "--no-ff", "-m", "Join them", "topic/one")
    place.run("push", "-q", "origin", "two")
    refs = {one["ref"]: one["object"]["sha"] for one in place.ask("GET", "/git/matching-refs/heads")}
    assert refs["refs/heads/topic/one"] == first
    assert refs["refs/heads/two"] == place.run("rev-parse", "HEAD")
    assert second in place.run("rev-list", "HEAD")
    pull = place.ask("POST", "/pulls", {"title": "Two", "head": "two", "base": "main"})
    merged = place.ask("PUT", f"/pulls/{pull['number']}/merge", {"sha": refs["refs/heads/two"]})
    place.git.pull()
    place.run("fetch", "-q", "--prune")
    assert place.run("rev-parse", "origin/main") == merged["sha"]
    assert place.run("show", "origin/main:deep/er/naïve.txt") == "ä"
    place.run("push", "-q", "origin", "--delete", "topic/one")
    place.run("push", "-q", "--force", "origin", f"{first}:two")
    refs = {one["ref"]: one["object"]["sha"] for one in place.ask("GET", "/git/matching-refs/heads")}
    assert refs == {"refs/heads/main": merged["sha"], "refs/heads/two": first}


# reading


async def test_pages_of_issues_are_read_to_the_end_and_only_what_changed_later(place: Place, genba: Connection) -> None:
    for number in range(1, 106):
        place.add_issue(f"Issue {number}", *(["ready"] if number % 2 else []))
    pages = [await genba.issues.page()]
    while pages[-1].following and len(pages) < 5:
        pages.append(await genba.issues.page(following=pages[-1].following))
    assert (len(pages[0].issues), pages[-1].following) == (100, "")
    assert {issue.number for page in pages for issue in page.issues} == set(range(1, 106))
    assert pages[0].issues[0].labels == ("ready",)
    ready = await genba.issues.page(label="ready")
    assert {issue.number % 2 for issue in ready.issues} == {1}
    place.ask("POST", "/issues/3/comments", {"body": "Look"})
    later = await genba.issues.page(since=pages[-1].newest)
    assert 3 in {issue.number for issue in later.issues}


async def test_comments_labels_and_states_are_made_once(place: Place, genba: Connection) -> None:
    number = place.add_issue("Work", "ready")
    changes = genba.changes
    await changes.apply(PostComment(issue=number, body="I begin."), "k1")
    [comment] = place.ask("GET", f"/issues/{number}/comments")
    assert comment["body"].startswith("I begin.")
    change = Relabel(issue=number, add=("in progress",), remove=("ready", "never there"))
    assert await changes.find(change, "k2") is None
    await changes.apply(change, "k2")
    assert await changes.find(change, "k2") is not None
    closing = CloseIssue(issue=number)
    await changes.apply(closing, "k3")
    row = place.ask("GET", f"/issues/{number}")
    assert (row["state"], row["state_reason"]) == ("closed", "completed")
    assert [label["name"] for label in row["labels"]] == ["in progress"]
    assert await changes.find(closing, "k3") is not None
    await changes.apply(ReopenIssue(issue=number), "k4")
    assert place.ask("GET", f"/issues/{number}")["state"] == "open"


async def test_a_pull_request_is_opened_brought_up_to_date_and_merged_by_its_commit(
    place: Place, genba: Connection
) -> None:
    number = place.add_issue("Work")
    head = place.push("genba/1-work")
    change = OpenPullRequest(
        branch="genba/1-work",
        target="main",
        title="Do the work",
        body=f"Closes #{number}",
        issue=number,
        reviewers=("reviewer",),
    )
    made = await genba.changes.apply(change, "k1")
    assert made.number is not None
    assert [one["login"] for one in place.ask("GET", f"/pulls/{made.number}")["requested_reviewers"]] == ["reviewer"]
    other = OpenPullRequest(branch="genba/1-work", target="main", title="Do it all", body="Closes #1", issue=number)
    again = await genba.changes.apply(other, "k2")
    assert (again.number, place.ask("GET", f"/pulls/{made.number}")["title"]) == (made.number, "Do it all")
    with pytest.raises(UnrecoverableError):
        await genba.changes.apply(MergePullRequest(number=made.number, commit="0" * 40, issue=number), "k3")
    place.ask("POST", f"/pulls/{made.number}/reviews", {"event": "APPROVE"}, by="reviewer")
    merge = MergePullRequest(number=made.number, commit=head, issue=number)
    assert await genba.changes.find(merge, "k4") is None
    done = await genba.changes.apply(merge, "k4")
    seen = await genba.changes.find(merge, "k4")
    assert seen is not None
    assert (seen.commit, seen.existed) == (done.commit, True)
    place.git.pull()
    place.run("fetch", "-q")
    assert place.run("rev-parse", "origin/main") == done.commit
