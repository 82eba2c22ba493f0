"""What every test can have."""

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.project import Project

settings.register_profile(
    "house", deadline=None, derandomize=True, database=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("house")
os.environ.setdefault("GENBA_SANDBOX", "worktree")  # the tests of the walls name the kind that they are about


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A repository with one commit on main."""
    root = tmp_path / "repository"
    root.mkdir()
    subprocess.run(["git", "init", "-q", "-b", "main", str(root)], check=True)
    made = Project(root, {"HOME": str(tmp_path), "GIT_CONFIG_NOSYSTEM": "1"})
    made.git("config", "user.name", "Test User")
    made.git("config", "user.email", "user@localhost")
    made.write("README.md", "# A project\n")
    made.commit("Begin")
    return made
