import signal
from functools import partial

from genba.domain.tasks.task import TaskStatus
from tests.fleet.yard import Yard
from tests.project import until


def _is_open(yard: Yard, number: int) -> bool:
    return "opened" in yard.log(number)


def _gave_up(yard: Yard) -> bool:
    with yard.board() as board:
        return board.sessions(1)[0].status != "running"


def _has_branch_or_gave_up(yard: Yard, process: int) -> bool:
    locks = (yard.project.root / ".git" / "genba" / "locks" / "branches").glob("*")
    return any(f'"process": {process}' in lock.read_text() for lock in locks) or _gave_up(yard)


def test_a_task_that_is_cancelled_while_its_agent_asks_blocks_no_other(small_yard: Yard) -> None:
    yard = small_yard
    go = yard.project.root.parent / "go"
    yard.set(work={"poll_seconds": 5})
    wait = f"echo $GENBA_ISSUE >> {yard.starts}; until [ -e {go} ]; do sleep 0.05; done"
    turns = {"turns": [{"do": [{"run": wait}], "reply": {"status": "blocked", "question": "which?"}}], "repeat": True}
    yard.agent(script="true", commit=False)
    yard.project.agent("worker", script=turns, parameters={"issue": {"type": "number"}})
    yard.task(1)
    working = yard.start("--until-empty")
    until(lambda: yard.started() == ["1"])

    yard.genba("task", "cancel", "1")
    go.touch()

    working.wait(timeout=60)
    assert yard.look(1).status is TaskStatus.CANCELLED
    with yard.board() as board:
        assert [session.status for session in board.sessions(1)] == ["ended"]
        assert not board.escalations()
    assert not yard.left_running()


def test_a_part_that_killed_its_process_again_and_again_is_given_up_and_its_task_tried_again(small_yard: Yard) -> None:
    yard = small_yard
    marks = yard.project.root.parent / "marks"
    marks.mkdir()
    # The first session waits for ever; the next one works.
    wait = f"if mkdir {marks}/first 2>/dev/null || [ ! -e {marks}/over ]; then sleep 600; fi"
    yard.set(attempts={"max": 3}, work={"grace_seconds": 600})
    yard.agent(script=f"{wait}; echo $GENBA_ISSUE > task-$GENBA_ISSUE.txt")
    yard.task(1)
    for death in range(30):
        working = yard.start()
        until(lambda: yard.started() == ["1"])
        until(partial(_is_open, yard, death))
        until(partial(_has_branch_or_gave_up, yard, working.pid))
        if _gave_up(yard):
            yard.kill(working, signal.SIGINT)
            break
        yard.kill(working)
    (marks / "over").touch()

    yard.work()

    with yard.board() as board:
        first, *more = board.sessions(1)
    assert (first.status, first.outcome) == ("ended", "failed")
    assert "lost" in first.reason
    assert more[-1].outcome == "completed"
    assert yard.look(1).status is TaskStatus.DONE
    until(lambda: not yard.left_running())
    assert (yard.project.root / "task-1.txt").is_file()
