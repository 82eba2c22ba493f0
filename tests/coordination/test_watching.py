from pathlib import Path

from genba.blackboard.fleet.fleet_board import FleetBoard
from genba.blackboard.tasks.board import Blackboard
from genba.coordination.scheduler.progress import Watch
from genba.domain.fleet.merge_queue import QueueEvent
from genba.domain.fleet.progress import WorkEndReason
from genba.domain.tasks.task import StatusChange, TaskDraft, TaskStatus
from tests.blackboard.acting import HUMAN, ORCHESTRATOR
from tests.blackboard.fleets import begin, fail, in_review


def test_work_that_landed_and_was_not_closed_before_the_end_does_not_wait(tmp_path: Path) -> None:
    with Blackboard.open(str(tmp_path / "board.db"), "shop") as board:
        fleet = FleetBoard(board)
        watch = Watch(fleet, "here", 2, "shop", lambda _event: None)
        number = in_review(board, fleet, reviewed=False).task
        watch.see(fleet.field(), ())

        watch.hear_queue(QueueEvent(target="main", kind="merged", tasks=(number,), detail="3f9c2ab0d1"))

        end = watch.summary(WorkEndReason.SUSPENDED).tasks[0]
        assert (end.status, end.detail, end.merged) == ("suspended", "genba work closes it", "3f9c2ab0d1")


def test_a_task_whose_phase_landed_before_the_end_is_open_and_not_suspended(tmp_path: Path) -> None:
    with Blackboard.open(str(tmp_path / "board.db"), "shop") as board:
        fleet = FleetBoard(board)
        watch = Watch(fleet, "here", 2, "shop", lambda _event: None)
        session = in_review(board, fleet, reviewed=False)
        watch.see(fleet.field(), ())
        watch.hear_queue(QueueEvent(target="main", kind="merged", tasks=(session.task,), detail="3f9c2ab0d1"))
        change = StatusChange(
            to=TaskStatus.OPEN,
            actor=ORCHESTRATOR,
            session=session.run,
            commit="c1",
            finalized="merged c1",
            phase="writer",
        )
        board.change_status(session.task, change)
        watch.see(fleet.field(), ())

        end = watch.summary(WorkEndReason.SUSPENDED).tasks[0]

        assert (end.status, end.detail) == ("open", "a phase has landed; genba work goes on with it")


def test_sessions_that_came_to_nothing_are_counted_though_their_task_did_not_fail(tmp_path: Path) -> None:
    with Blackboard.open(str(tmp_path / "board.db"), "shop") as board:
        fleet = FleetBoard(board)
        watch = Watch(fleet, "here", 2, "shop", lambda _event: None)
        number = board.add(TaskDraft(title="Work"), HUMAN).number
        fail(fleet, begin(fleet, number))
        session = begin(fleet, number, attempt=2)
        watch.see(fleet.field(), ())
        watch.touched[number] = None

        result = watch.summary(WorkEndReason.SUSPENDED)

        assert (result.sessions, result.sessions_failed, result.failed, result.suspended) == (2, 1, 0, 1)
        assert session.status == "running"


def test_what_is_stuck_is_reported_in_one_sentence_and_once(tmp_path: Path) -> None:
    with Blackboard.open(str(tmp_path / "board.db"), "shop") as board:
        lines: list[str] = []
        watch = Watch(FleetBoard(board), "here", 2, "shop", lambda event: lines.append(event.detail))
        stuck = QueueEvent(target="main", kind="stuck", tasks=(1,), detail="main was not moved: it is held\nhint: wait")

        watch.hear_queue(stuck)
        watch.hear_queue(stuck)

        assert lines == ["main was not moved: it is held; wait"]
