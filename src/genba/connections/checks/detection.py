"""Finding out how a project runs its tests."""

import json
import tomllib
from pathlib import Path


def test_command(tree: Path) -> str | None:
    """The command that runs a project's tests, told by its files."""
    makefile = tree / "Makefile"
    if makefile.is_file() and any(line.startswith("test:") for line in _text(makefile).splitlines()):
        return "make test"
    package = tree / "package.json"
    if package.is_file() and "test" in _scripts(package):
        return "npm test"
    for name, line in (("Cargo.toml", "cargo test"), ("go.mod", "go test ./...")):
        if (tree / name).is_file():
            return line
    if any((tree / name).exists() for name in ("pytest.ini", "tests", "conftest.py")) or _mentions_pytest(tree):
        return "python3 -m pytest -q"
    return None


def _scripts(package: Path) -> dict[str, str]:
    try:
        found = json.loads(_text(package)).get("scripts", {})
    except (ValueError, AttributeError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _mentions_pytest(tree: Path) -> bool:
    try:
        tools = tomllib.loads(_text(tree / "pyproject.toml")).get("tool", {})
    except (ValueError, RecursionError):
        return False
    return isinstance(tools, dict) and "pytest" in tools


def _text(path: Path) -> str:
    """What is in a file that an agent may have written; what cannot be read is nothing."""
    try:
        return path.read_text("utf-8", errors="replace")
    except OSError:
        return ""
