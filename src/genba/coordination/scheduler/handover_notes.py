"""Handover notes: about a session without a result, for the next one."""

from collections.abc import Sequence

from genba.blackboard.fleet.fleet_board import FleetBoard
from genba.domain.fleet.records import Purpose
from genba.judgement.workflow.handovers import handover

_AT_WORK = (Purpose.WORK, Purpose.INTEGRATE)


def note_for(
    board: FleetBoard, number: int, conflicts: Sequence[str] = (), notes: Sequence[str] = (), language: str = "en"
) -> str:
    """What the next session of a task must know of those before it; empty when there is nothing to know."""
    task = board.board.get(number)
    tried = [session for session in board.sessions(number) if session.purpose in _AT_WORK]
    asked = [one for one in board.escalations(open_only=False) if one.task == number]
    last = board.board.last_verification(number) if tried else None
    return handover(task, tried, last=last, conflicts=conflicts, escalations=asked, notes=notes, language=language)


def leave_note(board: FleetBoard, number: int, run: str, conflicts: Sequence[str] = (), language: str = "en") -> str:
    """Write the note of a session that ended to the blackboard. Safe to repeat: the same note is written once."""
    text = note_for(board, number, conflicts, language=language)
    if text and text not in board.handovers(number):
        board.hand_over(number, run, text)
    return text
