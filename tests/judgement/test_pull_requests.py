"""Whatever a forge shows: Genba merges only what it verified, and tells an author nothing twice."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from genba.domain.tasks.task import Task, TaskStatus
from genba.domain.tracker.remote import (
    PullRequestState,
    RemoteCheck,
    RemoteReview,
    ReviewVerdict,
    Terms,
    TrackedPullRequest,
)
from genba.judgement.tracking.pull_requests import (
    ClosedUnmerged,
    Conflict,
    Merge,
    Merged,
    Rework,
    Wait,
    read_back,
    standing_of,
)

_COMMITS = st.sampled_from(["", "a" * 40, "b" * 40])
_TEXTS = st.text(max_size=20)

reviews = st.builds(
    RemoteReview,
    id=st.sampled_from("123"),
    author=st.sampled_from(["alice", "bob"]),
    verdict=st.sampled_from(ReviewVerdict),
    body=_TEXTS,
    commit=_COMMITS,
    trusted=st.booleans(),
    may_write=st.booleans(),
    findings=st.lists(_TEXTS, max_size=3).map(tuple),
)
checks = st.builds(
    RemoteCheck,
    name=st.sampled_from(["ci", "lint", "docs"]),
    state=st.sampled_from(["pending", "passed", "failed", "skipped"]),
    detail=_TEXTS,
)
requests = st.builds(
    TrackedPullRequest,
    number=st.just(31),
    reference=st.just("P"),
    url=st.just("https://github.test/pull/31"),
    commit=_COMMITS,
    target=st.just("main"),
    state=st.sampled_from(PullRequestState),
    draft=st.booleans(),
    merged_by=st.sampled_from(["", "bob"]),
    mergeable=st.sampled_from(["", "mergeable", "conflicting", "unknown"]),
    merge_state=st.sampled_from(["", "behind", "blocked", "clean", "dirty", "unstable", "unknown"]),
    decision=st.sampled_from(["", "approved", "changes_requested", "review_required"]),
    reviews=st.lists(reviews, max_size=3).map(tuple),
    checks=st.lists(checks, max_size=3).map(tuple),
)
terms = st.builds(
    Terms,
    task=st.just(12),
    run=st.just("run"),
    branch=st.just("genba/12"),
    target=st.just("main"),
    commit=_COMMITS,
    merge=st.sampled_from(["people", "approved", "green"]),
)
tasks = st.builds(
    Task,
    id=st.just(1),
    number=st.just(12),
    title=st.just("t"),
    status=st.sampled_from([TaskStatus.REVIEW, TaskStatus.REVIEW, TaskStatus.IN_PROGRESS]),
    requires_review=st.booleans(),
)


@given(tasks, terms, requests)
def test_only_a_verified_open_green_head_is_merged(task: Task, held: Terms, found: TrackedPullRequest) -> None:
    verdict = read_back(task, held, found)
    if not isinstance(verdict, Merge):
        return
    assert task.status is TaskStatus.REVIEW
    assert verdict.commit == held.commit == found.commit != ""
    assert found.state is PullRequestState.OPEN
    assert found.green
    assert not found.draft
    assert found.mergeable == "mergeable"
    assert held.merge != "people"
    assert not any(one.trusted and one.verdict is ReviewVerdict.CHANGES for one in found.reviews)
    if held.merge == "approved" or task.requires_review:
        approvals = [one for one in found.reviews if one.trusted and one.verdict is ReviewVerdict.APPROVED]
        assert any(one.may_write and one.commit == held.commit for one in approvals)


@given(tasks, terms, requests)
def test_nothing_is_merged_before_the_checks_that_are_to_come(
    task: Task, held: Terms, found: TrackedPullRequest
) -> None:
    if isinstance(read_back(task, held, found, checks_to_come=True), Merge):
        assert found.checks


@given(tasks, terms, requests)
def test_nothing_is_handed_over_twice(task: Task, held: Terms, found: TrackedPullRequest) -> None:
    handed: frozenset[str] = frozenset()
    for _ in range(4):
        verdict = read_back(task, held, found, handed)
        if not isinstance(verdict, Rework | Conflict):
            return
        assert verdict.handed
        assert not handed & set(verdict.handed)
        handed |= set(verdict.handed)
    raise AssertionError("it goes back for ever")


@given(tasks, terms, requests)
def test_strangers_decide_nothing(task: Task, held: Terms, found: TrackedPullRequest) -> None:
    strangers = tuple(msgspec.structs.replace(review, trusted=False) for review in found.reviews)
    with_them = msgspec.structs.replace(found, reviews=strangers)
    without = msgspec.structs.replace(found, reviews=())
    assert read_back(task, held, with_them) == read_back(task, held, without)


@given(tasks, terms, requests)
def test_what_ended_there_is_never_waited_for(task: Task, held: Terms, found: TrackedPullRequest) -> None:
    verdict = read_back(task, held, found)
    assert standing_of(found)
    if found.state is PullRequestState.MERGED:
        assert isinstance(verdict, Merged)
    elif found.state is PullRequestState.CLOSED and task.status is TaskStatus.REVIEW:
        assert isinstance(verdict, ClosedUnmerged)
    elif task.status is not TaskStatus.REVIEW:
        assert isinstance(verdict, Wait)
