"""Histories that git does not make: written object by object, so that git itself need not agree to them."""

import hashlib
import os
import subprocess
import tempfile
import zlib
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from hypothesis import strategies as st

BASE = "main"


@dataclass
class CommitPlan:
    """One commit: whose child it is, what is in it, and what it says."""

    parents: list[int]
    files: dict[bytes, tuple[str, bytes]]
    author: bytes
    committer: bytes
    headers: bytes
    message: bytes


@dataclass
class HistoryPlan:
    """A whole repository."""

    object_format: str
    commits: list[CommitPlan]
    branches: dict[str, int]
    spoils: list[tuple[str, int]] = field(default_factory=list)


PEOPLE = (
    b"A U Thor <a@example.org> 1700000000 +0000",
    b"A <a> 0 +0000",
    b"A <a> -1 +0000",
    b"A <a> -62135596800 +0000",
    b"A <a> 99999999999 +0000",
    b"A <a> 9223372036854775807 +0000",
    b"A <a> 18446744073709551615 +0000",
    b"A <a> 99999999999999999999999999 +9999",
    b"A <a> 1700000000 -9999",
    b"A <a> 1700000000",
    b"A <a>",
    b"A",
    b"",
    b"<>",
    b"A <a> now +0000",
    b"A <a> 1e9 +0000",
    b"\xff\xfe <\xff> 1700000000 +0000",
    b"A\tB <a@b <c@d>> 1700000000 +0000",
    b"A <a> 1700000000 +0000 extra",
    "現場 <g@例え.jp> 1700000000 +0900".encode(),
    b"x" * 5000 + b" <a> 1700000000 +0000",
)
HEADERS = (
    b"",
    b"",
    b"",
    b"encoding latin-1\n",
    b"encoding nonsense\n",
    b"encoding UTF-16\n",
    b"mergetag object 0\n x\n",
    b"gpgsig -----BEGIN PGP SIGNATURE-----\n \n x\n -----END PGP SIGNATURE-----\n",
    b"unknown header\n",
)
MESSAGES = (
    b"Work\n",
    b"",
    b"\n\n\n",
    b"\0",
    b"a\0b\n",
    b"\xff\xfe\n",
    b"\xef\xbb\xbfWork\n",
    b"Work\r\n\r\nIssue: 3\r\n",
    b"Work\n\nIssue: 3\nAgent: worker\nSession: worker-3-1\n",
    b"Work\n\nIssue: #3\n",
    b"Work\n\nIssue: 99999999999999\n",
    b"Work\n\nIssue:\nIssue: -1\n",
    "Work\n\nIssue: ３\n".encode(),
    b"Work\n\nIssue: 3\nAgent: \xff\nSession: \xff\n",
    b"Fixes #1, closes #2, resolves: #3\n",
    b"#4 #5 (#6)\n",
    b"Thing (#7)\n",
    b"Merge pull request #8 from a/9-b\n",
    b"Merge branch '10-x'\n",
    b"Merge branch '\xff'\n",
    b'Revert "Work"\n\nThis reverts commit abcdef1.\n',
    b"This reverts commit " + b"0" * 40 + b".\n",
    b"Reverts a/b#11\n",
    b"commit abc\n\ndiff --git a b\n",
    b"#" * 70000,
    b"closes " * 3000 + b"#12\n",
    b"x" * 200_000 + b"\n\nIssue: 3\n",
    b"\x1b[31mred\x1b[0m #13\n",
    "現場 #14\n".encode(),
    b"Work\n\nCo-authored-by: x\nIssue: 3\n" + b"Agent: " + b"y" * 300 + b"\nSession: z\n",
    b"fixes #0\n",
    b"fixes #999999999\n",
)
NAMES = (
    b"a",
    b"b",
    b"A",
    b"dir/a",
    b"dir/deep/b",
    b"new\nline",
    b"tab\tx",
    b"\xff\xfe",
    "現場".encode(),
    b'quo"te',
    b"back\\slash",
    b"-dash",
    b"d/" * 100 + b"x",
    b" space ",
    b".gitattributes",
    b".gitmodules",
    b"x" * 250,
    b"con",
    b"a:b",
    b":(top)a",
    b"*?[",
    b"dir\xcc\x81",
    b"sp ace/ta\tb",
    b"\r",
    b"~",
    b"test_x.py",
    b".genba/config.yaml",
    b"\x1b[31m",
)
CONTENTS = (
    b"",
    b"text\n",
    b"\0binary",
    b"\xff\xfe",
    b"a" * 5000,
    b"* text=auto eol=crlf filter=x diff=x\n",
    b"../../../etc/passwd",
    b"def test_x():\n    assert True\n",
    b"dod: [",
    b"<<<<<<< a\n=======\n>>>>>>> b\n",
    b'[submodule "x"]\n\tpath = a\n\turl = --x\n',
)
MODES = ("100644", "100644", "100644", "100755", "120000", "160000", "100664")
BRANCHES = (
    "3-x",
    "genba/3-add",
    "feature/fix-7_y",
    "é",
    "a b",
    "x" * 200,
    "issue-99999999",
    "v1.2.3",
    "-x",
    "heads/main",
    "main2",
    "a/b/c/d/e/f/g",
    "HEAD",
    "3.lock",
    "現場/3",
    "%",
    "a..b",
    "@",
    "refs/heads/main",
)
SPOILS = ("missing", "torn", "empty", "shallow", "graft", "replace", "pack", "lone", "packed-refs", "bad ref", "HEAD")


@st.composite
def histories(draw: st.DrawFn) -> HistoryPlan:
    made = [draw(_commits(number)) for number in range(draw(st.integers(1, 6)))]
    last = len(made) - 1
    named = draw(st.lists(st.tuples(st.sampled_from(BRANCHES), st.integers(0, last)), max_size=3))
    spoils = draw(st.lists(st.tuples(st.sampled_from(SPOILS), st.integers(0, 40)), max_size=2))
    return HistoryPlan(
        object_format=draw(st.sampled_from(("sha1", "sha1", "sha1", "sha256"))),
        commits=made,
        branches={**dict(named), BASE: draw(st.integers(0, last)), "work": last},
        spoils=spoils,
    )


@st.composite
def _commits(draw: st.DrawFn, number: int) -> CommitPlan:
    parents = draw(st.lists(st.integers(0, number - 1), max_size=4)) if number else []
    if number and draw(st.integers(0, 3)):
        parents = [number - 1]
    files = st.dictionaries(
        st.sampled_from(NAMES), st.tuples(st.sampled_from(MODES), st.sampled_from(CONTENTS)), max_size=4
    )
    usual = PEOPLE[0]
    return CommitPlan(
        parents=parents,
        files=draw(files),
        author=draw(st.sampled_from((usual, usual, *PEOPLE))),
        committer=draw(st.sampled_from((usual, usual, *PEOPLE))),
        headers=draw(st.sampled_from(HEADERS)),
        message=draw(st.sampled_from(MESSAGES) | st.binary(max_size=80)),
    )


class Repository:
    """A history on the disk."""

    def __init__(self, root: Path, plan: HistoryPlan) -> None:
        self.root = root
        self.git_dir = root / ".git"
        self.plan = plan
        self.commits: list[str] = []
        self.objects: list[str] = []
        _unpack(plan.object_format, self.git_dir)
        for each in plan.commits:
            self.commits.append(self._commit(each))
        for name, at in plan.branches.items():
            self._branch(name, self.commits[at])
        for spoil, at in plan.spoils:
            self._spoil(spoil, at)

    def git(self, *words: str) -> "subprocess.CompletedProcess[bytes]":
        return subprocess.run(["git", "-C", str(self.root), *words], capture_output=True, check=False, timeout=60)

    def put(self, kind: str, content: bytes) -> str:
        whole = f"{kind} {len(content)}\0".encode() + content
        name = hashlib.new(self.plan.object_format, whole, usedforsecurity=False).hexdigest()
        path = self.git_dir / "objects" / name[:2] / name[2:]
        if not path.exists():
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(zlib.compress(whole, 1))
            self.objects.append(name)
        return name

    def _commit(self, plan: CommitPlan) -> str:
        lines = [b"tree " + self._tree(plan.files).encode()]
        lines += [b"parent " + self.commits[at].encode() for at in plan.parents]
        lines += [b"author " + plan.author, b"committer " + plan.committer]
        return self.put("commit", b"\n".join(lines) + b"\n" + plan.headers + b"\n" + plan.message)

    def _tree(self, files: dict[bytes, tuple[str, bytes]]) -> str:
        folders: dict[bytes, dict[bytes, tuple[str, bytes]]] = {}
        entries: dict[bytes, tuple[str, str]] = {}
        for path, (mode, content) in files.items():
            name, slash, rest = path.partition(b"/")
            if slash:
                folders.setdefault(name, {})[rest] = (mode, content)
            else:
                blob = self.put("commit", content) if mode == "160000" else self.put("blob", content)
                entries[name] = (mode, blob)
        entries |= {name: ("40000", self._tree(inner)) for name, inner in folders.items()}
        ordered = sorted(entries, key=lambda name: name + b"/" * (entries[name][0] == "40000"))
        message = b"".join(entries[n][0].encode() + b" " + n + b"\0" + bytes.fromhex(entries[n][1]) for n in ordered)
        return self.put("tree", message)

    def _branch(self, name: str, commit: str) -> None:
        path = self.git_dir / "refs" / "heads" / name
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{commit}\n", "ascii")
        except OSError:
            return  # a folder is where the file would be

    def _spoil(self, spoil: str, at: int) -> None:
        name = self.objects[at % len(self.objects)]
        path = self.git_dir / "objects" / name[:2] / name[2:]
        commit = self.commits[at % len(self.commits)]
        if spoil == "missing":
            path.unlink(missing_ok=True)
        elif spoil in ("torn", "empty") and path.is_file():
            path.write_bytes(path.read_bytes()[: at % 20] if spoil == "torn" else b"")
        elif spoil == "shallow":
            (self.git_dir / "shallow").write_text(f"{commit}\n")
        elif spoil == "graft":
            (self.git_dir / "info").mkdir(exist_ok=True)
            (self.git_dir / "info" / "grafts").write_text(f"{commit} {self.commits[0]}\n")
        elif spoil == "replace":
            (self.git_dir / "refs" / "replace").mkdir(exist_ok=True)
            (self.git_dir / "refs" / "replace" / commit).write_text(f"{self.commits[-1]}\n")
        elif spoil == "pack":
            self.git("repack", "-qad")
        elif spoil == "lone":
            (self.git_dir / "objects" / "pack" / "pack-0.idx").write_bytes(b"\xfftOc" + os.urandom(8))
        elif spoil == "packed-refs":
            text = f"# pack-refs with: peeled fully-peeled sorted \n{commit} refs/heads/packed\n^{commit}\nnonsense\n"
            (self.git_dir / "packed-refs").write_text(text)
        elif spoil == "bad ref":
            (self.git_dir / "refs" / "heads" / "bad").write_bytes((b"", b"ref: refs/heads/bad\n", b"\xff" * 9)[at % 3])
        else:
            (self.git_dir / "HEAD").write_text(("ref: refs/heads/none\n", f"{commit}\n", "ref: x\n")[at % 3])


@cache
def _template(object_format: str) -> tuple[tuple[str, bytes], ...]:
    with tempfile.TemporaryDirectory() as folder:
        words = ["git", "init", "-q", "-b", BASE, f"--object-format={object_format}", "--template=", folder]
        subprocess.run(words, check=True, capture_output=True)
        git_dir = Path(folder, ".git")
        return tuple((str(p.relative_to(git_dir)), p.read_bytes()) for p in git_dir.rglob("*") if p.is_file())


def _unpack(object_format: str, git_dir: Path) -> None:
    for folder in ("objects/pack", "objects/info", "refs/heads", "refs/tags", "info"):
        (git_dir / folder).mkdir(parents=True, exist_ok=True)
    for name, content in _template(object_format):
        (git_dir / name).write_bytes(content)
