"""Phases of sessions and notes of agents: both are stored as contexts of a task.

Law: phases are words of the house, and a session only goes forward in them. What an agent writes never reads as one.
"""

import msgspec

from genba.blackboard.database.sanitize import bounded, most, now, seen
from genba.blackboard.database.store import Statement, Transaction
from genba.blackboard.tasks.history import NOTED, PHASE_REACHED, NewEvent, tell
from genba.blackboard.tasks.task_records import agent_id
from genba.blackboard.tasks.task_rows import hold, id_of
from genba.domain.errors import NotFoundError
from genba.domain.tasks.task import Actor, ActorKind
from genba.domain.text_limits import LONGEST
from genba.domain.workflow.actions import Note, Phase

PREFIX = "workflow:"
ATOMIC = "workflow:atomic"
"""The agent declared that its task needs no subtasks."""

_LONGEST_NOTE = 3 * LONGEST
_ORDER = {phase: place for place, phase in enumerate(Phase)}
_PHASES = {str(phase): phase for phase in Phase if phase}

_OF_SESSION = Statement("""
SELECT progress FROM contexts WHERE task_id = :task AND session_id = :session AND substr(progress, 1, 9) = :prefix
ORDER BY id
""")
_INSERT = Statement("""
INSERT INTO contexts (task_id, session_id, agent_id, progress, findings, blockers, next_steps, created_at)
VALUES (:task, :session, :agent, :progress, :findings, :blockers, :next_steps, :at)
""")
_SESSION = Statement("SELECT id FROM sessions WHERE run = :run AND task_id = :task")
_NOTES = Statement("""
SELECT c.progress, c.findings, c.blockers, c.next_steps, coalesce(a.name, ''), c.created_at
FROM contexts c LEFT JOIN agents a ON a.id = c.agent_id
WHERE c.task_id = :task AND substr(c.progress, 1, 9) <> :prefix ORDER BY c.id DESC LIMIT :limit
""")
_LAST = Statement("""
SELECT progress, findings, blockers, next_steps, created_at FROM contexts
WHERE task_id = :task AND session_id = :session ORDER BY id DESC LIMIT 1
""")


def mark(tx: Transaction, number: int, run: str, agent: str, word: str) -> None:
    """Write a phase down, or that a task is atomic. What was reached before is not reached again."""
    task = hold(tx, number).task
    session = _session(tx, task.id, number, run)
    phase, atomic = reached(tx, task.id, session)
    if word == ATOMIC:
        if atomic:
            return
    elif _ORDER[Phase(word)] <= _ORDER[phase]:
        return
    at = now()
    _write(tx, task.id, session, agent_id(tx, agent, at), Note(progress=word), at)
    line = NewEvent(task=task.id, version=task.version, kind=PHASE_REACHED, data={"phase": word.removeprefix(PREFIX)})
    tell(tx, Actor(ActorKind.WORKER, agent), at, [line], seen(run))


def reopen_phase(tx: Transaction, task: int, session: int, agent: str, at: str) -> None:
    """Another instance begins for a session whose work was verified: there is something left to do."""
    if reached(tx, task, session)[0] is Phase.COMPLETED:
        _write(tx, task, session, agent, Note(progress=str(Phase.EXECUTING)), at)


def reached(tx: Transaction, task: int, session: int) -> tuple[Phase, bool]:
    """The newest phase of a session, and whether its task is atomic."""
    words = [str(row[0]) for row in tx.all(_OF_SESSION, task=task, session=session, prefix=PREFIX)]
    phases = [_PHASES[word] for word in words if word in _PHASES]
    return phases[-1] if phases else Phase.NEW, ATOMIC in words


def save_note(tx: Transaction, number: int, run: str, agent: str, note: Note) -> Note:
    """Keep a note. The same one twice in a row is kept once."""
    task = hold(tx, number).task
    session = _session(tx, task.id, number, run)
    at = now()
    kept = Note(
        progress=_plain(bounded(note.progress, _LONGEST_NOTE)),
        findings=bounded(note.findings, _LONGEST_NOTE),
        blockers=bounded(note.blockers, _LONGEST_NOTE),
        next_steps=bounded(note.next_steps, _LONGEST_NOTE),
        agent=agent,
        created_at=at,
    )
    last = tx.one(_LAST, task=task.id, session=session)
    if last is not None and last[:4] == (kept.progress, kept.findings, kept.blockers, kept.next_steps):
        return msgspec.structs.replace(kept, created_at=last[4])
    _write(tx, task.id, session, agent_id(tx, agent, at), kept, at)
    line = NewEvent(task=task.id, version=task.version, kind=NOTED, data={"letters": sum(map(len, _texts(kept)))})
    tell(tx, Actor(ActorKind.WORKER, agent), at, [line], seen(run))
    return kept


def notes(tx: Transaction, number: int, limit: int) -> tuple[Note, ...]:
    """The newest notes of a task, newest last."""
    rows = tx.all(_NOTES, task=id_of(tx, number), prefix=PREFIX, limit=most(limit))
    return tuple(
        Note(progress=progress, findings=findings, blockers=blockers, next_steps=steps, agent=agent, created_at=at)
        for progress, findings, blockers, steps, agent, at in reversed(rows)
    )


def _texts(note: Note) -> tuple[str, str, str, str]:
    return note.progress, note.findings, note.blockers, note.next_steps


def _plain(text: str) -> str:
    return f" {text}" if text.startswith(PREFIX) else text


def _session(tx: Transaction, task: int, number: int, run: str) -> int:
    row = tx.one(_SESSION, run=seen(run), task=task)
    if row is None:
        raise NotFoundError(
            f"run {run!r} does not work on task #{number}",
            unchanged="nothing was changed.",
            hint=f"genba task show {number}",
        )
    return int(row[0])


def _write(tx: Transaction, task: int, session: int, agent: str, note: Note, at: str) -> None:
    tx.do(
        _INSERT,
        task=task,
        session=session,
        agent=agent,
        progress=note.progress,
        findings=note.findings,
        blockers=note.blockers,
        next_steps=note.next_steps,
        at=at,
    )
