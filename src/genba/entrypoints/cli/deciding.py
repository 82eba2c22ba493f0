"""What only people may do: an agent that could approve its own work would judge itself."""

import msgspec

from genba.blackboard.board import Blackboard
from genba.blackboard.fleet import FleetBoard
from genba.coordination.attendance import absent
from genba.domain.errors import StateConflictError
from genba.domain.fleet import Escalation
from genba.domain.tasks import Actor, ActorKind, TaskStatus
from genba.wiring import House


def people_only(house: House, deed: str) -> Actor:
    """Who types; refused for an agent, whose processes all carry its name."""
    actor = house.actor()
    if actor.kind is not ActorKind.HUMAN:
        raise StateConflictError(
            f"an agent may not {deed}",
            unchanged="nothing was changed.",
            hint='genba task comment NUMBER "…"   tells a person what you need',
        )
    return actor


class Decided(msgspec.Struct, frozen=True):
    """What was decided, and what to type next; nothing where the fleet goes on by itself."""

    what: str
    hint: str = ""


def approve_task(house: House, number: int, commit: str | None, reason: str = "") -> Decided:
    """Say yes to what a task waits for. Where nobody asked, the verified commit of a task in review is approved."""
    actor = people_only(house, "approve anything")
    board = FleetBoard(house.board(make=False))
    asked = open_one(board, number)
    if asked is not None:
        _check_commit(asked, commit)
        board.decide(number, True, reason, actor)
        return Decided(str(asked.kind), onward(board))
    board.board.approve(number, _verified_commit(board.board, number, commit), actor)
    run = house.session_of(number)
    return Decided("review", f"genba run --resume {run}" if run else onward(board))


def waiting(board: FleetBoard, number: int) -> list[Escalation]:
    """What waits for a decision about a task, oldest first. Whoever names a review means what is reviewed."""
    task, found = board.board.get(number), board.escalations()
    own = [each for each in found if each.task == number]
    return own or [each for each in found if each.task == task.review_of]


def open_one(board: FleetBoard, number: int) -> Escalation | None:
    """The one that is decided next: the newest."""
    found = waiting(board, number)
    return found[-1] if found else None


def the_one(board: FleetBoard, number: int, what: str) -> Escalation:
    """The same; refused where nothing waits."""
    found = open_one(board, number)
    if found is None:
        raise StateConflictError(
            f"nothing about task #{number} waits for {what}", unchanged="nothing was changed.", hint="genba escalations"
        )
    return found


def _check_commit(escalation: Escalation, commit: str | None) -> None:
    """Who names a commit means that one and no other."""
    if commit is not None and not (escalation.commit and escalation.commit.startswith(commit.lower())):
        asked = f"that is {escalation.commit[:12]}" if escalation.commit else "it is about no commit"
        raise StateConflictError(
            f"{commit[:40]} is not what is to be approved: {asked}",
            unchanged="nothing was changed.",
            hint=f"genba escalations show {escalation.task}",
        )


def _verified_commit(board: Blackboard, number: int, commit: str | None) -> str:
    """The commit of a task in review that a person can approve without anybody having asked for it."""
    last = board.last_verification(number)
    verified = last.subject.commit if last is not None and last.done else ""
    status = board.get(number).status
    if status is not TaskStatus.REVIEW or not verified:
        raise StateConflictError(
            f"task #{number} is {status}: there is nothing to approve",
            unchanged="nothing was changed.",
            hint=f"genba task show {number}",
        )
    if commit is not None and not verified.startswith(commit.lower()):
        raise StateConflictError(
            f"{commit[:40]} is not what was verified: that is {verified[:12]}",
            unchanged="nothing was changed.",
            hint=f"git show {verified[:12]}",
        )
    return verified


def onward(board: FleetBoard) -> str:
    """What to type where nobody works."""
    gone = absent(board)
    return "" if any(each.id not in gone for each in board.executors()) else "genba work   goes on with it"
