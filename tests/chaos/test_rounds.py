"""The short form of `make chaos`: two small rounds on each database, and what a seed gives."""

import re
import sys
from pathlib import Path

import pytest

from tests import preloaded
from tests.blackboard.conftest import Postgres, postgres  # noqa: F401  (a fixture)
from tests.chaos.ground import Ground, begin
from tests.chaos.plan import Kind as PartKind
from tests.chaos.plan import plan
from tests.chaos.play import unforeseen
from tests.chaos.rounds import Order, play
from tests.chaos.trouble import CLOCK_ROUNDS, SHARES, Kind, boundaries, database_of, draw
from tests.preloaded import ordinary_environment

TASKS = 14
CERTAIN = {Kind.WORKER, Kind.DATABASE, Kind.DISK}
SEEDS = {"sqlite": (206, 464), "postgres": (154, 574)}
"""Together they have everything in store but a clock that jumps, each early enough to happen."""


@pytest.mark.parametrize(("database", "seed"), [(name, seed) for name, each in SEEDS.items() for seed in each])
def test_whatever_happens_in_a_round_every_task_has_its_right_end(
    database: str, seed: int, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    address = ""
    if database == "postgres":
        server: Postgres = request.getfixturevalue("postgres")
        address = server.furnished(engine=True)

    outcome = play(Order(seed, TASKS, address), tmp_path)

    assert not outcome.findings, "\n".join([*outcome.findings, *outcome.played.story])
    drawn = {trouble.kind for trouble in draw(seed, TASKS).those}
    assert drawn & CERTAIN <= {*outcome.played.happened, *outcome.left_out}


def test_an_unexpected_error_is_a_finding_in_every_log(tmp_path: Path) -> None:
    message = (
        "error: KeyError: 'x'\nhint: run it again with GENBA_DEBUG=1 in the environment to see where it happened\n"
    )
    (tmp_path / "workhost-a.log").write_text(f" ● done  #3\n{message}", "utf-8")
    (tmp_path / "mcp.log").write_text("Traceback (most recent call last):\n  File\n", "utf-8")
    (tmp_path / "external-agent-3.log").write_text("Traceback of somebody else's program\n", "utf-8")

    assert [line.partition(":")[0] for line in unforeseen(tmp_path)] == ["workhost-a.log", "mcp.log"]


def test_the_same_seed_gives_the_same_field_and_the_same_troubles() -> None:
    assert plan(17) == plan(17)
    assert draw(17, 60) == draw(17, 60)
    assert plan(17) != plan(18)
    assert draw(17, 60) != draw(18, 60)


def test_over_many_seeds_everything_happens_and_every_boundary_is_died_at() -> None:
    every = boundaries()

    drawn = [draw(seed, 60) for seed in range(1, 2 * len(every) + 1)]

    assert {troubles.first for troubles in drawn} == set(every)
    assert {trouble.kind for troubles in drawn for trouble in troubles.those} == {*SHARES, Kind.CLOCK}
    assert sum(troubles.clock for troubles in drawn) == len(drawn) // CLOCK_ROUNDS


def test_over_many_seeds_every_boundary_is_died_at_and_the_clock_jumps_on_both_databases() -> None:
    every, databases = boundaries(), ("sqlite", "postgres")

    drawn = [(database_of(seed, databases), draw(seed, 60)) for seed in range(1, 2 * len(every) + 1)]

    assert {(name, troubles.first) for name, troubles in drawn} == {(name, at) for name in databases for at in every}
    assert {name for name, troubles in drawn if troubles.clock} == set(databases)


def test_the_short_form_has_every_kind_of_trouble_in_store() -> None:
    drawn = [draw(seed, TASKS) for each in SEEDS.values() for seed in each]

    assert {trouble.kind for troubles in drawn for trouble in troubles.those} == set(SHARES)
    assert {part.kind for part in plan(SEEDS["sqlite"][0], TASKS).parts} == {*PartKind}


def test_every_boundary_that_a_quiet_round_passes_has_a_death(tmp_path: Path) -> None:
    ground = Ground(tmp_path, plan(SEEDS["sqlite"][0], TASKS))
    ground.make(begin(tmp_path))
    words = [sys.executable, "-m", "tests.chaos.mortal", "nowhere", "4", str(tmp_path / "record")]

    done = preloaded.run(words, cwd=ground.root, env={**ordinary_environment(), **ground.environment}, timeout=120)

    assert done.returncode == 0, done.stderr
    passed = {re.sub(r":\d+:", ":", line) for line in (tmp_path / "record").read_text("utf-8").split("\n") if line}
    assert {re.sub(r":\d+:", ":", line) for line in boundaries()} == passed
