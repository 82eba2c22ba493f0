"""OpenAI Responses: `/v1/responses`, streamed or whole."""

import json
from typing import Any

from tests.standins.model_server.conversations import Asked, Entry, Offered, Piece, Text, Use, text_of
from tests.standins.model_server.dialects import Body, fresh, halves, sse
from tests.standins.model_server.openai_errors import openai_error, openai_saying
from tests.standins.model_server.turns import Fail, Tokens

_CALLS = ("function_call", "custom_tool_call", "local_shell_call", "tool_search_call")
_STREAM_CODES = {400: "invalid_prompt", 429: "rate_limit_exceeded", 529: "server_is_overloaded"}


class Responses:
    name = "responses"

    def asked(self, path: str, body: Body) -> Asked:  # noqa: ARG002  (the model is in the body)
        given = body.get("input", "")
        items = [{"role": "user", "content": given}] if isinstance(given, str) else given
        offered = [*(body.get("tools") or ()), *_additional(items)]
        return Asked(
            model=str(body.get("model", "")),
            stream=bool(body.get("stream")),
            system=text_of([body.get("instructions", ""), *(each for each in items if _role(each) == "developer")]),
            tools=tuple(tool for each in offered for tool in _offered(each)),
            entries=tuple(entry for item in items for entry in _entries(item)),
        )

    def events(self, asked: Asked, pieces: tuple[Piece, ...], tokens: Tokens) -> list[bytes]:
        response = _response(asked, pieces, tokens)
        begun = {**response, "status": "in_progress", "output": [], "usage": None}
        events: list[Body] = [{"type": f"response.{word}", "response": begun} for word in ("created", "in_progress")]
        for index, item in enumerate(response["output"]):
            events += _item_events(index, item)
        events.append({"type": "response.completed", "response": response})
        return _numbered(events)

    def whole(self, asked: Asked, pieces: tuple[Piece, ...], tokens: Tokens) -> Body:
        return _response(asked, pieces, tokens)

    def error(self, fail: Fail) -> tuple[dict[str, str], Body]:
        return openai_error(fail)

    def broken(self, asked: Asked, fail: Fail) -> list[bytes]:
        response = {**_response(asked, (), fail.usage), "usage": None}
        code = fail.kind or _STREAM_CODES.get(fail.status, "server_error")
        error = {"code": code, "message": openai_saying(fail), **fail.detail}
        return _numbered(
            [
                {"type": "response.created", "response": {**response, "status": "in_progress"}},
                {"type": "response.failed", "response": {**response, "status": "failed", "error": error}},
            ]
        )


def _role(item: Body) -> str:
    return str(item.get("role", "")) if item.get("type", "message") == "message" else ""


def _additional(items: list[Body]) -> list[Body]:
    """Tools that come as a part of the conversation."""
    return [tool for item in items if item.get("type") == "additional_tools" for tool in item.get("tools") or ()]


def _offered(tool: Body) -> list[Offered]:
    name = str(tool.get("name") or tool.get("type", ""))
    if tool.get("type") == "namespace":
        return [Offered(each.name, name, each.free_text) for part in tool.get("tools", ()) for each in _offered(part)]
    return [Offered(name, free_text=tool.get("type") == "custom")]


def _entries(item: Body) -> list[Entry]:
    kind = str(item.get("type", "message"))
    if kind in _CALLS:
        return [Entry("assistant", calls=True)]
    if kind == "reasoning":
        return []
    if kind.endswith("_output"):
        return [Entry("tool", text=text_of(item.get("output", "")))]
    role = _role(item)
    return [Entry(role, text=text_of(item.get("content", "")))] if role in ("user", "assistant") else []


def _response(asked: Asked, pieces: tuple[Piece, ...], tokens: Tokens) -> Body:
    return {
        "id": fresh("resp_"),
        "object": "response",
        "created_at": 0,
        "status": "completed",
        "error": None,
        "model": asked.model,
        "output": [_item(piece, asked) for piece in pieces],
        "usage": {
            "input_tokens": tokens.input,
            "input_tokens_details": {"cached_tokens": tokens.cached},
            "output_tokens": tokens.output,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": tokens.input + tokens.output,
        },
    }


def _item(piece: Piece, asked: Asked) -> Body:
    match piece:
        case Text(text):
            content = [{"type": "output_text", "text": text, "annotations": []}]
            return {
                "type": "message",
                "id": fresh("msg_"),
                "role": "assistant",
                "status": "completed",
                "content": content,
            }
        case Use(tool, given, namespace):
            return {**_call(tool, given, asked), **({"namespace": namespace} if namespace else {})}


def _call(tool: str, given: Any, asked: Asked) -> Body:
    known = {"id": fresh("fc_"), "call_id": fresh("call_"), "name": tool, "status": "completed"}
    free_text = any(each.name == tool and each.free_text for each in asked.tools)
    if free_text or isinstance(given, str):
        return {**known, "type": "custom_tool_call", "input": given if isinstance(given, str) else json.dumps(given)}
    return {**known, "type": "function_call", "arguments": json.dumps(given)}


def _item_events(index: int, item: Body) -> list[Body]:
    place = {"item_id": item["id"], "output_index": index}
    empty: Body
    match item["type"]:
        case "message":
            text = item["content"][0]["text"]
            place = {**place, "content_index": 0}
            empty = {**item, "content": [], "status": "in_progress"}
            part = {"type": "output_text", "text": "", "annotations": []}
            middle: list[Body] = [{"type": "response.content_part.added", **place, "part": part}]
            middle += [{"type": "response.output_text.delta", **place, "delta": each} for each in halves(text)]
            middle.append({"type": "response.output_text.done", **place, "text": text})
            middle.append({"type": "response.content_part.done", **place, "part": item["content"][0]})
        case "function_call":
            empty, name = {**item, "arguments": "", "status": "in_progress"}, "response.function_call_arguments"
            middle = [{"type": f"{name}.delta", **place, "delta": each} for each in halves(item["arguments"])]
            middle.append({"type": f"{name}.done", **place, "arguments": item["arguments"]})
        case _:
            empty, name = {**item, "input": "", "status": "in_progress"}, "response.custom_tool_call_input"
            middle = [{"type": f"{name}.delta", **place, "delta": each} for each in halves(item["input"])]
            middle.append({"type": f"{name}.done", **place, "input": item["input"]})
    return [
        {"type": "response.output_item.added", "output_index": index, "item": empty},
        *middle,
        {"type": "response.output_item.done", "output_index": index, "item": item},
    ]


def _numbered(events: list[Body]) -> list[bytes]:
    return [sse({**event, "sequence_number": number}, event["type"]) for number, event in enumerate(events)]
