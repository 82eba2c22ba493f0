"""Agents that connected by themselves, through the real server: a manager, its workers, and their messages."""

import asyncio
import contextlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from mcp import Client

from tests import preloaded
from tests.mcp.team import QUICK, Member, Team, rows, started
from tests.preloaded import GENBA, ordinary_environment
from tests.project import Project, until

GOALS = ("--goal", "file_exists:one.txt", "--goal", "file_exists:two.txt")


@pytest.fixture(params=["stdio", "http"])
def team(request: pytest.FixtureRequest, project: Project) -> Iterator[Team]:
    project.write(".genba/config.yaml", QUICK)
    project.commit("Settings")
    made = Team(project, request.param)
    yield made
    made.close()


async def test_the_task_of_a_manager_that_connected_by_itself_is_merged(team: Team, project: Project) -> None:
    async with team.member("lead", "--manager") as lead, team.member("hand") as hand:
        project.genba("task", "add", "Write two files", "--assignee", "lead", *GOALS, check=0)
        await lead.begin()
        assert await lead.next() == "create_subtasks"
        for name in ("one", "two"):
            await lead.call("create_task", title=name)
        for number in (2, 3):
            assert await lead.next() == "delegate"
            await lead.call("assign_task", task_id=number, agent="hand")
        assert await lead.next() == "wait"
        await hand.do("one.txt")
        await hand.do("two.txt")
        project.genba("work", "--until-empty", check=0)
        assert [project.task(number).status for number in (2, 3)] == ["done", "done"]

        assert await lead.next() == "report_completion"
        claim = await lead.call("report_completed")
        assert claim["verified"]
        assert project.task(1).status == "review"
        assert await lead.next() == "exit completed"
        assert await lead.next() == "exit no_task"
    project.genba("work", "--until-empty", check=0)

    assert project.task(1).status == "done"
    assert {"one.txt", "two.txt"} <= set(project.git("ls-tree", "--name-only", "main").splitlines())
    assert project.branches() == ["main"]
    own = rows(project, "SELECT purpose, status, outcome, verified FROM sessions WHERE task_id = 1 ORDER BY id")
    assert own[0][:3] == ("manage", "ended", "completed")
    assert own[1:] == [("integrate", "ended", "completed", claim["commit"])]


async def test_what_an_outside_manager_claimed_lands_once_though_server_and_fleet_are_killed(project: Project) -> None:
    """Killed while the claim is verified, after it, and while the merge is verified."""
    hold, seen = project.root.parent / "hold", project.root.parent / "seen"
    script = f"touch {seen}; while [ -e {hold} ]; do sleep 0.02; done; test -f one.txt"
    project.write(".genba/config.yaml", QUICK)
    project.commit("Settings")
    team = Team(project, "http")
    async with team.member("lead", "--manager") as lead, team.member("hand") as hand:
        project.genba("task", "add", "Write", "--assignee", "lead", "--goal", f"custom_script:{script}", check=0)
        await lead.begin()
        await lead.call("create_task", title="one")
        await lead.call("assign_task", task_id=2, agent="hand")
        await hand.do("one.txt")
    project.genba("work", "--until-empty", check=0)
    hold.touch()
    port = int(team.url.rpartition(":")[2].partition("/")[0])

    with contextlib.suppress(Exception):  # the claim that is cut off has no answer
        async with Client(team.url) as client:
            again = Member(project, client, lead.token)
            assert await again.next() == "report_completion"
            claim = asyncio.create_task(again.call("report_completed"))
            await asyncio.to_thread(until, seen.exists)
            team.kill()
            await claim
    assert project.task(1).status == "in_progress"
    hold.unlink()
    server, url = await asyncio.to_thread(started, project, port)
    async with Client(url) as client:
        again = Member(project, client, lead.token)
        assert await again.next() == "report_completion"
        assert (await again.call("report_completed"))["verified"]
        server.kill()
    server.wait()
    assert project.task(1).status == "review"

    project.write("README.md", "# Changed meanwhile\n")
    project.commit("Meanwhile")
    seen.unlink()
    hold.touch()
    await asyncio.to_thread(_killed_when, project, seen)
    hold.unlink()
    project.genba("work", "--until-empty", check=0)

    assert project.task(1).status == "done"
    assert "one.txt" in project.git("ls-tree", "--name-only", "main").splitlines()
    assert len(rows(project, "SELECT id FROM merge_entries WHERE target = 'main' AND status = 'merged'")) == 1
    own = rows(project, "SELECT purpose, outcome FROM sessions WHERE task_id = 1 ORDER BY id")
    assert own == [("manage", "completed"), ("integrate", "completed")]
    assert project.branches() == ["main"]
    assert len(project.git("worktree", "list").splitlines()) == 1


def _killed_when(project: Project, sign: Path) -> None:
    """A fleet that is killed as soon as a file is there."""
    environment = {**ordinary_environment(), **project.environment}
    words = [str(GENBA), "work", "--until-empty"]
    with (project.root.parent / "work.log").open("wb") as log:
        fleet = preloaded.start(words, cwd=project.root, env=environment, stdout=log.fileno(), stderr=log.fileno())
    until(sign.exists)
    fleet.kill()
    fleet.wait()


async def test_a_manager_whose_branch_conflicts_reworks_it_and_it_is_merged(team: Team, project: Project) -> None:
    async with team.member("lead", "--manager") as lead, team.member("hand") as hand:
        project.genba("task", "add", "Write a file", "--assignee", "lead", "--goal", "file_exists:one.txt", check=0)
        await lead.begin()
        await lead.call("create_task", title="one")
        await lead.call("assign_task", task_id=2, agent="hand")
        await hand.do("one.txt")
        project.genba("work", "--until-empty", check=0)
        assert await lead.next() == "report_completion"
        first = await lead.call("report_completed")
        assert await lead.next() == "exit completed"
        project.write("one.txt", "of somebody else\n")
        project.commit("Meanwhile")
        project.genba("work", "--until-empty")
        assert project.task(1).status == "open"

        await lead.begin()
        action = await lead.call("get_next_action")
        assert action["action"] == "rework"
        assert action["evidence"]["failing"] == ["one.txt"]
        assert action["evidence"]["commit"] == first["commit"]
        assert "merge main" in action["instruction"]
        await lead.call("create_tasks_batch", tasks=[{"title": "Merge main", "body": "Resolve one.txt."}], key="fix")
        assert await lead.next() == "delegate"
        await lead.call("assign_task", task_id=3, agent="hand")
        await _resolved(hand, project)
        project.genba("work", "--until-empty", check=0)
        assert await lead.next() == "report_completion"
        assert (await lead.call("report_completed"))["verified"]
        assert await lead.next() == "exit completed"
    project.genba("work", "--until-empty", check=0)

    assert project.task(1).status == "done"
    assert project.git("show", "main:one.txt").splitlines() == ["of somebody else", "one.txt"]
    assert project.branches() == ["main"]
    assert len(project.git("worktree", "list").splitlines()) == 1


async def _resolved(hand: Member, project: Project) -> None:
    """The next task of a worker: it merges main into its branch, and keeps both sides."""
    brief = await hand.begin()
    number, tree = brief["task"]["number"], Path(brief["path"])
    await hand.call("update_task_status", task_id=number, status="in_progress", reason="atomic")
    me = ("-c", "user.name=me", "-c", "user.email=me@localhost")
    with contextlib.suppress(subprocess.CalledProcessError):
        project.git(*me, "merge", "main", cwd=tree)
    (tree / "one.txt").write_text("of somebody else\none.txt\n", encoding="utf-8")
    project.git("add", "-A", cwd=tree)
    project.git(*me, "commit", "-qm", "Merge main", cwd=tree)
    assert (await hand.call("report_completed"))["verified"]
    assert await hand.next() == "exit completed"
