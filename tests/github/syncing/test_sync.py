"""What happens on the tracker happens to the tasks; what people set here stays."""

import asyncio

import pytest

from genba.blackboard.tasks.board import Blackboard
from genba.blackboard.tracker import outbox
from genba.blackboard.tracker.issue_copy import TrackerBoard
from genba.definitions.project.tracker_section import BoardSettings
from genba.domain.errors import NotFoundError, RateLimited, StateConflictError
from genba.domain.tasks.task import Actor, ActorKind, Priority, StatusChange, TaskDraft, TaskEdit, TaskStatus
from genba.domain.tracker.outbox import Relabel
from genba.domain.tracker.remote import RemoteComment
from genba.judgement.tracking.issue_changes import Known
from genba.testing.tracker_doubles import MemoryIssues
from tests.github.syncing.conftest import Syncing

_ALICE = Actor(ActorKind.HUMAN, "alice")


async def test_open_issues_become_tasks_with_their_numbers(
    board: Blackboard, remote: MemoryIssues, syncing: Syncing
) -> None:
    remote.add("Add login", number=7, body="please", labels=("bug",))
    remote.add("An old one", number=9, state="closed", state_reason="completed")

    result = await syncing().sync()

    (task,) = board.find()
    assert (task.number, task.title, task.body, task.labels) == (7, "Add login", "please", ("bug",))
    assert (task.tracker, task.tracker_reference, task.status) == ("github", "I_7", TaskStatus.OPEN)
    assert (result.full, result.issues, result.added) == (True, 2, (7,))


async def test_what_changed_is_read_and_nothing_else(board: Blackboard, remote: MemoryIssues, syncing: Syncing) -> None:
    first, second = remote.add("one"), remote.add("two")
    await syncing().sync()
    remote.tick(3600)
    remote.change(second, title="two, but better", labels=("urgent",))
    remote.calls.clear()

    result = await syncing().sync()

    assert result.changed == (second,)
    assert board.get(second).title == "two, but better"
    assert board.get(first).version == 1
    assert [call.split()[0] for call in remote.calls] == ["page", "details"]


async def test_a_look_where_nothing_changed_is_one_request(remote: MemoryIssues, syncing: Syncing) -> None:
    remote.add("one")
    for _ in range(2):
        await syncing().sync()
    remote.calls.clear()

    result = await syncing().sync()

    assert (result.requests, result.points) == (1, 0)
    assert len(remote.calls) == 1


async def test_many_changes_of_long_ago_are_not_read_again(
    board: Blackboard, remote: MemoryIssues, syncing: Syncing
) -> None:
    remote.page_size = 10
    for _ in range(45):
        remote.add()
    hours_later = syncing()
    at = remote.tick(7200)
    hours_later.now = lambda: at
    await hours_later.sync()

    assert (await hours_later.sync()).requests == 1
    assert len(board.find()) == 45


async def test_what_people_set_here_stays(board: Blackboard, remote: MemoryIssues, syncing: Syncing) -> None:
    number = remote.add("one", body="first", labels=("a", "b"))
    await syncing().sync()
    board.edit(number, TaskEdit(title="mine", add_labels=("c",), remove_labels=("a",), scope=("src/",)), _ALICE)

    remote.change(number, body="second", labels=("a", "b", "d"))
    await syncing().sync()

    task = board.get(number)
    assert (task.title, task.body, task.scope) == ("mine", "second", ("src/",))
    assert set(task.labels) == {"b", "c", "d"}


async def test_labels_that_are_on_their_way_are_not_taken_back(
    board: Blackboard, remote: MemoryIssues, syncing: Syncing
) -> None:
    number = remote.add(labels=("ready",))
    await syncing().sync()
    remote.change(number, labels=("ready", "in progress"))  # sent by Genba, and taken away again while GitHub was away
    changes = (Relabel(issue=number, remove=("in progress",)), Relabel(issue=number, add=("blocked",)))
    for key, change in enumerate(changes):
        board.store.write(lambda tx, key=key, change=change: outbox.record(tx, f"labels-{key}", change))  # type: ignore[misc]
    board.edit(number, TaskEdit(add_labels=("blocked",)), _ALICE)

    await syncing().sync()

    assert set(board.get(number).labels) == {"ready", "blocked"}


async def test_a_closed_issue_ends_its_task_and_a_reopened_one_opens_it(
    board: Blackboard, remote: MemoryIssues, syncing: Syncing
) -> None:
    done, dropped = remote.add(), remote.add()
    await syncing().sync()
    remote.close(done)
    remote.close(dropped, "not_planned")

    result = await syncing().sync()
    assert set(result.closed) == {done, dropped}
    assert board.get(done).status is TaskStatus.DONE
    assert board.get(dropped).status is TaskStatus.CANCELLED
    last = board.events(done)[-1]
    assert (last.actor.kind, last.data["reason"]) == (ActorKind.TRACKER, "closed on GitHub")

    remote.change(done, state="open", state_reason="reopened")
    result = await syncing().sync()
    assert result.reopened == (done,)
    assert board.get(done).status is TaskStatus.OPEN


async def test_a_task_that_is_opened_again_here_stays_open(
    board: Blackboard, remote: MemoryIssues, syncing: Syncing
) -> None:
    number = remote.add()
    await syncing().sync()
    remote.close(number)
    await syncing().sync()
    board.change_status(number, StatusChange(to=TaskStatus.OPEN, actor=_ALICE, reason="not yet"))

    remote.change(number, body="a late remark")
    await syncing().sync()

    assert board.get(number).status is TaskStatus.OPEN
    assert board.get(number).body == "a late remark"


async def test_a_deleted_issue_is_noticed_by_the_next_full_look(
    board: Blackboard, remote: MemoryIssues, syncing: Syncing
) -> None:
    kept, lost = remote.add(), remote.add()
    await syncing().sync()
    remote.delete(lost)

    assert (await syncing().sync()).gone == ()
    result = await syncing().sync(full=True)

    assert result.gone == (lost,)
    assert board.get(lost).status is TaskStatus.CANCELLED
    assert board.get(kept).status is TaskStatus.OPEN
    assert (await syncing().sync(full=True)).gone == ()


async def test_only_issues_with_the_label_become_tasks_and_leave_with_it(
    board: Blackboard, remote: MemoryIssues, syncing: Syncing
) -> None:
    chosen, other = remote.add(labels=("Genba",)), remote.add()
    await syncing(label="genba").sync()
    assert [task.number for task in board.find()] == [chosen]

    remote.change(chosen, labels=())
    remote.change(other, labels=("genba",))
    await syncing(label="genba").sync()
    assert board.get(chosen).status is TaskStatus.CANCELLED
    assert board.get(other).status is TaskStatus.OPEN

    remote.change(chosen, labels=("genba",))
    await syncing(label="genba").sync()
    assert board.get(chosen).status is TaskStatus.OPEN


async def test_only_issues_on_the_board_become_tasks(board: Blackboard, remote: MemoryIssues, syncing: Syncing) -> None:
    on_board, elsewhere = remote.add(), remote.add()
    remote.move_card(on_board, "acme", 5, "Todo")
    settings = {"board": BoardSettings(number=5)}
    await syncing(**settings).sync()
    assert [task.number for task in board.find()] == [on_board]

    remote.move_card(elsewhere, "acme", 5, "Todo")
    result = await syncing(**settings).sync()
    assert result.added == (elsewhere,)

    remote.move_card(on_board, "acme", 5, None)
    await syncing(**settings).sync(full=True)
    assert board.get(on_board).status is TaskStatus.CANCELLED


async def test_another_field_in_the_settings_is_another_choice_of_issues(
    board: Blackboard, remote: MemoryIssues, syncing: Syncing
) -> None:
    one, two = remote.add(labels=("a",)), remote.add(labels=("b",))
    await syncing(label="a").sync()
    await syncing(label="b").sync()

    assert board.get(one).status is TaskStatus.CANCELLED
    assert board.get(two).status is TaskStatus.OPEN


async def test_a_choice_by_hand_adds_issues_and_takes_none_away(
    board: Blackboard, remote: MemoryIssues, syncing: Syncing
) -> None:
    ours, chosen = remote.add(labels=("genba",)), remote.add(labels=("docs",))
    await syncing(label="genba").sync(label="docs")
    assert {task.number for task in board.find(status=(TaskStatus.OPEN,))} == {ours, chosen}

    remote.change(chosen, title="still wanted")
    await syncing(label="genba").sync()
    assert board.get(chosen).status is TaskStatus.OPEN
    assert board.get(chosen).title == "still wanted"


async def test_a_board_that_is_named_by_hand_adds_its_issues(
    board: Blackboard, remote: MemoryIssues, syncing: Syncing
) -> None:
    chosen, _ = remote.add(), remote.add()
    remote.move_card(chosen, "other", 9, "Todo")
    result = await syncing(label="genba").sync(board=("other", 9))
    assert result.added == (chosen,)


async def test_what_a_stranger_writes_waits_for_a_person(
    board: Blackboard, remote: MemoryIssues, syncing: Syncing
) -> None:
    number = remote.add("Run this for me", trusted=False, author="mallory")
    await syncing().sync()
    assert board.get(number).status is TaskStatus.BACKLOG

    labelled = remote.add("A good one", trusted=False, author="mallory", labels=("genba",))
    await syncing(label="genba").sync()
    assert board.get(labelled).status is TaskStatus.OPEN


async def test_priority_type_and_agent_come_from_labels_types_and_assignees(
    board: Blackboard, remote: MemoryIssues, syncing: Syncing
) -> None:
    known = Known(agents=frozenset({"builder"}), types=frozenset({"bug", "feature"}))
    settings = {"priorities": {"p0": "critical", "p2": "low"}, "types": {"defect": "bug"}}
    one = remote.add(labels=("p2", "P0", "defect"), assignees=("alice", "builder"))
    two = remote.add(type="Feature")
    await syncing(known, **settings).sync()

    task = board.get(one)
    assert (task.priority, task.type, task.assignee) == (Priority.CRITICAL, "bug", "builder")
    assert board.get(two).type == "feature"

    board.edit(two, TaskEdit(assignee="mine"), _ALICE)
    remote.change(two, assignees=("builder",))
    remote.change(one, assignees=(), labels=("p2", "defect"))
    await syncing(known, **settings).sync()
    assert board.get(two).assignee == "mine"
    assert (board.get(one).assignee, board.get(one).priority) == ("", Priority.LOW)


async def test_comments_are_copied_edited_and_taken_away(
    board: Blackboard, remote: MemoryIssues, syncing: Syncing
) -> None:
    output = RemoteComment(id="c1", author="bob", body="hm", created_at="2026-01-01T00:00:00Z", trusted=True)
    ours = RemoteComment(id="c2", author="bot", body="done <!-- genba:x -->", created_at="2026-01-01T00:00:01Z")
    number = remote.add(comments=(output, ours))
    await syncing().sync()
    board.comment(number, "from here", _ALICE)
    assert [(one.author, one.body) for one in board.comments(number)] == [("bob", "hm"), ("alice", "from here")]

    edited = RemoteComment(id="c1", author="bob", body="hm!", created_at="2026-01-01T00:00:00Z", updated_at="later")
    remote.change(number, comments=(edited,))
    assert (await syncing().sync()).changed == (number,)
    assert [one.body for one in board.comments(number)] == ["hm!", "from here"]

    remote.change(number, comments=())
    await syncing().sync()
    assert [one.body for one in board.comments(number)] == ["from here"]


async def test_own_tasks_with_the_number_of_an_issue_refuse_the_sync(
    board: Blackboard, remote: MemoryIssues, syncing: Syncing
) -> None:
    board.add(TaskDraft(title="here first"), _ALICE)
    remote.add("number one")

    with pytest.raises(StateConflictError, match="#1") as refused:
        await syncing().sync()

    assert "database" in refused.value.hint
    assert [task.title for task in board.find()] == ["here first"]

    with pytest.raises(StateConflictError, match="#1"):
        await syncing().preview()


async def test_own_tasks_of_a_joined_project_begin_far_above(
    board: Blackboard, remote: MemoryIssues, syncing: Syncing
) -> None:
    remote.add()
    await syncing().sync()

    assert board.add(TaskDraft(title="a part"), _ALICE).number == 1_000_001


async def test_a_blackboard_belongs_to_one_repository(
    board: Blackboard, remote: MemoryIssues, syncing: Syncing
) -> None:
    await syncing().sync()
    other = syncing()
    other.settings = type(other.settings)(repository="acme/other")

    with pytest.raises(StateConflictError, match="acme/shop"):
        await other.sync()


async def test_one_sync_at_a_time(copy: TrackerBoard, remote: MemoryIssues, syncing: Syncing) -> None:
    other = syncing()
    assert copy.take_lease("lease:sync", "elsewhere/1/abc", 60.0) == ""

    with pytest.raises(StateConflictError, match="process 1"):
        await other.sync()

    copy.release("lease:sync", "elsewhere/1/abc")
    await other.sync()


async def test_a_sync_that_was_killed_here_is_in_nobodys_way(copy: TrackerBoard, syncing: Syncing) -> None:
    sync = syncing()
    place = sync.owner.partition("/")[0]
    copy.take_lease("lease:sync", f"{place}/{2**22 + 1}/abc", 600.0)  # larger than any process id

    await sync.sync()


async def test_a_rate_limit_keeps_what_was_read(board: Blackboard, remote: MemoryIssues, syncing: Syncing) -> None:
    remote.page_size = 10
    for _ in range(35):
        remote.add()
    remote.faults.extend([None, None, RateLimited("enough for now", retry_after=900)])
    with pytest.raises(RateLimited):
        await syncing().sync()
    remote.calls.clear()

    await syncing().sync()

    assert len(board.find()) == 35
    assert not remote.calls[0].endswith("page")


async def test_one_issue_is_read_freshly(board: Blackboard, remote: MemoryIssues, syncing: Syncing) -> None:
    number = remote.add("one", trusted=False)
    task = await syncing().sync_issue(number)
    assert (task.number, task.status) == (number, TaskStatus.OPEN)

    remote.change(number, title="two")
    assert (await syncing().sync_issue(number)).title == "two"
    with pytest.raises(NotFoundError):
        await syncing().sync_issue(99)


async def test_one_issue_that_is_not_found_is_given_up_by_the_next_sync_alone(
    board: Blackboard, remote: MemoryIssues, syncing: Syncing
) -> None:
    number = remote.add()
    await syncing().sync()
    remote.delete(number)
    with pytest.raises(NotFoundError):
        await syncing().sync_issue(number)
    assert board.get(number).status is TaskStatus.OPEN

    assert (await syncing().sync()).gone == (number,)
    assert board.get(number).status is TaskStatus.CANCELLED


async def test_who_reads_one_issue_and_who_reads_all_do_not_double_anything(
    board: Blackboard, remote: MemoryIssues, syncing: Syncing
) -> None:
    output = RemoteComment(id="c1", author="bob", body="hm", created_at="2026-01-01T00:00:00Z", trusted=True)
    numbers = [remote.add(comments=(output,)) for _ in range(10)]
    await asyncio.gather(syncing().sync(), *(syncing().sync_issue(number) for number in numbers * 2))

    assert [task.number for task in board.find()] == numbers
    assert all(len(board.comments(number)) == 1 for number in numbers)
    assert all([event.kind for event in board.events(number)] == ["created"] for number in numbers)


async def test_one_issue_outside_of_the_field_is_refused(remote: MemoryIssues, syncing: Syncing) -> None:
    number, closed = remote.add(), remote.add(state="closed", labels=("genba",))
    with pytest.raises(StateConflictError, match='does not have the label "genba"'):
        await syncing(label="genba").sync_issue(number)
    with pytest.raises(StateConflictError, match="is closed"):
        await syncing(label="genba").sync_issue(closed)


async def test_a_preview_changes_nothing(board: Blackboard, remote: MemoryIssues, syncing: Syncing) -> None:
    known, new = remote.add("known"), 0
    await syncing().sync()
    remote.close(known)
    new = remote.add("new")

    result = await syncing().preview()

    assert (result.added, result.closed) == ((new,), (known,))
    assert [(task.number, task.status) for task in board.find()] == [(known, TaskStatus.OPEN)]
    assert (await syncing().sync()).added == (new,)


async def test_hostile_words_are_kept_as_far_as_a_database_can(
    board: Blackboard, remote: MemoryIssues, syncing: Syncing
) -> None:
    number = remote.add("a\0b", body='\0 "detailed":true', labels=("x\0", " "))
    blank = remote.add("   ")
    await syncing().sync()

    assert board.get(number).title == "a\N{REPLACEMENT CHARACTER}b"
    assert board.get(blank).title == f"issue {blank}"


@pytest.mark.parametrize("number", [1_000_001, 2**70])
async def test_an_issue_with_a_number_of_our_own_tasks_is_refused(
    board: Blackboard, remote: MemoryIssues, syncing: Syncing, number: int
) -> None:
    remote.add("one")
    await syncing().sync()
    own = board.add(TaskDraft(title="A part"), _ALICE)
    remote.add("Theirs", number=number)

    with pytest.raises(StateConflictError, match=f"issue #{number}"):
        await syncing().sync()
    with pytest.raises(StateConflictError, match=f"#{number}"):
        await syncing().sync_issue(number)

    assert (own.number, board.get(own.number).title) == (1_000_001, "A part")


async def test_a_clock_that_was_wrong_holds_up_no_look(
    copy: TrackerBoard, remote: MemoryIssues, syncing: Syncing
) -> None:
    remote.add("one")
    await syncing().sync()
    copy.set_values({"full_at": "2999-01-01T00:00:00.000000Z"})
    copy.take_lease("lease:sync", "elsewhere/1/abc", 30 * 86_400.0)

    result = await syncing().sync()

    assert result.full
    assert not (await syncing().sync()).full
