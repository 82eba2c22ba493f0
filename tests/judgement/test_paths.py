"""Globs, and what a path says about its file."""

import pytest

from genba.judgement.verification.paths import PROTECTED, is_documentation, is_test, matches, matches_any, shown


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("*.test.*", "web/src/a.test.ts"),
        ("*.py", "a.py"),
        ("*.py", "src/a.py"),
        ("README.md", "docs/README.md"),
        ("/README.md", "README.md"),
        ("./README.md", "docs/README.md"),
        ("src/**/*.py", "src/a.py"),
        ("src/**/*.py", "src/a/b/c.py"),
        ("src/**", "src/a/b"),
        ("**/tests/**", "tests/a.py"),
        ("**/tests/**", "a/b/tests/c/d.py"),
        ("docs/", "docs/a/b.md"),
        ("*.{ts,tsx}", "a.tsx"),
        ("pages/[id].tsx", "pages/[id].tsx"),
        ("a?.py", "ab.py"),
        (".genba/**", ".genba/a\nb"),
        ("**/**/**/a", "a"),
    ],
)
def test_a_glob_fits(pattern: str, path: str) -> None:
    assert matches(path, pattern)


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("*.py", "a.pyc"),
        ("/README.md", "docs/README.md"),
        ("src/*.py", "src/a/b.py"),
        ("src/**", "lib/src/a.py"),
        ("docs/", "docs"),
        ("*.{ts,tsx}", "a.js"),
        ("pages/[id].tsx", "pages/i.tsx"),
        ("a.py", "aXpy"),
        ("", "a"),
    ],
)
def test_a_glob_does_not_fit(pattern: str, path: str) -> None:
    assert not matches(path, pattern)


@pytest.mark.parametrize(
    "path",
    [
        "tests/a.py",
        "test/b.c",
        "pkg/tests/data/a.json",
        "conftest.py",
        "src/test_a.py",
        "src/a_test.py",
        "app/tests.py",
        "a_test.go",
        "src/a.test.tsx",
        "src/a.spec.ts",
        "src/__tests__/a.js",
        "spec/models/a.rb",
        "a_spec.rb",
        "src/test/java/A.java",
        "src/ATest.java",
        "AppTests.swift",
        "features/login.feature",
        "a.bats",
        "testdata/golden.txt",
    ],
)
def test_tests_are_known_by_their_usual_names(path: str) -> None:
    assert is_test(path)


@pytest.mark.parametrize(
    "path",
    [
        "src/contest.py",
        "src/latest.js",
        "spec/openapi.yaml",
        "app.spec",
        "src/attest/a.py",
        "testing/doubles.py",
        "src/Latest.java",
        "docs/test.md",
        "protest_a.py",
        "src/genba/testing/a.py",
    ],
)
def test_other_files_are_no_tests(path: str) -> None:
    assert not is_test(path)


def test_documentation_is_known_by_its_name_or_its_folder() -> None:
    for path in ("README.md", "docs/guide.rst", "LICENSE", "docs/picture.png", "a/CHANGELOG"):
        assert is_documentation(path)
    for path in ("src/a.py", "docs/conf.py", "readme.py/a.py"):
        assert not is_documentation(path)


def test_ordinary_files_are_not_protected() -> None:
    ordinary = (
        "src/app.py README.md docs/a.md .gitignore Dockerfile .env.example go.mod package-lock.json src/ruff.py "
        "tests/conftest.py .github/ISSUE_TEMPLATE.md .editorconfig src/config/eslint.ts scripts/build.sh"
    )
    assert [path for path in ordinary.split() if matches_any(path, PROTECTED)] == []


def test_a_hostile_name_is_shown_on_one_line() -> None:
    assert shown("a\nb") == "a\\nb"
    assert shown("a\x1b[31m") == "a\\x1b[31m"
    assert shown("été.py") == "été.py"
    assert shown("a\udcff").isprintable()
