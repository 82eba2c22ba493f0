"""Goals run in the sandbox that the work was made in, whichever command checks them."""

import sys
from pathlib import Path

import pytest
import yaml

from tests.bubblewrap import needs_bubblewrap
from tests.project import COMMIT, Project

ASK = """import os, socket, sys
proxy = os.environ.get("HTTP_PROXY", "")
if not proxy:
    sys.exit("no proxy")
host, port = proxy.removeprefix("http://").split(":")
with socket.create_connection((host, int(port)), timeout=20) as connection:
    connection.sendall(b"CONNECT any.invalid:443 HTTP/1.1\\r\\nHost: any.invalid\\r\\n\\r\\n")
    print(connection.recv(4096).split(b"\\r\\n")[0].decode())
"""
AGAIN = "echo $$ > again.txt && git add -A && git commit -qm Again"


@pytest.fixture
def project(project: Project) -> Project:
    """On this machine a project has no sandbox, unless one is named."""
    needs_bubblewrap()
    project.environment["GENBA_SANDBOX"] = "worktree"
    return project


def outside(project: Project) -> Path:
    return project.root.parent / "outside"


def settings(project: Project, goal: str, **sections: object) -> None:
    project.write(".genba/config.yaml", yaml.safe_dump({**sections, "dod": [{"custom_script": goal}]}))


def marking(project: Project) -> None:
    """A goal that marks a file of the host, where it can."""
    settings(project, f"echo $GENBA_AGENT >> {outside(project)}; true", work={"agent": "worker"})


def worker(project: Project, line: str = COMMIT, **sandbox: object) -> None:
    project.agent(adapter={"type": "custom", "command": line}, sandbox=sandbox)


def test_genba_verify_checks_work_in_the_sandbox_of_its_agent(project: Project) -> None:
    marking(project)
    worker(project, kind="bubblewrap")
    project.issue(1, "Add work")
    branch = project.run("worker", "--issue", "1", "--no-merge")["branch"]
    for args in (("1",), (branch,), (project.git("rev-parse", branch),)):
        project.genba("verify", *args, "--fresh", check=0)
    assert not outside(project).exists()


def test_genba_verify_checks_work_in_the_sandbox_that_the_command_line_named(project: Project) -> None:
    marking(project)
    worker(project)
    project.issue(1, "Add work")
    branch = project.run("worker", "--issue", "1", "--no-merge", "--sandbox", "bubblewrap")["branch"]
    for args in (("1",), (branch,)):
        project.genba("verify", *args, "--fresh", check=0)
    assert not outside(project).exists()


def test_the_merge_queue_checks_work_in_the_sandbox_of_its_agent(project: Project) -> None:
    marking(project)
    worker(project, AGAIN, kind="bubblewrap")
    for number in (1, 2):
        project.issue(number, "Add work", scope=("again.txt",))
    project.genba("work", "--until-empty", "--workers", "2", check=None)
    assert {project.task(number).status for number in (1, 2)} & {"done"}
    assert not outside(project).exists()


def test_without_any_sandbox_goals_run_as_the_user(project: Project) -> None:
    """What the other tests look at is there."""
    marking(project)
    worker(project)
    project.run("worker", "--no-merge")
    assert outside(project).exists()


def test_goals_reach_no_more_than_the_agent_whose_work_they_check(project: Project) -> None:
    project.write("ask.py", ASK)
    ask = f"{sys.executable} ask.py 2>&1"
    allowed = {"kind": "bubblewrap", "allow": ["any.invalid"]}
    for sandbox, answer in (({"network": "none"}, "no proxy"), ({"allow": []}, "403"), ({}, "502")):
        settings(project, f"{ask} | grep -q '{answer}'", sandbox=allowed)
        worker(project, AGAIN, **sandbox)
        branch = project.run("worker", "--no-merge")["branch"]
        project.genba("verify", branch, "--fresh", check=0)

    settings(project, f"{ask} | grep -q 502", sandbox=allowed, verification={"network": "allowlist"})
    worker(project, AGAIN, network="none")
    assert project.run("worker", "--no-merge")["outcome"] == "completed"
