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
from tests.bubblewrap import needs_bubblewrap
from tests.project import COMMIT, GENBA, Project, ordinary_environment, until
from tests.sandbox.engines import engine_of
from tests.sandbox.hostile_runs import settle
from tests.test_supervision import living

SOURCE = Path(genba.__file__).parents[1]


@pytest.fixture(params=list(SandboxKind)[1:])
def sandboxed(
    request: pytest.FixtureRequest, project: Project, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Project]:
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


def test_deleted_objects_are_reported_and_the_repository_of_the_user_stays_whole(sandboxed: Project) -> None:
    line = (
        "echo work > work.txt && git add -A && git commit -qm work && "
        "find $(git rev-parse --absolute-git-dir)/objects -type f -name '??????*' -delete; echo done"
    )
    sandboxed.agent(adapter={"type": "custom", "command": line})
    result = sandboxed.run("worker", check=1)
    assert result["outcome"] == "failed"
    assert "could not be brought back" in result["reason"] or "not whole" in result["reason"]
    assert "missing" not in sandboxed.git("fsck", "--no-dangling")
    assert sandboxed.git("status", "--short") == ""


def test_what_a_killed_run_left_is_ended_by_the_one_that_resumes_it(sandboxed: Project) -> None:
    arg = f"7{os.getpid()}.{id(sandboxed) % 10**6}"
    again = sandboxed.root.parent / "again"
    settle(sandboxed, read=[str(sandboxed.root.parent)], limits={"disk_mb": 50, "memory_mb": 400, "processes": 200})
    sandboxed.agent(adapter={"type": "custom", "command": f"test -e {again} || sleep {arg}; {COMMIT}"})
    process = subprocess.Popen(
        [str(GENBA), "run", "worker", "--quiet"],
        cwd=sandboxed.root,
        env={**ordinary_environment(), **sandboxed.environment},
        stderr=subprocess.DEVNULL,
    )
    until(lambda: living(arg), 60)
    process.kill()
    process.wait()
    again.touch()
    run = json.loads(sandboxed.genba("logs", "--json", check=0).out.splitlines()[0])["run"]
    assert sandboxed.run("--resume", run)["outcome"] == "completed"
    assert living(arg) == []


def test_no_filter_of_the_user_is_run_among_the_files_of_an_agent(sandboxed: Project) -> None:
    trap = sandboxed.root.parent / "trap"
    for name, command in (("clean", "tidy"), ("smudge", "tidy")):
        sandboxed.git("config", f"filter.tidy.{name}", f"{sys.executable} -m {command}")
    sandboxed.git("config", "filter.tidy.required", "true")
    planted = f"import pathlib, sys; pathlib.Path({str(trap)!r}).write_text('run'); sys.stdout.write(sys.stdin.read())"
    lines = (
        f"printf '%s' {shlex.quote(planted)} > tidy.py",
        "echo '*.txt filter=tidy' > .gitattributes",
        "echo one > one.txt; git add -A; git commit -qm one; echo two > two.txt",
    )
    sandboxed.agent(adapter={"type": "custom", "command": "; ".join(lines), "commit": True})
    assert sandboxed.run("worker", "--no-merge")["outcome"] == "completed"
    assert not trap.exists()


def test_a_goal_that_takes_too_much_is_missed_and_the_limit_is_named(sandboxed: Project) -> None:
    settle(sandboxed, limits={"memory_mb": 200})
    file = sandboxed.root / ".genba" / "config.yaml"
    known = yaml.safe_load(file.read_text())
    hog = f"{sys.executable} -c 'x = [bytearray(10**8) for _ in range(9)]'"
    sandboxed.write(".genba/config.yaml", yaml.safe_dump({**known, "dod": [{"custom_script": hog}]}))
    sandboxed.agent(adapter={"type": "custom", "command": COMMIT})
    assert sandboxed.run("worker", check=1)["outcome"] == "incomplete"
    details = [event["result"]["detail"] for event in sandboxed.events() if event["event"] == "goal_checked"]
    assert any("sandbox.limits.memory_mb" in detail for detail in details), details


def test_a_goal_whose_code_forges_its_exit_code_is_missed(sandboxed: Project) -> None:
    """The code takes the status of the first process, or rewrites its memory, so that it ends with 0."""
    file = sandboxed.root / ".genba" / "config.yaml"
    known = yaml.safe_load(file.read_text())
    for forgery in ("getfd", "memory"):
        sandboxed.write("forge.py", FORGERIES_SCRIPT)
        goals = [{"custom_script": f"{sys.executable} forge.py {forgery}"}]
        sandboxed.write(".genba/config.yaml", yaml.safe_dump({**known, "dod": goals}))
        sandboxed.agent(adapter={"type": "custom", "command": COMMIT})
        assert sandboxed.run("worker", check=1)["outcome"] == "incomplete"


@pytest.mark.parametrize("files", [1, 2100])
def test_files_are_in_the_sandbox_as_git_stores_them_and_stay_so(sandboxed: Project, files: int) -> None:
    sandboxed.write(".gitattributes", "*.txt filter=up\n")
    for number in range(files):
        sandboxed.write(f"texts/{number}.txt", "hello\n")
    for name, letters in (("clean", "a-z A-Z"), ("smudge", "A-Z a-z")):
        sandboxed.git("config", f"filter.up.{name}", f"tr {letters}")
    line = "cat texts/0.txt > seen; git status --short > state; git add -A; git commit -qm seen"
    sandboxed.agent(adapter={"type": "custom", "command": line})
    assert sandboxed.git("show", "main:texts/0.txt") == "HELLO"
    assert sandboxed.run("worker")["outcome"] == "completed"
    assert sandboxed.git("show", "main:texts/0.txt") == "HELLO"
    assert sandboxed.git("show", "main:seen") == "HELLO"
    assert sandboxed.git("show", "main:state") == "?? seen\n?? state"
    assert sandboxed.git("status", "--short") == ""


def test_approve_in_the_sandbox_approves_nothing(sandboxed: Project) -> None:
    """`genba` can be run there; but the blackboard is outside, whatever the agent says of who it is."""
    settle(sandboxed, read=[sys.prefix, sys.base_prefix, str(SOURCE)])
    sandboxed.issue(1, "Sell the house")
    with sandboxed.board() as board:
        fleet = FleetBoard(board)
        to_review(board, fleet, begin(fleet, 1), sandboxed.git("rev-parse", "main"))
    before = sandboxed.genba("task", "show", "1", "--json", check=0).json
    places = (".", shlex.quote(str(sandboxed.root)))
    approve = f"env -u GENBA_RUN -u GENBA_AGENT {sys.executable} -m genba"
    lines = [f"(cd {place} && {approve} {args} 1)" for place in places for args in ("approve", "task approve")]
    line = "; ".join(f'{each} >> told 2>&1; echo "exit $?" >> told' for each in lines)
    sandboxed.agent(adapter={"type": "custom", "command": f"{line}; git add -A; git commit -qm told"})

    branch = sandboxed.run("worker", "--no-merge")["branch"]

    result = sandboxed.git("show", f"{branch}:told")
    assert result.count("error: this project has no tasks yet") == 2, result
    assert result.count("is not inside a git repository") == 2, result
    assert "exit 0" not in result
    assert sandboxed.genba("task", "show", "1", "--json", check=0).json == before
    sandboxed.genba("approve", "1", check=0)
    assert sandboxed.genba("task", "show", "1", "--json", check=0).json != before, "a person approves it"
