"""What the page about the API tells its reader to type works, as it is written."""

import json
import os
import re
import shutil
import subprocess

import pytest

from genba.domain.fleet.records import Escalation, EscalationKind
from genba.domain.tasks.task import TaskDraft
from tests.test_docs import ROOT, blocks
from tests.web.serving import OPERATOR, PERSON, Dashboard

PAGE = ROOT / "docs" / "how-to" / "api.md"


def typed() -> list[str]:
    """Each call of curl, its lines joined."""
    shown = "".join(content for marker, content in blocks(PAGE) if marker == "sh").replace("\\\n", " ")
    return [line for line in shown.splitlines() if line.startswith("curl")]


def test_every_call_that_is_shown_is_answered(served: Dashboard) -> None:
    if shutil.which("curl") is None:
        pytest.skip("not run: there is no curl")
    for title in ("One", "Two", "Three", "Four", "Choose a licence"):
        served.board.board.add(TaskDraft(title=title), PERSON)
    served.board.escalate(Escalation(task=5, kind=EscalationKind.QUESTION, question="MIT or Apache-2.0?"), None)
    for line in typed():
        words = re.sub(r"http://127\.0\.0\.1:8420", served.url, line)
        done = subprocess.run(
            ["sh", "-c", words],
            env={**os.environ, "GENBA_SERVE_TOKEN": OPERATOR, "no_proxy": "*"},
            check=True,
            capture_output=True,
            text=True,
        )
        assert "error" not in json.loads(done.stdout), (line, done.stdout)


def test_an_error_looks_as_it_is_shown(served: Dashboard) -> None:
    shown = next(json.loads(content) for marker, content in blocks(PAGE) if marker == "json")
    with served.client() as client:
        assert client.get("/api/tasks/99").json() == shown
