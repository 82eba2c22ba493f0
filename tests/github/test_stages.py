"""Agents that work on an issue of GitHub one after the other: labels and the close go through the outbox."""

from typing import Any

import pytest
import yaml

from tests.github.shops import SHOP, Shop, settled
from tests.project import Project
from tests.standins.github.server import GitHub


@pytest.fixture
def shop(project: Project, hub: GitHub) -> Shop:
    return settled(project, hub)


def pipeline(shop: Shop, *stages: str, **finalize: Any) -> None:
    """Issues with the label `manual` go through these stages."""
    settings = yaml.safe_load(shop.project.read(".genba/config.yaml"))
    settings["tracker"]["github"]["types"] = {"manual": "manual"}
    settings |= {"task_types": {"manual": {"stages": list(stages)}}, "dod": []}
    shop.project.write(".genba/config.yaml", yaml.safe_dump(settings))
    for name in stages:
        if name != "facilitator":
            do = f"echo {name} > {name}.txt && git add -A && git commit -qm {name}"
            shop.agent(name, do=do, closure="label-only", **finalize)


def issue(shop: Shop) -> int:
    return shop.hub.add_issue(SHOP, title="Write the manual", labels=["ready", "manual"])


def phases(shop: Shop, number: int) -> list[str]:
    return [phase.agent for phase in shop.project.task(number).phases]


def test_a_fleet_labels_an_issue_at_its_stages_and_genba_closes_it_after_the_facilitator(shop: Shop) -> None:
    pipeline(shop, "analyst", "writer", "facilitator", createPr=False, push=True)
    number = issue(shop)

    shop.project.genba("work", "--until-empty", "--workers", "1", check=0)

    assert phases(shop, number) == ["analyst", "writer"]
    assert (shop.status(number), shop.labels(number)) == ("done", {"done", "manual"})
    assert shop.hub.issue(SHOP, number).state == "closed"
    there = shop.project.git("--git-dir", str(shop.hub.git_dir(SHOP)), "ls-tree", "--name-only", "main").splitlines()
    assert {"analyst.txt", "writer.txt"} <= set(there)
    entries = shop.project.genba("outbox", "list", "--all", "--json", check=0).json["entries"]
    assert len([one for one in entries if one["change"]["kind"] == "close"]) == 1


def test_the_next_stage_begins_when_the_pull_request_of_the_one_before_is_merged(shop: Shop) -> None:
    pipeline(shop, "analyst", "writer")
    shop.agent("writer", do="test -e analyst.txt && echo w > writer.txt && git add -A && git commit -qm writer")
    number = issue(shop)

    shop.project.genba("work", "--until-empty", "--workers", "1", check=1)
    [first] = shop.pulls()
    assert first.body.startswith(f"Refs #{number}\n")
    assert (shop.status(number), phases(shop, number)) == ("review", [])
    shop.hub.merge(SHOP, first.number, by="rita")
    shop.project.genba("work", "--until-empty", "--workers", "1", check=1)
    assert (shop.status(number), phases(shop, number)) == ("review", ["analyst"])
    assert "done" in shop.labels(number)
    assert shop.hub.issue(SHOP, number).state == "open"
    _, second = shop.pulls()
    assert second.body.startswith(f"Closes #{number}\n")
    shop.hub.merge(SHOP, second.number, by="rita")
    shop.project.genba("work", "--until-empty", "--workers", "1", check=0)

    assert (shop.status(number), phases(shop, number)) == ("done", ["analyst"])
    assert shop.hub.issue(SHOP, number).state == "closed"


def test_without_stages_label_only_labels_the_issue_and_no_agent_takes_it_again(shop: Shop) -> None:
    shop.agent(closure="label-only", createPr=False, push=True)
    number = shop.issue()

    shop.project.genba("work", "--until-empty", "--workers", "1", check=1)
    run = shop.run_of(number)
    shop.project.genba("work", "--until-empty", "--workers", "1", check=1)

    assert (shop.status(number), shop.labels(number)) == ("open", {"done"})
    assert shop.hub.issue(SHOP, number).state == "open"
    assert shop.run_of(number) == run
