"""Options of `genba run NAME` that the agent does not declare: which are foreign, and which must not be ignored.

An option of another tool is ignored, with a warning. One that is probably a misspelt option of ours, or that asks for
caution, is refused: to run without it is not what was asked for.
"""

import itertools
import re
from collections.abc import Iterable, Iterator
from enum import StrEnum

import msgspec

_ISSUE = "--issue"
_SYNONYMS = {"task": _ISSUE, "ticket": _ISSUE, "help-me": "--help", "usage": "--help"}
_SHORT = {"h": "--help", "q": "--quiet", "m": "--model", "b": "--branch"}
_CAUTIOUS_SHORT = frozenset("niC")
"""Dry run, ask first, check: in rsync, make, rm and ansible."""
_CAUTIOUS_FIRST = frozenset(
    ("no", "not", "dont", "never", "without", "skip", "disable", "avoid", "refuse", "forbid", "deny", "stop", "pause")
)
_CAUTIOUS = frozenset((
    "approval", "approve", "ask", "audit", "budget", "cap", "careful", "cautious", "check", "checks", "confirm",
    "confirmation", "cost", "draft", "dry", "dryrun", "hold", "inspect", "interactive", "keep", "limit",
    "local", "manual", "max", "maximum", "most", "noop", "only", "plan", "planned", "pretend", "preview",
    "prompt", "propose", "readonly", "recheck", "rehearse", "review", "safe", "safely", "safety", "simulate",
    "simulated", "simulation", "test", "timeout", "trial", "try", "validate", "verify", "wait", "whatif",
))  # fmt: skip
"""A part of an option with one of these asks for less than a whole session that merges."""
_CAUTIOUS_PAIRS = (("read", "only"), ("what", "if"), ("just", "print"))
_WORD = re.compile(r"--?[A-Za-z][A-Za-z0-9_-]*(=.*)?", re.DOTALL)
_TASK = re.compile(r"#?[0-9]{1,18}")
_SHORTEST_PREFIX = 2
_ONE_SLIP, _TWO_SLIPS = 3, 6
"""From how many letters on one and two slips are a misspelling."""
_LONGEST = 60
_FEW_LETTERS = 3


class Kind(StrEnum):
    FOREIGN = "foreign"
    CLOSE = "close"
    CAUTIOUS = "cautious"
    WORD = "word"
    """No option at all, and no value of one."""


class UnknownOption(msgspec.Struct, frozen=True):
    name: str
    kind: Kind
    meant: str = ""
    """The option that was probably meant."""


def unknown_options(extra: Iterable[str], known: Iterable[str]) -> Iterator[UnknownOption]:
    """What is left on the command line, without the values of options."""
    options = tuple(known)
    after_option = False
    for word in extra:
        if word == "--":
            continue
        if not looks_like_option(word):
            if not after_option:
                yield _bare_word(word, options)
            after_option = False
            continue
        after_option = "=" not in word
        yield classified(word.partition("=")[0], options)


def looks_like_option(word: str) -> bool:
    """True for `--name`, `--name=value` and `-n`; False for a text or a number that begins with a dash."""
    return _WORD.fullmatch(word) is not None


def classified(name: str, known: tuple[str, ...]) -> UnknownOption:
    """What an option that is not declared probably means."""
    bare = name.lstrip("-").lower().replace("_", "-")
    letters = name[1:] if name[:2] != "--" and name[1:].isalpha() and len(name) <= _FEW_LETTERS + 1 else ""
    meant = _SHORT.get(letters) or _nearest(bare, known)
    if meant:
        return UnknownOption(name, Kind.CLOSE, meant)
    if _asks_for_caution(bare) or _CAUTIOUS_SHORT.intersection(letters):
        return UnknownOption(name, Kind.CAUTIOUS)
    return UnknownOption(name, Kind.FOREIGN)


def _bare_word(word: str, known: tuple[str, ...]) -> UnknownOption:
    if _TASK.fullmatch(word):
        return UnknownOption(word, Kind.CLOSE, f"{_ISSUE} {word.removeprefix('#')}")
    name = word.partition("=")[0]
    found = classified(f"--{name}", known) if looks_like_option(f"--{name}") else None
    if found is None or found.kind is Kind.FOREIGN:
        return UnknownOption(word, Kind.WORD)
    return msgspec.structs.replace(found, name=word)


def _asks_for_caution(bare: str) -> bool:
    parts = bare.split("-")
    pairs = tuple(itertools.pairwise(parts))
    first = len(parts) > 1 and parts[0] in _CAUTIOUS_FIRST
    return first or not _CAUTIOUS.isdisjoint(parts) or any(pair in pairs for pair in _CAUTIOUS_PAIRS)


def _nearest(bare: str, known: tuple[str, ...]) -> str:
    """The known option that was meant; empty when there is none."""
    if bare in _SYNONYMS and _SYNONYMS[bare] in known:
        return _SYNONYMS[bare]
    if len(bare) > _LONGEST:
        return ""
    names = {option.lstrip("-").lower(): option for option in known}
    slips = {name: _slips(bare, name) for name in names}
    nearest = min(slips, key=lambda name: slips[name], default="")
    if nearest and slips[nearest] <= _allowed(bare) and bare not in _CAUTIOUS:
        return names[nearest]
    return next((option for name, option in names.items() if _is_part(bare, name)), "")


def _allowed(bare: str) -> int:
    """How many slips make a misspelling."""
    return (len(bare) >= _ONE_SLIP) + (len(bare) >= _TWO_SLIPS)


def _is_part(bare: str, name: str) -> bool:
    """True for a beginning of an option, for one with something appended, and for one of its words."""
    if len(bare) < _SHORTEST_PREFIX:
        return False
    begins = name.startswith(bare) or bare.startswith((f"{name}-", f"{name}s"))
    return begins or bare in name.split("-") or bare.replace("-", "") == name.replace("-", "")


def _slips(word: str, other: str) -> int:
    """Letters that are missing, added, wrong or swapped with their neighbour."""
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, letter in enumerate(word, 1):
        older, before, row = before, row, [i]
        for j, wanted in enumerate(other, 1):
            best = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (letter != wanted))
            if i > 1 and j > 1 and letter == other[j - 2] and word[i - 2] == wanted:
                best = min(best, older[j - 2] + 1)
            row.append(best)
    return row[-1]
