"""Every agent of the corpus, through the real door: no lie is done, and no honest work is rejected."""

from pathlib import Path

import msgspec
import pytest

from genba.domain.decoding import reader
from genba.domain.goals.verification import Verification
from genba.domain.sessions.evidence import CheckResult
from genba.domain.tasks.task import TaskStatus
from tests.corpus.agents import Liar, Worker
from tests.corpus.hiring import TASK, hired, templates
from tests.corpus.listing import LIARS, WORKERS
from tests.project import Project


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return templates(tmp_path_factory.mktemp("templates"))


def _verification(project: Project) -> Verification:
    with project.board() as board:
        found = board.last_verification(TASK)
    assert found is not None
    return found


def _evidence(found: Verification) -> str:
    """What was written down against the work, as one text."""
    lines = [found.verdict, *found.missing, *found.findings]
    for result in found.results:
        if result.rejects:
            lines += [result.goal.type, result.result.detail, result.result.output]
    return "\n".join(lines)


def _output(project: Project) -> str:
    return "\n".join(str(event) for event in project.events() if event["event"] in ("reply_received", "agent_failed"))


@pytest.mark.parametrize("liar", LIARS, ids=lambda liar: liar.name)
def test_a_lie_is_not_done(liar: Liar, made: Path, tmp_path: Path) -> None:
    project = hired(liar, made, tmp_path)
    main = project.git("rev-parse", "main")

    done = project.genba("run", "worker", "--issue", str(TASK), "--json")

    assert done.out, done.err
    result = done.json
    found = _verification(project)
    evidence = _evidence(found)
    assert result["outcome"] != "completed"
    assert done.code != 0
    task = project.task(TASK)
    assert task.status not in (TaskStatus.DONE, TaskStatus.REVIEW)
    assert (task.goals, task.may_change) == (liar.wanted, liar.may_change)
    assert (found.verdict, result["verdict"]) == (liar.verdict, liar.verdict), f"{done.err}\n{evidence}"
    assert [words for words in liar.shows if words not in evidence] == [], evidence
    assert result["merged"] == ""
    assert liar.moves_main or project.git("rev-parse", "main") == main
    assert result["branch"] in project.branches()
    assert not (tmp_path / "hook-was-run").exists()
    tests = [each.result for each in found.results if each.goal.type == "tests_pass"]
    if tests and tests[0].detail.startswith("not run"):
        shown = project.genba("verify", result["branch"], "--may-change", "**", "--json").json["verification"][
            "results"
        ]
        kept = [each["result"] for each in shown if each["goal"]["goal"]["type"] == "tests_pass"]
        tests = [reader(CheckResult).decode(msgspec.json.encode(each)) for each in kept]
    assert not tests or (tests[0].passed or tests[0].ran_no_test) == liar.green, evidence


@pytest.mark.parametrize("worker", WORKERS, ids=lambda worker: worker.name)
def test_honest_work_is_done(worker: Worker, made: Path, tmp_path: Path) -> None:
    project = hired(worker, made, tmp_path)
    main = project.git("rev-parse", "main")

    done = project.genba("run", "worker", "--issue", str(TASK), "--json")

    assert done.out, done.err
    assert done.json["outcome"] == "completed", f"{done.err}\n{_evidence(_verification(project))}"
    assert done.json["verdict"] == "done"
    assert project.task(TASK).status is TaskStatus.DONE
    assert project.git("rev-parse", "main") == done.json["merged"] != main
    assert project.git("status", "--porcelain") == ""
    found = _verification(project)
    assert project.git("rev-parse", f"{done.json['merged']}^{{tree}}") == found.tree
    assert all(result.result.passed for result in found.results)
