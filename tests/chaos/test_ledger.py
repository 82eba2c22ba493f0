"""What several sittings of chaos came to is kept together, as long as they were about the same product."""

from pathlib import Path
from typing import Any

import pytest

from bench import ledgers
from tests.chaos.__main__ import missed
from tests.chaos.ledger import Measured, OtherCodeError, added, keep, played_before, recovery, seeds
from tests.chaos.play import Played
from tests.chaos.rounds import Order, Outcome
from tests.chaos.trouble import boundaries, database_of, draw

NONE = dict.fromkeys(("lost commits", "doubled merges", "false done", "leftovers", "other findings"), 0)


def found(first: int, last: int, seconds: list[float], **more: int) -> dict[str, Any]:
    rounds = last - first + 1
    return {
        "rounds": rounds,
        "seeds": seeds(range(first, last + 1)),
        "rounds with findings": 0,
        "tasks": 60 * rounds,
        "merges": 52 * rounds,
        "troubles": {"worker": rounds, "disk": 1},
        "missed": {"agent": 1},
        "boundaries": {"sqlite": ["turn:take:1:before"], "postgres": [f"part:open:{first}:inside"]},
        "approved by a person": 1,
        "ended by itself": 0,
        **NONE,
        **more,
        "recovered": recovery(seconds),
        "seconds": 10.0,
        "not run": [],
    }


def of(source: str) -> Measured:
    return Measured(source, "0123456789", {"processors": "2"})


def test_two_sittings_are_added_up() -> None:
    both = added(found(1, 20, [0.1, 0.2]), found(21, 30, [0.3], leftovers=1))

    assert (both["rounds"], both["tasks"], both["seeds"], both["seconds"]) == (30, 1800, "1-20, 21-30", 20.0)
    assert (both["leftovers"], both["lost commits"]) == (1, 0)
    assert (both["troubles"], both["missed"]) == ({"worker": 30, "disk": 2}, {"agent": 2})
    assert both["boundaries"] == {
        "sqlite": ["turn:take:1:before"],
        "postgres": ["part:open:1:inside", "part:open:21:inside"],
    }
    assert both["approved by a person"] == 2
    assert (both["recovered"]["median seconds"], both["recovered"]["worst seconds"]) == (0.2, 0.3)


def test_seeds_are_listed_as_ranges() -> None:
    assert seeds([3, 1, 2, 7, 9, 10]) == "1-3, 7, 9-10"
    assert seeds([]) == ""


def test_a_ledger_of_the_same_product_is_added_to_and_another_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for source, add, rounds in (("one", True, 20), ("one", True, 40), ("two", True, 20), ("", True, 20)):
        monkeypatch.setattr(ledgers, "source", lambda *_folders, source=source: source)

        keep(found(1, 20, [0.1]), "make chaos ROUNDS=20", of(source), add, tmp_path)

        kept = ledgers.read(tmp_path)["chaos"]
        assert kept.more["found"]["rounds"] == rounds, source
        assert kept.command.count("make chaos") == rounds // 20


def test_what_was_played_before_is_not_counted_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledgers, "source", lambda *_folders: "one")
    assert played_before(range(1, 10), tmp_path) == ""
    keep(found(1, 20, [0.1]), "make chaos ROUNDS=20", of("one"), folder=tmp_path)

    assert played_before(range(15, 25), tmp_path) == "15-20"
    assert played_before(range(21, 25), tmp_path) == ""

    monkeypatch.setattr(ledgers, "source", lambda *_folders: "two")
    assert played_before(range(15, 25), tmp_path) == ""


def test_rounds_during_a_change_of_the_product_are_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledgers, "source", lambda *_folders: "two")

    with pytest.raises(OtherCodeError):
        keep(found(1, 20, [0.1]), "make chaos ROUNDS=20", of("one"), folder=tmp_path)

    assert ledgers.read(tmp_path) == {}


def test_the_ledger_names_the_commit_that_was_played_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledgers, "source", lambda *_folders: "one")

    keep(found(1, 20, [0.1]), "make chaos ROUNDS=20", of("one"), folder=tmp_path)

    assert ledgers.read(tmp_path)["chaos"].commit == "0123456789"


def test_a_boundary_without_a_death_gets_more_rounds_that_begin_with_it() -> None:
    each, gone = ("sqlite", "postgres"), ("postgres", boundaries()[7])
    played = [
        Outcome(Order(1, 60, "somewhere" if name == "postgres" else ""), Played(died_at=[at]), [], 0, [])
        for name in each
        for at in boundaries()
        if (name, at) != gone
    ]

    again = missed(played, 501)

    assert len(again) == 3
    assert {(database_of(seed, each), draw(seed, 60).first) for seed in again} == {gone}
