from typing import Any

import pytest

from genba.domain.facilitation import IssueFacts
from genba.domain.tasks.task import TaskStatus
from genba.domain.tracker.remote import RemoteCheck
from genba.judgement.triage.health import health_of
from genba.judgement.triage.orphaned_work import orphaned
from genba.judgement.triage.recommendations import Recommender, TriageContext
from tests.facilitator.fields import agent, field, issue, judged, landed, request, session

TREE = "/work/trees/a b"
CASES: list[tuple[str, IssueFacts, str, str]] = [
    (
        "not_merged",
        issue(status=TaskStatus.REVIEW, verified="a" * 40),
        "aaaaaaa is verified, and not on the base",
        "genba work --until-empty",
    ),
    (
        "not_merged",
        issue(status=TaskStatus.REVIEW, verified="a" * 40, sessions=(session(status="ended"),)),
        "aaaaaaa is verified, and not on the base",
        "genba run --resume iterator-12-1",
    ),
    (
        "dead_session",
        issue(sessions=(session(),)),
        "iterator-12-1 holds it, and its process is gone",
        "genba run --resume iterator-12-1",
    ),
    (
        "merged_but_open",
        issue(commits=(landed(),)),
        "commit 0000000 is on the base (trailer), and its issue is open",
        "genba verify 12",
    ),
    (
        "no_reviewer",
        issue(pull_requests=(request(),)),
        "pull request #31 is open, and no reviewer is requested",
        "gh pr view 31",
    ),
    (
        "dirty_tree",
        issue(sessions=(session(status="ended", dirty_tree=TREE),)),
        f"{TREE} has changes, and no agent works in it",
        "genba run --resume iterator-12-1",
    ),
    (
        "dirty_tree",
        issue(state="closed", sessions=(session(status="ended", dirty_tree=TREE),)),
        f"{TREE} has changes, and no agent works in it",
        "git -C '/work/trees/a b' status",
    ),
    (
        "wrong_label",
        issue(labels=("In-Progress",)),
        "it is labelled In-Progress, and it is incomplete: no commit, no branch, no pull request, no session",
        "genba task edit 12 --remove-label In-Progress",
    ),
    (
        "wrong_label",
        issue(labels=("done",)),
        "it is labelled done, and it is incomplete: no commit, no branch, no pull request, no session",
        "genba task edit 12 --remove-label done",
    ),
]


@pytest.mark.parametrize(("kind", "facts", "detail", "command"), CASES)
def test_stranded_work_is_found(kind: str, facts: IssueFacts, detail: str, command: str) -> None:
    found = orphaned(judged(facts), field(facts), TriageContext())
    assert [(each.kind, each.issue, each.detail, each.command) for each in found] == [(kind, 12, detail, command)]


@pytest.mark.parametrize(
    "facts",
    [
        issue(),
        issue(state="closed", commits=(landed(),)),
        issue(sessions=(session(alive=True, dirty_tree=TREE),)),
        issue(pull_requests=(request(draft=True),)),
        issue(pull_requests=(request(decision="review_required"),)),
        issue(pull_requests=(request(checks=(RemoteCheck(name="tests", state="failed"),)),)),
        issue(status=TaskStatus.REVIEW, verified="a" * 40, requires_review=True),
        issue(status=TaskStatus.REVIEW, verified="a" * 40, sessions=(session(status="waiting", waits_for="merge"),)),
        issue(labels=("in-progress",), commits=(landed(on_base=False),)),
        issue(labels=("done",), commits=(landed(),), state="closed"),
    ],
)
def test_what_goes_its_way_is_not_stranded(facts: IssueFacts) -> None:
    assert orphaned(judged(facts), field(facts), TriageContext()) == ()


def test_on_github_the_commands_are_those_of_github() -> None:
    facts = issue(labels=("wip",), pull_requests=(request(),))
    around = TriageContext(repository="acme/shop")
    assert [each.command for each in orphaned(judged(facts), field(facts), around)] == [
        "gh pr view 31 --repo acme/shop"
    ]
    alone = issue(labels=("wip",))
    assert [each.command for each in orphaned(judged(alone), field(alone), around)] == [
        "gh issue edit 12 --repo acme/shop --remove-label wip"
    ]


ITERATOR = agent()


def health(*issues: IssueFacts, agents: Any = (ITERATOR,)) -> dict[str, tuple[int, ...]]:
    """The conditions that do not hold, with the issues that offend."""
    states = judged(*issues)
    moves = Recommender(states, field(*issues), agents, TriageContext())
    found = health_of(states, moves.recommend(), in_work=moves.in_work)
    assert [each.name for each in found] == ["states_clear", "next_clear", "blockers_visible", "startable"]
    assert all(each.holds == (not each.offenders) for each in found)
    return {each.name: each.offenders for each in found if not each.holds}


@pytest.mark.parametrize(
    ("issues", "broken"),
    [
        ((), {}),
        ((issue(),), {}),
        ((issue(state="closed"),), {}),
        ((issue(sessions=(session(alive=True),)),), {}),
        ((issue(1), issue(2, dependencies=(1,))), {}),
        ((issue(1), issue(2, missing=("x",))), {"states_clear": (2,)}),
        ((issue(1), issue(2, labels=("blocked",))), {"blockers_visible": (2,)}),
        ((issue(1, dependencies=(2,)), issue(2, dependencies=(1,))), {"startable": (1, 2)}),
        ((issue(1, status=TaskStatus.BLOCKED), issue(2)), {"blockers_visible": (1,)}),
    ],
)
def test_the_four_conditions(issues: Any, broken: dict[str, tuple[int, ...]]) -> None:
    assert health(*issues) == broken


def test_without_an_agent_that_fits_the_next_move_is_not_clear() -> None:
    assert health(issue(1), issue(2), agents=()) == {"next_clear": (1, 2)}
