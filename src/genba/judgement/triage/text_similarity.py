"""How well two texts fit, by the words that they share. The same texts always fit the same."""

import re
import unicodedata
from collections.abc import Iterable

_WORD = re.compile(r"[^\W_]+")
_SHORTEST = 3
_MOST = 400
_NO_SPACES = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
"""Writing without spaces between words: two letters at a time say more than a whole line."""
_SAYS_NOTHING = """
the and for with that this from are was were has have not but you your its can will into when which what who how all any
one two our out use used using issue issues agent agents work works working add make new
"""
_COMMON = frozenset(_SAYS_NOTHING.split())
_ENDINGS = ("ations", "ation", "ings", "ing", "ers", "er", "ies", "ed", "es", "s", "ly")


def words_of(*texts: str) -> frozenset[str]:
    """The words of some texts that say something, in one form."""
    found: set[str] = set()
    for text in texts:
        plain = unicodedata.normalize("NFKD", text[: _MOST * 20].casefold())
        for word in _WORD.findall(plain):
            found.update(_forms(word))
            if len(found) >= _MOST:
                return frozenset(found)
    return frozenset(found)


def _forms(word: str) -> Iterable[str]:
    if _NO_SPACES.search(word):
        return [word[at : at + 2] for at in range(len(word) - 1)] or [word]
    if len(word) < _SHORTEST or word in _COMMON or word.isdigit():
        return ()
    return (_stem(word),)


def _stem(word: str) -> str:
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _SHORTEST:
            return word[: -len(ending)]
    return word


def fit(one: frozenset[str], other: frozenset[str]) -> float:
    """0 where they share nothing, 1 where the smaller one is all in the larger."""
    smaller = min(len(one), len(other))
    return len(one & other) / smaller if smaller else 0.0
