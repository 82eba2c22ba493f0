"""Which files of a repository a command names: they judge, so a branch must leave them alone."""

import re
import shlex
from collections.abc import Iterable

from genba.domain.goals import Words
from genba.judgement.makefiles import NAMES as MAKEFILES
from genba.judgement.paths import is_test_name

_DEPTH = 3
_LENGTH = 20_000
_SHELL_SIGNS = re.compile(r"[;&|<>(){}`$\n]+")
_SCRIPTS = ("package.json",)
_BY_PROGRAM: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("make", "gmake"), MAKEFILES),
    **dict.fromkeys(
        ("npm", "npx", "yarn", "pnpm", "bun", "turbo", "nx", "lerna"), (*_SCRIPTS, "turbo.json", "nx.json")
    ),
    **dict.fromkeys(("just",), ("justfile", "Justfile", ".justfile")),
    **dict.fromkeys(("task", "go-task"), ("Taskfile.yml", "Taskfile.yaml", "taskfile.yml")),
    **dict.fromkeys(("inv", "invoke"), ("tasks.py",)),
    **dict.fromkeys(("rake",), ("Rakefile", "rakefile", "Rakefile.rb")),
    "tox": ("tox.ini",),
    "nox": ("noxfile.py",),
    "composer": ("composer.json",),
    "deno": ("deno.json", "deno.jsonc"),
    "earthly": ("Earthfile",),
    "doit": ("dodo.py",),
    "bazel": ("WORKSPACE", "MODULE.bazel", ".bazelrc"),
    "gradle": ("gradlew",),
    "mvn": ("mvnw",),
}
_ENDINGS = ("", ".py", ".js", ".mjs", ".cjs", ".ts", ".sh", "/__main__.py", "/__init__.py", "/index.js", "/index.ts")


def paths_in_command(command: Words, files: Iterable[str]) -> tuple[str, ...]:
    """The files that a command names or is known to read, in the order of their names.

    Files whose names say that they are tests are left out: tests may grow, and are judged by themselves.
    """
    there = frozenset(files)
    words = _split(command, _DEPTH) if isinstance(command, str) else [part for word in command for part in _parts(word)]
    folders = ["", *dict.fromkeys(f"{_plain(word)}/" for word in words if _plain(word))]
    found: set[str] = set()
    for at, word in enumerate(words):
        program = word.rpartition("/")[2]
        found.update(f"{folder}{name}" for name in _BY_PROGRAM.get(program, ()) for folder in folders)
        found.update(f"{folder}{name}" for name in _candidates(word) for folder in folders)
        if word == "-m" and at + 1 < len(words):
            found.update(_candidates(words[at + 1].replace(".", "/")))
    return tuple(sorted(path for path in found & there if not is_test_name(path)))


def _parts(word: str) -> list[str]:
    """A word of a list; one with blanks may be a line for a shell, as after `sh -c`."""
    return [word, *_split(word, _DEPTH - 1)] if " " in word or "\n" in word else [word]


def _split(line: str, depth: int) -> list[str]:
    bare = _SHELL_SIGNS.sub(" ", line[:_LENGTH])
    try:
        words = shlex.split(line[:_LENGTH], comments=False)
    except ValueError:
        words = []
    found = [*bare.replace('"', " ").replace("'", " ").split(), *words]
    inner = [word for word in words if " " in word] if depth > 0 else []
    return list(dict.fromkeys([*found, *(part for word in inner for part in _split(word, depth - 1))]))


def _candidates(word: str) -> list[str]:
    """The paths that a word may mean: itself, the value of an option, a module or a script without its ending."""
    plain = _plain(word)
    names = [plain, _plain(word.partition("=")[2])] if "=" in word else [plain]
    if word.startswith("-") and len(word) > 2:  # noqa: PLR2004  (an option of one letter with its value)
        names.append(_plain(word[2:]))
    return [f"{name}{end}" for name in names if name for end in _ENDINGS]


def _plain(word: str) -> str:
    """A path as git writes it."""
    words: list[str] = []
    for part in word.split("/"):
        if part == ".." and words:
            words.pop()
        elif part not in ("", "."):
            words.append(part)
    return "" if word.startswith("/") else "/".join(words)
