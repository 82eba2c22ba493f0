"""What goes over the wire: schemas of tools, answers and refusals."""

from typing import Any

import msgspec
from mcp.types import CallToolResult, TextContent, ToolAnnotations
from mcp.types import Tool as ListedTool

from genba.domain.workflow.actions import ErrorCode, WorkflowError
from genba.entrypoints.mcp.tools import ToolEntry
from genba.judgement.language.sentences import tool_text

REFUSAL = {
    "type": "object",
    "description": "Why the call was refused; nothing was changed.",
    "properties": {
        "code": {"type": "string", "enum": [str(code) for code in ErrorCode]},
        "message": {"type": "string"},
        "hint": {"type": "string"},
        "action": {"type": "string", "description": "What to do now, in one word."},
    },
    "required": ["code", "message", "hint", "action"],
}
_EMPTY: tuple[Any, ...] = (None, "", (), {}, [])


def listed(entry: ToolEntry[Any], language: str = "en") -> ListedTool:
    """A tool as clients see it, in the language of the project."""
    return ListedTool(
        name=entry.name,
        title=tool_text(language, entry.title),
        description=tool_text(language, entry.description),
        input_schema=_described(input_schema(entry), language),
        output_schema=_described(output_schema(entry.answers), language),
        annotations=ToolAnnotations(
            read_only_hint=entry.reads_only,
            destructive_hint=False,
            idempotent_hint=entry.repeatable,
            open_world_hint=False,
        ),
    )


def input_schema(entry: ToolEntry[Any]) -> dict[str, Any]:
    schema: dict[str, Any] = _without_titles(entry.takes.model_json_schema())
    return schema


def output_schema(answers: type[msgspec.Struct]) -> dict[str, Any]:
    """An object: what the tool answers, or a refusal. Some clients hold refusals to the schema too."""
    (root,), parts = msgspec.json.schema_components([answers], ref_template="#/$defs/{name}")
    own = parts.pop(root["$ref"].rpartition("/")[2])
    schema = {
        "type": "object",
        "properties": {**own["properties"], "error": REFUSAL},
        "anyOf": [{"required": own.get("required", [])}, {"required": ["error"]}],
    }
    shown: dict[str, Any] = _without_titles({**schema, **({"$defs": parts} if parts else {})})
    return shown


def answered(value: msgspec.Struct, language: str = "en") -> CallToolResult:
    """What a tool came to: structured, and the same as text for a client that knows no structure."""
    plain: dict[str, Any] = lean(value)
    if isinstance(plain.get("next"), str):
        plain["next"] = tool_text(language, plain["next"])
    return CallToolResult(
        content=[TextContent(type="text", text=msgspec.json.encode(plain).decode())], structured_content=plain
    )


def refused(error: WorkflowError) -> CallToolResult:
    """A call that was refused: an error of the tool, which the model reads, and not of the protocol."""
    values = {"error": error.as_dict()}
    text = msgspec.json.encode(values).decode()
    return CallToolResult(content=[TextContent(type="text", text=text)], structured_content=values, is_error=True)


def lean(value: Any) -> Any:
    """Plain data without empty fields: the reader pays for every token."""
    if isinstance(value, msgspec.Struct):
        found = {}
        for field in msgspec.structs.fields(value):
            inner = getattr(value, field.name)
            if field.required or inner not in _EMPTY:
                found[field.encode_name] = lean(inner)
        return found
    if isinstance(value, tuple | list):
        return [lean(each) for each in value]
    if isinstance(value, dict):
        return {str(key): lean(inner) for key, inner in value.items()}
    return msgspec.to_builtins(value)


def _described(schema: Any, language: str) -> Any:
    """The same with its descriptions, and the texts that answers have by default, in a language."""
    if isinstance(schema, dict):
        spoken = {key for key in ("description", "default") if isinstance(schema.get(key), str)}
        return {
            key: tool_text(language, inner) if key in spoken else _described(inner, language)
            for key, inner in schema.items()
        }
    return [_described(each, language) for each in schema] if isinstance(schema, list) else schema


def _without_titles(schema: Any) -> Any:
    """The same without the titles that were only made of names."""
    if isinstance(schema, dict):
        return {
            key: _without_titles(inner)
            for key, inner in schema.items()
            if not (key == "title" and isinstance(inner, str))
        }
    return [_without_titles(each) for each in schema] if isinstance(schema, list) else schema
