"""What it means when an agent of the Agent Client Protocol refuses a request."""

import re

import msgspec

from genba.domain.errors import AgentUnavailable, GenbaError, RateLimited, UnrecoverableError

_SIGN_IN = -32000
_MISUNDERSTOOD = (-32600, -32601, -32602)
_LONGEST = 300
_STATUS = re.compile(r"(?<![\d.])(40[0134]|402|408|413|422|429|50[0234]|529)(?![\d.])")
_LIMIT = re.compile(r"rate.?limit|resource.?exhausted|too many requests|quota|usage limit", re.IGNORECASE)
_KEY = re.compile(r"api.?key|unauthori[sz]ed|unauthenticated|authenticat|permission.?denied|forbidden", re.IGNORECASE)
_DOWN = re.compile(r"overloaded|unavailable|timed? ?out|connection|network|fetch failed|socket", re.IGNORECASE)
_WAIT = re.compile(
    r"(?:retry.?after|retry.?delay|(?:again|reset\w*) in)[^\d]{0,5}(\d+(?:\.\d+)?) ?(ms|m(?!s)|h)?", re.I
)
_IN_SECONDS = {"ms": 0.001, "m": 60.0, "h": 3600.0}


def refused(code: int, message: str, data: object, key_variable: str) -> GenbaError:
    """The error that fits. Agents agree on no codes for what their provider said, so the words count too."""
    said = f"{message} {_words(data)}".strip()
    told = f"the agent refused: {said[:_LONGEST]}"
    found = _STATUS.search(said)
    status = code if 400 <= code < 600 else int(found[1]) if found else 0  # noqa: PLR2004  (HTTP's own numbers)
    if status == 429 or (not status and _LIMIT.search(said)):  # noqa: PLR2004
        wait = _seconds(said)
        return RateLimited(told, retry_after=wait) if wait else AgentUnavailable(told)
    if status in (401, 403) or (not status and (code == _SIGN_IN or _KEY.search(said))):
        return UnrecoverableError(told, hint=_sign_in_hint(key_variable))
    if status == 408 or status >= 500 or (not status and _DOWN.search(said)):  # noqa: PLR2004
        return AgentUnavailable(told)
    if status or code in _MISUNDERSTOOD:
        return UnrecoverableError(told, hint="check runner.adapter and the name of the model")
    return AgentUnavailable(told)


def _sign_in_hint(key_variable: str) -> str:
    if key_variable:
        return f"set {key_variable} to a valid key, or give the files of a login by homeFiles"
    return "name the key by provider.keyEnv, or give the files of a login by homeFiles"


def _seconds(said: str) -> float:
    found = _WAIT.search(said)
    return float(found[1]) * _IN_SECONDS.get((found[2] or "").lower(), 1.0) if found else 0.0


def _words(data: object) -> str:
    if data is None or data == {}:
        return ""
    return data if isinstance(data, str) else msgspec.json.encode(data).decode("utf-8", errors="replace")
