import json
from typing import Any

import pytest

from genba.definitions.project.goal_text import read_goals
from genba.domain.tasks.task import TaskStatus
from tests.bubblewrap import needs_bubblewrap
from tests.clis import cli, path_with_clis
from tests.fleet.yard import Yard
from tests.project import Project
from tests.standins.model_server import ModelServer, Obey

KEY = "sk-only-the-host-holds-this"
COMMANDS = {"claude-code": "claude", "codex": "codex", "opencode": "opencode", "acp": "gemini"}
WITH_VERSION = ("codex", "opencode")
WAYS = [
    *(("claude-code", tools) for tools in (None, ["Bash"])),
    *(("codex", tools) for tools in (None, ["Bash"])),
    ("opencode", ["Bash"]),
    ("acp", ["Bash"]),
]
PLAN = ({"title": "first", "local_id": "a"}, {"title": "second", "local_id": "b", "depends_on": ["a"]})
PARTS = ("one", "two", "three")
BOTH = {"custom_script": "test -f first.txt && test -f second.txt"}


def declare(project: Project, name: str, adapter: str, url: str, hierarchy: str = "worker", **runner: Any) -> None:
    """An agent that asks, with a model of its own."""
    own: dict[str, Any] = {"type": adapter, "baseUrl": f"{url}/v1" if adapter in WITH_VERSION else url}
    flow = {"mode": "stateDriven", "hierarchy": hierarchy}
    if adapter == "acp":
        own["command"] = COMMANDS[adapter]
    if adapter == "opencode":
        own["provider"] = {"name": "openai", "npm": "@ai-sdk/openai-compatible"}
        flow["defaultModel"] = "stub-model"
    file = {
        "name": name,
        "description": "A real agent that asks what is next",
        "parameters": {"issue": {"type": "number"}},
        "runner": {"flow": flow, "adapter": own, **runner},
    }
    project.write(f".agent/{name}/agent.json", json.dumps(file))
    project.write(f".agent/{name}/prompts/system.md", "You write files.\n")


def prepare(project: Project, adapter: str, sandbox: str = "bubblewrap") -> Yard:
    cli(COMMANDS[adapter])
    if sandbox == "bubblewrap":
        needs_bubblewrap()
    project.environment |= {"PATH": path_with_clis(), "GENBA_SANDBOX": sandbox}
    project.environment |= dict.fromkeys(("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY"), KEY)
    return Yard(project)


@pytest.mark.parametrize(
    ("adapter", "tools"), WAYS, ids=[f"{name}-{'listed' if some else 'any'}" for name, some in WAYS]
)
def test_a_real_worker_goes_from_its_task_to_merged_work(
    project: Project, model: ModelServer, adapter: str, tools: list[str] | None
) -> None:
    url = model.scenario("obey", Obey(plan=PLAN))
    with prepare(project, adapter) as yard:
        declare(project, "asker", adapter, url, boundaries={"allowedTools": tools})
        yard.settings["dod"] = [BOTH]
        yard.set(work={"agent": "asker"})
        yard.task(1, "Write two files")

        yard.work()

        assert yard.look(1).status is TaskStatus.DONE
        assert {"first.txt", "second.txt"} <= set(yard.files())
        with yard.board() as board:
            (session,) = board.sessions(1)
            steps = [board.board.get(number) for number in board.board.get(1).children]
        assert [(step.title, step.status) for step in steps] == [
            ("first", TaskStatus.DONE),
            ("second", TaskStatus.DONE),
        ]
        used = [event["tool"] for event in project.events(session.run) if event["event"] == "tool_used"]
        assert "mcp__genba__report_completed" in used
        journal = "\n".join(json.dumps(event) for event in project.events(session.run))
        assert "gbs_" not in journal
        assert "gbo_" not in journal
        assert not yard.left_running()


def test_a_real_worker_finds_its_way_without_a_sandbox(project: Project, model: ModelServer) -> None:
    url = model.scenario("obey", Obey())
    with prepare(project, "claude-code", "worktree") as yard:
        declare(project, "asker", "claude-code", url, boundaries={"allowedTools": ["Bash"]})
        yard.set(work={"agent": "asker"})
        yard.task(1, "alone")

        yard.work()

        assert yard.look(1).status is TaskStatus.DONE
        assert "alone.txt" in yard.files()


@pytest.mark.parametrize(("boss", "worker"), [("claude-code", "codex"), ("codex", "claude-code")])
def test_a_real_manager_has_three_real_workers_side_by_side_and_their_work_lands(
    project: Project, model: ModelServer, boss: str, worker: str
) -> None:
    leads = model.scenario("lead", Obey(plan=tuple({"title": name} for name in PARTS)))
    works = model.scenario("work", Obey())
    with prepare(project, boss) as yard:
        cli(COMMANDS[worker])
        declare(project, "boss", boss, leads, "manager")
        declare(project, "asker", worker, works)
        yard.set(work={"agent": "asker"}, workflow={"suspend_seconds": 600, "wait_seconds": 5})
        wanted = " && ".join(f"test -f {name}.txt" for name in PARTS)
        yard.task(1, "Write three files", assignee="boss", goals=tuple(read_goals([f"tests_pass: {wanted}"], "")))

        yard.work("--workers", "4")

        assert set(yard.statuses().values()) == {TaskStatus.DONE}
        assert {f"{name}.txt" for name in PARTS} <= set(yard.files())
        with yard.board() as board:
            parts = [board.board.get(number) for number in board.board.get(1).children]
            sessions = [session for part in parts for session in board.sessions(part.number)]
        assert [part.title for part in parts] == list(PARTS)
        assert [session.agent for session in sessions] == ["asker"] * len(PARTS), "each was tried once"
        begun = max(session.started_at for session in sessions)
        assert all(session.ended_at > begun for session in sessions), "side by side"
        assert not yard.left_running()
