"""Finding structured output in a reply. A mention in prose is not structured output."""

import json
import re
from collections.abc import Iterator
from typing import Any

from genba.domain.convert import too_deep

_FENCE = "```"
_MARKER = re.compile(r"[\w+.-]*")


def code_blocks(text: str) -> Iterator[tuple[str, str]]:
    """Each fenced block of a Markdown text: its marker and its content."""
    marker: str | None = None
    inside: list[str] = []
    first = text.find(_FENCE)  # a long text without a block costs nothing
    for line in text[text.rfind("\n", 0, first) + 1 :].splitlines() if first >= 0 else ():
        bare = line.strip()
        if marker is None and bare.startswith(_FENCE):
            found = _MARKER.match(bare.removeprefix(_FENCE).strip())
            marker, inside = (found.group() if found else ""), []
        elif marker is not None and bare == _FENCE:
            yield marker, "\n".join(inside) + "\n"
            marker = None
        elif marker is not None:
            inside.append(line)


def json_object(text: str) -> dict[str, Any] | None:
    """A JSON object, or None for anything else: broken, too deep, too large a number, half a character."""
    try:
        value = json.loads(text)
        json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) and not too_deep(value) else None


def whole_reply(text: str) -> dict[str, Any] | None:
    """The reply, when it is one JSON object and nothing else."""
    return json_object(text.strip())


def last_block(text: str, ignore_types: tuple[str, ...] = ()) -> dict[str, Any] | None:
    """The whole reply as JSON, or the last JSON block in it that is not an action."""
    whole = whole_reply(text)
    if whole is not None:
        return whole
    found = [
        value
        for marker, content in code_blocks(text)
        if marker in ("", "json")
        and (value := json_object(content)) is not None
        and value.get("type") not in ignore_types
    ]
    return found[-1] if found else None


def field(structured: dict[str, Any], dotted: str) -> Any:
    """The value at a dotted path, or None."""
    node: Any = structured
    for part in dotted.split("."):
        if not isinstance(node, dict) or part not in node:
            return None
        node = node[part]
    return node


def strings_in(value: Any) -> Iterator[str]:
    """Every string value, however deep; keys are not values."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from strings_in(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from strings_in(inner)
