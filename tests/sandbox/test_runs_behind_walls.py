"""Runs behind each kind of walls, through the door of users: what is broken, and what is cut off."""

import json
import os
import subprocess
from collections.abc import Iterator

import pytest

from genba.domain.walls import SandboxKind
from tests.project import COMMIT, GENBA, Project, ordinary_environment, until
from tests.sandbox.engines import engine_of
from tests.sandbox.hostile_runs import settle
from tests.test_supervision import living
from tests.walls import needs_bubblewrap


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
        settle(project, kind=str(request.param), options=list(engine.options))
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
