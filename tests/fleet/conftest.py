"""A project with a fleet at work on it: real processes, real git, on SQLite and on PostgreSQL."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.blackboard.conftest import Postgres, postgres  # noqa: F401  (a fixture)
from tests.fleet.yard import Yard
from tests.project import Project


@pytest.fixture(params=["sqlite", "postgres"])
def yard(request: pytest.FixtureRequest, project: Project) -> Iterator[Yard]:
    """A yard on each database."""
    address = ""
    if request.param == "postgres":
        server: Postgres = request.getfixturevalue("postgres")
        address = server.furnished(engine=True)
    with Yard(project, address) as made:
        yield made


@pytest.fixture
def small_yard(project: Project, tmp_path: Path) -> Iterator[Yard]:
    """A yard on SQLite alone, for what has nothing to do with the database."""
    with Yard(project, "") as made:
        yield made


@pytest.fixture
def server_yard(project: Project, postgres: Postgres) -> Iterator[Yard]:  # noqa: F811  (the fixture)
    """A yard on PostgreSQL alone, for what takes several executors."""
    with Yard(project, postgres.furnished(engine=True)) as made:
        yield made
