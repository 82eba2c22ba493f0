"""Secrets never reach the journal: neither the values of the environment nor what looks like a key."""

import re
from collections.abc import Mapping
from typing import Any

HIDDEN = "[redacted]"
_SHORTEST_VALUE = 8
_SECRET_NAME = re.compile(
    r"TOKEN|SECRET|PASSW|CREDENTIAL|COOKIE|APIKEY|(?:^|_)(?:KEY|KEYS|AUTH|PAT|DSN)(?:_|$)", re.IGNORECASE
)
_NOT_SECRET_NAME = re.compile(r"^SSH_AUTH_SOCK$", re.IGNORECASE)
_FREE_TEXT = frozenset({
    "message", "prompt", "text", "reason", "detail", "output", "title", "subject", "claim", "target",
    "parameters", "previous_summary", "context", "structured",
})  # fmt: skip
"""The fields of an event in which anybody may have written anything. All others are words of the house."""
_OF_THE_WORKFLOW = r"(?<![A-Za-z0-9])gb[kos]_[A-Za-z0-9_]{12,}"
"""Passkeys, one-time credentials and tokens of the workflow."""
_LOOKS_SECRET = re.compile(
    r"(?<![A-Za-z0-9])sk-[A-Za-z0-9_-]{16,}"
    r"|gh[pousr]_[A-Za-z0-9_.-]{20,}"
    r"|github_pat_[A-Za-z0-9_]{20,}"
    r"|glpat-[A-Za-z0-9_-]{16,}"
    r"|xox[abprs]-[A-Za-z0-9-]{10,}"
    rf"|{_OF_THE_WORKFLOW}"
    r"|AKIA[0-9A-Z]{16}"
    r"|AIza[0-9A-Za-z_-]{35}"
    r"|(?<![A-Za-z0-9_-])eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----(?:.|\n)*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)"
    r"|(?<=://)[^/\s:@]+:[^/\s@]+(?=@)"
    r"|(?<=[Bb]earer )[A-Za-z0-9._~+/-]{12,}=*"
)


def without_tokens(text: str) -> str:
    """A text that is kept, and used again: without the secrets of the workflow, and else as it was."""
    return re.sub(_OF_THE_WORKFLOW, HIDDEN, text)


def is_secret_name(name: str) -> bool:
    """Whether what goes by this name is a secret."""
    return bool(_SECRET_NAME.search(name)) and not _NOT_SECRET_NAME.match(name)


class Redactor:
    """Hides the secrets of one environment."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        values = {
            value for name, value in environment.items() if is_secret_name(name) and len(value) >= _SHORTEST_VALUE
        }
        longest_first = sorted(values, key=len, reverse=True)
        self._values = re.compile("|".join(map(re.escape, longest_first))) if longest_first else None

    def text(self, text: str) -> str:
        if self._values is not None:
            text = self._values.sub(HIDDEN, text)
        return _LOOKS_SECRET.sub(HIDDEN, text)

    def value(self, value: Any) -> Any:
        """The same JSON value with every string in it redacted; keys are not values."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {key: self.value(inner) for key, inner in value.items()}
        if isinstance(value, list | tuple):
            return [self.value(inner) for inner in value]
        return value

    def event(self, value: Any) -> Any:
        """The same event with its free text redacted. Ids, paths, states and names stay: a resumed run needs them."""
        if isinstance(value, dict):
            return {
                key: self.value(inner) if _is_free(key, inner) else self.event(inner) for key, inner in value.items()
            }
        if isinstance(value, list | tuple):
            return [self.event(inner) for inner in value]
        return value


def _is_free(key: str, value: Any) -> bool:
    return key in _FREE_TEXT or (key == "result" and isinstance(value, str))
