"""Who is at work: the executors of a project as their locks tell, whatever they could still write down."""

from pathlib import Path

from genba.blackboard.database.store import Statement, Transaction
from genba.blackboard.fleet.fleet_board import FleetBoard
from genba.coordination.engine.executor_lock import FileLock, lock_number
from genba.coordination.engine.workflow_names import WorkflowNames
from genba.domain.fleet.records import Executor

SUSPENDED = "suspended"
"""How a session stands whose executor has gone: it goes on with the next one."""

_HELD = Statement("""
SELECT count(*) FROM pg_locks
WHERE locktype = 'advisory' AND granted AND objsubid = 1
  AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
  AND CAST(classid AS bigint) = :high AND CAST(objid AS bigint) = :low
""")


def absent(board: FleetBoard) -> frozenset[str]:
    """The executors that do not work now: ended, or dead and not yet reaped. Takes no lock."""
    executors = board.executors()
    live = [executor for executor in executors if executor.status == "live"]
    gone = {executor.id for executor in executors if executor.status != "live"}
    if live and board.store.on_postgres:
        prefix = WorkflowNames(board.store.project).prefix
        gone |= board.store.read(lambda tx: {each.id for each in live if not _is_held(tx, f"{prefix}{each.id}")})
    elif live:
        holder = FileLock(Path(board.store.place), "").holder()
        gone |= {executor.id for executor in live if not _is_holder(executor, holder)}
    return frozenset(gone)


def _is_held(tx: Transaction, executor: str) -> bool:
    number = lock_number(executor) & 0xFFFFFFFFFFFFFFFF
    found = tx.one(_HELD, high=number >> 32, low=number & 0xFFFFFFFF)
    return found is not None and bool(found[0])


def _is_holder(executor: Executor, holder: int | None) -> bool:
    """A holder without a process id may be any process."""
    return holder is not None and holder in (0, executor.process)
