from collections import Counter
from typing import Any

import pytest

from genba.domain.tasks.task import TaskStatus
from tests.fleet.chaos import Chaos, on_both
from tests.fleet.yard import Yard

VERDICT = {"status": "completed", "verdict": "approve", "findings": [], "summary": "Good."}
PLAN = {
    "status": "completed",
    "summary": "One after the other.",
    "subtasks": [
        {"key": "api", "title": "Add the endpoint", "depends_on": []},
        {"key": "form", "title": "Show the form", "depends_on": ["api"]},
    ],
}


def answering(yard: Yard, name: str, reply: dict[str, Any]) -> None:
    """An agent that says that it began, and gives an answer."""
    field = "verdict" if "verdict" in reply else "subtasks"
    completion = {"type": "structuredSignal", "config": {"outputSchema": {"type": "object", "required": [field]}}}
    turns = {"turns": [{"do": [{"run": f"echo {name} >> {yard.starts}"}], "reply": reply}], "repeat": True}
    yard.project.agent(name, script=turns, parameters={"issue": {"type": "number"}}, completion=completion)


REVIEW = (
    "board:ask_review:1:after",
    "part:open:2:inside",
    "part:iterate:2:inside",
    "part:end:1:inside",
    "board:verdict:1:before",
    "board:verdict:1:after",
    "board:end_part:2:before",
    "board:end_part:2:after",
)


@pytest.mark.parametrize(("yard", "boundary"), on_both(REVIEW), indirect=["yard"])
def test_a_reviewer_whose_worker_dies_gives_its_verdict_once(yard: Yard, boundary: str) -> None:
    chaos = Chaos(yard, tasks=0, work={**yard.settings["work"], "workers": 1})
    answering(yard, "reviewer", VERDICT)
    yard.task(1, requires_review=True, reviewer_type="ai")

    assert chaos.die_at(boundary) == -9, chaos.said

    chaos.check_sane()
    yard.work()
    assert yard.statuses() == {1: TaskStatus.DONE, 2: TaskStatus.DONE}
    assert yard.started() == ["1", "reviewer"]
    assert chaos.merges() == Counter([1])
    assert yard.project.branches() == ["main"]
    chaos.check_commits()
    chaos.check_no_process()


PLANNING = (
    "part:iterate:1:inside",
    "board:propose:1:before",
    "board:propose:1:after",
    "board:end_part:1:before",
    "board:end_part:1:after",
    "board:create_parts:1:before",
    "board:create_parts:1:after",
)
COMING_HOME = (
    "turn:land:1:inside",
    "engine:enqueue_in:4:before",
    "part:open:4:inside",
    "part:open:4:after",
    "part:verify:3:inside",
    "board:end_part:6:before",
    "turn:land:3:inside",
    "board:end_part:7:before",
)


@pytest.mark.parametrize(("yard", "boundary"), on_both(PLANNING + COMING_HOME), indirect=["yard"])
def test_a_task_in_parts_whose_worker_dies_is_planned_once_and_comes_home_once(yard: Yard, boundary: str) -> None:
    chaos = Chaos(yard, tasks=0, work={**yard.settings["work"], "workers": 1}, decompose={"approval": "auto"})
    answering(yard, "planner", PLAN)
    yard.task(1, "Add a login", decompose=True)

    assert chaos.die_at(boundary) == -9, chaos.said

    chaos.check_sane()
    yard.work()
    assert yard.statuses() == dict.fromkeys((1, 2, 3), TaskStatus.DONE)
    assert yard.started() == ["planner", "2", "3"]
    assert chaos.merges() == Counter([1]), "main sees the whole once"
    inside = [line for line in yard.project.git("log", "--format=%s", "main").splitlines() if line.startswith("Merge")]
    assert len(inside) == 3, inside
    assert {"task-2.txt", "task-3.txt"} <= set(yard.files())
    assert yard.project.branches() == ["main"]
    chaos.check_commits()
    chaos.check_no_process()
