"""Many at once: threads, processes, and one that dies in the middle."""

import itertools
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

from genba.blackboard.tasks.board import Blackboard
from genba.blackboard.tasks.history import CHANGES
from genba.domain.errors import GenbaError, StateConflictError
from genba.domain.tasks.task import (
    Blocker,
    BlockerKind,
    StatusChange,
    Task,
    TaskDraft,
    TaskEdit,
    TaskStatus,
)
from tests import preloaded
from tests.blackboard.acting import (
    HUMAN,
    ORCHESTRATOR,
    WORKER,
    add,
    block,
    cancel,
    complete,
    everything,
    open_,
    start,
    statuses,
)

Opening = Callable[..., Blackboard]
T = TypeVar("T")


def at_once(*acts: Callable[[], T]) -> list[T | GenbaError]:
    """What each returned, or the refusal that it met; all begin at the same moment."""
    gate = threading.Barrier(len(acts))

    def run(act: Callable[[], T]) -> T | GenbaError:
        gate.wait(30)
        try:
            return act()
        except GenbaError as error:
            return error

    with ThreadPoolExecutor(len(acts)) as pool:
        return list(pool.map(run, acts))


def check_laws(board: Blackboard) -> None:
    """What must hold of every blackboard at any moment."""
    found = {task.number: task for task in board.find()}
    for task in found.values():
        changes = [event for event in board.events(task.number) if event.kind in CHANGES]
        assert [event.version for event in changes] == list(range(1, task.version + 1))
        assert (task.status is TaskStatus.BLOCKED) == (task.blocker is not None)
        for above in _above(found, task):
            assert not (above.status is TaskStatus.BLOCKED and task.status in (TaskStatus.OPEN, TaskStatus.IN_PROGRESS))
            assert not above.status.ended or task.status.ended


def _above(found: dict[int, Task], task: Task) -> list[Task]:
    line = []
    while task.parent is not None:
        task = found[task.parent]
        line.append(task)
    return line


def test_two_claim_the_same_task_and_one_wins(open_board: Opening) -> None:
    one, two = open_board(), open_board()
    claim = StatusChange(to=TaskStatus.IN_PROGRESS, actor=WORKER)
    for _ in range(10):
        number = add(one)
        results = at_once(
            partial(one.change_status, number, claim),
            partial(two.change_status, number, claim),
        )
        assert sum(isinstance(result, Task) for result in results) == 1
        assert sum(isinstance(result, StateConflictError) for result in results) == 1
        assert one.get(number).version == 2


def test_two_who_would_wait_for_each_other_do_not(open_board: Opening) -> None:
    one, two = open_board(), open_board()
    for _ in range(8):
        first, second = add(one), add(one)
        results = at_once(
            partial(one.depend, first, second, HUMAN),
            partial(two.depend, second, first, HUMAN),
        )
        assert sum(isinstance(result, Task) for result in results) == 1
        results = at_once(
            partial(block, one, first, Blocker(BlockerKind.DEPENDENCY, "waits", second)),
            partial(block, two, second, Blocker(BlockerKind.DEPENDENCY, "waits", first)),
        )
        assert sum(isinstance(result, Task) for result in results) == 1


def test_numbers_are_given_once(open_board: Opening) -> None:
    board = open_board()
    numbers = at_once(*[lambda: [add(board) for _ in range(10)] for _ in range(4)])
    given = sorted(number for found in numbers if isinstance(found, list) for number in found)
    assert given == list(range(1, 41))


def test_eight_processes_lose_no_update(open_board: Opening, address: str) -> None:
    board = open_board()
    shared = add(board)
    _eight_end_well("-m", "tests.blackboard.writers", address, str(shared), "12")

    task = board.get(shared)
    assert len(task.labels) == 8 * 12
    assert task.version == 1 + 8 * 12
    assert len(board.comments(shared)) == 8 * 12
    assert [found.version for found in board.find()[1:]] == [13] * 8
    check_laws(board)


def test_eight_processes_open_a_fresh_blackboard(address: str) -> None:
    line = "import sys; from tests.blackboard.acting import add; from genba.blackboard.tasks.board import Blackboard;"
    line += "add(Blackboard.open(sys.argv[1], 'a project'))"
    _eight_end_well("-c", line, address)
    with Blackboard.open(address, "a project") as board:
        assert [task.number for task in board.find()] == list(range(1, 9))


def test_a_process_that_is_killed_in_the_middle_of_a_change_changes_nothing(open_board: Opening, address: str) -> None:
    board = open_board()
    number = add(board)
    before = everything(board)
    line = """
import os, signal, sys
from genba.blackboard.tasks import status_gateway
from genba.blackboard.tasks.board import Blackboard
from genba.domain.tasks.task import StatusChange, TaskStatus
from tests.blackboard.acting import HUMAN
board = Blackboard.open(sys.argv[1], "a project")
def change(tx):
    status_gateway.change_status(tx, int(sys.argv[2]), StatusChange(to=TaskStatus.CANCELLED, actor=HUMAN))
    os.kill(os.getpid(), signal.SIGKILL)
board.store.write(change)
"""
    done = _process("-c", line, address, str(number))
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert everything(board) == before
    assert start(board, number).version == 2


def test_a_parent_is_blocked_while_its_parts_are_claimed(open_board: Opening) -> None:
    one, two = open_board(), open_board()
    for _ in range(6):
        parent = add(one)
        child = add(one, "Child", parent)
        at_once(
            partial(block, one, parent),
            partial(start, two, child),
            partial(two.add, TaskDraft(title="New", parent=parent), HUMAN),
        )
        assert set(statuses(one, parent, *one.get(parent).children)) == {"blocked"}
        at_once(
            partial(cancel, one, parent),
            partial(open_, two, child),
            partial(two.add, TaskDraft(title="New", parent=child), HUMAN),
        )
        assert set(statuses(one, parent, *one.get(parent).children)) == {"cancelled"}
    check_laws(one)


def test_a_storm_of_changes_breaks_no_law(open_board: Opening) -> None:
    boards = [open_board() for _ in range(4)]
    numbers = _a_forest(boards[0])
    refusals = at_once(*[partial(_stir, board, numbers, at) for at, board in enumerate(boards)])
    assert all(isinstance(message, list) for message in refusals)
    for refusal in itertools.chain.from_iterable(message for message in refusals if isinstance(message, list)):
        assert not any(word in refusal for word in ("blackboard is locked", "said:", "contradicts")), refusal
    check_laws(boards[0])


def _a_forest(board: Blackboard) -> list[int]:
    roots = [add(board, f"Root {at}") for at in range(2)]
    children = [add(board, "Child", root) for root in roots for _ in range(2)]
    return [*roots, *children, *(add(board, "Grandchild", child) for child in children)]


def _stir(board: Blackboard, numbers: Sequence[int], seed: int) -> list[str]:
    """Random changes; returns what was refused."""
    dice, refusals = random.Random(seed), []
    for _ in range(40):
        number, other = dice.choice(numbers), dice.choice(numbers)
        acts: list[Callable[[], object]] = [
            partial(start, board, number),
            partial(block, board, number),
            partial(open_, board, number),
            partial(open_, board, number, ORCHESTRATOR),
            partial(cancel, board, number),
            partial(complete, board, number),
            partial(board.depend, number, other, HUMAN),
            partial(board.edit, number, TaskEdit(title=str(dice.random())), HUMAN),
            partial(board.add, TaskDraft(title="New", parent=number), HUMAN),
        ]
        try:
            dice.choice(acts)()
        except GenbaError as error:
            refusals.append(error.message)
    return refusals


def _process(*words: str) -> "subprocess.CompletedProcess[str]":
    """Another interpreter, to its end."""
    words = (sys.executable, *words)
    return preloaded.run(words, cwd=preloaded.ROOT, env=preloaded.ordinary_environment(), timeout=120)


def _eight_end_well(*words: str) -> None:
    result = at_once(*[partial(_process, *words)] * 8)
    assert [getattr(one, "returncode", one) for one in result] == [0] * 8, result
