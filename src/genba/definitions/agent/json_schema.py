"""JSON Schema, by a library made for it. A schema stands alone: no other file and no network is read for it."""

from typing import Any

import jsonschema_rs


def problem_in_schema(schema: dict[str, Any]) -> str:
    """Why this is not a schema, or an empty string."""
    outside: list[str] = []
    try:
        _validator(schema, outside)
    except (jsonschema_rs.ValidationError, jsonschema_rs.ReferencingError, ValueError) as error:
        if outside:
            return f"it refers to {outside[0]}; only references inside of the same schema (#/…) are followed"
        return str(error).splitlines()[0]
    return ""


def problems_in_value(schema: dict[str, Any], value: Any, most: int = 5) -> tuple[str, ...]:
    """Why a value does not fit, each with its place."""
    found = []
    for error in _validator(schema, []).iter_errors(value):
        place = ".".join(str(part) for part in error.instance_path)
        found.append(f"{place}: {error.message}" if place else error.message)
        if len(found) == most:
            break
    return tuple(found)


def _validator(schema: dict[str, Any], outside: list[str]) -> Any:
    def refuse(uri: str) -> Any:
        outside.append(uri)
        raise ValueError("refused")

    return jsonschema_rs.validator_for(schema, retriever=refuse)
