"""Runs behind each kind of walls, through the door of users: what is broken, and what is cut off."""

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

import genba
from genba.blackboard.fleet.fleet_board import FleetBoard
from genba.domain.sessions.sandbox import SandboxKind
from genba.testing.sandbox_integrity import FORGERIES_SCRIPT
from tests.blackboard.fleets import begin, to_review
from tests.project import COMMIT, GENBA, Project, ordinary_environment, until
from tests.sandbox.engines import engine_of
from tests.sandbox.hostile_runs import settle
from tests.test_supervision import living
from tests.walls import needs_bubblewrap

SOURCE = Path(genba.__file__).parents[1]


@pytest.fixture(params=list(SandboxKind)[1:])
def walled(
    request: pytest.FixtureRequest, project: Project, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Project]:
    """A project whose agents live behind one kind of walls."""
    if request.param is SandboxKind.BUBBLEWRAP:
        needs_bubblewrap()
        settle(project, kind="bubblewrap")
        yield project
        return
    own = tmp_path_factory.getbasetemp()
    with engine_of(request.param, own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) as engine:
        settle(project, kind=str(request.param))
        project.environment["GENBA_SANDBOX_OPTIONS"] = " ".join(engine.options)
        if engine.host:
            project.environment["DOCKER_HOST"] = engine.host
        yield project


def test_deleted_objects_are_told_and_the_repository_of_the_user_stays_whole(walled: Project) -> None:
    line = (
        "echo work > work.txt && git add -A && git commit -qm work && "
        "find $(git rev-parse --absolute-git-dir)/objects -type f -name '??????*' -delete; echo done"
    )
    walled.agent(adapter={"type": "custom", "command": line})
    result = walled.run("worker", check=1)
    assert result["outcome"] == "failed"
    assert "could not be brought back" in result["reason"] or "not whole" in result["reason"]
    assert "missing" not in walled.git("fsck", "--no-dangling")
    assert walled.git("status", "--short") == ""


def test_what_a_killed_run_left_is_ended_by_the_one_that_resumes_it(walled: Project) -> None:
    word = f"7{os.getpid()}.{id(walled) % 10**6}"
    again = walled.root.parent / "again"
    settle(walled, read=[str(walled.root.parent)], limits={"disk_mb": 50, "memory_mb": 400, "processes": 200})
    walled.agent(adapter={"type": "custom", "command": f"test -e {again} || sleep {word}; {COMMIT}"})
    process = subprocess.Popen(
        [str(GENBA), "run", "worker", "--quiet"],
        cwd=walled.root,
        env={**ordinary_environment(), **walled.environment},
        stderr=subprocess.DEVNULL,
    )
    until(lambda: living(word), 60)
    process.kill()
    process.wait()
    again.touch()
    run = json.loads(walled.genba("logs", "--json", check=0).out.splitlines()[0])["run"]
    assert walled.run("--resume", run)["outcome"] == "completed"
    assert living(word) == []


def test_no_filter_of_the_user_is_run_among_the_files_of_an_agent(walled: Project) -> None:
    trap = walled.root.parent / "trap"
    for name, command in (("clean", "tidy"), ("smudge", "tidy")):
        walled.git("config", f"filter.tidy.{name}", f"{sys.executable} -m {command}")
    walled.git("config", "filter.tidy.required", "true")
    planted = f"import pathlib, sys; pathlib.Path({str(trap)!r}).write_text('run'); sys.stdout.write(sys.stdin.read())"
    lines = (
        f"printf '%s' {shlex.quote(planted)} > tidy.py",
        "echo '*.txt filter=tidy' > .gitattributes",
        "echo one > one.txt; git add -A; git commit -qm one; echo two > two.txt",
    )
    walled.agent(adapter={"type": "custom", "command": "; ".join(lines), "commit": True})
    assert walled.run("worker", "--no-merge")["outcome"] == "completed"
    assert not trap.exists()


def test_a_goal_that_takes_too_much_is_missed_and_the_limit_is_named(walled: Project) -> None:
    settle(walled, limits={"memory_mb": 200})
    file = walled.root / ".genba" / "config.yaml"
    known = yaml.safe_load(file.read_text())
    hog = f"{sys.executable} -c 'x = [bytearray(10**8) for _ in range(9)]'"
    walled.write(".genba/config.yaml", yaml.safe_dump({**known, "dod": [{"custom_script": hog}]}))
    walled.agent(adapter={"type": "custom", "command": COMMIT})
    assert walled.run("worker", check=1)["outcome"] == "incomplete"
    details = [event["result"]["detail"] for event in walled.events() if event["event"] == "goal_checked"]
    assert any("sandbox.limits.memory_mb" in detail for detail in details), details


def test_a_goal_whose_code_forges_its_exit_code_is_missed(walled: Project) -> None:
    """The code takes the status of the first process, or rewrites its memory, so that it ends with 0."""
    file = walled.root / ".genba" / "config.yaml"
    known = yaml.safe_load(file.read_text())
    for forgery in ("getfd", "memory"):
        walled.write("forge.py", FORGERIES_SCRIPT)
        goals = [{"custom_script": f"{sys.executable} forge.py {forgery}"}]
        walled.write(".genba/config.yaml", yaml.safe_dump({**known, "dod": goals}))
        walled.agent(adapter={"type": "custom", "command": COMMIT})
        assert walled.run("worker", check=1)["outcome"] == "incomplete"


@pytest.mark.parametrize("files", [1, 2100])
def test_files_are_behind_walls_as_git_stores_them_and_stay_so(walled: Project, files: int) -> None:
    walled.write(".gitattributes", "*.txt filter=up\n")
    for number in range(files):
        walled.write(f"texts/{number}.txt", "hello\n")
    for name, letters in (("clean", "a-z A-Z"), ("smudge", "A-Z a-z")):
        walled.git("config", f"filter.up.{name}", f"tr {letters}")
    line = "cat texts/0.txt > seen; git status --short > state; git add -A; git commit -qm seen"
    walled.agent(adapter={"type": "custom", "command": line})
    assert walled.git("show", "main:texts/0.txt") == "HELLO"
    assert walled.run("worker")["outcome"] == "completed"
    assert walled.git("show", "main:texts/0.txt") == "HELLO"
    assert walled.git("show", "main:seen") == "HELLO"
    assert walled.git("show", "main:state") == "?? seen\n?? state"
    assert walled.git("status", "--short") == ""


def test_who_types_approve_behind_walls_approves_nothing(walled: Project) -> None:
    """`genba` can be run there; but the blackboard is outside, whatever the agent says of who it is."""
    settle(walled, read=[sys.prefix, sys.base_prefix, str(SOURCE)])
    walled.issue(1, "Sell the house")
    with walled.board() as board:
        fleet = FleetBoard(board)
        to_review(board, fleet, begin(fleet, 1), walled.git("rev-parse", "main"))
    before = walled.genba("task", "show", "1", "--json", check=0).json
    places = (".", shlex.quote(str(walled.root)))
    approve = f"env -u GENBA_RUN -u GENBA_AGENT {sys.executable} -m genba"
    lines = [f"(cd {place} && {approve} {words} 1)" for place in places for words in ("approve", "task approve")]
    line = "; ".join(f'{each} >> told 2>&1; echo "exit $?" >> told' for each in lines)
    walled.agent(adapter={"type": "custom", "command": f"{line}; git add -A; git commit -qm told"})

    branch = walled.run("worker", "--no-merge")["branch"]

    result = walled.git("show", f"{branch}:told")
    assert result.count("error: this project has no tasks yet") == 2, result
    assert result.count("is not inside a git repository") == 2, result
    assert "exit 0" not in result
    assert walled.genba("task", "show", "1", "--json", check=0).json == before
    walled.genba("approve", "1", check=0)
    assert walled.genba("task", "show", "1", "--json", check=0).json != before, "a person approves it"
