"""What a database says when it cannot, in the words of the house."""

import os
import sqlite3
from typing import Any

from genba.domain.errors import DiskFullError, GenbaError, StateConflictError, UnavailableError, UnrecoverableError

_UNCHANGED = "nothing was changed."
_SMALLEST_ROOM = 64 * 1024
_TRY_AGAIN = frozenset({"40001", "40P01"})


def translated(error: Exception, place: str, waited: float) -> GenbaError:
    """The error of a driver as one of ours. `place` names the database without a password."""
    if isinstance(error, sqlite3.Error):
        return _of_sqlite(error, place, waited)
    return _of_postgres(error, place, waited)


def can_be_tried_again(error: Exception) -> bool:
    """Whether the database undid the transaction only because another one was in its way."""
    return getattr(error, "sqlstate", None) in _TRY_AGAIN


def _of_sqlite(error: sqlite3.Error, place: str, waited: float) -> GenbaError:
    # The low byte is the kind of the fault; the rest says more about it.
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    match code:
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return UnavailableError(
                f"the blackboard is locked: another process has been writing to {place} for more than {waited:g} s",
                unchanged=_UNCHANGED,
                hint=f"see who has it open with `fuser {place}`, end that or wait, then try again",
            )
        case sqlite3.SQLITE_FULL | sqlite3.SQLITE_IOERR if code == sqlite3.SQLITE_FULL or _is_full(place):
            return DiskFullError(
                f"the disk is full: {place} cannot grow",
                unchanged=_UNCHANGED,
                hint="free some space, then try again",
            )
        case sqlite3.SQLITE_NOTADB:
            return StateConflictError(
                f"{place} is no blackboard: it is not an SQLite database",
                unchanged=_UNCHANGED,
                hint="move that file away, or name another one",
            )
        case sqlite3.SQLITE_CORRUPT:
            return StateConflictError(
                f"{place} is damaged: {error}",
                unchanged=_UNCHANGED,
                hint=f"keep a copy of it, then look: sqlite3 {place} 'PRAGMA integrity_check'",
            )
        case sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_READONLY | sqlite3.SQLITE_PERM:
            return StateConflictError(
                f"{place} cannot be opened and written: {error}",
                unchanged=_UNCHANGED,
                hint=f"see who may write it: ls -ld {place}",
            )
        case sqlite3.SQLITE_CONSTRAINT:
            return _contradiction(error)
    hint = f"keep a copy of it, then look: sqlite3 {place} 'PRAGMA integrity_check'"
    return UnrecoverableError(f"the blackboard at {place} failed: {error}", unchanged=_UNCHANGED, hint=hint)


def _is_full(place: str) -> bool:
    """Whether there is hardly any room beside a file. SQLite calls that an I/O error where it maps memory to it."""
    try:
        room = os.statvfs(os.path.dirname(place))  # noqa: PTH120  (a name, not a path to walk)
    except OSError:
        return False
    return room.f_bavail * room.f_frsize < _SMALLEST_ROOM


def _of_postgres(error: Any, place: str, waited: float) -> GenbaError:
    state = str(getattr(error, "sqlstate", None) or "")
    output = " ".join(str(error).split()) or type(error).__name__
    match state[:2], state:
        case _, "55P03":
            return UnavailableError(
                f"the blackboard is locked: another session has held a task in {place} for more than {waited:g} s",
                unchanged=_UNCHANGED,
                hint="see who: psql -c 'select pid, state, query from pg_stat_activity'",
            )
        case _, "53100":
            return DiskFullError(
                f"the disk of {place} is full", unchanged=_UNCHANGED, hint="free some space there, then try again"
            )
        case "23", _:
            return _contradiction(error)
        case (("08" | "57" | "28" | "3D" | "53" | ""), _):
            return UnavailableError(
                f"the database {place} cannot be reached: {output}",
                unchanged=_UNCHANGED,
                hint="see that it runs, and that the address, the name and the password are right",
            )
    return UnrecoverableError(f"the blackboard at {place} failed: {output}", unchanged=_UNCHANGED)


def _contradiction(error: Exception) -> GenbaError:
    output = " ".join(str(error).split())
    return StateConflictError(
        f"this contradicts what is on the blackboard: {output}",
        unchanged=_UNCHANGED,
        hint="look at it, then try again: genba task list",
    )
