import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.project import Project

Freeze = Callable[[Path], None]


@pytest.fixture
def freeze() -> Iterator[Freeze]:
    """Makes folders read-only for the time of a test: by their mode, and for root by a mount."""
    mounted: list[Path] = []
    changed: list[Path] = []

    def take_away(folder: Path) -> None:
        if os.geteuid() != 0:
            for path in (folder, *folder.rglob("*")):
                path.chmod(0o555 if path.is_dir() else 0o444)
                changed.append(path)
            return
        if subprocess.run(["mount", "--bind", folder, folder], check=False, capture_output=True).returncode != 0:
            pytest.skip("not run: nothing can be mounted here, and root may write everywhere else")
        mounted.append(folder)
        subprocess.run(["mount", "-o", "remount,ro,bind", folder], check=True)

    yield take_away
    for folder in mounted:
        subprocess.run(["umount", folder], check=True)
    for path in changed:
        path.chmod(0o755 if path.is_dir() else 0o644)


def test_a_blackboard_that_cannot_be_written_is_read_all_the_same(project: Project, freeze: Freeze) -> None:
    project.genba("task", "add", "Move the till", check=0)
    freeze(project.root / ".genba")

    assert "Move the till" in project.genba("task", "list", check=0).out
    assert "Move the till" in project.genba("task", "show", "1", check=0).out
    for word in ("sessions", "queue", "decisions"):
        project.genba(word, check=0)
    for words in (("task", "add", "Another"), ("pause",)):
        refused = project.genba(*words, check=5)
        assert "cannot be opened and written" in refused.err
        assert "nothing was changed." in refused.err
        assert "hint: see who may write it: ls -ld " in refused.err
    assert "genba.db.executor.lock" in project.genba("work", "--until-empty", check=5).err


def test_settings_that_cannot_be_written_are_not_begun(project: Project, freeze: Freeze) -> None:
    (project.root / ".genba").mkdir()
    freeze(project.root / ".genba")
    refused = project.genba("init", check=5)
    assert ".genba/config.yaml cannot be written: " in refused.err
    assert "nothing was changed." in refused.err
    assert f"ls -ld {project.root / '.genba'}" in refused.err


def test_what_cannot_be_written_down_is_not_run(project: Project, freeze: Freeze) -> None:
    project.agent("worker", parameters={"issue": {"type": "number"}})
    project.write(".genba/config.yaml", "work: {agent: worker}\n")
    project.commit("Set up")
    project.genba("task", "add", "Move the till", check=0)
    own = project.root / ".git" / "genba"
    own.mkdir(exist_ok=True)
    freeze(own)

    for words in (("work", "--until-empty"), ("run", "worker", "--issue", "1")):
        refused = project.genba(*words, check=5)
        assert ".git/genba cannot be written, and Genba keeps its records there" in refused.err
        assert "hint: see who may write it: ls -ld " in refused.err
    assert "Move the till" in project.genba("task", "list", check=0).out
