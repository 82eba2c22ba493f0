"""`genba run` on an issue of emulate, a GitHub that others made: the same story, by REST alone."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.github.emulated import Emulate
from tests.github.places import Place, a_place
from tests.github.shops import ISSUES, SETTINGS
from tests.project import COMMIT, Project


@pytest.fixture
def place(emulate: Emulate, tmp_path: Path) -> Iterator[Place]:
    with a_place(emulate, tmp_path) as made:
        yield made


@pytest.fixture
def project(place: Place, tmp_path: Path) -> Project:
    """The clone of it, with an agent that proposes what it did."""
    token = place.emulate.tokens["octocat"]
    given = {"GENBA_GITHUB_TOKEN": token, "GENBA_GITHUB_HOST": place.emulate.url}
    made = Project(place.folder, {"HOME": str(tmp_path), "GIT_CONFIG_NOSYSTEM": "1", **given})
    made.git("config", "user.name", "Test User")
    made.git("config", "user.email", "user@localhost")
    made.write(".genba/config.yaml", SETTINGS.format(shop=place.repository, url=place.emulate.url))
    for name, closure in (("iterator", "label-and-close"), ("middle", "label-only")):
        made.agent(
            name,
            script={"turns": [{"do": [{"run": COMMIT}], "reply": "done"}], "repeat": True},
            parameters={"issue": {"type": "integer"}},
            integrations={"github": {**ISSUES, "defaultClosureAction": closure}},
            execution={"finalize": {"createPr": True, "prMerge": "approved"}},
        )
    made.git("push", "-q", "origin", "main")
    return made


def labels(place: Place, number: int) -> set[str]:
    return {label["name"] for label in place.ask("GET", f"/issues/{number}")["labels"]}


def test_an_issue_is_worked_on_proposed_reviewed_merged_and_closed(place: Place, project: Project) -> None:
    number = place.add_issue("Add green tea", "ready")
    result = project.run("iterator", "--issue", str(number))
    assert labels(place, number) == {"ready", "in progress"}
    pull = int(result["pull_request"].rpartition("/")[2])
    there = place.ask("GET", f"/pulls/{pull}")
    assert there["head"]["sha"] == result["verified"]
    assert there["body"].startswith(f"Closes #{number}\n")
    assert "| dod | tests\\_pass | passed |" in there["body"]
    place.ask("POST", f"/pulls/{pull}/reviews", {"event": "APPROVE", "body": "Good."}, by="reviewer")
    for _ in range(2):
        project.genba("sync", check=0)
    assert place.ask("GET", f"/pulls/{pull}")["merged"]
    assert str(project.task(number).status) == "done"
    assert labels(place, number) == {"done"}
    assert place.ask("GET", f"/issues/{number}")["state"] == "closed"


def test_with_labels_alone_the_issue_stays_open(place: Place, project: Project) -> None:
    number = place.add_issue("Add green tea", "ready")
    result = project.run("middle", "--issue", str(number))
    pull = int(result["pull_request"].rpartition("/")[2])
    assert place.ask("GET", f"/pulls/{pull}")["body"].startswith(f"Refs #{number}\n")
    assert labels(place, number) == {"done"}
    assert place.ask("GET", f"/issues/{number}")["state"] == "open"
    assert str(project.task(number).status) == "open"
