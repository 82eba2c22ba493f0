"""A project joins its issues on GitHub: `genba init --github`, and what `genba doctor` says of it."""

import pytest

from tests.github.shops import SHOP, TOKEN
from tests.project import Project
from tests.standins.github.server import GitHub


@pytest.fixture
def joined(project: Project, hub: GitHub) -> Project:
    hub.add_token(TOKEN, "octocat")
    hub.add_repository(SHOP, collaborators={"octocat": "write"})
    hub.add_issue(SHOP, title="One")
    hub.add_issue(SHOP, title="Two")
    project.write(".genba/config.yaml", f"tracker: {{github: {{repository: {SHOP}, url: {hub.url}}}}}\n")
    project.environment |= {"GENBA_GITHUB_TOKEN": TOKEN, "GENBA_GITHUB_HOST": hub.url}
    return project


def github(project: Project, token: str = TOKEN) -> dict[str, str]:
    found = project.genba("doctor", "--json", GENBA_GITHUB_TOKEN=token).json["findings"]
    [row] = [each for each in found if each["name"] == "github"]
    return dict(row)


def test_who_is_let_in_sees_how_much_there_is(joined: Project) -> None:
    row = github(joined)
    assert row["health"] == "fine"
    assert row["detail"] == "acme/shop: 2 open issues and pull requests, by GENBA_GITHUB_TOKEN"


def test_a_token_that_is_not_good_is_reported_and_not_shown(joined: Project) -> None:
    row = github(joined, "ghp_notagoodtokennotagoodtoken00")
    assert row["health"] == "missing"
    assert "notagood" not in str(row)


def test_a_repository_that_is_not_there_is_reported(joined: Project, hub: GitHub) -> None:
    joined.write(".genba/config.yaml", f"tracker: {{github: {{repository: acme/nothing, url: {hub.url}}}}}\n")
    assert "acme/nothing" in github(joined)["detail"]


def test_a_token_that_may_only_read_is_reported(joined: Project, hub: GitHub) -> None:
    hub.add_token("ghp_readsreadsreadsreads00", "reader")
    row = github(joined, "ghp_readsreadsreadsreads00")
    assert row["health"] == "missing"
    assert row["detail"] == "acme/shop: GENBA_GITHUB_TOKEN may only read: no work can be pushed"


def test_joining_what_is_not_there_says_so_in_one_sentence(joined: Project, hub: GitHub) -> None:
    joined.write(".genba/config.yaml", "")
    done = joined.genba("init", "--github", f"{hub.url}/acme/nothing", check=0)
    assert (
        "warning: acme/nothing cannot be worked on yet: GitHub has no repository acme/nothing, "
        "or does not show it to this token\nhint: check tracker.github.repository" in done.err
    )


def test_who_is_not_there_does_not_keep_anybody_from_working(joined: Project) -> None:
    joined.write(".genba/config.yaml", f"tracker: {{github: {{repository: {SHOP}, url: 'http://127.0.0.1:9'}}}}\n")
    row = github(joined)
    assert row["health"] == "missing"
    assert joined.genba("doctor", "--json").json["can_run"]
