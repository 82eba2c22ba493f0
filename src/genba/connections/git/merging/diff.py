"""Comparing two commits of the user's repository, for who wants to see what changed.

Law: only objects are read, named by their whole hashes, in the repository of the user. No program of anybody's is run
to draw a difference, and nothing is read beyond a bounded piece.
"""

import re
from collections.abc import Iterator

from genba.connections.git.repository.commands import Git
from genba.domain.views.task import CommitLine, DiffRow, FileDiff, FileLine

MOST_FILES = 300
MOST_ROWS = 1500
_MOST_BYTES = 512 * 1024
_LONGEST_ROW = 2000
_MOST_COMMITS = 50
_PLAIN = ("--no-ext-diff", "--no-textconv", "--no-color", "--submodule=short", "-M")
_PLACE = re.compile(rb"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")
_KINDS = {b"+": "added", b"-": "removed", b" ": "same"}


class FilesChanged:
    """What was found of the files between two commits: the first ones, and the sum of all."""

    def __init__(self) -> None:
        self.files: list[FileLine] = []
        self.total = 0
        self.added = 0
        self.removed = 0

    def note(self, file: FileLine) -> None:
        self.total += 1
        self.added += file.added
        self.removed += file.removed
        if len(self.files) < MOST_FILES:
            self.files.append(file)


class GitDiff:
    """Compares commits that are named by their whole hashes. For a thread that has time."""

    def __init__(self, git: Git) -> None:
        self.git = git

    def commits(self, base: str, commit: str) -> tuple[CommitLine, ...]:
        return commits_between(self.git, base, commit)

    def files(self, base: str, commit: str) -> FilesChanged:
        return files_changed(self.git, base, commit)

    def file(self, base: str, commit: str, path: str, before: str = "") -> FileDiff:
        return file_diff(self.git, base, commit, path, before)


def files_changed(git: Git, base: str, commit: str) -> FilesChanged:
    """For a thread that has time."""
    found = FilesChanged()
    fields = _fields(git.chunks("diff-tree", "-r", "-z", "--numstat", *_PLAIN, base, commit, "--"))
    for message in fields:
        added, _, rest = message.partition(b"\t")
        removed, _, path = rest.partition(b"\t")
        before = b""
        if not path:  # a file with another name: both follow
            before, path = next(fields, b""), next(fields, b"")
        found.note(
            FileLine(
                path=_text(path),
                before=_text(before),
                added=int(added) if added.isdigit() else 0,
                removed=int(removed) if removed.isdigit() else 0,
                binary=added == b"-",
            )
        )
    return found


def file_diff(git: Git, base: str, commit: str, path: str, before: str = "") -> FileDiff:
    """The lines of one file, as far as they are shown. For a thread that has time."""
    names = tuple(dict.fromkeys(name for name in (before, path) if name))
    args = ("diff-tree", "-r", "-p", "-U3", *_PLAIN, base, commit, "--", *names)
    rows: list[DiffRow] = []
    old = new = read = 0
    binary = inside = False
    for line in _lines(git.chunks("--literal-pathspecs", *args)):
        read += len(line)
        if len(rows) >= MOST_ROWS or read > _MOST_BYTES:
            return FileDiff(path=path, rows=tuple(rows), cut=True)
        place = _PLACE.match(line)
        if place is not None:
            inside = True
            old, new = int(place.group(1)), int(place.group(2))
            rows.append(DiffRow(kind="place", text=_shown(line)))
        elif line.startswith(b"diff --git "):
            inside = False
        elif not inside:
            binary = binary or line.startswith((b"Binary files ", b"GIT binary patch"))
        elif line.startswith(b"\\"):
            rows.append(DiffRow(kind="note", text=_shown(line[2:])))
        else:
            kind = _KINDS.get(line[:1], "same")
            rows.append(
                DiffRow(
                    kind=kind,
                    text=_shown(line[1:]),
                    old=old if kind != "added" else 0,
                    new=new if kind != "removed" else 0,
                )
            )
            old += kind != "added"
            new += kind != "removed"
    return FileDiff(path=path, rows=tuple(rows), binary=binary)


def commits_between(git: Git, base: str, commit: str) -> tuple[CommitLine, ...]:
    """The commits that lead from one to the other, newest first. For a thread that has time."""
    args = ("log", "-z", f"-n{_MOST_COMMITS}", "--no-color", "--format=%H%n%aI%n%an%n%s", f"{base}..{commit}", "--")
    found = []
    for message in _fields(git.chunks(*args)):
        parts = message.split(b"\n", 3)
        if len(parts) == 4:  # noqa: PLR2004  (the four that were asked for)
            commit_, at, author, subject = (_text(part) for part in parts)
            found.append(CommitLine(commit=commit_, subject=subject[:300], author=author[:100], at=at))
    return tuple(found)


def _fields(chunks: Iterator[bytes]) -> Iterator[bytes]:
    """What stands between the zeros."""
    yield from _split(chunks, b"\0")


def _lines(chunks: Iterator[bytes]) -> Iterator[bytes]:
    yield from _split(chunks, b"\n")


def _split(chunks: Iterator[bytes], sign: bytes) -> Iterator[bytes]:
    rest = b""
    for chunk in chunks:
        *whole, rest = (rest + chunk).split(sign)
        yield from whole
        if len(rest) > _MOST_BYTES:  # a line without end
            yield rest
            rest = b""
    if rest:
        yield rest


def _text(raw: bytes) -> str:
    return raw.decode("utf-8", "replace")


def _shown(raw: bytes) -> str:
    text = raw[: 4 * _LONGEST_ROW].decode("utf-8", "replace").rstrip("\r")
    return text if len(text) <= _LONGEST_ROW else f"{text[:_LONGEST_ROW]} …"
