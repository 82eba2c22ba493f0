"""An issue of a tracker, and a change to one."""

import msgspec

FIRST_OWN_NUMBER = 1_000_001
"""Where the issues live elsewhere, Genba's own tasks have numbers from here on: no issue has one of them."""


class Issue(msgspec.Struct, frozen=True, kw_only=True):
    number: int
    title: str
    body: str = ""
    state: str = "open"
    labels: tuple[str, ...] = ()

    @property
    def closed(self) -> bool:
        return self.state == "closed"


class IssueChange(msgspec.Struct, frozen=True, kw_only=True):
    """A change that is safe to repeat: labels are sets, closing is a state."""

    add_labels: tuple[str, ...] = ()
    remove_labels: tuple[str, ...] = ()
    close: bool = False
    comment: str = ""

    @property
    def empty(self) -> bool:
        return not (self.add_labels or self.remove_labels or self.close or self.comment)
