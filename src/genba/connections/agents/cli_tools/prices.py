"""What a model costs, for tools that count tokens and no money."""

from typing import Annotated

import msgspec
from msgspec import Meta

from genba.domain.sessions.replies import Usage

_MILLION = 1_000_000


class Price(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    """US dollars per million tokens."""

    input: Annotated[float, Meta(ge=0)]
    output: Annotated[float, Meta(ge=0)]
    cached_input: (
        Annotated[float, Meta(ge=0, description="Input that comes from the cache; else it costs as input.")] | None
    ) = None

    def of(self, usage: Usage, cached: int) -> Usage:
        """The usage with its cost; the cached tokens are part of its input."""
        again = min(cached, usage.input_tokens)
        rate = self.input if self.cached_input is None else self.cached_input
        cost = (usage.input_tokens - again) * self.input + again * rate + usage.output_tokens * self.output
        return Usage(usage.input_tokens, usage.output_tokens, cost / _MILLION)
