"""The number of an issue in the name of a branch, as people and GitHub write it.

Rule: a number alone is an issue only where the name says so: the whole name, a kind of work before it, or words after
it. A number that is a version, a date or a count of something else is none.
"""

import re
from collections.abc import Sequence

_NUMBERED = re.compile(r"(?P<kind>[A-Za-z]+)?[-_]?(?P<hash>#)?(?P<number>\d{1,7})(?:[-_](?P<rest>.*))?", re.DOTALL)
_KINDS = frozenset(
    {"issue", "issues", "gh", "bug", "bugfix", "fix", "feat", "feature", "task", "ticket", "hotfix", "genba"}
)
_OF_VERSIONS = frozenset({"hotfix"})
"""Kinds of work that are also named after the version that they become."""
_NO_ISSUES = frozenset(
    {"release", "releases", "rel", "version", "versions", "v", "ver", "stable", "support", "lts"}
    | {"maint", "maintenance", "backport", "backports", "tag", "tags", "sprint", "milestone"}
    | {"dependabot", "renovate", "snyk", "pyup", "greenkeeper"}
)
_VERSION_PART = re.compile(
    r"\d+|[xyz]|(?:rc|alpha|beta|pre|dev)\d*|[mpqv]\d+|stable|lts|next|maint|maintenance|release|snapshot|final|ga"
    r"|branch|series|support",
    re.IGNORECASE,
)
_REMOTES = ("origin", "upstream")
"""What a merge writes before the branch of a remote."""
_YEAR, _MONTH = re.compile(r"(?:19|20)\d\d"), re.compile(r"0[1-9]|1[0-2]")


def numbered(branch: str) -> tuple[int, bool, str] | None:
    """The number in the name of a branch, whether it is that of an issue for certain, and what follows it.

    A version (`4.x`, `v4`, `stable/6`, `6-1-stable`, `origin/release/4`) or a date is none.
    """
    parts = branch.split("/")
    parts = parts[1:] if parts[0] in _REMOTES else parts
    for index, part in enumerate(parts):
        if part.lower() in _NO_ISSUES:
            return None
        match = _NUMBERED.fullmatch(part)
        if match is None or not int(match["number"]):
            continue
        kind = (match["kind"] or "").lower()
        if kind and kind not in _KINDS:
            continue
        kinds = {kind, parts[index - 1].lower() if index else ""} & _KINDS
        rest = match["rest"] or ""
        certain = bool(kinds or match["hash"])
        if certain and not kinds & _OF_VERSIONS:
            return int(match["number"]), True, rest
        if not _is_version(match["number"], rest) and (rest or certain or _stands_alone(parts, index)):
            return int(match["number"]), certain, rest
    return None


def _stands_alone(parts: Sequence[str], index: int) -> bool:
    """Whether a bare number is the whole name, or the folder of words: `12`, `12/add-login`."""
    return index == 0 and not any(part[:1].isdigit() for part in parts[1:])


def _is_version(number: str, rest: str) -> bool:
    """Whether what follows a number continues a version or a date: `6-1-stable`, `9-x`, `2026-01-cleanup`."""
    parts = re.split(r"[-_.]", rest) if rest else []
    if parts and all(_VERSION_PART.fullmatch(part) for part in parts):
        return True
    return bool(parts and _YEAR.fullmatch(number) and _MONTH.fullmatch(parts[0]))
