"""What the tests of the facilitator have."""

import subprocess
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("bare") / "repository"
    subprocess.run(["git", "init", "-q", "-b", "main", "--template=", str(root)], check=True)
    return root
