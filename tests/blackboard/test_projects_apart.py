"""Projects that share a database see nothing of each other: every statement names its project, or one row of it."""

import importlib
import pkgutil
import re
from collections.abc import Iterator

import msgspec
import pytest

import genba.blackboard
import genba.coordination
from genba.blackboard.database.schema import metadata
from genba.blackboard.database.store import Statement
from genba.blackboard.tasks.board import Blackboard
from genba.blackboard.triage.triage_board import FieldBoard
from genba.domain.sessions.session import SessionStart
from genba.domain.tasks.task import StatusChange, TaskStatus
from tests.blackboard.acting import HUMAN, add
from tests.blackboard.conftest import Postgres
from tests.blackboard.test_field_board import at_rest

TRIAGE = ("fleet_snapshot", "triage_board", "task_facts", "task_events", "ready")
"""The modules of the blackboard that read and keep what the facilitator and `genba status` look at."""
TABLES = {table.name for table in metadata.tables.values()} - {"alembic_version"}
ROWS = re.compile(
    r"\b(?:\w+\.)?(?:id|task_id|of_task_id|parent_task_id|run|session|session_id|agent_id|depends_on_id|name)"
    r" = (?:\()?(?::\w+|\w+\.\w+)"
)
WHOLE = {
    "genba.blackboard.database.repository_binding._ALL": "whom an SQLite file belongs to, before any project is known",
    "genba.blackboard.fleet.spending._NEWEST": "a mark that changes with any row, and tells none",
}


def statements() -> Iterator[tuple[str, str, str]]:
    """Every statement of the product: module, name and text, for each database."""
    for package in (genba.blackboard, genba.coordination):
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if ".migrations" in found.name:
                continue
            for name, value in vars(importlib.import_module(found.name)).items():
                held = (
                    value.values() if isinstance(value, dict) else value if isinstance(value, tuple | list) else [value]
                )
                for number, each in enumerate(each for each in held if isinstance(each, Statement)):
                    shown = name if held == [value] else f"{name}[{number}]"
                    for text in dict.fromkeys((each.sqlite, each.postgres.replace("%%", "%"))):
                        yield found.name, shown, re.sub(r"%\((\w+)\)s", r":\1", text)


def tables(text: str) -> set[str]:
    return set(re.findall(r"(?:FROM|JOIN|UPDATE|INTO)\s+([a-z_]+)", text)) & TABLES


def test_every_statement_of_triage_names_its_project() -> None:
    seen = [(module, name, text) for module, name, text in statements() if module.rpartition(".")[2] in TRIAGE]
    assert len(seen) > 40
    loose = [(f"{module}.{name}", text) for module, name, text in seen if ":project" not in text and tables(text)]
    without = [name for name, text in loose if not _own_row(text)]
    assert without == []


def _own_row(text: str) -> bool:
    """A row that is written for a task that was found by its project and its number."""
    return text.lstrip().startswith("INSERT INTO comments ")


def test_every_other_statement_names_its_project_or_one_row() -> None:
    loose = [
        f"{module}.{name}"
        for module, name, text in statements()
        if tables(text) and ":project" not in text and not ROWS.search(text) and not text.lstrip().startswith("INSERT")
    ]
    assert sorted(set(loose) - set(WHOLE)) == []
    assert set(WHOLE) <= set(loose), "what is an exception no more is taken out of the list"


@pytest.fixture
def two(postgres: Postgres) -> Iterator[tuple[Blackboard, Blackboard]]:
    address = postgres.furnished()
    with Blackboard.open(address, "one") as one, Blackboard.open(address, "two") as two:
        yield one, two


def work(board: Blackboard, number: int, run: str, branch: str) -> None:
    board.begin_session(number, SessionStart(run=run, agent="writer", branch=branch, base="b", workdir="/w"))


def test_triage_of_one_project_does_not_change_with_another(two: tuple[Blackboard, Blackboard]) -> None:
    """Both have tasks of the same numbers; in the second one they are done, and a session works on each."""
    one, other = two
    for board in two:
        for title in ("First", "Second", "Third", "Fourth"):
            add(board, title)
    one.change_status(2, StatusChange(to=TaskStatus.CANCELLED, actor=HUMAN))
    one.change_status(3, StatusChange(to=TaskStatus.CANCELLED, actor=HUMAN))
    at_rest(one, 2, 3)
    before, few_before = whole(one), few(one)
    for number in (1, 2, 3, 4):
        work(other, number, f"run-{number}", "topic")
    other.depend(4, 1, HUMAN)
    other.change_status(2, StatusChange(to=TaskStatus.CANCELLED, actor=HUMAN))
    add(other, "Part", 3)
    assert whole(one) == before
    assert few(one) == few_before
    assert [task.number for task in one.ready()] == [1, 4]


def whole(board: Blackboard) -> object:
    ground = FieldBoard(board).read()
    return msgspec.structs.replace(ground, tracker_read_at="")


def few(board: Blackboard) -> object:
    return FieldBoard(board).read([1], branches=["topic"])
