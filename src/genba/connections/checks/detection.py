"""Finding out how a project runs its tests."""

import json
import tomllib
from pathlib import Path


def test_command(tree: Path) -> str | None:
    """The command that runs a project's tests, told by its files."""
    makefile = tree / "Makefile"
    if makefile.is_file() and any(line.startswith("test:") for line in makefile.read_text("utf-8").splitlines()):
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
        found = json.loads(package.read_text("utf-8")).get("scripts", {})
    except (ValueError, AttributeError):
        return {}
    return found if isinstance(found, dict) else {}


def _mentions_pytest(tree: Path) -> bool:
    try:
        return "pytest" in tomllib.loads((tree / "pyproject.toml").read_text("utf-8")).get("tool", {})
    except (OSError, tomllib.TOMLDecodeError):
        return False
