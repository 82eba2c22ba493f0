"""The end of the log of a goal: as much as is shown, however long it is."""

from pathlib import Path

import pytest

from genba.connections.goals.results import FileResults
from genba.domain.errors import NotFoundError
from genba.domain.sessions.evidence import CheckResult, CheckStatus


def kept(folder: Path, output: str) -> tuple[FileResults, str]:
    results = FileResults(folder)
    result = CheckResult(name="tests", status=CheckStatus.FAILED, output=output)
    return results, results.keep("a" * 64, result, reusable=True)


def test_a_short_log_is_whole(tmp_path: Path) -> None:
    results, name = kept(tmp_path, "the tea is cold\n")
    assert results.end_of_log(name, 1000) == ("the tea is cold\n", False)


def test_of_a_long_one_the_end_is_read(tmp_path: Path) -> None:
    results, name = kept(tmp_path, "é" * 1000 + "cold")
    text, cut = results.end_of_log(name, 7)
    assert cut
    assert text.endswith("écold")
    assert len(text) <= 7


@pytest.mark.parametrize("name", ["../config", "a" * 12 + "/x", "\0", "", "b" * 12])
def test_no_other_file_is_one(tmp_path: Path, name: str) -> None:
    results, _ = kept(tmp_path / "goals", "")
    with pytest.raises(NotFoundError):
        results.end_of_log(name, 10)
