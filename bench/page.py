"""Write docs/numbers.md and the figures in README.md from the ledgers: `python -m bench.page`."""

import re
from collections.abc import Mapping
from pathlib import Path

from bench import headlines, ledgers, peers
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

How often Genba reports *done* falsely, what a crash costs, and the cost of everything else. You can repeat every
measurement: `make bench` measures cost and accuracy, `make chaos` the result of hundreds of crashes, `make soak` a
simulated day. [`docs/measured/`](measured/) has the data with machine, day and commit (`+`: with changes on top).
"""
_RATIOS = """\
Each section below is one measurement. A ratio compares Genba with a minimal alternative, measured alternately in the
same run, so that load affects both. A ratio over its limit fails the command. The code is in `bench/`. The last section
lists [what others publish](#what-others-publish).
"""


def page(found: Mapping[str, Ledger], others: Peers) -> str:
    """The page for these ledgers."""
    sections = [section(found[part]) for part in in_order(found)]
    return "\n".join([_BEGIN, headlines.table(found, others), _RATIOS, *sections, peers.section(others)])


def in_order(found: Mapping[str, Ledger]) -> list[str]:
    return [part for part in ORDER if part in found] + sorted(set(found) - set(ORDER))


def section(ledger: Ledger) -> str:
    """The measurements of one part, with their conditions."""
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
        lines += ["| what | result | limit | | measured |", "|---|---|---|---|---|"]
        lines += [_line(row) for row in ledger.rows]
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
    """README.md with current figures; unchanged without the two marks."""
    made = f"{BEGIN}{headlines.paragraph(found)}{END}"
    return re.sub(f"{re.escape(BEGIN)}.*?{re.escape(END)}", lambda _: made, text, flags=re.DOTALL)


def write(folder: Path = ledgers.FOLDER, target: Path = TARGET, front: Path = README) -> None:
    """Write both pages, if they changed."""
    found = ledgers.read(folder)
    _update(target, page(found, peers.read()))
    _update(front, readme(front.read_text(encoding="utf-8"), found))


def _update(file: Path, text: str) -> None:
    if not file.exists() or file.read_text(encoding="utf-8") != text:
        file.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write()
