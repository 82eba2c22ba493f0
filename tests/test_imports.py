import subprocess
import sys
from pathlib import Path

import pytest

from tests.project import Project

HEAVY = (
    "alembic",
    "detect_secrets",
    "genba.blackboard",
    "genba.connections.github",
    "genba.domain.goals.goal",
    "genba.execution.verification.verify",
    "genba.judgement.verification.goal_results",
    "genba.wiring.verification.verifier",
    "jsonpath_rfc9535",
    "mcp",
    "psycopg",
    "pydantic",
    "sqlalchemy",
    "starlette",
    "uvicorn",
)


def loaded(folder: Path, *words: str, code: int = 0) -> set[str]:
    """The modules that a command has loaded when it ends."""
    listed = folder.parent / "modules.txt"
    script = (
        "import os, sys\n"
        "from pathlib import Path\n"
        "listed, leave = Path(sys.argv.pop()), os._exit\n"
        "def tell(code):\n"
        "    listed.write_text('\\n'.join(sys.modules))\n"
        "    leave(code)\n"
        "os._exit = tell\n"
        "from genba.entrypoints.cli.main import main\n"
        "main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, *words, str(listed)], cwd=folder, check=False, capture_output=True, text=True
    )
    assert done.returncode == code, done.stderr
    return set(listed.read_text().splitlines())


def test_a_plain_run_loads_neither_the_blackboard_nor_goals(project: Project) -> None:
    project.agent()

    assert loaded(project.root, "run", "worker") & set(HEAVY) == set()


def test_a_run_of_an_agent_without_yaml_reads_none(project: Project) -> None:
    project.agent(adapter={"type": "custom", "command": ["sh", "-c", "echo x > x && git add x && git commit -qm x"]})

    assert "yaml" not in loaded(project.root, "run", "worker")


@pytest.mark.parametrize("words", [("task", "list"), ("task", "--help"), ("agent", "list"), ("schema", "goal")])
def test_a_look_opens_no_database_where_there_is_none(project: Project, words: tuple[str, ...]) -> None:
    project.agent()

    assert loaded(project.root, *words) & {"sqlalchemy", "alembic", "detect_secrets"} == set()


def test_a_task_needs_no_migration_and_no_scanner(project: Project) -> None:
    found = loaded(project.root, "task", "add", "x")

    assert "sqlalchemy" in found
    assert found & {"alembic", "detect_secrets", "psycopg", "genba.execution.verification.verify"} == set()


def test_imports_point_one_way() -> None:
    """The contracts of pyproject.toml: layers, ports, and what may name the database, the engine and the doubles."""
    done = subprocess.run(
        [Path(sys.executable).with_name("lint-imports"), "--no-cache"],
        cwd=Path(__file__).parent.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert "Layers point one way KEPT" in done.stdout
