from typing import Any

from genba.domain.fleet.records import EscalationKind, WaitsFor
from genba.domain.tasks.task import TaskStatus
from tests.fleet.yard import Yard, summary


def asks_once(yard: Yard, name: str = "asker", **more: Any) -> None:
    """An agent that asks which port to take, and works with the answer."""
    begun = f"echo $GENBA_ISSUE >> {yard.starts}"
    work = f"{begun}; echo $GENBA_ISSUE > task-$GENBA_ISSUE.txt; git add -A; git commit -qm work"
    question = {"status": "blocked", "reason": "Which port shall it listen on?"}
    turns = [
        {"do": [{"run": begun}], "reply": question, "session": "talk-1", "usage": {"cost_usd": 0.25}},
        {"expect": ["Which port shall it listen on?", "Take 8080."], "do": [{"run": work}], "reply": "done"},
    ]
    yard.project.agent(name, script={"turns": turns}, parameters={"issue": {"type": "number"}}, **more)


def test_a_question_frees_its_worker_and_the_answer_goes_to_the_same_session(yard: Yard) -> None:
    yard.set(work={"workers": 1})
    yard.agent()
    asks_once(yard)
    yard.task(1, assignee="asker", priority="high")
    yard.task(2)

    done = summary(yard.work(check=1))

    assert yard.statuses() == {1: TaskStatus.BLOCKED, 2: TaskStatus.DONE}
    assert yard.started() == ["1", "2"], "the only worker went on with the other task"
    assert [need["kind"] for need in done["needs"]] == ["question"]
    with yard.board() as board:
        (asked,) = board.escalations()
        (waiting,) = board.sessions(1)
    assert asked.kind is EscalationKind.QUESTION
    assert waiting.waits_for is WaitsFor.ANSWER
    listed = yard.genba("decisions").out
    assert "Which port shall it listen on?" in listed
    assert "genba answer 1" in listed + yard.genba("decisions", "show", "1").out

    yard.genba("answer", "1", "Take 8080.")
    yard.work()

    with yard.board() as board:
        (same,) = board.sessions(1)
    assert yard.statuses()[1] is TaskStatus.DONE
    assert (same.run, same.part) == (waiting.run, 3), "it asked, worked, and landed"
    assert yard.started() == ["1", "2", "1"]
    begun = [event for event in yard.project.events(same.run) if event["event"] == "iteration_started"]
    assert len(begun) == 2
    reached = [event for event in yard.project.events(same.run) if event["event"] == "iteration_finished"]
    assert [event["state"]["session_id"] for event in reached] == ["talk-1", "talk-1"], "the same conversation"
    assert not yard.left_running()


def test_no_agent_is_asked_again_while_everything_waits_for_people(small_yard: Yard) -> None:
    yard = small_yard
    yard.set()
    asks_once(yard, "worker")
    yard.task(1)
    yard.task(2, dependencies=(1,))
    yard.work(check=1)
    begun = yard.started()

    again = summary(yard.work(check=1))

    assert begun == yard.started() == ["1"]
    assert again["ended"] == "empty"
    assert [need["task"] for need in again["needs"]] == [1]


def test_a_rejected_question_ends_the_session_and_leaves_the_task_to_a_person(small_yard: Yard) -> None:
    yard = small_yard
    yard.set()
    asks_once(yard, "worker")
    yard.task(1)
    yard.work(check=1)

    yard.genba("reject", "1", "--reason", "Nobody knows yet.")
    yard.work(check=None)

    assert yard.statuses()[1] is TaskStatus.BLOCKED
    assert yard.started() == ["1"]
    with yard.board() as board:
        (ended,) = board.sessions(1)
    assert ended.status == "ended"
    assert "Nobody knows yet." in ended.reason
