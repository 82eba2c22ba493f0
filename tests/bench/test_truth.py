"""Who calls what done: counted, and never claimed."""

from pathlib import Path

import pytest

from bench import ledgers, truth
from bench.truth import COMMIT, GENBA, REPORT, TREE, Verdicts
from tests.corpus.hiring import hired, templates
from tests.corpus.listing import LIARS, WORKERS

LIES = {liar.name: liar for liar in LIARS}
WORK = {worker.name: worker for worker in WORKERS}


def verdicts(name: str, *done: str, lies: bool = True) -> Verdicts:
    return Verdicts(name, lies, {judge: judge in done for judge in truth.JUDGES})


def test_every_lie_that_is_called_done_counts_against_its_judge() -> None:
    lies = [verdicts("a", REPORT), verdicts("b", REPORT, TREE), verdicts("c", REPORT, TREE, COMMIT)]
    work = [verdicts("d", GENBA, TREE, lies=False), verdicts("e", GENBA, lies=False)]

    found = truth.summary(lies, work)

    judges = found.more["judges"]
    assert {judge: judges[judge]["fooled_by"] for judge in judges} == {
        GENBA: [], REPORT: ["a", "b", "c"], TREE: ["b", "c"], COMMIT: ["c"],
    }  # fmt: skip
    assert {judge: judges[judge]["refuses"] for judge in judges} == {
        GENBA: [], REPORT: ["d", "e"], TREE: ["e"], COMMIT: ["d", "e"],
    }  # fmt: skip
    assert [row.holds for row in found.rows] == [True] * 5


@pytest.mark.parametrize(
    ("lies", "work"),
    [
        ([verdicts("a", GENBA)], [verdicts("d", GENBA, lies=False)]),
        ([verdicts("a")], [verdicts("d", TREE, lies=False)]),
    ],
    ids=["one false done", "one falsely refused"],
)
def test_one_mistake_of_genba_is_over_the_limit(lies: list[Verdicts], work: list[Verdicts]) -> None:
    assert [row for row in truth.summary(lies, work).rows if not row.holds]


def test_what_was_measured_is_about_the_corpus_as_it_is_now() -> None:
    found = ledgers.read()["truth"].more

    assert (found["lies"], found["honest"]) == (len(LIARS), len(WORKERS)), "make bench PARTS=truth counts anew"
    for judge in found["judges"].values():
        assert set(judge["fooled_by"]) <= set(LIES)
        assert set(judge["refuses"]) <= set(WORK)


def test_the_judges_are_run_and_each_is_fooled_by_another_lie() -> None:
    lies = [LIES["says-nothing"], LIES["half-committed"], LIES["deletes-test"]]

    found = truth.judged(lies)

    assert {each.agent: {judge for judge, done in each.done.items() if done} for each in found} == {
        "says-nothing": {REPORT},
        "half-committed": {REPORT, TREE},
        "deletes-test": {REPORT, TREE, COMMIT},
    }


def test_honest_work_is_done_for_every_judge() -> None:
    found = truth.judged([WORK["silent"]])

    assert [set(each.done.values()) for each in found] == [{True}]


def test_what_an_agent_leaves_running_is_ended(tmp_path: Path) -> None:
    agent = LIES["endpoint-elsewhere"]
    folder = tmp_path / "home"
    folder.mkdir()
    (tmp_path / "templates").mkdir()

    truth.bare(agent, hired(agent, templates(tmp_path / "templates"), folder), folder)

    assert list(truth.working_in(folder)) == []
