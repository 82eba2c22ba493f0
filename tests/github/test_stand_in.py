"""emulate runs here, and is listened to."""

import httpx

from tests.github.emulated import Emulate


def test_emulate_answers_as_github_does(emulate: Emulate) -> None:
    headers = {"authorization": f"Bearer {emulate.tokens['octocat']}"}
    with httpx.Client(base_url=emulate.url, headers=headers, timeout=60) as client:
        made = client.post(f"/repos/{emulate.repository}/issues", json={"title": "Broken", "labels": ["bug"]})
        client.post(f"/repos/{emulate.repository}/issues", json={"title": "Also broken"})
        page = client.get(f"/repos/{emulate.repository}/issues", params={"state": "all", "per_page": 1})
        next_page = client.get(page.links["next"]["url"])

    assert made.status_code == 201
    assert [one["title"] for one in [*page.json(), *next_page.json()]] == ["Also broken", "Broken"]
    assert page.links["next"]["url"].startswith(emulate.url)  # what it sends people to is listened to as well
    assert len(emulate.exchanges) == 4


def test_it_knows_no_graphql(emulate: Emulate) -> None:
    headers = {"authorization": f"Bearer {emulate.tokens['octocat']}"}

    answer = httpx.post(f"{emulate.url}/graphql", headers=headers, json={"query": "{ viewer { login } }"}, timeout=60)

    assert answer.status_code == 404
