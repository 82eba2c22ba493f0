"""What a scanner found: where, and by which rule. Never what."""

from collections import Counter
from collections.abc import Iterable, Mapping

import msgspec

_ABBREVIATED = 7


class Finding(msgspec.Struct, frozen=True, order=True):
    file: str
    line: int
    rule: str
    commit: str

    def __str__(self) -> str:
        file = "".join(letter if letter.isprintable() else "?" for letter in self.file)
        return f"{self.rule} in {file}:{self.line} (commit {self.commit[:_ABBREVIATED]})"


Findings = list[Finding]


def introduced(found: Iterable[Finding], parents: Mapping[str, int]) -> Findings:
    """Every finding once, in the order of the commits' files. A merge is shown against each parent, so that a line that
    one of them had already is found less often than there are parents: it was scanned there, or is in the base.
    """
    counted = Counter(found)
    return sorted(each for each, times in counted.items() if times >= parents.get(each.commit, 1))
