"""Every `git` that the tests start is recorded, and judged after each test: the host never runs git over a tree that
an agent can write.

A small program stands before git on the PATH of each test process (`git_recorder.c`). It is compiled where there is a
compiler. Inside a sandbox its folder does not exist, so what is recorded ran on the host.

The product's git is known by its hardened settings (`tests/git/test_one_place.py` shows that it starts no other). Its
environment is minimal, and it never names a worktree. The git of tests may look wherever it likes, and so may that of
agents and goals without a sandbox. Over the worktree of a session in a sandbox nothing is recorded but the host's.
"""

import functools
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from genba.connections.git.repository.access import TOKEN_VARIABLE
from genba.connections.git.repository.environment import _LOCAL, _REMOTE

NOT_RUN = "not run: there is no C compiler to make the recording git with (Debian: apt-get install gcc libc6-dev)"
HARDENED = "genba.hardened=true"
"""The setting that every git of the product has, and no other."""
_DISCOVERY = {"rev-parse", "--path-format=absolute", "--show-toplevel", "--absolute-git-dir", "--git-common-dir"}
"""Git that looks for the repository of `genba` which an agent without a sandbox started in its worktree."""
_SOURCE = Path(__file__).with_suffix(".c")
_WORKTREES = ("/.worktrees/", "/.trees/", "/trees/")
"""The folders of worktrees that tests name."""
_PRIVATE = "/.git/genba/private/"
_PRIVATE_PARTS = ("repository", "outbox", "home", "upper", "work", "asks")
_CHECKOUTS = "/.git/genba/checkouts/"
_WRITTEN_BY_GOALS = ("tree", "home", "views", "layers")


_OF_GIT = ("GIT_", "LC_")
KNOWN = frozenset(_LOCAL | _REMOTE | {"PWD", "OLDPWD", "SHLVL", "_", "GENBA_OWN_PROCESS", "GENBA_PROCESS_MARK"})
"""The names of variables that git of the product may have."""
_TALKS_TO_A_REMOTE = {"fetch", "push", "ls-remote"}
"""The commands that may also have the token of a forge."""


@dataclass(frozen=True)
class Started:
    """One git that was started on the host."""

    folder: str
    words: tuple[str, ...]
    variables: tuple[str, ...]

    @property
    def of_a_test(self) -> bool:
        return "PYTEST_CURRENT_TEST" in self.variables

    @property
    def of_the_product(self) -> bool:
        return HARDENED in self.words and not self.of_a_test and not set(self.words) >= _DISCOVERY

    @property
    def foreign_variables(self) -> list[str]:
        """The names in its environment that no git of the product needs."""
        names = {variable.partition("=")[0] for variable in self.variables}
        known = KNOWN | {TOKEN_VARIABLE} if _TALKS_TO_A_REMOTE & set(self.words) else KNOWN
        return sorted(name for name in names if name not in known and not name.startswith(_OF_GIT))

    def paths(self) -> list[str]:
        """Every path that git is given: its folder, its arguments, and what its variables name."""
        folder, found = self.folder, []
        for word, before in zip(self.words, ("", *self.words), strict=False):
            if before == "-C":
                folder = str(Path(folder, word))
        for word in self.words:
            value = word.partition("=")[2] if word.startswith("-") and "=" in word else word
            if value and not value.startswith("-"):
                found.append(os.path.normpath(Path(folder, value)))
        named = (variable.partition("=")[2] for variable in self.variables if variable.startswith("GIT_"))
        listed = (part.strip('"') for value in named for part in value.split(":"))
        return [self.folder, os.path.normpath(folder), *found, *(part for part in listed if part.startswith("/"))]


def violations(records: list[Started]) -> list[str]:
    """What each recorded git did that the host must not do."""
    return [f"{why}: git {' '.join(each.words)}  (in {each.folder})" for each in records if (why := violation(each))]


def violation(started: Started) -> str:
    """Why a git must not have been started like that; nothing where it may."""
    if started.of_a_test:
        inherited = HARDENED in started.words
        return "git of the product got the whole environment" if inherited else ""
    if not started.of_the_product:
        sandboxed = next((path for path in started.paths() if _is_sandboxed(path)), "")
        return f"git ran on the host over the worktree of a session in a sandbox ({sandboxed})" if sandboxed else ""
    for path in started.paths():
        if _is_private(path) or _worktree(path) is not None:
            return f"the host ran git over what an agent or a goal can write ({path})"
    if foreign := started.foreign_variables:
        return f"git of the product got {', '.join(foreign)} in its environment"
    return ""


def _worktree(path: str) -> tuple[str, str] | None:
    """What is before the folder of worktrees in a path, and the name of the worktree."""
    for folder in _WORKTREES:
        before, mark, rest = f"{path}/".partition(folder)
        if mark and rest.strip("/"):
            return before, rest.split("/")[0]
    return None


def _is_sandboxed(path: str) -> bool:
    """Whether a path is in the worktree of a session that has a private repository now."""
    found = _worktree(path)
    return found is not None and Path(found[0], ".git", "genba", "private", found[1], "repository").is_dir()


def _is_private(path: str) -> bool:
    for place, parts in ((_PRIVATE, _PRIVATE_PARTS), (_CHECKOUTS, _WRITTEN_BY_GOALS)):
        _, mark, rest = path.partition(place)
        if mark and any(part in parts for part in rest.split("/")[1:2]):
            return True
    return False


class Recorder:
    """The records of one test process."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._log = folder / "log"
        self._read = 0

    def take(self) -> list[Started]:
        """What was recorded since the last time."""
        try:
            with self._log.open("rb") as file:
                file.seek(self._read)
                content = file.read()
        except FileNotFoundError:
            return []
        whole, mark, _ = content.rpartition(b"\0\0")
        self._read += len(whole) + len(mark)
        return [_parsed(record) for record in whole.split(b"\0\0") if record]


def _parsed(record: bytes) -> Started:
    fields = [field.decode("utf-8", "surrogateescape") for field in record.split(b"\0")]
    of = {letter: tuple(field[1:] for field in fields if field[:1] == letter) for letter in "CAE"}
    return Started(folder="".join(of["C"][:1]), words=of["A"], variables=of["E"])


def record() -> Recorder | None:
    """Put the recording git before the real one, for this process and all that it starts; None without a compiler."""
    program = _program()
    if program is None:
        return None
    folder = Path(tempfile.mkdtemp(prefix="genba-recorded-"))
    shutil.copy(program, folder / "git")
    os.environ["PATH"] = f"{folder}:{os.environ.get('PATH', os.defpath)}"
    return Recorder(folder)


@functools.cache
def _program() -> Path | None:
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    real = shutil.which("git")
    if compiler is None or real is None or not sys.platform.startswith("linux"):
        return None
    made_of = _SOURCE.read_bytes() + real.encode()
    made = Path(sys.prefix) / f"git-recorder-{hashlib.sha256(made_of).hexdigest()[:16]}"
    if made.is_file():
        return made
    folder = made.parent if os.access(made.parent, os.W_OK) else Path(tempfile.mkdtemp(prefix="genba-recorder-"))
    handle, draft = tempfile.mkstemp(dir=folder)
    os.close(handle)
    words = [compiler, "-O2", f'-DREAL_GIT="{real}"', "-o", draft, str(_SOURCE)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        Path(draft).unlink()
        return None
    Path(draft).chmod(0o755)
    return Path(draft).rename(folder / made.name)
