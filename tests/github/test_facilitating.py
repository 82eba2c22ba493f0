"""The facilitator on issues that live on GitHub: it reads the copy, and what it says goes out by the outbox, once."""

import os
import signal
import subprocess
from typing import Any

import pytest

from tests.github.shops import SHOP, Shop, settled
from tests.project import GENBA, Project, ordinary_environment, until
from tests.standins.github.faults import Fault
from tests.standins.github.server import GitHub


@pytest.fixture
def shop(project: Project, hub: GitHub) -> Shop:
    made = settled(project, hub)
    made.publish()
    return made


def printed(shop: Shop, number: int) -> list[str]:
    return [comment.body for comment in shop.hub.issue(SHOP, number).comments]


def report(shop: Shop, *words: str) -> dict[str, Any]:
    found: dict[str, Any] = shop.project.genba("facilitate", "--json", *words).json
    return found


def states(shop: Shop, *words: str) -> dict[int, str]:
    return {each["issue"]: each["state"] for each in report(shop, *words)["assessments"]}


def test_it_looks_at_github_first_and_says_nothing_there_unasked(shop: Shop) -> None:
    one, two = shop.issue("Add green tea"), shop.issue("Add black tea")
    shop.hub.close(SHOP, two)
    assert states(shop) == {one: "incomplete", two: "done"}
    assert shop.hub.mutations == []


def test_one_comment_is_kept_on_each_open_issue(shop: Shop) -> None:
    number = shop.issue()
    shop.project.genba("facilitate", "--apply", check=0)
    (first,) = printed(shop, number)
    assert "State: incomplete" in first
    sent = len(shop.hub.mutations)
    shop.project.genba("facilitate", "--apply", check=0)
    assert len(shop.hub.mutations) == sent

    shop.project.write("tea.txt", "sencha\n")
    shop.project.commit(f"Add green tea\n\nCloses #{number}")
    shop.project.genba("facilitate", "--apply", check=0)
    (second,) = printed(shop, number)
    assert "State: done" in second


def test_a_blocked_issue_gets_its_label_and_loses_it(shop: Shop) -> None:
    first, second = shop.issue("Boil water"), shop.issue("Add green tea")
    shop.hub.block(SHOP, second, first)
    shop.project.genba("facilitate", "--apply", check=0)
    assert "blocked" in shop.labels(second)
    shop.hub.advance(3600)
    shop.hub.close(SHOP, first)
    shop.project.genba("facilitate", "--apply", check=0)
    assert "blocked" not in shop.labels(second)


def test_an_issue_of_a_milestone_with_a_due_date_has_priority_high(shop: Shop) -> None:
    plain, urgent = shop.issue("Add black tea"), shop.issue("Add green tea")
    shop.hub.plan(SHOP, urgent, "1.0", "2999-12-01T08:00:00Z")
    best, other = report(shop)["recommendation"]["suggestions"][:2]
    assert (best["issue"], best["priority"]) == (urgent, "high")
    assert (other["issue"], other["priority"]) == (plain, "medium")
    assert "due 2999-12-01" in best["rationale"]
    assert "due 2999-12-01" in shop.told(urgent)
    shop.hub.advance(3600)
    shop.hub.plan(SHOP, urgent, "2.0")
    assert {each["priority"] for each in report(shop)["recommendation"]["suggestions"]} == {"medium"}
    assert "due" not in shop.told(urgent).splitlines()[1]


def test_without_a_network_the_copy_serves_and_its_age_is_shown(shop: Shop) -> None:
    number = shop.issue()
    shop.sync()
    shop.hub.faults.add(Fault(status=503, times=1000))
    done = shop.project.genba("facilitate")
    assert "GitHub was not asked" in done.err
    assert "the copy of the issues is fresh" in done.err
    assert f"#{number}" in done.out


def test_offline_nothing_is_asked(shop: Shop) -> None:
    assert "the issues were never read: genba sync" in shop.project.genba("facilitate", "--offline").err
    assert shop.hub.requests == []


def test_a_board_narrows_the_report_and_one_that_is_not_there_is_reported(shop: Shop) -> None:
    shop.issue("Not on the board")
    carded = shop.issue("On the board")
    shop.hub.add_organization("acme", members=["octocat"])
    board = shop.hub.add_project("acme")
    shop.hub.set_card("acme", board, SHOP, carded, "Todo")
    assert list(states(shop, "--project", str(board))) == [carded]
    refused = shop.project.genba("facilitate", "--project", "77")
    assert refused.code == 4
    assert "77" in refused.err


# ── what could not be read ───────────────────────────────────────────────────────────────────────────────────────────


def board(shop: Shop, *issues: int) -> str:
    shop.hub.add_organization("acme", members=["octocat"])
    number = int(shop.hub.add_project("acme"))
    for issue in issues:
        shop.hub.set_card("acme", number, SHOP, issue, "Todo")
    return str(number)


def refuse(shop: Shop, how: str) -> None:
    """GitHub answers nothing; or everything but what is on a board; or there is no token for it."""
    if how == "no token":
        shop.project.environment |= {"GENBA_GITHUB_TOKEN": "", "GITHUB_TOKEN": "", "GH_TOKEN": ""}
    else:
        shop.hub.faults.add(Fault(status=500, times=1000, path="/graphql" if how == "no board" else "*"))


@pytest.mark.parametrize("how", ["nothing", "no board", "no token"])
def test_a_board_that_was_never_read_is_not_an_empty_one(shop: Shop, how: str) -> None:
    number = board(shop, shop.issue("On the board"))
    shop.sync()
    refuse(shop, how)
    for words in (
        ("facilitate",),
        ("facilitate", "--offline"),
        ("run", "facilitator"),
        ("run", "facilitator", "--apply"),
    ):
        done = shop.project.genba(*words, "--project", number, check=1)
        assert f"the board acme/{number} was never read: genba " in done.err
        assert "the copy of the issues is fresh" not in done.err
        assert "states clear ✗   next clear ✗   blockers visible ✗   startable ✗" in done.out
        assert f"next  nothing: not known: the board acme/{number} was never read" in done.out
        assert "there are no issues" not in done.out
    result = shop.project.genba("facilitate", "--json", "--project", number, check=1).json
    assert result["unread"] == [f"the board acme/{number} was never read: genba doctor"]
    assert not any(each["holds"] for each in result["health"])
    assert (
        f"acme/{number} was never read" in shop.project.genba("facilitate", "--graph", "--project", number, check=1).err
    )


def test_a_board_that_was_read_before_serves_when_it_cannot_be_read_now(shop: Shop) -> None:
    shop.issue("Not on the board")
    carded = shop.issue("On the board")
    number = board(shop, carded)
    assert list(states(shop, "--project", number)) == [carded]
    refuse(shop, "no board")
    done = shop.project.genba("facilitate", "--project", number)
    assert "the copy of the issues is fresh; the board is as it was read last" in done.err
    assert f"genba run iterator --issue {carded}" in done.out


def test_issues_that_were_never_read_are_not_known(shop: Shop) -> None:
    shop.issue()
    refuse(shop, "nothing")
    for words in (("facilitate",), ("facilitate", "--label", "sprint-1"), ("run", "facilitator")):
        done = shop.project.genba(*words, check=1)
        assert "the issues were never read: genba sync" in done.err
        assert "startable ✗" in done.out
        assert "there are no issues" not in done.out
    shown = shop.project.genba("status")
    assert "not known: the issues were never read: genba sync" in shown.out
    assert "✓" not in shown.out


@pytest.mark.parametrize(
    ("path", "effect", "skip"),
    [("*/comments", True, 0), ("*/comments", False, 2), ("*/labels", True, 0), ("*/labels", False, 0)],
)
def test_a_death_during_a_comment_leaves_no_comment_twice(shop: Shop, path: str, effect: bool, skip: int) -> None:
    numbers = [shop.issue(f"Add tea {each}") for each in range(4)]
    shop.hub.block(SHOP, numbers[1], numbers[0])
    shop.sync()
    fault = shop.hub.faults.add(Fault(method="POST", path=path, hang=True, effect=effect, skip=skip))
    dying = subprocess.Popen(
        [str(GENBA), "facilitate", "--apply"],
        cwd=shop.project.root,
        env={**ordinary_environment(), **shop.project.environment},
        start_new_session=True,
    )
    try:
        until(lambda: fault.struck, 60)
    finally:
        os.killpg(dying.pid, signal.SIGKILL)
        assert dying.wait(30) == -signal.SIGKILL
    shop.hub.faults.clear()

    until(lambda: shop.project.genba("facilitate", "--apply").code == 0, 90)
    assert [len(printed(shop, number)) for number in numbers] == [1, 1, 1, 1]
    assert "blocked" in shop.labels(numbers[1])
    sent = len(shop.hub.mutations)
    shop.project.genba("facilitate", "--apply", check=0)
    assert len(shop.hub.mutations) == sent


def test_an_issue_with_five_thousand_comments_is_looked_at_as_any_other(shop: Shop) -> None:
    number = shop.issue()
    talk = shop.hub.issue(SHOP, number)
    for at in range(5000):
        shop.hub.comment(SHOP, number, f"{at}: still waiting, closes #{at}", by="stranger")
    assert len(talk.comments) == 5000
    found = report(shop)
    assert [each["state"] for each in found["assessments"]] == ["incomplete"]
    shop.project.genba("facilitate", "--apply", check=0)
    shop.project.genba("facilitate", "--apply", check=0)
    ours = [body for body in printed(shop, number) if "State: incomplete" in body]
    assert len(ours) == 1
    events = shop.project.genba("facilitate", "--events", check=0).out
    assert events.count('"commented"') < 5000


def test_an_issue_that_was_reopened_there_is_not_done_by_what_had_landed_before(shop: Shop) -> None:
    number = shop.issue()
    shop.project.write("tea.txt", "sencha\n")
    shop.project.commit(f"Add green tea\n\nCloses #{number}")
    shop.hub.close(SHOP, number)
    shop.hub.advance(3600)
    shop.hub.reopen(SHOP, number)
    (only,) = report(shop)["assessments"]
    assert only["state"] == "incomplete"
    assert only["evidence"][0].startswith("reopened ")


def test_the_agent_says_the_same_as_the_command_and_says_it_once(shop: Shop) -> None:
    shop.issue("Not on the board")
    first, other = (
        shop.hub.add_issue(SHOP, title="On the board", labels=["ready", "sprint-1"]),
        shop.issue("Also there"),
    )
    shop.hub.block(SHOP, other, first)
    shop.hub.add_organization("acme", members=["octocat"])
    board = str(shop.hub.add_project("acme"))
    for number in (first, other):
        shop.hub.set_card("acme", int(board), SHOP, number, "Todo")
    asked = ("--project", board, "--project-owner", "acme", "--label", "sprint-1")
    shown = report(shop, *asked)
    assert shop.hub.mutations == []
    result = shop.project.run("facilitator", *asked)
    assert (result["outcome"], shop.hub.mutations) == ("completed", [])
    for name in ("assessments", "recommendation", "actions", "health"):
        assert [{**each, "changed": 0} for each in rows(result["report"][name])] == [
            {**each, "changed": 0} for each in rows(shown[name])
        ]
    assert result["report"]["recommendation"]["suggestions"][0]["priority"] == "high"

    shop.project.genba("run", "facilitator", *asked, "--apply", check=0)
    assert [len(printed(shop, number)) for number in (first, other)] == [1, 0]
    sent = len(shop.hub.mutations)
    shop.project.genba("run", "facilitator", *asked, "--apply", check=0)
    assert len(shop.hub.mutations) == sent


def rows(output: Any) -> list[dict[str, Any]]:
    return output if isinstance(output, list) else [output]
