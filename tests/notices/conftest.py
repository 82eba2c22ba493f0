"""A receiver for notices, and a desktop of which every notification is written down."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.notices.receiver import Receiver, receiving


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as found:
        yield found


class Desk:
    """A folder with a `notify-send` that writes down its words."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.file = folder / "shown.jsonl"
        program = folder / "notify-send"
        program.write_text(
            f"#!{sys.executable} -IS\nimport json, sys\n"
            f"with open({str(self.file)!r}, 'a') as file:\n    file.write(json.dumps(sys.argv[1:]) + '\\n')\n"
        )
        program.chmod(0o755)
        self.environment = {"PATH": str(folder), "DISPLAY": ":0"}

    def shown(self) -> list[list[str]]:
        if not self.file.is_file():
            return []
        return [json.loads(line) for line in self.file.read_text("utf-8").splitlines()]


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    folder = tmp_path / "desk"
    folder.mkdir()
    return Desk(folder)
