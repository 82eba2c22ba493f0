"""GitHub's OpenAPI as a judge: which operation a request is, and whether it and its answer have the shapes it says.

A schema is compiled when the first request of its operation comes, from no more of the document than it refers to.
"""

import json
import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

import jsonschema_rs
import msgspec

from tests.standins.github.recorded import Exchange

__all__ = ["Exchange", "Operation", "RestContract", "rest_contract"]

_WITH_SLASHES = {"basehead", "dir", "path", "ref"}
"""Parameters whose value may have slashes in it, which OpenAPI has no words for."""
_EMPTY = {204, 205, 304}
_LEADS_ON = {301, 302, 307, 308}
"""GitHub leads on from every name that is no more, and describes it at few operations."""
_WORDS_FOR_ALL = {"page", "per_page"}
_ERROR = {"type": "object", "required": ["message"], "properties": {"message": {"type": "string"}}}
_BY_ID = re.compile(r"^/repositories/\d+(?=/|$)")
"""How GitHub leads to what was renamed or moved; its description has only the names."""
_MOST = 5
"""Errors that are named of one answer."""

_SCHEMAS = "#/components/schemas/"
_ONLY_EXPLAINS = {"example", "examples", "nullable", "discriminator", "externalDocs"}

Schema = dict[str, Any]


class Operation(msgspec.Struct, frozen=True, kw_only=True):
    method: str
    template: str
    values: dict[str, str]
    content: Schema

    @property
    def name(self) -> str:
        return f"{self.method} {self.template}"


@lru_cache(maxsize=2)
def rest_contract(path: Path) -> "RestContract":
    """One for each process: reading the document takes half a second."""
    return RestContract(json.loads(path.read_bytes()))


class RestContract:
    def __init__(self, document: Schema) -> None:
        self._document = document
        self._validators: dict[str, jsonschema_rs.Validator] = {}
        self._by_length: dict[int, list[tuple[list[str], str]]] = {}
        for template in document["paths"]:
            parts = template.strip("/").split("/")
            self._by_length.setdefault(len(parts), []).append((parts, template))

    def violations(self, exchange: Exchange) -> Iterator[str]:
        """What of a request and its answer GitHub's OpenAPI does not have."""
        split = urlsplit(exchange.target)
        path = _BY_ID.sub("/repos/owner/name", split.path)
        operation = self.operation(exchange.method, path)
        if operation is None:
            yield f"{exchange.method} {split.path} is no operation of GitHub"
            return
        if not exchange.agent:
            yield f"{operation.name}: GitHub answers nobody without a User-Agent"
        refused = exchange.status in (400, 422)
        if not refused:  # a test may well ask for what GitHub refuses
            yield from self._request(operation, split.query, exchange.sent)
        if exchange.status and not exchange.struck:  # an answer that a test spoiled proves nothing
            yield from self._response(operation, exchange)

    def operation(self, method: str, path: str) -> Operation | None:
        """The operation of a request; words that are spelled out win over those that are given."""
        found: list[tuple[int, Operation]] = []
        parts = path.strip("/").split("/")
        for length in range(len(parts), 0, -1):
            for pattern, template in self._by_length.get(length, ()):
                values = _match(pattern, parts)
                content = self._document["paths"][template].get(method.lower())
                if values is not None and content is not None:
                    rank = len(values) - 100 * len(pattern)
                    found.append((rank, Operation(method=method, template=template, values=values, content=content)))
        return min(found, key=lambda one: one[0])[1] if found else None

    # the request

    def _request(self, operation: Operation, query: str, body: bytes) -> Iterator[str]:
        known = {one["name"]: one for one in map(self._resolved, operation.content.get("parameters", ()))}
        given = dict(parse_qsl(query, keep_blank_values=True))
        for name, one in known.items():
            if one.get("required") and one["in"] == "query" and name not in given:
                yield f"{operation.name}: the query lacks {name}"
        for name, text in [*operation.values.items(), *given.items()]:
            if name in known:
                yield from self._value(operation, known[name], text)
            elif name in given and name not in _WORDS_FOR_ALL:
                yield f"{operation.name}: the query has {name}, which nobody reads"
        wanted = self._resolved(operation.content.get("requestBody", {}))
        schema = wanted.get("content", {}).get("application/json", {}).get("schema")
        if schema is None or not (body or wanted.get("required")):
            return
        try:
            sent = json.loads(body or b"null")
        except ValueError as error:
            yield f"{operation.name}: the body is no JSON: {error}"
            return
        yield from self._errors(f"{operation.name} request", schema, sent)
        known_in_body = self._properties(schema)
        if isinstance(sent, dict) and known_in_body:
            for name in sorted(sent.keys() - known_in_body):
                yield f"{operation.name}: the body has {name}, which nobody reads"

    def _properties(self, schema: Schema) -> set[str]:
        """What a body can have in it, whichever of the ways to write it was taken."""
        schema = self._resolved(schema)
        ways = [one for word in ("oneOf", "anyOf", "allOf") for one in schema.get(word, ())]
        return set(schema.get("properties", ())).union(*(self._properties(one) for one in ways))

    def _value(self, operation: Operation, parameter: Schema, text: str) -> Iterator[str]:
        schema = self._resolved(parameter.get("schema", {}))
        value: Any = text
        if schema.get("type") in ("integer", "number", "boolean"):
            try:
                value = json.loads(text)
            except ValueError:
                value = text
        elif schema.get("type") == "array":
            value = text.split(",")
        yield from self._errors(f"{operation.name} parameter {parameter['name']}", parameter.get("schema", {}), value)

    # the answer

    def _response(self, operation: Operation, exchange: Exchange) -> Iterator[str]:
        where = f"{operation.name} answer {exchange.status}"
        described = operation.content["responses"].get(str(exchange.status))
        if exchange.status in _EMPTY:
            if exchange.answered:
                yield f"{where}: it has a body"
            return
        if exchange.status in _LEADS_ON:
            yield from self._errors(where, _ERROR, json.loads(exchange.answered or b"{}"))
            return
        if described is None and exchange.status < 400:
            yield f"{where}: GitHub has no such answer"
            return
        contents = self._resolved(described or {}).get("content", {})
        schema = next((one.get("schema") for kind, one in contents.items() if kind.endswith("json")), None)
        if schema is None and exchange.status < 400:
            return
        if exchange.status >= 500 and "json" not in exchange.content_type:
            return  # what stands before GitHub answers with a page
        try:
            answered = json.loads(exchange.answered)
        except ValueError as error:
            yield f"{where}: it is no JSON: {error}"
            return
        yield from self._errors(where, schema or _ERROR, answered)
        if exchange.status >= 400 and schema is not None:
            yield from self._errors(where, _ERROR, answered)

    # schemas

    def _errors(self, where: str, schema: Schema, value: Any) -> Iterator[str]:
        key = json.dumps(schema, sort_keys=True)
        validator = self._validators.get(key)
        if validator is None:
            validator = self._validators[key] = jsonschema_rs.Draft202012Validator(
                self._alone(schema), validate_formats=True
            )
        for count, error in enumerate(validator.iter_errors(value)):
            if count == _MOST:
                return
            place = "/".join(str(part) for part in error.instance_path) or "."
            yield f"{where}: at {place}: {error.message[:300]}"

    def _alone(self, schema: Schema) -> Schema:
        """A schema with what it refers to, and with nothing else, in the words of JSON Schema."""
        needed: dict[str, Any] = {}
        waiting = [schema]
        while waiting:
            for name in _references(waiting.pop()):
                if name not in needed:
                    needed[name] = self._document["components"]["schemas"][name]
                    waiting.append(needed[name])
        made: Schema = dict(_plain(schema))
        made["components"] = {"schemas": {name: _plain(one) for name, one in needed.items()}}
        return made

    def _resolved(self, node: Schema) -> Schema:
        while "$ref" in node:
            found: Any = self._document
            for part in node["$ref"].removeprefix("#/").split("/"):
                found = found[part]
            node = found
        return node


def _match(pattern: list[str], parts: list[str]) -> dict[str, str] | None:
    values: dict[str, str] = {}
    for place, word in enumerate(pattern):
        if word.startswith("{") and word.endswith("}"):
            name = word[1:-1]
            rest = name in _WITH_SLASHES and place == len(pattern) - 1
            values[name] = unquote("/".join(parts[place:]) if rest else parts[place])
            if rest:
                return values
        elif word != parts[place]:
            return None
    return values if len(pattern) == len(parts) else None


def _references(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        reference = node.get("$ref")
        if isinstance(reference, str) and reference.startswith(_SCHEMAS):
            yield reference.removeprefix(_SCHEMAS)
        for value in node.values():
            yield from _references(value)
    elif isinstance(node, list):
        for value in node:
            yield from _references(value)


def _plain(node: Any) -> Any:
    """OpenAPI 3.0 in the words of JSON Schema: what is nullable may be null; what only explains is left out."""
    if isinstance(node, list):
        return [_plain(one) for one in node]
    if not isinstance(node, dict):
        return node
    made = {key: _plain(value) for key, value in node.items() if key not in _ONLY_EXPLAINS and key != "properties"}
    if "properties" in node:
        made["properties"] = {name: _plain(one) for name, one in node["properties"].items()}
    if made.get("format") in ("uri-template", "repo.nwo", "binary"):
        del made["format"]
    if "oneOf" in made:  # GitHub's alternatives overlap: an issue has all that a draft on a board must have
        made["anyOf"] = made.pop("oneOf")
    if node.get("nullable") is not True:
        return made
    if isinstance(made.get("type"), str):
        made["type"] = [made["type"], "null"]
        if "enum" in made and None not in made["enum"]:
            made["enum"] = [*made["enum"], None]
        if not {"oneOf", "anyOf", "allOf"} & made.keys():
            return made
    return {"anyOf": [made, {"type": "null"}]}
