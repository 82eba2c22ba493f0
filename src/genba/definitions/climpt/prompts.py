"""Prompts in the one template syntax of Genba, `{uv-name}`."""

import re
from collections.abc import Callable

import msgspec

from genba.definitions.climpt.names import TEXTS, VARIABLES
from genba.definitions.steps.templates import VARIABLE

_BLOCK = re.compile(r"\{\{#(each|if|unless)\s+([^}]+)\}\}((?:(?!\{\{#(?:each|if|unless)\s).)*?)\{\{/\1\}\}", re.DOTALL)
_DOUBLE = re.compile(r"\{\{\s*([A-Za-z0-9_.@-]+)\s*\}\}")
_SINGLE = re.compile(r"(?<![{\w$])\{(" + "|".join(TEXTS) + r")\}")
_ELSE = "{{else}}"
_MOST_BLOCKS = 200
DETAIL = "{uv-failure_detail}"
OUTPUT = DETAIL + "\n{uv-failure_output}"
"""Some checks say what is wrong in one line, others in their output."""
_SHORT = frozenset({"exitCode", "branchName", "baseBranch", "expectedPath", "remoteStatus", "mergeStatus"})
"""Values of a failed check that are one word, and not its output."""

Missing = Callable[[str], None]


class KnownVariables(msgspec.Struct, frozen=True, kw_only=True):
    """What the variables of a prompt become."""

    supplied: frozenset[str]
    """Supplied by Genba, by a parameter or by a step."""
    renamed: dict[str, str] = {}
    """Outputs of steps that the original named by the last part of their field."""
    texts: dict[str, str] = {}
    """Values that were fixed by the settings of the original."""


def retry_prompt(text: str) -> str:
    """The prompt of a retry: lists and values of the failed check become its output, which is shown once."""
    for _ in range(_MOST_BLOCKS):
        text, count = _BLOCK.subn(_block, text, count=1)
        if not count:
            break
    text = _DOUBLE.sub(lambda found: DETAIL if found[1] in _SHORT else OUTPUT, text)
    return _once(text, OUTPUT, "(see the output above)")


def _block(found: re.Match[str]) -> str:
    kind, body = found[1], found[3]
    if kind == "each":
        return f"{OUTPUT}\n"
    if kind == "unless":
        return body.partition(_ELSE)[2]
    return body.partition(_ELSE)[0]


def _once(text: str, variable: str, instead: str) -> str:
    first, mark, rest = text.partition(variable)
    return first + mark + rest.replace(variable, instead)


def step_prompt(text: str, known: "KnownVariables", missing: Missing) -> str:
    """A prompt with the names of Genba's variables. What nothing supplies is shown in brackets, and reported once."""
    for _ in range(_MOST_BLOCKS):
        text, count = _BLOCK.subn(lambda found: found[3].partition(_ELSE)[0], text, count=1)
        if not count:
            break
    text = _SINGLE.sub(lambda found: TEXTS[found[1]], text)
    text = _DOUBLE.sub(lambda found: f"{{uv-{found[1]}}}", text)
    reported: set[str] = set()

    def replaced(found: re.Match[str]) -> str:
        name = known.renamed.get(found[1], VARIABLES.get(found[1], found[1]))
        if name in known.supplied:
            return f"{{uv-{name}}}"
        if name in known.texts:
            return known.texts[name]
        if name not in reported:
            reported.add(name)
            missing(name)
        return f"[{name}]"

    return VARIABLE.sub(replaced, text)
