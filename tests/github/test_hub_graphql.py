"""The GitHub of the tests, its GraphQL door: GitHub's schema, GitHub's limits, GitHub's way to say no."""

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import httpx
import pytest

from tests.github.conftest import Hubs
from tests.github.contract import Contract
from tests.standins.github.server import GitHub

SHOP = "acme/shop"
DETAILS = """query ($ids: [ID!]!) {
  rateLimit { cost }
  nodes(ids: $ids) {
    ... on Issue {
      number body parent { number } issueDependenciesSummary { totalBlockedBy }
      labels(first: 100) { nodes { name } }
      assignees(first: 20) { nodes { login } }
      comments(first: 50) { nodes { body authorAssociation } }
      closedByPullRequestsReferences(first: 10, includeClosedPrs: true) { nodes { number } }
    }
  }
}"""
BOARD = """query ($query: String) {
  organization(login: "acme") {
    projectV2(number: 1) {
      id
      field(name: "Status") { ... on ProjectV2SingleSelectField { id options { id name } } }
      items(first: 100, query: $query) {
        nodes {
          id updatedAt content { ... on Issue { number } }
          fieldValueByName(name: "Status") { ... on ProjectV2ItemFieldSingleSelectValue { name } }
        }
      }
    }
  }
}"""
MOVE = """mutation ($project: ID!, $item: ID!, $field: ID!, $option: String!) {
  updateProjectV2ItemFieldValue(
    input: {projectId: $project, itemId: $item, fieldId: $field, value: {singleSelectOptionId: $option}}
  ) { projectV2Item { id } }
}"""
PULL = """query ($number: Int!) {
  repository(owner: "acme", name: "shop") {
    pullRequest(number: $number) {
      mergeable mergeStateStatus reviewDecision
      latestOpinionatedReviews(first: 50) {
        nodes { author { login } state commit { oid } comments(first: 50) { nodes { path line body } } }
      }
      statusCheckRollup {
        contexts(first: 100) { nodes { ... on CheckRun { name conclusion title summary } } }
      }
      closingIssuesReferences(first: 20) { nodes { number } }
    }
  }
}"""


class Asker:
    """Somebody with a token who sends documents."""

    def __init__(self, hub: GitHub, token: str, opened: ExitStack) -> None:
        self.hub = hub
        self.opened = opened
        headers = {"authorization": f"Bearer {token}"}
        self.client = opened.enter_context(httpx.Client(base_url=hub.url, headers=headers, timeout=60))

    def other(self, token: str, login: str, *scopes: str) -> "Asker":
        self.hub.add_token(token, login=login, scopes=scopes)
        return Asker(self.hub, token, self.opened)

    def send(self, document: str, **variables: object) -> httpx.Response:
        return self.client.post("/graphql", json={"query": document, "variables": variables})

    def __call__(self, document: str, **variables: object) -> dict[str, Any]:
        answer = self.send(document, **variables)
        assert answer.status_code == 200
        body: dict[str, Any] = answer.json()
        return body

    def data(self, document: str, **variables: object) -> Any:
        body = self(document, **variables)
        assert "errors" not in body, body["errors"]
        return body["data"]


@pytest.fixture
def ask(hub: GitHub) -> Iterator[Asker]:
    hub.add_organization("acme", admins=["octocat"], members=["rev"])
    hub.add_token("tok", login="octocat")
    hub.add_repository(SHOP)
    with ExitStack() as opened:
        yield Asker(hub, "tok", opened)


def refused(ask: Asker, contract: Contract, document: str, **variables: object) -> list[dict[str, Any]]:
    """What is said to a document that the schema itself has no objection to, or that it refuses."""
    body = ask(document, **variables)
    contract.take()
    assert "data" not in body
    errors: list[dict[str, Any]] = body["errors"]
    return errors


def test_what_is_there_comes_and_what_is_not_is_an_error_beside_it(ask: Asker) -> None:
    number = ask.hub.add_issue(SHOP, title="One")
    node = ask.hub.issue(SHOP, number).node

    body = ask("query ($ids: [ID!]!) { nodes(ids: $ids) { ... on Issue { title } } }", ids=[node, "I_nowhere"])

    assert body["data"]["nodes"] == [{"title": "One"}, None]
    assert [(one["type"], one["path"]) for one in body["errors"]] == [("NOT_FOUND", ["nodes", 1])]
    assert body["errors"][0]["message"] == "Could not resolve to a node with the global id of 'I_nowhere'"


def test_a_deleted_issue_and_a_moved_one_are_nowhere(ask: Asker) -> None:
    ask.hub.add_repository("acme/attic")
    nodes = [ask.hub.issue(SHOP, ask.hub.add_issue(SHOP, title=title)).node for title in ("Gone", "Moved")]
    ask.hub.delete(SHOP, 1)
    ask.hub.transfer(SHOP, 2, "acme/attic")

    body = ask("query ($ids: [ID!]!) { nodes(ids: $ids) { id } }", ids=nodes)

    assert body["data"]["nodes"] == [None, None]
    assert {one["type"] for one in body["errors"]} == {"NOT_FOUND"}


def test_pages_go_forward_and_backward_by_their_cursors(ask: Asker) -> None:
    ask.hub.add_issues(SHOP, 25)
    document = """query ($after: String, $before: String, $first: Int, $last: Int) {
      repository(owner: "acme", name: "shop") {
        issues(
          first: $first, last: $last, after: $after, before: $before, orderBy: {field: CREATED_AT, direction: ASC}
        ) {
          totalCount nodes { number } pageInfo { hasNextPage hasPreviousPage startCursor endCursor }
        }
      }
    }"""
    seen: list[int] = []
    after: str | None = None
    while True:
        page = ask.data(document, first=10, after=after)["repository"]["issues"]
        seen += [one["number"] for one in page["nodes"]]
        after = page["pageInfo"]["endCursor"]
        if not page["pageInfo"]["hasNextPage"]:
            break
    last = ask.data(document, last=10)["repository"]["issues"]
    before = ask.data(document, last=10, before=last["pageInfo"]["startCursor"])["repository"]["issues"]

    assert seen == list(range(1, 26))
    assert [one["number"] for one in last["nodes"]] == list(range(16, 26))
    assert [one["number"] for one in before["nodes"]] == list(range(6, 16))
    assert before["pageInfo"]["hasPreviousPage"]
    assert page["totalCount"] == 25


@pytest.mark.parametrize(
    ("arguments", "kind"),
    [
        ("", "MISSING_PAGINATION_BOUNDARIES"),
        ("(first: 101)", "EXCESSIVE_PAGINATION"),
        ("(last: 101)", "EXCESSIVE_PAGINATION"),
    ],
)
def test_a_list_has_an_end_and_at_most_a_hundred_things(
    ask: Asker, contract: Contract, arguments: str, kind: str
) -> None:
    document = f'{{ repository(owner: "acme", name: "shop") {{ issues{arguments} {{ nodes {{ id }} }} }} }}'

    errors = refused(ask, contract, document)

    assert [one["type"] for one in errors] == [kind]


def test_only_the_count_of_a_list_needs_no_end(ask: Asker) -> None:
    read = ask.data('{ repository(owner: "acme", name: "shop") { issues { totalCount } } }')

    assert read["repository"]["issues"] == {"totalCount": 0}


def test_a_document_that_could_bring_too_much_is_refused(ask: Asker, contract: Contract) -> None:
    inner = "issues(first: 100) { nodes { comments(first: 100) { nodes { id } } labels(first: 100) { nodes { id } } } }"
    document = f'{{ organization(login: "acme") {{ repositories(first: 100) {{ nodes {{ {inner} }} }} }} }}'

    errors = refused(ask, contract, document)

    assert [one["type"] for one in errors] == ["MAX_NODE_LIMIT_EXCEEDED"]
    assert "2,010,100 possible nodes" in errors[0]["message"]


def test_the_points_are_the_lists_that_are_read_by_a_hundred(ask: Asker) -> None:
    """GitHub's own example: 100 repositories with 50 issues with 60 labels each are 5,101 reads, 51 points."""
    labels = "labels(first: 60) { nodes { id } }"
    repositories = f"repositories(first: 100) {{ nodes {{ issues(first: 50) {{ nodes {{ {labels} }} }} }} }}"

    body = ask.data(f"{{ rateLimit {{ cost nodeCount used }} viewer {{ {repositories} }} }}")

    assert body["rateLimit"] == {"cost": 51, "nodeCount": 305_100, "used": 51}


def test_who_has_no_points_left_hears_it_with_200(ask: Asker) -> None:
    ask.hub.spend("tok", graphql=5000)

    answer = ask.send("{ viewer { login } }")

    assert answer.status_code == 200
    assert [one["type"] for one in answer.json()["errors"]] == ["RATE_LIMITED"]
    assert answer.headers["x-ratelimit-remaining"] == "0"
    assert answer.headers["x-ratelimit-resource"] == "graphql"
    ask.hub.advance(3700)
    assert ask.data("{ viewer { login } }") == {"viewer": {"login": "octocat"}}


def test_points_and_requests_are_counted_apart(ask: Asker) -> None:
    rest = ask.client.get("/user").headers["x-ratelimit-remaining"]

    graphql = ask.send("{ viewer { login } }").headers["x-ratelimit-remaining"]

    assert (rest, graphql) == ("4999", "4999")


def test_a_field_that_github_has_not_is_refused(ask: Asker, contract: Contract) -> None:
    errors = refused(ask, contract, "{ viewer { nickname } }")

    assert "nickname" in errors[0]["message"]


def test_a_field_that_is_not_made_here_says_so_and_is_not_empty(ask: Asker) -> None:
    body = ask("{ viewer { bio } }")

    assert body["errors"][0]["type"] == "NOT_IMPLEMENTED"
    assert body["errors"][0]["message"] == "the GitHub of the tests has no User.bio"


def test_nobody_sees_what_is_private(ask: Asker) -> None:
    ask.hub.add_repository("acme/secret", private=True)
    node = ask.hub.issue("acme/secret", ask.hub.add_issue("acme/secret", title="Hidden")).node
    stranger = ask.other("strange", "stranger", "repo")

    by_name = stranger('{ repository(owner: "acme", name: "secret") { id } }')
    by_node = stranger("query ($id: ID!) { node(id: $id) { id } }", id=node)

    assert by_name["data"] == {"repository": None}
    assert by_name["errors"][0]["type"] == by_node["errors"][0]["type"] == "NOT_FOUND"
    assert by_name["errors"][0]["message"] == "Could not resolve to a Repository with the name 'acme/secret'."


def test_boards_need_their_own_scope(ask: Asker) -> None:
    ask.hub.add_project("acme", "Work")
    document = '{ organization(login: "acme") { projectV2(number: 1) { title } } }'

    body = ask.other("narrow", "rev", "repo")(document)

    assert body["errors"][0]["type"] == "INSUFFICIENT_SCOPES"
    assert ask.data(document)["organization"]["projectV2"]["title"] == "Work"


def test_who_may_not_change_something_hears_forbidden(ask: Asker) -> None:
    node = ask.hub.issue(SHOP, ask.hub.add_issue(SHOP, title="One")).node
    stranger = ask.other("strange", "stranger", "repo")

    body = stranger("mutation ($id: ID!) { closeIssue(input: {issueId: $id}) { issue { id } } }", id=node)

    assert body["errors"][0]["type"] == "FORBIDDEN"
    assert ask.hub.issue(SHOP, 1).state == "open"


def test_a_bad_token_is_401_and_no_schema_is_404(ask: Asker, hubs: Hubs) -> None:
    bare = hubs(graphql=False)
    bare.add_token("tok", login="octocat")

    assert Asker(ask.hub, "unknown", ask.opened).send("{ viewer { login } }").status_code == 401
    assert Asker(bare, "tok", ask.opened).send("{ viewer { login } }").status_code == 404


def test_both_doors_lead_to_the_same_things(ask: Asker) -> None:
    ask.client.post(f"/repos/{SHOP}/issues", json={"title": "By REST"}).raise_for_status()
    read = ask.data('{ repository(owner: "acme", name: "shop") { id issue(number: 1) { id title } } }')["repository"]
    change = (
        "mutation ($id: ID!, $by: ID!) { addBlockedBy(input: {issueId: $id, blockingIssueId: $by}) { issue { id } } }"
    )
    create = 'mutation ($r: ID!) { createIssue(input: {repositoryId: $r, title: "By GraphQL"}) { issue { id } } }'

    second = ask.data(create, r=read["id"])["createIssue"]["issue"]["id"]
    ask.data(change, id=read["issue"]["id"], by=second)
    twice = ask(change, id=read["issue"]["id"], by=second)

    assert ask.client.get(f"/repos/{SHOP}/issues/1").json()["issue_dependencies_summary"]["blocked_by"] == 1
    assert ask.client.get(f"/repos/{SHOP}/issues/2").json()["title"] == "By GraphQL"
    assert twice["errors"][0]["type"] == "UNPROCESSABLE"


def test_a_card_moves_and_its_issue_does_not_notice(ask: Asker) -> None:
    ask.hub.add_project("acme", "Work")
    ask.hub.add_issue(SHOP, title="One")
    ask.hub.set_card("acme", 1, SHOP, 1, "Todo")
    before = ask.hub.issue(SHOP, 1).updated_at
    ask.hub.advance(60)

    board = ask.data(BOARD)["organization"]["projectV2"]
    option = next(one["id"] for one in board["field"]["options"] if one["name"] == "Done")
    [card] = board["items"]["nodes"]
    ask.data(MOVE, project=board["id"], item=card["id"], field=board["field"]["id"], option=option)
    [moved] = ask.data(BOARD, query="status:Done")["organization"]["projectV2"]["items"]["nodes"]

    assert card["fieldValueByName"] == {"name": "Todo"}
    assert moved["fieldValueByName"] == {"name": "Done"}
    assert moved["updatedAt"] > card["updatedAt"]
    assert ask.data(BOARD, query="status:Todo")["organization"]["projectV2"]["items"]["nodes"] == []
    assert ask.hub.issue(SHOP, 1).updated_at == before


def test_a_pull_request_is_read_with_its_reviews_and_checks(ask: Asker) -> None:
    ask.hub.add_issue(SHOP, title="One")
    ask.hub.commit(SHOP, "feature", {"door.py": "OPEN = True\n"}, "Open the door")
    number = ask.hub.open_pull_request(SHOP, "feature", title="Open it", body="Closes #1")
    head = ask.hub.pull_request(SHOP, number).head_sha
    ask.hub.check(SHOP, head, "build", "failure", title="It broke", summary="Line 3")
    remark = {"path": "door.py", "line": 1, "body": "Why?"}
    ask.hub.review(SHOP, number, "CHANGES_REQUESTED", "No", by="rev", comments=[remark])

    first = ask.data(PULL, number=number)["repository"]["pullRequest"]
    second = ask.data(PULL, number=number)["repository"]["pullRequest"]
    [review] = second["latestOpinionatedReviews"]["nodes"]

    assert (first["mergeable"], first["mergeStateStatus"]) == ("UNKNOWN", "UNKNOWN")
    assert (second["mergeable"], second["mergeStateStatus"]) == ("MERGEABLE", "UNSTABLE")
    assert (second["reviewDecision"], review["commit"]["oid"]) == ("CHANGES_REQUESTED", head)
    assert review["comments"]["nodes"] == [remark]
    assert second["statusCheckRollup"]["contexts"]["nodes"][0]["conclusion"] == "FAILURE"
    assert second["closingIssuesReferences"]["nodes"][0]["number"] == 1


def test_values_that_a_document_has_no_use_for_are_refused(ask: Asker, contract: Contract) -> None:
    errors = refused(ask, contract, PULL, number="three")

    assert "$number" in errors[0]["message"]


def test_the_details_of_a_thousand_issues_cost_what_githubs_formula_says(ask: Asker) -> None:
    ask.hub.add_issues(SHOP, 1000)
    nodes = [issue.node for issue in ask.hub.repository(SHOP).issues.values()]

    pages = [ask.data(DETAILS, ids=nodes[start : start + 50]) for start in range(0, 1000, 50)]

    assert sum(page["rateLimit"]["cost"] for page in pages) == 40  # 20 requests with (1 + 50 * 4) / 100 points each
    assert [one["number"] for page in pages for one in page["nodes"]] == list(range(1, 1001))
