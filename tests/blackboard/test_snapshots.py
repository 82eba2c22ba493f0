"""What a connection is shown: its task, its subtasks, how far it has come, what was judged, and why it must stop."""

from collections.abc import Callable

import msgspec
import pytest

from genba.blackboard.fleet.fleet_board import FleetBoard
from genba.blackboard.tasks.board import Blackboard
from genba.blackboard.workflow.connection_values import WorkflowLimits
from genba.blackboard.workflow.workflow_board import WorkflowBoard
from genba.domain.errors import NotFoundError
from genba.domain.fleet.records import Executor, Purpose, SegmentEnd, WaitsFor
from genba.domain.goals.goal import FrozenGoal, GoalLevel, GoalSource, TestsPass
from genba.domain.goals.verification import GoalResult, RejectionReason, VerdictStatus, Verification
from genba.domain.sessions.evidence import CheckResult, CheckStatus
from genba.domain.tasks.task import Blocker, BlockerKind, StatusChange, TaskDraft, TaskStatus
from genba.domain.workflow.actions import ExitReason, Hierarchy, Note, Phase, SubtaskDraft
from genba.testing.conformance import a_verification
from tests.blackboard.acting import HUMAN, MANAGER, ORCHESTRATOR, WORKER, add, complete
from tests.blackboard.connecting import at_work, begin, external_agent, sit_down
from tests.blackboard.fleets import begin as start_part
from tests.blackboard.fleets import fail


@pytest.fixture
def workflow(board: Blackboard) -> WorkflowBoard:
    return WorkflowBoard(board)


@pytest.fixture
def fleet(board: Blackboard) -> FleetBoard:
    return FleetBoard(board)


def red(commit: str) -> Verification:
    goal = FrozenGoal(
        level=GoalLevel.DOD,
        source=GoalSource.PROJECT_CONFIG,
        origin="config",
        goal=TestsPass(command=("pytest", "-q")),
    )
    result = CheckResult("tests_pass", CheckStatus.FAILED, "exit 1", "x" * 9000 + "assert 1 == 2")
    return msgspec.structs.replace(
        a_verification(commit, VerdictStatus.REJECTED),
        reason=RejectionReason.GOALS_NOT_MET,
        results=(GoalResult(goal=goal, result=result),),
    )


def test_a_new_instance_sees_its_task_and_has_to_fetch_it(board: Blackboard, workflow: WorkflowBoard) -> None:
    session = begin(board)
    connection = sit_down(board, session)
    limits = WorkflowLimits(suspend_seconds=7, max_repeats=5, max_reworks=3, max_subtasks=4)
    seen = workflow.snapshot(connection.id, limits, waited_seconds=2.5, repeats=4)
    assert seen.task is not None
    assert (seen.agent, seen.hierarchy, seen.spawned) == ("writer", Hierarchy.WORKER, True)
    assert (seen.task.number, seen.task.status, seen.phase) == (session.task, TaskStatus.IN_PROGRESS, Phase.NEW)
    assert (seen.waited_seconds, seen.repeats, seen.suspend_seconds, seen.max_repeats) == (2.5, 4, 7, 5)
    assert (seen.max_reworks, seen.max_subtasks, seen.may_split, seen.pieces) == (3, 4, True, ())
    assert (seen.ending, seen.evidence, seen.verified, seen.messages, seen.atomic) == (None, None, "", 0, False)
    with pytest.raises(NotFoundError):
        workflow.snapshot("no-such-connection")


def test_an_external_agent_without_a_task_sees_nothing(board: Blackboard, workflow: WorkflowBoard) -> None:
    seen = workflow.snapshot(external_agent(board).id)
    assert (seen.task, seen.spawned, seen.ending, seen.pieces) == (None, False, None, ())


def test_phases_only_go_forward_and_belong_to_one_session(
    board: Blackboard, workflow: WorkflowBoard, fleet: FleetBoard
) -> None:
    session, connection = at_work(board)
    for phase, seen in (
        (Phase.PLANNED, Phase.PLANNED),
        (Phase.FETCHED, Phase.PLANNED),
        (Phase.EXECUTING, Phase.EXECUTING),
        (Phase.EXECUTING, Phase.EXECUTING),
    ):
        workflow.mark(session.task, session.run, "writer", phase)
        assert workflow.snapshot(connection.id).phase is seen
    for _ in range(2):
        workflow.mark_atomic(session.task, session.run, "writer")
    assert workflow.snapshot(connection.id).atomic
    assert [event.data["phase"] for event in board.events(session.task) if event.kind == "phase_reached"] == [
        "task_fetched",
        "subtasks_created",
        "executing",
        "atomic",
    ]
    fail(fleet, session)
    again = sit_down(board, begin(board, task=session.task, attempt=2))
    seen_again = workflow.snapshot(again.id)
    assert (seen_again.phase, seen_again.atomic) == (Phase.NEW, False)
    with pytest.raises(NotFoundError):
        workflow.mark(session.task, "no-such-run", "writer", Phase.FETCHED)


def test_a_note_is_never_taken_for_a_phase(board: Blackboard, workflow: WorkflowBoard) -> None:
    session, connection = at_work(board)
    for forged in ("workflow:completed", "Workflow:completed", "workflow:atomic", "workflow:nonsense"):
        note = msgspec.structs.replace(workflow_note(), progress=forged)
        workflow.save_note(session.task, session.run, "writer", note)
    seen = workflow.snapshot(connection.id)
    assert (seen.phase, seen.atomic) == (Phase.FETCHED, False)
    assert len(workflow.notes(session.task)) == 4


def workflow_note() -> Note:
    return Note(progress="half", findings="a bug", blockers="", next_steps="move it")


def test_notes_are_kept_in_order_and_the_same_once(board: Blackboard, workflow: WorkflowBoard) -> None:
    session, _ = at_work(board)
    for _ in range(2):
        workflow.save_note(session.task, session.run, "writer", workflow_note())
    for at in range(3):
        workflow.save_note(session.task, session.run, "writer", Note(progress=f"{at} {'x' * 50_000}"))
    found = workflow.notes(session.task)
    assert [note.progress[:4] for note in found] == ["half", "0 xx", "1 xx", "2 xx"]
    assert (found[0].agent, found[0].findings, found[0].next_steps) == ("writer", "a bug", "move it")
    assert all(len(note.progress) <= 12_000 for note in found)
    assert workflow.notes(session.task, 2) == found[-2:]


def test_a_worker_sees_the_steps_of_its_plan_and_a_manager_the_parts(
    board: Blackboard, workflow: WorkflowBoard
) -> None:
    session, connection = at_work(board)
    drafts = [SubtaskDraft(title="One"), SubtaskDraft(title="Two")]
    steps = workflow.create_subtasks(session.task, drafts, in_plan=True, actor=WORKER)
    board.add(TaskDraft(title="By hand", parent=session.task), HUMAN)
    assert workflow.snapshot(connection.id).pieces == steps

    managing, connection = at_work(board, Purpose.MANAGE)
    parts = workflow.create_subtasks(managing.task, drafts, in_plan=False, actor=MANAGER)
    review = board.add(TaskDraft(title="Review", parent=managing.task, review_of=managing.task), HUMAN)
    seen = workflow.snapshot(connection.id)
    assert (seen.hierarchy, seen.pieces) == (Hierarchy.MANAGER, parts)
    assert review.number not in [piece.number for piece in seen.pieces]


def test_red_is_shown_with_its_reasons_until_a_newer_verdict(board: Blackboard, workflow: WorkflowBoard) -> None:
    session, connection = at_work(board)
    board.record_verification(session.task, session.run, red("c1"))
    board.record_verification(session.task, session.run, red("c2"))
    seen = workflow.snapshot(connection.id, WorkflowLimits(max_reworks=9))
    assert seen.evidence is not None
    assert (seen.evidence.task, seen.evidence.commit, seen.evidence.verdict) == (session.task, "c2", "goals_not_met")
    assert seen.evidence.failing == ("tests_pass: pytest -q: exit 1",)
    assert seen.evidence.output.endswith("assert 1 == 2")
    assert len(seen.evidence.output) == 4000
    assert (seen.evidence.round, seen.evidence.rounds, seen.reworks, seen.verified) == (2, 9, 2, "")

    board.record_verification(session.task, session.run, a_verification("c3"))
    seen = workflow.snapshot(connection.id)
    assert (seen.evidence, seen.verified, seen.reworks) == (None, "c3", 2)


def test_a_claim_is_completed_only_while_its_newest_verdict_is_green(
    board: Blackboard, workflow: WorkflowBoard
) -> None:
    session, _ = at_work(board)
    workflow.mark(session.task, session.run, "writer", Phase.COMPLETED)
    assert not workflow.standing(session.run).completed
    board.record_verification(session.task, session.run, a_verification("c1"))
    assert workflow.standing(session.run).completed
    board.record_verification(session.task, session.run, red("c2"))
    assert not workflow.standing(session.run).completed


def test_the_verdict_on_the_step_in_progress_comes_before_that_on_the_task(
    board: Blackboard, workflow: WorkflowBoard
) -> None:
    session, connection = at_work(board)
    (step,) = workflow.create_subtasks(session.task, [SubtaskDraft(title="One")], in_plan=True, actor=WORKER)
    board.record_verification(session.task, session.run, red("c1"))
    workflow.start_step(session.task, step.number, run=session.run, actor=WORKER)
    board.record_verification(step.number, session.run, red("c2"))
    seen = workflow.snapshot(connection.id)
    assert seen.evidence is not None
    assert (seen.evidence.task, seen.evidence.round, seen.reworks) == (step.number, 1, 2)
    board.record_verification(step.number, session.run, a_verification("c3"))
    workflow.finish_step(session.task, step.number, run=session.run, actor=WORKER)
    after = workflow.snapshot(connection.id).evidence
    assert after is not None
    assert after.task == session.task


def test_the_prompt_of_another_run_is_not_shown(board: Blackboard, workflow: WorkflowBoard, fleet: FleetBoard) -> None:
    session, _ = at_work(board)
    board.record_verification(session.task, session.run, red("c1"))
    fail(fleet, session)
    connection = sit_down(board, begin(board, task=session.task, attempt=2))
    seen = workflow.snapshot(connection.id)
    assert (seen.evidence, seen.reworks) == (None, 0)


def test_a_verdict_of_another_version_is_reported_in_plain_words(board: Blackboard, workflow: WorkflowBoard) -> None:
    session, connection = at_work(board)
    board.record_verification(session.task, session.run, red("c1"))
    raw = board.store.engine.raw_connection()
    try:
        raw.cursor().execute('UPDATE verifications SET data = \'{"status": "new words"}\'')
        raw.commit()
    finally:
        raw.close()
    seen = workflow.snapshot(connection.id)
    assert seen.evidence is not None
    assert (seen.evidence.verdict, seen.evidence.commit) == ("rejected", "c1")


def test_a_manager_may_claim_again_once_a_part_that_was_made_after_the_red_is_done(
    board: Blackboard, workflow: WorkflowBoard
) -> None:
    session, connection = at_work(board, Purpose.MANAGE)
    done = board.add(TaskDraft(title="Before", parent=session.task), HUMAN).number
    complete(board, done)
    board.record_verification(session.task, session.run, red("c1"))
    assert not workflow.snapshot(connection.id).answered
    (part,) = workflow.create_subtasks(
        session.task, [SubtaskDraft(title="Move")], in_plan=False, actor=MANAGER, more=True
    )
    workflow.assign(part.number, "writer", actor=MANAGER)
    assert not workflow.snapshot(connection.id).answered
    complete(board, part.number)
    assert workflow.snapshot(connection.id).answered


def test_a_manager_sees_attempts_and_depth(board: Blackboard, workflow: WorkflowBoard, fleet: FleetBoard) -> None:
    top = add(board)
    session, connection = at_work(board, Purpose.MANAGE, task=add(board, "Middle", top))
    (part,) = workflow.create_subtasks(session.task, [SubtaskDraft(title="Part")], in_plan=False, actor=MANAGER)
    workflow.assign(part.number, "writer", actor=MANAGER)
    fail(fleet, start_part(fleet, part.number))
    seen = workflow.snapshot(connection.id)
    assert (seen.pieces[0].attempts, seen.may_split) == (1, True)
    assert not workflow.snapshot(connection.id, WorkflowLimits(max_depth=1)).may_split


def test_a_manager_is_in_the_way_when_a_part_waits_for_its_worker(
    board: Blackboard, workflow: WorkflowBoard, fleet: FleetBoard
) -> None:
    fleet.register(Executor(id="here", host="h", process=1, workers=1))
    session, connection = at_work(board, Purpose.MANAGE)
    one, two = workflow.create_subtasks(
        session.task,
        [SubtaskDraft(title="One", local_id="a"), SubtaskDraft(title="Two", depends_on=("a",))],
        in_plan=False,
        actor=MANAGER,
    )
    workflow.assign(two.number, "writer", actor=MANAGER)
    assert not workflow.snapshot(connection.id).worker_needed
    workflow.assign(one.number, "writer", actor=MANAGER)
    assert workflow.snapshot(connection.id).worker_needed
    fleet.register(Executor(id="here", host="h", process=1, workers=2))
    assert not workflow.snapshot(connection.id).worker_needed
    start_part(fleet, one.number)
    assert not workflow.snapshot(connection.id).worker_needed


def stop_all(board: Blackboard, task: int) -> None:
    FleetBoard(board).stop_all(True, HUMAN)


def hold_task(board: Blackboard, task: int) -> None:
    FleetBoard(board).hold(task, True, HUMAN)


def hold_parent(board: Blackboard, task: int) -> None:
    FleetBoard(board).hold(board.get(task).parent or 0, True, HUMAN)


def cancel_task(board: Blackboard, task: int) -> None:
    board.change_status(task, StatusChange(to=TaskStatus.CANCELLED, actor=HUMAN))


def wait_for(what: WaitsFor) -> Callable[[Blackboard, int], None]:
    def end(board: Blackboard, task: int) -> None:
        run = FleetBoard(board).sessions(task)[-1].run
        FleetBoard(board).end_part(SegmentEnd(run=run, part=1, waits_for=what))

    return end


def end_with(outcome: str) -> Callable[[Blackboard, int], None]:
    def end(board: Blackboard, task: int) -> None:
        run = FleetBoard(board).sessions(task)[-1].run
        FleetBoard(board).end_part(SegmentEnd(run=run, part=1, outcome=outcome))

    return end


def take_over(board: Blackboard, task: int) -> None:
    end_with("failed")(board, task)
    board.change_status(task, StatusChange(to=TaskStatus.OPEN, actor=ORCHESTRATOR))
    begin(board, task=task, attempt=2)


@pytest.mark.parametrize(
    ("happens", "reason"),
    [
        (stop_all, ExitReason.PAUSED),
        (hold_task, ExitReason.PAUSED),
        (hold_parent, ExitReason.PAUSED),
        (cancel_task, ExitReason.CANCELLED),
        (wait_for(WaitsFor.PARTS), ExitReason.SUSPENDED),
        (wait_for(WaitsFor.REVIEW), ExitReason.COMPLETED),
        (wait_for(WaitsFor.BUDGET), ExitReason.BUDGET),
        (wait_for(WaitsFor.RESUME), ExitReason.PAUSED),
        (wait_for(WaitsFor.ANSWER), ExitReason.BLOCKED),
        (end_with("budget_exhausted"), ExitReason.BUDGET),
        (end_with("completed"), ExitReason.COMPLETED),
        (end_with("failed"), ExitReason.TAKEN),
        (take_over, ExitReason.TAKEN),
    ],
)
def test_a_stop_names_its_reason(
    board: Blackboard, workflow: WorkflowBoard, happens: Callable[[Blackboard, int], None], reason: ExitReason
) -> None:
    session, connection = at_work(board, task=add(board, "Part", add(board)))
    assert workflow.snapshot(connection.id).ending is None
    happens(board, session.task)
    assert workflow.snapshot(connection.id).ending is reason


def test_a_task_that_is_blocked_speaks_for_itself(board: Blackboard, workflow: WorkflowBoard) -> None:
    session, connection = at_work(board)
    blocker = Blocker(BlockerKind.NEEDS_INPUT, "which?")
    board.change_status(session.task, StatusChange(to=TaskStatus.BLOCKED, actor=HUMAN, blocker=blocker))
    seen = workflow.snapshot(connection.id)
    assert seen.task is not None
    assert (seen.ending, seen.task.status, seen.task.blocker) == (None, TaskStatus.BLOCKED, blocker)
