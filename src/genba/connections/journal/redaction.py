"""Secrets never reach the journal: neither the values of the environment nor what looks like a key."""

import re
from collections.abc import Mapping
from typing import Any

HIDDEN = "[redacted]"
_SHORTEST_VALUE = 8
_SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL|AUTH|COOKIE", re.IGNORECASE)
_NOT_SECRET_NAME = re.compile(r"^(SSH_AUTH_SOCK|XAUTHORITY|.*_KEYRING.*|GPG_TTY|KEYBOARD.*)$", re.IGNORECASE)
_LOOKS_SECRET = re.compile(
    r"sk-[A-Za-z0-9_-]{16,}"
    r"|gh[pousr]_[A-Za-z0-9]{20,}"
    r"|github_pat_[A-Za-z0-9_]{20,}"
    r"|glpat-[A-Za-z0-9_-]{16,}"
    r"|xox[abprs]-[A-Za-z0-9-]{10,}"
    r"|AKIA[0-9A-Z]{16}"
    r"|AIza[0-9A-Za-z_-]{35}"
    r"|eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----(?:.|\n)*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)"
    r"|(?<=://)[^/\s:@]+:[^/\s@]+(?=@)"
    r"|(?<=[Bb]earer )[A-Za-z0-9._~+/-]{12,}=*"
)


class Redactor:
    """Hides the secrets of one environment."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        values = {
            value
            for name, value in environment.items()
            if _SECRET_NAME.search(name) and not _NOT_SECRET_NAME.match(name) and len(value) >= _SHORTEST_VALUE
        }
        longest_first = sorted(values, key=len, reverse=True)
        self._values = re.compile("|".join(map(re.escape, longest_first))) if longest_first else None

    def text(self, text: str) -> str:
        if self._values is not None:
            text = self._values.sub(HIDDEN, text)
        return _LOOKS_SECRET.sub(HIDDEN, text)

    def value(self, value: Any) -> Any:
        """The same JSON value with every string in it redacted."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self.text(key) if isinstance(key, str) else key: self.value(inner) for key, inner in value.items()}
        if isinstance(value, list | tuple):
            return [self.value(inner) for inner in value]
        return value
