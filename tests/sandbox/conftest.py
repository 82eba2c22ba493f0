"""What the tests of every kind of sandbox have."""

import os
from pathlib import Path

import pytest

from genba.domain.sessions.sandbox import SandboxSpec


@pytest.fixture
def spec(tmp_path: Path) -> SandboxSpec:
    for name in ("tree", "home", "sandbox"):
        (tmp_path / name).mkdir()
    return SandboxSpec(
        run=f"run-{os.getpid()}-{tmp_path.name}",
        folder=str(tmp_path / "sandbox"),
        tree=str(tmp_path / "tree"),
        home=str(tmp_path / "home"),
    )
