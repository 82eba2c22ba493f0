"""OpenAI Chat Completions: `/v1/chat/completions`, streamed or whole."""

from typing import Any

from tests.standins.model_server.conversations import Asked, Entry, Offered, Piece, Text, Use, text_of
from tests.standins.model_server.dialects import Body, fresh, halves, sse
from tests.standins.model_server.openai_errors import openai_error
from tests.standins.model_server.turns import Fail, Tokens


class ChatCompletions:
    name = "chat"

    def asked(self, path: str, body: Body) -> Asked:  # noqa: ARG002  (the model is in the body)
        messages = body.get("messages") or []
        functions = [tool.get("function", {}) for tool in body.get("tools") or ()]
        return Asked(
            model=str(body.get("model", "")),
            stream=bool(body.get("stream")),
            system=text_of([each for each in messages if each.get("role") in ("system", "developer")]),
            tools=tuple(Offered(str(function.get("name", ""))) for function in functions),
            entries=tuple(
                Entry(each["role"], calls=bool(each.get("tool_calls")), text=text_of(each.get("content")))
                for each in messages
                if each.get("role") in ("user", "assistant", "tool")
            ),
        )

    def events(self, asked: Asked, pieces: tuple[Piece, ...], tokens: Tokens) -> list[bytes]:
        frame: Body = {"id": fresh("chatcmpl-"), "object": "chat.completion.chunk", "created": 0, "model": asked.model}
        chunks = [_chunk(frame, {"role": "assistant", "content": ""})]
        for index, piece in enumerate(piece for piece in pieces if isinstance(piece, Use)):
            chunks += _call_chunks(frame, index, piece)
        words = [part for piece in pieces if isinstance(piece, Text) for part in halves(piece.text)]
        chunks[1:1] = [_chunk(frame, {"content": part}) for part in words]
        chunks.append(_chunk(frame, {}, _reason(pieces)))
        chunks.append({**frame, "choices": [], "usage": _usage(tokens)})
        return [*(sse(chunk) for chunk in chunks), sse("[DONE]")]

    def whole(self, asked: Asked, pieces: tuple[Piece, ...], tokens: Tokens) -> Body:
        calls = [_call(piece) for piece in pieces if isinstance(piece, Use)]
        text = "".join(piece.text for piece in pieces if isinstance(piece, Text))
        message = {"role": "assistant", "content": text or None, **({"tool_calls": calls} if calls else {})}
        return {
            "id": fresh("chatcmpl-"),
            "object": "chat.completion",
            "created": 0,
            "model": asked.model,
            "choices": [{"index": 0, "message": message, "finish_reason": _reason(pieces)}],
            "usage": _usage(tokens),
        }

    def error(self, fail: Fail) -> tuple[dict[str, str], Body]:
        return openai_error(fail)

    def broken(self, asked: Asked, fail: Fail) -> list[bytes]:
        begun = self.events(asked, (Text("it begins"),), fail.usage)[:2]
        return [*begun, sse(openai_error(fail)[1])]


def _chunk(frame: Body, delta: Body, reason: str | None = None) -> Body:
    return {**frame, "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}


def _call(piece: Use) -> Body:
    arguments = piece.input if isinstance(piece.input, str) else piece.json
    return {"id": fresh("call_"), "type": "function", "function": {"name": piece.tool, "arguments": arguments}}


def _call_chunks(frame: Body, index: int, piece: Use) -> list[Body]:
    call: Any = _call(piece)
    first = {**call, "index": index, "function": {"name": piece.tool, "arguments": ""}}
    parts = [{"index": index, "function": {"arguments": part}} for part in halves(call["function"]["arguments"])]
    return [_chunk(frame, {"tool_calls": [each]}) for each in (first, *parts)]


def _reason(pieces: tuple[Piece, ...]) -> str:
    return "tool_calls" if any(isinstance(piece, Use) for piece in pieces) else "stop"


def _usage(tokens: Tokens) -> Body:
    return {
        "prompt_tokens": tokens.input,
        "completion_tokens": tokens.output,
        "total_tokens": tokens.input + tokens.output,
        "prompt_tokens_details": {"cached_tokens": tokens.cached},
    }
