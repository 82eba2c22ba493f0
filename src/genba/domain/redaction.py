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
_HINTS = (
    *("sk-", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "xoxa-", "xoxb-", "xoxp-", "xoxr-"),
    *("xoxs-", "gbk_", "gbo_", "gbs_", "AKIA", "AIza", "eyJ", "PRIVATE KEY-----", "://", "earer "),
)
"""What every text that looks secret contains. Most output has none of it, and to look for these is quick."""
_KEY_BEGINS = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----")
_KEY_ENDS = re.compile(r"-----END [A-Z ]*PRIVATE KEY-----")
_KEY_LINE = re.compile(r"[ \t]*(?:[A-Za-z0-9+/]+={0,2}|[A-Za-z0-9-]+: [^\n]*)?[ \t\r]*")
"""A line inside a private key: base64, one of its headers, or nothing."""
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
    r"|(?<![A-Za-z0-9+/=])(?:[A-Za-z0-9+/=]{16,}+\s{1,4}+){1,200}+-----END [A-Z ]*PRIVATE KEY-----"
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
        lines = {line.strip() for value in values if "\n" in value for line in value.splitlines()}
        values |= {line for line in lines if len(line) >= _SHORTEST_VALUE}
        self._values = sorted(values, key=len, reverse=True)
        """The longest first. The lines of a value with many lines are hidden each by itself, too."""

    def text(self, text: str) -> str:
        for value in self._values:
            if value in text:
                text = text.replace(value, HIDDEN)
        return _LOOKS_SECRET.sub(HIDDEN, text) if any(hint in text for hint in _HINTS) else text

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


class OutputRedactor:
    """Hides the secrets of output that arrives in pieces, each of whole lines: a private key goes over many of them."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._in_key: set[str] = set()
        """The streams whose last line is inside a private key."""

    def text(self, stream: str, text: str) -> str:
        hidden = ""
        if stream in self._in_key:
            rest = _after_key(text)
            if rest is None:
                return HIDDEN
            self._in_key.discard(stream)
            hidden, text = HIDDEN, rest
        if _opens_key(text):
            self._in_key.add(stream)
        return hidden + self._redactor.text(text)


def _opens_key(text: str) -> bool:
    """Whether a private key begins in a text and goes on behind it."""
    begun = text.rfind("-----BEGIN ")
    if begun < 0 or not _KEY_BEGINS.match(text, begun) or _KEY_ENDS.search(text, begun):
        return False
    return _after_key(text[begun:].partition("\n")[2]) is None


def _after_key(text: str) -> str | None:
    """What comes behind a private key; None where it goes on. What is no line of a key ends it, too."""
    if found := _KEY_ENDS.search(text):
        return text[found.end() :]
    at = 0
    for line in text.split("\n"):
        if not _KEY_LINE.fullmatch(line):
            return text[at:]
        at += len(line) + 1
    return None


def _is_free(key: str, value: Any) -> bool:
    return key in _FREE_TEXT or (key == "result" and isinstance(value, str))
