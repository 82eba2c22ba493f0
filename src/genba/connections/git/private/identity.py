"""Who the commits of an agent are by: what comes out of a sandbox bears the identity that Genba gave its agent.

An agent can write any name, and any trailer of Genba's, into a commit. A new commit that names another author or
another committer, that claims another issue, agent or session, or that does not name its own, is written again on its
way in: same files, same message otherwise, same times. So each new commit tells which session made it. What is on a ref
of the user's already is not new, whatever its author.
"""

import asyncio
import re
from collections.abc import Iterator

import msgspec

from genba.connections.git.repository.commands import Git
from genba.connections.git.repository.commit_writer import write_object
from genba.connections.git.repository.loose_objects import read_raw_commit
from genba.domain.sessions.trailers import trailers

_CLAIM = re.compile(rb"(?im)^(Issue|Agent|Session|Genba-[a-z-]+)[^\S\n]*:[^\S\n]*(\S*)[^\S\n]*$\n?")
_TRAILER = re.compile(rb"[A-Za-z0-9-]+: \S.*")
_CRUD = "".join(chr(number) for number in range(33)) + ".,:;<>\"\\'"
_MOST_LOOSE = 200


class Identity(msgspec.Struct, frozen=True, kw_only=True):
    """What an agent was given to commit with."""

    name: str
    email: str
    agent: str
    issue: int | None = None

    @property
    def line(self) -> bytes:
        """As git writes it into a commit."""
        name = "".join(letter for letter in self.name.strip(_CRUD) if letter not in "<>\n")
        return f"{name} <{self.email}>".encode()


async def corrected(git: Git, identity: Identity, run: str, tip: str, known: tuple[str, ...]) -> str:
    """The tip of the same work, in which each new commit is by this identity; the same tip where it is so already."""
    commits = await asyncio.to_thread(_new_commits, git, tip, known)
    if all(_corrected(content, identity, run, {}) == content for content in commits.values()):
        return tip
    args = ("rev-list", "--topo-order", "--reverse", tip, "--not", *known, "--branches", "--tags", "--remotes")
    names = (await git.run(*args)).stdout.split()
    return await asyncio.to_thread(_written_again, git, identity, run, tip, names)


def _written_again(git: Git, identity: Identity, run: str, tip: str, names: list[str]) -> str:
    """Write commits again, parents first."""
    made: dict[str, str] = {}
    for name, content in _read_commits(git, names).items():
        wanted = _corrected(content, identity, run, made)
        if wanted != content:
            made[name] = write_object(git.git_dir, b"commit", wanted, len(name)) or _written_by_git(git, wanted)
    return made.get(tip, tip)


def _written_by_git(git: Git, commit: bytes) -> str:
    args = ("hash-object", "-t", "commit", "-w", "--stdin")
    return git.aside(git.git_dir, *args, stdin=commit).decode().strip()


def _corrected(content: bytes, identity: Identity, run: str, made: dict[str, str]) -> bytes:
    """A commit as it should be; `made` says which of its parents were written again."""
    head, _, message = content.partition(b"\n\n")
    lines = list(_header(head, identity, made))
    message = _readable(head, message)
    text = _CLAIM.sub(lambda claim: claim[0] if _is_true(claim, identity, run) else b"", message)
    text = _signed(text, identity, run)
    if text == content.partition(b"\n\n")[2] and lines == head.split(b"\n"):
        return content
    return b"\n".join(_unsigned(lines)) + b"\n\n" + text


def _readable(head: bytes, message: bytes) -> bytes:
    """The message in UTF-8, as git shows it: a commit may say that it is in another encoding, and so hide a claim."""
    named = next((line[9:] for line in head.split(b"\n") if line.startswith(b"encoding ")), b"")
    if not named:
        return message
    try:
        return message.decode(named.decode("ascii"), "backslashreplace").encode("utf-8", "backslashreplace")
    except (LookupError, ValueError):
        return message.decode("utf-8", "backslashreplace").encode()


def _signed(message: bytes, identity: Identity, run: str) -> bytes:
    """A message that ends with the trailers of its session, unless they stand in it already."""
    if re.search(
        rb"(?m)^Agent: %s\nSession: %s$" % (re.escape(identity.agent.encode()), re.escape(run.encode())), message
    ):
        return message
    text = message.rstrip(b"\n")
    own = trailers(identity.issue, identity.agent, run).encode()
    last = text.rpartition(b"\n")[2]
    apart = b"\n" if b"\n\n" in text and _TRAILER.fullmatch(last) else b"\n\n"
    return (text + apart if text else b"\n") + own


def _header(head: bytes, identity: Identity, made: dict[str, str]) -> Iterator[bytes]:
    for line in head.split(b"\n"):
        key, _, value = line.partition(b" ")
        if key in (b"author", b"committer"):
            when = value.rpartition(b"> ")[2]
            yield key + b" " + identity.line + b" " + when
        elif key == b"encoding":
            continue
        elif key == b"parent":
            yield b"parent " + made.get(value.decode(), value.decode()).encode()
        else:
            yield line


def _unsigned(lines: list[bytes]) -> Iterator[bytes]:
    """A header without the signature, which would not hold any more. It goes on in lines that begin with a space."""
    is_signature = False
    for line in lines:
        is_signature = line.startswith(b"gpgsig") or (is_signature and line.startswith(b" "))
        if not is_signature:
            yield line


def _is_true(claim: re.Match[bytes], identity: Identity, run: str) -> bool:
    """Whether a line is no claim of Genba's, or one that holds."""
    key, value = claim[1].lower(), claim[2].decode("utf-8", "replace")
    if key == b"issue":
        number = value.removeprefix("#")
        return not number.isdigit() or (identity.issue is not None and number == str(identity.issue))
    return value == {b"agent": identity.agent, b"session": run}.get(key)


def _new_commits(git: Git, tip: str, known: tuple[str, ...]) -> dict[str, bytes]:
    """The commits that a tip leads to and the known ones do not: read from their files where they are few."""
    found: dict[str, bytes] = {}
    waiting = [tip]
    while waiting:
        name = waiting.pop()
        if name in known or name in found:
            continue
        content = read_raw_commit(git.git_dir, name) if len(found) < _MOST_LOOSE else None
        if content is None:  # packed, or one that is no longer new: git tells
            return _read_commits(git, git.aside(git.git_dir, "rev-list", tip, "--not", *known).decode().split())
        found[name] = content
        head = content.partition(b"\n\n")[0].split(b"\n")
        waiting += [line[7:].decode() for line in head if line.startswith(b"parent ")]
    return found


def _read_commits(git: Git, names: list[str]) -> dict[str, bytes]:
    """The content of commits, in the order of their names."""
    found: dict[str, bytes] = {}
    stream = git.aside(git.git_dir, "cat-file", "--batch", stdin="".join(f"{name}\n" for name in names).encode())
    start = 0
    for name in names:
        end = stream.index(b"\n", start) + 1
        size = int(stream[start:end].rsplit(b" ", 1)[1])
        found[name] = stream[end : end + size]
        start = end + size + 1
    return found
