"""What a fleet refuses before anything is begun: clearly, with an exit code and the next command."""

from collections.abc import Iterator
from subprocess import CalledProcessError

import pytest
from sqlalchemy import create_engine, make_url

from genba.blackboard.database.connect import migrate
from tests.blackboard.conftest import Postgres
from tests.fleet.yard import Yard
from tests.project import Project, until


@pytest.fixture
def ready(small_yard: Yard) -> Yard:
    small_yard.set()
    small_yard.agent()
    small_yard.task(1)
    return small_yard


def refused(yard: Yard, code: int, *words: str) -> None:
    done = yard.work(check=code)
    assert done.json["error"]["exit_code"] == code
    assert done.json["error"]["hint"]
    for word in words:
        assert word in done.err, done.err
    assert "hint:" in done.err
    assert "Traceback" not in done.err
    assert yard.started() == []


def test_a_second_executor_on_one_file(ready: Yard) -> None:
    first = ready.start()
    until(lambda: "done" in [str(status) for status in ready.statuses().values()])

    second = ready.work(check=5)

    assert "postgresql" in second.err.lower()
    assert "hint:" in second.err
    assert first.poll() is None, "the first goes on"


def test_a_server_that_cannot_be_reached(ready: Yard) -> None:
    ready.project.environment["GENBA_DATABASE_URL"] = "postgresql://genba:secret@127.0.0.1:9/genba"
    done = ready.work(check=None)

    assert done.code not in (0, 1)
    assert "127.0.0.1" in done.err
    assert "secret" not in done.err
    assert "Traceback" not in done.err
    assert ready.started() == []


def test_a_repository_in_the_middle_of_a_rebase(ready: Yard) -> None:
    git = ready.project.git
    git("switch", "-qc", "side", "main")
    ready.project.write("a.txt", "side\n")
    ready.project.commit("side")
    git("switch", "-q", "main")
    ready.project.write("a.txt", "main\n")
    ready.project.commit("main")
    git("switch", "-q", "side")
    with pytest.raises(CalledProcessError):
        git("rebase", "main")

    refused(ready, 5, "in the middle of a rebase", "git rebase --abort")


def test_a_checkout_on_no_branch(ready: Yard) -> None:
    ready.project.git("checkout", "-q", "--detach")

    refused(ready, 5, "on no branch", "merge: {base_branch: main}")

    ready.set(merge={"base_branch": "main"})
    ready.work()
    assert ready.started() == ["1"]


def test_a_base_branch_that_is_not_there(ready: Yard) -> None:
    ready.set(merge={"base_branch": "trunk"})

    refused(ready, 4, 'no branch "trunk"', "merge: {base_branch: NAME}")


def test_a_disk_that_is_nearly_full(ready: Yard) -> None:
    ready.set(work={"min_free_disk_mb": 1 << 40})

    refused(ready, 1, "the disk is nearly full", "genba gc")


def test_an_agent_that_is_not_there(ready: Yard) -> None:
    done = ready.genba("work", "--until-empty", "--agent", "workr", check=4)

    assert 'there is no agent "workr"' in done.err
    assert "worker" in done.err
    assert ready.started() == []


@pytest.fixture
def on_old_schema(project: Project, postgres: Postgres) -> Iterator[Yard]:
    with Yard(project, postgres.database()) as yard:
        yard.set()
        yard.agent()
        migrate(yard.address)
        engine = create_engine(make_url(yard.address).set(drivername="postgresql+psycopg"))
        with engine.begin() as connection:
            connection.exec_driver_sql("UPDATE alembic_version SET version_num = '0010'")
        engine.dispose()
        yield yard


def test_an_old_schema_on_a_server_that_others_may_use(on_old_schema: Yard) -> None:
    refused(on_old_schema, 5, "start with a new database")
