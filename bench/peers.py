"""What other systems publish about themselves, from `peers.json`, with address and day."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

FILE = Path(__file__).parent / "peers.json"
TITLE = "What others publish"
_BEGIN = """\
Figures that others publish about themselves, from copies of their pages on the given day; the copies may be older. They
come from other machines and other work, and cannot be compared with the figures here.
"""


@dataclass(frozen=True)
class Figure:
    """One figure that a system gives about itself."""

    system: str
    measure: str
    """What it measures: the name of a headline, or other text."""
    figure: str
    means: str
    """How they measured it, in our words."""
    address: str
    read: str
    """The day on which it was read."""


@dataclass(frozen=True)
class Silent:
    """A system on whose pages no such figure was found."""

    system: str
    looked: tuple[str, ...]
    """Addresses."""
    read: str


@dataclass(frozen=True)
class Peers:
    figures: tuple[Figure, ...] = ()
    silent: tuple[Silent, ...] = ()
    summary: str = ""
    """A conclusion of one or two sentences."""

    def of(self, measure: str) -> Sequence[Figure]:
        return [each for each in self.figures if each.measure == measure]


def read(file: Path = FILE) -> Peers:
    return msgspec.json.decode(file.read_bytes(), type=Peers)


def section(peers: Peers) -> str:
    lines = [f"## {TITLE}\n", _BEGIN, f"{peers.summary}\n"]
    lines += ["| system | measure | figure | method | read |", "|---|---|---|---|---|"]
    lines += [
        f"| [{each.system}]({each.address}) | {each.measure} | {each.figure} | {each.means} | {each.read} |"
        for each in peers.figures
    ]
    lines += [
        "",
        "We found no such figure on these pages:",
        "",
    ]
    lines += [
        f"- {each.system}: {', '.join(f'[{number}]({address})' for number, address in enumerate(each.looked, 1))}"
        f" ({each.read})"
        for each in peers.silent
    ]
    return "\n".join(lines) + "\n"
