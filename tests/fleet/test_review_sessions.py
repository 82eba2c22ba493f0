"""Reviews by a command as sessions of the fleet: their rows, their cost, and who performs one where two begin it."""

import json
from pathlib import Path
from typing import Any

import pytest

from genba.domain.tasks.task import TaskStatus
from tests.fleet.test_reviews import ANSWERS, APPROVE, CHANGES, author, reviewer, reviews_of
from tests.fleet.test_reviews_by_command import made, review_branches, worktrees
from tests.fleet.test_stages import pipeline, worker
from tests.fleet.yard import Yard
from tests.project import until


def costly_reviewer(yard: Yard, reply: dict[str, Any]) -> None:
    usage = {"input_tokens": 10, "output_tokens": 10, "cost_usd": 1.0}
    run = f"echo reviewer >> {yard.starts}"
    yard.project.agent(
        "reviewer",
        script={"turns": [{"do": [{"run": run}], "reply": reply, "usage": usage}], "repeat": True},
        parameters={"issue": {"type": "number"}},
        completion=ANSWERS,
    )


def held_reviewer(yard: Yard) -> tuple[Path, Path]:
    """A reviewer that approves; it touches the first file, and waits for the second one."""
    here, go = yard.project.root.parent / "here", yard.project.root.parent / "go"
    reviewer(yard, APPROVE, do=f"touch {here}; while [ ! -e {go} ]; do sleep 0.05; done")
    return here, go


def sessions(yard: Yard, number: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(yard.genba("sessions", str(number), "--json").out)
    return found


# ── rows and cost ────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("how", ["reviewer", "--review"])
def test_a_review_by_a_command_is_a_session_and_its_cost_counts(yard: Yard, how: str) -> None:
    yard.set(work={"workers": 1}, budget={"project_usd": 0.5})
    author(yard)
    costly_reviewer(yard, APPROVE)
    if how == "--review":
        made(yard, "--review", check=0)
    else:
        made(yard)
        yard.project.run("reviewer", "--issue", "1")

    (found,) = sessions(yard, 2)

    assert (found["agent"], found["purpose"], found["status"]) == ("reviewer", "review", "ended")
    assert (found["outcome"], found["tokens"], found["cost_usd"]) == ("completed", 20, 1.0)
    with yard.board() as board:
        spent = board.ledger()
        assert board.board.events(2)
    assert spent.project.cost_usd == spent.today.cost_usd == spent.by_agent_today["reviewer"].cost_usd == 1.0
    yard.task(5)
    work = yard.work(check=None)
    assert "the budget of the project is reached: $1 of $0.5" in work.out
    assert yard.look(5).status is TaskStatus.OPEN


def test_advice_of_a_reviewer_is_a_session_of_the_task(small_yard: Yard) -> None:
    yard = small_yard
    yard.set()
    author(yard)
    costly_reviewer(yard, CHANGES)
    made(yard, reviewed_by="human")

    yard.project.run("reviewer", "--issue", "1")

    _, advice = sessions(yard, 1)
    assert (advice["agent"], advice["purpose"], advice["cost_usd"]) == ("reviewer", "review", 1.0)
    with yard.board() as board:
        assert board.ledger().by_task[1].cost_usd == 1.0
    yard.genba("approve", "1")
    yard.work()
    assert yard.look(1).status is TaskStatus.DONE


def test_a_review_without_a_verdict_costs_and_its_task_is_open_again(small_yard: Yard) -> None:
    yard = small_yard
    yard.set()
    author(yard)
    costly_reviewer(yard, {"status": "completed", "verdict": "perhaps"})
    made(yard)

    yard.project.run("reviewer", "--issue", "1", check=None)

    (found,) = sessions(yard, 2)
    assert found["outcome"] not in ("", "completed")
    assert found["cost_usd"] >= 1.0
    assert yard.look(2).status is TaskStatus.OPEN


# ── two who begin the same review ────────────────────────────────────────────────────────────────────────────────────


def test_work_leaves_a_review_to_the_command_that_performs_it_and_lands_the_commit(yard: Yard) -> None:
    yard.set()
    author(yard)
    here, go = held_reviewer(yard)
    made(yard)
    reviewing = yard.begin("run", "reviewer", "--issue", "1")
    until(here.exists)
    yard.task(3)
    working = yard.start("--until-empty")
    until(lambda: yard.look(3).status is TaskStatus.DONE)
    go.touch()

    assert reviewing.wait(60) == 0
    assert working.wait(60) == 0
    assert yard.started() == ["1", "reviewer", "3"]
    assert [each["outcome"] for each in sessions(yard, 2)] == ["completed"]
    assert yard.look(1).status is TaskStatus.DONE
    assert not review_branches(yard)


@pytest.mark.parametrize("winner", ["work", "run"])
def test_a_command_is_refused_while_another_session_performs_the_review(yard: Yard, winner: str) -> None:
    yard.set()
    author(yard)
    here, go = held_reviewer(yard)
    made(yard)
    words = {"work": ("work", "--until-empty"), "run": ("run", "reviewer", "--issue", "1")}
    winning = yard.begin(*words[winner])
    until(here.exists)
    (first,) = sessions(yard, 2)

    refused = yard.genba("run", "reviewer", "--issue", "1", check=5)

    assert f"{first['run']} performs this review" in refused.err
    assert "nothing was changed" in refused.err
    go.touch()
    assert winning.wait(60) == 0
    assert reviews_of(yard, 1) == ["approved"] or yard.look(1).status is TaskStatus.DONE
    assert yard.started() == ["1", "reviewer"]
    assert [each["run"] for each in sessions(yard, 2)] == [first["run"]]


@pytest.mark.parametrize("onward", [("run", "reviewer", "--issue", "1"), ("work", "--until-empty")])
def test_a_review_whose_process_died_is_performed_again(small_yard: Yard, onward: tuple[str, ...]) -> None:
    yard = small_yard
    yard.set()
    author(yard)
    here, go = held_reviewer(yard)
    made(yard)
    reviewing = yard.begin("run", "reviewer", "--issue", "1")
    until(here.exists)
    yard.kill(reviewing)
    go.touch()

    yard.genba(*onward)

    assert [each["outcome"] for each in sessions(yard, 2)] == ["failed", "completed"]
    assert not review_branches(yard)


def test_a_reviewer_whose_commit_a_person_judged_meanwhile_ends_with_a_conflict(small_yard: Yard) -> None:
    yard = small_yard
    yard.set()
    author(yard)
    here, go = held_reviewer(yard)
    made(yard)
    reviewing = yard.begin("run", "reviewer", "--issue", "1")
    until(here.exists)
    yard.genba("approve", "1")
    go.touch()

    assert reviewing.wait(60) == 5
    assert "the verdict does not count" in yard.log()
    with yard.board() as board:
        (found,) = [each for each in board.field().reviews if each.of == 1]
    assert found.reviewer != "reviewer"
    assert not review_branches(yard)


# ── the commit of a single session lands ─────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("dirty", [False, True])
def test_work_removes_branch_and_worktree_of_a_single_session_that_it_lands(yard: Yard, dirty: bool) -> None:
    yard.set()
    author(yard)
    reviewer(yard, APPROVE)
    run = made(yard)
    if dirty:
        (Path(run["workdir"]) / "mine.txt").write_text("not committed")
    yard.project.write("other.txt", "the base moves")
    yard.project.commit()

    yard.work()

    assert yard.look(1).status is TaskStatus.DONE
    assert yard.project.branches() == ["main"]
    assert worktrees(yard) == ["main"]
    assert not Path(run["workdir"]).exists()
    assert not yard.unreachable()
    (work,) = sessions(yard, 1)
    assert work["outcome"] == "completed"
    kept = yard.project.git("for-each-ref", "refs/genba/rescue", "--format=%(refname)").split()
    assert [yard.project.git("show", f"{ref}:mine.txt") for ref in kept] == (["not committed"] if dirty else [])


def test_work_opens_the_task_of_a_single_session_whose_agent_only_labels(yard: Yard) -> None:
    yard.set()
    worker(yard)
    reviewer(yard, APPROVE)
    yard.task(1, labels=("new",), requires_review=True, reviewer_type="ai")
    run = yard.project.run("worker", "--issue", "1", check=1)

    yard.work(check=1)

    task = yard.look(1)
    assert "worker.txt" in yard.files()
    assert (task.status, task.labels) == (TaskStatus.OPEN, ("seen",))
    assert [phase.session for phase in task.phases] == [run["run"]]
    assert yard.project.branches() == ["main"]


def test_work_goes_on_with_the_next_stage_after_a_single_session_that_it_landed(small_yard: Yard) -> None:
    yard = small_yard
    pipeline(yard, "analyst", "writer", requires_review=True, reviewer_type="ai")
    worker(yard, "writer", closure="close")
    reviewer(yard, APPROVE)
    yard.project.commit("A reviewer")
    yard.task(1, type="manual", requires_review=True, reviewer_type="ai")
    run = yard.project.run("analyst", "--issue", "1", check=1)

    yard.work()

    task = yard.look(1)
    assert task.status is TaskStatus.DONE
    assert task.phases[0].agent == "analyst"
    assert not Path(run["workdir"]).exists()
    assert {"analyst.txt", "writer.txt"} <= set(yard.files())
