"""Others' words in a text for a forge: they are shown, and have no effect."""

import re

from genba.domain.text_limits import one_line

_JOINER = "\u2060"
"""Stands unseen where a forge would find a name or a number."""
_EFFECTS = (
    (re.compile(r"@(?=[A-Za-z0-9])"), f"@{_JOINER}"),
    (re.compile(r"#(?=\d)"), f"#{_JOINER}"),
    (re.compile(r"(?i)\b(GH-)(?=\d)"), rf"\1{_JOINER}"),
    (re.compile(r"(?i)(/(?:issues|pull|pulls|discussions)/)(?=\d)"), rf"\1{_JOINER}"),
    (re.compile(r"<(?=!)"), f"<{_JOINER}"),
)
_MARKUP = re.compile(r"([\\`*_\[\]<>|~&$])")
_FENCE = re.compile(r"`{3,}")


def harmless(text: str) -> str:
    """The same to read, and nothing to a forge: no mention, no reference to an issue, no marker."""
    plain = "".join(letter for letter in text if letter.isprintable() or letter in "\n\t")
    for found, instead in _EFFECTS:
        plain = found.sub(instead, plain)
    return plain


def inline(text: str) -> str:
    """Others' words in a line of Markdown or in the cell of a table: every sign stands for itself."""
    return _MARKUP.sub(r"\\\1", harmless(one_line(text)))


def quoted(text: str) -> str:
    """Others' words over several lines, as a block in which nothing is markup."""
    longest = max((len(found) for found in _FENCE.findall(text)), default=2)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{harmless(text).strip()}\n{fence}"
