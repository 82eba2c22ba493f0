"""The rights in the database that the page of privileges tells are enough, and there are no more of them."""

import re
from pathlib import Path

import psycopg
import pytest

from genba.domain.tasks.task import TaskStatus
from tests.blackboard.conftest import Postgres, postgres  # noqa: F401  (a fixture)
from tests.fleet.yard import Yard
from tests.project import Project

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "privileges.md"


def statements(part: str) -> list[str]:
    """The SQL of a part of the page."""
    found = re.search(rf"^-- {part}\n(.*?)(?=^-- |^```)", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    assert found, part
    return [line for line in found.group(1).splitlines() if line.strip()]


def carry_out(address: str, lines: list[str], database: str) -> None:
    with psycopg.connect(address, autocommit=True) as connection:
        for line in lines:
            connection.execute(line.replace("'PASSWORD'", "'x'").replace(" shop", f" {database}").encode())


def test_the_tables_are_made_by_one_role_and_a_fleet_works_with_less(
    project: Project,
    postgres: Postgres,  # noqa: F811  (the fixture)
) -> None:
    address = postgres.database()
    database = re.search(r"/(board_\d+)\?", address)
    assert database
    carry_out(address, statements("once, as the administrator of the server"), database[1])
    owner, worker = (address.replace("postgres:@", f"{role}:x@") for role in ("genba_owner", "genba_worker"))

    project.genba("migrate", check=0, GENBA_DATABASE_URL=owner)
    carry_out(owner, statements("once, as genba_owner, after `genba migrate`"), database[1])
    with Yard(project, worker) as yard:
        yard.agent()
        yard.set()
        yard.genba("task", "add", "Task 1")
        yard.work()
        assert yard.statuses() == {1: TaskStatus.DONE}

    with psycopg.connect(worker, autocommit=True) as connection:
        for forbidden in ("CREATE TABLE mine (x int)", "DROP TABLE tasks", "CREATE SCHEMA mine", "CREATE ROLE mine"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(forbidden)
