"""Writing commits where git would write them, without a process, for a caller that makes many of them.

What git would do otherwise than usual is left to git: another encoding, a repository that several users share, objects
of another kind. Who the user is, is asked of git now and then.
"""

import contextlib
import hashlib
import os
import time
import zlib
from pathlib import Path
from typing import NamedTuple

from genba.domain.hashes import is_hash

SETTINGS = r"^(i18n\.commitencoding|core\.(sharedrepository|fsync.*|(loose)?compression)|extensions\..*)$"
"""Settings under which git writes objects in another way."""
_PLAIN_SETTINGS = ("extensions.worktreeconfig", "extensions.objectformat", "extensions.partialclone")
_PLAIN_VALUES = ("i18n.commitencoding\nutf-8", "core.sharedrepository\n0", "core.sharedrepository\numask")
_DATES = ("GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE")
_KNOWN_SECONDS = 30.0
_SEVERAL = 3
"""A caller that makes fewer commits in that time asks git for each."""
_QUICKEST = 1
_MINUTES = 60


class Writer(NamedTuple):
    """Who makes commits in a repository."""

    author: str
    committer: str


class Writing:
    """What is known of how commits are written in one repository."""

    def __init__(self, known_seconds: float = _KNOWN_SECONDS) -> None:
        self.writer: Writer | None = None
        """None: git makes the commits."""
        self.known_seconds = known_seconds
        self._asked = -known_seconds
        self._made: list[float] = []

    def is_due(self) -> bool:
        """Whether it is worth asking who makes commits here: several were made just now."""
        now = time.monotonic()
        self._made = [*(at for at in self._made if now - at < self.known_seconds), now][-_SEVERAL:]
        if now - self._asked >= self.known_seconds:
            self.writer = None
            return len(self._made) == _SEVERAL
        return False

    def know(self, settings: str, author: str, committer: str) -> None:
        """The answers of git: what it has set under `SETTINGS`, and who it takes the user for."""
        self._asked = time.monotonic()
        named = [entry.casefold() for entry in settings.split("\0") if entry]
        odd = [entry for entry in named if entry.partition("\n")[0] not in _PLAIN_SETTINGS]
        plain = all(entry in _PLAIN_VALUES for entry in odd) and not any(name in os.environ for name in _DATES)
        names = [message.strip().rsplit(" ", 2)[0] for message in (author, committer)]
        self.writer = Writer(*names) if plain and all(name.endswith(">") for name in names) else None


def write_commit(git_dir: Path, writer: Writer, tree: str, parents: tuple[str, ...], message: str) -> str | None:
    """Write a commit, and say its name; None where git must do it."""
    if not all(map(is_hash, (tree, *parents))) or not message.strip() or "\0" in message:
        return None
    now = int(time.time())
    when = f"{now} {_zone(now)}"
    lines = [f"tree {tree}", *(f"parent {parent}" for parent in dict.fromkeys(parents))]
    lines += [f"author {writer.author} {when}", f"committer {writer.committer} {when}", "", message]
    try:
        content = "\n".join(lines).encode("utf-8")
    except UnicodeEncodeError:
        return None
    content += b"" if content.endswith(b"\n") else b"\n"
    return write_object(git_dir, b"commit", content, len(tree))


def write_object(git_dir: Path, kind: bytes, content: bytes, width: int) -> str | None:
    """Write an object whose name is so wide, and return the name; None where it cannot be written."""
    whole = b"%s %d\0" % (kind, len(content)) + content
    make = hashlib.sha256 if width == hashlib.sha256().digest_size * 2 else hashlib.sha1
    name = make(whole, usedforsecurity=False).hexdigest()
    return name if _written(git_dir / "objects", name, zlib.compress(whole, _QUICKEST)) else None


def _zone(now: int) -> str:
    minutes = time.localtime(now).tm_gmtoff // _MINUTES
    sign, minutes = ("-", -minutes) if minutes < 0 else ("+", minutes)
    return f"{sign}{minutes // _MINUTES:02d}{minutes % _MINUTES:02d}"


def _written(objects: Path, name: str, stored: bytes) -> bool:
    """The file of an object, whole or not at all. One that is there says the same."""
    folder = f"{objects}/{name[:2]}"
    place, mark = f"{folder}/{name[2:]}", f"{os.getpid()}{os.urandom(4).hex()}"
    fresh = f"{folder}/tmp_obj_{mark}"  # noqa: S108  (as git calls what it may clear away)
    try:
        if os.path.exists(place):  # noqa: PTH110  (made hundreds of times)
            return True
        with contextlib.suppress(FileExistsError):
            os.mkdir(folder)  # noqa: PTH102
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o444)
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(stored)
            os.rename(fresh, place)  # noqa: PTH104
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(fresh)  # noqa: PTH108
            raise
    except OSError:
        return False
    return True
