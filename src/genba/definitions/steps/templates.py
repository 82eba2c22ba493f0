"""The one template syntax: {uv-name}."""

import re
from collections.abc import Mapping
from typing import Any

import msgspec

VARIABLE = re.compile(r"\{uv-([A-Za-z0-9_.-]+)\}")


def variables_in(text: str) -> tuple[str, ...]:
    """The names that a template uses, in order, each once."""
    return tuple(dict.fromkeys(VARIABLE.findall(text)))


def fill(text: str, values: Mapping[str, Any]) -> str:
    """Replace every variable in one pass: what a value contains is never read as a template."""
    return VARIABLE.sub(lambda found: as_text(values[found.group(1)]), text)


def as_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    return msgspec.json.encode(value).decode()


def output_variable(step: str, key: str) -> str:
    """The name under which later steps see a step's output: measure.height is measure_height."""
    return f"{step}_{key}".replace(".", "_")
