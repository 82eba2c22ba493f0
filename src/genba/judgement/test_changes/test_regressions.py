"""What a branch takes from the tests of its base, and how it is described."""

from collections.abc import Iterable

import msgspec

from genba.judgement.verification.paths import shown

_SHOWN = 5


class Loss(msgspec.Struct, frozen=True):
    """Something that a branch takes from the tests, such as: removes, test_empty, tests/test_titles.py."""

    verb: str
    what: str
    path: str

    def __str__(self) -> str:
        return f"{self.verb} {shown(self.what)}"


def described(losses: Iterable[Loss]) -> str:
    """In one line: `removes test_empty, skips test_title (tests/test_titles.py)`."""
    found = list(dict.fromkeys(losses))
    parts = []
    for path in dict.fromkeys(loss.path for loss in found[:_SHOWN]):
        here = ", ".join(str(loss) for loss in found[:_SHOWN] if loss.path == path)
        parts.append(f"{here} ({shown(path)})")
    more = f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
    return "; ".join(parts) + more
