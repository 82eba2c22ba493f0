"""What `make clis` has fetched to hold GitHub's side to: the schemas, and emulate with the node that it runs on."""

import os
import sys
from pathlib import Path

import pytest

FOLDER = Path(os.environ.get("GENBA_GITHUB_MATERIAL") or Path(sys.prefix) / "github")
"""Beside the interpreter of the tests, unless GENBA_GITHUB_MATERIAL names another place."""


def openapi() -> Path:
    """GitHub's description of its REST API."""
    return _there(FOLDER / "openapi.json", "GitHub's OpenAPI")


def sdl() -> Path:
    """GitHub's GraphQL schema, in GraphQL's own language."""
    return _there(FOLDER / "schema.graphql", "GitHub's GraphQL schema")


def emulate() -> list[str]:
    """How emulate is called."""
    script = _there(FOLDER / "node_modules" / "emulate" / "dist" / "index.js", "emulate")
    return [str(_there(FOLDER / "bin" / "node", "the node for emulate")), str(script)]


def _there(path: Path, name: str) -> Path:
    """The path. Without it a test is not run, and says so; with GENBA_REQUIRE_CLIS=1 it fails."""
    if not path.exists():
        sentence = f"not run: {name} is not in {path.parent}; hint: make clis"
        if os.environ.get("GENBA_REQUIRE_CLIS") == "1":
            pytest.fail(sentence)
        pytest.skip(sentence)
    return path
