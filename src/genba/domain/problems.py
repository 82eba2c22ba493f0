"""A problem in a definition: where it is, what is wrong, and what would be right."""

from collections.abc import Iterable
from itertools import islice

import msgspec


class Problem(msgspec.Struct, frozen=True, order=True):
    """One finding of the checks on a definition."""

    file: str
    path: str
    message: str
    hint: str = ""

    def __str__(self) -> str:
        return ": ".join(part for part in (self.file, self.path, self.message) if part)


def with_hints(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """The same problems, each once; one without a hint names the command that prints what its file takes."""
    return tuple(dict.fromkeys(each if each.hint else _with_schema(each) for each in problems))


def _with_schema(problem: Problem) -> Problem:
    name = problem.file.rpartition("/")[2].partition(" ")[0]
    schema = "config" if name.endswith((".yaml", ".yml")) else "agent" if "config" in name or "agent" in name else ""
    schema = schema or ("steps_registry" if name.endswith(".json") else "")
    hint = f"genba schema {schema}" if schema else ""
    return Problem(problem.file, problem.path, problem.message, hint)


MAX_SHOWN = 100
"""Problems of one file, or of one kind of check, that are shown at once."""
_FEW = 60
_MANY = 2000
_LONGEST_WORD = 200


def limited(problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """The first of many problems; how many there are is not worth finding out."""
    first = tuple(islice(problems, MAX_SHOWN + 1))
    if len(first) <= MAX_SHOWN:
        return first
    return (*first[:MAX_SHOWN], Problem(first[MAX_SHOWN].file, "", "and more problems of this kind"))


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that the writer probably meant."""
    choices = list(known)
    folded = {choice.lower(): choice for choice in choices}
    if word.lower() in folded:
        return folded[word.lower()]
    if len(word) > _LONGEST_WORD or len(choices) > _MANY:
        return None
    import difflib  # noqa: PLC0415  (only what is misspelt pays for it)

    found = difflib.get_close_matches(word.lower(), list(folded), n=1, cutoff=0.6)
    return folded[found[0]] if found else None


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A hint that names the nearest known word, or lists them all when they are few."""
    choices = sorted(known)
    match = nearest(word, choices)
    if match is not None:
        return f'did you mean "{match}"?'
    return f"known: {', '.join(choices)}" if 0 < len(choices) <= _FEW else ""
