"""What agents say to each other arrives, through the real server and in the prompts of a fleet."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.mcp.team import QUICK, Team, rows
from tests.project import Project

NOTE = "Use the blue paper."


@pytest.fixture(params=["stdio", "http"])
def team(request: pytest.FixtureRequest, project: Project) -> Iterator[Team]:
    project.write(".genba/config.yaml", QUICK)
    project.commit("Settings")
    made = Team(project, request.param)
    yield made
    made.close()


def kept(project: Project, what: str = "m.type, m.status") -> list[tuple[Any, ...]]:
    return rows(project, f"SELECT t.number, {what} FROM messages m JOIN tasks t ON t.id = m.task_id ORDER BY m.id")


def printed(found: dict[str, Any]) -> list[tuple[str, str, str]]:
    return [(one["sender"], one["type"], one["content"]) for one in found.get("messages", ())]


async def test_the_note_of_a_manager_reaches_its_worker_is_read_and_resolved(team: Team, project: Project) -> None:
    async with team.member("lead", "--manager") as lead, team.member("hand") as hand:
        project.genba("task", "add", "Write", "--assignee", "lead", check=0)
        await lead.begin()
        await lead.call("create_task", title="one")
        await lead.call("assign_task", task_id=2, agent="hand", note=NOTE)
        assert kept(project) == [(2, "instruction", "pending")]

        brief = await hand.begin()
        assert printed(brief) == [("lead", "instruction", NOTE)]
        assert kept(project) == [(2, "instruction", "read")]
        assert printed(await hand.call("get_messages")) == [("lead", "instruction", NOTE)]
        assert printed(await hand.call("get_messages")) == []

        await hand.call("send_message", content="I have none.")
        await lead.call("send_message", content="Then red.", task_id=2)
        assert printed(await lead.call("get_messages")) == [("hand", "instruction", "I have none.")]
        assert printed(await hand.call("get_messages")) == [("lead", "instruction", "Then red.")]
        to = "(SELECT a.name FROM sessions s JOIN agents a ON a.id = s.agent_id WHERE s.id = m.to_session_id)"
        assert kept(project, f"m.content, m.status, {to}") == [
            (2, NOTE, "resolved", "hand"),
            (1, "I have none.", "read", "lead"),
            (2, "Then red.", "read", "hand"),
        ]
        await hand.call("update_task_status", task_id=2, status="in_progress", reason="atomic")
        await hand.write("one.txt", brief)
        await hand.call("report_completed")
    project.genba("work", "--until-empty", check=0)

    assert project.task(2).status == "done"
    assert [row for row in kept(project) if row[0] == 2] == [(2, "instruction", "resolved")] * 2


async def test_a_broadcast_is_received_once_by_each(team: Team, project: Project) -> None:
    async with team.member("lead", "--manager") as lead, team.member("hand") as hand, team.member("other") as other:
        project.genba("task", "add", "Write", "--assignee", "lead", check=0)
        project.genba("task", "add", "Something else", "--assignee", "other", check=0)
        await lead.begin()
        await other.begin()
        for title in ("one", "two"):
            await lead.call("create_task", title=title)
        for number in (3, 4):
            await lead.call("assign_task", task_id=number, agent="hand")
        sent = await lead.call("send_message", content="Stop at noon.", type="broadcast")
        assert (sent["to"], sent["tasks"]) == ("everybody", [2, 3])
        sent = await lead.call("send_message", content="Only ours.", type="broadcast", scope="tree")
        assert sent["tasks"] == [3]
        refused = await lead.refused("send_message", content="x", type="broadcast", to="hand")
        assert "a broadcast goes to all agents" in refused["message"]

        for member, expected in ((other, ["Stop at noon."]), (hand, ["Stop at noon.", "Only ours."])):
            if member is hand:
                await hand.begin()
            assert [text for _, _, text in printed(await member.call("get_messages"))] == expected
            assert printed(await member.call("get_messages")) == []
        assert printed(await lead.call("get_messages")) == []
        assert {row[1:] for row in kept(project)} == {("broadcast", "read")}
        assert rows(project, "SELECT count(*) FROM messages WHERE to_session_id IS NULL") == [(0,)]


async def test_the_prompt_names_a_worker_of_the_fleet(project: Project) -> None:
    project.write(".genba/config.yaml", QUICK)
    project.agent("plain", parameters={"issue": {"type": "number"}})
    team = Team(project, "http")
    async with team.member("lead", "--manager") as lead:
        project.genba("task", "add", "Write", "--assignee", "lead", check=0)
        await lead.begin()
        await lead.call("create_task", title="one")
        await lead.call("assign_task", task_id=2, agent="plain", note=NOTE)
        await lead.call("send_message", content="And quickly.", type="broadcast")
        project.genba("work", "--until-empty", check=0)
    team.close()

    [(run,)] = rows(project, "SELECT run FROM sessions WHERE task_id = 2")
    (prompt,) = project.prompts(run)
    assert f"instruction from lead on task #1:\n\n> {NOTE}" in prompt
    assert "broadcast from lead on task #1:\n\n> And quickly." in prompt
    assert {row[2] for row in kept(project)} == {"resolved"}
    assert rows(project, "SELECT count(*) FROM messages m JOIN sessions s ON s.id = m.to_session_id") == [(2,)]


async def test_managers_are_managers_on_the_blackboard_however_they_came(project: Project) -> None:
    project.write(".genba/config.yaml", QUICK)
    flow = {"flow": {"mode": "stateDriven", "hierarchy": "manager"}, "adapter": {"type": "custom", "command": "true"}}
    file = {"name": "boss", "description": "Leads", "parameters": {"issue": {"type": "number"}}, "runner": flow}
    project.write(".agent/boss/agent.json", json.dumps(file))
    project.write(".agent/boss/prompts/system.md", "You lead.\n")
    project.commit("A manager")
    project.genba("task", "add", "Write", "--assignee", "boss", check=0)
    team = Team(project, "http")
    team.register("lead", "--manager")
    team.register("hand")
    project.genba("work", "--until-empty")

    found = dict(rows(project, "SELECT name, hierarchy_type FROM agents"))
    assert found == {"boss": "manager", "lead": "manager", "hand": "worker"}


async def test_goals_of_a_manager_stay_its_own_when_a_person_approves_and_edits(project: Project) -> None:
    project.write(".genba/config.yaml", QUICK)
    project.commit("Settings")
    team = Team(project, "http")
    async with team.member("lead", "--manager") as lead, team.member("hand") as hand:
        project.genba("task", "add", "Write", "--assignee", "lead", check=0)
        project.genba("task", "edit", "1", "--agent-commands", check=0)
        await lead.begin()
        goals = ["file_exists:one.txt", "custom_script:test -f one.txt"]
        await lead.call("create_task", title="one", goals=goals)
        project.genba("task", "edit", "2", "--agent-commands", check=0)
        project.genba("task", "edit", "2", "--goal", "file_exists:README.md", check=0)
        await lead.call("assign_task", task_id=2, agent="hand")
        await hand.do("one.txt")
    team.close()

    found = rows(project, "SELECT type, source FROM task_goals WHERE task_id = 2 AND level = 'acceptance_criteria'")
    assert sorted(found) == [
        ("custom_script", "ai_inferred"),
        ("file_exists", "ai_inferred"),
        ("file_exists", "human_defined"),
    ]
    assert project.task(2).status == "review"
