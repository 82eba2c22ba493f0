"""Finding out how a project is linted, built and tested, by its files. What is broken is not there."""

import configparser
import json
import re
import shlex
import tomllib
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

_MAKEFILES = ("GNUmakefile", "makefile", "Makefile")

DETECTION_FILES = (*_MAKEFILES, "package.json", "yarn.lock", "Cargo.toml", "pyproject.toml", "setup.cfg", "tox.ini")
"""The files whose text matters; of all others it matters only that they are there."""


class Detected(msgspec.Struct, frozen=True, kw_only=True):
    """The commands of a project; None where its files name none."""

    language: str = ""
    lint: str | None = None
    build: str | None = None
    test: str | None = None
    setup: str | None = None


def detect(texts: Mapping[str, str], files: Iterable[str]) -> Detected:
    """The commands of a project, by the texts of its files and the paths of all of them.

    A target of a Makefile with the right name wins: it is what people call. Each command is looked for by itself, so
    that a `package.json` that only formats does not hide how a Python project is tested.
    """
    paths = tuple(files)
    there = {f"{path.partition('/')[0]}/" if "/" in path else path for path in paths}
    if any(path.startswith(("tests/", "test/")) and path.endswith(".py") for path in paths):
        there.add(_PYTHON_TESTS)
    targets = _targets(texts)
    by_name = Detected(**{field: f"make {field}" for field in ("lint", "build", "test") if field in targets})
    at_last = Detected(
        language="make" if targets else "",
        lint="make check" if "check" in targets else None,
        build="make all" if "all" in targets else None,
    )
    found = (by_name, _node(texts, there), _rust(texts, there), _go(there), _python(texts, there), at_last)
    return Detected(
        language=_first(each.language for each in found) or "",
        lint=_first(each.lint for each in found),
        build=_first(each.build for each in found),
        test=_first(each.test for each in found),
        setup=_first(each.setup for each in found),
    )


def _first(found: Iterable[str | None]) -> str | None:
    return next((value for value in found if value), None)


def _node(texts: Mapping[str, str], there: set[str]) -> Detected:
    if "package.json" not in there:
        return Detected()
    scripts = _table(_json(texts.get("package.json", "")).get("scripts"))
    known = {name for name, line in scripts.items() if isinstance(line, str) and line.strip()}
    if "no test specified" in str(scripts.get("test", "")):
        known.discard("test")
    tool, setup = _package_tool(texts, there)
    return Detected(
        language="node",
        lint=f"{tool} run lint" if "lint" in known else None,
        build=f"{tool} run build" if "build" in known else None,
        test=f"{tool} test" if "test" in known else None,
        setup=setup,
    )


def _package_tool(texts: Mapping[str, str], there: set[str]) -> tuple[str, str | None]:
    """Who installs the packages, and how; without a lock file no command does."""
    if "pnpm-lock.yaml" in there:
        return "pnpm", "pnpm install --frozen-lockfile"
    if "yarn.lock" in there:
        classic = "# yarn lockfile v1" in texts.get("yarn.lock", "")[:500]
        return "yarn", f"yarn install {'--frozen-lockfile' if classic else '--immutable'}"
    locked = there & {"package-lock.json", "npm-shrinkwrap.json"}
    return "npm", "npm ci" if locked else None


def _rust(texts: Mapping[str, str], there: set[str]) -> Detected:
    """Warnings of clippy count only where the project has settings for it: others never promised to have none."""
    if "Cargo.toml" not in there:
        return Detected()
    manifest = _toml(texts.get("Cargo.toml", ""))
    tables = (manifest, _table(manifest.get("workspace")))
    strict = bool(there & {"clippy.toml", ".clippy.toml"}) or any("clippy" in _table(t.get("lints")) for t in tables)
    return Detected(
        language="rust",
        lint=f"cargo clippy --all-targets{' -- -D warnings' if strict else ''}",
        build="cargo build",
        test="cargo test",
    )


def _go(there: set[str]) -> Detected:
    if "go.mod" not in there:
        return Detected()
    configured = there & {f".golangci.{ending}" for ending in ("yml", "yaml", "toml", "json")}
    return Detected(
        language="go",
        lint="golangci-lint run" if configured else "go vet ./...",
        build="go build ./...",
        test="go test ./...",
    )


_PYTHON = {"pyproject.toml", "setup.py", "setup.cfg", "requirements.txt", "pytest.ini", "conftest.py"}
_PYTHON_TESTS = "tests/**/*.py"


def _python(texts: Mapping[str, str], there: set[str]) -> Detected:
    """Without a build system the one thing that can break a build is a file that does not compile."""
    settings = _toml(texts.get("pyproject.toml", ""))
    tools = _table(settings.get("tool"))
    sections = _sections(texts.get("setup.cfg", "")) | _sections(texts.get("tox.ini", ""))
    tested = there & {"pytest.ini", "conftest.py", _PYTHON_TESTS} or sections & {"tool:pytest", "pytest"}
    if not there & {*_PYTHON, _PYTHON_TESTS}:
        return Detected()
    return Detected(
        language="python",
        lint=_python_lint(tools, sections, there),
        build="python3 -m build" if "build-system" in settings else "python3 -m compileall -q .",
        test="python3 -m pytest -q" if tested or "pytest" in tools else None,
    )


def _python_lint(tools: Mapping[str, Any], sections: set[str], there: set[str]) -> str | None:
    if "ruff" in tools or there & {"ruff.toml", ".ruff.toml"}:
        return "ruff check ."
    if ".flake8" in there or "flake8" in sections:
        return "flake8 ."
    if "pylint" in tools or there & {".pylintrc", "pylintrc"}:
        return "pylint --recursive=y ."
    return None


def _targets(texts: Mapping[str, str]) -> set[str]:
    """The targets of the Makefile that make would read."""
    text = next((texts[name] for name in _MAKEFILES if texts.get(name)), "")
    lines = re.findall(r"^([A-Za-z0-9_][\w. -]*?)\s*::?(?![:=])", text, re.MULTILINE)
    return {target for line in lines for target in line.split()}


def _sections(text: str) -> set[str]:
    parser = configparser.RawConfigParser(strict=False)
    try:
        parser.read_string(text)
    except configparser.Error:
        return set()
    return set(parser.sections())


def _json(text: str) -> Mapping[str, Any]:
    try:
        return _table(json.loads(text))
    except (ValueError, RecursionError):
        return {}


def _toml(text: str) -> Mapping[str, Any]:
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError):
        return {}


def _table(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


_NOT_PLAIN = re.compile(r"[;&|<>()$`\\\"'*?\[\]#~{}!\n\r]")
_ONE_RUNNER = re.compile(
    r"(?:(?:npx|pnpm|pnpm exec|yarn|uv run|poetry run|pipenv run) )?(?:\S*/)?"
    r"(?:python[\d.]* -m )?(?:pytest|py\.test|jest|vitest)(?: [^;&|<>$`\n]*)?"
)


def plain_words(words: str | tuple[str, ...]) -> tuple[str, ...] | None:
    """The words of a command that needs no shell; None for a line that does."""
    if not isinstance(words, str):
        return words
    return None if _NOT_PLAIN.search(words) else tuple(shlex.split(words))


def is_gitleaks(command: str | tuple[str, ...]) -> bool:
    """Whether a command is gitleaks and nothing else: Genba scans itself, so that an agent cannot switch it off."""
    words = plain_words(command)
    return bool(words) and words is not None and words[0].rpartition("/")[2] == "gitleaks"


_PYTEST_STYLE = re.compile(
    r"^(?:import pytest\b|from pytest\b|(?:async )?def test_?\w*\(|class Test\w*(?:\(\))?:|@pytest\.)", re.MULTILINE
)
_UNITTEST_STYLE = re.compile(r"^\s*class \w+\([^)\n]*\bTestCase\b", re.MULTILINE)


def python_tests_style(tests: Mapping[str, str]) -> str:
    """How the tests of a project in Python are written, by the texts of their files: `pytest`, `unittest` or nothing.

    One file that only pytest can run makes it `pytest`: unittest would pass over it without a word.
    """
    names = {path.rpartition("/")[2] for path in tests}
    if "conftest.py" in names or any(_PYTEST_STYLE.search(text) for text in tests.values()):
        return "pytest"
    return "unittest" if any(_UNITTEST_STYLE.search(text) for text in tests.values()) else ""


_NAMES_TESTS = re.compile(
    r"(?:^|[\s/;&|(=:\"'])(?:py\.?test|unittest|tests?|jest|vitest|mocha|ava|rspec|phpunit|ctest|nextest|tox|nox)\b"
)


def names_tests(command: str | tuple[str, ...]) -> bool:
    """Whether a command says by its words that it runs tests."""
    return _NAMES_TESTS.search(command if isinstance(command, str) else " ".join(command)) is not None


def runs_whole_suite(command: str | tuple[str, ...] | None) -> bool:
    """Whether a test command runs everything, because it accepts no files."""
    line = command if isinstance(command, str) else " ".join(command or ())
    if "{files}" in line:
        return False
    return not plain_words(command or "") or _ONE_RUNNER.fullmatch(" ".join(line.split())) is None
