"""detect-secrets over the added lines of every commit: the scan where gitleaks is not installed.

Its detectors are called one by one, without the settings and the comments by which a repository tells it what to
overlook. Those that guess by entropy alone are left out: they take every hash and every uuid for a secret.
"""

import math
import re
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from genba.connections.secrets.findings import Finding, Findings
from genba.domain.errors import CheckBrokenError

if TYPE_CHECKING:
    from detect_secrets.plugins.base import BasePlugin

_DETECTORS = (
    "ArtifactoryDetector", "AWSKeyDetector", "AzureStorageKeyDetector", "BasicAuthDetector", "CloudantDetector",
    "DiscordBotTokenDetector", "GitHubTokenDetector", "GitLabTokenDetector", "IbmCloudIamDetector",
    "IbmCosHmacDetector", "JwtTokenDetector", "KeywordDetector", "MailchimpDetector", "NpmDetector", "OpenAIDetector",
    "PrivateKeyDetector", "PypiTokenDetector", "SendGridDetector", "SlackDetector", "SoftlayerDetector",
    "SquareOAuthDetector", "StripeDetector", "TelegramBotTokenDetector", "TwilioKeyDetector",
)  # fmt: skip
_GUESSING = frozenset({"Secret Keyword", "Basic Auth Credentials"})
"""They go by what stands around a value; the value itself must look like a secret too."""

_LINE, _OVERLAP = 4096, 512
"""A longer line is scanned in pieces that overlap: some patterns take very long for it."""
_SHORTEST = 8
_ENTROPY = 3.0
_REFERENCE = re.compile(r"[\w.-]+[\[(].*[\])];?")
_HUNK = re.compile(rb"@@ -\d+(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_ESCAPE = re.compile(rb"\\([0-7]{3}|.)")
_ESCAPED = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"a": b"\a", b"b": b"\b", b"f": b"\f", b"v": b"\v"}


class AddedLine(msgspec.Struct, frozen=True):
    commit: str
    file: str
    number: int
    text: str


def scan_patch(patch: Path, deadline: float) -> Findings:
    """The findings in a patch that `git log -p -U0 --format=%x00%H` wrote. `deadline` is on the monotonic clock."""
    detectors = _detectors()
    found: Findings = []
    for line in added_lines(patch):
        if time.monotonic() > deadline:
            raise TimeoutError
        found += [Finding(line.file, line.number, rule, line.commit) for rule in sorted(_rules(detectors, line))]
    return found


def added_lines(patch: Path) -> Iterator[AddedLine]:
    """The lines that each commit adds. The counts of a hunk say which lines are content, whatever stands in them."""
    commit, file, number, removed, added = "", "", 0, 0, 0
    with patch.open("rb") as lines:
        for line in lines:
            if removed and line.startswith(b"-"):
                removed -= 1
            elif added and line.startswith(b"+"):
                added -= 1
                yield AddedLine(commit, file, number, line[1:].decode("utf-8", errors="replace").rstrip("\r\n"))
                number += 1
            elif removed or added:
                if not line.startswith(b"\\"):
                    raise CheckBrokenError("the patch of a commit cannot be read")
            elif line.startswith(b"\0"):
                commit = line[1:].strip().decode("ascii", errors="replace")
            elif line.startswith(b"+++ "):
                file = _path(line[4:])
            elif hunk := _HUNK.match(line):
                removed, number, added = int(hunk[1] or 1), int(hunk[2]), int(hunk[3] or 1)
    if removed or added:
        raise CheckBrokenError("the patch of a commit breaks off")


def _path(shown: bytes) -> str:
    """A path as a patch names it: behind `b/`, with unusual names in quotes."""
    shown = shown.rstrip(b"\n").removesuffix(b"\t")
    if shown.startswith(b'"') and shown.endswith(b'"'):
        shown = _ESCAPE.sub(_unescaped, shown[1:-1])
    return shown.removeprefix(b"b/").decode("utf-8", errors="replace")


def _unescaped(match: "re.Match[bytes]") -> bytes:
    code = match[1]
    return bytes([int(code, 8) & 0xFF]) if len(code) > 1 else _ESCAPED.get(code, code)


def _detectors() -> "list[BasePlugin]":
    from detect_secrets.core.plugins.initialize import from_plugin_classname  # noqa: PLC0415  (imports requests)

    try:
        return [from_plugin_classname(name) for name in _DETECTORS]
    except TypeError as error:
        raise CheckBrokenError("this version of detect-secrets has not the detectors that are needed") from error


def _rules(detectors: "list[BasePlugin]", line: AddedLine) -> set[str]:
    """The rules by which a line contains a secret."""
    starts = range(0, max(len(line.text) - _OVERLAP, 1), _LINE - _OVERLAP)
    chunks = [line.text[start : start + _LINE] for start in starts]
    return {
        str(secret.type).lower().replace(" ", "-")
        for chunk in chunks
        for detector in detectors
        for secret in detector.analyze_line(filename=line.file, line=chunk, line_number=line.number)
        if _is_meant(str(secret.type), secret.secret_value or "")
    }


def _is_meant(kind: str, value: str) -> bool:
    """Whether a value is one, and not an example or a reference to one."""
    if value.endswith("EXAMPLE"):
        return False
    if kind not in _GUESSING:
        return True
    from detect_secrets.filters import heuristic  # noqa: PLC0415

    return not (
        len(value) < _SHORTEST
        or any(letter.isspace() for letter in value)
        or _entropy(value) < _ENTROPY
        or not any(letter.isdigit() for letter in value)
        or heuristic.is_templated_secret(value)
        or heuristic.is_prefixed_with_dollar_sign(value)
        or heuristic.is_potential_uuid(value)
        or heuristic.is_sequential_string(value)
        or _REFERENCE.fullmatch(value)
    )


def _entropy(value: str) -> float:
    """Bits per letter."""
    counts = Counter(value).values()
    return -sum(count / len(value) * math.log2(count / len(value)) for count in counts)
