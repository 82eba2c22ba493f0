"""The judges of the tests: what GitHub's own schemas find wrong is found, and what they have passes."""

import json
import re
from pathlib import Path

import msgspec
import pytest

from tests.github import material
from tests.github.contract import Contract
from tests.github.openapi import rest_contract
from tests.standins.github.recorded import Exchange

LABELS = "/repos/acme/shop/issues/7/labels"


@pytest.fixture(scope="module")
def judge() -> Contract:
    """One of its own: what is wrong here is wrong on purpose."""
    return Contract(material.openapi(), material.sdl())


def exchange_of(
    method: str, target: str, status: int, *, sent: bytes = b"", answered: bytes = b"", struck: bool = False
) -> Exchange:
    kind = "text/html" if answered.startswith(b"<html") and status >= 500 else "application/json; charset=utf-8"
    return Exchange(
        method=method,
        target=target,
        sent=sent,
        status=status,
        answered=answered,
        content_type=kind,
        agent="tests",
        struck=struck,
    )


def label(**other: object) -> dict[str, object]:
    address = "https://api.github.com/repos/acme/shop/labels/bug"
    made = {"id": 1, "node_id": "LA_1", "url": address, "name": "bug", "description": None, "color": "d73a4a"}
    return {**made, "default": True, **other}


def labels(sent: object, *answered: dict[str, object], status: int = 200, query: str = "") -> Exchange:
    return exchange_of(
        "POST", LABELS + query, status, sent=json.dumps(sent).encode(), answered=json.dumps(answered).encode()
    )


def test_what_github_has_passes(judge: Contract) -> None:
    assert judge.check(labels({"labels": ["bug"]}, label())) == []


@pytest.mark.parametrize(
    ("exchange", "sentence"),
    [
        (labels({"label": ["bug"]}, label()), "the body has label, which nobody reads"),
        (labels({"labels": [3]}, label()), "request: at "),
        (labels({"labels": ["bug"]}, label(color=3)), 'answer 200: at 0/color: 3 is not of type "string"'),
        (labels({"labels": ["bug"]}, label(id=None)), 'answer 200: at 0/id: null is not of type "integer"'),
        (labels({"labels": ["bug"]}, label(), status=202), "answer 202: GitHub has no such answer"),
        (labels({"labels": ["bug"]}, label(), query="?force=1"), "the query has force, which nobody reads"),
        (exchange_of("PUT", "/repos/acme/shop/issues/7", 200), "is no operation of GitHub"),
        (exchange_of("GET", "/repos/acme/shop/issues?per_page=x", 304), "parameter per_page"),
        (exchange_of("GET", "/repos/acme/shop/issues?state=shut", 304), "parameter state"),
        (exchange_of("GET", "/user", 304, answered=b"{}"), "it has a body"),
        (exchange_of("GET", "/user", 200, answered=b"<html>"), "it is no JSON"),
        (exchange_of("GET", "/user", 401, answered=b'{"error": "no"}'), "answer 401: "),
    ],
)
def test_what_github_has_not_is_found(judge: Contract, exchange: Exchange, sentence: str) -> None:
    found = judge.check(exchange)

    assert any(re.search(sentence, one) for one in found), found


def test_a_request_that_was_refused_may_be_wrong(judge: Contract) -> None:
    output = b'{"message": "Validation Failed", "documentation_url": "https://docs.github.com"}'
    refused = exchange_of("POST", "/repos/acme/shop/issues", 422, sent=b"{}", answered=output)

    assert judge.check(refused) == []


def test_what_stands_before_github_may_answer_with_a_page(judge: Contract) -> None:
    page = exchange_of("GET", "/user", 502, answered=b"<html>")

    assert judge.check(page) == []


def test_of_an_answer_that_a_test_spoiled_only_the_request_counts(judge: Contract) -> None:
    assert judge.check(exchange_of("GET", "/user", 200, answered=b"{", struck=True)) == []
    assert judge.check(exchange_of("GET", "/user", 0)) == []
    assert judge.check(exchange_of("GET", "/user?x=1", 0)) == ["GET /user: the query has x, which nobody reads"]


def test_what_was_moved_is_found_by_the_id_of_its_repository(judge: Contract) -> None:
    assert judge.check(exchange_of("GET", "/repositories/7/issues?state=all", 304)) == []


@pytest.mark.parametrize(
    ("path", "template"),
    [
        ("/repos/a/b/issues/7", "/repos/{owner}/{repo}/issues/{issue_number}"),
        ("/repos/a/b/issues/comments", "/repos/{owner}/{repo}/issues/comments"),
        ("/repos/a/b/git/ref/heads/genba/7-x", "/repos/{owner}/{repo}/git/ref/{ref}"),
        ("/repos/a/b/branches/genba%2F7-x", "/repos/{owner}/{repo}/branches/{branch}"),
        ("/repos/a/b/contents/src/x.py", "/repos/{owner}/{repo}/contents/{path}"),
        ("/repos/a/b/commits/abc/check-runs", "/repos/{owner}/{repo}/commits/{ref}/check-runs"),
    ],
)
def test_the_operation_of_a_request_is_the_one_that_spells_it_out(path: str, template: str) -> None:
    operation = rest_contract(material.openapi()).operation("GET", path)

    assert operation is not None
    assert operation.template == template


def test_a_document_is_held_to_the_schema_and_so_are_its_values(judge: Contract) -> None:
    issue = "issue(number: $n) { blockedBy(first: 5) { totalCount } }"
    good = f'query ($n: Int!) {{ repository(owner: "a", name: "b") {{ {issue} }} }}'

    assert judge.check_graphql(good, {"n": 3}) == []
    assert judge.check_graphql(good, {"n": "three"})
    assert judge.check_graphql(good, {})
    assert "blockdBy" in judge.check_graphql(good.replace("blockedBy", "blockdBy"), {"n": 3})[0]
    assert judge.check_graphql("query {")


def test_every_request_to_github_has_a_user_agent(judge: Contract) -> None:
    nameless = msgspec.structs.replace(exchange_of("GET", "/user", 304), agent="")

    assert judge.check(nameless) == ["GET /user: GitHub answers nobody without a User-Agent"]


def test_no_github_of_the_tests_is_out_of_hearing() -> None:
    """All are made in one place, but for three that answer anything on purpose."""
    folder = Path(__file__).parent.parent
    made = {path.name for path in folder.rglob("*.py") if re.search(r"with (.*, )?GitHub\(", path.read_text())}

    anything = {"test_github_answers.py", "test_remote_change_answers.py", "test_sync_processes.py"}

    assert made == {"watched.py", "__main__.py", *anything}


def test_where_a_name_is_no_more_github_leads_on(judge: Contract) -> None:
    output = b'{"message": "Moved Permanently", "url": "https://api.github.com/repositories/7"}'

    assert judge.check(exchange_of("GET", "/repos/acme/old/issues", 301, answered=output)) == []


def test_what_is_wrong_is_kept_until_it_is_taken(tmp_path: Path) -> None:
    judge = Contract(material.openapi(), material.sdl())
    wrong = exchange_of("GET", "/nowhere", 200)

    judge.check(wrong)
    judge.check(wrong)

    assert judge.take() == ["GET /nowhere is no operation of GitHub"]
    assert judge.take() == []
    assert judge.checked == 2
