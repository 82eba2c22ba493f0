"""The API: what it tells is what the commands tell, and a machine that tries everything finds nothing wrong."""

import json
import subprocess
import sys
from pathlib import Path

import httpx

from genba.domain.fleet.records import Escalation, EscalationKind
from genba.domain.tasks.task import TaskDraft, TaskStatus
from genba.entrypoints.web.api import OPERATIONS
from tests.web.serving import OPERATOR, PATIENCE, PERSON, Dashboard

ROOT = Path(__file__).parents[2]


def report(answer: httpx.Response) -> dict[str, object]:
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def test_a_task_is_added_shown_and_moved(served: Dashboard) -> None:
    with served.client() as client:
        added = report(client.post("/api/tasks", json={"title": "Make tea", "priority": "high", "labels": ["kitchen"]}))
        assert (added["number"], added["status"], added["priority"]) == (1, "open", "high")
        shown = report(client.get("/api/tasks/1"))
        assert shown["task"] == added
        assert (
            report(client.post("/api/tasks/1/comments", json={"text": "with milk"}))["sentence"]
            == "#1 has your comment"
        )
        assert report(client.post("/api/tasks/1/status", json={"to": "cancelled"}))["sentence"] == "#1 is cancelled"
        assert client.get("/api/tasks").json() == []
        assert [each["number"] for each in client.get("/api/tasks?status=cancelled").json()] == [1]


def test_a_task_and_the_lists_read_as_the_commands_print_them(served: Dashboard) -> None:
    board = served.board.board
    board.add(TaskDraft(title="Make tea"), PERSON)
    board.add(TaskDraft(title="Drink tea", dependencies=(1,)), PERSON)
    with served.client() as client:
        for path, words in (
            ("/api/tasks", ("task", "list", "--json")),
            ("/api/sessions", ("sessions", "--json")),
            ("/api/escalations", ("decisions", "--json")),
            ("/api/queue", ("queue", "--json")),
        ):
            assert client.get(path).json() == served.project.genba(*words).json, path
        status, printed = client.get("/api/status").json(), served.project.genba("status", "--json").json
        assert [(each["issue"], each["state"], each["command"]) for each in status["assessments"]] == [
            (each["issue"], each["state"], each["command"]) for each in printed["assessments"]
        ]
        assert status.keys() == printed.keys()
        shown = served.project.genba("task", "show", "2", "--json").json
        answered = client.get("/api/tasks/2").json()
        assert {name: answered[name] for name in shown} == shown


def test_a_question_is_answered_once(served: Dashboard) -> None:
    board = served.board.board
    board.add(TaskDraft(title="Choose a licence"), PERSON)
    served.board.escalate(Escalation(task=1, kind=EscalationKind.QUESTION, question="MIT or Apache?"), None)
    with served.client() as client:
        assert [each["question"] for each in client.get("/api/escalations").json()] == ["MIT or Apache?"]
        assert report(client.post("/api/tasks/1/answer", json={"text": "MIT"}))["sentence"] == "#1 is answered"
        again = client.post("/api/tasks/1/answer", json={"text": "Apache"})
    assert again.status_code == 409
    assert again.json()["error"]["unchanged"] == "nothing was changed."
    assert [each.answer for each in served.board.escalations(open_only=False)] == ["MIT"]


def test_errors_say_what_to_do(served: Dashboard) -> None:
    with served.client() as client:
        missing = client.get("/api/tasks/77")
        assert missing.status_code == 404
        assert missing.json()["error"]["hint"] == "genba task list"
        for path, body in (
            ("/api/tasks", {}),
            ("/api/tasks", {"title": ""}),
            ("/api/tasks", {"title": "x", "colour": "red"}),
            ("/api/tasks", [1]),
            ("/api/tasks/1/answer", {"text": ""}),
            ("/api/tasks/0/answer", {"text": "x"}),
            ("/api/tasks/9223372036854775808/answer", {"text": "x"}),
        ):
            assert client.post(path, json=body).status_code == 400, (path, body)
        assert client.get("/api/tasks?limit=0").status_code == 400
        assert client.get("/api/tasks?limit=1&limit=2").status_code == 400
        assert client.get("/api/tasks?colour=red").status_code == 400
        assert client.post("/api/tasks", content=b"title=x").status_code == 400
        assert client.put("/api/tasks").headers["allow"]


def test_what_is_described_is_there_and_the_other_way_round(served: Dashboard) -> None:
    with served.client() as client:
        described = client.get("/api/openapi.json").json()
        page = client.get("/api/docs").text
    found = {(method.upper(), path) for path, here in described["paths"].items() for method in here}
    assert found == {(each.method, each.path) for each in OPERATIONS}
    assert all(each.path in page for each in OPERATIONS)
    assert len({each.name for each in OPERATIONS}) == len(OPERATIONS)


def test_a_machine_that_tries_everything_finds_nothing(served: Dashboard, tmp_path: Path) -> None:
    board = served.board.board
    for title in ("Make tea", "Drink tea", "Wash up"):
        board.add(TaskDraft(title=title), PERSON)
    served.board.escalate(Escalation(task=1, kind=EscalationKind.QUESTION, question="Which tea?"), None)
    before = {task.number: task.title for task in board.find(status=tuple(TaskStatus))}
    words = [
        *("run", f"{served.url}/api/openapi.json", "-H", f"Authorization: Bearer {OPERATOR}"),
        *("--checks", "all", "--phases", "coverage,fuzzing", "--max-examples", "8"),
        *("--no-color", "--generation-deterministic", "--warnings", "off", "--request-timeout", "60"),
    ]
    program = Path(sys.executable).with_name("schemathesis")
    done = subprocess.run([program, *words], cwd=tmp_path, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert f"Tested: {len(OPERATIONS)}" in done.stdout, done.stdout[-3000:]
    after = {task.number: task.title for task in board.find(status=tuple(TaskStatus))}
    assert before.items() <= after.items()
    assert json.loads(httpx.get(f"{served.url}/healthz", timeout=PATIENCE).text) == {"status": "ok"}
