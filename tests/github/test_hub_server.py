"""The GitHub of the tests as a server: faults on purpose, limits, its size, its doors, its end."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator

import httpx
import pytest

from tests.github.conftest import Hubs
from tests.standins.github.faults import Fault
from tests.standins.github.server import GitHub

SHOP = "/repos/acme/shop"


@pytest.fixture
def hub(hubs: Hubs) -> GitHub:
    made = hubs()
    made.add_token("tok", login="octocat")
    made.add_repository("acme/shop")
    return made


@pytest.fixture
def api(hub: GitHub) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=hub.url, headers={"authorization": "Bearer tok"}, timeout=20) as client:
        yield client


# faults


def test_a_fault_before_the_effect_leaves_nothing_and_one_after_it_leaves_the_deed(
    hub: GitHub, api: httpx.Client
) -> None:
    hub.add_issue("acme/shop", title="One")
    place = f"{SHOP}/issues/1/comments"
    hub.faults.fail("POST", "*/comments", status=502)
    assert api.post(place, json={"body": "a"}).status_code == 502
    hub.faults.cut("POST", "*/comments")
    with pytest.raises(httpx.RemoteProtocolError):
        api.post(place, json={"body": "b"})
    assert api.get(place).json() == []
    hub.faults.fail("POST", "*/comments", status=500, effect=True)
    assert api.post(place, json={"body": "c"}).status_code == 500
    hub.faults.cut("POST", "*/comments", effect=True)
    with pytest.raises(httpx.RemoteProtocolError):
        api.post(place, json={"body": "d"})
    assert [one["body"] for one in api.get(place).json()] == ["c", "d"]
    assert hub.faults.waiting == ()
    assert [one.status for one in hub.requests if one.mutation] == [502, 0, 500, 0]


def test_faults_limit_hang_garble_cut_in_the_middle_and_strike_as_often_as_they_say(
    hub: GitHub, api: httpx.Client
) -> None:
    hub.faults.limit("GET", "/user", retry_after=7, times=2, skip=1)
    assert [api.get("/user").status_code for _ in range(4)] == [200, 403, 403, 200]
    limited = hub.faults.limit("GET", "/user", status=429, retry_after=None)
    answer = api.get("/user")
    assert (answer.status_code, "retry-after" in answer.headers, limited.struck) == (429, False, 1)
    assert "secondary rate limit" in answer.json()["message"]
    hub.faults.garble("GET", "/user")
    with pytest.raises(json.JSONDecodeError):
        api.get("/user").json()
    hub.faults.add(Fault(path="/user", cut_inside=True))
    with pytest.raises(httpx.RemoteProtocolError):
        api.get("/user")
    hub.faults.hang("GET", "/user")
    with pytest.raises(httpx.ReadTimeout):
        api.get("/user", timeout=0.1)
    hub.faults.add(Fault(path="/user", status=503, then=lambda: hub.expire("tok")))
    assert api.get("/user").status_code == 503
    assert api.get("/user").status_code == 401


def test_ten_thousand_issues_are_made_at_once_and_read_in_a_hundred_pages(hub: GitHub, api: httpx.Client) -> None:
    start = time.process_time()
    hub.add_issues("acme/shop", 10_000, labels=["ready"])
    assert time.process_time() - start < 5, "this takes a fifth of a second"
    order = {"state": "all", "sort": "updated", "direction": "asc", "per_page": "100", "page": "100"}
    last = api.get(f"{SHOP}/issues", params=order)
    assert [row["number"] for row in last.json()] == list(range(9901, 10_001))
    assert "next" not in last.links


def test_it_answers_on_a_socket_as_if_it_were_github(hub: GitHub) -> None:
    hub.add_issues("acme/shop", 2)
    transport = httpx.HTTPTransport(uds=str(hub.socket))
    with httpx.Client(transport=transport, headers={"authorization": "token tok"}) as client:
        page = client.get("http://api.github.com/repos/acme/shop/issues?per_page=1")
    assert page.json()[0]["html_url"] == "https://github.com/acme/shop/issues/2"
    assert page.links["next"]["url"].startswith("https://api.github.com/repos/acme/shop/issues?")
    assert httpx.get(f"{hub.enterprise_url}/repos/acme/shop").json()["url"] == f"{hub.enterprise_url}/repos/acme/shop"


def test_it_is_gone_once_it_is_stopped() -> None:
    with GitHub() as hub:
        hub.add_repository("acme/shop")
        folder, port = hub.git_dir("acme/shop"), int(hub.url.rpartition(":")[2])
        assert folder.exists()
    assert not folder.exists()
    with socket.socket() as free:
        free.bind(("127.0.0.1", port))


def test_too_many_changes_meet_the_secondary_limit_and_looking_does_not(hub: GitHub, api: httpx.Client) -> None:
    hub.limit_changes(per_minute=2, per_hour=3)
    for _ in range(2):
        assert api.post(f"{SHOP}/issues", json={"title": "One"}).status_code == 201
    refused = api.post(f"{SHOP}/issues", json={"title": "One"})
    assert (refused.status_code, int(refused.headers["retry-after"]) <= 60) == (403, True)
    assert api.get(f"{SHOP}/issues").status_code == 200
    hub.advance(61)
    assert api.post(f"{SHOP}/issues", json={"title": "One"}).status_code == 201
    assert int(api.post(f"{SHOP}/issues", json={"title": "One"}).headers["retry-after"]) > 3000
    mutation = {"query": 'mutation { addComment(input: {subjectId: "x", body: "y"}) { clientMutationId } }'}
    assert api.post("/graphql", json=mutation).status_code == 403


def test_a_pull_request_of_a_fork_is_merged_too(hub: GitHub, api: httpx.Client) -> None:
    hub.add_user("contributor")
    fork = hub.add_repository("contributor/shop", collaborators={})
    fork.git.run("fetch", "-q", str(hub.git_dir("acme/shop")), "+refs/heads/main:refs/heads/main")
    hub.commit("contributor/shop", "mine", {"mine.txt": "m"})
    number = hub.open_pull_request("acme/shop", "contributor:mine", by="contributor")
    shown = api.get(f"{SHOP}/pulls/{number}").json()
    assert shown["head"]["repo"]["full_name"] == "contributor/shop"
    sha = hub.commit("contributor/shop", "mine", {"mine.txt": "again"})
    assert api.get(f"{SHOP}/pulls/{number}").json()["head"]["sha"] == sha
    assert api.put(f"{SHOP}/pulls/{number}/merge", json={"sha": sha}).status_code == 200
    assert hub.repository("acme/shop").git.show("main", "mine.txt") == "again"


def test_it_can_be_started_by_a_command_to_try_genba_on() -> None:
    command = [sys.executable, "-m", "tests.standins.github", "--issues", "3"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=dict(os.environ)) as process:
        try:
            assert process.stdout is not None
            place = json.loads(process.stdout.readline())
            headers = {"authorization": "Bearer token-of-octocat"}
            rows = httpx.get(f"{place['url']}/repos/acme/shop/issues", headers=headers, timeout=60).json()
            assert [row["number"] for row in rows] == [3, 2, 1]
        finally:
            process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 0
