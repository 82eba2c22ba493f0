"""Git of the product is started in one place, with its settings, its environment and its time limit."""

import ast
from pathlib import Path

import genba

SOURCE = Path(genba.__file__).parent
STARTS = {"connections/git/repository/commands.py", "connections/secrets/scanner.py"}
"""The second gives git to the supervisor of processes, with the same settings."""
INSIDE = {"connections/agents/player.py"}
"""Runs in the place of an agent, where the agent runs."""
OF_TESTS = "testing/"


def _starts_git(path: Path) -> list[int]:
    """The lines where a list or tuple of words begins with git and goes on."""
    tree = ast.parse(path.read_text("utf-8"))
    return [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.List | ast.Tuple)
        and len(node.elts) > 1
        and isinstance(first := node.elts[0], ast.Constant)
        and first.value == "git"
        and any(not isinstance(each, ast.Constant) or str(each.value).startswith("-") for each in node.elts)
    ]


def test_no_other_module_starts_git() -> None:
    found = {
        path.relative_to(SOURCE).as_posix(): lines for path in SOURCE.rglob("*.py") if (lines := _starts_git(path))
    }
    assert {name for name in found if not name.startswith(OF_TESTS)} == STARTS | INSIDE


def test_every_git_of_the_product_is_hardened() -> None:
    for name in STARTS:
        path = SOURCE / name
        lines = path.read_text("utf-8").splitlines()
        for line in _starts_git(path):
            assert "*_HARDENED" in lines[line - 1] or "*HARDENED" in lines[line - 1], f"{name}:{line}"
