"""docs/reference/requirements.md is true: every requirement has a place, and a test that exists and is run."""

import ast
import functools
import importlib.util
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
import yaml

from genba.domain.errors import UsageError
from genba.entrypoints.cli.commands import cli

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "reference" / "requirements.md"
STATUSES = ("better", "differs", "partial", "missing")
NOT_YET = ("partial", "missing")
NEVER_PASSES = ("skip", "skipif", "xfail")


def rows() -> list[dict[str, Any]]:
    loaded: list[dict[str, Any]] = yaml.safe_load(PAGE.with_suffix(".yaml").read_text(encoding="utf-8"))
    return loaded


@functools.cache
def named_in(file: str) -> frozenset[str]:
    """The tests that pytest collects from a file below `tests/`, without those that are marked not to count."""
    path = ROOT / "tests" / file
    if not path.is_file() or not path.name.startswith("test_"):
        return frozenset()
    body = ast.parse(path.read_text(encoding="utf-8")).body
    inherited = suites()
    found = set(counted(body))
    for each in body:
        if isinstance(each, ast.ClassDef) and each.name.startswith("Test"):
            bases = [inherited.get(base.id, frozenset()) for base in each.bases if isinstance(base, ast.Name)]
            found |= {f"{each.name}::{name}" for name in frozenset(counted(each.body)).union(*bases)}
    return frozenset(found)


@functools.cache
def suites() -> dict[str, frozenset[str]]:
    """The tests of each conformance suite, which a class below `tests/` inherits."""
    return {
        each.name: frozenset(counted(each.body))
        for path in (ROOT / "src" / "genba" / "testing").glob("*conformance.py")
        for each in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(each, ast.ClassDef)
    }


def counted(body: list[ast.stmt]) -> Iterator[str]:
    for each in body:
        if not isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef) or not each.name.startswith("test_"):
            continue
        if not any(map(is_excused, each.decorator_list)):
            yield each.name


def is_excused(decorator: ast.expr) -> bool:
    named = decorator.func if isinstance(decorator, ast.Call) else decorator
    return isinstance(named, ast.Attribute) and named.attr in NEVER_PASSES


def is_there(where: str) -> bool:
    """Whether a module below `genba`, or a command of `genba`, exists."""
    program, *words = where.split()
    if program != "genba":
        return importlib.util.find_spec(f"genba.{where}") is not None
    command: click.Command | None = cli
    for word in words:
        if not isinstance(command, click.Group):
            return False
        try:
            command = command.get_command(click.Context(command), word)
        except UsageError:
            return False
    return command is not None


def problems(found: list[dict[str, Any]]) -> Iterator[str]:
    for name, count in Counter(row["id"] for row in found).items():
        if count > 1:
            yield f"{name}: {count} rows"
    for row in found:
        yield from (f"{row['id']}: {problem}" for problem in problems_of(row))


def problems_of(row: dict[str, Any]) -> Iterator[str]:
    status, reason = row.get("status"), row.get("reason")
    if unknown := row.keys() - {"id", "requirement", "where", "tests", "status", "reason"}:
        yield f"unknown keys: {', '.join(sorted(unknown))}"
    if status is not None and status not in STATUSES:
        yield f"no such status: {status}"
    if bool(status) != bool(reason):
        yield "a status and its reason belong together"
    if not row["tests"] and status not in NOT_YET:
        yield "no test shows it"
    if not row["where"] and status != "missing":
        yield "it is nowhere"
    for test in row["tests"]:
        file, _, name = test.partition("::")
        if name not in named_in(file):
            yield f"no such test that counts: tests/{test}"
    for where in row["where"]:
        if not is_there(where):
            yield f"no such module or command: {where}"


def test_every_requirement_has_a_place_and_a_test_that_is_run() -> None:
    assert list(problems(rows())) == []


def test_every_founding_text_has_its_requirements() -> None:
    counts = Counter(row["id"][0] for row in rows())
    assert set(counts) == set("FDCWE")
    assert min(counts.values()) >= 40


def test_the_page_has_every_row() -> None:
    """That nothing else differs is shown with the other made pages."""
    page = PAGE.read_text(encoding="utf-8")
    assert [row["id"] for row in rows() if f"| {row['id']} | " not in page] == []


GOOD = {
    "id": "F01",
    "requirement": "It works",
    "where": ["judgement.triage.assessment", "genba task show"],
    "tests": ["test_requirements.py::test_the_page_has_every_row"],
}


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"tests": []}, "no test shows it"),
        ({"tests": ["test_requirements.py::test_gone"]}, "no such test that counts"),
        ({"tests": ["test_gone.py::test_gone"]}, "no such test that counts"),
        ({"tests": ["test_requirements.py::rows"]}, "no such test that counts"),
        ({"tests": ["detached/test_conformance.py::TestDetachedAdapters::test_gone"]}, "no such test that counts"),
        ({"where": []}, "it is nowhere"),
        ({"where": ["judgement.gone"]}, "no such module or command"),
        ({"where": ["genba gone"]}, "no such module or command"),
        ({"status": "better"}, "a status and its reason belong together"),
        ({"status": "partial", "tests": []}, "a status and its reason belong together"),
        ({"status": "broken", "reason": "because"}, "no such status"),
        ({"sttaus": "better"}, "unknown keys"),
    ],
)
def test_a_row_that_shows_nothing_is_found(change: dict[str, Any], problem: str) -> None:
    assert list(problems([GOOD])) == []
    assert [problem in each for each in problems([{**GOOD, **change}])] == [True]


def test_a_row_that_is_not_met_yet_needs_a_reason_and_no_test() -> None:
    assert list(problems([{**GOOD, "status": "missing", "reason": "nobody wrote it", "tests": [], "where": []}])) == []


def test_an_id_that_is_there_twice_is_found() -> None:
    assert list(problems([GOOD, GOOD])) == ["F01: 2 rows"]


@pytest.mark.parametrize("mark", ["skip", "xfail(reason='later')", "skipif(True, reason='never')"])
def test_a_test_that_is_not_run_does_not_count(mark: str) -> None:
    (decorator,) = ast.parse(f"@pytest.mark.{mark}\ndef test_it(): ...").body[0].decorator_list  # type: ignore[attr-defined]
    assert is_excused(decorator)
