"""The real agents and the checks of MCP, as `make clis` has installed them, for the tests that drive them."""

import os
import sys
from pathlib import Path

import pytest

from tests.clis.install import CHECKS

FOLDER = Path(os.environ.get("GENBA_CLIS") or Path(sys.prefix) / "clis")
"""Beside the interpreter of the tests, unless GENBA_CLIS names another place."""
BINARIES = FOLDER / "node_modules" / ".bin"


def cli(name: str) -> Path:
    """The binary of an agent. Without it a test is not run, and says so; with GENBA_REQUIRE_CLIS=1 it fails."""
    path = BINARIES / name
    if not path.exists():
        _not_run(f"{name} is not installed in {FOLDER}")
    return path


def _not_run(why: str) -> None:
    sentence = f"not run: {why}; hint: make clis"
    if os.environ.get("GENBA_REQUIRE_CLIS") == "1":
        pytest.fail(sentence)
    pytest.skip(sentence)


def check(name: str) -> list[str]:
    """How a check of the MCP protocol is called: its script, with the node that it needs."""
    script = FOLDER / "node_modules" / CHECKS[name]
    cli("node")
    if not script.exists():
        _not_run(f"{name} is not installed in {FOLDER}")
    return [str(BINARIES / "node"), str(script)]


def path_with_clis() -> str:
    """A PATH on which the agents are found, and the node that some of them need."""
    return f"{BINARIES}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
