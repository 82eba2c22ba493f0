"""Whatever an agent commits, judging it never raises."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from genba.domain.goals import goal as wanted
from genba.domain.goals.goal import Goal
from genba.judgement.verification import goal_results, paths
from tests.judgement.branches import Binary, Entry, Inner, Link, Program, branch

GOALS: tuple[Goal, ...] = (
    *wanted.GUARDS,
    wanted.TestAdded(),
    wanted.TestAdded(pattern="**", must_fail_on_base=True),
    wanted.FilesChanged(pattern="*"),
    wanted.FileExists(path="**/a"),
    wanted.CommitsExist(),
    wanted.GitClean(),
)
WORDS = """
tests/test_a.py test_b.py tests/conftest.py tests/helpers.py tests/data.json pyproject.toml package.json setup.cfg
Makefile rules.mk Cargo.toml tsconfig.json .gitattributes pom.xml deno.json composer.json a.test.ts a_test.go src/lib.rs
src/test/ATest.java spec/a_spec.rb a.bats .genba/config.yaml .gitmodules a b/c tests/a.snap
"""
NAMES = WORDS.split()
PATHS = st.sampled_from(NAMES) | st.text(min_size=1, max_size=20)

PIECES = st.sampled_from(
    [
        "def test_a():\n    assert f()\n",
        "class TestA:\n    def test_b(self):\n        pass\n",
        "import os\n",
        "if x:\n    def test_c(): ...\n",
        "@pytest.fixture(autouse=True)\ndef a(b): return b\n",
        "pytestmark = 1\n",
        "[tool.ruff]\na = 1\n",
        '{"scripts": {"test": "x"}, "jest": []}\n',
        "test: a\n\tb\n",
        "it('a', () => {\n  expect(1)\n})\n",
        "func TestA(t *testing.T) {\n}\n",
        "#[test]\nfn a() {}\n",
        "it.skip(`",
        "/*",
        "\0",
        "\\",
        "'''",
        "[",
        "\t",
        "x = 0x" + "f" * 5000 + "\n",
        "\udcff",
    ]
)
TEXTS = st.lists(PIECES | st.text(max_size=30), max_size=6).map("".join)
ENTRIES: st.SearchStrategy[Entry] = (
    TEXTS | TEXTS.map(Program) | st.text(max_size=20).map(Link) | st.just(Binary("x")) | st.just(Inner("1" * 40))
)
FILES = st.dictionaries(PATHS, ENTRIES, max_size=5)


@settings(max_examples=300)
@given(FILES, FILES)
def test_no_branch_makes_judging_raise(base: dict[str, Entry], commit: dict[str, Entry]) -> None:
    made = branch(base, commit)
    view = made.view(judges=("Makefile", "a"))
    for goal in GOALS:
        result = goal_results.judge_by_facts(goal, view)
        assert result is None or result.passed or result.detail
    subject = view.subject
    goal_results.findings(made.facts, subject)
    goal_results.artifacts(made.facts, subject)


@settings(max_examples=200)
@given(FILES)
def test_a_branch_without_changes_passes_every_guard(files: dict[str, Entry]) -> None:
    view = branch(files, files).view(judges=("Makefile",))
    for goal in wanted.GUARDS:
        result = goal_results.judge_by_facts(goal, view)
        assert result is not None
        assert result.passed


@given(st.text() | st.lists(st.text()).map(tuple), st.lists(PATHS))
def test_no_command_makes_the_search_for_its_files_raise(command: wanted.CommandLine, files: list[str]) -> None:
    assert set(goal_results.paths_in_command(command, files)) <= set(files)


@given(st.text(), st.text())
def test_no_glob_raises(path: str, pattern: str) -> None:
    paths.matches(path, pattern)
    paths.is_test(path)
    paths.is_documentation(path)
    assert paths.shown(path).isprintable()


DEEP = {
    "brackets": "(" * 5000,
    "lists": "x = " + "[" * 150 + "]" * 150 + "\n",
    "signs": "x = " + "-" * 5000 + "1\n",
    "attributes": "x = a" + ".b" * 5000 + "\n",
    "sums": "x = " + "1 + " * 5000 + "1\n",
    "nots": "def test_a():\n    assert " + "not " * 1500 + "x\n",
    "branches": "def test_a():\n    if a: pass\n" + "    elif b: pass\n" * 1500,
    "conditions": "if a:\n    def test_a(): f()\n" + "elif b:\n    def test_b(): f()\n" * 1200,
    "folders": "".join(f"{' ' * n}if a:\n" for n in range(90)) + " " * 91 + "pass\n",
    "long line": "x" * 12_000,
    "null": "\0" * 100,
    "number": "x = 0x" + "f" * 25_000 + "\n",
    "json": "[" * 12_000,
    "table": "a = " + "[" * 5_000,
    "comments": "/*" * 12_000,
    "quotes": "\"'`" * 5_000,
    "blanks": "a" + " " * 25_000 + "b",
    "tests": "it(" * 5_000,
    "marks": "@Test " * 5_000,
    "attributes of Rust": "#[test]" * 5_000,
    "functions": "func TestA(" * 3_000,
}


@pytest.mark.parametrize("kind", DEEP)
def test_deep_and_long_texts_are_judged_in_time(kind: str) -> None:
    files = {name: DEEP[kind] for name in NAMES if not name.startswith(".genba")}
    before = dict.fromkeys(files, "def test_a():\n    assert f()\n")
    for made in (branch(before, files), branch(files, before)):
        for goal in GOALS:
            goal_results.judge_by_facts(goal, made.view(judges=("Makefile",)))
