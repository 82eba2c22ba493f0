"""`genba sync` as people type it, against the GitHub of the tests."""

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
    return settled(project, hub)


def test_it_tells_what_was_read_what_it_cost_and_what_came_of_it(shop: Shop) -> None:
    one, two = shop.issue("Add green tea"), shop.issue("Add black tea")
    first = shop.project.genba("sync", check=0)
    assert "acme/shop · 2 issues read, all of them · 1 request, 1 point · 2 in the copy, 2 open" in first.out
    assert f" added     #{one} #{two}" in first.out
    assert "hint: genba work" in first.err

    shop.hub.advance(3600)
    shop.hub.close(SHOP, two)
    shop.hub.edit(SHOP, one, title="Add sencha")
    second = shop.project.genba("sync", "--json", check=0).json["look"]
    assert (second["result"]["changed"], second["result"]["closed"]) == ([one], [two])
    assert shop.project.task(one).title == "Add sencha"


def test_a_dry_run_shows_and_changes_nothing(shop: Shop) -> None:
    known = shop.issue()
    shop.sync()
    shop.hub.advance(3600)
    shop.hub.close(SHOP, known)
    new = shop.issue("Add black tea")
    seen = shop.project.genba("sync", "--dry-run", check=0)
    assert f"would be added    #{new}" in seen.out
    assert f"would be closed   #{known}" in seen.out
    assert shop.status(known) == "open"
    assert shop.hub.mutations == []
    assert shop.project.genba("task", "show", str(new)).code == 4


def test_one_issue_is_read_by_its_number(shop: Shop) -> None:
    number = shop.issue()
    assert f"#{number} open Add green tea" in shop.project.genba("sync", "--issue", str(number), check=0).out
    assert shop.project.genba("sync", "--issue", "77").code == 4


def test_issues_by_a_label_and_by_a_board_come_on_top(shop: Shop) -> None:
    plain, docs, carded = (shop.hub.add_issue(SHOP, title=title) for title in ("plain", "docs", "on the board"))
    settings = shop.project.read(".genba/config.yaml").replace("    sync_seconds", "    label: genba\n    sync_seconds")
    shop.project.write(".genba/config.yaml", settings)
    shop.hub.add_organization("acme", members=["octocat"])
    board = shop.hub.add_project("acme")
    shop.hub.set_card("acme", board, SHOP, carded, "Todo")
    shop.hub.label(SHOP, docs, "docs")
    assert shop.project.genba("sync", "--label", "docs", "--json", check=0).json["look"]["result"]["added"] == [docs]
    found = shop.project.genba("sync", "--project", str(board), "--json", check=0).json["look"]["result"]
    assert found["added"] == [carded]
    assert shop.project.genba("task", "show", str(plain)).code == 4


@pytest.mark.parametrize(
    "words",
    [("--issue", "1", "--full"), ("--project-owner", "acme"), ("--dry-run", "--label", "x"), ("--issue", "0")],
)
def test_choices_that_do_not_go_together_are_refused(shop: Shop, words: tuple[str, ...]) -> None:
    assert shop.project.genba("sync", *words).code == 2
    assert shop.hub.requests == []


def test_a_project_whose_issues_live_here_learns_how_to_join(project: Project) -> None:
    refused = project.genba("sync")
    assert refused.code == 5
    assert "genba init --github OWNER/REPOSITORY" in refused.err


def test_credentials_that_are_not_taken_are_code_3(shop: Shop) -> None:
    shop.issue()
    shop.project.environment["GENBA_GITHUB_TOKEN"] = "ghp_nobodynobodynobody00"
    refused = shop.project.genba("sync")
    assert refused.code == 3
    assert "ghp_nobody" not in refused.err + refused.out


def test_a_rate_limit_is_code_1_and_what_was_read_is_kept(shop: Shop) -> None:
    numbers = shop.hub.add_issues(SHOP, 120)
    shop.hub.faults.add(Fault(operation="nodes", status=403, headers={"retry-after": "900"}, message="slow down"))
    refused = shop.project.genba("sync")
    assert refused.code == 1
    assert "what was read is kept; in 15 min: genba sync" in refused.err
    shop.hub.forget_requests()
    assert len(shop.project.genba("sync", "--json", check=0).json["look"]["result"]["added"]) == len(numbers)
    assert not any(one.method == "GET" for one in shop.hub.requests)


def test_one_at_a_time_and_a_killed_one_is_in_nobodys_way(shop: Shop) -> None:
    number = shop.issue()
    fault = shop.hub.faults.add(Fault(method="GET", path="*/issues", hang=True))
    first = subprocess.Popen(
        [GENBA, "sync"],
        cwd=shop.project.root,
        env={**ordinary_environment(), **shop.project.environment},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        until(lambda: fault.struck)
        refused = shop.project.genba("sync")
        assert refused.code == 5
        assert f"another sync of this project is under way: process {first.pid}" in refused.err
        os.kill(first.pid, signal.SIGKILL)
    finally:
        first.kill()
        first.wait(20)
        fault.release()
    shop.sync()
    assert shop.status(number) == "open"


def test_a_repository_that_was_renamed_is_followed_and_reported(shop: Shop) -> None:
    number = shop.issue()
    shop.hub.rename_repository(SHOP, "store")
    seen = shop.project.genba("sync", check=0)
    assert f" added     #{number}" in seen.out
    assert "was it renamed or moved?" in seen.out + seen.err


def test_agents_do_not_look_at_the_tracker(shop: Shop) -> None:
    refused = shop.project.genba("sync", GENBA_AGENT="liar", GENBA_RUN="a-run")
    assert refused.code == 5
    assert shop.hub.requests == []


def test_a_task_shows_its_issue_and_its_pull_request(shop: Shop) -> None:
    shop.agent()
    number = shop.issue()
    made = shop.project.run("iterator", "--issue", str(number))
    [pull] = shop.pulls()
    shop.hub.review(SHOP, pull.number, "APPROVED", by="rita")
    shop.hub.check(SHOP, made["verified"], "ci", "success")
    result = shop.project.genba("sync", check=0)
    assert f"· pull request #{pull.number}  of #{number}" in result.out
    seen = shop.project.genba("task", "show", str(number), check=0).out
    assert f"issue        {shop.hub.url}/{SHOP}/issues/{number}" in seen
    assert f"pull request #{pull.number} approved by rita, checks are green" in seen
    shown = shop.project.genba("task", "show", str(number), "--json", check=0).json
    assert [one["number"] for one in shown["pull_requests"]] == [pull.number]
