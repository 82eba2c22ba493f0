"""`genba run` on an issue of emulate, a stand-in for GitHub that others made: from its label to its merge."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.github.emulated import Emulate
from tests.github.places import Place, a_place
from tests.github.shops import ISSUES, SETTINGS
from tests.project import COMMIT, Project


@pytest.fixture
def place(emulate: Emulate, project: Project, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    """The project's issues are on emulate, and its work goes to the repository beside it."""
    with a_place(emulate, tmp_path_factory.mktemp("emulate")) as made:
        project.environment |= {"GENBA_GITHUB_TOKEN": emulate.tokens["octocat"], "GENBA_GITHUB_HOST": emulate.url}
        project.write(".genba/config.yaml", SETTINGS.format(shop=made.repository, url=emulate.url))
        project.git("remote", "add", "origin", str(made.git.path))
        yield made


def agent(project: Project, name: str, closure: str, **finalize: Any) -> None:
    project.agent(
        name,
        script={"turns": [{"do": [{"run": COMMIT}], "reply": "done"}], "repeat": True},
        parameters={"issue": {"type": "integer"}},
        integrations={"github": {**ISSUES, "defaultClosureAction": closure}},
        execution={"finalize": {"createPr": True, **finalize}},
        commit=False,
    )
    project.commit("Declare what works here")
    project.git("push", "-q", "--force", "origin", "main")


def labels(place: Place, number: int) -> set[str]:
    return {label["name"] for label in place.ask("GET", f"/issues/{number}")["labels"]}


def test_an_issue_is_worked_on_pushed_proposed_reviewed_merged_and_closed(place: Place, project: Project) -> None:
    agent(project, "iterator", "label-and-close", prMerge="approved", prReviewers=["reviewer"])
    number = place.add_issue("Add green tea", "ready", body="It is missing on the list.")
    result = project.run("iterator", "--issue", str(number))
    [pull] = place.ask("GET", "/pulls?state=open")
    assert result["pull_request"] == pull["html_url"]
    assert (pull["head"]["ref"], pull["head"]["sha"]) == (result["branch"], result["verified"])
    assert pull["body"].startswith(f"Closes #{number}\n")
    assert "| dod | tests\\_pass | passed |" in pull["body"]
    assert [user["login"] for user in pull["requested_reviewers"]] == ["reviewer"]
    assert labels(place, number) == {"ready", "in progress"}

    project.genba("sync", check=0)
    assert str(project.task(number).status) == "review"
    place.ask("POST", f"/pulls/{pull['number']}/reviews", {"event": "APPROVE", "body": "Good."}, by="reviewer")
    project.genba("sync", check=0)
    merged = place.ask("GET", f"/pulls/{pull['number']}")
    assert merged["merged"] is True
    place.git.pull()
    project.genba("sync", check=0)
    assert str(project.task(number).status) == "done"
    assert labels(place, number) == {"done"}
    assert place.ask("GET", f"/issues/{number}")["state"] == "closed", "emulate knows no closing words: Genba closed it"
    project.git("fetch", "-q", "origin")
    assert project.git("rev-parse", "origin/main") == merged["merge_commit_sha"]
    assert project.git("show", "origin/main:work.txt") == "work"


def test_with_labels_alone_the_issue_stays_open(place: Place, project: Project) -> None:
    agent(project, "middle", "label-only")
    number = place.add_issue("Add green tea", "ready")
    project.run("middle", "--issue", str(number))
    [pull] = place.ask("GET", "/pulls?state=open")
    assert pull["body"].startswith(f"Refs #{number}\n")
    place.ask("PUT", f"/pulls/{pull['number']}/merge", {}, by="octocat")
    place.git.pull()
    project.genba("sync", check=0)
    assert place.ask("GET", f"/issues/{number}")["state"] == "open"
    assert labels(place, number) == {"done"}


def test_no_token_is_left_in_the_project(place: Place, project: Project) -> None:
    agent(project, "iterator", "label-and-close")
    number = place.add_issue("Add green tea", "ready")
    project.run("iterator", "--issue", str(number))
    token = place.emulate.tokens["octocat"].encode()
    files = [path for path in Path(project.root).rglob("*") if path.is_file()]
    assert not [path for path in files if token in path.read_bytes()]
