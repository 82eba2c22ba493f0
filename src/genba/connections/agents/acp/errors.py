"""What it means when an agent of the Agent Client Protocol refuses a request."""

import re
from datetime import UTC, datetime

import msgspec

from genba.connections.agents.model_errors import one_line, provider_error, wait_in_text
from genba.domain.errors import AgentUnavailable, GenbaError, UnrecoverableError

_SIGN_IN = -32000
_MISUNDERSTOOD = (-32600, -32601, -32602)
_HTTP_ERRORS = range(400, 600)
_TOO_MANY, _NO_KEY = 429, 401
_STATUS = re.compile(r"(?<![\d.])(40[0134]|402|408|413|422|429|50[0234]|529)(?![\d.])")
_LIMIT = re.compile(r"rate.?limit|resource.?exhausted|too many requests|quota|usage limit", re.IGNORECASE)
_KEY = re.compile(r"api.?key|unauthori[sz]ed|unauthenticated|authenticat|permission.?denied|forbidden", re.IGNORECASE)
_WAIT = re.compile(r"retry.?(?:after|delay)[^\d]{1,5}(\d+(?:\.\d+)?)", re.IGNORECASE)


def refused(code: int, message: str, data: object, key_variable: str) -> GenbaError:
    """The error that fits. Agents share no codes for provider errors, so the text counts too."""
    output = f"{message} {_texts(data)}".strip()
    status = _status(code, output)
    if status is not None:
        return provider_error(status, output, key_variable or "the key, or the login by homeFiles", _wait(output))
    if code in _MISUNDERSTOOD:
        return UnrecoverableError(f"the agent refused: {one_line(output)}", hint="check runner.adapter")
    return AgentUnavailable(f"the agent refused: {one_line(output)}")


def _status(code: int, text: str) -> int | None:
    """The status that the provider gave, or that its words amount to."""
    if code in _HTTP_ERRORS:
        return code
    if match := _STATUS.search(text):
        return int(match[1])
    if _LIMIT.search(text):
        return _TOO_MANY
    return _NO_KEY if code == _SIGN_IN or _KEY.search(text) else None


def _wait(text: str) -> float | None:
    match = _WAIT.search(text)
    return float(match[1]) if match else wait_in_text(text, datetime.now(UTC).astimezone())


def _texts(data: object) -> str:
    if data is None or data == {}:
        return ""
    return data if isinstance(data, str) else msgspec.json.encode(data).decode("utf-8", errors="replace")
