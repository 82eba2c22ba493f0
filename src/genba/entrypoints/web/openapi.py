"""The description of the API, made from the table of its operations."""

import re
from collections.abc import Iterable
from typing import Any

import msgspec

from genba import __version__
from genba.entrypoints.web.operations import FailureAnswer, Operation

_REFUSALS = {
    "400": "The request does not fit its description.",
    "401": "The token is missing or invalid.",
    "403": "The token may only read.",
    "404": "Not found.",
    "405": "The path does not support this method.",
    "409": "The current state does not permit this.",
    "413": "The request is too large.",
    "422": "A file of the project is invalid.",
    "503": "The database or a tracker does not answer.",
}


def described(operations: Iterable[Operation], project: str) -> dict[str, Any]:
    """The description as OpenAPI 3.1."""
    known = tuple(operations)
    types = [FailureAnswer, *(each.answer for each in known), *(each.body for each in known if each.body is not None)]
    parameters = [kind for each in known for kind in each.parameters.values()]
    schemas, components = msgspec.json.schema_components(
        [*types, *(each.query for each in known), *parameters], ref_template="#/components/schemas/{name}"
    )
    shapes = iter(schemas)
    failure = next(shapes)
    answers = [next(shapes) for _ in known]
    bodies = [next(shapes) if each.body is not None else None for each in known]
    queries = [next(shapes) for _ in known]
    paths: dict[str, Any] = {}
    for each, answer, body, query in zip(known, answers, bodies, queries, strict=True):
        values: dict[str, Any] = {
            "operationId": each.name,
            "summary": each.summary,
            "tags": [each.group],
            "parameters": [
                *({"name": name, "in": "path", "required": True, "schema": next(shapes)} for name in each.parameters),
                *_query(query, components),
            ],
            "responses": {
                "200": {"description": each.summary, "content": _json(answer)},
                **{code: {"description": why, "content": _json(failure)} for code, why in _REFUSALS.items()},
            },
        }
        if each.command:
            values["description"] = f"The same as `{each.command}`."
        if body is not None:
            values["requestBody"] = {"required": True, "content": _json(body)}
        paths.setdefault(each.path, {})[each.method.lower()] = values
    return {
        "openapi": "3.1.0",
        "info": {
            "title": f"Genba: {project}",
            "version": __version__,
            "description": "What the commands of genba tell with --json, and what people decide. Times are UTC.",
        },
        "paths": paths,
        "components": {
            "schemas": {_plain(name): _renamed(shape) for name, shape in components.items()},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}],
    }


def _query(shape: dict[str, Any], components: dict[str, Any]) -> Iterable[dict[str, Any]]:
    """The fields of a type, each as a parameter of the query."""
    whole = components[shape["$ref"].rpartition("/")[2]] if "$ref" in shape else shape
    for name, inner in whole.get("properties", {}).items():
        yield {"name": name, "in": "query", "required": name in whole.get("required", ()), "schema": inner}


def _json(schema: dict[str, Any]) -> dict[str, Any]:
    return {"application/json": {"schema": schema}}


def _plain(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]", "_", name)


def _renamed(value: Any) -> Any:
    """References to schemas whose names are no names for OpenAPI."""
    if isinstance(value, dict):
        return {key: _plain_reference(inner) if key == "$ref" else _renamed(inner) for key, inner in value.items()}
    return [_renamed(inner) for inner in value] if isinstance(value, list) else value


def _plain_reference(reference: Any) -> Any:
    head, _, name = str(reference).rpartition("/")
    return f"{head}/{_plain(name)}"
