"""What those see who only watch a fleet, on both databases."""

from genba.blackboard.fleet.fleet_board import FleetBoard
from genba.blackboard.tasks.board import Blackboard
from genba.blackboard.views import fleet_views, graph_views
from genba.domain.fleet.records import Cause, EntryStatus, MergeEntry, SegmentEnd, Spending, WaitsFor
from genba.domain.tasks.task import TaskDraft
from genba.domain.views.agents import AgentRecord
from tests.blackboard.acting import HUMAN
from tests.blackboard.fleets import begin, fail, go_on, in_review, wait


def added(board: Blackboard, title: str = "Work", **more: object) -> int:
    return board.add(TaskDraft(title=title, **more), HUMAN).number  # type: ignore[arg-type]


def test_each_part_of_a_session_is_seen_from_its_beginning_to_its_end(board: Blackboard) -> None:
    fleet = FleetBoard(board)
    session = wait(fleet, begin(fleet, added(board)), WaitsFor.ANSWER)
    fleet.continue_(go_on(session, Cause.ANSWER), executor="there", host="h")
    fleet.end_part(SegmentEnd(run=session.run, part=2, outcome="completed"))

    marks = fleet.store.read(lambda tx: fleet_views.part_marks(tx, "2000"))

    lines = [(each.part, each.began, each.executor, each.outcome) for each in marks]
    assert lines == [
        (1, True, "here", ""),
        (1, False, "here", "waiting"),
        (2, True, "there", ""),
        (2, False, "there", "completed"),
    ]
    assert fleet.store.read(lambda tx: fleet_views.part_marks(tx, "2999")) == []


def test_the_newest_sessions_of_a_time_are_seen_and_the_others_counted(board: Blackboard) -> None:
    fleet = FleetBoard(board)
    for _ in range(3):
        fail(fleet, begin(fleet, added(board)))
    begin(fleet, added(board))

    spans, total = fleet.store.read(lambda tx: fleet_views.spans(tx, "2000", 2))
    assert ([each.task for each in spans], total) == ([4, 3], 4)
    assert spans[0].in_parts
    spans, total = fleet.store.read(lambda tx: fleet_views.spans(tx, "2999", 9))
    assert ([each.status for each in spans], total) == (["running"], 1)


def test_the_record_of_an_agent_counts_what_its_sessions_came_to(board: Blackboard) -> None:
    fleet = FleetBoard(board)
    fail(fleet, begin(fleet, added(board)))
    done = begin(fleet, added(board))
    fleet.end_part(SegmentEnd(run=done.run, part=1, outcome="completed", tokens=10, cost_usd=0.5))
    wait(fleet, begin(fleet, added(board)), WaitsFor.ANSWER)
    begin(fleet, added(board))
    begin(fleet, added(board), agent="other")

    records = fleet.store.read(fleet_views.records)

    assert records["writer"].success == 0.5
    counted = records["writer"]
    assert (counted.sessions, counted.running, counted.waiting, counted.ended) == (4, 1, 1, 2)
    assert (counted.tokens, counted.cost_usd) == (10, 0.5)
    assert records["other"].success is None
    assert AgentRecord().success is None
    listed = fleet.store.read(lambda tx: fleet_views.sessions_of(tx, "writer", 2))
    assert [(each.task, each.status) for each in listed] == [(4, "running"), (3, "waiting")]


def test_what_was_spent_is_added_up_by_day_by_agent_and_by_task(board: Blackboard) -> None:
    fleet = FleetBoard(board)
    first, second = begin(fleet, added(board)), begin(fleet, added(board, budget_usd=2.0), agent="other")
    for run, cost in ((first.run, 1.0), (second.run, 2.5)):
        fleet.progress(run, spending=Spending(run=run, iteration=1, tokens=100, cost_usd=cost))
    day = fleet.session(first.run).started_at[:10]

    days, agents, (tasks, count) = fleet.store.read(
        lambda tx: (
            fleet_views.days(tx, day),
            fleet_views.agents_spent(tx, day),
            fleet_views.tasks_spent(tx, 1),
        )
    )

    assert {each: spent.cost_usd for each, spent in days.items()} == {day: 3.5}
    assert [(each.agent, each.total.cost_usd, each.today.tokens, each.runs) for each in agents] == [
        ("other", 2.5, 100, 1),
        ("writer", 1.0, 100, 1),
    ]
    assert count == 2
    assert [(each.task, each.spent.cost_usd, each.limit_usd) for each in tasks] == [(2, 2.5, 2.0)]


def test_the_gate_of_an_entry_is_what_was_verified_since_it_was_queued(board: Blackboard) -> None:
    fleet = FleetBoard(board)
    session = in_review(board, fleet, reviewed=False)
    entry = fleet.enqueue_merge(
        MergeEntry(task=session.task, run=session.run, branch="genba/1", commit="c1", target="main")
    )
    assert fleet.store.read(lambda tx: fleet_views.gate(tx, entry)) is None
    fleet.take([entry.id])
    fleet.settle(entry.id, EntryStatus.MERGED, landed="l1")
    (landed,) = fleet.store.read(lambda tx: fleet_views.landed(tx, 5))
    assert (landed.task, landed.landed) == (session.task, "l1")


def test_around_a_task_stands_what_it_is_tied_to_and_no_more(board: Blackboard) -> None:
    for title in ("a", "b", "c", "d", "alone"):
        added(board, title)
    added(board, "needs a", dependencies=(1,))
    added(board, "needs that", dependencies=(6,))
    added(board, "a part", parent=1)
    added(board, "far", dependencies=(7,))

    def around(depth: int, most: int = 99) -> list[int]:
        found = board.store.read(lambda tx: graph_views.around(tx, 1, depth, most))
        return sorted(task.number for task in found)

    assert around(1) == [1, 6, 8]
    assert around(2) == [1, 6, 7, 8]
    assert around(6) == [1, 6, 7, 8, 9]
    assert len(around(6, 2)) == 2
    assert board.store.read(lambda tx: graph_views.around(tx, 77, 2, 9)) == []
    newest = board.store.read(lambda tx: graph_views.newest(tx, 3))
    assert len(newest) == 3
