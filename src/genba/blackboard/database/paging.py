"""One page of a list that only grows."""

import msgspec

_NO_END = 2**62


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """`after`: the id of the last one that was seen, or how many lines were, where lines have no id."""

    after: int = 0
    limit: int = _NO_END


WHOLE = Page()
