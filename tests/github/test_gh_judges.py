"""GitHub's own command line against the GitHub of the tests: it takes it for the real one."""

import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.github import material
from tests.github.conftest import Hubs
from tests.standins.github.server import GitHub

SHOP = "acme/shop"
TOKENS = {"octocat": "gh_of_octocat", "rev": "gh_of_rev"}


@dataclass
class Gh:
    """gh of somebody who works on the shop, in a folder of its own, over the socket of a hub."""

    hub: GitHub
    home: Path

    def run(self, *words: str, by: str = "octocat") -> subprocess.CompletedProcess[str]:
        environment = {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": str(self.home),
            "GH_CONFIG_DIR": str(self.home),
            "GH_TOKEN": TOKENS.get(by, by),
            "GH_NO_UPDATE_NOTIFIER": "1",
            "GH_PROMPT_DISABLED": "1",
            "NO_COLOR": "1",
        }
        call = [str(material.gh()), *words]
        return subprocess.run(
            call, cwd=self.home, env=environment, capture_output=True, text=True, check=False, timeout=60
        )

    def __call__(self, *words: str, by: str = "octocat") -> str:
        done = self.run(*words, by=by)
        assert done.returncode == 0, f"gh {' '.join(words)}: {done.stdout}{done.stderr}"
        return done.stdout

    def shop(self, *words: str, by: str = "octocat") -> str:
        return self(*words, "-R", SHOP, by=by)

    def json(self, *words: str) -> Any:
        return json.loads(self(*words))


@pytest.fixture
def gh(hubs: Hubs, tmp_path: Path) -> Iterator[Gh]:
    hub = hubs()
    hub.add_organization("acme", admins=["octocat"], members=["rev"])
    for login, token in TOKENS.items():
        hub.add_token(token, login=login)
    hub.add_repository(SHOP)
    hub.add_issue(SHOP, title="The door is broken", body="It does not open.", labels=["bug"], author="octocat")
    hub.add_issue(SHOP, title="The lamp is dark", author="rev")
    home = tmp_path / "gh"
    home.mkdir()
    (home / "config.yml").write_text(f'version: "1"\nhttp_unix_socket: {hub.socket}\n')
    yield Gh(hub, home)
    assert all(one.status != 404 for one in hub.requests if one.path == "/graphql")


def test_gh_lists_and_shows_issues(gh: Gh) -> None:
    gh.hub.block(SHOP, 1, 2)

    listed = gh.shop("issue", "list")
    searched = gh.shop("issue", "list", "--search", "door label:bug")
    shown = gh.shop("issue", "view", "1")
    fields = "number,title,labels,state,author,blockedBy,parent,subIssues,projectItems,comments,body,url"
    read = json.loads(gh.shop("issue", "view", "1", "--json", fields))

    assert [line.split("\t")[:3] for line in listed.splitlines()] == [
        ["2", "OPEN", "The lamp is dark"],
        ["1", "OPEN", "The door is broken"],
    ]
    assert searched.count("\n") == 1
    assert "It does not open." in shown
    assert read["labels"][0]["name"] == "bug"
    assert read["blockedBy"]["nodes"][0]["number"] == 2
    assert read["url"] == "https://github.com/acme/shop/issues/1"


def test_gh_creates_comments_edits_and_closes_issues(gh: Gh) -> None:
    made = gh.shop("issue", "create", "--title", "A third", "--body", "Text", "--label", "bug", "--assignee", "rev")
    gh.shop("issue", "comment", "3", "--body", "I look at it.")
    gh.shop("issue", "edit", "3", "--add-label", "enhancement", "--remove-label", "bug", "--add-blocked-by", "2")
    gh.shop("issue", "edit", "1", "--add-sub-issue", "3")
    gh.shop("issue", "close", "3", "--reason", "not planned", "--comment", "Not now.")
    issue = gh.hub.issue(SHOP, 3)

    assert made.strip() == "https://github.com/acme/shop/issues/3"
    assert (issue.state, issue.state_reason) == ("closed", "not_planned")
    assert [output.body for output in issue.comments] == ["I look at it.", "Not now."]
    assert gh.hub.labels(SHOP, 3) == ["enhancement"]
    assert [one.number for one in issue.blocked_by] == [2]
    assert issue.parent is gh.hub.issue(SHOP, 1)
    assert [one.login for one in issue.assignees] == ["rev"]

    gh.shop("issue", "reopen", "3")
    assert gh.hub.issue(SHOP, 3).state == "open"


def test_gh_works_on_boards(gh: Gh) -> None:
    gh.hub.add_project("acme", "Work")
    gh.hub.set_card("acme", 1, SHOP, 1, "Todo")
    owned = ("--owner", "acme", "--format", "json")

    fields = {one["name"]: one for one in gh.json("project", "field-list", "1", *owned)["fields"]}
    before = gh.json("project", "item-list", "1", *owned)["items"]
    project = gh.json("project", "view", "1", *owned)["id"]
    status = fields["Status"]
    done = next(option["id"] for option in status["options"] if option["name"] == "Done")
    edit = ("project", "item-edit", "--id", before[0]["id"], "--project-id", project, "--field-id", status["id"])
    gh(*edit, "--single-select-option-id", done)
    after = gh.json("project", "item-list", "1", *owned)["items"]
    gh(*edit, "--clear")
    gh("project", "item-add", "1", "--owner", "acme", "--url", "https://github.com/acme/shop/issues/2")
    cleared = gh.json("project", "item-list", "1", *owned)["items"]

    assert [(one["content"]["number"], one["status"]) for one in before] == [(1, "Todo")]
    assert [(one["content"]["number"], one["status"]) for one in after] == [(1, "Done")]
    assert [(one["content"]["number"], one.get("status")) for one in cleared] == [(1, None), (2, None)]
    assert (
        "Could not resolve to a ProjectV2 with the number 7."
        in gh.run("project", "item-list", "7", "--owner", "acme").stderr
    )


def test_gh_takes_a_pull_request_from_its_beginning_to_its_end(gh: Gh) -> None:
    head = gh.hub.commit(SHOP, "feature", {"door.py": "OPEN = True\n"}, "Open the door")
    words = ("pr", "create", "--head", "feature", "--base", "main", "--title", "Open it", "--body", "Closes #1")

    made = gh.shop(*words, "--reviewer", "rev").strip()
    twice = gh.run(*words, "-R", SHOP)
    assert made == "https://github.com/acme/shop/pull/3"
    assert "already exists" in twice.stderr
    assert gh.shop("pr", "list").split("\t")[:3] == ["3", "Open it", "feature"]
    assert "rev (Requested)" in gh.shop("pr", "view", "3")

    gh.hub.check(SHOP, head, "build", "failure", title="It broke")
    gh.hub.status(SHOP, head, "lint")
    checks = gh.run("pr", "checks", "3", "-R", SHOP)
    assert [line.split("\t")[:2] for line in checks.stdout.splitlines()] == [["build", "fail"], ["lint", "pass"]]

    gh.shop("pr", "review", "3", "--request-changes", "--body", "Not yet.", by="rev")
    own = gh.run("pr", "review", "3", "--approve", "-R", SHOP)
    assert "Can not approve your own pull request" in own.stderr
    fields = "reviewDecision,mergeable,mergeStateStatus,statusCheckRollup,commits,files,closingIssuesReferences,reviews"
    read = json.loads(gh.shop("pr", "view", "3", "--json", fields))
    assert read["reviewDecision"] == "CHANGES_REQUESTED"
    assert read["closingIssuesReferences"][0]["number"] == 1
    assert read["commits"][0]["oid"] == head
    assert read["files"][0]["path"] == "door.py"

    gh.shop("pr", "review", "3", "--approve", by="rev")
    stale = gh.run("pr", "merge", "3", "--merge", "--match-head-commit", "0" * 40, "-R", SHOP)
    assert "Head branch was modified" in stale.stderr
    gh.shop("pr", "merge", "3", "--merge", "--match-head-commit", head, "--delete-branch")
    after = json.loads(gh.shop("pr", "view", "3", "--json", "state,mergedBy,mergeCommit"))
    assert (after["state"], after["mergedBy"]["login"]) == ("MERGED", "octocat")
    assert after["mergeCommit"]["oid"] == gh.hub.pull_request(SHOP, 3).merge_sha
    assert gh.hub.issue(SHOP, 1).state == "closed"
    assert "refs/heads/feature" not in gh.hub.repository(SHOP).refs


def test_gh_pages_through_rest_and_says_its_token(gh: Gh) -> None:
    gh.hub.add_issues(SHOP, 203)

    numbers = gh("api", "--paginate", f"repos/{SHOP}/issues?per_page=100", "--jq", ".[].number")

    assert sorted(int(one) for one in numbers.split()) == list(range(1, 206))
    assert gh("auth", "token").strip() == TOKENS["octocat"]
    assert gh("api", "user", "--jq", ".login").strip() == "octocat"


def test_gh_hears_no_as_github_says_it(gh: Gh) -> None:
    nowhere = gh.run("issue", "view", "99", "-R", SHOP)
    nobody = gh.run("issue", "view", "1", "-R", SHOP, by="a token that nobody has")
    no_repository = gh.run("issue", "list", "-R", "acme/nothing")

    assert "Could not resolve to an issue or pull request with the number of 99." in nowhere.stderr
    assert "HTTP 401: Bad credentials" in nobody.stderr
    assert "Could not resolve to a Repository with the name 'acme/nothing'." in no_repository.stderr
