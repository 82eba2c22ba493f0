"""`genba work --project N`: a fleet for the issues of one board of GitHub."""

import os
import signal
import subprocess

import pytest

from tests.github.shops import SHOP, Shop, settled
from tests.project import GENBA, Project, ordinary_environment, until
from tests.standins.github.faults import Fault
from tests.standins.github.server import GitHub


@pytest.fixture
def shop(project: Project, hub: GitHub) -> Shop:
    made = settled(project, hub)
    made.agent(createPr=False, push=True, do="echo $RANDOM$$ > work.txt && git add -A && git commit -qm Work")
    return made


def board(shop: Shop, *issues: int) -> int:
    shop.hub.add_organization("acme", members=["octocat"])
    number = int(shop.hub.add_project("acme"))
    for issue in issues:
        shop.hub.set_card("acme", number, SHOP, issue, "Todo")
    return number


def test_work_takes_the_issues_of_a_board_and_no_others(shop: Shop) -> None:
    apart, carded = shop.issue("Not on the board"), shop.issue("On the board")
    number = board(shop, carded)
    done = shop.project.genba("work", "--until-empty", "--workers", "2", "--project", str(number))
    assert (shop.status(carded), shop.status(apart)) == ("done", "open"), done.err


def test_an_issue_that_is_put_on_the_board_meanwhile_is_taken(shop: Shop) -> None:
    first, later = shop.issue("On the board"), shop.issue("On the board later")
    number = board(shop, first)
    words = [str(GENBA), "work", "--workers", "1", "--plain", "--project", str(number)]
    environment = {**ordinary_environment(), **shop.project.environment}
    with subprocess.Popen(
        words, cwd=shop.project.root, env=environment, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL
    ) as working:
        try:
            until(lambda: shop.hub.issue(SHOP, first).state == "closed")
            assert shop.status(later) == "open"
            shop.hub.set_card("acme", number, SHOP, later, "Todo")
            until(lambda: shop.hub.issue(SHOP, later).state == "closed")
        finally:
            os.kill(working.pid, signal.SIGTERM)
            working.wait(30)


def test_a_board_that_cannot_be_read_starts_nothing(shop: Shop) -> None:
    issue = shop.issue()
    number = board(shop, issue)
    refused = shop.project.genba("work", "--until-empty", "--project", "77")
    assert (refused.code, "77" in refused.err) == (4, True)
    shop.hub.faults.add(Fault(status=503, times=1000))
    refused = shop.project.genba("work", "--until-empty", "--project", str(number))
    assert refused.code == 1
    assert f"error: the board acme/{number} could not be read: GitHub was not asked" in refused.err
    assert shop.hub.issue(SHOP, issue).state == "open"


def test_a_board_that_was_read_before_and_cannot_be_read_now_starts_nothing(shop: Shop) -> None:
    issue = shop.issue()
    number = str(board(shop, issue))
    shop.project.genba("facilitate", "--project", number)
    shop.hub.faults.add(Fault(status=500, path="/graphql", times=1000))
    refused = shop.project.genba("work", "--until-empty", "--project", number, check=1)
    assert f"error: the board acme/{number} could not be read: GitHub was not asked" in refused.err
    assert shop.hub.issue(SHOP, issue).state == "open"


def test_a_board_wants_issues_of_github(project: Project) -> None:
    refused = project.genba("work", "--until-empty", "--project", "5")
    assert refused.code == 2
    assert "hint: genba work   or   genba init --github" in refused.err
    refused = project.genba("work", "--project-owner", "acme")
    assert (refused.code, "genba work --project 5 --project-owner acme" in refused.err) == (2, True)
