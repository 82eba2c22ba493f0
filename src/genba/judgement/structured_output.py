"""Finding structured output in a reply. A mention in prose is not structured output."""

import json
import re
from collections.abc import Iterator
from typing import Any

_FENCE = re.compile(r"^[ \t]*```[ \t]*([\w+.-]*)[^\n]*\n(.*?)^[ \t]*```[ \t]*$", re.MULTILINE | re.DOTALL)


def code_blocks(text: str) -> Iterator[tuple[str, str]]:
    """Each fenced block of a Markdown text: its marker and its content."""
    for found in _FENCE.finditer(text):
        yield found.group(1), found.group(2)


def json_object(text: str) -> dict[str, Any] | None:
    try:
        value = json.loads(text)
    except (json.JSONDecodeError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


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
