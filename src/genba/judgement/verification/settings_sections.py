"""Files that mix judging with ordinary things: which of their judging parts differ.

The law: a dependency, a version or a new script is ordinary; what a linter, a type checker, a test runner or a build
reads is not. A file that could be read on the base and cannot be read any more differs as a whole.
"""

import re
import tomllib
from collections.abc import Callable
from typing import Any

import msgspec

_UNREADABLE = "cannot be read any more"
_Table = dict[str, Any]
_Read = Callable[[str], _Table | None]

_PYTHON_TOOL_NAMES = """
pytest ruff flake8 pyflakes pycodestyle pydocstyle black isort yapf autopep8 autoflake mypy pyright basedpyright pyre
pytype ty pyrefly pylint bandit coverage tox nox poe taskipy invoke doit importlinter semgrep deptry vulture interrogate
codespell typos refurb slotscheck djlint sqlfluff hypothesis mutmut inline-snapshot detect-secrets
"""
_NODE_KEY_NAMES = """
jest vitest mocha ava tap nyc c8 eslintConfig eslintIgnore prettier stylelint xo standard lint-staged husky pre-commit
simple-git-hooks commitlint
"""
_NODE_PACKAGE_NAMES = """
jest vitest mocha ava tap jasmine karma eslint prettier stylelint @biomejs/biome typescript ts-jest ts-node tsx
playwright @playwright/test cypress nyc c8 xo standard oxlint husky turbo nx
"""
_NODE_LIFECYCLE_NAMES = """
preinstall install postinstall preprepare prepare postprepare prepublish dependencies
"""

_PYTHON_TOOLS = frozenset(_PYTHON_TOOL_NAMES.split())
_PYTHON_PLACES = ("hatch.envs", "pdm.scripts", "pdm.options", "rye.scripts", "pixi.tasks", "pixi.feature")
_PYTHON_PACKAGES = _PYTHON_TOOLS | {"pluggy", "iniconfig", "pytest-cov", "pytest-xdist", "setuptools", "hatchling"}
_INI_SECTION = re.compile(
    r"(?:tool:)?(?:pytest|flake8|mypy|isort|pylint|coverage|pycodestyle|pydocstyle|pyflakes|tox|testenv|bandit|yapf"
    r"|pep8|aliases|importlinter)(?:[:.\-].*)?"
)

_NODE_KEYS = tuple(_NODE_KEY_NAMES.split())
_NODE_PACKAGES = frozenset(_NODE_PACKAGE_NAMES.split())
_NODE_LIFECYCLE = frozenset(_NODE_LIFECYCLE_NAMES.split())
_NODE_JUDGES = re.compile(r"(?:test|lint|build|check|typecheck|type-check|types|verify|ci)(?::.*)?")
_NEVER_FAILS = re.compile(r"(?:\s*(?:true|:|exit 0|echo\b[^&|;]*)\s*(?:;|&&|$))+|.*(?:\|\||;)\s*(?:true|:|exit 0)\s*")
_ELSEWHERE = re.compile(r"(?:file|link|portal|patch|git|git\+\w+|https?|ssh|npm|github|workspace):|[./~]|[\w-]+/[\w-]+")

_STRICTNESS = re.compile(
    r"strict\w*|no[A-Z]\w*|skip\w*Check|checkJs|allowUn\w+|exactOptional\w+|alwaysStrict|isolated\w+"
)
_SWITCHES = re.compile(
    r"skipTests|skipITs|test\.skip|testFailureIgnore|failIfNoTests|ignoreFailures|failOnError|failOnViolation"
    r"|failsOnError|<excludes?>|excludeTestsMatching|onlyIf|exclude\s*task|\benabled\s*=?\s*false"
)
_PLAIN_ATTRIBUTES = re.compile(
    r"-?text(?:=auto)?|eol=(?:lf|crlf)|linguist-.*|diff=\w+|whitespace=.*|-?merge|merge=union"
)
_HIDING_ATTRIBUTES = frozenset({"binary", "-diff", "!diff"})
_NO_SOURCE = re.compile(
    r".*(?:\.(?:png|jpe?g|gif|ico|webp|pdf|zip|gz|tgz|jar|woff2?|ttf|eot|otf|mp[34]|wasm|bin|exe|dll|so|db|sqlite3?"
    r"|svg|snap|lock|map)|-lock\.(?:json|yaml)|min\.(?:js|css))"
)


def differing_parts(path: str, old: str | None, new: str | None) -> tuple[str, ...] | None:
    """The judging parts of a file that a branch changes, such as `[tool.ruff]`.

    `old` and `new` are its text on the base and on the branch, None where there is no text. The answer is None for a
    file that is no such mixture.
    """
    name = path.rpartition("/")[2]
    compare = _KINDS.get(name)
    if compare is None and re.fullmatch(r"tsconfig(?:\..*)?\.json", name):
        compare = _tsconfig
    if compare is None and re.fullmatch(r"pom\.xml|.*\.gradle(?:\.kts)?", name):
        compare = _build_switches
    return compare(old, new) if compare is not None else None


def _parsed(read: _Read, judge: Callable[[_Table, _Table], list[str]]) -> Callable[[str | None, str | None], Any]:
    def compare(old: str | None, new: str | None) -> tuple[str, ...]:
        before = read(old) if old is not None else {}
        after = read(new) if new is not None else {}
        if after is None:
            return (_UNREADABLE,) if before is not None else ("is not readable",)
        return tuple(judge(before or {}, after))

    return compare


def _toml(text: str) -> _Table | None:
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError):
        return None


def _json(text: str) -> _Table | None:
    try:
        value = msgspec.json.decode(text.removeprefix("\ufeff"))
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return None
    return value if isinstance(value, dict) else None


def _json_with_comments(text: str) -> _Table | None:
    """JSON as TypeScript reads it: with comments, and with a comma before a closing bracket."""
    token = re.compile(r'"(?:[^"\\]|\\.)*(?:"|\Z)|//[^\n]*|/\*.*?(?:\*/|\Z)', re.DOTALL)
    bare = token.sub(lambda found: found[0] if found[0].startswith('"') else " ", text)
    comma = re.compile(r'("(?:[^"\\]|\\.)*(?:"|\Z))|,(\s*[}\]])', re.DOTALL)
    return _json(comma.sub(lambda found: found[1] or found[2], bare))


def _at(table: _Table, place: str) -> Any:
    value: Any = table
    for word in place.split("."):
        value = value.get(word) if isinstance(value, dict) else None
    return value


def _table(table: _Table, place: str) -> _Table:
    value = _at(table, place)
    return value if isinstance(value, dict) else {}


def _changed_keys(old: _Table, new: _Table) -> list[str]:
    return [key for key in sorted({*old, *new}) if old.get(key) != new.get(key) or (key in old) != (key in new)]


def _pyproject(old: _Table, new: _Table) -> list[str]:
    before, after = _table(old, "tool"), _table(new, "tool")
    found = ["[build-system]"] if old.get("build-system") != new.get("build-system") else []
    for tool in _changed_keys(before, after):
        judges = tool in _PYTHON_TOOLS or tool.startswith("pytest")
        if judges and not (tool == "pytest" and _only_more_markers(before.get(tool), after.get(tool))):
            found.append(f"[tool.{tool}]")
    found += [f"[tool.{place}]" for place in _PYTHON_PLACES if _at(before, place) != _at(after, place)]
    if _at(old, "project.entry-points.pytest11") != _at(new, "project.entry-points.pytest11"):
        found.append("[project.entry-points.pytest11]")
    for place in ("project.scripts", "tool.uv.sources", "tool.poetry.scripts"):
        keys = _changed_keys(_table(old, place), _table(new, place))
        found += [f"[{place}] {key}" for key in keys if key.lower().replace("_", "-") in _PYTHON_PACKAGES]
    return found


def _only_more_markers(old: Any, new: Any) -> bool:
    """New names for markers: they describe tests and choose none."""
    if not isinstance(old, dict) or not isinstance(new, dict):
        return False
    before, after = _table(old, "ini_options"), _table(new, "ini_options")
    had, has = before.get("markers", []), after.get("markers", [])
    if not isinstance(had, list) or not isinstance(has, list) or any(marker not in has for marker in had):
        return False
    return {**old, "ini_options": {**before, "markers": has}} == {**new, "ini_options": after}


def _package_json(old: _Table, new: _Table) -> list[str]:
    before, after = _table(old, "scripts"), _table(new, "scripts")
    found = [f'"scripts.{name}"' for name in _changed_keys(before, after) if name in before]
    added = {name: after[name] for name in _changed_keys(before, after) if name not in before}
    found += [f'"scripts.{name}"' for name, script in added.items() if _hooks_or_hollow(name, script, before)]
    found += [f'"{key}"' for key in _NODE_KEYS if old.get(key) != new.get(key)]
    for place in ("overrides", "resolutions", "pnpm.overrides"):
        keys = _changed_keys(_table(old, place), _table(new, place))
        found += [f'"{place}.{key}"' for key in keys if re.sub(r"(?<=.)@.*", "", key.split("/")[-1]) in _NODE_PACKAGES]
    for place in ("dependencies", "devDependencies", "optionalDependencies"):
        versions = _table(new, place)
        for key in _changed_keys(_table(old, place), versions):
            if key in _NODE_PACKAGES and _ELSEWHERE.match(str(versions.get(key, ""))):
                found.append(f'"{place}.{key}"')
    return found


def _hooks_or_hollow(name: str, script: Any, before: _Table) -> bool:
    """Whether a new script is run unasked, around another one; or is asked for a judgement and can only say yes."""
    hooked = re.sub(r"^(?:pre|post)", "", name)
    if name in _NODE_LIFECYCLE or (hooked != name and (hooked in before or _NODE_JUDGES.fullmatch(hooked))):
        return True
    judges = _NODE_JUDGES.fullmatch(name) is not None
    return judges and (not isinstance(script, str) or _NEVER_FAILS.fullmatch(script) is not None)


def _composer(old: _Table, new: _Table) -> list[str]:
    before, after = _table(old, "scripts"), _table(new, "scripts")
    changed = _changed_keys(before, after)
    return [f'"scripts.{name}"' for name in changed if name in before or re.match(r"pre-|post-", name)]


def _deno(old: _Table, new: _Table) -> list[str]:
    before, after = _table(old, "tasks"), _table(new, "tasks")
    found = [f'"tasks.{name}"' for name in _changed_keys(before, after) if name in before]
    return found + [f'"{key}"' for key in ("lint", "fmt", "test", "exclude") if old.get(key) != new.get(key)]


def _cargo(old: _Table, new: _Table) -> list[str]:
    places = ("lints", "workspace.lints", "profile.test", "lib.test", "lib.doctest", "lib.harness", "package.autotests")
    found = [f"[{place}]" for place in places if _at(old, place) != _at(new, place)]
    had, has = old.get("test", []), new.get("test", [])
    if isinstance(had, list) and (not isinstance(has, list) or any(target not in has for target in had)):
        found.append("[[test]]")
    return found


def _tsconfig(old: str | None, new: str | None) -> tuple[str, ...]:
    """How strict the compiler is, and what it looks at. A new file judges nothing that was there before."""
    if old is None:
        return ()
    before = _json_with_comments(old)
    after = _json_with_comments(new) if new is not None else {}
    if before is None or after is None:
        return (_UNREADABLE,)
    options = _changed_keys(_table(before, "compilerOptions"), _table(after, "compilerOptions"))
    found = [f'"compilerOptions.{key}"' for key in options if _STRICTNESS.fullmatch(key)]
    found += [f'"{key}"' for key in ("extends", "exclude") if before.get(key) != after.get(key)]
    for key in ("include", "files", "references"):
        had, has = before.get(key), after.get(key)
        grown = isinstance(had, list) and isinstance(has, list) and all(entry in has for entry in had)
        if had != has and not grown:
            found.append(f'"{key}"')
    return tuple(found)


def _sections(text: str) -> dict[str, list[str]]:
    """The lines of each section. A header that is indented may be read as a value too, so it counts as both."""
    found: dict[str, list[str]] = {}
    current: list[str] = []
    for line in text.splitlines():
        bare = line.strip()
        if not bare or bare[0] in "#;":
            continue
        header = re.match(r"\[([^\]]+)\]", bare)
        for section in current:
            if header is None or line[0].isspace():
                found[section].append(bare)
        if header is not None:
            current = [*current, header[1].strip()] if line[0].isspace() else [header[1].strip()]
            found.setdefault(current[-1], [])
    return found


def _setup_cfg(old: str | None, new: str | None) -> tuple[str, ...]:
    before, after = _sections(old or ""), _sections(new or "")
    changed = _changed_keys(before, after)
    found = [f"[{section}]" for section in changed if _INI_SECTION.fullmatch(section.lower())]
    if ("pytest11" in (new or "")) and "pytest11" not in (old or ""):
        found.append("[options.entry_points] pytest11")
    return tuple(found)


def _build_switches(old: str | None, new: str | None) -> tuple[str, ...]:
    """Lines that turn tests or checks off, in build files that otherwise hold dependencies."""
    had = {line.strip() for line in (old or "").splitlines()}
    added = [line.strip() for line in (new or "").splitlines() if line.strip() not in had]
    return tuple(sorted({found[0] for line in added if (found := _SWITCHES.search(line))}))


def _attributes(old: str | None, new: str | None) -> tuple[str, ...]:
    """Attributes that change what a checkout or a diff shows. Line ends and languages are ordinary."""
    before, after = ({line.strip() for line in (text or "").splitlines()} for text in (old, new))
    return tuple(line for line in sorted(before ^ after) if line and line[0] != "#" and not _plain(line))


def _plain(line: str) -> bool:
    pattern, *attributes = line.split()
    return all(
        _PLAIN_ATTRIBUTES.fullmatch(word) or (word in _HIDING_ATTRIBUTES and _NO_SOURCE.fullmatch(pattern.lower()))
        for word in attributes
    )


_KINDS: dict[str, Callable[[str | None, str | None], tuple[str, ...]]] = {
    "pyproject.toml": _parsed(_toml, _pyproject),
    "package.json": _parsed(_json, _package_json),
    "composer.json": _parsed(_json, _composer),
    "deno.json": _parsed(_json_with_comments, _deno),
    "deno.jsonc": _parsed(_json_with_comments, _deno),
    "Cargo.toml": _parsed(_toml, _cargo),
    "setup.cfg": _setup_cfg,
    ".gitattributes": _attributes,
}
