"""runner.boundaries: what an instance may do."""

from pathlib import Path
from typing import Any

from tests.fields.flows import STEP_MACHINE, idle, leads_to, work
from tests.project import Project, says


def asking_its_environment(project: Project, **runner: Any) -> str:
    line = 'echo "$GENBA_PERMISSION_MODE|$GENBA_ALLOWED_TOOLS|"{permission_mode}"|"{allowed_tools} > told.txt'
    project.agent(adapter={"type": "custom", "command": line, "commit": True}, **runner)
    project.run("worker", "--i-accept-the-risk")
    return project.read("told.txt").strip()


def test_a_tool_that_is_not_allowed_fails_the_run(project: Project) -> None:
    project.agent(boundaries={"allowedTools": ["Read", "Edit"]}, script={"turns": [work(tools=["Read", "Bash"])]})
    result = project.run("worker", check=1)
    assert result["outcome"] == "failed"
    assert result["reason"] == 'the agent used "Bash", which runner.boundaries.allowedTools does not list'
    assert not Path(project.root / "work.txt").exists()


def test_allowed_tools_may_be_used(project: Project) -> None:
    project.agent(boundaries={"allowedTools": ["Read", "Bash"]}, script={"turns": [work(tools=["Read", "Bash"])]})
    assert project.run("worker")["outcome"] == "completed"


def test_without_a_list_any_tool_may_be_used(project: Project) -> None:
    project.agent(script={"turns": [work(tools=["Anything"])]})
    assert project.run("worker")["outcome"] == "completed"


def test_no_tool_may_be_used_when_the_list_is_empty(project: Project) -> None:
    project.agent(boundaries={"allowedTools": []}, script={"turns": [work(tools=["Read"])]})
    assert project.run("worker", check=1)["outcome"] == "failed"


def test_the_allowed_tools_reach_the_command(project: Project) -> None:
    result = asking_its_environment(project, boundaries={"allowedTools": ["Read", "Edit"]})
    assert result == "acceptEdits|Read,Edit|acceptEdits|Read,Edit"


def test_the_permission_mode_reaches_the_command(project: Project) -> None:
    result = asking_its_environment(project, boundaries={"permissionMode": "bypassPermissions"})
    assert result == "bypassPermissions||bypassPermissions|"


def test_a_step_narrows_the_permission_mode(project: Project) -> None:
    result = asking_its_environment(project, steps={"work": {"permissionMode": "plan"}})
    assert result == "plan||plan|"


def test_a_step_cannot_widen_the_permission_mode(project: Project) -> None:
    project.agent(boundaries={"permissionMode": "plan"}, steps={"work": {"permissionMode": "acceptEdits"}})
    done = project.genba("run", "worker", check=3)
    assert "steps.work.permissionMode" in done.err
    assert '"acceptEdits" is wider than the agent\'s "plan"' in done.err


def test_a_tool_that_is_not_allowed_fails_the_run_in_a_later_step_too(project: Project) -> None:
    project.agent(
        completion=STEP_MACHINE,
        boundaries={"allowedTools": ["Read"]},
        steps={"first": leads_to("second"), "second": leads_to(None)},
        registry={"entryStep": "first"},
        script={"turns": [work(says("next"), tools=["Read"]), idle(says("next"), tools=["WebFetch"])]},
    )
    assert '"WebFetch"' in project.run("worker", check=1)["reason"]


def test_an_entry_that_says_what_a_tool_is_for_allows_the_tool(project: Project) -> None:
    allowed = {"allowedTools": ["Bash(git *)", "mcp__orchard"]}
    project.agent(boundaries=allowed, script={"turns": [work(tools=["Bash", "mcp__orchard__pick"])]})
    assert project.run("worker")["outcome"] == "completed"
    project.agent(boundaries=allowed, script={"turns": [work(tools=["mcp__orchards__pick"])]})
    assert 'used "mcp__orchards__pick"' in project.run("worker", check=1)["reason"]
