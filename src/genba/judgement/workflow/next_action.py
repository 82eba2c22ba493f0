"""The one next action of an instance, out of what the blackboard shows, and the tools that go with it.

The laws, in the order in which they are asked:

1. An instance that must stop, stops: its connection or task has ended, it is paused, its budget is used up.
2. No instance works on a task that it has not fetched.
3. What is verified, and was not judged red since, is completed.
4. Subtasks that have not ended come first. A red verdict on the task itself counts once they have: until then they are
   the way to it. A red verdict on the subtask in progress counts at once.
5. A worker goes on with the subtask in progress, else it starts the first whose dependencies are done. When none is
   left that can ever begin, it says so to a person.
6. A manager handles what is blocked, then what can never begin, then assigns everything without an assignee, and only
   then waits. It waits only while another session works, or a person is asked.
7. When every subtask was cancelled there is no plan, and a new one is made while the cap on subtasks leaves room for
   one: cancelled subtasks count. Without room a worker does the task itself, and a manager asks a person.
8. An instance that asks repeatedly while nothing changes is warned, then stopped. Waiting is no loop: an instance that
   Genba started is stopped instead, and one that came by itself may wait as long as it likes.

Everything is decided on the snapshot alone, so the same question has the same answer.
"""

from collections.abc import Iterator
from typing import Any

import msgspec

from genba.domain.tasks.task import BlockerKind, TaskStatus
from genba.domain.workflow.actions import (
    ALWAYS,
    Action,
    ActionKind,
    ErrorCode,
    Evidence,
    ExitReason,
    Hierarchy,
    Phase,
    Snapshot,
    SubtaskView,
    Tool,
)

DEADLOCK, BLOCKED, FAILED, DEPTH, NO_ROOM = "deadlock", "blocked", "failed", "depth", "no_room"
"""Reasons of `handle_blocked`."""
OTHERS, PEOPLE = "others", "people"
"""Reasons of `wait`: others are at work, or only people are waited for."""

RETRY_OTHERS, RETRY_PEOPLE = 1.0, 30.0
"""Seconds after which it is worth asking again. The call itself is held, so that an answer comes at once."""

_S, _K, _T = TaskStatus, ActionKind, Tool

_BOTH = (
    _T.GET_MY_TASK,
    _T.CREATE_TASK,
    _T.CREATE_TASKS_BATCH,
    _T.UPDATE_TASK_STATUS,
    _T.REPORT_COMPLETED,
    _T.REPORT_BLOCKED,
)
TOOLS: dict[Hierarchy, frozenset[Tool]] = {
    Hierarchy.WORKER: frozenset(_BOTH),
    Hierarchy.MANAGER: frozenset((*_BOTH, _T.ASSIGN_TASK, _T.LIST_WORKERS)),
}
"""What each role may ever call, besides what everybody may call at any time."""

_ENDED_TASK = {
    _S.CANCELLED: ExitReason.CANCELLED,
    _S.BLOCKED: ExitReason.BLOCKED,
    _S.REVIEW: ExitReason.COMPLETED,
    _S.DONE: ExitReason.COMPLETED,
}
_MAKE = (_T.CREATE_TASKS_BATCH, _T.CREATE_TASK)


def decide(snapshot: Snapshot) -> Action:
    """The one next action."""
    action = _bounded(snapshot, _next(snapshot))
    return msgspec.structs.replace(action, messages=snapshot.messages) if snapshot.messages else action


def allowed(snapshot: Snapshot, tool: Tool) -> ErrorCode | None:
    """Why this tool may not be called now; None when it may. What no rule allows is refused.

    A plan that is sent again passes, though it is not the next action: it is answered with the first one.
    """
    if tool in ALWAYS or tool is _T.AUTHENTICATE:
        return None
    if tool not in TOOLS[snapshot.hierarchy]:
        return ErrorCode.FORBIDDEN
    action = decide(snapshot)
    if tool in action.tools:
        return None
    if tool is _T.CREATE_TASKS_BATCH and snapshot.pieces and action.action is not _K.EXIT:
        return None
    return ErrorCode.OUT_OF_ORDER


def _next(snapshot: Snapshot) -> Action:
    task = snapshot.task
    if snapshot.ending is not None:
        return _exit(snapshot, snapshot.ending)
    if task is None:
        return _exit(snapshot, ExitReason.NO_TASK)
    if task.status in _ENDED_TASK:
        return _exit(snapshot, _ENDED_TASK[task.status])
    if snapshot.phase is Phase.NEW:
        return Action(action=_K.GET_TASK, tools=(_T.GET_MY_TASK,), task=task)
    if snapshot.phase is Phase.COMPLETED and snapshot.verified and _evidence(snapshot) is None:
        return _exit(snapshot, ExitReason.COMPLETED)
    if all(piece.status.ended for piece in snapshot.pieces):
        return _without_open_subtasks(snapshot)
    return _of_worker(snapshot) if snapshot.hierarchy is Hierarchy.WORKER else _of_manager(snapshot)


def _without_open_subtasks(snapshot: Snapshot) -> Action:
    """There is no plan yet, or nothing is left of it to do."""
    if _evidence(snapshot) is not None and not snapshot.answered:
        return _rework(snapshot, None)
    if any(piece.status is _S.DONE for piece in snapshot.pieces):
        return _action(snapshot, _K.REPORT_COMPLETION, _T.REPORT_COMPLETED, _T.REPORT_BLOCKED)
    room = _room(snapshot)
    if snapshot.hierarchy is Hierarchy.MANAGER:
        if room:
            tools = (*_MAKE, _T.LIST_WORKERS, _T.REPORT_BLOCKED)
            return _action(snapshot, _K.CREATE_SUBTASKS, *tools, subtasks=snapshot.pieces)
        return _ask_person(snapshot, NO_ROOM if snapshot.may_split else DEPTH)
    if snapshot.atomic or not room:
        return _action(snapshot, _K.EXECUTE_SUBTASK, _T.REPORT_COMPLETED, _T.REPORT_BLOCKED)
    whole = (*_MAKE, _T.UPDATE_TASK_STATUS, _T.REPORT_COMPLETED, _T.REPORT_BLOCKED)
    return _action(snapshot, _K.CREATE_SUBTASKS, *whole, subtasks=snapshot.pieces)


def _of_worker(snapshot: Snapshot) -> Action:
    """A plan of which something is left, on one branch: one subtask after the other."""
    evidence = snapshot.evidence
    for piece in snapshot.pieces:
        if piece.status is _S.IN_PROGRESS:
            if evidence is not None and evidence.task == piece.number:
                return _rework(snapshot, piece)
            return _action(snapshot, _K.EXECUTE_SUBTASK, _T.UPDATE_TASK_STATUS, _T.REPORT_BLOCKED, subtask=piece)
    done = {piece.number for piece in snapshot.pieces if piece.status is _S.DONE}
    numbers = {piece.number for piece in snapshot.pieces}
    waiting = [piece for piece in snapshot.pieces if not piece.status.ended]
    for piece in waiting:
        if piece.status in (_S.BACKLOG, _S.OPEN) and all(one in done for one in piece.dependencies if one in numbers):
            tools = (_T.UPDATE_TASK_STATUS, *_growing(snapshot), _T.REPORT_BLOCKED)
            return _action(snapshot, _K.START_SUBTASK, *tools, subtask=piece)
    if any(piece.status is _S.REVIEW for piece in waiting):
        return _wait(snapshot, tuple(waiting))
    held = [piece for piece in waiting if piece.status is _S.BLOCKED]
    reason = _blocked_reason(held[0]) if held else DEADLOCK
    return _ask_person(snapshot, reason, *(held or waiting))


def _of_manager(snapshot: Snapshot) -> Action:
    """Subtasks of which some have not ended, each in other hands, or to be given away."""
    waiting = [piece for piece in snapshot.pieces if not piece.status.ended]
    mine = [piece for piece in waiting if not piece.with_human]
    held = [piece for piece in mine if piece.status is _S.BLOCKED]
    if held:
        return _handle(snapshot, _blocked_reason(held[0]), held)
    locked = list(_locked(snapshot, mine))
    if locked:
        return _handle(snapshot, DEADLOCK, locked)
    free = [piece for piece in mine if piece.status is _S.BACKLOG or (piece.status is _S.OPEN and not piece.assignee)]
    if free:
        done = {piece.number for piece in snapshot.pieces if piece.status is _S.DONE}
        ready_first = sorted(free, key=lambda piece: not done.issuperset(piece.dependencies))
        tools = (_T.ASSIGN_TASK, _T.LIST_WORKERS, *_growing(snapshot), _T.REPORT_BLOCKED)
        first = ready_first[0]
        return _action(snapshot, _K.DELEGATE, *tools, subtask=first, next_subtask=first, subtasks=tuple(ready_first))
    return _wait(snapshot, tuple(waiting))


def _handle(snapshot: Snapshot, reason: str, pieces: list[SubtaskView]) -> Action:
    """What a manager can do with a subtask that does not go on by itself.

    One that can never begin is not helped by another worker, and one that failed as often as claims may be red in one
    session is not tried again: then there is no such choice.
    """
    room = _room(snapshot)
    hopeless = reason == DEADLOCK or pieces[0].attempts >= snapshot.max_reworks
    again = () if hopeless else ("retry", "reassign")
    choices = (*again, *(("split",) if room else ()), "cancel", "ask_human")
    tools = (
        *((_T.ASSIGN_TASK, _T.LIST_WORKERS) if again else ()),
        *(_MAKE if room else ()),
        _T.UPDATE_TASK_STATUS,
        _T.REPORT_BLOCKED,
    )
    return _action(
        snapshot,
        _K.HANDLE_BLOCKED,
        *tools,
        reason=reason,
        subtask=pieces[0],
        subtasks=tuple(pieces),
        choices=choices,
    )


def _ask_person(snapshot: Snapshot, reason: str, *pieces: SubtaskView) -> Action:
    """Nothing is left that the instance itself could do."""
    return _action(
        snapshot,
        _K.HANDLE_BLOCKED,
        _T.REPORT_BLOCKED,
        reason=reason,
        subtask=pieces[0] if pieces else None,
        subtasks=pieces,
        choices=("ask_human",),
    )


def _rework(snapshot: Snapshot, subtask: SubtaskView | None) -> Action:
    """A claim was judged red, or could not be judged. It may come back only so often."""
    rounds = max(snapshot.reworks, snapshot.evidence.round if snapshot.evidence else 0)
    if rounds >= snapshot.max_reworks:
        return _exit(snapshot, ExitReason.NO_PROGRESS)
    if subtask is not None:
        tools: tuple[Tool, ...] = (_T.UPDATE_TASK_STATUS, _T.REPORT_BLOCKED)
    elif snapshot.hierarchy is Hierarchy.WORKER:
        tools = (_T.REPORT_COMPLETED, _T.REPORT_BLOCKED)
    else:
        make = (*_MAKE, _T.LIST_WORKERS) if _room(snapshot) else ()
        tools = (*make, _T.REPORT_COMPLETED, _T.REPORT_BLOCKED)
    led = snapshot.pieces if snapshot.hierarchy is Hierarchy.MANAGER else ()
    return _action(snapshot, _K.REWORK, *tools, subtask=subtask, subtasks=led, evidence=snapshot.evidence)


def _wait(snapshot: Snapshot, pieces: tuple[SubtaskView, ...]) -> Action:
    """Others are at work. Who was started by Genba gives its worker free when that helps, or when it takes long."""
    if snapshot.spawned and (snapshot.worker_needed or snapshot.waited_seconds >= snapshot.suspend_seconds):
        return _exit(snapshot, ExitReason.SUSPENDED, pieces)
    people = all(piece.with_human for piece in pieces)
    return _action(
        snapshot,
        _K.WAIT,
        reason=PEOPLE if people else OTHERS,
        subtasks=pieces,
        in_progress=tuple(_brief(piece) for piece in pieces if piece.status is _S.IN_PROGRESS),
        retry_after=RETRY_PEOPLE if people else RETRY_OTHERS,
    )


def _brief(piece: SubtaskView) -> SubtaskView:
    """The same without its texts: they stand in `subtasks`."""
    return msgspec.structs.replace(piece, body="", goals=(), scope=())


def _exit(snapshot: Snapshot, reason: ExitReason, pieces: tuple[SubtaskView, ...] = ()) -> Action:
    evidence = _evidence(snapshot) if reason is ExitReason.NO_PROGRESS else None
    return Action(action=_K.EXIT, tools=(), reason=str(reason), task=snapshot.task, subtasks=pieces, evidence=evidence)


def _action(snapshot: Snapshot, kind: ActionKind, *tools: Tool, **more: Any) -> Action:
    """An action on the task. Who has lost sight of it may fetch it again at any time."""
    return Action(action=kind, tools=(*tools, _T.GET_MY_TASK), task=snapshot.task, **more)


def _bounded(snapshot: Snapshot, action: Action) -> Action:
    """The same action with a warning, or the end, when nothing changes however often it is asked for."""
    repeats, most = snapshot.repeats, snapshot.max_repeats
    if action.action is _K.EXIT or repeats * 2 < most:
        return action
    if action.action is _K.WAIT:
        stays = not snapshot.spawned or repeats < most
        return action if stays else _exit(snapshot, ExitReason.SUSPENDED, action.subtasks)
    if repeats >= most:
        return _exit(snapshot, ExitReason.NO_PROGRESS)
    message = f"Nothing has changed since you asked {repeats} times. After {most} times you have to stop."
    return msgspec.structs.replace(action, warning=message)


def _evidence(snapshot: Snapshot) -> Evidence | None:
    """The red verdict, where it is about the task, or about the subtask in progress. An older one says nothing."""
    found = snapshot.evidence
    if found is None or snapshot.task is None or found.task == snapshot.task.number:
        return found
    here = any(piece.number == found.task and piece.status is _S.IN_PROGRESS for piece in snapshot.pieces)
    return found if here else None


def _room(snapshot: Snapshot) -> bool:
    return snapshot.may_split and len(snapshot.pieces) < snapshot.max_subtasks


def _growing(snapshot: Snapshot) -> tuple[Tool, ...]:
    """A plan that is made call by call may grow until its first subtask is begun or given away."""
    given = snapshot.hierarchy is Hierarchy.MANAGER
    untouched = all(
        piece.status is _S.BACKLOG or (piece.status is _S.OPEN and not (given and piece.assignee))
        for piece in snapshot.pieces
    )
    return (_T.CREATE_TASK,) if untouched and _room(snapshot) else ()


def _blocked_reason(piece: SubtaskView) -> str:
    return FAILED if piece.blocker is not None and piece.blocker.kind is BlockerKind.FAILED else BLOCKED


def _locked(snapshot: Snapshot, mine: list[SubtaskView]) -> Iterator[SubtaskView]:
    """Subtasks that can never begin: they wait for each other, or for one that was cancelled.

    Whatever is done, at work, blocked or with a person will move, or is handled itself. What waits only for such as
    these will move too. The rest never will. Those come first that wait for a cancelled one: they hold up the others.
    """
    known = {piece.number: piece for piece in snapshot.pieces}
    still = (_S.BACKLOG, _S.OPEN)
    moving = {
        piece.number
        for piece in snapshot.pieces
        if piece.status is not _S.CANCELLED and (piece.status not in still or piece.with_human)
    }
    idle = [piece for piece in mine if piece.status in still]
    found = True
    while found:
        new = {p.number for p in idle if all(one in moving for one in p.dependencies if one in known)} - moving
        moving |= new
        found = bool(new)
    locked = [piece for piece in idle if piece.number not in moving]
    cancelled = {number for number, piece in known.items() if piece.status is _S.CANCELLED}
    yield from sorted(locked, key=lambda piece: cancelled.isdisjoint(piece.dependencies))
