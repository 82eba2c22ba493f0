"""The actions of a worker and of a manager, in their order, through the real server: names, fields and phases."""

from typing import Any

import pytest

from tests.mcp.team import QUICK, Member, Team, rows
from tests.project import Project

PHASES = """
SELECT c.progress FROM contexts c WHERE c.task_id = {} AND c.progress LIKE 'workflow:%'
  AND c.progress <> 'workflow:atomic' ORDER BY c.id
"""


def phases(project: Project, task: int) -> list[str]:
    return [str(row[0]).removeprefix("workflow:") for row in rows(project, PHASES.format(task))]


async def planned(member: Member, *titles: str) -> dict[str, Any]:
    """From authentication to the plan, which is the same for workers and managers."""
    action = await member.call("get_next_action")
    assert (action["action"], action["tools"]) == ("get_task", ["get_my_task"])
    await member.call("get_my_task")
    action = await member.call("get_next_action")
    assert action["action"] == "create_subtasks"
    assert action["task"]["title"] == "Write"
    for title in titles:
        await member.call("create_task", title=title)
    return await member.call("get_next_action")


@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_a_worker_carries_out_its_subtasks_one_after_the_other(project: Project, transport: str) -> None:
    project.write(".genba/config.yaml", QUICK)
    project.commit("Settings")
    team = Team(project, transport)
    async with team.member("hand") as hand:
        project.genba("task", "add", "Write", "--assignee", "hand", check=0)
        await planned(hand, "one", "two")
        brief = await hand.call("get_my_task")
        for number, title in ((2, "one"), (3, "two")):
            for action, status in (("start_subtask", "in_progress"), ("execute_subtask", "done")):
                result = await hand.call("get_next_action")
                assert (result["action"], result["subtask"]["number"]) == (action, number)
                if status == "done":
                    await hand.write(title, brief)
                await hand.call("update_task_status", task_id=number, status=status)
        assert await hand.next() == "report_completion"
        assert (await hand.call("report_completed"))["verified"]
        assert await hand.next() == "exit completed"
    team.close()

    assert phases(project, 1) == ["task_fetched", "subtasks_created", "executing", "completed"]


async def test_a_manager_gives_its_subtasks_away_and_waits(project: Project) -> None:
    project.write(".genba/config.yaml", QUICK)
    project.commit("Settings")
    team = Team(project, "http")
    async with team.member("lead", "--manager") as lead, team.member("hand") as hand:
        project.genba("task", "add", "Write", "--assignee", "lead", check=0)
        result = await planned(lead, "one")
        assert (result["action"], result["next_subtask"]["number"]) == ("delegate", 2)
        await lead.call("assign_task", task_id=2, agent="hand")
        await hand.begin()
        result = await lead.call("get_next_action")
        assert (result["action"], [one["number"] for one in result["in_progress"]]) == ("wait", [2])
        refused = await lead.refused("update_task_status", task_id=2, status="done")
        assert refused["code"] == "out_of_order"
    team.close()

    assert phases(project, 1) == ["task_fetched", "subtasks_created", "executing"]
