"""A schema in the strict mode says the same as before, as far as the strict mode can say it."""

from typing import Any

import pytest

from genba.connections.agents.cli_tools.strict_schema import strict, without_nulls

NESTED: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "title": "A report",
    "type": "object",
    "properties": {
        "status": {"enum": ["completed", "blocked"]},
        "note": {"type": "string", "default": ""},
        "parts": {"type": "array", "items": {"$ref": "#/$defs/part"}},
        "either": {"oneOf": [{"type": "string"}, {"type": "integer"}]},
    },
    "required": ["status", "parts"],
    "$defs": {"part": {"type": "object", "properties": {"path": {"type": "string"}, "lines": {"type": "integer"}}}},
}


def test_everything_is_required_and_what_may_be_missing_may_be_null() -> None:
    made = strict(NESTED)
    assert made is not None
    assert made["required"] == ["status", "note", "parts", "either"]
    assert made["additionalProperties"] is False
    assert made["properties"]["status"] == {"enum": ["completed", "blocked"]}
    assert made["properties"]["note"] == {"type": ["string", "null"]}
    assert made["properties"]["either"]["anyOf"][-1] == {"type": "null"}
    part = made["$defs"]["part"]
    assert part["required"] == ["path", "lines"]
    assert part["properties"]["lines"] == {"type": ["integer", "null"]}
    assert not {"$schema", "title"} & made.keys()


def test_what_was_null_only_for_the_form_is_taken_away_again() -> None:
    answer = {"status": "completed", "note": None, "parts": [{"path": "a", "lines": None}], "either": None}
    assert without_nulls(answer, NESTED) == {"status": "completed", "parts": [{"path": "a"}]}


def test_a_null_that_was_asked_for_stays() -> None:
    schema = {"type": "object", "properties": {"a": {"type": ["string", "null"]}}, "required": ["a"]}
    assert without_nulls({"a": None, "unasked": None}, schema) == {"a": None, "unasked": None}


@pytest.mark.parametrize(
    "inner",
    [
        {"type": "object"},
        {"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": {"type": "string"}},
        {"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": True},
        {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a", "b"]},
        {"type": "array"},
        {"allOf": [{"type": "string"}]},
        {"not": {"type": "string"}},
        {},
        True,
        {"anyOf": "no list"},
    ],
    ids=str,
)
def test_what_the_strict_mode_cannot_say_is_left_to_the_prompt(inner: Any) -> None:
    assert strict({"type": "object", "properties": {"inner": inner}, "required": ["inner"]}) is None


def test_only_an_object_can_be_asked_for() -> None:
    assert strict({"type": "array", "items": {"type": "string"}}) is None
    assert strict({"anyOf": [{"type": "object"}]}) is None


def test_a_schema_without_end_is_left_to_the_prompt() -> None:
    deep: dict[str, Any] = {"type": "string"}
    for _ in range(200):
        deep = {"type": "object", "properties": {"in": deep}}
    assert strict(deep) is None
    around: dict[str, Any] = {"type": "object", "properties": {"in": {"$ref": "#"}}}
    assert strict(around) is not None
    assert without_nulls({"in": {"in": None}}, around) == {"in": {}}
