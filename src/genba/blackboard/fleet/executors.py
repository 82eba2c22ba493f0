"""Executors, and pauses of providers."""

from genba.blackboard.database.sanitize import now, seen, storable
from genba.blackboard.database.store import Statement, Transaction
from genba.blackboard.tasks.history import EXECUTOR_CAME, EXECUTOR_LEFT, PROVIDER_PAUSED, NewEvent, tell
from genba.domain.errors import UsageError
from genba.domain.fleet.records import Executor, ProviderPause
from genba.domain.tasks.task import Actor, ActorKind
from genba.domain.timestamps import format_time, parse_time

_REGISTER = Statement("""
INSERT INTO executors (project_id, id, host, process, workers, status, started_at, heartbeat_at)
VALUES (:project, :id, :host, :process, :workers, 'live', :at, :at)
ON CONFLICT (project_id, id) DO UPDATE SET host = excluded.host, process = excluded.process,
  workers = excluded.workers, status = 'live', started_at = excluded.started_at, heartbeat_at = excluded.heartbeat_at
""")
_BEAT = Statement("UPDATE executors SET heartbeat_at = :at WHERE project_id = :project AND id = :id")
_LEAVE = Statement("""
UPDATE executors SET status = :status, heartbeat_at = :at
WHERE project_id = :project AND id = :id AND status <> :status RETURNING id
""")
_ALL = Statement("""
SELECT id, host, process, workers, status, started_at, heartbeat_at FROM executors WHERE project_id = :project
ORDER BY started_at, id
""")
_PAUSE = Statement("""
INSERT INTO provider_pauses (project_id, provider, until, reason) VALUES (:project, :provider, :until, :reason)
ON CONFLICT (project_id, provider) DO UPDATE SET until = excluded.until, reason = excluded.reason
WHERE provider_pauses.until < excluded.until
RETURNING id
""")
_FORGET = Statement("DELETE FROM provider_pauses WHERE project_id = :project")
_PAUSES = Statement("""
SELECT provider, until, reason FROM provider_pauses WHERE project_id = :project AND until > :at ORDER BY provider
""")
_ENDED = ("suspended", "dead")


def register(tx: Transaction, executor: Executor) -> Executor:
    """Write down that an executor lives; one that comes back under its id is the same one."""
    storable(executor.id, "the id of an executor", empty=False)
    at = now()
    tx.do(
        _REGISTER,
        project=tx.project,
        id=executor.id,
        host=seen(executor.host),
        process=executor.process,
        workers=executor.workers,
        at=at,
    )
    _tell(tx, executor.id, at, EXECUTOR_CAME, {"host": seen(executor.host), "workers": executor.workers})
    return next(there for there in executors(tx) if there.id == executor.id)


def beat(tx: Transaction, id_: str) -> None:
    tx.do(_BEAT, project=tx.project, id=id_, at=now())


def leave(tx: Transaction, id_: str, status: str) -> None:
    """Write down that an executor is gone: `suspended` by itself, or found `dead`."""
    if status not in _ENDED:
        raise UsageError(f"an executor leaves {' or '.join(_ENDED)}, not {status!r}", unchanged="nothing was changed.")
    at = now()
    if tx.one(_LEAVE, project=tx.project, id=id_, status=status, at=at) is not None:
        _tell(tx, id_, at, EXECUTOR_LEFT, {"status": status})


def executors(tx: Transaction) -> tuple[Executor, ...]:
    return tuple(
        Executor(
            id=id_, host=host, process=process, workers=workers, status=status, started_at=came, heartbeat_at=beat_
        )
        for id_, host, process, workers, status, came, beat_ in tx.all(_ALL, project=tx.project)
    )


def pause_provider(tx: Transaction, provider: str, until: str, reason: str) -> None:
    """Pause a provider until that time. Of two pauses the later end counts."""
    storable(provider, "the provider", empty=False)
    at, until = now(), _as_ours(until)
    if tx.one(_PAUSE, project=tx.project, provider=provider, until=until, reason=seen(reason)) is not None:
        _tell(tx, "genba", at, PROVIDER_PAUSED, {"provider": provider, "until": until, "reason": seen(reason)})


def pauses(tx: Transaction, at: str) -> tuple[ProviderPause, ...]:
    """The pauses that are not over."""
    found = tx.all(_PAUSES, project=tx.project, at=at)
    return tuple(ProviderPause(provider=provider, until=until, reason=reason) for provider, until, reason in found)


def forget_pauses(tx: Transaction) -> None:
    """End all pauses: their end is unknown after the clock was set back."""
    tx.do(_FORGET, project=tx.project)


def _as_ours(until: str) -> str:
    """A time as the blackboard writes times, so that they can be compared as text."""
    time = parse_time(until)
    if time is None:
        raise UsageError(f"{until!r} is no time", unchanged="nothing was changed.")
    return format_time(time)


def _tell(tx: Transaction, name: str, at: str, kind: str, data: dict[str, object]) -> None:
    tell(tx, Actor(ActorKind.ORCHESTRATOR, name), at, [NewEvent(task=None, version=0, kind=kind, data=data)])
