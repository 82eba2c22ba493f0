"""docs/numbers.md, its pictures and the figures in README.md, made of the ledgers. `python -m bench.page` writes them.

Nothing in them is written by hand: the same ledgers give the same page.
"""

import re
from collections.abc import Mapping
from pathlib import Path

from bench import headlines, ledgers, peers, plots
from bench.ledgers import ROOT, Ledger
from bench.measuring import Row
from bench.peers import Peers

TARGET = ROOT / "docs" / "numbers.md"
README = ROOT / "README.md"
BEGIN, END = "<!-- made from docs/measured: begin -->\n", "<!-- made from docs/measured: end -->\n"
ORDER = (
    "truth",
    "real_commits",
    "chaos",
    "soak",
    "run",
    "real_agents",
    "fleet",
    "workers",
    "memory",
    "idle_calls",
    "growth",
)
"""The parts that come first; the others follow by name."""

_BEGIN = """\
# Measured numbers

<!-- Written by `python -m bench.page` from docs/measured/. Change nothing here. -->

How often it says *done* falsely, what a crash costs, and what everything else costs. All of it was measured by commands
that you can run, and is kept in [`docs/measured/`](measured/) with its machine, its day and its commit (`+` behind it:
with changes on top). `make bench` measures what Genba costs and how often it is fooled, `make chaos` what is left after
hundreds of crashes, `make soak` a day of work in minutes.
"""
_RATIOS = """\
There is one section for each measure. Where a line has a ratio, Genba stands beside the bare thing that does the least
of the same, in the same run, the two taking turns, so that a noisy machine disturbs both alike. The ratio is the
measure; seconds only show the size. A ratio over its limit fails the command. How each is measured is in the folder
`bench/`. The last section tells [what others publish](#what-others-publish).
"""


def page(found: Mapping[str, Ledger], others: Peers) -> str:
    """The page for what the ledgers hold."""
    sections = [section(found[part]) for part in in_order(found)]
    return "\n".join([_BEGIN, headlines.table(found, others), _RATIOS, *sections, peers.section(others)])


def in_order(found: Mapping[str, Ledger]) -> list[str]:
    return [part for part in ORDER if part in found] + sorted(set(found) - set(ORDER))


def section(ledger: Ledger) -> str:
    """What one part found, and all that it depends on."""
    when = f"Measured on {ledger.date} by `{ledger.command}`"
    when += f" at commit `{ledger.commit}`" if ledger.commit else ""
    facts = "; ".join(fact if name != "load when it began" else f"load {fact}" for name, fact in _named(ledger.machine))
    title = headlines.title(ledger)
    lines = [f"## {title}\n", f"{when}. {facts}.\n" if facts else f"{when}.\n"]
    if more := ledger.about[len(title) :].lstrip(":. "):
        lines.append(f"{more[0].upper()}{more[1:].rstrip('.')}.\n")
    if notes := ledger.more.get("notes"):
        lines.append(f"{notes}\n")
    if ledger.rows:
        lines += ["| what | found | at most | | measured |", "|---|---|---|---|---|"]
        lines += [_line(row) for row in ledger.rows]
    pictures: Mapping[str, str] = ledger.more.get("pictures", {})
    lines += [f"\n![{alternative}](images/{name})" for name, alternative in pictures.items()]
    return "\n".join(lines) + "\n"


def _named(machine: Mapping[str, str]) -> list[tuple[str, str]]:
    return [
        (name, f"Python {fact.replace(', ', ', git ')}" if name == "Python, git" else fact)
        for name, fact in machine.items()
    ]


def _line(row: Row) -> str:
    verdict = "" if row.limit is None else ("holds" if row.holds else "**does not hold**")
    return headlines.line(row.what, row.found, row.most, verdict, row.figure)


def readme(text: str, found: Mapping[str, Ledger]) -> str:
    """README.md with its figures as the ledgers have them now. Without the two marks it stays as it is."""
    made = f"{BEGIN}{headlines.paragraph(found)}{END}"
    return re.sub(f"{re.escape(BEGIN)}.*?{re.escape(END)}", lambda _: made, text, flags=re.DOTALL)


def write(folder: Path = ledgers.FOLDER, target: Path = TARGET, front: Path = README) -> None:
    """Both pages anew, and the pictures. What is right already is not touched."""
    found = ledgers.read(folder)
    plots.write(folder, target.parent / "images")
    _renew(target, page(found, peers.read()))
    _renew(front, readme(front.read_text(encoding="utf-8"), found))


def _renew(file: Path, text: str) -> None:
    if not file.exists() or file.read_text(encoding="utf-8") != text:
        file.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write()
