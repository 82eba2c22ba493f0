"""Which commits a session made: by the trailers that they end with, or by the merge that brought them.

Without a sandbox the commits of an agent bear no trailers. Genba merges the work of a session by a commit that does,
and a forge by one that names its branch: so all that such a merge brought was made by that session.
"""

import re
from collections.abc import Mapping
from typing import NamedTuple

from genba.connections.git.repository.commands import Git
from genba.domain.sessions.branch_naming import OWN_BRANCHES
from genba.domain.tracker.branch_names import numbered

_SIGNED = re.compile(
    rb"(?:\nIssue:[^\S\n]*#?(\d{1,9})[^\S\n]*)?"
    rb"\nAgent:[^\S\n]*(\S{1,200})[^\S\n]*\nSession:[^\S\n]*(\S{1,200})[^\S\n]*(?=\n|$)"
)
"""The trailers by which a commit says that a session made it."""
_OF_FORGE = re.compile(rb"^Merge pull request #\d{1,9} from [^/\s]+/(%s\S+)" % OWN_BRANCHES.encode())
_MERGES = ("log", "--merges", "-z", "--encoding=UTF-8", "--no-color", "--no-show-signature", "--format=%H%n%B")
_BASE = -1


class Signature(NamedTuple):
    """Who a commit says that it is by; empty where it says nothing."""

    agent: str = ""
    run: str = ""
    issue: int = 0


def signature(message: bytes) -> Signature:
    """What the last trailers of a session in a message say."""
    last = None
    for last in _SIGNED.finditer(message):  # noqa: B007  (the last one)
        pass
    if last is None:
        return Signature()
    return Signature(last[2].decode("utf-8", "replace"), last[3].decode("utf-8", "replace"), int(last[1] or 0))


def brought_by_sessions(git: Git, span: str) -> Mapping[str, int]:
    """By commit of a history: the issue of the session whose merge brought it; 0 for a session without one."""
    merges = _merges(git, span)
    if not merges:
        return {}
    rows = b"".join(git.chunks("rev-list", "--topo-order", "--parents", span, "--")).decode("ascii").splitlines()
    found: dict[str, int] = {}
    for row in rows:  # children come before their parents
        sha, *parents = row.split(" ")
        of = found.setdefault(sha, _BASE)
        for place, parent in enumerate(parents):
            its = merges[sha] if of == _BASE and place and sha in merges else of
            if its == _BASE:
                found[parent] = _BASE
            else:
                found.setdefault(parent, its)
    return {sha: issue for sha, issue in found.items() if issue != _BASE}


def _merges(git: Git, span: str) -> dict[str, int]:
    """By merge that brought the work of a session: its issue."""
    found: dict[str, int] = {}
    for record in b"".join(git.chunks(*_MERGES, span, "--")).split(b"\0"):
        sha, _, message = record.partition(b"\n")
        signed = signature(message)
        if signed.run:
            found[sha.decode()] = signed.issue
        elif branch := _OF_FORGE.match(message):
            named = numbered(branch[1].decode("utf-8", "replace"))
            found[sha.decode()] = named[0] if named is not None else 0
    return found
