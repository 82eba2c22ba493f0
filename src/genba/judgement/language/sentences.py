"""Sentences of Genba that are stored in English, shown in the language of the project.

Verdicts, reasons and problems are stored in English: commands print them, and code compares them. Where one is put into
a prompt, feedback or a decision, it is translated by its pattern. What matches no pattern stays as it is: what people
and agents wrote, and what tools printed.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

import msgspec

from genba.judgement import tool_texts_ja
from genba.judgement.language import sentences_ja

if TYPE_CHECKING:
    from types import ModuleType

    from genba.domain.problems import Problem
    from genba.domain.workflow.actions import Evidence

CATALOGUES: dict[str, ModuleType] = {"ja": sentences_ja}
TOOL_TEXTS: dict[str, dict[str, str]] = {"ja": tool_texts_ja.TEXTS}
_OWN = "own_"
"""How the name of a part begins that is Genba's own: it is translated too."""
_LONGEST, _DEEPEST = 2_000, 6
_NAME = re.compile(r"\{(\w+)\}")
_GOAL_LINE = re.compile(r"(?P<goal>\w+) \((?P<level>\w+)\): (?P<detail>.*)")
_NUMBERS = frozenset(
    ["attempt", "at", "code", "count", "depth", "ever", "limit", "most", "number", "seconds", "spent", "status"]
)
_TESTS_KEPT = "tests_kept"
BUILT_IN = frozenset(["protected_paths", _TESTS_KEPT, "links_inside"])
"""The built-in checks, by name: a run without goals does not load them."""
_BEFORE_LOSS = re.compile(r"([,;] )(?=(?:adds|breaks|changes|cuts short|empties|removes|replaces|skips) )")
_BELOW = "  | "
_VERIFICATION = "verification"
_OF_VERDICTS = frozenset({_VERIFICATION, "failed", "conflict"})
"""The checks whose output begins with words of Genba."""

Pattern = tuple[re.Pattern[str], str]


def in_language(language: str, text: str) -> str:
    """The text with each line that Genba wrote in this language."""
    if language not in CATALOGUES:
        return text
    return "\n".join(_sentence(language, line) for line in text.split("\n"))


def tool_text(language: str, text: str) -> str:
    """What a tool of the workflow says of itself, in this language."""
    return TOOL_TEXTS.get(language, {}).get(text, text)


def detail_in(language: str, check: str, detail: str) -> str:
    """The detail of a failed check, or a line that a guard printed."""
    if language not in CATALOGUES or check != _TESTS_KEPT:
        return in_language(language, detail)
    path, colon, loss = detail.partition(": ")
    message = _losses(language, loss, 0) if colon else ""
    return f"{path}: {message}" if message != loss else in_language(language, _losses(language, detail, 0))


def problem_in(language: str, problem: Problem) -> str:
    """A problem of an answer in one line, with its hint."""
    message, hint = in_language(language, problem.message), in_language(language, problem.hint)
    text = str(msgspec.structs.replace(problem, message=message))
    return f"{text} ({hint})" if hint else text


def evidence_in(language: str, found: Evidence) -> Evidence:
    """Why work is not done, as an agent reads it."""
    if language not in CATALOGUES:
        return found
    return msgspec.structs.replace(
        found,
        summary=detail_in(language, found.verdict, found.summary),
        failing=tuple(output_in(language, _VERIFICATION, line) for line in found.failing),
        output=output_in(language, _VERIFICATION, found.output),
    )


def output_in(language: str, check: str, output: str) -> str:
    """The output of a failed check: lines about goals are Genba's, and below them only what its own guards say."""
    if language not in CATALOGUES:
        return output
    shown, goal = [], check
    for line in output.split("\n"):
        found = _GOAL_LINE.fullmatch(line)
        if found is not None:
            goal = found["goal"]
            shown.append(f"{goal} ({found['level']}): {detail_in(language, goal, found['detail'])}")
        elif goal in BUILT_IN:
            below = _BELOW if line.startswith(_BELOW) else ""
            shown.append(below + detail_in(language, goal, line.removeprefix(_BELOW)))
        else:
            shown.append(in_language(language, line) if goal in _OF_VERDICTS else line)
    return "\n".join(shown)


def _sentence(language: str, line: str) -> str:
    found = _match(language, line, 0, "SENTENCES")
    return line if found is None else found


def _losses(language: str, text: str, depth: int) -> str:
    """Losses stand one behind the other, each with its verb."""
    pieces = _BEFORE_LOSS.split(text)
    lines = [_match(language, piece, depth, "LOSSES") if at % 2 == 0 else piece for at, piece in enumerate(pieces)]
    return "".join(pieces[at] if piece is None else piece for at, piece in enumerate(lines))


def _part(language: str, text: str, depth: int, within: str) -> str:
    if within == "LOSSES":
        return _losses(language, text, depth)
    return _match(language, text, depth, "PARTS") or _match(language, text, depth, "SENTENCES") or text


def _match(language: str, line: str, depth: int, within: str) -> str | None:
    """The translation by the first pattern of a dictionary that fits the whole line."""
    if len(line) > _LONGEST or depth > _DEEPEST:
        return None
    for pattern, text in _patterns(language, within):
        found = pattern.fullmatch(line)
        if found is not None:
            values = {
                name: _part(language, value, depth + 1, within) if name.startswith(_OWN) else value
                for name, value in found.groupdict().items()
            }
            result = _filled(text, values)
            if result != line:
                return result
    return None


def _filled(text: str, values: dict[str, str]) -> str:
    return _NAME.sub(lambda name: values[name[1]], text)


@lru_cache
def _patterns(language: str, within: str) -> tuple[Pattern, ...]:
    texts: dict[str, str] = getattr(CATALOGUES[language], within)
    return tuple((re.compile(_expression(english)), text) for english, text in texts.items())


def _expression(english: str) -> str:
    pieces = _NAME.split(english)
    return "".join(re.escape(piece) if at % 2 == 0 else _group(piece) for at, piece in enumerate(pieces))


def _group(name: str) -> str:
    fits = r"[-+\d.,e]+" if name in _NUMBERS else ".+?"
    return f"(?P<{name}>{fits})"
