"""Opening a blackboard: fresh, up to date, older, newer, not ours, not a database, locked, full."""

import fcntl
import logging
import os
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.command import upgrade
from alembic.config import Config
from alembic.migration import MigrationContext
from sqlalchemy import Engine, create_engine, event, inspect, make_url

from genba.blackboard.database.connect import migrate
from genba.blackboard.database.schema import HEAD, metadata
from genba.blackboard.database.store import Statement, Transaction
from genba.blackboard.tasks.board import Blackboard
from genba.domain.errors import ConfigurationError, DiskFullError, GenbaError, StateConflictError
from genba.domain.tasks.task import TaskDraft, TaskEdit
from tests.blackboard.acting import HUMAN, add, everything
from tests.blackboard.conftest import Postgres


def engine_at(address: str) -> Engine:
    if "://" in address:
        return create_engine(make_url(address).set(drivername="postgresql+psycopg"))
    return create_engine(f"sqlite:///{address}")


def prepare(address: str, *statements: str) -> None:
    engine = engine_at(address)
    with engine.begin() as connection:
        for statement in statements:
            connection.exec_driver_sql(statement)
    engine.dispose()


def picture(address: str) -> dict[str, Any]:
    """Everything that the database says about its tables."""
    engine = engine_at(address)
    seen = inspect(engine)
    found = {
        name: {
            "columns": [{**column, "type": str(column["type"])} for column in seen.get_columns(name)],
            "primary key": seen.get_pk_constraint(name),
            "foreign keys": sorted(seen.get_foreign_keys(name), key=str),
            "unique": sorted(seen.get_unique_constraints(name), key=str),
            "checks": sorted(seen.get_check_constraints(name), key=str),
            "indexes": sorted(
                (
                    {**index, "dialect_options": {key: str(value) for key, value in index["dialect_options"].items()}}
                    for index in seen.get_indexes(name)
                ),
                key=str,
            ),
        }
        for name in seen.get_table_names()
    }
    engine.dispose()
    return found


def upgrade_with_alembic(address: str) -> None:
    """Create the tables by running all migrations, as a future release will upgrade an older database."""
    config = Config()
    config.set_main_option("script_location", "genba.blackboard:migrations")
    config.set_main_option("path_separator", "os")
    engine = engine_at(address)
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        upgrade(config, "head")
    engine.dispose()


def test_a_migrated_database_equals_a_fresh_one(address: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    other = str(tmp_path / "migrated.db")
    if "://" in address:
        server: Postgres = request.getfixturevalue("postgres")
        other = server.database()
    upgrade_with_alembic(other)
    assert migrate(address) == ("", HEAD)
    assert migrate(address) == (HEAD, HEAD)
    with Blackboard.open(other, "migrated") as board:
        add(board)

    fresh, migrated = picture(address), picture(other)
    assert set(fresh) == set(metadata.tables)
    assert fresh["tasks"]["checks"]
    assert migrated == fresh


def test_alembic_finds_nothing_to_add_to_the_migrations(address: str) -> None:
    upgrade_with_alembic(address)
    engine = engine_at(address)
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True, "compare_server_default": True})
        differences = compare_metadata(context, metadata)
    engine.dispose()

    assert differences == []


def test_opening_a_database_does_not_import_alembic(tmp_path: Path, environment: dict[str, str]) -> None:
    line = (
        "import sys; from genba.blackboard.tasks.board import Blackboard;"
        "Blackboard.open(sys.argv[1], 'x').close(); sys.exit('alembic' in sys.modules)"
    )
    for _ in range(2):
        done = subprocess.run([sys.executable, "-c", line, str(tmp_path / "b.db")], env=environment, check=False)
        assert done.returncode == 0


def test_a_plain_run_does_not_load_the_database(environment: dict[str, str]) -> None:
    line = "import genba.entrypoints.cli.work.run_command, sys; sys.exit('sqlalchemy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", line], env=environment, check=False).returncode == 0


def test_a_database_of_a_newer_genba_is_refused_and_left_alone(address: str) -> None:
    Blackboard.open(address, "x").close()
    prepare(address, "UPDATE alembic_version SET version_num = '0999'")
    before = picture(address)
    with pytest.raises(StateConflictError, match="newer Genba: its tables are at revision 0999") as caught:
        Blackboard.open(address, "x")
    assert caught.value.hint == "pip install --upgrade genba"
    assert picture(address) == before


@pytest.mark.parametrize("revision", ["0001", "0010", ""])
def test_a_database_of_an_older_genba_is_refused_and_left_alone(address: str, revision: str) -> None:
    Blackboard.open(address, "x").close()
    prepare(
        address,
        "DELETE FROM alembic_version",
        f"INSERT INTO alembic_version SELECT '{revision}' WHERE '{revision}' <> ''",
    )
    before = picture(address)
    for act in (lambda: Blackboard.open(address, "x"), lambda: migrate(address)):
        with pytest.raises(StateConflictError) as caught:
            act()
        assert f"older Genba: its tables are at revision {revision or 'none'}" in caught.value.message
        assert "There is no release yet" in caught.value.unchanged
        on_server = "://" in address
        assert caught.value.hint == (
            "start with a new database: name another one in GENBA_DATABASE_URL"
            if on_server
            else f"start with a new database: mv {address} {address}.old"
        )
    assert picture(address) == before


def test_tables_that_are_not_ours_are_refused_and_others_may_live_beside_ours(address: str) -> None:
    prepare(address, "CREATE TABLE neighbours (id INTEGER)")
    Blackboard.open(address, "x").close()
    prepare(address, "DELETE FROM alembic_version", "DROP TABLE alembic_version")
    with pytest.raises(StateConflictError, match="a table tasks that is not Genba's"):
        Blackboard.open(address, "x")


def test_what_was_written_is_there_after_opening_again(address: str) -> None:
    with Blackboard.open(address, "x") as board:
        add(board, "Kept")
        before = everything(board)
    with Blackboard.open(address, "x") as board:
        assert everything(board) == before
        assert add(board) == 2


def test_only_the_owner_can_read_the_file(tmp_path: Path) -> None:
    path = tmp_path / "new folder" / "board.db"
    with Blackboard.open(str(path), "x") as board:
        add(board)
        modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
    assert modes == {"board.db": 0o600, "board.db-wal": 0o600, "board.db-shm": 0o600}


def test_the_file_is_in_wal_mode_with_foreign_keys(tmp_path: Path) -> None:
    with Blackboard.open(f"sqlite:///{tmp_path}/board.db", "x") as board:
        connection = board.store.engine.raw_connection()
        cursor = connection.cursor()
        found = {}
        for name in ("journal_mode", "synchronous", "foreign_keys", "busy_timeout"):
            cursor.execute(f"PRAGMA {name}")
            found[name] = cursor.fetchone()
        connection.close()
    assert found == {"journal_mode": ("wal",), "synchronous": (1,), "foreign_keys": (1,), "busy_timeout": (30000,)}


def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("Dear diary, " * 200)
    with pytest.raises(StateConflictError, match="not an SQLite database"):
        Blackboard.open(str(path), "x")
    assert path.read_text() == "Dear diary, " * 200


def test_a_place_where_nothing_can_be_made_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "folder").mkdir()
    for place in (tmp_path / "file" / "board.db", tmp_path / "folder"):
        with pytest.raises(StateConflictError) as caught:
            Blackboard.open(str(place), "x")
        assert str(tmp_path) in caught.value.message
        assert caught.value.hint


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(StateConflictError, match="cannot be made"):
        Blackboard.open(str(tmp_path / "board.db"), "x")
    tmp_path.chmod(0o700)


@pytest.mark.parametrize(
    "bad",
    [
        "",
        ":memory:",
        "sqlite://",
        "sqlite:///:memory:",
        "mysql://u:secret@h/d",
        "http://x",
        "postgresql://host:port/x",
        "a\0b",
    ],
)
def test_an_address_that_is_none_is_refused_and_tells_no_password(bad: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        Blackboard.open(bad, "x")
    assert "secret" not in caught.value.message


def test_a_server_that_is_not_there_is_reported_without_the_password(tmp_path: Path) -> None:
    with pytest.raises(StateConflictError, match="cannot be reached") as caught:
        Blackboard.open(f"postgresql://ada:secret@/x?host={tmp_path}", "x")
    assert "secret" not in caught.value.message


def test_without_its_driver_postgresql_says_what_to_install(tmp_path: Path, environment: dict[str, str]) -> None:
    (tmp_path / "psycopg.py").write_text("raise ImportError('not installed')\n")
    line = (
        "from genba.blackboard.tasks.board import Blackboard\n"
        "from genba.domain.errors import ConfigurationError\n"
        "try:\n    Blackboard.open('postgresql://localhost/x', 'x')\n"
        "except ConfigurationError as error:\n    print(error.hint)\n"
    )
    path = f"{tmp_path}{os.pathsep}{environment['PYTHONPATH']}"
    done = subprocess.run(
        [sys.executable, "-c", line],
        env={**environment, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "pip install 'genba[postgres]'\n"


def test_a_locked_file_is_reported_and_nothing_changes(tmp_path: Path) -> None:
    path = str(tmp_path / "board.db")
    with Blackboard.open(path, "x", busy_seconds=0.05) as board:
        number = add(board)
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        before = board.get(number)
        with pytest.raises(StateConflictError, match="locked") as caught:
            board.edit(number, TaskEdit(title="New"), HUMAN)
        assert path in caught.value.hint
        Blackboard.open(path, "x", busy_seconds=0.05).close()
        other.execute("ROLLBACK")
        other.close()
        assert board.get(number) == before
        assert board.edit(number, TaskEdit(title="New"), HUMAN).title == "New"


def test_a_locked_row_is_reported_and_nothing_changes(postgres: Postgres) -> None:
    address = postgres.database()
    with Blackboard.open(address, "x", busy_seconds=0.05) as board:
        number = add(board)
        engine = engine_at(address)
        with engine.connect() as other:
            other.exec_driver_sql("SELECT * FROM tasks FOR UPDATE")
            with pytest.raises(StateConflictError, match="locked"):
                board.edit(number, TaskEdit(title="New"), HUMAN)
        engine.dispose()
        assert board.get(number).version == 1


def test_a_full_disk_is_reported_as_what_it_is(tmp_path: Path) -> None:
    with Blackboard.open(str(tmp_path / "board.db"), "x") as board:
        number = add(board)
        board.store.engine.dispose()

        @event.listens_for(board.store.engine, "connect")
        def _no_more_pages(connection: sqlite3.Connection, _record: object) -> None:
            connection.execute("PRAGMA max_page_count = 1")

        before = everything(board)
        with pytest.raises(DiskFullError, match="the disk is full"):
            board.add(TaskDraft(title="Big", body="x" * 1_000_000), HUMAN)
        assert everything(board) == before
        assert board.get(number).version == 1


def test_a_connection_that_was_lost_is_made_again(postgres: Postgres) -> None:
    address = postgres.database()
    with Blackboard.open(address, "x") as board:
        number = add(board)
        for title in ("once", "twice"):
            name = make_url(address).database
            postgres.run(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'")
            assert board.edit(number, TaskEdit(title=title), HUMAN).title == title
        assert board.get(number).version == 3


@pytest.mark.parametrize("how", ["write", "write_with"])
def test_a_connection_lost_in_the_middle_of_many_rows_is_reopened_without_a_trace_for_users(
    postgres: Postgres, caplog: pytest.LogCaptureFixture, how: str
) -> None:
    cut = Statement("SELECT pg_terminate_backend(pg_backend_pid()), :number")
    times = 0

    def work(tx: Transaction, *_connection: object) -> str:
        nonlocal times
        times += 1
        if times == 1:
            tx.do_each(cut, [{"number": number} for number in range(2000)])
        return "done"

    with Blackboard.open(postgres.database(), "x") as board:
        done = board.store.write(work) if how == "write" else board.store.write_with(work)

    assert (done, times) == ("done", 2)
    assert [record.getMessage() for record in caplog.records if record.levelno >= logging.ERROR] == []


@pytest.mark.parametrize("how", ["write", "write_with"])
def test_all_connections_that_were_cut_at_once_cost_one_attempt(postgres: Postgres, how: str) -> None:
    address = postgres.database()
    times = 0

    def work(tx: Transaction, *_connection: object) -> str:
        nonlocal times
        times += 1
        tx.one(Statement("SELECT 1 AS number"))
        return "done"

    with Blackboard.open(address, "x") as board:
        with board.store.engine.connect(), board.store.engine.connect(), board.store.engine.connect():
            pass  # three that wait for their next use
        name = make_url(address).database
        postgres.run(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'")
        done = board.store.write(work) if how == "write" else board.store.write_with(work)

    assert (done, times) == ("done", 2)


def test_a_project_has_a_name(tmp_path: Path) -> None:
    with pytest.raises(GenbaError):
        Blackboard.open(str(tmp_path / "b.db"), " ")


def test_an_executor_may_open_a_file_that_is_fresh_or_up_to_date(tmp_path: Path) -> None:
    path = str(tmp_path / "board.db")
    with Path(f"{path}.executor.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for _ in range(2):
            Blackboard.open(path, "x").close()
