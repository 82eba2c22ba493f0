import pytest

from genba.blackboard.tasks.board import Blackboard
from genba.domain.errors import NotFoundError, StateConflictError, UsageError
from genba.domain.goals.goal import EndpointResponds, FileExists, ResponseContains, TestsPass
from genba.domain.tasks.task import Actor, ActorKind, Priority, StatusChange, TaskDraft, TaskEdit, TaskStatus
from genba.testing.conformance import a_session
from tests.blackboard.acting import (
    HUMAN,
    MANAGER,
    ORCHESTRATOR,
    add,
    block,
    cancel,
    complete,
    everything,
    open_,
    start,
)
from tests.blackboard.conftest import Postgres

GOALS = (
    TestsPass(command=("pytest", "-q"), required=False),
    ResponseContains(url="/a", headers={"x": "y"}, json_path="$.token", equals=None),
    EndpointResponds(url="/b", body={"deep": ["ö", 1.5]}),
)


def test_a_task_is_read_as_it_was_written(board: Blackboard) -> None:
    parent, other = add(board), add(board)
    draft = TaskDraft(
        title='Write – it\'s "quoted" %s :name {x}',
        body="Zeile 1\nZeile 2 🏗",
        type="bug",
        priority=Priority.CRITICAL,
        labels=("b", "a", "b", "with, comma", 'with "quotes"'),
        parent=parent,
        dependencies=(other,),
        assignee="writer",
        requires_review=True,
        reviewer_type="ai",
        goals=GOALS,
        may_change=("ruff.toml", "ci/**"),
        tracker="github",
        tracker_reference="org/repo#7",
    )
    task = board.add(draft, HUMAN)

    assert task == board.get(task.number)
    assert (task.number, task.version, task.status) == (3, 1, TaskStatus.OPEN)
    for name in ("title", "body", "type", "priority", "parent", "dependencies", "assignee", "requires_review"):
        assert getattr(task, name) == getattr(draft, name)
    for name in ("reviewer_type", "goals", "may_change", "tracker", "tracker_reference"):
        assert getattr(task, name) == getattr(draft, name)
    assert task.labels == ("b", "a", "with, comma", 'with "quotes"')
    assert task.created_at == task.updated_at
    assert task.created_at.endswith("Z")
    assert board.get(parent).children == (task.number,)
    assert [event.kind for event in board.events(task.number)] == ["created"]


def test_numbers_count_up_and_a_number_of_the_tracker_is_kept(board: Blackboard) -> None:
    assert add(board) == 1
    assert board.add(TaskDraft(title="Imported", number=12), HUMAN).number == 12
    assert board.add(TaskDraft(title="Older", number=5), HUMAN).number == 5
    assert add(board) == 13
    with pytest.raises(StateConflictError, match="there is a task #5 already"):
        board.add(TaskDraft(title="Twice", number=5), HUMAN)
    for number in (0, -3, 2**63, 10**40):
        with pytest.raises(UsageError):
            board.add(TaskDraft(title="No", number=number), HUMAN)
    assert add(board) == 14


def test_each_project_of_a_server_has_its_own_tasks(postgres: Postgres) -> None:
    address = postgres.database()
    with Blackboard.open(address, "one") as one, Blackboard.open(address, "two") as two:
        _are_strangers(one, two)


def _are_strangers(one: Blackboard, two: Blackboard) -> None:
    add(one, "Of one")
    assert [task.title for task in one.find()] == ["Of one"]
    assert two.find() == []
    with pytest.raises(NotFoundError):
        two.get(1)
    assert add(two) == 1
    with pytest.raises(NotFoundError):
        two.add(TaskDraft(title="x", dependencies=(2,)), HUMAN)
    assert [task.title for task in one.find()] == ["Of one"]


@pytest.mark.parametrize(
    "draft",
    [
        TaskDraft(title="  "),
        TaskDraft(title="with\0nul"),
        TaskDraft(title="half a \ud83d"),
        TaskDraft(title="x", body="\0"),
        TaskDraft(title="x", labels=("",)),
        TaskDraft(title="x", labels=("\udcff",)),
        TaskDraft(title="x", type=""),
        TaskDraft(title="x", assignee="\0"),
        TaskDraft(title="x", may_change=("a", "")),
        TaskDraft(title="x", reviewer_type="nobody"),
        TaskDraft(title="x", tracker=""),
        TaskDraft(title="x", status=TaskStatus.DONE),
    ],
    ids=str,
)
def test_what_cannot_be_kept_is_refused_and_nothing_is_written(board: Blackboard, draft: TaskDraft) -> None:
    with pytest.raises(UsageError):
        board.add(draft, HUMAN)
    with pytest.raises(UsageError):
        board.add(TaskDraft(title="x"), Actor(ActorKind.HUMAN, ""))
    assert board.find() == []
    assert add(board) == 1


def test_a_task_is_added_only_to_what_is_there(board: Blackboard) -> None:
    for draft in (TaskDraft(title="x", parent=9), TaskDraft(title="x", dependencies=(9,))):
        with pytest.raises(NotFoundError, match="#9"):
            board.add(draft, HUMAN)
    assert board.find() == []


def test_an_edit_changes_what_it_names_and_raises_the_version(board: Blackboard) -> None:
    number = board.add(TaskDraft(title="Old", labels=("a", "b"), goals=GOALS), HUMAN).number
    edit = TaskEdit(
        title="New",
        body="Because",
        type="docs",
        priority=Priority.LOW,
        add_labels=("c", "a"),
        remove_labels=("b",),
        assignee="@ada",
        requires_review=True,
        reviewer_type="ai",
        goals=(FileExists(path="README.md"), GOALS[0]),
        may_change=("x",),
    )
    changed = board.edit(number, edit, HUMAN, version=1)

    assert changed == board.get(number)
    assert (changed.title, changed.body, changed.type, changed.priority) == ("New", "Because", "docs", Priority.LOW)
    assert (changed.labels, changed.assignee, changed.version) == (("a", "c"), "@ada", 2)
    assert (changed.requires_review, changed.reviewer_type, changed.may_change) == (True, "ai", ("x",))
    assert changed.goals == (FileExists(path="README.md"), GOALS[0])
    assert board.events(number)[-1].kind == "edited"
    assert board.edit(number, TaskEdit(goals=()), HUMAN).goals == ()
    assert board.edit(number, TaskEdit(goals=GOALS), HUMAN).goals == GOALS
    assert board.edit(number, TaskEdit(assignee=""), HUMAN).assignee == ""
    assert board.get(number).goals == GOALS


def test_an_edit_that_changes_nothing_leaves_no_trace(board: Blackboard) -> None:
    number = board.add(TaskDraft(title="Same", labels=("a",)), HUMAN).number
    before = everything(board)
    board.edit(number, TaskEdit(), HUMAN)
    board.edit(number, TaskEdit(title="Same", add_labels=("a",), remove_labels=("z",), goals=()), HUMAN)
    assert everything(board) == before


def test_an_edit_that_cannot_be_kept_or_comes_too_late_is_refused(board: Blackboard) -> None:
    number = add(board)
    board.edit(number, TaskEdit(title="Newer"), HUMAN)
    before = everything(board)
    with pytest.raises(StateConflictError, match="at version 2, not 1"):
        board.edit(number, TaskEdit(title="Late"), HUMAN, version=1)
    with pytest.raises(UsageError):
        board.edit(number, TaskEdit(title=""), HUMAN)
    with pytest.raises(UsageError):
        board.edit(number, TaskEdit(body="\0"), HUMAN)
    with pytest.raises(UsageError):
        board.edit(number, TaskEdit(title="x"), Actor(ActorKind.HUMAN, ""))
    assert everything(board) == before


def test_an_edit_whose_status_is_refused_changes_nothing(board: Blackboard) -> None:
    parent = add(board)
    child = board.add(TaskDraft(title="Later", parent=parent, status=TaskStatus.BACKLOG), HUMAN).number
    block(board, parent)
    before = everything(board)
    opened = StatusChange(to=TaskStatus.OPEN, actor=HUMAN)
    with pytest.raises(StateConflictError, match="which is blocked"):
        board.edit(child, TaskEdit(title="Now"), HUMAN, None, opened)
    assert everything(board) == before
    open_(board, parent)
    edited = board.edit(child, TaskEdit(title="Now"), HUMAN, None, opened)
    assert (edited.title, edited.status) == ("Now", TaskStatus.OPEN)


def test_tasks_are_found_by_everything_that_they_say(board: Blackboard) -> None:
    first = board.add(
        TaskDraft(title="Fix the door", type="bug", labels=("house", ","), assignee="writer"), HUMAN
    ).number
    second = board.add(TaskDraft(title="Paint", body="the DOOR, 100% red_ish", parent=first), HUMAN).number
    third = board.add(TaskDraft(title="Sweep", labels=("House", "a,b"), assignee="@ada"), HUMAN).number
    cancel(board, third)

    def found(**asked: object) -> list[int]:
        return [task.number for task in board.find(**asked)]  # type: ignore[arg-type]

    assert found() == [first, second, third]
    assert found(limit=2) == [first, second]
    assert found(limit=0) == []
    assert found(status=(TaskStatus.CANCELLED, TaskStatus.DONE)) == [third]
    assert found(status=(TaskStatus.OPEN,), type="bug") == [first]
    assert found(label="house") == [first]
    assert found(label=",") == [first]
    assert found(label="a") == []
    assert found(assignee="@ada") == [third]
    assert found(parent=first) == [second]
    assert found(text="door") == [first, second]
    assert found(text="100%") == [second]
    assert found(text="red_") == [second]
    assert found(text="d_o") == []
    assert found(text="' OR 1=1 --") == []
    with pytest.raises(NotFoundError):
        found(parent=77)


def test_comments_and_events_are_kept_in_order(board: Blackboard) -> None:
    number = add(board)
    board.comment(number, "First", HUMAN)
    output = board.comment(number, "Second\nline", MANAGER)
    assert [(message.author, message.body) for message in board.comments(number)] == [
        ("ada", "First"),
        ("planner", "Second\nline"),
    ]
    assert board.comments(number)[-1] == output
    assert board.get(number).version == 1
    assert [event.kind for event in board.events(number)] == ["created", "commented", "commented"]
    with pytest.raises(UsageError):
        board.comment(number, " ", HUMAN)
    for act in (lambda: board.comment(9, "x", HUMAN), lambda: board.comments(9), lambda: board.events(9)):
        with pytest.raises(NotFoundError):
            act()


def test_ready_is_what_can_be_started_by_priority_then_by_age(board: Blackboard) -> None:
    low = board.add(TaskDraft(title="Low", priority=Priority.LOW), HUMAN).number
    first, second = add(board, "First"), add(board, "Second")
    waiting = add(board, "Waiting", None, first)
    urgent = board.add(TaskDraft(title="Urgent", priority=Priority.CRITICAL), HUMAN).number
    board.add(TaskDraft(title="Later", status=TaskStatus.BACKLOG), HUMAN)
    parent = add(board, "Parent")
    child = add(board, "Child", parent)
    blocked = add(board, "Blocked")
    block(board, blocked)

    def ready() -> list[int]:
        found = board.ready()
        assert found == [board.get(task.number) for task in found]
        return [task.number for task in found]

    assert ready() == [urgent, first, second, child, low]
    assert [task.number for task in board.ready(2)] == [urgent, first]
    complete(board, first)
    assert ready() == [urgent, second, waiting, child, low]
    board.edit(second, TaskEdit(priority=Priority.HIGH), HUMAN)
    complete(board, child)
    start(board, urgent)
    assert ready() == [second, waiting, parent, low]
    late = add(board, "Late", parent)
    cancel(board, late)
    assert ready() == [second, waiting, parent, low]
    open_(board, blocked)
    assert ready() == [second, waiting, parent, blocked, low]
    board.begin_session(second, a_session("run-1"))
    open_(board, second, ORCHESTRATOR)
    assert ready() == [second, waiting, parent, blocked, low]


def test_ready_stays_true_over_many_tasks_and_changes(board: Blackboard) -> None:
    numbers = [add(board, f"Task {at}") for at in range(150)]
    assert [task.number for task in board.ready()] == numbers
    for number in numbers[:100:3]:
        board.edit(number, TaskEdit(title="Edited"), HUMAN)
    assert board.ready() == board.find(status=(TaskStatus.OPEN,))
    for number in numbers:
        board.edit(number, TaskEdit(body="All of them"), HUMAN)
    assert board.ready() == board.find(status=(TaskStatus.OPEN,))
    for number in numbers[10:]:
        cancel(board, number)
    assert board.ready(100) == board.find(status=(TaskStatus.OPEN,))
