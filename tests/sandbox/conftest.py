"""What the tests of every kind of walls have."""

import os
from pathlib import Path

import pytest

from genba.domain.sessions.sandbox import Cell


@pytest.fixture
def cell(tmp_path: Path) -> Cell:
    for name in ("tree", "home", "walls"):
        (tmp_path / name).mkdir()
    return Cell(
        run=f"run-{os.getpid()}-{tmp_path.name}",
        folder=str(tmp_path / "walls"),
        tree=str(tmp_path / "tree"),
        home=str(tmp_path / "home"),
    )
