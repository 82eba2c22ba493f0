"""Size limits on work from the sandbox, before anything looks at its files."""

from collections.abc import Mapping

from genba.connections.git.agent_trees.patterns import LARGEST, MOST_STARS, PATTERN_FILES, has_many_stars
from genba.connections.git.private.tree_size import MOST, Breadth, Objects, Reader, named, whole, widest
from genba.connections.git.repository.commands import Git
from genba.domain.errors import BoundaryViolationError

_MOST_TREES = 512 * 1024**2
"""So many bytes of lists of files are read at once."""
_MOST_PATTERNS = 16 * 1024**2
"""So many bytes of new .gitignore and .gitattributes are read."""
_MEGABYTE = 1024**2
MOST_COMMITS = 10_000
"""So many new commits come in at once. Each of them is read, and perhaps written again."""


def weigh_little(git: Git, environment: Mapping[str, str], base: str, roots: tuple[str, ...], new: Objects) -> None:
    """Refuse work that is more files than anybody can lay out. All of the new objects are given."""
    read = _reader(git, environment)
    _judge_number(sum(kind == b"commit" for kind, _ in new.values()))
    _judge(git, base, widest(roots, new, read), read)
    _judge_patterns(git, environment, new)


def weigh(git: Git, environment: Mapping[str, str], base: str, asked: str) -> None:
    """The same where git must be asked for what is new: all that `asked`, as `rev-list` reads it, leads to."""
    read = _reader(git, environment)
    roots = _lines(git, environment, asked, "rev-list", "--no-commit-header", "--format=%T", "--stdin")
    _judge_number(len(roots))
    names = _lines(git, environment, asked, "rev-list", "--objects", "--no-object-names", "--stdin")
    new = read(names) if names else {}
    _judge(git, base, widest(roots, new, read), read)
    _judge_patterns(git, environment, new)


def _judge_patterns(git: Git, environment: Mapping[str, str], new: Objects) -> None:
    """Refuse files of patterns that keep every later git busy. Those that were there before are the user's."""
    found: set[str] = set()
    for name, (kind, body) in new.items():
        if kind == b"tree" and isinstance(body, bytes):
            found.update(blob for blob in named(body, name, PATTERN_FILES) if blob in new)
    sizes = {name: body if isinstance(body, int) else len(body) for name in found for body in (new[name][1],)}
    if any(size > LARGEST for size in sizes.values()) or sum(sizes.values()) > _MOST_PATTERNS:
        raise BoundaryViolationError(f"what was committed has files of patterns of more than {LARGEST // 1024} KB")
    asked = "".join(f"{name}\n" for name in sorted(found))
    stream = b"".join(git.chunks("cat-file", "--batch", stdin=asked, environment=environment)) if asked else b""
    if has_many_stars(stream):
        raise BoundaryViolationError(
            f"what was committed has a .gitignore or .gitattributes with more than {MOST_STARS} ** in one pattern"
        )


def _judge_number(commits: int) -> None:
    if commits > MOST_COMMITS:
        raise BoundaryViolationError(f"what was committed is {commits} commits: at most {MOST_COMMITS} come in at once")


def _judge(git: Git, base: str, found: Breadth, read: Reader) -> None:
    """A base that is large itself may be doubled; it is looked at only where that matters."""
    if found.within(MOST):
        return
    if found.path > MOST.path:
        raise BoundaryViolationError("what was committed has a name or a path that is longer than any disk takes")
    root = b"".join(git.chunks("rev-parse", "--verify", f"{base}^{{tree}}")).decode().strip()
    before = whole(root, read)
    if not found.within(MOST.beside(Breadth(2 * before.files, 2 * before.bytes))):
        raise BoundaryViolationError(
            f"what was committed would be {found.files} files of {found.bytes // _MEGABYTE} MB:"
            f" at most {MOST.files} of {MOST.bytes // _MEGABYTE} MB are looked at, or twice what was there before"
        )


def _reader(git: Git, environment: Mapping[str, str]) -> Reader:
    def read(names: list[str]) -> Objects:
        asked = "".join(f"{name}\n" for name in names)
        lines = _lines(git, environment, asked, "cat-file", "--batch-check")
        messages = [line.split(" ") for line in lines if not line.endswith(" missing")]
        trees = [name for name, kind, _ in messages if kind == "tree"]
        if sum(int(size) for _, kind, size in messages if kind == "tree") > _MOST_TREES:
            raise BoundaryViolationError("what was committed lists more files than can be read")
        found: dict[str, tuple[bytes, bytes | int]] = {
            name: (kind.encode(), int(size) if kind == "blob" else b"")
            for name, kind, size in messages
            if kind != "tree"
        }
        stream = b"".join(git.chunks("cat-file", "--batch", stdin="".join(f"{name}\n" for name in trees),
                                     environment=environment)) if trees else b""  # fmt: skip
        at = 0
        for name in trees:
            end = stream.index(b"\n", at) + 1
            size = int(stream[at:end].rsplit(b" ", 1)[1])
            found[name] = (b"tree", stream[end : end + size])
            at = end + size + 1
        return found

    return read


def _lines(git: Git, environment: Mapping[str, str], stdin: str, *args: str) -> list[str]:
    return b"".join(git.chunks(*args, stdin=stdin, environment=environment)).decode("ascii", "replace").split("\n")[:-1]
