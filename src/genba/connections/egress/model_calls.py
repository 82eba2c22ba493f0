"""Which requests are calls of a model: the only ones that the broker adds a key to.

A key opens more than a model: files, batches, fine-tuning, stored answers, the settings of an organization. A session
needs none of that, so what is not in these tables is refused. More can be named by the user alone, in
`GENBA_MODEL_CALLS`; no file of a repository adds one.
"""

import re
from collections.abc import Mapping

import msgspec

from genba.domain.errors import ConfigurationError
from genba.domain.problems import Problem

VARIABLE = "GENBA_MODEL_CALLS"
_VERSION = r"/(?:v1(?:alpha|beta)?/)?"
_NAME = r"[A-Za-z0-9][A-Za-z0-9._@-]*"
_LISTS = (("GET", "models"), ("GET", f"models/{_NAME}"))
_ANTHROPIC = (("POST", "messages"), ("POST", "messages/count_tokens"), *_LISTS)
_OPENAI = (
    *(("POST", path) for path in ("responses", "responses/compact", "responses/input_tokens")),
    *(("POST", path) for path in ("chat/completions", "completions", "embeddings")),
    *_LISTS,
)
_GOOGLE = (("POST", f"models/{_NAME}:(?:generateContent|streamGenerateContent|countTokens|embedContent)"), *_LISTS)
_BY_PROVIDER = {"anthropic": _ANTHROPIC, "openai": _OPENAI, "openrouter": _OPENAI, "google": _GOOGLE}
_ADDED = re.compile(r"(GET|POST) (/[A-Za-z0-9._~/-]+)")


class ModelCalls(msgspec.Struct, frozen=True):
    """What one session may ask its provider for."""

    patterns: tuple[tuple[str, str], ...]
    added: frozenset[tuple[str, str]] = frozenset()

    def allow(self, method: str, path: str) -> bool:
        """Whether a request is a call of a model. The path is as it was sent, without its query: nothing is decoded."""
        asked = "GET" if method == "HEAD" else method
        known = any(asked == wanted and re.fullmatch(_VERSION + call, path) for wanted, call in self.patterns)
        return known or (asked, path) in self.added


def calls_of(provider: str, environment: Mapping[str, str]) -> ModelCalls:
    """The calls of a provider; one with a name of its own speaks one of the known dialects."""
    every = tuple(dict.fromkeys((*_ANTHROPIC, *_OPENAI, *_GOOGLE)))
    added = [call.strip() for call in environment.get(VARIABLE, "").split(",") if call.strip()]
    read = [_ADDED.fullmatch(call) for call in added]
    wrong = [call for call, match in zip(added, read, strict=True) if match is None or "/." in call or "//" in call]
    if wrong:
        message = f'"{wrong[0][:80]}" is not a method and a path, such as POST /v1/rerank'
        raise ConfigurationError((Problem("", VARIABLE, message),), hint=f"unset {VARIABLE}")
    named = frozenset((match[1], match[2]) for match in read if match is not None)
    return ModelCalls(_BY_PROVIDER.get(provider, every), named)
