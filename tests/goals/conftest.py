"""A checkout to check goals in, and the engine that checks them."""

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from genba.connections.goals.runner import GoalEngine
from genba.connections.processes.supervisor import ProcessSupervisor
from genba.domain.goals.verification import Place
from genba.domain.sessions.evidence import CheckResult, CheckStatus

BIN = Path(sys.executable).parent
ENVIRONMENT = {
    "PATH": f"{BIN}:{os.environ['PATH']}",
    "HOME": "/nonexistent",
    "LANG": "C.UTF-8",
    "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",  # a suite in a checkout needs none of the many that are installed here
}

Write = Callable[[str, str], Path]


class RememberingScanner:
    """Finds nothing, and remembers what it was to look at."""

    def __init__(self) -> None:
        self.scanned: list[tuple[str, str]] = []

    async def scan(self, base: str, commit: str, timeout_seconds: float, mark: str) -> CheckResult:  # noqa: ARG002
        self.scanned.append((base, commit))
        return CheckResult("scan", CheckStatus.PASSED, "nothing found")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "checkout"
    made.mkdir()
    return made


@pytest.fixture
def write(folder: Path) -> Write:
    def write_file(path: str, text: str) -> Path:
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
        return target

    return write_file


@pytest.fixture
def place(folder: Path) -> Place:
    return Place(folder=str(folder), commit="c" * 40, base="b" * 40)


@pytest.fixture
def mark(tmp_path: Path) -> str:
    return f"goals-{os.getpid()}-{tmp_path.name}"


@pytest.fixture
def scanner() -> RememberingScanner:
    return RememberingScanner()


@pytest.fixture
def engine(scanner: RememberingScanner) -> GoalEngine:
    return GoalEngine(ProcessSupervisor(), ENVIRONMENT, scanner)
