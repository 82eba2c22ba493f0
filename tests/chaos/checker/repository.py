"""What git knows, read by plain git and by nothing else. Nothing is written, and nothing that agents wrote is run."""

import os
import subprocess
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

_SAFE = (
    "-c",
    "core.fsmonitor=false",
    "-c",
    "core.hooksPath=/dev/null",
    "-c",
    "safe.directory=*",
    "--no-optional-locks",
)
_TREE = "40000"
_BLOB = "100"


class Commit(msgspec.Struct, frozen=True):
    id: str
    tree: str
    parents: tuple[str, ...]
    message: str

    @property
    def issue(self) -> int:
        """The task that it says it lands; 0 for none."""
        result = self._told("Issue: ")
        return int(result) if result.isdigit() else 0

    @property
    def session(self) -> str:
        return self._told("Session: ")

    def _told(self, word: str) -> str:
        """What the last line says that begins so."""
        return next((line.removeprefix(word) for line in self.message.splitlines()[::-1] if line.startswith(word)), "")


class Repository:
    """A repository as it is at one moment."""

    def __init__(self, root: Path, target: str) -> None:
        self.root = root
        self.folder = root / ".git" if (root / ".git").is_dir() else root
        self.target = f"refs/heads/{target}"
        self.trouble = ""
        """Why git could not follow its refs."""
        self._asked: subprocess.Popen[bytes] | None = None
        self._objects: dict[str, tuple[str, bytes]] = {}
        self._files: dict[str, dict[str, str]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        asked, self._asked = self._asked, None
        if asked is not None and asked.stdin is not None and asked.stdout is not None:
            asked.stdin.close()
            asked.stdout.close()
            asked.wait()

    def git(self, *words: str) -> "subprocess.CompletedProcess[bytes]":
        return subprocess.run(self._words(*words), env=_environment(), capture_output=True, check=False)

    def _words(self, *words: str) -> list[str]:
        place = ("--git-dir", str(self.folder), *(() if self.folder == self.root else ("--work-tree", str(self.root))))
        return ["git", *_SAFE, *place, *words]

    @cached_property
    def refs(self) -> dict[str, str]:
        lines = self.git("for-each-ref", "--format=%(refname) %(objectname)").stdout.decode("utf-8", "replace")
        return {name: found for name, _, found in (line.rpartition(" ") for line in lines.splitlines())}

    @cached_property
    def commits(self) -> dict[str, Commit]:
        """Everything that a ref leads to."""
        result = self.git("log", "--all", "--no-show-signature", "--format=%H %T %P%n%B%x00")
        self.trouble = result.stderr.decode("utf-8", "replace").strip() if result.returncode else ""
        found = {}
        for block in result.stdout.decode("utf-8", "replace").split("\0"):
            first, _, message = block.lstrip("\n").partition("\n")
            if first:
                name, tree, *parents = first.split()
                found[name] = Commit(name, tree, tuple(parents), message)
        return found

    @cached_property
    def line(self) -> list[Commit]:
        """What the target was, one after the other, oldest first."""
        found = []
        at = self.refs.get(self.target, "")
        while at in self.commits:
            found.append(self.commits[at])
            at = next(iter(self.commits[at].parents), "")
        return found[::-1]

    @cached_property
    def moves(self) -> list[str] | None:
        """What the target was made to be, move by move, as git wrote it down; None where it did not."""
        log = self.folder / "logs" / self.target
        if self.folder != self.root and not log.is_file():
            return None
        lines = log.read_text("utf-8", "replace").splitlines() if log.is_file() else []
        return [line.split()[1] for line in lines if line]

    def own_files(self) -> list[str]:
        """Every file of the git directory that is no object, by its path in there; of those below only the locks."""
        found, start = [], len(str(self.folder)) + 1
        for folder, _, files in os.walk(self.folder):
            inside = folder[start:]
            objects = inside.partition("/")[0] == "objects"
            found += [f"{inside}/{name}" if inside else name for name in files if not objects or name.endswith(".lock")]
        return found

    # Objects

    def object(self, name: str) -> tuple[str, bytes]:
        """The type and the content of an object; `missing` when there is none."""
        if name not in self._objects:
            self._objects[name] = self._read(name)
        return self._objects[name]

    def _read(self, name: str) -> tuple[str, bytes]:
        if self._asked is None:
            words = self._words("cat-file", "--batch")
            silent = subprocess.DEVNULL
            self._asked = subprocess.Popen(
                words, env=_environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=silent
            )
        result, asked = self._asked.stdout, self._asked.stdin
        if result is None or asked is None:
            return "missing", b""
        try:
            asked.write(f"{name}\n".encode())
            asked.flush()
        except BrokenPipeError:
            return "missing", b""
        head = result.readline().decode("utf-8", "replace").split()
        if len(head) != 3:
            return "missing", b""
        content = result.read(int(head[2]))
        result.read(1)
        return head[1], content

    def files(self, tree: str) -> dict[str, str]:
        """By path: the blob of each file of a tree."""
        if tree not in self._files:
            self._files[tree] = dict(self._walk(tree, ""))
        return self._files[tree]

    def _walk(self, tree: str, above: str) -> Iterator[tuple[str, str]]:
        kind, content = self.object(tree)
        at, size = 0, len(tree) // 2
        while kind == "tree" and at < len(content):
            space, end = content.index(b" ", at), content.index(b"\0", at)
            mode, path = content[at:space].decode(), above + content[space + 1 : end].decode("utf-8", "replace")
            name = content[end + 1 : end + 1 + size].hex()
            at = end + 1 + size
            if mode == _TREE:
                yield from self._walk(name, f"{path}/")
            elif mode.startswith(_BLOB):
                yield path, name

    def text(self, blob: str) -> str:
        return self.object(blob)[1].decode("utf-8", "replace")

    def parents_of(self, name: str) -> tuple[str, ...] | None:
        """The parents of a commit, also of one that no ref leads to; None when it is none."""
        if name in self.commits:
            return self.commits[name].parents
        kind, content = self.object(name)
        if kind != "commit":
            return None
        head = content.partition(b"\n\n")[0].decode("utf-8", "replace").splitlines()
        return tuple(line.split()[1] for line in head if line.startswith("parent "))


def _environment() -> dict[str, str]:
    """Nothing of the caller's, and no settings but those of the repository."""
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "LC_ALL": "C",
        "HOME": "/nonexistent",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_TERMINAL_PROMPT": "0",
    }
