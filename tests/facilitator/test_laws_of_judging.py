"""What holds for every field: it is judged, always the same, in whatever order, and no field is too hostile."""

import time
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from genba.domain.facilitation import (
    Freshness,
    How,
    IssueAssessment,
    IssueFacts,
    IssueState,
    SeenBranch,
    SeenCommit,
    SeenSession,
)
from genba.domain.tasks.task import Priority, TaskStatus
from genba.domain.tracker.remote import PullRequestState, RemoteCheck, RemoteReview, ReviewVerdict, TrackedPullRequest
from genba.judgement.triage.assessment import assess_all
from genba.judgement.triage.freshness import Ages, freshness_of
from genba.judgement.triage.health import health_of
from genba.judgement.triage.maintenance import Keeping, Known, actions
from genba.judgement.triage.orphaned_work import orphaned
from genba.judgement.triage.recommendations import TriageContext, recommend
from genba.judgement.triage.text_similarity import fit, words_of
from tests.facilitator.fields import NOW, REVIEWER, agent, at, field, issue, judged, landed

NUMBERS = st.integers(1, 5)
TIMES = st.sampled_from(["", *(at(day) for day in range(1, 9)), "no time", "9999-12-31T23:59:59.999999Z"])
TEXTS = st.sampled_from(["", "a", "which region?", "@all #3 `x`\n# y", "\x00\u202e", "長い文章です"])
SHAS = st.sampled_from([f"{number:040x}" for number in range(1, 6)] + [""])
COMMITS = st.builds(
    SeenCommit,
    sha=SHAS,
    time=TIMES,
    how=st.sampled_from(How),
    on_base=st.booleans(),
    reverted_by=SHAS,
    run=st.sampled_from(["", "run-1", "run-2"]),
)
BRANCHES = st.builds(
    SeenBranch,
    name=st.sampled_from(["12-a", "12-b", ""]),
    tip=SHAS,
    time=TIMES,
    ahead=st.integers(0, 3),
    landed=st.booleans(),
)
SESSIONS = st.builds(
    SeenSession,
    run=st.sampled_from(["run-1", "run-2", "run-3"]),
    agent=st.sampled_from(["iterator", "other"]),
    status=st.sampled_from(["running", "waiting", "ended", "?"]),
    alive=st.booleans(),
    waits_for=st.sampled_from(["", "answer", "review", "merge", "budget", "resume", "parts"]),
    branch=st.sampled_from(["12-a", "12-b"]),
    reason=TEXTS,
    last_at=TIMES,
    dirty_tree=st.sampled_from(["", "/tree"]),
)
REQUESTS = st.builds(
    TrackedPullRequest,
    number=st.integers(30, 33),
    reference=st.just(""),
    url=st.just(""),
    state=st.sampled_from(PullRequestState),
    draft=st.booleans(),
    commit=SHAS,
    merged_commit=SHAS,
    merged_at=TIMES,
    target=st.sampled_from(["", "main", "epic"]),
    mergeable=st.sampled_from(["", "mergeable", "conflicting", "unknown"]),
    decision=st.sampled_from(["", "approved", "changes_requested", "review_required"]),
    reviews=st.lists(
        st.builds(RemoteReview, id=st.just("R"), author=TEXTS, verdict=st.sampled_from(ReviewVerdict), commit=SHAS),
        max_size=2,
    ).map(tuple),
    checks=st.lists(
        st.builds(RemoteCheck, name=TEXTS, state=st.sampled_from(["pending", "passed", "failed", "skipped"])),
        max_size=2,
    ).map(tuple),
)


def tuples(what: st.SearchStrategy[Any], most: int = 2) -> st.SearchStrategy[tuple[Any, ...]]:
    return st.lists(what, max_size=most).map(tuple)


FACTS = st.builds(
    IssueFacts,
    number=st.just(0),
    title=TEXTS,
    labels=tuples(st.sampled_from(["blocked", "Blocked", "wip", "done", "enhancement"])),
    own_labels=tuples(st.just("blocked"), 1),
    state=st.sampled_from(["open", "closed"]),
    state_reason=st.sampled_from(["", "completed", "not_planned", "duplicate", "reopened"]),
    reopened_at=TIMES,
    priority=st.sampled_from(Priority),
    status=st.sampled_from([None, *TaskStatus]),
    blocker_kind=st.sampled_from(["", "failed", "dependency", "conflict", "needs_input"]),
    blocker_reason=TEXTS,
    question=TEXTS,
    children=tuples(NUMBERS),
    dependencies=tuples(NUMBERS),
    blocked_elsewhere=tuples(TEXTS, 1),
    commits=tuples(COMMITS),
    branches=tuples(BRANCHES),
    pull_requests=tuples(REQUESTS),
    sessions=tuples(SESSIONS),
    phase_runs=tuples(st.sampled_from(["run-1", "run-2"]), 1),
    verified=SHAS,
    approved=SHAS,
    rejected=TEXTS,
    requires_review=st.booleans(),
    last_at=TIMES,
    missing=tuples(TEXTS, 1),
)
FIELDS = st.lists(FACTS, max_size=4).map(
    lambda all_: {number: msgspec.structs.replace(facts, number=number) for number, facts in enumerate(all_, 1)}
)
AGENTS = (agent(), agent("other", succeeded=1), REVIEWER)


@settings(max_examples=60)
@given(FIELDS)
def test_every_field_is_judged_recommended_and_kept(facts: dict[int, IssueFacts]) -> None:
    found = assess_all(facts, NOW, base="main")
    assert list(found) == list(facts)
    for each in found.values():
        assert each.evidence
        assert each.recommendation
        assert (each.state is IssueState.BLOCKED) <= bool(each.blockers)
    next_ = recommend(found, facts, AGENTS)
    assert next_.next_agent in ("none", "iterator", "other", "reviewer")
    assert all(0 <= each.score <= 1 and each.command for each in next_.suggestions)
    scores = [each.score for each in next_.suggestions if each.issue is not None]
    assert scores == sorted(scores, reverse=True)
    assert len(health_of(found, next_)) == 4
    assert all(each.command for each in orphaned(found, facts, TriageContext()))
    assert all(each.body for each in actions(found, facts, {}, Keeping(), Known()) if each.action != "label")


def shuffled(facts: IssueFacts, how: Any) -> IssueFacts:
    """The same facts, found in another order."""
    lists = ("commits", "branches", "pull_requests", "sessions", "dependencies", "children", "labels")
    changed = {name: tuple(how(list(getattr(facts, name)))) for name in lists}
    return msgspec.structs.replace(facts, **changed)


def without_doubles(facts: IssueFacts) -> IssueFacts:
    keys = {"commits": "sha", "branches": "name", "pull_requests": "number", "sessions": "run"}
    changed = {
        name: tuple({getattr(each, key): each for each in getattr(facts, name)}.values()) for name, key in keys.items()
    }
    reviews = tuple(
        msgspec.structs.replace(each, reviews=each.reviews[:1], checks=each.checks[:1])
        for each in changed["pull_requests"]
    )
    return msgspec.structs.replace(facts, **{**changed, "pull_requests": reviews})


@settings(max_examples=60)
@given(FIELDS)
def test_the_order_in_which_facts_are_found_says_nothing(facts: dict[int, IssueFacts]) -> None:
    facts = {number: without_doubles(each) for number, each in facts.items()}
    backwards = {number: shuffled(facts[number], lambda all_: all_[::-1]) for number in reversed(facts)}
    one, other = assess_all(facts, NOW, base="main"), assess_all(backwards, NOW, base="main")
    assert {number: other[number] for number in one} == one
    assert recommend(other, backwards, AGENTS[::-1]).suggestions == recommend(one, facts, AGENTS).suggestions


def needed_by(number: int, facts: dict[int, IssueFacts]) -> set[int]:
    """An issue with its parts and what it waits for, and theirs."""
    seen: set[int] = set()
    ahead = [number]
    while ahead:
        at_ = ahead.pop()
        if at_ in facts and at_ not in seen:
            seen.add(at_)
            ahead += (*facts[at_].children, *facts[at_].dependencies)
    return seen


@settings(max_examples=60)
@given(FIELDS)
def test_an_issue_is_judged_the_same_in_any_part_of_the_field_that_holds_what_it_needs(
    facts: dict[int, IssueFacts],
) -> None:
    whole = assess_all(facts, NOW, base="main")
    for number in facts:
        needed = needed_by(number, facts)
        part = {each: facts[each] for each in facts if each in needed}
        assert assess_all(part, NOW, base="main")[number] == whole[number]


def test_what_changed_since_the_last_look_is_reported() -> None:
    first = judged(issue(1), issue(2))
    assert not any(each.changed for each in first.values())
    facts = field(issue(1, commits=(landed(),)), issue(2), issue(3))
    again = assess_all(facts, NOW, first)
    assert {number: each.changed for number, each in again.items()} == {1: True, 2: False, 3: True}


@pytest.mark.parametrize(
    ("last", "fresh"),
    [
        (at(8, 7), Freshness.ACTIVE),
        (at(7, 8), Freshness.ACTIVE),
        (at(7, 7), Freshness.RECENT),
        (at(1, 8), Freshness.RECENT),
        (at(1, 7), Freshness.STALE),
        ("", Freshness.RECENT),
    ],
)
def test_how_fresh_it_is(last: str, fresh: Freshness) -> None:
    assert freshness_of(last, NOW) is fresh


def test_how_fresh_it_is_is_a_matter_of_the_settings() -> None:
    ages = Ages(active_hours=1, stale_days=0.5)
    assert freshness_of(at(8, 7), NOW, ages) is Freshness.ACTIVE
    assert freshness_of(at(8, 6), NOW, ages) is Freshness.RECENT
    assert freshness_of(at(7, 8), NOW, ages) is Freshness.STALE


def test_an_issue_reopened_at_an_unknown_time_is_not_called_done() -> None:
    found = judged(issue(state_reason="reopened", commits=(landed(),)))[12]
    assert found.state is IssueState.UNKNOWN
    assert found.evidence[0].startswith("it was reopened, and nothing says whether that was before")


def test_a_blocker_names_who_has_it_in_hand_and_the_chain() -> None:
    root = issue(1, sessions=(SeenSession(run="r", agent="iterator", status="running", alive=True),))
    found = judged(root, issue(2, dependencies=(1,)), issue(3, dependencies=(2,), assignees=("kim",)))
    blocker = found[3].blockers[0]
    assert (blocker.kind, blocker.issue, blocker.owner, blocker.chain) == ("dependency", 2, "iterator", (3, 2, 1))
    assert found[3].recommendation == "clear what is in its way (iterator)"


SIZE = 10_000
HOSTILE: dict[str, list[IssueFacts]] = {
    "a chain": [issue(number, dependencies=(number + 1,)) for number in range(1, SIZE)],
    "a ring": [issue(number, dependencies=(number % SIZE + 1,)) for number in range(1, SIZE + 1)],
    "parts of parts": [issue(number, children=(number + 1,)) for number in range(1, SIZE)],
    "parts in a ring": [issue(number, children=(number % SIZE + 1,)) for number in range(1, SIZE + 1)],
    "all wait for all": [issue(number, dependencies=tuple(range(1, 301))) for number in range(1, 301)],
    "all wait for one": [issue(number, dependencies=(1,)) for number in range(2, SIZE)],
}


@pytest.mark.parametrize("issues", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_field_takes_no_longer_than_others(issues: Sequence[IssueFacts]) -> None:
    facts = field(*issues)
    began = time.process_time()
    found = assess_all(facts, NOW)
    recommend(found, facts, AGENTS)
    assert time.process_time() - began < 10
    assert all(
        len(blocker.chain) <= 12 and len(blocker.detail) < 500 for each in found.values() for blocker in each.blockers
    )


def test_texts_fit_by_the_words_that_they_share() -> None:
    fixes = words_of("Mends parsers of queries")
    assert fit(fixes, words_of("The parser is slow for a query")) > fit(fixes, words_of("Write documentation"))
    assert fit(words_of("文書を書く"), words_of("文書が古い")) > 0
    assert fit(words_of(""), words_of("anything")) == 0
    assert words_of("the issue is for an agent 123") == frozenset()
    assert len(words_of("word%d " * 10, *(f"w{number}ord" for number in range(10_000)))) <= 800


def test_an_assessment_is_the_same_after_it_was_kept() -> None:
    one = judged(issue(dependencies=(9,)))[12]
    assert msgspec.json.decode(msgspec.json.encode(one), type=IssueAssessment) == one
