"""The tiers and the shares of the tests."""

import ast
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from tests import tiers

FOLDER = Path(__file__).parent


def functions() -> set[str]:
    """Each test function and each test of a class, as the rules name them."""
    result = set()
    for path in FOLDER.rglob("test_*.py"):
        file = path.relative_to(FOLDER).as_posix()
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef):
                result.add(f"{file}::{node.name}::test_inherited")
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
                result.add(f"{file}::{node.name}")
    return result


def test_each_rule_of_the_extended_tier_matches_a_test() -> None:
    known = functions()

    assert [rule for rule in tiers.EXTENDED if not any(fnmatchcase(name, rule) for name in known)] == []


def test_a_rule_keeps_every_nth_case_of_each_test_in_the_quick_tier(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tiers, "EXTENDED", {"a.py::test_slow": 0, "a.py::test_*": 3})
    cases = [f"tests/a.py::test_x[{number}]" for number in range(5)]
    names = ["tests/a.py::test_slow", *cases, "tests/a.py::test_y", "tests/b.py::test_x"]

    assert [name for name, slow in zip(names, tiers.extended(names), strict=True) if not slow] == [
        "tests/a.py::test_x[0]",
        "tests/a.py::test_x[3]",
        "tests/a.py::test_y",
        "tests/b.py::test_x",
    ]


def test_the_shares_are_a_partition_of_the_tests() -> None:
    names = [f"tests/a.py::test_x[{number}]" for number in range(100)]

    for name in names:
        assert sum(tiers.in_share(name, (number, 6)) for number in range(1, 7)) == 1


@pytest.mark.parametrize("text", ["0/6", "7/6", "1", "a/b", ""])
def test_a_share_that_does_not_exist_is_refused(text: str) -> None:
    with pytest.raises(pytest.UsageError, match="k/n"):
        tiers.parse_share(text)
