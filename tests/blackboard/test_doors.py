"""The same commands on PostgreSQL: a task is added, worked on, verified, reviewed and done."""

from genba.domain.tasks.task import TaskStatus
from tests.blackboard.conftest import Postgres
from tests.project import Project

DOD = "project: {name: shop}\ndod:\n  - custom_script: test -e done.txt\n"


def test_a_task_lives_on_postgresql_from_its_first_word_to_its_end(project: Project, postgres: Postgres) -> None:
    project.environment["GENBA_DATABASE_URL"] = postgres.database()
    project.write(".genba/config.yaml", DOD)
    project.agent(
        parameters={"issue": {"type": "number"}},
        integrations={"github": {"enabled": True}},
        completion={"type": "externalState"},
        script={
            "turns": [
                {"do": [{"write": {"path": "x.txt", "text": "x\n"}}, {"commit": "Half"}], "reply": "done"},
                {
                    "expect": "rejected: goals_not_met (custom_script)",
                    "do": [{"write": {"path": "done.txt", "text": "x\n"}}, {"commit": "Whole"}],
                    "reply": "done",
                },
            ]
        },
    )
    project.genba("task", "add", "One", "--review", check=0)
    project.genba("task", "add", "Two", "--depends-on", "1", check=0)

    waits = project.run("worker", "--issue", "1", check=1)
    assert "waits for a review" in waits["reason"]
    project.genba("task", "approve", "1", check=0)
    assert project.run("--resume", waits["run"])["outcome"] == "completed"

    listed = project.genba("task", "list", "--all", "--json", check=0).json
    assert {task["number"]: task["status"] for task in listed} == {
        1: TaskStatus.DONE, 2: TaskStatus.OPEN, 3: TaskStatus.DONE,
    }, "the third is the review of the first"  # fmt: skip
    ready = project.genba("task", "list", "--ready", "--json", check=0).json
    assert [task["number"] for task in ready] == [2]
    assert project.genba("verify", "1", check=0).out.startswith("#1 done")
    assert not (project.root / ".genba" / "genba.db").exists()


def test_two_projects_on_one_server_have_numbers_of_their_own(project: Project, postgres: Postgres) -> None:
    project.environment["GENBA_DATABASE_URL"] = postgres.database()
    for name in ("shop", "mill"):
        project.write(".genba/config.yaml", f"project: {{name: {name}}}\n")
        assert project.genba("task", "add", f"of the {name}", "--json", check=0).json["number"] == 1
    assert [task["title"] for task in project.genba("task", "list", "--json", check=0).json] == ["of the mill"]


def test_the_address_may_stand_in_the_settings(project: Project, postgres: Postgres) -> None:
    project.write(".genba/config.yaml", f"database: {{url: '{postgres.database()}'}}\n")
    project.genba("task", "add", "One", check=0)
    assert not (project.root / ".genba" / "genba.db").exists()


def test_a_server_that_is_not_there_is_reported_without_its_password(project: Project) -> None:
    project.environment["GENBA_DATABASE_URL"] = "postgresql://me:hunter2@127.0.0.1:9/none?connect_timeout=2"
    done = project.genba("task", "list")
    assert done.code not in (0, 2)
    assert "hunter2" not in done.err + done.out
    assert "hint: " in done.err
    assert "Traceback" not in done.err
