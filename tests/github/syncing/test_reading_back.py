"""Pull requests are read back into their tasks: done, worked on again, asked about, merged."""

from typing import Any

import msgspec
import pytest

from genba.blackboard.database.store import Statement
from genba.blackboard.fleet.fleet_board import FleetBoard
from genba.blackboard.tasks.board import Blackboard
from genba.blackboard.tracker import outbox, pull_request_terms
from genba.blackboard.tracker.issue_copy import TrackerBoard
from genba.definitions.project.tracker_section import BoardSettings, CardStatuses
from genba.domain.sessions.outcomes import Outcome
from genba.domain.sessions.session import SessionEnd, SessionStart
from genba.domain.tasks.task import Actor, ActorKind, BlockerKind, TaskEdit, TaskStatus
from genba.domain.tracker.issues import IssueChange
from genba.domain.tracker.outbox import (
    CloseIssue,
    MergePullRequest,
    OpenPullRequest,
    OutboxStatus,
    Relabel,
    RemoteChange,
    SetCardStatus,
)
from genba.domain.tracker.remote import PullRequestState, RemoteCheck, RemoteReview, ReviewVerdict, Terms
from genba.testing.conformance import a_move, a_verification
from genba.testing.tracker_doubles import MemoryIssues
from tests.github.syncing.conftest import Syncing

_ALICE = Actor(ActorKind.HUMAN, "alice")
_HEAD = "a" * 40


def _proposed(board: Blackboard, number: int, **terms: object) -> None:
    """The work on a task was verified, and went out as a pull request of its branch."""
    start = SessionStart(run=f"run-{number}", agent="builder", branch=f"genba/{number}", base="c0", workdir="/nowhere")
    board.begin_session(number, start)
    board.record_verification(number, start.run, a_verification(_HEAD))
    board.change_status(number, a_move(TaskStatus.REVIEW, commit=_HEAD))
    known = {"closure": IssueChange(add_labels=("done",), remove_labels=("wip",), close=True)} | terms
    held = Terms(task=number, run=start.run, branch=start.branch, target="main", commit=_HEAD, **known)  # type: ignore[arg-type]
    board.store.write(lambda tx: pull_request_terms.keep(tx, held))
    board.end_session(SessionEnd(run=start.run, outcome=Outcome.COMPLETED, reason=""))


def _changes(board: Blackboard) -> list[RemoteChange]:
    return [entry.change for entry in board.store.read(outbox.pending)]


def _review(verdict: ReviewVerdict, **values: object) -> RemoteReview:
    known = {"id": "r1", "author": "bob", "trusted": True, "may_write": True, "commit": _HEAD} | values
    return RemoteReview(verdict=verdict, **known)  # type: ignore[arg-type]


@pytest.fixture
async def task(board: Blackboard, remote: MemoryIssues, syncing: Syncing) -> int:
    """A task in review, with an open pull request."""
    number = remote.add("Add login", labels=("wip",))
    await syncing().sync()
    _proposed(board, number)
    remote.propose(f"genba/{number}", _HEAD)
    return number


async def test_merged_by_anybody_is_done_and_its_issue_is_closed(
    board: Blackboard, remote: MemoryIssues, syncing: Syncing, task: int
) -> None:
    remote.change_request(2, state=PullRequestState.MERGED, merged_commit="b" * 40, merged_by="bob")

    (news,) = (await syncing().sync()).news

    assert (news.verdict, news.task, news.number) == ("merged", task, 2)
    assert board.get(task).status is TaskStatus.DONE
    last = [event for event in board.events(task) if event.kind == "status_changed"][-1]
    assert last.data["finalized"] == "merged bbbbbbb in pull request #2"
    assert last.data["commit"] == _HEAD
    assert _changes(board) == [Relabel(issue=task, add=("done",), remove=("wip",)), CloseIssue(issue=task)]
    assert "done" in board.get(task).labels
    assert (await syncing().sync()).news == ()


async def test_an_issue_that_the_merge_closed_is_done_by_the_merge(
    board: Blackboard, remote: MemoryIssues, syncing: Syncing, task: int
) -> None:
    remote.change_request(2, state=PullRequestState.MERGED, merged_commit="b" * 40, merged_by="bob")
    remote.change(task, state="closed", state_reason="completed", pull_requests=(2,))

    await syncing().sync()

    last = [event for event in board.events(task) if event.kind == "status_changed"][-1]
    assert last.data["finalized"] == "merged bbbbbbb in pull request #2"
    assert _changes(board) == [Relabel(issue=task, add=("done",), remove=("wip",))]


async def test_one_issue_that_the_merge_closed_is_done_by_the_merge(
    board: Blackboard, remote: MemoryIssues, syncing: Syncing, task: int
) -> None:
    remote.change_request(2, state=PullRequestState.MERGED, merged_commit="b" * 40, merged_by="bob")
    remote.change(task, state="closed", state_reason="completed", pull_requests=(2,))

    assert (await syncing().sync_issue(task)).status is TaskStatus.DONE

    last = [event for event in board.events(task) if event.kind == "status_changed"][-1]
    assert last.data["finalized"] == "merged bbbbbbb in pull request #2"


async def test_changes_that_a_member_wants_go_back_once(
    board: Blackboard, copy: TrackerBoard, remote: MemoryIssues, syncing: Syncing, task: int
) -> None:
    wanted = _review(ReviewVerdict.CHANGES, body="Too slow", findings=("app.py:3: use a set",))
    remote.change_request(2, reviews=(wanted,), decision="changes_requested")

    (news,) = (await syncing().sync()).news
    assert news.verdict == "rework"
    assert board.get(task).status is TaskStatus.IN_PROGRESS
    (gap,) = copy.findings(task)
    assert "Too slow" in gap.output
    assert "app.py:3: use a set" in gap.output
    assert (await syncing().sync()).news[0].verdict == "wait"

    copy.clear_findings(task)
    board.record_verification(task, f"run-{task}", a_verification("d" * 40))
    board.change_status(task, a_move(TaskStatus.REVIEW, commit="d" * 40))
    (news,) = (await syncing().sync()).news
    assert (news.verdict, copy.findings(task)) == ("wait", ())


@pytest.mark.parametrize("review", [_review(ReviewVerdict.CHANGES, trusted=False), _review(ReviewVerdict.COMMENTED)])
async def test_strangers_and_comments_send_nothing_back(
    board: Blackboard, remote: MemoryIssues, syncing: Syncing, task: int, review: RemoteReview
) -> None:
    remote.change_request(2, reviews=(review,))
    await syncing().sync()
    assert board.get(task).status is TaskStatus.REVIEW


async def test_failed_checks_on_the_verified_head_go_back_once_all_have_ended(
    board: Blackboard, copy: TrackerBoard, remote: MemoryIssues, syncing: Syncing, task: int
) -> None:
    failed = RemoteCheck(name="ci", state="failed", detail="3 tests failed", url="https://ci.test/1")
    remote.change_request(2, checks=(failed, RemoteCheck(name="lint", state="pending")))
    assert (await syncing().sync()).news[0].verdict == "wait"

    remote.change_request(2, checks=(failed, RemoteCheck(name="lint", state="passed")))
    assert (await syncing().sync()).news[0].verdict == "rework"
    assert board.get(task).status is TaskStatus.IN_PROGRESS
    assert "3 tests failed" in copy.findings(task)[0].output


async def test_a_conflict_goes_back(
    board: Blackboard, copy: TrackerBoard, remote: MemoryIssues, syncing: Syncing, task: int
) -> None:
    remote.change_request(2, mergeable="conflicting", merge_state="dirty")
    assert (await syncing().sync()).news[0].verdict == "conflict"
    assert board.get(task).status is TaskStatus.IN_PROGRESS
    assert copy.findings(task)[0].check == "conflict"


async def test_closed_without_a_merge_asks_a_person(
    board: Blackboard, remote: MemoryIssues, syncing: Syncing, task: int
) -> None:
    remote.change_request(2, state=PullRequestState.CLOSED)
    assert (await syncing().sync()).news[0].verdict == "closed"

    found = board.get(task)
    assert found.status is TaskStatus.BLOCKED
    assert found.blocker is not None
    assert found.blocker.kind is BlockerKind.NEEDS_INPUT
    (asked,) = FleetBoard(board).escalations()
    assert "Pull request #2 was closed without a merge" in asked.question
    assert (await syncing().sync()).news == ()


async def test_approved_and_green_is_merged_by_genba_where_that_is_wanted(
    board: Blackboard, remote: MemoryIssues, syncing: Syncing, task: int
) -> None:
    board.edit(task, TaskEdit(requires_review=True), _ALICE)
    _hold_to(board, task, merge="approved", method="squash")
    assert (await syncing().sync()).news[0].result == "waits for a review"

    remote.change_request(2, reviews=(_review(ReviewVerdict.APPROVED),), decision="approved")
    for _ in range(2):
        assert (await syncing().sync()).news[0].verdict == "merge"
    assert _changes(board) == [MergePullRequest(number=2, commit=_HEAD, issue=task, method="squash")]
    assert board.get(task).approved == _HEAD

    remote.change_request(2, state=PullRequestState.MERGED, merged_commit="b" * 40, merged_by="octocat")
    await syncing().sync()
    assert board.get(task).status is TaskStatus.DONE


@pytest.mark.parametrize("lacks", [{"may_write": False}, {"commit": ""}, {"commit": "c" * 40}])
async def test_only_who_may_write_approves_and_only_the_verified_commit(
    board: Blackboard, remote: MemoryIssues, syncing: Syncing, task: int, lacks: dict[str, Any]
) -> None:
    _hold_to(board, task, merge="approved")
    remote.change_request(2, reviews=(_review(ReviewVerdict.APPROVED, **lacks),))

    (news,) = (await syncing().sync()).news

    assert (news.verdict, news.result) == ("wait", "waits for a review")
    assert _changes(board) == []


async def test_where_others_had_checks_a_new_one_waits_for_its_own(
    board: Blackboard, copy: TrackerBoard, remote: MemoryIssues, syncing: Syncing, task: int
) -> None:
    _hold_to(board, task, merge="green")
    other = remote.propose("other", "f" * 40, checks=(RemoteCheck(name="ci", state="passed"),))
    copy.keep_pull_requests([remote.requests[other]])
    remote.change_request(2, checks=())
    assert (await syncing().sync()).news[0].result == "no check has begun yet"

    remote.change_request(2, checks=(RemoteCheck(name="ci", state="passed"),))
    assert (await syncing().sync()).news[0].verdict == "merge"

    long_ago = {"created_at": "2020-01-01T00:00:00Z", "updated_at": "2020-01-01T00:00:00Z"}
    remote.requests[2] = msgspec.structs.replace(remote.requests[2], checks=(), **long_ago)
    assert (await syncing().sync()).news[0].verdict == "merge"


async def test_a_head_that_others_moved_is_not_merged_by_genba(
    board: Blackboard, remote: MemoryIssues, syncing: Syncing, task: int
) -> None:
    _hold_to(board, task, merge="green")
    remote.change_request(2, commit="e" * 40)

    (news,) = (await syncing().sync()).news

    assert "its head is eeeeeee" in news.result
    assert _changes(board) == []


async def test_a_merge_that_was_refused_gives_way_once_the_work_goes_back(
    board: Blackboard, remote: MemoryIssues, syncing: Syncing, task: int
) -> None:
    _hold_to(board, task, merge="green")
    await syncing().sync()
    (entry,) = board.store.read(outbox.pending)
    board.store.write(lambda tx: tx.do(_FAIL, id=entry.id))

    remote.change_request(2, mergeable="conflicting")
    await syncing().sync()

    assert board.store.read(lambda tx: outbox.show(tx, entry.id)).status is OutboxStatus.DROPPED


@pytest.mark.parametrize(
    "thought",
    [
        {"reviews": (_review(ReviewVerdict.CHANGES, id="r2"),), "decision": "changes_requested"},
        {"reviews": (_review(ReviewVerdict.DISMISSED, id="r2"),)},
        {"checks": (RemoteCheck(name="ci", state="failed"),)},
        {"checks": (RemoteCheck(name="ci", state="pending"),)},
        {"draft": True},
        {"state": PullRequestState.CLOSED},
    ],
    ids=["changes", "dismissed", "red", "running", "draft", "closed"],
)
async def test_a_merge_that_was_not_sent_yet_is_given_up_when_a_person_withdraws_it(
    board: Blackboard, remote: MemoryIssues, syncing: Syncing, task: int, thought: dict[str, Any]
) -> None:
    _hold_to(board, task, merge="approved")
    remote.change_request(2, reviews=(_review(ReviewVerdict.APPROVED),), decision="approved")
    await syncing().sync()
    assert [type(change) for change in _changes(board)] == [MergePullRequest]

    remote.change_request(2, **({"decision": ""} | thought))
    await syncing().sync()

    assert [change for change in _changes(board) if isinstance(change, MergePullRequest)] == []


async def test_a_merge_that_was_given_up_is_wanted_again(
    board: Blackboard, remote: MemoryIssues, syncing: Syncing, task: int
) -> None:
    _hold_to(board, task, merge="approved")
    remote.change_request(2, reviews=(_review(ReviewVerdict.APPROVED),), decision="approved")
    for _ in range(2):
        await syncing().sync()
        remote.change_request(2, draft=True)
        await syncing().sync()
        assert _changes(board) == []
        remote.change_request(2, draft=False)
    for _ in range(2):
        await syncing().sync()

    assert _changes(board) == [MergePullRequest(number=2, commit=_HEAD, issue=task)]


async def test_a_merge_waits_while_its_mergeability_is_unknown(
    board: Blackboard, remote: MemoryIssues, syncing: Syncing, task: int
) -> None:
    _hold_to(board, task, merge="green")
    await syncing().sync()
    (entry,) = board.store.read(outbox.pending)

    remote.change_request(2, mergeable="unknown")
    await syncing().sync()

    assert [one.id for one in board.store.read(outbox.pending)] == [entry.id]


async def test_a_pull_request_of_another_origin_is_found_by_its_branch_and_by_the_outbox(
    board: Blackboard, remote: MemoryIssues, syncing: Syncing, task: int
) -> None:
    await syncing().sync()
    assert "pull_request_of genba/1" in remote.calls
    remote.calls.clear()
    await syncing().sync()
    assert "pull_requests 2" in remote.calls

    other = remote.add()
    await syncing().sync()
    _proposed(board, other)
    change = OpenPullRequest(branch=f"genba/{other}", target="main", title="t", body="b", issue=other)
    board.store.write(lambda tx: outbox.record(tx, "open", change))
    remote.calls.clear()
    await syncing().sync()
    assert not any(call.endswith(f"genba/{other}") for call in remote.calls)


async def test_merged_while_it_was_worked_on_again_is_done_as_its_tracker_tells_it(
    board: Blackboard, remote: MemoryIssues, syncing: Syncing, task: int
) -> None:
    board.change_status(task, a_move(TaskStatus.IN_PROGRESS))
    remote.change_request(2, state=PullRequestState.MERGED, merged_commit="b" * 40, merged_by="bob")
    await syncing().sync()

    last = [event for event in board.events(task) if event.kind == "status_changed"][-1]
    assert (last.data["to"], last.actor.kind) == ("done", ActorKind.TRACKER)


async def test_cards_follow_the_statuses_of_tasks(board: Blackboard, remote: MemoryIssues, syncing: Syncing) -> None:
    number = remote.add()
    remote.move_card(number, "acme", 5, "Todo")
    statuses = CardStatuses(in_progress="Doing", done="Done")
    settings = {"board": BoardSettings(number=5, statuses=statuses)}
    await syncing(**settings).sync()
    board.begin_session(number, SessionStart(run="r", agent="a", branch="b", base="c", workdir="/nowhere"))

    for _ in range(2):
        await syncing(**settings).sync()

    change = SetCardStatus(issue=number, owner="acme", project=5, field="Status", status="Doing")
    assert _changes(board) == [change]


async def test_who_is_still_at_work_on_it_hears_of_it_later(
    board: Blackboard, remote: MemoryIssues, syncing: Syncing, task: int
) -> None:
    remote.change_request(2, reviews=(_review(ReviewVerdict.CHANGES),))
    board.change_status(task, a_move(TaskStatus.IN_PROGRESS))
    board.begin_session(task, SessionStart(run="run-again", agent="builder", branch="genba/1", base="c0", workdir="/"))
    board.record_verification(task, "run-again", a_verification(_HEAD))
    board.change_status(task, a_move(TaskStatus.REVIEW, commit=_HEAD))
    (news,) = (await syncing().sync()).news
    assert (news.verdict, news.result) == ("wait", "run-again is still at work on it")
    board.end_session(SessionEnd(run="run-again", outcome=Outcome.COMPLETED, reason=""))
    assert (await syncing().sync()).news[0].verdict == "rework"


async def test_a_preview_of_pull_requests_changes_nothing(
    board: Blackboard, remote: MemoryIssues, syncing: Syncing, task: int
) -> None:
    remote.change_request(2, state=PullRequestState.MERGED, merged_commit="b" * 40)
    (news,) = (await syncing().preview()).news
    assert news.verdict == "merged"
    assert board.get(task).status is TaskStatus.REVIEW


def _hold_to(board: Blackboard, number: int, **terms: str) -> None:
    def change(tx):  # type: ignore[no-untyped-def]
        held = pull_request_terms.find(tx, number)
        assert held is not None
        pull_request_terms.keep(tx, msgspec.structs.replace(held, **terms))

    board.store.write(change)


_FAIL = Statement("UPDATE outbox SET status = 'failed', error = 'no' WHERE id = :id")
_DONE = Statement("UPDATE outbox SET status = 'done', receipt = :receipt WHERE id = :id")


@pytest.mark.parametrize("refused", [False, True])
async def test_work_on_a_reopened_issue_is_not_done_by_what_was_merged_before(
    board: Blackboard, remote: MemoryIssues, syncing: Syncing, task: int, refused: bool
) -> None:
    first = OpenPullRequest(branch=f"genba/{task}", target="main", title="t", body="b", issue=task)
    entry = board.store.write(lambda tx: outbox.record(tx, "pull-request:1", first))
    board.store.write(lambda tx: tx.do(_DONE, id=entry.id, receipt='{"number":2}'))
    remote.change_request(2, state=PullRequestState.MERGED, merged_commit="b" * 40, merged_by="bob")
    remote.close(task)
    await syncing().sync()
    remote.change(task, state="open", state_reason="reopened")
    await syncing().sync()
    assert board.get(task).status is TaskStatus.OPEN

    again = "e" * 40
    start = SessionStart(run="run-again", agent="builder", branch=f"genba/{task}", base="c0", workdir="/nowhere")
    board.begin_session(task, start)
    board.record_verification(task, start.run, a_verification(again))
    board.change_status(task, a_move(TaskStatus.REVIEW, commit=again))
    closure = IssueChange(close=True)
    held = Terms(task=task, run=start.run, branch=start.branch, target="main", commit=again, closure=closure)
    for _ in range(2):
        board.store.write(lambda tx: pull_request_terms.keep(tx, held))
    if refused:
        second = msgspec.structs.replace(first, title="again")
        entry = board.store.write(lambda tx: outbox.record(tx, "pull-request:2", second))
        board.store.write(lambda tx: tx.do(_FAIL, id=entry.id))
    board.end_session(SessionEnd(run=start.run, outcome=Outcome.COMPLETED, reason=""))
    assert (await syncing().sync()).news == ()
    assert board.get(task).status is TaskStatus.REVIEW

    number = remote.propose(start.branch, again)
    assert (await syncing().sync()).news[0].number == number
    remote.change_request(number, state=PullRequestState.MERGED, merged_commit="f" * 40, merged_by="bob")
    await syncing().sync()
    assert board.get(task).status is TaskStatus.DONE


async def test_words_that_no_database_keeps_hold_up_nothing(
    board: Blackboard, copy: TrackerBoard, remote: MemoryIssues, syncing: Syncing, task: int
) -> None:
    odd = "a\x00b\nsecond line\x1b[31m"
    wanted = _review(ReviewVerdict.CHANGES, author=odd, body=odd, findings=(odd,))
    failed = RemoteCheck(name=odd, state="failed", detail=odd, url=odd)
    remote.change_request(2, title=odd, reviews=(wanted,), checks=(failed,))

    (news,) = (await syncing().sync()).news

    assert news.verdict == "rework"
    assert news.result == "pull request #2: a b second line [31m wants changes; failed: a b second line [31m"
    assert board.get(task).status is TaskStatus.IN_PROGRESS
    assert len(copy.findings(task)) == 1
