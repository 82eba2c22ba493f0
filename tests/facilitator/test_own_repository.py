"""The repository that this test lies in is judged as any other: a clone of it, with its whole history."""

import subprocess
from pathlib import Path

import pytest

from tests.project import Project

ROOT = Path(__file__).parents[2]


@pytest.fixture
def own(tmp_path: Path) -> Project:
    root = tmp_path / "repository"
    if not (ROOT / ".git").exists():
        pytest.skip("not run: this is no git repository, but an unpacked archive")
    cloned = subprocess.run(
        ["git", "clone", "-q", "--no-tags", str(ROOT), str(root)], capture_output=True, text=True, check=False
    )
    if cloned.returncode:
        pytest.skip(f"not run: this repository cannot be cloned: {cloned.stderr.strip()}")
    made = Project(root, {"HOME": str(tmp_path), "GIT_CONFIG_NOSYSTEM": "1"})
    made.git("switch", "-q", "-C", "main")
    made.git("config", "user.name", "Test User")
    made.git("config", "user.email", "user@localhost")
    return made


def test_the_field_of_this_repository_is_judged(own: Project) -> None:
    for number, title in enumerate(("Add a door", "Paint the door", "Open the door", "Close the door"), 9001):
        own.issue(number, title)
    own.genba("task", "depend", "9003", "--on", "9002", check=0)
    own.commit("Add a door\n\nIssue: 9001\n")
    own.git("switch", "-q", "-c", "9002-paint")
    own.commit("Begin to paint")
    own.git("switch", "-q", "main")
    report = own.genba("facilitate", "--json", "--offline").json
    states = {each["issue"]: each["state"] for each in report["assessments"]}
    assert states == {9001: "done", 9002: "in_progress", 9003: "blocked", 9004: "incomplete"}
    assert all(each["evidence"] for each in report["assessments"])
    assert {each["name"]: each["holds"] for each in report["health"]}["states_clear"]
