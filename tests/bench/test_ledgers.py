"""A ledger is read as it was written, whole or not at all."""

from pathlib import Path

import pytest

from bench import ledgers, machine
from bench.measuring import Row

ROWS = (Row("one / the other", "2 s beside 1 s", 2.0, 3.0), Row("told", "only told"))
MACHINE = {"processor": "a fast one"}


def test_what_is_written_is_read(tmp_path: Path) -> None:
    ledgers.write("thing", "A thing", "make thing", ROWS, machine=MACHINE, folder=tmp_path, rounds=500, seeds=[1, 2])

    found = ledgers.read(tmp_path)["thing"]

    assert (found.about, found.command, found.machine) == ("A thing", "make thing", MACHINE)
    assert found.rows == ROWS
    assert found.more == {"rounds": 500, "seeds": [1, 2]}
    assert len(found.date) == len("2026-01-05")


def test_a_second_measure_takes_the_place_of_the_first_and_of_no_other(tmp_path: Path) -> None:
    ledgers.write("one", "One", "make one", ROWS, machine=MACHINE, folder=tmp_path)
    ledgers.write("two", "Two", "make two", ROWS, machine=MACHINE, folder=tmp_path)
    ledgers.write("one", "One", "make one", ROWS[:1], machine=MACHINE, folder=tmp_path)

    found = ledgers.read(tmp_path)

    assert [(part, len(ledger.rows)) for part, ledger in found.items()] == [("one", 1), ("two", 2)]
    assert sorted(file.name for file in tmp_path.iterdir()) == ["one.json", "two.json"]


def test_a_field_of_every_ledger_cannot_be_one_of_a_part(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="has date already"):
        ledgers.write("one", "One", "make one", ROWS, machine=MACHINE, folder=tmp_path, date="yesterday")

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"about": 1}', '{"about": "x", "rows": [{"what": 1}]}'])
def test_a_broken_ledger_is_named(text: str, tmp_path: Path) -> None:
    (tmp_path / "thing.json").write_text(text)

    with pytest.raises(ValueError, match=r"thing\.json is no ledger"):
        ledgers.read(tmp_path)


def test_the_machine_is_described_without_its_name() -> None:
    found = machine.facts()

    assert list(found) == ["processor", "memory", "system", "Python, git", "load when it began"]
    assert all(found.values())
