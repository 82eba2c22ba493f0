"""Whole hashes of git objects."""

_HEX = frozenset("0123456789abcdef")
_WHOLE = (40, 64)


def is_hash(text: str) -> bool:
    return len(text) in _WHOLE and _HEX.issuperset(text)
