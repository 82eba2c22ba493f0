"""`genba work` on issues of GitHub: synced, worked on, proposed, reworked, merged."""

import os
import signal
import subprocess

import pytest

from tests.github.shops import SHOP, Shop, settled
from tests.project import GENBA, Project, ordinary_environment, until
from tests.standins.github.server import GitHub


@pytest.fixture
def shop(project: Project, hub: GitHub) -> Shop:
    return settled(project, hub)


def started(shop: Shop, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [str(GENBA), "work", *words],
        cwd=shop.project.root,
        env={**ordinary_environment(), **shop.project.environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def stopped(running: subprocess.Popen[str]) -> str:
    running.send_signal(signal.SIGINT)
    out, _ = running.communicate(timeout=60)
    return out


def test_a_fleet_brings_two_issues_home_and_reworks_one(shop: Shop) -> None:
    file = "f=$(printf 'tea-%s.txt' $GENBA_ISSUE); echo work >> $f; touch work.txt"
    shop.agent(do=f"{file}; git add -A && git commit -qm work", prMerge="approved")
    first, second = shop.issue("Add green tea"), shop.issue("Add black tea")
    running = started(shop, "--workers", "2")
    try:
        until(lambda: len(shop.pulls()) == 2, 60)
        pulls = {pull.title: pull for pull in shop.pulls()}
        green, black = pulls["Add green tea"], pulls["Add black tea"]
        before = green.head_sha
        shop.hub.review(SHOP, green.number, "CHANGES_REQUESTED", "Say which tea.", by="rita")
        shop.hub.review(SHOP, black.number, "APPROVED", by="rita")
        until(lambda: black.merged, 60)
        until(lambda: green.head_sha != before and green.head_sha in green.body, 60)
        shop.hub.review(SHOP, green.number, "APPROVED", by="rita")
        until(lambda: green.merged, 60)
        until(lambda: {shop.status(first), shop.status(second)} == {"done"}, 60)
        until(lambda: shop.labels(first) == shop.labels(second) == {"done"}, 60)
        until(lambda: shop.project.git("rev-parse", "main") == shop.tip("main"), 60)
    finally:
        output = stopped(running)
    assert len(shop.pulls()) == 2
    assert {shop.hub.issue(SHOP, number).state for number in (first, second)} == {"closed"}
    prompts = [text for text in shop.project.prompts(shop.run_of(first)) if "Say which tea." in text]
    assert prompts
    assert f"pull request #{green.number}" in output


def test_a_fleet_that_works_until_nothing_is_left_sends_all_and_waits_for_no_people(shop: Shop) -> None:
    shop.agent()
    number = shop.issue()
    done = shop.project.genba("work", "--until-empty", "--workers", "1", check=1)
    assert "1 of them for a person" in done.out
    [pull] = shop.pulls()
    assert f"for pull request: {shop.hub.url}/{SHOP}/pull/{pull.number} is open" in done.err
    assert f"/pull/{pull.number} is open" in done.out
    assert (shop.status(number), shop.labels(number)) == ("review", {"ready", "in progress"})
    assert shop.project.genba("outbox", "list", "--json", check=0).json["entries"] == []
    shop.hub.merge(SHOP, pull.number, by="rita")
    shop.project.genba("work", "--until-empty", check=0)
    assert (shop.status(number), shop.labels(number)) == ("done", {"done"})


def test_a_fleet_that_merges_what_is_green_ends_with_it(shop: Shop) -> None:
    shop.agent(prMerge="green")
    number = shop.issue()
    shop.project.genba("work", "--until-empty", "--workers", "1", check=0)
    assert (shop.pulls()[0].merged, shop.status(number)) == (True, "done")


def test_a_fleet_that_is_killed_goes_on_with_its_pull_requests(shop: Shop) -> None:
    shop.agent()
    number = shop.issue()
    running = started(shop, "--workers", "1")
    try:
        until(lambda: shop.pulls() and shop.status(number) == "review", 60)
    finally:
        os.killpg(running.pid, signal.SIGKILL)
        running.communicate()
    [pull] = shop.pulls()
    shop.hub.review(SHOP, pull.number, "CHANGES_REQUESTED", "Say which tea.", by="rita")
    before = pull.head_sha
    done = shop.project.genba("work", "--until-empty", "--workers", "1", check=1)
    assert pull.head_sha != before, done.err
    assert [one.number for one in shop.pulls()] == [pull.number]
    assert shop.status(number) == "review"


def test_an_issue_that_is_closed_there_ends_the_session_here(shop: Shop) -> None:
    gate = shop.project.root.parent / "gate"
    shop.agent(do=f"touch {gate}.waits; while ! test -e {gate}; do sleep 0.02; done")
    number = shop.issue()
    running = started(shop, "--workers", "1")
    try:
        until(lambda: gate.with_name("gate.waits").exists(), 60)
        shop.hub.close(SHOP, number, "not_planned", by="rita")
        until(lambda: shop.status(number) == "cancelled", 60)
    finally:
        gate.touch()
        stopped(running)
    assert shop.pulls() == []
