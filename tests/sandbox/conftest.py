"""What the tests of every kind of walls have."""

import os
from pathlib import Path

import pytest

from genba.domain.sessions.sandbox import SandboxSpec


@pytest.fixture
def cell(tmp_path: Path) -> SandboxSpec:
    for name in ("tree", "home", "walls"):
        (tmp_path / name).mkdir()
    return SandboxSpec(
        run=f"run-{os.getpid()}-{tmp_path.name}",
        folder=str(tmp_path / "walls"),
        tree=str(tmp_path / "tree"),
        home=str(tmp_path / "home"),
    )
