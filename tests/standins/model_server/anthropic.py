"""Anthropic Messages: `/v1/messages`, streamed or whole, and `/v1/messages/count_tokens`."""

import re
from typing import Any

from tests.standins.model_server.conversations import Asked, Entry, Offered, Piece, Text, Use, text_of
from tests.standins.model_server.dialects import Body, fresh, halves, retry_headers, sse, until
from tests.standins.model_server.turns import Fail, Tokens

_REMINDER = re.compile(r"<system-reminder>.*?</system-reminder>", re.DOTALL)
_FILLER = "No response requested."
"""What Claude Code puts in the place of an answer that it never got."""
_KINDS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}
_SAYINGS = {
    401: "invalid x-api-key",
    403: "Your API key does not have permission to use the specified resource.",
    429: "This request would exceed your organization's rate limit.",
    529: "Overloaded",
}


class Anthropic:
    name = "anthropic"

    def asked(self, path: str, body: Body) -> Asked:  # noqa: ARG002  (the model is in the body)
        return Asked(
            model=str(body.get("model", "")),
            stream=bool(body.get("stream")),
            system=text_of(body.get("system", "")),
            tools=tuple(Offered(str(tool.get("name", ""))) for tool in body.get("tools") or ()),
            entries=tuple(entry for message in body.get("messages", ()) for entry in _entries(message)),
        )

    def events(self, asked: Asked, pieces: tuple[Piece, ...], tokens: Tokens) -> list[bytes]:
        message = {**_message(asked, pieces, tokens), "content": [], "stop_reason": None}
        events = [{"type": "message_start", "message": message}]
        for index, piece in enumerate(pieces):
            events += _block(index, piece)
        events.append(
            {
                "type": "message_delta",
                "delta": {"stop_reason": _stop_reason(pieces), "stop_sequence": None},
                "usage": _usage(tokens),
            }
        )
        events.append({"type": "message_stop"})
        return [sse(event, str(event["type"])) for event in events]

    def whole(self, asked: Asked, pieces: tuple[Piece, ...], tokens: Tokens) -> Body:
        return _message(asked, pieces, tokens)

    def error(self, fail: Fail) -> tuple[dict[str, str], Body]:
        headers = {"request-id": fresh("req_"), **retry_headers(fail)}
        if fail.status == 429 and fail.retry_after is not None:
            headers["anthropic-ratelimit-requests-limit"] = "50"
            headers["anthropic-ratelimit-requests-remaining"] = "0"
            headers["anthropic-ratelimit-requests-reset"] = until(fail).strftime("%Y-%m-%dT%H:%M:%SZ")
        return headers, _error(fail)

    def broken(self, asked: Asked, fail: Fail) -> list[bytes]:
        begun = self.events(asked, (Text("it begins"),), fail.usage)[:3]
        return [*begun, sse(_error(fail), "error")]


def _entries(message: Body) -> list[Entry]:
    """What a message adds. A new text of the user may come in one message with the last results."""
    content, role = message.get("content"), str(message.get("role", ""))
    blocks = [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
    results = [Entry("tool", text=_plain(block)) for block in blocks if block.get("type") == "tool_result"]
    if role == "assistant" and text_of(content) == _FILLER:
        return []
    if role == "assistant":
        calls = any(block.get("type") == "tool_use" for block in blocks)
        return [Entry(role, calls=calls, text=text_of(content))]
    texts = content if isinstance(content, str) else [block for block in blocks if block.get("type") == "text"]
    output = _plain(texts) if role == "user" else ""
    return [*results, Entry(role, text=output)] if output else results


def _plain(content: Any) -> str:
    """The text without what Claude Code adds to it of its own."""
    return _REMINDER.sub("", text_of(content)).strip()


def _message(asked: Asked, pieces: tuple[Piece, ...], tokens: Tokens) -> Body:
    return {
        "id": fresh("msg_"),
        "type": "message",
        "role": "assistant",
        "model": asked.model,
        "content": [_content(piece) for piece in pieces],
        "stop_reason": _stop_reason(pieces),
        "stop_sequence": None,
        "usage": _usage(tokens),
    }


def _content(piece: Piece) -> Body:
    match piece:
        case Text(text):
            return {"type": "text", "text": text}
        case Use(tool, given):
            return {"type": "tool_use", "id": fresh("toolu_"), "name": tool, "input": given}


def _block(index: int, piece: Piece) -> list[Body]:
    begun: Any
    match piece:
        case Text(text):
            begun = {"type": "text", "text": ""}
            deltas = [{"type": "text_delta", "text": part} for part in halves(text)]
        case Use():
            begun = {**_content(piece), "input": {}}
            deltas = [{"type": "input_json_delta", "partial_json": part} for part in halves(piece.json)]
    return [
        {"type": "content_block_start", "index": index, "content_block": begun},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


def _stop_reason(pieces: tuple[Piece, ...]) -> str:
    return "tool_use" if any(isinstance(piece, Use) for piece in pieces) else "end_turn"


def _usage(tokens: Tokens) -> Body:
    return {
        "input_tokens": tokens.input,
        "output_tokens": tokens.output,
        "cache_read_input_tokens": tokens.cached,
        "cache_creation_input_tokens": 0,
    }


def _error(fail: Fail) -> Body:
    kind = fail.kind or _KINDS.get(fail.status, "api_error")
    message = fail.message or _SAYINGS.get(fail.status, "the scenario fails here")
    return {
        "type": "error",
        "error": {"type": kind, "message": message, **fail.detail},
        "request_id": fresh("req_"),
    }
