"""Paths: which fit a glob, which are tests, which are documentation, and which judge the work.

The law of globs, one for the whole house: `*` and `?` stay in one folder, `**` goes through any number of them,
`{a,b}` is either. A glob without a slash means a file name in any folder; one with a leading slash begins at the
root of the repository; one that ends with a slash means everything below. Brackets mean themselves, since file names
such as `[id].tsx` are common.
"""

import functools
import re
import sys
from typing import NamedTuple

_SAFE_LOOPS, _SAFE_LENGTH = 3, 300
"""With more loops than this, or on a longer path, an expression can be tried in more ways than anybody can wait for."""
_WILD = re.compile(r"((?:\*\*/)+|\*\*|\*|\?|\{[^{},]*(?:,[^{},]*)+\})")
_WORDS = {"**": r".*", "*": r"[^/]*", "?": r"[^/]"}

TEST_FOLDERS = frozenset({"tests", "test", "__tests__", "__snapshots__", "testdata", "e2e", "cypress"})
_CODE = r"(?:py|rb|js|jsx|ts|tsx|mjs|cjs|mts|cts|coffee|lua|clj|ex|exs|cr|php|scala|kt|groovy|hs|java)"
_TEST_NAMES = re.compile(
    r"""(?x)
    (?:tests?|conftest|test_.*|.*_tests?)\.py
    | .*_test\.(?:go|rb|exs|dart|cc|cpp|cxx|c|ml|erl|clj|cljs|lua|ts|tsx|js|jsx|mjs|php)
    | test_.*\.(?:rb|c|cc|cpp|cxx|lua|php)
    | .*[._-](?:test|tests|spec|e2e|cy)\.(?:[cm]?[jt]sx?|vue|svelte|coffee)
    | .*\.(?:test|spec)\.[^/]+
    | .*_spec\.(?:rb|lua|cr|ex|exs)
    | [A-Z].*(?:Test|Tests|TestCase|IT|Spec|Specs)\.(?:java|kt|kts|groovy|scala|cs|fs|vb|php|swift|hs)
    | test\.[cm]?[jt]sx?
    | .*\.(?:bats|feature|snap)
    | .*\.t
    """
)
_SPEC_FOLDER = re.compile(rf"(?s)(?:.*/)?specs?/(?:.*/)?[^/]+\.{_CODE}")
_DOCUMENTS = re.compile(
    r"(?is)(?:.*/)?(?:[^/]+\.(?:md|markdown|rst|adoc|mdx)|(?:readme|changelog|license|licence|notice|authors|contributing"
    r"|copying|security|code_of_conduct)(?:\.[a-z]+)?)"
)
_DOCUMENT_FOLDERS = frozenset({"docs", "doc"})


def matches(path: str, pattern: str) -> bool:
    """Whether a path fits a glob, or a kind of file: `:code`, `:tests` or `:docs`."""
    match pattern:
        case ":code":
            return not is_test(path) and not is_documentation(path)
        case ":tests":
            return is_test(path)
        case ":docs":
            return is_documentation(path)
    glob = _compiled(pattern)
    if glob.loops > _SAFE_LOOPS or len(path) > _SAFE_LENGTH:
        return _walk(glob, path)
    return glob.expression.fullmatch(path) is not None


def matches_any(path: str, patterns: tuple[str, ...]) -> bool:
    return any(matches(path, pattern) for pattern in patterns)


def is_glob(pattern: str) -> bool:
    return _WILD.search(pattern) is not None


def pieces(pattern: str) -> tuple[tuple[str, ...], bool]:
    """A glob taken apart: its texts and wild parts in order, and whether it may begin in any folder."""
    glob = _compiled(pattern)
    return glob.parts, glob.anywhere


class _Glob(NamedTuple):
    expression: re.Pattern[str]
    parts: tuple[str, ...]
    anywhere: bool
    loops: int


@functools.lru_cache(maxsize=2048)
def _compiled(pattern: str) -> _Glob:
    anchored = pattern.removeprefix("./")
    anywhere = "/" not in anchored
    body = anchored.lstrip("/")
    if body.endswith("/"):
        body += "**"
    parts = tuple(part for part in _WILD.split(body) if part)
    words = "".join(_word(part) for part in parts)
    return _Glob(
        expression=re.compile(rf"(?s:{'(?:.*/)?' if anywhere else ''}{words})"),
        parts=parts,
        anywhere=anywhere,
        loops=sum(part.startswith("*") for part in parts) + anywhere,
    )


def _walk(glob: _Glob, path: str) -> bool:
    """The same answer as the expression gives, in a time that no pattern and no path can blow up."""
    reached = _beginnings(path, {0}) if glob.anywhere else {0}
    for part in glob.parts:
        reached = _after(part, path, reached)
        if not reached:
            return False
    return len(path) in reached


def _after(part: str, path: str, reached: set[int]) -> set[int]:
    """Where one can be behind a part of a glob, coming from these places."""
    if part.startswith("**/"):
        return reached | _beginnings(path, {at for at in reached if not path.startswith("/", at)})
    if part == "**":
        return set(range(min(reached), len(path) + 1))
    if part == "*":
        ends: set[int] = set()
        for at in sorted(reached):
            if at not in ends:
                end = path.find("/", at)
                ends.update(range(at, (len(path) if end < 0 else end) + 1))
        return ends
    if part == "?":
        return {at + 1 for at in reached if at < len(path) and path[at] != "/"}
    choices = part[1:-1].split(",") if part.startswith("{") and _WILD.fullmatch(part) else [part]
    return {at + len(choice) for choice in choices for at in reached if path.startswith(choice, at)}


def _beginnings(path: str, reached: set[int]) -> set[int]:
    """These places, and the beginning of every folder and file behind the first of them."""
    if not reached:
        return reached
    first = min(reached)
    return reached | {at + 1 for at in range(first, len(path)) if path[at] == "/"}


def _word(part: str) -> str:
    if part.startswith("**/"):
        return r"(?:[^/]+/)*"
    if part.startswith("{") and _WILD.fullmatch(part):
        return f"(?:{'|'.join(re.escape(choice) for choice in part[1:-1].split(','))})"
    return _WORDS.get(part, re.escape(part))


def is_test(path: str, pattern: str | None = None) -> bool:
    """Whether a file belongs to the tests: by a glob of the user's, or by the usual names over languages.

    Everything in a folder of tests counts, data and `conftest.py` too: what a test reads is part of it. A folder
    `spec` counts for code only, since specifications of interfaces live in folders of that name as well.
    """
    if pattern is not None:
        return matches(path, pattern)
    return is_test_name(path) or in_test_folder(path) or _SPEC_FOLDER.fullmatch(path) is not None


def is_test_name(path: str) -> bool:
    """Whether the name of the file alone says that it holds tests."""
    name = path.rpartition("/")[2]
    return _TEST_NAMES.fullmatch(name) is not None


def in_test_folder(path: str) -> bool:
    return not TEST_FOLDERS.isdisjoint(path.split("/")[:-1])


def is_documentation(path: str) -> bool:
    """Whether a file is written for people: by its name, or by its folder unless it is code or a test."""
    if _DOCUMENTS.fullmatch(path):
        return True
    in_folder = not _DOCUMENT_FOLDERS.isdisjoint(path.split("/")[:-1])
    return in_folder and not is_test(path) and re.search(rf"\.{_CODE}$", path) is None


def shown(path: str) -> str:
    """A path as it can be put on a line: no control character and no broken text of a hostile name gets through."""
    safe = path.encode("utf-8", "backslashreplace").decode()
    return safe if safe.isprintable() else safe.encode("unicode_escape").decode()


def some(things: tuple[str, ...] | list[str], limit: int = 5) -> str:
    """The first few, and how many more there are."""
    more = f" and {len(things) - limit} more" if len(things) > limit else ""
    return ", ".join(shown(thing) for thing in things[:limit]) + more


_GENBA = (".genba/**", ".agentmine/**", ".agent/**")

_PIPELINES = (
    "/.github/workflows/**",
    "/.github/actions/**",
    "/.gitlab-ci.yml",
    "/.gitlab/ci/**",
    "/.circleci/**",
    "/.buildkite/**",
    "/.woodpecker/**",
    "/.woodpecker.yml",
    "/.drone.yml",
    "/.travis.yml",
    "/.cirrus.yml",
    "/appveyor.yml",
    "/.appveyor.yml",
    "/azure-pipelines.yml",
    "/azure-pipelines/**",
    "/bitbucket-pipelines.yml",
    "/cloudbuild.yaml",
    "/Jenkinsfile",
    "/.ci/**",
    "/.teamcity/**",
    "CODEOWNERS",
    "{codecov,.codecov}.{yml,yaml}",
    "sonar-project.properties",
)

_PYTHON = (
    "{ruff,.ruff}.toml",
    ".flake8",
    "{mypy,.mypy}.ini",
    "{pytest,.pytest}.ini",
    "{pytest,.pytest}.toml",
    "tox.ini",
    "tox.toml",
    "noxfile.py",
    ".coveragerc",
    ".pylintrc",
    ".pylintrc.toml",
    "pylintrc",
    ".isort.cfg",
    ".style.yapf",
    ".pycodestyle",
    ".pydocstyle",
    ".bandit",
    ".importlinter",
    "pyrightconfig.json",
    "{ty,pyrefly}.toml",
)

_NODE = (
    "eslint.config.*",
    ".eslintrc",
    ".eslintrc.*",
    ".eslintignore",
    "prettier.config.*",
    ".prettierrc",
    ".prettierrc.*",
    ".prettierignore",
    "{biome,.biome}.{json,jsonc}",
    "{oxlint,.oxlintrc}.json",
    "{stylelint.config,.stylelintrc}.*",
    ".stylelintrc",
    "{jest,vitest,vite,karma,playwright,cypress,ava,wdio,babel}.config.*",
    "{.babelrc,.swcrc}",
    ".babelrc.*",
    "{jest,vitest}.setup.*",
    "{vitest,jest}.workspace.*",
    "karma.conf.*",
    "{.taprc,.jshintrc}",
    "{tslint,dprint}.json",
    "nyc.config.*",
    ".mocharc",
    ".mocharc.*",
    ".nycrc",
    ".nycrc.*",
    ".c8rc",
    ".c8rc.*",
    ".lintstagedrc",
    ".lintstagedrc.*",
    "lint-staged.config.*",
    "commitlint.config.*",
    "bunfig.toml",
    ".npmrc",
    ".yarnrc",
    ".yarnrc.yml",
    ".pnpmfile.cjs",
    ".pnp.*",
)

_OTHER_LANGUAGES = (
    ".golangci.{yml,yaml,toml,json}",
    "staticcheck.conf",
    "{clippy,.clippy}.toml",
    "{rustfmt,.rustfmt}.toml",
    "deny.toml",
    ".cargo/**",
    "{rust-toolchain,rust-toolchain.toml}",
    "go.work",
    ".mvn/**",
    "Directory.Build.{props,targets}",
    ".config/nextest.toml",
    ".rubocop.yml",
    ".rubocop_todo.yml",
    ".rspec",
    ".simplecov",
    "checkstyle*.xml",
    "{pmd,spotbugs}*.xml",
    "detekt*.yml",
    "phpunit.xml",
    "phpunit.xml.dist",
    "phpcs.xml",
    "phpcs.xml.dist",
    "phpstan.{neon,neon.dist}",
    "{psalm.xml,.php-cs-fixer.php,.php-cs-fixer.dist.php}",
    ".credo.exs",
    ".swiftlint.yml",
    "{.proverc,.perlcriticrc,.perltidyrc}",
    "{.luacheckrc,.busted}",
    "phpunit.dist.xml",
    "{.scalafmt,.scalafix}.conf",
    "analysis_options.yaml",
    "revive.toml",
    ".sqlfluff",
    ".codespellrc",
    "{typos,_typos,.typos}.toml",
    ".vale.ini",
    ".clang-tidy",
    ".clang-format",
    ".shellcheckrc",
    ".hadolint.yaml",
    "{.yamllint,.yamllint.yml,.yamllint.yaml}",
    "{.markdownlint,.markdownlint-cli2}.{json,jsonc,yaml,yml}",
)

_SCANNERS = (".gitleaks.toml", ".gitleaksignore", ".secrets.baseline", ".trufflehog.*", ".semgrepignore", ".semgrep/**")

_HOOKS = (
    ".husky/**",
    ".githooks/**",
    "{lefthook,.lefthook}.{yml,yaml,toml}",
    "lefthook-local.yml",
    ".pre-commit-config.yaml",
    ".pre-commit-hooks.yaml",
)

_HIJACKERS = (
    "{sitecustomize,usercustomize}",
    "{sitecustomize,usercustomize}.*",
    "**/{sitecustomize,usercustomize}/**",
    "*.pth",
    "*.{pyc,pyo}",
    "__pycache__",
    "**/__pycache__/**",
    "*.{dist-info,egg-info}",
    "**/*.{dist-info,egg-info}/entry_points.txt",
    "**/node_modules/**",
    "**/.venv/**",
    "/venv/**",
    "**/site-packages/**",
    ".gitmodules",
)

_TOOL_NAMES = """
pytest _pytest py pluggy iniconfig xdist pytest_asyncio pytest_cov unittest2 nose nose2 ruff mypy mypyc flake8 pyflakes
pycodestyle pylint astroid black isort coverage tox nox bandit hypothesis pyright gitleaks detect_secrets pre_commit
hatchling setuptools pip
"""
_ORDINARY_NAMES = """
test calendar queue secrets statistics code cmd this antigravity turtle turtledemo chunk wave mailbox sched graphlib
colorsys crypt cgi profile trace symbol parser fractions imp nis formatter
"""

TOOLS = frozenset(_TOOL_NAMES.split())
"""Python tools that judge. A module of that name in the way of an import would be run in their place."""

_ORDINARY = frozenset(_ORDINARY_NAMES.split())
"""Modules of the standard library that test runners do without, and whose names projects give to their own."""

_SHADOWED = TOOLS | (frozenset(sys.stdlib_module_names) - _ORDINARY)


def shadowed_module(path: str, roots: tuple[str, ...] = ("", "src/")) -> str:
    """The module that a new Python file would stand in for, when its folder is on the import path; or nothing.

    Packages without an `__init__.py` never win over an installed module, so they are left alone.
    """
    for root in roots:
        rest = path.removeprefix(root) if path.startswith(root) else ""
        found = re.fullmatch(r"([^/.]+)(?:/__init__)?(?:\.[\w-]+)?\.(?:py|pyc|so|pyd)", rest)
        if found and found[1] in _SHADOWED:
            return found[1]
    return ""


_OF_PACKAGES = (".npm", ".yarn", ".pnp")
"""How settings of package managers begin: they write such files themselves."""
_OF_RUNNERS = (*_PYTHON, *(name for name in _NODE if not name.startswith(_OF_PACKAGES)), "conftest.py")


def is_setting_of_runners(path: str) -> bool:
    """Whether runners and linters read a file at the root of a repository, and nothing else does."""
    return "/" not in path and matches_any(path.lower(), _OF_RUNNERS)


PROTECTED: tuple[str, ...] = (
    *_GENBA,
    *_PIPELINES,
    *_PYTHON,
    *_NODE,
    *_OTHER_LANGUAGES,
    *_SCANNERS,
    *_HOOKS,
    *_HIJACKERS,
)
"""What judges the work, where the settings name nothing else.

- Files that mix judging with ordinary things (`pyproject.toml`, `package.json`, `setup.cfg`, `Cargo.toml`,
  `tsconfig.json`, `.gitattributes`, makefiles) are not here: of those, only the judging parts are protected.
- Configuration counts in every folder, since most tools take the nearest one. Pipelines count at the root, where
  alone they are read.
- `.gitmodules` is here because it brings in what no commit of this repository contains.
- `.env`, `.editorconfig` and version files are not: no verdict depends on them.
- `conftest.py` is not: it belongs to the tests and is judged with them.
- Compiled Python is, and so is what registers a plugin: both are run with no text that shows it.
"""
