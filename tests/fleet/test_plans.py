from typing import Any

import pytest

from genba.domain.fleet.records import EscalationKind, Purpose
from genba.domain.goals.goal import FileExists
from genba.domain.tasks.task import TaskStatus
from tests.fleet.yard import Yard, summary

ANSWERS = {"type": "structuredSignal", "config": {"outputSchema": {"type": "object", "required": ["subtasks"]}}}


def part(key: str, title: str, *after: str, **more: Any) -> dict[str, Any]:
    return {"key": key, "title": title, "depends_on": list(after), **more}


def proposal(*parts: dict[str, Any]) -> dict[str, Any]:
    return {"status": "completed", "summary": "One after the other.", "subtasks": list(parts)}


TWO = proposal(part("api", "Add the endpoint"), part("form", "Show the form", "api"))
CIRCLE = proposal(part("api", "Add the endpoint", "form"), part("form", "Show the form", "api"))
TWICE = proposal(part("api", "Add the endpoint"), part("api", "Add the endpoint"))


def planner(yard: Yard, *replies: dict[str, Any], do: str = "true") -> None:
    run = f"echo plan >> {yard.starts}; {do}"
    turns = [{"do": [{"run": run}], "reply": reply} for reply in replies]
    yard.project.agent(
        "planner",
        script={"turns": turns, "repeat": True},
        parameters={"issue": {"type": "number"}},
        completion=ANSWERS,
        limits={"maxIterations": 4},
    )


def test_an_approved_plan_becomes_parts_that_land_on_the_branch_of_the_task_and_then_on_main(yard: Yard) -> None:
    yard.settings["dod"] = [{"custom_script": "! ls | grep -q broken"}]
    yard.set(work={"workers": 1})
    yard.agent()
    planner(yard, TWO)
    yard.task(1, "Add a login", decompose=True)

    waiting = summary(yard.work(check=1))

    assert yard.started() == ["plan"]
    assert [need["command"] for need in waiting["needs"]] == ["genba approve 1"]
    shown = yard.genba("decisions", "show", "1").out
    assert "api" in shown
    assert "Show the form" in shown
    assert "after" in shown, "what waits for what is shown"
    assert not [name for name in yard.project.branches() if "plan" in name], "a plan leaves no branch"

    yard.genba("approve", "1")
    yard.work()

    assert set(yard.statuses().values()) == {TaskStatus.DONE}
    parts = [yard.look(number) for number in (2, 3)]
    assert [task.parent for task in parts] == [1, 1]
    assert parts[1].dependencies == (2,)
    assert yard.started() == ["plan", "2", "3"], "the whole was verified first, and nobody had to be asked"
    merges = [line for line in yard.landed() if line.startswith("Merge")]
    assert merges == ["Merge Add a login (#1)"], "main sees the whole once"
    assert {"task-2.txt", "task-3.txt"} <= set(yard.files())
    with yard.board() as board:
        purposes = [session.purpose for session in board.sessions(1)]
    assert purposes == [Purpose.PLAN, Purpose.INTEGRATE]
    assert not yard.unreachable()
    assert not yard.left_running()


def test_what_a_planner_commits_is_not_used_and_its_plan_counts(small_yard: Yard) -> None:
    yard = small_yard
    yard.set()
    yard.agent()
    planner(yard, TWO, do="echo x > mine.txt; git add -A; git commit -qm mine")
    yard.task(1, decompose=True)

    done = yard.work(check=1)

    assert "the engine met an error" not in done.err
    assert any("proposes 2 parts" in line for line in done.err.splitlines()), done.err
    assert yard.started() == ["plan"]
    assert not [name for name in yard.project.branches() if "plan" in name]


def test_a_whole_that_is_red_asks_its_agent(small_yard: Yard) -> None:
    yard = small_yard
    yard.set(work={"workers": 1}, decompose={"approval": "auto"})
    fixes = "if [ $GENBA_ISSUE = 1 ]; then touch whole.txt; else echo $GENBA_ISSUE > task-$GENBA_ISSUE.txt; fi"
    yard.agent(script=fixes)
    planner(yard, TWO)
    yard.task(1, "Add a login", decompose=True, goals=(FileExists(path="whole.txt"),))

    yard.work()

    assert set(yard.statuses().values()) == {TaskStatus.DONE}
    assert yard.started() == ["plan", "2", "3", "1"]
    assert {"task-2.txt", "task-3.txt", "whole.txt"} <= set(yard.files())


def test_parts_are_reviewed_like_every_task_of_their_type(small_yard: Yard) -> None:
    yard = small_yard
    yard.settings["task_types"] = {"docs": {"requires_review": True, "reviewer_type": "human"}}
    yard.set(work={"workers": 1}, decompose={"approval": "auto"})
    yard.agent()
    planner(yard, proposal(part("api", "Add the endpoint"), part("docs", "Describe it", type="docs")))
    yard.task(1, "Add a login", decompose=True)

    yard.work(check=1)

    assert [yard.look(number).requires_review for number in (2, 3)] == [False, True]
    assert yard.look(3).status is TaskStatus.REVIEW
    yard.genba("approve", "3")
    yard.work()
    assert set(yard.statuses().values()) == {TaskStatus.DONE}


@pytest.mark.parametrize(
    ("wrong", "words"), [(CIRCLE, "in a circle: api → form → api"), (TWICE, '"api" is the key of')]
)
def test_a_plan_that_cannot_be_used_is_asked_for_again(small_yard: Yard, wrong: dict[str, Any], words: str) -> None:
    yard = small_yard
    yard.set(work={"workers": 1}, decompose={"approval": "auto"})
    yard.agent()
    planner(yard, wrong, TWO)
    yard.task(1, "Add a login", decompose=True)

    yard.work()

    assert set(yard.statuses().values()) == {TaskStatus.DONE}
    with yard.board() as board:
        run = board.sessions(1)[0].run
    result = yard.project.prompts(run)
    assert len(result) == 2
    assert words in result[1]
    assert "the committed work alone" not in result[1], "nobody speaks of commits to a planner"


def test_a_planner_without_a_plan_ends_with_a_person(small_yard: Yard) -> None:
    yard = small_yard
    yard.set(attempts={"max": 1, "per_agent": 1})
    yard.agent()
    planner(yard, CIRCLE)
    yard.task(1, "Add a login", decompose=True)

    yard.work(check=1)

    assert yard.started() == ["plan"] * 3
    with yard.board() as board:
        (asked,) = board.escalations()
    assert asked.kind is EscalationKind.ATTEMPTS
    assert "in a circle" in str(asked.evidence)
    assert not [name for name in yard.project.branches() if "plan" in name]


def test_a_rejected_plan_is_made_again_with_the_reason(small_yard: Yard) -> None:
    yard = small_yard
    yard.set(work={"workers": 1})
    yard.agent()
    planner(yard, TWO)
    yard.task(1, "Add a login", decompose=True)
    yard.work(check=1)

    yard.genba("reject", "1", "--reason", "The form belongs to the endpoint.")
    yard.work(check=1)

    with yard.board() as board:
        runs = [session.run for session in board.sessions(1)]
    assert len(runs) == 2
    assert "The form belongs to the endpoint." in yard.project.prompts(runs[-1])[0]
    yard.genba("approve", "1")
    yard.work()
    assert set(yard.statuses().values()) == {TaskStatus.DONE}


def test_a_planner_that_cannot_begin_is_brought_before_a_person(small_yard: Yard) -> None:
    yard = small_yard
    yard.set()
    yard.agent()
    yard.project.agent("planner", adapter={"type": "custom", "command": ["no-such-program-here"]}, completion=ANSWERS)
    yard.task(1, "Add a login", decompose=True)

    result = summary(yard.work(check=1))

    assert [need["kind"] for need in result["needs"]] == ["attempts"]
    assert result["needs"][0]["question"].startswith("planner cannot begin: ")
