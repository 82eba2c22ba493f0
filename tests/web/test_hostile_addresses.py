"""Whatever stands in an address, the answer is a page or a refusal in words, on both databases."""

import re

import httpx
import pytest

from tests.blackboard.conftest import Postgres, postgres  # noqa: F401  (a fixture)
from tests.fleet.yard import Yard
from tests.project import Project, until
from tests.web.scenes import HOSTILE

TOKEN = "operator-of-the-tests"
PAGES = ("/", "/board", "/approvals", "/workers", "/queue", "/graph", "/agents", "/cost", "/tasks/1", "/tasks/1/diff")
NAMES = (
    "%00",
    "%2e%2e",
    "..",
    "%ff",
    "%ed%a0%80",
    "a" * 300,
    "-x",
    "%3cscript%3e",
    "%27%22",
    "*",
    "%0d%0aset-cookie:x",
)
PLACES = (
    "/sessions/{}",
    "/sessions/{}/log",
    "/sessions/{}/text?at=0",
    "/live?run={}",
    "/agents/{}",
    "/tasks/{}",
    "/tasks/1/goals/{}",
    "/tasks/1/verdicts/{}",
    "/tasks/1/diff/file?path={}",
    "/board/{}",
    "/board?text={}",
    "/graph?around={}",
    "/api/agents/{}",
    "/api/runs/{}",
    "/api/runs/{}/log",
    "/api/sessions/{}",
    "/api/tasks?text={}&label={}",
    "/api/board?text={}",
    "/api/queue?target={}",
)
NUMBERS = ("0", "-1", "1.0", "9" * 18, "9" * 30, "%D9%A1")


@pytest.mark.parametrize("database", ["sqlite", "postgres"])
def test_no_address_makes_it_stumble(project: Project, database: str, request: pytest.FixtureRequest) -> None:
    address = ""
    if database == "postgres":
        server: Postgres = request.getfixturevalue("postgres")
        address = server.furnished(engine=False)
    with Yard(project, address) as yard:
        yard.task(1, HOSTILE)
        yard.begin("serve", "--port", "0", GENBA_SERVE_TOKEN=TOKEN)
        until(lambda: "serving" in yard.log(), 60)
        found = re.search(r"(http://\S+)/enter#", yard.log())
        assert found
        addresses = [*PAGES, *(each.replace("{}", name) for each in PLACES for name in (*NAMES, *NUMBERS))]
        headers = {"authorization": f"Bearer {TOKEN}"}
        with httpx.Client(base_url=found.group(1), headers=headers, timeout=60) as client:
            stumbled = {}
            for each in addresses:
                answer = client.get(each)
                if answer.status_code >= 500 or (each in PAGES and answer.status_code != 200):
                    stumbled[each] = answer.text[-400:]
                if answer.headers.get("content-type", "").startswith("text/html"):
                    assert "<script>alert" not in answer.text, each
                assert "set-cookie" not in answer.headers, each
        assert stumbled == {}
        assert "Traceback" not in yard.log()
