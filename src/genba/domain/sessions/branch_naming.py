"""Names of branches and of the folders of their working trees."""

import re
import unicodedata
import zlib

_LONGEST_SLUG = 48
_LONGEST_PART = 200
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}(/[A-Za-z0-9][A-Za-z0-9_-]{0,99}){0,3}")


OWN_BRANCHES = "genba/"
"""The folder of the branches that Genba gives out."""


def generated_branch(agent: str, run: str, issue: int | None, title: str) -> str:
    """genba/12-add-login for an issue, genba/writer-20260105-143022-x7 otherwise: always two levels deep."""
    if issue is not None:
        slug = slugify(title)
        return f"genba/{issue}-{slug}" if slug else f"genba/{issue}"
    stamp = run.removeprefix(f"{agent}-")
    return f"genba/{agent}-{stamp}"


def is_plain(branch: str) -> bool:
    """Whether a name is so plain that git takes it for a branch, without being asked."""
    return _PLAIN.fullmatch(branch) is not None and branch != "HEAD"


def slugify(text: str) -> str:
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    slug = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")
    return slug[:_LONGEST_SLUG].rstrip("-")


def folder_name(branch: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "-", branch).strip(".-") or "tree"


def plain_name(text: str) -> str:
    """Any text as one part of the name of a ref, which git takes and which collides with no other."""
    made = "".join(
        letter if letter.isascii() and (letter.isalnum() or letter in "-_") else _percent(letter) for letter in text
    )
    if len(made) <= _LONGEST_PART:
        return made
    return f"{made[:_LONGEST_SLUG]}-{zlib.crc32(made.encode()):08x}-{len(made)}"


def _percent(letter: str) -> str:
    return "".join(f"%{byte:02X}" for byte in letter.encode("utf-8", "surrogateescape"))
