"""JSON Schemas as a provider takes them in its strict mode: nothing left out, nothing on top.

What may be missing becomes what may be null, and is taken away again from the answer.
"""

from typing import Any

_UNKNOWN = frozenset({
    "allOf", "not", "if", "then", "else", "dependentRequired", "dependentSchemas", "patternProperties",
    "propertyNames", "unevaluatedProperties", "unevaluatedItems", "prefixItems", "contains", "$dynamicRef",
})  # fmt: skip
_DROPPED = frozenset({"$schema", "$id", "$comment", "title", "default", "examples", "deprecated"})
_DEFINITIONS = ("$defs", "definitions")
_DEEPEST = 60


class NotStrict(Exception):
    """This schema says what the strict mode cannot."""


def strict(schema: dict[str, Any]) -> dict[str, Any] | None:
    """The schema for the strict mode; None where strict mode cannot express it."""
    if schema.get("type") != "object" or "anyOf" in schema or "oneOf" in schema:
        return None
    try:
        return _strict(schema, 0)
    except NotStrict:
        return None


def without_nulls(value: Any, schema: dict[str, Any]) -> Any:
    """The answer as the schema itself wants it: what may be missing and is null is not there."""
    return _cleared(value, schema, schema, 0)


def _strict(schema: Any, depth: int) -> dict[str, Any]:
    if not isinstance(schema, dict) or depth > _DEEPEST or _UNKNOWN & schema.keys():
        raise NotStrict
    made = {key: value for key, value in schema.items() if key not in _DROPPED}
    for each in _DEFINITIONS:
        if each in made:
            made[each] = {name: _strict(one, depth + 1) for name, one in _dict(made[each]).items()}
    either = [_strict(one, depth + 1) for key in ("anyOf", "oneOf") for one in _list(made.pop(key, []))]
    if either:
        made["anyOf"] = either
    if "items" in made:
        made["items"] = _strict(made["items"], depth + 1)
    if "properties" in made or "object" in _types(made):
        _close(made, schema, depth)
    elif "array" in _types(made) and "items" not in made:
        raise NotStrict
    if not made.keys() & {"type", "enum", "const", "anyOf", "$ref"}:
        raise NotStrict
    return made


def _close(made: dict[str, Any], schema: dict[str, Any], depth: int) -> None:
    """Every property is there, and no other."""
    properties = _dict(made.get("properties"))
    if not properties or made.get("additionalProperties", False) is not False:
        raise NotStrict
    needed = set(_list(schema.get("required", [])))
    if needed - properties.keys():
        raise NotStrict
    inner = {name: _strict(one, depth + 1) for name, one in properties.items()}
    made["properties"] = {name: one if name in needed else _or_null(one) for name, one in inner.items()}
    made["required"] = list(properties)
    made["additionalProperties"] = False


def _or_null(schema: dict[str, Any]) -> dict[str, Any]:
    types = _types(schema)
    if types and not schema.keys() & {"enum", "const"}:
        return {**schema, "type": list(dict.fromkeys((*types, "null")))}
    return {"anyOf": [schema, {"type": "null"}]}


def _cleared(value: Any, schema: Any, root: dict[str, Any], depth: int) -> Any:
    schema = _resolved(schema, root)
    if depth > _DEEPEST:
        return value
    if isinstance(value, list):
        return [_cleared(one, schema.get("items"), root, depth + 1) for one in value]
    if not isinstance(value, dict) or not isinstance(schema.get("properties"), dict):
        return value
    needed = schema.get("required")
    needed = needed if isinstance(needed, list) else []
    return {
        name: _cleared(one, schema["properties"].get(name), root, depth + 1)
        for name, one in value.items()
        if one is not None or name in needed or name not in schema["properties"]
    }


def _resolved(schema: Any, root: dict[str, Any]) -> dict[str, Any]:
    if not isinstance(schema, dict):
        return {}
    reference = schema.get("$ref")
    if not isinstance(reference, str):
        return schema
    node: Any = root
    for part in reference.removeprefix("#").strip("/").split("/"):
        node = node.get(part) if isinstance(node, dict) and part else node
    return node if isinstance(node, dict) else {}


def _types(schema: dict[str, Any]) -> tuple[str, ...]:
    given = schema.get("type")
    return (given,) if isinstance(given, str) else tuple(given) if isinstance(given, list) else ()


def _dict(value: Any) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise NotStrict
    return value


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise NotStrict
    return value
