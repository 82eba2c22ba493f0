"""JSON Schema, by a library made for it."""

from typing import Any

import jsonschema_rs


def problem_in_schema(schema: dict[str, Any]) -> str:
    """Why this is not a schema, or an empty string."""
    try:
        jsonschema_rs.validator_for(schema)
    except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError) as error:
        return _first_line(error)
    return ""


def problems_in_value(schema: dict[str, Any], value: Any, most: int = 5) -> tuple[str, ...]:
    """Why a value does not fit, each with its place."""
    found = []
    for error in jsonschema_rs.validator_for(schema).iter_errors(value):
        place = ".".join(str(part) for part in error.instance_path)
        found.append(f"{place}: {error.message}" if place else error.message)
        if len(found) == most:
            break
    return tuple(found)


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0]
