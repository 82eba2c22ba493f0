from pathlib import Path

from mcp import Client, StdioServerParameters

from tests.mcp.door import report
from tests.preloaded import GENBA, ordinary_environment
from tests.project import Project


async def test_an_external_agent_goes_from_a_task_to_merged_work(project: Project) -> None:
    words = ("--body", "Write hello.txt with one line in it.", "--goal", "file_exists:hello.txt")
    project.genba("task", "add", "Say hello", *words, check=0)
    welcome = project.genba("agent", "register", "me", "--json", check=0).json
    carried = {"GENBA_AGENT_ID": welcome["agent"]["id"], "GENBA_PASSKEY": welcome["passkey"]}
    server = StdioServerParameters(
        command=str(GENBA),
        args=["mcp"],
        cwd=project.root,
        env={**ordinary_environment(), **project.environment, **carried},
    )

    async with Client(server) as client:
        report(await client.call_tool("authenticate", {}))
        assert report(await client.call_tool("get_next_action", {}))["action"] == "get_task"
        tree = Path(report(await client.call_tool("get_my_task", {}))["path"])
        assert report(await client.call_tool("get_next_action", {}))["action"] == "create_subtasks"
        atomic = {"task_id": 1, "status": "in_progress", "reason": "atomic"}
        report(await client.call_tool("update_task_status", atomic))
        assert not report(await client.call_tool("report_completed", {}))["verified"]
        assert report(await client.call_tool("get_next_action", {}))["action"] == "rework"
        (tree / "hello.txt").write_text("hello\n", encoding="utf-8")
        project.git("add", "-A", cwd=tree)
        project.git("-c", "user.name=me", "-c", "user.email=me@localhost", "commit", "-qm", "hello", cwd=tree)
        assert report(await client.call_tool("report_completed", {}))["verified"]
        assert report(await client.call_tool("get_next_action", {}))["action"] == "exit"
        report(await client.call_tool("logout", {}))
    project.genba("work", "--until-empty", check=0)

    assert project.git("show", "main:hello.txt") == "hello"
    assert project.task(1).status == "done"
