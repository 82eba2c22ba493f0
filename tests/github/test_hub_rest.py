"""The GitHub of the tests, its REST door: judged by githubkit's models, and by GitHub's OpenAPI."""

import base64
import contextlib
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest

from tests.github.conftest import Hubs
from tests.standins.github.server import GitHub

SHOP = "/repos/acme/shop"


@pytest.fixture
def hub(hubs: Hubs) -> GitHub:
    made = hubs()
    made.add_token("tok", login="octocat")
    made.add_token("rev", login="reviewer")
    made.add_repository("acme/shop")
    return made


Clients = Callable[[str], httpx.Client]


@pytest.fixture
def clients(hub: GitHub) -> Iterator[Clients]:
    """Clients by their tokens."""
    with contextlib.ExitStack() as stack:

        def client(token: str) -> httpx.Client:
            headers = {"authorization": f"Bearer {token}"} if token else {}
            return stack.enter_context(httpx.Client(base_url=hub.url, headers=headers, timeout=20))

        yield client


@pytest.fixture
def api(clients: Clients) -> httpx.Client:
    return clients("tok")


def parse(name: str, data: Any) -> Any:
    """By the model that githubkit made of GitHub's OpenAPI."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        from githubkit_schemas.v2026_03_10 import models

        return getattr(models, name).model_validate(data)


def a_pull_request(hub: GitHub, api: httpx.Client, *, body: str = "", branch: str = "work") -> int:
    hub.commit("acme/shop", branch, {f"{branch}.txt": "one\n"}, f"Add {branch}")
    made = api.post(f"{SHOP}/pulls", json={"title": "Work", "head": branch, "base": "main", "body": body})
    assert made.status_code == 201, made.text
    parse("PullRequest", made.json())
    return int(made.json()["number"])


# issues


def test_an_issue_is_created_read_changed_and_closed(hub: GitHub, api: httpx.Client) -> None:
    made = api.post(f"{SHOP}/issues", json={"title": "Broken", "body": "It is", "labels": ["bug", "new one"]})
    assert made.status_code == 201
    issue = parse("Issue", made.json())
    assert (issue.number, issue.state, issue.user.login) == (1, "open", "octocat")
    closed = api.patch(f"{SHOP}/issues/1", json={"state": "closed", "state_reason": "not_planned"})
    assert (closed.json()["state"], closed.json()["state_reason"]) == ("closed", "not_planned")
    assert closed.json()["closed_by"]["login"] == "octocat"
    opened = api.patch(f"{SHOP}/issues/1", json={"state": "open", "title": "Broken again"})
    assert (opened.json()["state_reason"], opened.json()["title"]) == ("reopened", "Broken again")
    assert hub.issue("acme/shop", 1).title == "Broken again"


def test_what_is_wrong_with_an_issue_is_refused_by_422(api: httpx.Client) -> None:
    assert api.post(f"{SHOP}/issues", json={"title": ""}).status_code == 422
    api.post(f"{SHOP}/issues", json={"title": "One"})
    assert api.patch(f"{SHOP}/issues/1", json={"state": "shut"}).status_code == 422
    assert api.patch(f"{SHOP}/issues/9", json={"state": "closed"}).status_code == 404


def test_the_list_has_pull_requests_too_and_filters_sorts_and_pages(hub: GitHub, api: httpx.Client) -> None:
    hub.add_issues("acme/shop", 5, labels=["ready"])
    a_pull_request(hub, api)
    hub.close("acme/shop", 2)
    hub.unlabel("acme/shop", 3, "ready")
    rows = api.get(f"{SHOP}/issues", params={"state": "all", "direction": "asc"}).json()
    assert [row["number"] for row in rows] == [1, 2, 3, 4, 5, 6]
    assert ["pull_request" in row for row in rows] == [False] * 5 + [True]
    for row in rows:
        parse("Issue", row)
    ready = api.get(f"{SHOP}/issues", params={"labels": "READY", "direction": "asc"}).json()
    assert [row["number"] for row in ready] == [1, 4, 5]
    page = api.get(f"{SHOP}/issues", params={"per_page": 2, "page": 2, "state": "all", "direction": "asc"})
    assert [row["number"] for row in page.json()] == [3, 4]
    assert {name: httpx.URL(link["url"]).params["page"] for name, link in page.links.items() if name} == {
        "prev": "1",
        "next": "3",
        "last": "3",
        "first": "1",
    }
    assert "next" not in api.get(page.links["last"]["url"]).links


def test_since_and_updated_ask_for_what_changed(hub: GitHub, api: httpx.Client) -> None:
    hub.add_issues("acme/shop", 3, spread=3600)
    hub.advance(60)
    now = hub.state.now()
    hub.comment("acme/shop", 1, "Look again")
    rows = api.get(f"{SHOP}/issues", params={"since": now, "sort": "updated", "direction": "asc"}).json()
    assert [row["number"] for row in rows] == [1]
    hub.advance(1)
    hub.label("acme/shop", 3, "bug")
    rows = api.get(f"{SHOP}/issues", params={"since": now, "sort": "updated", "direction": "asc"}).json()
    assert [row["number"] for row in rows] == [1, 3]


def test_an_etag_gives_304_until_something_changes_and_costs_nothing(
    hub: GitHub, clients: Clients, api: httpx.Client
) -> None:
    hub.add_issue("acme/shop", title="One")
    first = api.get(f"{SHOP}/issues")
    tag = {"if-none-match": first.headers["etag"]}
    again = api.get(f"{SHOP}/issues", headers=tag)
    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["x-ratelimit-used"] == first.headers["x-ratelimit-used"] == "1"
    other = clients("rev").get(f"{SHOP}/issues", headers=tag)
    assert other.status_code == 200, "the tags of two tokens differ"
    hub.comment("acme/shop", 1, "Changed")
    assert api.get(f"{SHOP}/issues", headers=tag).status_code == 200


def test_a_deleted_issue_is_410_and_a_transferred_one_301(hub: GitHub, api: httpx.Client) -> None:
    hub.add_repository("acme/other")
    hub.add_issue("acme/shop", title="Gone")
    hub.add_issue("acme/shop", title="Moves")
    hub.comment("acme/shop", 2, "with its words")
    hub.delete("acme/shop", 1)
    assert hub.transfer("acme/shop", 2, "acme/other") == 1
    assert api.get(f"{SHOP}/issues/1").status_code == 410
    moved = api.get(f"{SHOP}/issues/2")
    assert moved.status_code == 301
    there = api.get(moved.headers["location"])
    assert (there.json()["title"], there.json()["comments"]) == ("Moves", 1)
    assert api.get(f"{SHOP}/issues", params={"state": "all"}).json() == []


def test_a_renamed_repository_leads_to_its_new_name(hub: GitHub, api: httpx.Client) -> None:
    hub.add_issue("acme/shop", title="One")
    hub.rename_repository("acme/shop", "store")
    moved = api.get(f"{SHOP}/issues", params={"state": "all"})
    assert moved.status_code == 301
    assert [row["title"] for row in api.get(moved.headers["location"]).json()] == ["One"]
    assert api.get("/repos/acme/store").json()["full_name"] == "acme/store"


def test_comments_are_written_edited_and_deleted(hub: GitHub, api: httpx.Client) -> None:
    hub.add_issue("acme/shop", title="One")
    output = api.post(f"{SHOP}/issues/1/comments", json={"body": "First"})
    assert output.status_code == 201
    parse("IssueComment", output.json())
    place = f"{SHOP}/issues/comments/{output.json()['id']}"
    assert api.patch(place, json={"body": "Second"}).json()["body"] == "Second"
    assert [one["body"] for one in api.get(f"{SHOP}/issues/1/comments").json()] == ["Second"]
    assert api.get(f"{SHOP}/issues/1").json()["comments"] == 1
    assert api.delete(place).status_code == 204
    assert api.get(place).status_code == 404
    assert api.post(f"{SHOP}/issues/1/comments", json={"body": " "}).status_code == 422


def test_labels_are_added_set_and_removed(hub: GitHub, api: httpx.Client) -> None:
    hub.add_issue("acme/shop", title="One", labels=["bug"])
    added = api.post(f"{SHOP}/issues/1/labels", json={"labels": ["in progress", "bug"]})
    assert [label["name"] for label in added.json()] == ["bug", "in progress"]
    parse("Label", added.json()[1])
    assert api.delete(f"{SHOP}/issues/1/labels/in%20progress").status_code == 200
    assert api.delete(f"{SHOP}/issues/1/labels/in%20progress").status_code == 404
    api.put(f"{SHOP}/issues/1/labels", json={"labels": ["done"]})
    assert hub.labels("acme/shop", 1) == ["done"]
    assert api.post(f"{SHOP}/labels", json={"name": "Done"}).status_code == 422
    assert api.post(f"{SHOP}/labels", json={"name": "area/core", "color": "ff0000"}).status_code == 201
    assert api.get(f"{SHOP}/labels/area%2Fcore").json()["color"] == "ff0000"
    assert {label["name"] for label in api.get(f"{SHOP}/labels").json()} >= {"done", "area/core", "in progress"}


def test_dependencies_sub_issues_and_parents_are_told_from_both_sides(hub: GitHub, api: httpx.Client) -> None:
    for title in ("Build", "Foundation", "Roof"):
        hub.add_issue("acme/shop", title=title)
    ids = [hub.issue("acme/shop", number).id for number in (1, 2, 3)]
    blocked = api.post(f"{SHOP}/issues/1/dependencies/blocked_by", json={"issue_id": ids[1]})
    assert (blocked.status_code, blocked.json()["number"]) == (201, 2)
    assert api.post(f"{SHOP}/issues/1/dependencies/blocked_by", json={"issue_id": ids[1]}).status_code == 422
    assert [row["number"] for row in api.get(f"{SHOP}/issues/1/dependencies/blocked_by").json()] == [2]
    assert [row["number"] for row in api.get(f"{SHOP}/issues/2/dependencies/blocking").json()] == [1]
    assert api.post(f"{SHOP}/issues/1/sub_issues", json={"sub_issue_id": ids[2]}).status_code == 201
    assert api.post(f"{SHOP}/issues/3/sub_issues", json={"sub_issue_id": ids[0]}).status_code == 422
    assert [row["number"] for row in api.get(f"{SHOP}/issues/1/sub_issues").json()] == [3]
    assert api.get(f"{SHOP}/issues/3/parent").json()["number"] == 1
    hub.close("acme/shop", 3)
    issue = api.get(f"{SHOP}/issues/1").json()
    assert issue["sub_issues_summary"] == {"total": 1, "completed": 1, "percent_completed": 100}
    assert issue["issue_dependencies_summary"]["blocked_by"] == 1
    assert api.delete(f"{SHOP}/issues/1/dependencies/blocked_by/{ids[1]}").status_code == 200
    assert api.request("DELETE", f"{SHOP}/issues/1/sub_issue", json={"sub_issue_id": ids[2]}).status_code == 200
    assert api.get(f"{SHOP}/issues/3/parent").status_code == 404


def test_the_timeline_tells_what_happened_in_order(hub: GitHub, api: httpx.Client) -> None:
    hub.add_issue("acme/shop", title="One")
    hub.label("acme/shop", 1, "bug")
    hub.comment("acme/shop", 1, "Hello")
    a_pull_request(hub, api, body="Closes #1")
    hub.close("acme/shop", 1)
    rows = api.get(f"{SHOP}/issues/1/timeline").json()
    assert [row["event"] for row in rows] == ["labeled", "commented", "cross-referenced", "closed"]
    assert rows[2]["source"]["issue"]["number"] == 2
    assert [row["event"] for row in api.get(f"{SHOP}/issues/1/events").json()] == ["labeled", "closed"]


# pull requests


def test_a_pull_request_is_opened_once_and_not_without_commits(hub: GitHub, api: httpx.Client) -> None:
    number = a_pull_request(hub, api)
    again = api.post(f"{SHOP}/pulls", json={"title": "Work", "head": "work", "base": "main"})
    assert again.status_code == 422
    assert again.json()["errors"][0]["message"] == "A pull request already exists for acme:work."
    hub.state.repository("acme/shop").git.set_ref(
        "refs/heads/same", hub.repository("acme/shop").refs["refs/heads/main"]
    )
    empty = api.post(f"{SHOP}/pulls", json={"title": "Same", "head": "same", "base": "main"})
    assert (empty.status_code, empty.json()["errors"][0]["message"]) == (422, "No commits between main and same")
    assert api.post(f"{SHOP}/pulls", json={"title": "X", "head": "nowhere", "base": "main"}).status_code == 422
    found = api.get(f"{SHOP}/pulls", params={"head": "acme:work", "state": "open"}).json()
    assert [row["number"] for row in found] == [number]
    parse("PullRequestSimple", found[0])
    assert api.get(f"{SHOP}/pulls", params={"head": "acme:other"}).json() == []


def test_whether_it_can_be_merged_is_known_at_the_second_look(hub: GitHub, api: httpx.Client) -> None:
    number = a_pull_request(hub, api)
    hub.commit("acme/shop", "main", {"other.txt": "x"})
    first = api.get(f"{SHOP}/pulls/{number}").json()
    assert (first["mergeable"], first["mergeable_state"]) == (None, "unknown")
    second = api.get(f"{SHOP}/pulls/{number}").json()
    assert (second["mergeable"], second["mergeable_state"]) == (True, "clean")
    assert (second["commits"], second["changed_files"], second["additions"]) == (1, 1, 1)
    hub.commit("acme/shop", "main", {"work.txt": "theirs\n"})
    api.get(f"{SHOP}/pulls/{number}")
    third = api.get(f"{SHOP}/pulls/{number}").json()
    assert (third["mergeable"], third["mergeable_state"]) == (False, "dirty")
    refused = api.put(f"{SHOP}/pulls/{number}/merge", json={})
    assert (refused.status_code, refused.json()["message"]) == (405, "Pull Request is not mergeable")


@pytest.mark.parametrize(("method", "parents"), [("merge", 2), ("squash", 1), ("rebase", 1)])
def test_a_merge_is_made_in_the_repository_and_closes_what_it_says(
    hub: GitHub, api: httpx.Client, method: str, parents: int
) -> None:
    hub.add_issue("acme/shop", title="Do it")
    number = a_pull_request(hub, api, body="This fixes #1.")
    hub.commit("acme/shop", "main", {"meanwhile.txt": "x"})
    head = hub.pull_request("acme/shop", number).head_sha
    wrong = api.put(f"{SHOP}/pulls/{number}/merge", json={"sha": "0" * 40})
    assert wrong.status_code == 409
    done = api.put(f"{SHOP}/pulls/{number}/merge", json={"sha": head, "merge_method": method})
    assert done.status_code == 200, done.text
    git = hub.repository("acme/shop").git
    facts = git.facts(done.json()["sha"])
    assert git.refs()["refs/heads/main"] == facts.sha
    assert len(facts.parents) == parents
    assert git.show(facts.sha, "work.txt") == "one\n"
    assert git.show(facts.sha, "meanwhile.txt") == "x"
    pull = api.get(f"{SHOP}/pulls/{number}").json()
    assert (pull["merged"], pull["state"], pull["merge_commit_sha"]) == (True, "closed", facts.sha)
    assert pull["merged_by"]["login"] == "octocat"
    issue = api.get(f"{SHOP}/issues/1").json()
    assert (issue["state"], issue["state_reason"]) == ("closed", "completed")
    assert api.get(f"{SHOP}/pulls/{number}/merge").status_code == 204
    assert api.put(f"{SHOP}/pulls/{number}/merge", json={}).status_code == 405
    found = api.get(f"{SHOP}/commits/{facts.sha}/pulls").json()
    assert [row["number"] for row in found] == [number]


def test_refs_alone_close_nothing(hub: GitHub, api: httpx.Client) -> None:
    hub.add_issue("acme/shop", title="Do it")
    number = a_pull_request(hub, api, body="Refs #1")
    hub.merge("acme/shop", number, by="octocat")
    assert hub.issue("acme/shop", 1).state == "open"


def test_a_draft_is_not_merged(hub: GitHub, api: httpx.Client) -> None:
    hub.commit("acme/shop", "work", {"work.txt": "one\n"})
    made = api.post(f"{SHOP}/pulls", json={"title": "W", "head": "work", "base": "main", "draft": True})
    place = f"{SHOP}/pulls/{made.json()['number']}"
    assert api.get(place).json()["mergeable_state"] == "draft"
    assert api.put(f"{place}/merge", json={}).status_code == 405


def test_reviews_are_asked_for_given_and_judged(hub: GitHub, clients: Clients, api: httpx.Client) -> None:
    number = a_pull_request(hub, api)
    place = f"{SHOP}/pulls/{number}"
    own = api.post(f"{place}/reviews", json={"event": "APPROVE"})
    assert (own.status_code, own.json()["errors"]) == (422, ["Can not approve your own pull request"])
    assert api.post(f"{place}/requested_reviewers", json={"reviewers": ["octocat"]}).status_code == 422
    hub.add_user("stranger")
    assert api.post(f"{place}/requested_reviewers", json={"reviewers": ["stranger"]}).status_code == 422
    asked = api.post(f"{place}/requested_reviewers", json={"reviewers": ["reviewer"]})
    assert asked.status_code == 201
    assert [user["login"] for user in asked.json()["requested_reviewers"]] == ["reviewer"]
    other = clients("rev")
    remark = {"path": "work.txt", "line": 1, "body": "Two, please"}
    made = other.post(f"{place}/reviews", json={"event": "REQUEST_CHANGES", "body": "Not yet", "comments": [remark]})
    assert made.status_code == 200, made.text
    review = parse("PullRequestReview", made.json())
    assert (review.state, review.commit_id) == ("CHANGES_REQUESTED", hub.pull_request("acme/shop", number).head_sha)
    assert api.get(place).json()["requested_reviewers"] == []
    lines = api.get(f"{place}/comments").json()
    assert [(one["path"], one["line"], one["body"]) for one in lines] == [("work.txt", 1, "Two, please")]
    parse("PullRequestReviewComment", lines[0])
    assert len(api.get(f"{place}/reviews/{review.id}/comments").json()) == 1
    assert other.post(f"{place}/reviews", json={"event": "REQUEST_CHANGES"}).status_code == 422
    dismissed = api.put(f"{place}/reviews/{review.id}/dismissals", json={"message": "done"})
    assert dismissed.json()["state"] == "DISMISSED"


def test_a_protected_branch_takes_only_what_was_approved_and_checked(hub: GitHub, api: httpx.Client) -> None:
    hub.protect("acme/shop", approvals=1, checks=["tests"])
    number = a_pull_request(hub, api)
    head = hub.pull_request("acme/shop", number).head_sha
    place = f"{SHOP}/pulls/{number}"
    assert api.put(f"{place}/merge", json={"sha": head}).status_code == 405
    hub.review("acme/shop", number, by="reviewer")
    hub.check("acme/shop", head, "tests", None)
    refused = api.put(f"{place}/merge", json={"sha": head})
    assert (refused.status_code, refused.json()["message"]) == (405, 'Required status check "tests" is expected.')
    api.get(place)
    assert api.get(place).json()["mergeable_state"] == "blocked"
    hub.check("acme/shop", head, "tests", "failure", title="1 failed")
    assert "is failing" in api.put(f"{place}/merge", json={"sha": head}).json()["message"]
    hub.check("acme/shop", head, "tests", "success")
    assert api.put(f"{place}/merge", json={"sha": head}).status_code == 200
    assert api.get(f"{SHOP}/branches/main").json()["protected"] is True


def test_checks_and_statuses_are_those_of_a_commit(hub: GitHub, api: httpx.Client) -> None:
    sha = hub.commit("acme/shop", "work", {"work.txt": "one\n"})
    hub.check("acme/shop", sha, "lint", "failure", title="E501", summary="a line is long")
    hub.check("acme/shop", sha, "tests", "success")
    hub.status("acme/shop", sha, "ci/old", "pending")
    runs = api.get(f"{SHOP}/commits/{sha}/check-runs").json()
    assert runs["total_count"] == 2
    assert {run["name"]: run["conclusion"] for run in runs["check_runs"]} == {"lint": "failure", "tests": "success"}
    for run in runs["check_runs"]:
        parse("CheckRun", run)
    combined = api.get(f"{SHOP}/commits/work/status").json()
    parse("CombinedCommitStatus", combined)
    assert (combined["state"], combined["sha"]) == ("pending", sha)
    made = api.post(f"{SHOP}/statuses/{sha}", json={"state": "success", "context": "ci/old"})
    assert made.status_code == 201
    assert api.get(f"{SHOP}/commits/{sha}/status").json()["state"] == "success"
    assert len(api.get(f"{SHOP}/commits/{sha}/statuses").json()) == 2


def test_refs_commits_and_comparisons_are_those_of_git(hub: GitHub, api: httpx.Client) -> None:
    sha = hub.commit("acme/shop", "topic/one", {"a/b.txt": "one\n"}, "Say one")
    ref = api.get(f"{SHOP}/git/ref/heads/topic/one")
    assert parse("GitRef", ref.json()).object_.sha == sha
    assert api.get(f"{SHOP}/git/ref/heads/nowhere").status_code == 404
    assert parse("GitCommit", api.get(f"{SHOP}/git/commits/{sha}").json()).message == "Say one"
    assert parse("Commit", api.get(f"{SHOP}/commits/{sha}").json()).sha == sha
    assert api.get(f"{SHOP}/commits/nowhere").status_code == 422
    compared = parse("CommitComparison", api.get(f"{SHOP}/compare/main...topic/one").json())
    assert (compared.status, compared.ahead_by, compared.files[0].filename) == ("ahead", 1, "a/b.txt")
    branch = parse("BranchWithProtection", api.get(f"{SHOP}/branches/topic%2Fone").json())
    assert branch.commit.sha == sha
    assert [row["name"] for row in api.get(f"{SHOP}/branches").json()] == ["main", "topic/one"]
    text = api.get(f"{SHOP}/contents/a/b.txt", params={"ref": "topic/one"}).json()["content"]
    assert base64.b64decode(text) == b"one\n"
    assert api.post(f"{SHOP}/git/refs", json={"ref": "refs/heads/two", "sha": sha}).status_code == 201
    assert api.delete(f"{SHOP}/git/refs/heads/two").status_code == 204
    assert api.delete(f"{SHOP}/git/refs/heads/two").status_code == 422


# boards


def test_a_board_has_cards_with_a_status_that_can_be_moved(hub: GitHub, api: httpx.Client) -> None:
    hub.add_issue("acme/shop", title="One")
    hub.add_issue("acme/shop", title="Two")
    board = hub.add_project("acme", "Plan")
    hub.set_card("acme", board, "acme/shop", 1, "Todo")
    place = f"/orgs/acme/projectsV2/{board}"
    parse("ProjectsV2", api.get(place).json())
    fields = {field["name"]: field for field in api.get(f"{place}/fields").json()}
    status = parse("ProjectsV2Field", fields["Status"])
    assert [option.name.raw for option in status.options] == ["Todo", "In Progress", "Done"]
    second = hub.issue("acme/shop", 2)
    added = api.post(f"{place}/items", json={"type": "Issue", "id": second.id})
    assert added.status_code == 201
    parse("ProjectsV2ItemSimple", added.json())
    before = second.updated_at
    hub.advance(5)
    change = {"fields": [{"id": status.id, "value": status.options[1].id}]}
    moved = api.patch(f"{place}/items/{added.json()['id']}", json=change)
    assert moved.status_code == 200
    assert hub.card_status("acme", board, "acme/shop", 2) == "In Progress"
    assert second.updated_at == before, "a card moves without its issue"
    first = api.get(f"{place}/items", params={"per_page": 1, "fields": status.id})
    assert [row["content"]["number"] for row in first.json()] == [1]
    parse("ProjectsV2ItemWithContent", first.json()[0])
    rest = api.get(first.links["next"]["url"])
    assert [row["fields"][0]["value"]["name"]["raw"] for row in rest.json()] == ["In Progress"]
    assert "next" not in rest.links
    found = api.get(f"{place}/items", params={"q": 'status:"In Progress"'}).json()
    assert [row["content"]["number"] for row in found] == [2]
    assert api.get(f"/users/acme/projectsV2/{board}").status_code == 404


def test_a_board_needs_the_scope(hub: GitHub, clients: Clients) -> None:
    board = hub.add_project("acme")
    hub.add_token("plain", login="octocat", scopes=["repo"])
    assert clients("plain").get(f"/orgs/acme/projectsV2/{board}").status_code == 403


# who may


def test_bad_expired_and_revoked_tokens_are_401(hub: GitHub, clients: Clients) -> None:
    hub.add_token("short", login="octocat", expires_in=60)
    assert clients("short").get("/user").json()["login"] == "octocat"
    assert clients("unknown").get("/user").status_code == 401
    hub.advance(61)
    assert clients("short").get("/user").json()["message"] == "Bad credentials"
    hub.expire("tok")
    assert clients("tok").get("/user").status_code == 401
    assert clients("").get("/user").status_code == 401


def test_private_repositories_are_404_to_strangers_and_without_the_scope(
    hub: GitHub, clients: Clients, api: httpx.Client
) -> None:
    hub.add_repository("acme/secret", private=True, collaborators={"octocat": "read"})
    hub.add_token("public", login="octocat", scopes=["public_repo"])
    assert parse("FullRepository", api.get("/repos/acme/secret").json()).private is True
    assert clients("rev").get("/repos/acme/secret").status_code == 404
    assert clients("public").get("/repos/acme/secret").status_code == 404
    assert clients("").get("/repos/acme/secret").status_code == 404
    assert api.get("/repos/acme/secret/issues").json() == []


def test_what_somebody_may_not_do_is_403(hub: GitHub, clients: Clients, api: httpx.Client) -> None:
    hub.add_issue("acme/shop", title="One")
    hub.add_token("reader", login="reader")
    hub.add_token("blunt", login="octocat", scopes=[])
    reader = clients("reader")
    assert reader.post(f"{SHOP}/issues/1/comments", json={"body": "I may"}).status_code == 201
    assert reader.post(f"{SHOP}/issues/1/labels", json={"labels": ["bug"]}).status_code == 403
    assert reader.patch(f"{SHOP}/issues/1", json={"state": "closed"}).status_code == 403
    assert clients("blunt").post(f"{SHOP}/issues/1/comments", json={"body": "no"}).status_code == 403
    assert [one["author_association"] for one in api.get(f"{SHOP}/issues/1/comments").json()] == ["NONE"]


def test_each_token_has_its_own_rate_limit(hub: GitHub, clients: Clients) -> None:
    hub.add_token("few", login="octocat", limit=2)
    few = clients("few")
    assert few.get("/user").headers["x-ratelimit-remaining"] == "1"
    few.get("/user")
    over = few.get("/user")
    assert (over.status_code, over.headers["x-ratelimit-remaining"]) == (403, "0")
    assert over.json()["message"].startswith("API rate limit exceeded")
    assert int(over.headers["x-ratelimit-reset"]) > time.time()
    assert few.get("/rate_limit").json()["resources"]["core"]["remaining"] == 0
    assert clients("rev").get("/user").status_code == 200
    hub.advance(3601)
    assert few.get("/user").status_code == 200


def test_an_app_gets_a_token_by_its_jwt_and_acts_as_its_bot(hub: GitHub, clients: Clients) -> None:
    import jwt
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import rsa

    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    form = serialization.PublicFormat.SubjectPublicKeyInfo
    hub.add_app("genba", key.public_key().public_bytes(serialization.Encoding.PEM, form).decode(), "acme")
    hub.add_issue("acme/shop", title="One")
    now = int(time.time())
    claims = {"iss": "12345", "iat": now - 10, "exp": now + 300}
    place = "/app/installations/100"
    signed = clients(jwt.encode(claims, key, algorithm="RS256"))
    parse("Installation", signed.get(place).json())
    made = signed.post(f"{place}/access_tokens")
    assert made.status_code == 201
    token = parse("InstallationToken", made.json()).token
    output = clients(token).post(f"{SHOP}/issues/1/comments", json={"body": "I am an app"})
    assert output.json()["user"]["login"] == "genba[bot]"
    assert clients(token).get("/installation/repositories").json()["total_count"] == 1
    other = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    forged = clients(jwt.encode(claims, other, algorithm="RS256"))
    assert forged.post(f"{place}/access_tokens").status_code == 401
    old = clients(jwt.encode(claims | {"iat": now - 900, "exp": now - 600}, key, algorithm="RS256"))
    assert old.post(f"{place}/access_tokens").status_code == 401
    hub.advance(3601)
    assert clients(token).get(f"{SHOP}/issues/1").status_code == 401
