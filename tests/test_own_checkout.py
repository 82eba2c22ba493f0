from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tests.fields.test_tool_adapters import Tool
from tests.project import Project, until

IN_PLACE: dict[str, Any] = {"execution": {"worktree": {"enabled": False}}}
COMMITS = "echo made >> made.txt; git add made.txt; git commit -qm made"


def agent(project: Project, command: str = COMMITS, commit: bool = False, **runner: Any) -> None:
    adapter = {"type": "custom", "command": f"cat > /dev/null; {command}; echo Done", "commit": commit}
    project.agent(
        completion={"type": "iterationBudget", "config": {"maxIterations": 1}}, adapter=adapter, **IN_PLACE, **runner
    )


def committed(project: Project) -> set[str]:
    return set(project.git("log", "--name-only", "--format=").split())


def test_a_checkout_with_changes_is_refused_before_anything_starts(project: Project) -> None:
    agent(project)
    project.write("README.md", "my own words\n")
    project.write("notes.txt", "not for anybody\n")
    head, status = project.git("rev-parse", "HEAD"), project.git("status", "--porcelain")
    refused = project.genba("run", "worker", check=5)
    assert "uncommitted changes: README.md, notes.txt" in refused.err
    assert "nothing was started, nothing was changed." in refused.err
    assert "git stash -u" in refused.err
    assert (project.git("rev-parse", "HEAD"), project.git("status", "--porcelain")) == (head, status)
    assert project.genba("sessions", "--all", "--json").json == [], "no session was begun"


def test_an_adapter_that_has_genba_commit_is_refused(project: Project) -> None:
    agent(project, "echo made > made.txt", commit=True)
    refused = project.genba("run", "worker", check=3)
    assert "runner.adapter.commit: needs a working tree of its own" in refused.err
    assert "runner.execution.worktree.enabled: true" in refused.err
    assert "runner.adapter.commit" in project.genba("agent", "check", "worker", check=3).err
    assert project.git("status", "--porcelain") == ""


def test_what_the_agent_committed_counts(project: Project) -> None:
    agent(project)
    assert project.run("worker")["outcome"] == "completed"
    assert project.git("show", "--format=", "--name-only", "HEAD") == "made.txt"


def test_a_file_that_the_user_writes_during_the_session_is_named_and_not_committed(
    project: Project, tmp_path: Path
) -> None:
    here, go = tmp_path / "here", tmp_path / "go"
    agent(project, f"{COMMITS}; touch {here}; until [ -e {go} ]; do sleep 0.02; done")
    with ThreadPoolExecutor() as pool:
        running = pool.submit(project.run, "worker", check=1)
        until(here.exists)
        project.write("later.txt", "of the user\n")
        go.touch()
        result = running.result()
    assert result["outcome"] == "incomplete"
    assert result["reason"].endswith("it has changes that are not committed: later.txt")
    assert f"genba run --resume {result['run']}" in result["hint"]
    assert committed(project) & {"made.txt", "later.txt"} == {"made.txt"}

    project.git("stash", "-qu")
    assert project.run("--resume", result["run"])["outcome"] == "completed"


def test_what_a_tool_left_uncommitted_is_named_and_not_committed(project: Project) -> None:
    """Elsewhere Genba commits what this tool changed."""
    Tool(project, "claude-code").choose(agent=IN_PLACE)
    result = project.run("worker", check=1)
    assert (result["outcome"], "work.txt" in result["reason"]) == ("incomplete", True)
    assert project.git("status", "--porcelain") == "?? work.txt"


def test_an_agent_that_only_reads_leaves_the_changes_of_the_user_as_they_are(project: Project) -> None:
    agent(project, "true", commit=True, boundaries={"permissionMode": "plan"})
    project.write("notes.txt", "mine\n")
    assert project.run("worker")["outcome"] == "completed"
    assert project.git("status", "--porcelain") == "?? notes.txt"


def test_a_session_that_goes_on_refuses_what_was_changed_meanwhile(project: Project) -> None:
    agent(project, "exit 9")
    quick = ("--set", "runner.limits.retries=0")
    run = project.run("worker", *quick, check=1)["run"]
    project.write("notes.txt", "mine\n")
    refused = project.genba("run", "--resume", run, check=5)
    assert "uncommitted changes: notes.txt" in refused.err
    assert project.git("status", "--porcelain") == "?? notes.txt"
