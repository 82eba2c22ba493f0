"""Text of others on a page: it is text and nothing else, but for addresses of the web, which can be followed."""

import re

from markupsafe import Markup, escape

_ADDRESS = re.compile(r"https?://[^\s<>\"'`\\^{|}]{1,2000}")
_TRAILING = ".,;:!?)]*_~"


def linked(text: str) -> Markup:
    """The text, escaped, with its addresses as links; only http and https ones."""
    parts: list[Markup] = []
    at = 0
    for found in _ADDRESS.finditer(text):
        address = found.group().rstrip(_TRAILING)
        parts.append(escape(text[at : found.start()]))
        parts.append(Markup('<a href="{0}" rel="noopener noreferrer nofollow">{0}</a>').format(address))
        at = found.start() + len(address)
    parts.append(escape(text[at:]))
    return Markup("").join(parts)


def is_web_address(address: str) -> bool:
    """Whether an address may be the target of a link."""
    return _ADDRESS.fullmatch(address) is not None
