"""A problem in a definition: where it is, what is wrong, and what would be right."""

from collections.abc import Iterable

import msgspec


class Problem(msgspec.Struct, frozen=True, order=True):
    """One finding of the checks on a definition."""

    file: str
    path: str
    message: str
    hint: str = ""

    def __str__(self) -> str:
        return ": ".join(part for part in (self.file, self.path, self.message) if part)


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that the writer probably meant."""
    choices = list(known)
    folded = {choice.lower(): choice for choice in choices}
    if word.lower() in folded:
        return folded[word.lower()]
    import difflib  # noqa: PLC0415  (only what is misspelt pays for it)

    found = difflib.get_close_matches(word.lower(), list(folded), n=1, cutoff=0.6)
    return folded[found[0]] if found else None


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A hint that names the nearest known word, or lists them all when they are few."""
    choices = sorted(known)
    match = nearest(word, choices)
    if match is not None:
        return f'did you mean "{match}"?'
    return f"known: {', '.join(choices)}" if choices else ""
