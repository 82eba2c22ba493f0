"""Agents that fail and agents that hang: attempts, another agent with a note, and in the end a person."""

from genba.domain.fleet.records import EscalationKind
from genba.domain.tasks.task import TaskStatus
from tests.fleet.yard import Yard, summary

NEVER = {"custom_script": "test -f wanted.txt"}


def test_an_agent_that_always_fails_is_followed_by_another_and_then_by_a_person(yard: Yard) -> None:
    yard.settings["dod"] = [NEVER]
    yard.set(attempts={"per_agent": 1, "alternates": ["second"], "max": 2})
    yard.agent()
    yard.agent("second")
    yard.task(1)

    done = summary(yard.work(check=1))

    assert yard.started() == ["1", "1"]
    assert yard.statuses() == {1: TaskStatus.BLOCKED}
    with yard.board() as board:
        (asked,) = board.escalations()
        first, second = board.sessions(1)
        notes = board.handovers(1)
    assert [first.agent, second.agent] == ["worker", "second"]
    assert first.branch == second.branch, "the second goes on where the first stopped"
    assert asked.kind is EscalationKind.ATTEMPTS
    assert [one["agent"] for one in asked.evidence["tried"]] == ["worker", "second"]
    assert [need["kind"] for need in done["needs"]] == ["attempts"]
    result = yard.project.prompts(second.run)[0]
    assert "What was tried before" in result
    assert "attempt 1 by worker: incomplete" in result
    assert "custom_script" in result, "the goal that failed is named"
    assert first.branch in result
    assert len(notes) == 2
    assert "attempt 2 by second" in notes[-1]
    shown = yard.genba("decisions", "show", "1").out
    assert "worker" in shown
    assert "second" in shown
    assert "genba approve 1" in shown
    assert not yard.left_running()


def test_a_person_who_approves_opens_it_again_with_what_they_say(small_yard: Yard) -> None:
    yard = small_yard
    yard.settings["dod"] = [NEVER]
    yard.set(attempts={"per_agent": 1, "max": 1})
    knows = "test -f ../../../told && touch wanted.txt; echo try >> tries.txt"
    yard.agent(script=knows.replace("../../../told", str(yard.project.root.parent / "told")))
    yard.task(1)
    yard.work(check=1)

    (yard.project.root.parent / "told").touch()
    yard.genba("answer", "1", "The file is wanted.txt.")
    yard.work()

    assert yard.statuses() == {1: TaskStatus.DONE}
    with yard.board() as board:
        runs = [session.run for session in board.sessions(1)]
    assert len(runs) == 2
    assert "The file is wanted.txt." in yard.project.prompts(runs[-1])[0]


def test_an_agent_that_hangs_is_ended_and_counts_as_a_failed_attempt(small_yard: Yard) -> None:
    yard = small_yard
    yard.set(attempts={"per_agent": 1, "alternates": ["second"], "max": 2})
    yard.agent(script="sleep 600", limits={"idleTimeoutSeconds": 1, "retries": 0})
    yard.agent("second")
    yard.task(1)

    yard.work()

    assert yard.statuses() == {1: TaskStatus.DONE}
    with yard.board() as board:
        first, second = board.sessions(1)
    assert first.outcome == "failed"
    assert "silent" in first.reason or "no output" in first.reason or "1 s" in first.reason, first.reason
    assert second.outcome == "completed"
    assert not yard.left_running()


def test_an_agent_that_cannot_be_found_is_reported_and_no_agent_starts(small_yard: Yard) -> None:
    yard = small_yard
    yard.set(work={"agent": "nobody"})
    yard.agent()
    yard.task(1)

    done = summary(yard.work(check=1))

    assert yard.started() == []
    (wait,) = [one for one in done["waits"] if one["task"] == 1]
    assert 'work.agent names "nobody", and there is no such agent' in wait["why"]
    assert "genba agent check nobody" in wait["why"]


def test_an_assignee_without_an_adapter_is_reported(small_yard: Yard) -> None:
    yard = small_yard
    yard.set()
    yard.agent()
    yard.project.agent("bare", adapter=None, parameters={"issue": {"type": "number"}})
    yard.task(1, assignee="bare")

    done = summary(yard.work(check=1))

    assert yard.started() == []
    assert 'it is assigned to "bare", and there is no such agent' in str(done["waits"])


def test_an_agent_that_cannot_be_read_is_named_when_the_fleet_opens(small_yard: Yard) -> None:
    yard = small_yard
    yard.set()
    yard.agent()
    yard.project.agent("broken", completion={"type": "structuredSignal"})

    done = yard.work()

    assert "broken cannot be used" in done.err
    assert "genba agent check broken" in done.err


def test_a_task_that_depends_on_a_cancelled_one_is_reported_with_what_to_type(small_yard: Yard) -> None:
    yard = small_yard
    yard.set()
    yard.agent()
    yard.task(1)
    yard.task(2, dependencies=(1,))
    yard.genba("task", "cancel", "1")

    done = summary(yard.work(check=1))

    assert yard.started() == []
    assert "genba task depend 2 --remove 1" in str(done["waits"])
