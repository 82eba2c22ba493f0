"""How OpenAI words an error, in both of its dialects."""

from tests.standins.model_server.dialects import Body, fresh, retry_headers
from tests.standins.model_server.turns import Fail

_KINDS = {
    400: ("invalid_request_error", None),
    401: ("invalid_request_error", "invalid_api_key"),
    403: ("invalid_request_error", "forbidden"),
    429: ("requests", "rate_limit_exceeded"),
}
_SAYINGS = {
    401: "Incorrect API key provided.",
    403: "You are not allowed to use this model.",
    429: "Rate limit reached for requests.",
    529: "The engine is currently overloaded, please try again later",
}


def openai_error(fail: Fail) -> tuple[dict[str, str], Body]:
    kind, code = _KINDS.get(fail.status, ("server_error", None))
    headers = {"x-request-id": fresh("req_"), **retry_headers(fail)}
    if fail.status == 429 and fail.retry_after is not None:
        headers["x-ratelimit-limit-requests"] = "50"
        headers["x-ratelimit-remaining-requests"] = "0"
        headers["x-ratelimit-reset-requests"] = f"{fail.retry_after:g}s"
    error = {"message": openai_saying(fail), "type": fail.kind or kind, "param": None, "code": code, **fail.detail}
    return headers, {"error": error}


def openai_saying(fail: Fail) -> str:
    saying = fail.message or _SAYINGS.get(fail.status, "the scenario fails here")
    if fail.retry_after is not None and not fail.message:
        return f"{saying} Please try again in {fail.retry_after:g}s."
    return saying
