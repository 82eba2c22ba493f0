"""Count database lock errors in everything that a fleet printed and stored."""

import base64
import binascii
import re
from pathlib import Path

from sqlalchemy import MetaData, inspect, select

from bench.fleet_ground import Ground
from genba.blackboard.database.store import Store

WORDS = re.compile(
    r"database (?:table )?is locked|SQLITE_BUSY|deadlock detected|could not serialize|lock timeout"
    r"|too many (?:clients|connections)|remaining connection slots|QueuePool limit",
    re.IGNORECASE,
)
"""How SQLite, PostgreSQL and the connection pool report lock errors."""
_ENCODED = re.compile(r"[A-Za-z0-9+/]{40,}={0,2}")


def errors_in(text: str) -> int:
    """Also where an error was put away in another alphabet, as the engine does."""
    return sum(1 for _ in WORDS.finditer(text)) + sum(
        1 for found in _ENCODED.finditer(text) for _ in WORDS.finditer(_plain(found.group()))
    )


def errors_of(ground: Ground, output: str) -> int:
    """Lock errors in the output, the database and the files of the fleet."""
    with ground.board() as board:
        kept = rows_of(board.store)
    return errors_in(output) + errors_in(kept) + sum(map(errors_in, _files(ground.root)))


def rows_of(store: Store) -> str:
    """Every row of every table, those of the engine among them, as text."""
    lines = []
    known = inspect(store.engine)
    for schema in known.get_schema_names() if store.on_postgres else [None]:
        if schema is not None and (schema.startswith("pg_") or schema == "information_schema"):
            continue
        tables = MetaData(schema=schema)
        tables.reflect(store.engine)
        with store.engine.connect() as connection:
            for table in tables.tables.values():
                lines += [str(tuple(row)) for row in connection.execute(select(table))]
    return "\n".join(lines)


def _files(root: Path) -> list[str]:
    places = (root / ".git" / "genba", root / ".genba")
    files = [path for place in places for path in place.rglob("*") if path.is_file() and path.suffix in _WRITTEN]
    return [path.read_text("utf-8", "replace") for path in files]


_WRITTEN = (".jsonl", ".json", ".log", ".txt")


def _plain(encoded: str) -> str:
    try:
        return base64.b64decode(encoded + "=" * (-len(encoded) % 4)).decode("utf-8", "replace")
    except (binascii.Error, ValueError):
        return ""
