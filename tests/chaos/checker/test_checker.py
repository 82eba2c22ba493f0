"""Where nothing is wrong the checker finds nothing; what is made wrong it finds by the law that it breaks."""

import ast
import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import psycopg
import pytest

from tests.blackboard.conftest import Postgres, postgres  # noqa: F401  (a fixture)
from tests.chaos.checker import Finding, Law, check
from tests.chaos.checker.field import small_plan, work
from tests.chaos.checker.forgeries import FORGERIES
from tests.chaos.checker.forging import Forged
from tests.chaos.checker.history import WAYS
from tests.chaos.plan import Kind, Part, Plan
from tests.fleet.yard import Yard
from tests.project import Project

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
DOCS = ROOT / "docs" / "reference"
CHECKER_PAGE = ROOT / "docs" / "contributing" / "chaos-checker.md"
NOT_ITS_OWN = ("field.py", "forging.py", "forgeries.py", "test_checker.py")
"""What it is tried with."""
MAY_IMPORT = {*sys.stdlib_module_names, "msgspec", "psycopg"}
PLAN = small_plan()


@pytest.fixture(scope="session")
def worked(tmp_path_factory: pytest.TempPathFactory, beginning: Path) -> Path:
    """A field that a fleet has really worked on, one for all processes of pytest."""
    base = tmp_path_factory.getbasetemp()
    place = (base.parent if os.environ.get("PYTEST_XDIST_WORKER") else base) / "worked-field"
    with place.with_suffix(".making").open("w") as mutex:
        fcntl.flock(mutex, fcntl.LOCK_EX)
        if not (place / "ready").exists():
            place.mkdir()
            with Yard(begun(place, beginning)) as yard:
                work(yard, PLAN)
            (place / "ready").touch()
    return place


def begun(home: Path, beginning: Path) -> Project:
    subprocess.run(["cp", "-a", str(beginning), str(home / "repository")], check=True)
    return Project(home / "repository", {"HOME": str(home), "GIT_CONFIG_NOSYSTEM": "1"})


@pytest.fixture
def forged(worked: Path, tmp_path: Path) -> Iterator[Forged]:
    yield Forged(worked, tmp_path / "field", PLAN)
    shutil.rmtree(tmp_path / "field")


def test_nothing_is_found_where_nothing_is_wrong(worked: Path) -> None:
    repository = worked / "repository"

    found = check(repository, str(repository / ".genba" / "genba.db"), PLAN, worked, patience=60)

    assert found == []
    assert not list(repository.glob(".genba/genba.db-*")), "the checker leaves nothing either"


@pytest.mark.parametrize(
    ("forge", "laws"), [(each.make, each.laws) for each in FORGERIES], ids=[each.name for each in FORGERIES]
)
def test_what_is_wrong_is_found_by_the_law_it_breaks(
    forged: Forged, forge: Callable[[Forged], None], laws: frozenset[Law]
) -> None:
    forge(forged)

    found = forged.check()

    assert {finding.law for finding in found} == laws, found


def test_each_law_was_broken_alone() -> None:
    alone = {next(iter(each.laws)) for each in FORGERIES if len(each.laws) == 1}

    assert alone == set(Law)
    assert len({each.name for each in FORGERIES}) >= 40


def test_times_that_jump_are_nothing_wrong(forged: Forged) -> None:
    forged.sql("UPDATE events SET created_at = '1999-01-01T00:00:00.000000Z' WHERE id % 3 = 0")
    forged.sql("UPDATE tasks SET updated_at = '2099-01-01T00:00:00.000000Z' WHERE number % 2 = 0")
    forged.sql("UPDATE sessions SET ended_at = '1970-01-01T00:00:00.000000Z' WHERE id % 2 = 0")

    assert forged.check() == []


def test_the_checker_imports_nothing_of_the_product() -> None:
    own = [path for path in HERE.glob("*.py") if path.name not in NOT_ITS_OWN]
    named = {f"tests.chaos.checker.{path.stem}" for path in own} | {"tests.chaos.checker", "tests.chaos.plan"}
    for path in (*own, HERE.parent / "plan.py"):
        for module in imported(path):
            assert module in named or module.partition(".")[0] in MAY_IMPORT, f"{path.name} imports {module}"
    words = (
        "import sys, tests.chaos.checker.__main__; print([name for name in sys.modules if name.startswith('genba')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", words], cwd=HERE.parents[2], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


def test_what_may_happen_to_a_task_is_what_the_reference_says() -> None:
    lines = (DOCS / "statuses.md").read_text("utf-8").partition("<!-- rules -->")[2].partition("<!-- /rules -->")[0]
    cells = [[cell.strip().replace("`", "") for cell in line.split("|")[1:-1]] for line in lines.splitlines() if line]
    values = {(start, to): set(who.split(", ")) for start, to, who, _ in cells[2:]}

    assert {way: set(who.split()) for way, who in WAYS.items()} == values


def test_each_law_stands_in_the_reference() -> None:
    lines = CHECKER_PAGE.read_text("utf-8").partition("<!-- rules -->")[2].splitlines()
    messages = [line.split("|")[1].strip(" `") for line in lines if line.startswith("| `")]

    assert messages == list(Law)


def imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0
            yield node.module or ""


def test_the_command_prints_what_is_wrong_and_ends_with_one(forged: Forged) -> None:
    forged.sql("UPDATE tasks SET held = 1 WHERE number = 3")
    plan = forged.home / "plan.json"
    plan.write_bytes(msgspec.json.encode(PLAN))
    where = [str(forged.repository), "--database", str(forged.database), "--home", str(forged.home)]

    done = subprocess.run(
        [sys.executable, "-m", "tests.chaos.checker", *where, "--plan", str(plan), "--json"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 1, done.stderr
    assert msgspec.json.decode(done.stdout) == [{"law": "nothing left", "what": "#3 is held"}]


def test_on_a_server_the_same_laws_hold_and_open_connections_are_found(
    tmp_path: Path,
    beginning: Path,
    postgres: Postgres,  # noqa: F811  (the fixture)
) -> None:
    kinds = (Kind.HONEST, Kind.HONEST, Kind.DOOMED)
    plan = Plan(seed=0, parts=tuple(Part(number, kind, 0) for number, kind in enumerate(kinds, 1)))
    address = postgres.furnished(engine=True)
    with Yard(begun(tmp_path, beginning), address) as yard:
        work(yard, plan)
    assert found_on(address, plan, tmp_path) == []

    wrongs = {
        "UPDATE tasks SET version = version + 1 WHERE number = 1": {Law.HISTORY},
        "UPDATE escalations SET status = 'withdrawn'": {Law.RIGHT_END},
        "UPDATE sessions SET part = part + 1 WHERE outcome = 'completed'": {Law.SESSIONS},
        "DELETE FROM events WHERE kind = 'merge_settled'": {Law.QUEUE},
        "UPDATE dbos.workflow_status SET status = 'PENDING'": {Law.NOTHING_LEFT},
        "UPDATE merge_entries SET landed = '' WHERE id = (SELECT min(id) FROM merge_entries)": {
            Law.MERGED_ONCE,
            Law.QUEUE,
        },
    }
    name = psycopg.conninfo.conninfo_to_dict(address)["dbname"]
    for number, (statement, laws) in enumerate(wrongs.items()):
        postgres.run(f"CREATE DATABASE forged_{number} TEMPLATE {name} STRATEGY file_copy")
        forged = address.replace(f"/{name}?", f"/forged_{number}?")
        with psycopg.connect(forged, autocommit=True) as connection:
            connection.execute(statement.encode())
        assert {finding.law for finding in found_on(forged, plan, tmp_path)} == laws, statement
    with psycopg.connect(address) as connection:
        connection.execute("SELECT pg_advisory_lock(7)")
        left = found_on(address, plan, tmp_path, patience=0)
    assert {finding.law for finding in left} == {Law.NOTHING_LEFT}
    assert sorted(finding.what.split()[0] for finding in left) == ["advisory", "connection"]


def found_on(address: str, plan: Plan, home: Path, patience: float = 60) -> list[Finding]:
    return check(home / "repository", address, plan, home, patience=patience)
