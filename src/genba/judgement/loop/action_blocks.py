"""Action blocks in a reply: fenced JSON objects with a `type`."""

from typing import Any

import msgspec

from genba.definitions.agent.agent_json import Actions
from genba.judgement.loop.structured_output import code_blocks, json_object


class ActionBlock(msgspec.Struct, frozen=True):
    type: str
    content: dict[str, Any]
    allowed: bool


def find_actions(text: str, settings: Actions) -> tuple[ActionBlock, ...]:
    """Every block with the marker of the agent that names a type; what is not allowed is listed apart."""
    if not settings.enabled:
        return ()
    found = []
    for marker, content in code_blocks(text):
        value = json_object(content) if marker == settings.output_format else None
        kind = value.get("type") if value is not None else None
        if value is not None and isinstance(kind, str):
            found.append(ActionBlock(kind, value, kind in settings.types))
    return tuple(found)
