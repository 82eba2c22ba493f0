"""Gemini: `/v1beta/models/<model>:generateContent` and `:streamGenerateContent`, streamed or whole."""

from tests.standins.model_server.conversations import Asked, Entry, Offered, Piece, Text, Use, text_of
from tests.standins.model_server.dialects import Body, halves, retry_headers, sse
from tests.standins.model_server.turns import Fail, Tokens

_KINDS = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
}


class Gemini:
    name = "gemini"

    def asked(self, path: str, body: Body) -> Asked:
        model, _, verb = path.rpartition("/")[2].partition(":")
        tools = [each for tool in body.get("tools") or () for each in tool.get("functionDeclarations", ())]
        return Asked(
            model=model,
            stream=verb.startswith("stream"),
            system=text_of((body.get("systemInstruction") or {}).get("parts", "")),
            tools=tuple(Offered(str(tool.get("name", ""))) for tool in tools),
            entries=tuple(entry for content in body.get("contents", ()) for entry in _entries(content)),
        )

    def events(self, asked: Asked, pieces: tuple[Piece, ...], tokens: Tokens) -> list[bytes]:
        parts = [part for piece in pieces for part in _parts(piece)]
        frames: list[Body] = [{"candidates": [_candidate([part])], "modelVersion": asked.model} for part in parts]
        end = {**_candidate([{"text": ""}]), "finishReason": "STOP"}
        frames.append({"candidates": [end], "usageMetadata": _usage(tokens), "modelVersion": asked.model})
        return [sse(frame) for frame in frames]

    def whole(self, asked: Asked, pieces: tuple[Piece, ...], tokens: Tokens) -> Body:
        candidate = {**_candidate([part for piece in pieces for part in _parts(piece)]), "finishReason": "STOP"}
        return {"candidates": [candidate], "usageMetadata": _usage(tokens), "modelVersion": asked.model}

    def error(self, fail: Fail) -> tuple[dict[str, str], Body]:
        kind = fail.kind or _KINDS.get(fail.status, "UNAVAILABLE")
        message = fail.message or "the scenario fails here"
        return retry_headers(fail), {"error": {"code": fail.status, "message": message, "status": kind, **fail.detail}}

    def broken(self, asked: Asked, fail: Fail) -> list[bytes]:
        return [*self.events(asked, (Text("it begins"),), fail.usage)[:1], sse(self.error(fail)[1])]


def _entries(content: Body) -> list[Entry]:
    parts = [part for part in content.get("parts", ()) if isinstance(part, dict)]
    results = [part["functionResponse"] for part in parts if "functionResponse" in part]
    if results:
        return [Entry("tool", text=text_of(result.get("response"))) for result in results]
    if content.get("role") == "model":
        return [Entry("assistant", calls=any("functionCall" in part for part in parts), text=text_of(parts))]
    return [Entry("user", text=text_of(parts))]


def _parts(piece: Piece) -> list[Body]:
    match piece:
        case Text(text):
            return [{"text": part} for part in halves(text)]
        case Use(tool, given):
            return [{"functionCall": {"name": tool, "args": given}}]


def _candidate(parts: list[Body]) -> Body:
    return {"index": 0, "content": {"role": "model", "parts": parts}}


def _usage(tokens: Tokens) -> Body:
    return {
        "promptTokenCount": tokens.input,
        "candidatesTokenCount": tokens.output,
        "cachedContentTokenCount": tokens.cached,
        "totalTokenCount": tokens.input + tokens.output,
    }
