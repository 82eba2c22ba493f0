"""Goals for a project without settings: the commands that its own files name.

What `Detected` finds is found again whenever a goal is checked, so its command need not be written down. What only
this module knows is proposed with its command.
"""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from genba.domain.goals.detection import Detected

_LANGUAGES = {
    "python": ("pyproject.toml", "setup.py", "setup.cfg", "requirements.txt"),
    "node": ("package.json",),
    "go": ("go.mod",),
    "rust": ("Cargo.toml",),
    "java": ("pom.xml", "build.gradle", "build.gradle.kts"),
    "ruby": ("Gemfile",),
    "php": ("composer.json",),
    "elixir": ("mix.exs",),
    "c": ("CMakeLists.txt", "meson.build"),
    "make": ("GNUmakefile", "makefile", "Makefile"),
}
"""By language, the files at the top that tell of it."""
_TESTS_IN_CI = re.compile(
    r"(?:make|npm|pnpm|yarn|bun|go|cargo|dotnet|mix|swift|bazel|rake|tox|nox|pytest|phpunit|rspec|ctest|gradle|mvn"
    r"|\./gradlew|\./mvnw|python3? -m (?:pytest|unittest)|bundle exec \S+|composer (?:run )?test"
    r"|(?:uv|poetry|pipenv|hatch) run \S+)(?: [^\s&|;<>$`]+)*"
)
_SAYS_TEST = re.compile(r"\b(?:test|tests|pytest|unittest|rspec|phpunit|tox|nox|ctest|verify|check)\b")
_PYTEST = "python3 -m pytest -q"
CI_FILES = (".gitlab-ci.yml", ".circleci/config.yml", ".travis.yml", "azure-pipelines.yml")


class Proposal(msgspec.Struct, frozen=True, kw_only=True):
    """One goal that the project could be held to."""

    goal: str
    command: str = ""
    """Empty: the goal needs none."""
    source: str = ""
    """The file that names the command."""
    is_detected: bool = False
    """It is found out again by itself, and need not be written down."""


def languages(names: Iterable[str]) -> tuple[str, ...]:
    """What a project is written in, by the files at its top; `make` only where nothing else is found."""
    there = set(names)
    found = tuple(language for language, files in _LANGUAGES.items() if there & set(files))
    named = tuple(language for language in found if language != "make")
    if named or found:
        return named or found
    return ("python",) if any(name.endswith(".py") for name in there) else ()


def propose(
    detected: Detected, texts: Mapping[str, str], names: Iterable[str], has_pytest: bool, style: str = ""
) -> tuple[Proposal, ...]:
    """The goals of a first Definition of Done, in the order in which a person reads them.

    `style` is how the tests in Python are written. unittest is proposed only for tests that it runs: of those that are
    written for pytest it finds none, and calls that a success.
    """
    there = set(names)
    more = _others(texts, there)
    tests = detected.test or (_PYTEST if style == "pytest" and not _other_tests(detected, more) else None)
    unit = "python3 -m unittest discover" if style == "unittest" and _only_unittest(texts, there) else ""
    if tests == _PYTEST and not has_pytest and unit:
        tests = None
    found = []
    for goal, own, other in (
        ("lint_passes", detected.lint, more.lint),
        ("build_succeeds", detected.build, more.build),
        ("tests_pass", tests, more.test or unit or _from_ci(texts)[0]),
    ):
        if own:
            by_itself = own in (detected.lint, detected.build, detected.test)
            found.append(Proposal(goal=goal, command=own, source=_source(own, there), is_detected=by_itself))
        elif other:
            named = _from_ci(texts)[1] if other == _from_ci(texts)[0] else _source(other, there)
            found.append(Proposal(goal=goal, command=other, source=named))
    return (*found, Proposal(goal="no_secrets"))


def _others(texts: Mapping[str, str], there: set[str]) -> Detected:
    """Languages that a verification does not know by itself."""
    if "pom.xml" in there:
        maven = "./mvnw" if "mvnw" in there else "mvn"
        return Detected(language="java", build=f"{maven} -q -B compile", test=f"{maven} -B test")
    if there & {"build.gradle", "build.gradle.kts"}:
        gradle = "./gradlew" if "gradlew" in there else "gradle"
        return Detected(language="java", build=f"{gradle} assemble", test=f"{gradle} test")
    if "mix.exs" in there:
        return Detected(language="elixir", build="mix compile", test="mix test")
    if "Gemfile" in there:
        rspec = "bundle exec rspec" if "spec/" in there else None
        return Detected(language="ruby", test=rspec or ("bundle exec rake test" if "Rakefile" in there else None))
    if "composer.json" in there:
        named = _scripts(texts.get("composer.json", ""))
        return Detected(language="php", test="composer test" if "test" in named else None)
    return Detected()


def _scripts(text: str) -> Mapping[str, Any]:
    try:
        scripts = json.loads(text).get("scripts", {})
    except (ValueError, AttributeError, RecursionError):
        return {}
    return scripts if isinstance(scripts, dict) else {}


def _only_unittest(texts: Mapping[str, str], there: set[str]) -> bool:
    """Whether the tests need nothing but Python itself, as far as the settings tell."""
    settings = " ".join(texts.get(name, "") for name in ("pyproject.toml", "setup.cfg", "tox.ini"))
    return "pytest" not in settings and not there & {"pytest.ini", "conftest.py"}


def _other_tests(detected: Detected, more: Detected) -> bool:
    """Whether the project has a test command of another language."""
    return bool(detected.test or more.test)


def _from_ci(texts: Mapping[str, str]) -> tuple[str, str]:
    """A line of a CI file that runs tests and nothing else, and the file."""
    for name, text in texts.items():
        if name in CI_FILES or name.startswith(".github/workflows/"):
            for line in re.findall(r"^[ \t]*(?:- )?(?:run:[ \t]*)?(?:- )?([^\n#]+?)[ \t]*$", text, re.MULTILINE):
                if _TESTS_IN_CI.fullmatch(line) and _SAYS_TEST.search(line):
                    return line, name
    return "", ""


def _source(command: str, there: set[str]) -> str:
    """The file that names a command, as far as the command tells."""
    first = command.split(maxsplit=1)[0]
    by_word = {
        "make": _LANGUAGES["make"],
        "npm": ("package.json",),
        "pnpm": ("package.json",),
        "yarn": ("package.json",),
        "cargo": ("Cargo.toml",),
        "go": ("go.mod",),
        "golangci-lint": tuple(f".golangci.{ending}" for ending in ("yml", "yaml", "toml", "json")),
        "ruff": ("ruff.toml", ".ruff.toml", "pyproject.toml"),
        "flake8": (".flake8", "setup.cfg", "tox.ini"),
        "pylint": (".pylintrc", "pylintrc", "pyproject.toml"),
        "python3": ("pytest.ini", "tests/", "test/", "pyproject.toml", "setup.cfg", "setup.py", "conftest.py"),
        "bundle": ("Gemfile",),
        "composer": ("composer.json",),
        "mix": ("mix.exs",),
    }
    java = _LANGUAGES["java"]
    return next((name for name in by_word.get(first, java) if name in there), "")
