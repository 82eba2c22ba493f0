"""What other systems publish about themselves, kept in `peers.json`: facts in our words, with address and day."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

FILE = Path(__file__).parent / "peers.json"
TITLE = "What others publish"
_BEGIN = """\
Figures that others give about themselves, as their pages stood in stored copies on the day of reading; the copies may
be older than that day. They were measured on other machines and other work, so they are no ratio to anything here.
"""


@dataclass(frozen=True)
class Figure:
    """One figure that a system gives about itself."""

    system: str
    measure: str
    """What it is a figure of: the name of a headline, or words of its own."""
    figure: str
    means: str
    """How they got it, in our words."""
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
    said: str = ""
    """What follows from both, in a sentence or two."""

    def of(self, measure: str) -> Sequence[Figure]:
        return [each for each in self.figures if each.measure == measure]


def read(file: Path = FILE) -> Peers:
    return msgspec.json.decode(file.read_bytes(), type=Peers)


def section(peers: Peers) -> str:
    lines = [f"## {TITLE}\n", _BEGIN, f"{peers.said}\n"]
    lines += ["| system | of what | figure | how they got it | read |", "|---|---|---|---|---|"]
    lines += [
        f"| [{each.system}]({each.address}) | {each.measure} | {each.figure} | {each.means} | {each.read} |"
        for each in peers.figures
    ]
    lines += [
        "",
        "No figure of this kind was found on the pages that were looked at, which is not to say that there is none:",
        "",
    ]
    lines += [
        f"- {each.system}: {', '.join(f'[{number}]({address})' for number, address in enumerate(each.looked, 1))}"
        f" ({each.read})"
        for each in peers.silent
    ]
    return "\n".join(lines) + "\n"
