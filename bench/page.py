"""docs/numbers.md: what was measured, where, when, and by which command. Nothing in it is written by hand."""

import os
import platform
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.measuring import Row

TARGET = Path(__file__).parent.parent / "docs" / "numbers.md"
_BEGIN = """\
# Measured numbers

<!-- Written by `make bench`. Run it again to change it. -->

Every line is a ratio: Genba beside the bare thing that does the least of the same, in the same run, the two taking
turns, so that a noisy machine disturbs both alike. The ratio is the measure; seconds only show the size. A ratio over
its limit fails `make bench`. How each is measured is in the folder `bench/`.
"""
_NOTHING = "Nothing was measured for this page yet. `make bench` measures everything, and writes it."


def page(measured: Mapping[str, Sequence[Row]], facts: Mapping[str, str]) -> str:
    """The page for what was measured, by the sentence that says what each part is about."""
    if not measured:
        return f"{_BEGIN}\n{_NOTHING}\n"
    parts = [_BEGIN, "| | |\n|---|---|\n" + "\n".join(f"| {name} | {fact} |" for name, fact in facts.items()) + "\n"]
    for about, rows in measured.items():
        lines = [f"## {about}\n", "| what | ratio | at most | | measured |", "|---|---|---|---|---|"]
        lines += [_line(row) for row in rows]
        parts.append("\n".join(lines) + "\n")
    return "\n".join(parts)


def _line(row: Row) -> str:
    ratio = f"{row.ratio:.2f}×" if row.ratio is not None else ""
    limit = f"{row.limit:g}×" if row.limit is not None else ""
    verdict = "" if row.limit is None else ("holds" if row.holds else "**too slow**")
    cells = (row.what, ratio, limit, verdict, row.figure)
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def machine(command: str) -> dict[str, str]:
    """What the numbers depend on. No name of a machine or of a person."""
    git = subprocess.run(["git", "--version"], check=True, capture_output=True, text=True).stdout.split()[2]
    return {
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "command": f"`{command}`",
        "processor": f"{_processor()}, {os.cpu_count()} of them",
        "memory": _memory(),
        "system": f"{platform.system()} {platform.release().partition('-')[0]}",
        "Python, git": f"{platform.python_version()}, {git}",
        "load when it began": f"{os.getloadavg()[0]:.1f}",
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.machine()


def _memory() -> str:
    size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return f"{size / 2**30:.0f} GiB"
