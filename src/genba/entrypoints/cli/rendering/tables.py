"""Plain tables: columns that line up, nothing that needs a terminal."""

from collections.abc import Iterable, Sequence

from genba.entrypoints.cli.rendering.printable import in_one_line


def table(rows: Iterable[Sequence[str]], gap: str = "  ") -> list[str]:
    """Rows as lines with aligned columns; the last column is left as long as it is."""
    kept = [tuple(in_one_line(cell) for cell in row) for row in rows]
    if not kept:
        return []
    widths = [max(len(row[at]) for row in kept) for at in range(len(kept[0]) - 1)]
    return [
        gap.join([*(cell.ljust(width) for cell, width in zip(row[:-1], widths, strict=True)), row[-1]]).rstrip()
        for row in kept
    ]
