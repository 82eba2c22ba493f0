"""Links: where they point to, by their text alone."""

import unicodedata
from collections.abc import Iterable, Mapping

from genba.judgement.verification.paths import shown

LINK, REPOSITORY = "120000", "160000"
"""The modes by which git marks a link, and a repository inside the repository."""

_HOPS = 40
_INVISIBLE = dict.fromkeys([*range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x206A, 0x2070), 0xFEFF])


def way_out(path: str, target: str, links: Mapping[str, str]) -> str:
    """Why a link leaves the repository, or an empty string. `links` are all links, which it may go through."""
    place = path.split("/")[:-1]
    rest = target.split("/")
    if not target or _is_absolute(target):
        return f"points to {target}" if target else "points to nothing"
    hops = 0
    while rest:
        word, *rest = rest
        if word == "..":
            if not place:
                return f"leaves the repository: {target}"
            place.pop()
        elif word not in ("", "."):
            place.append(word)
        if place and is_git_folder(place[-1]):
            return f"points into git's own folder: {target}"
        onward = links.get("/".join(place)) if word not in ("", ".", "..") else None
        if onward is not None:
            hops += 1
            if not onward or _is_absolute(onward):
                return f"goes through {'/'.join(place)} to {onward}"
            if hops > _HOPS:
                return f"goes in circles: {target}"
            place.pop()
            rest = [*onward.split("/"), *rest]
    return ""


def _is_absolute(target: str) -> bool:
    return target.startswith(("/", "\\")) or (len(target) > 1 and target[1] == ":" and target[0].isalpha())


def is_git_folder(name: str) -> bool:
    """Whether some file system would take a name for `.git`: by case, by blanks, by its short form."""
    plain = name.translate(_INVISIBLE).lower().split(":")[0].rstrip(". ")
    return plain in (".git", "git~1")


def strange_name(path: str) -> str:
    """Why a path is not one that a file of a project can have, or an empty string."""
    words = path.replace("\\", "/").split("/")
    if any(word in ("", ".", "..") for word in words):
        return "has a name that leaves its folder"
    if any(is_git_folder(word) for word in words):
        return "has the name of git's own folder"
    return ""


def colliding_names(added: Iterable[str], files: Iterable[str]) -> list[str]:
    """New files that are another one on a machine that does not tell upper from lower case, in words."""
    found: dict[str, set[str]] = {}
    for path in files:
        found.setdefault(unicodedata.normalize("NFC", path).casefold(), set()).add(path)
    lines = []
    for path in sorted(added):
        others = sorted(found.get(unicodedata.normalize("NFC", path).casefold(), set()) - {path})
        lines += [f"{shown(path)} differs from {shown(others[0])} by case alone"] if others else []
    return lines
