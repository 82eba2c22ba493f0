"""The user's checkout is brought forward whenever nothing in it would be lost."""

import os

from tests.project import Project

WRITE = {"write": {"path": "README.md", "text": "from the agent\n"}}
TURN = {"do": [WRITE, {"commit": "Change the first lines"}], "reply": "done"}


def test_a_file_that_was_only_touched_is_no_change_in_the_way(project: Project) -> None:
    project.agent(script={"turns": [TURN]})
    os.utime(project.root / "README.md", (1, 1))

    result = project.run("worker")

    assert result["merge"] == "merged"
    assert project.read("README.md") == "from the agent\n"
    assert project.git("status", "--porcelain") == ""


def test_a_base_that_is_checked_out_elsewhere_is_brought_forward_there(project: Project) -> None:
    project.agent(script={"turns": [TURN]})
    project.git("switch", "-q", "-c", "mine")
    project.git("worktree", "add", "-q", str(project.root.parent / "elsewhere"), "main")

    result = project.run("worker", "--base-branch", "main")

    assert result["merge"] == "merged"
    assert (project.root.parent / "elsewhere" / "README.md").read_text() == "from the agent\n"
    assert project.read("README.md") != "from the agent\n"
