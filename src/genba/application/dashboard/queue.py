"""The merge queue: what is next on each target, what verification reported, and what has landed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from genba.blackboard.views import fleet_views
from genba.domain.decoding import reader
from genba.domain.fleet.records import EntryStatus, MergeEntry
from genba.domain.goals.verification import Verification
from genba.domain.sessions.evidence import CheckStatus
from genba.domain.views.queue import QueuedView, QueueGoal, QueueVerification, QueueView, TargetView
from genba.judgement.scheduling.queue_order import in_order

if TYPE_CHECKING:
    from genba.application.dashboard.queries import DashboardQueries
    from genba.blackboard.database.store import Transaction
    from genba.domain.goals.verification import GoalResult

LANDED = 50
"""So many that have landed are shown."""
_MOST_GATES = 60
"""Verifications are read for so many entries; those that wait have mostly nothing to say."""

_verification = reader(Verification)


def queue_picture(queries: DashboardQueries) -> QueueView:
    """The merge queue of every target."""
    field = queries.field()
    settings = queries.context.project.fleet.merge
    open_ = [entry for entry in field.entries if not entry.status.ended]
    back = [entry for entry in field.entries if entry.status in (EntryStatus.CONFLICT, EntryStatus.FAILED)]

    def read(tx: Transaction) -> tuple[list[MergeEntry], dict[int, QueueVerification]]:
        asked = [*back, *(entry for entry in open_ if entry.status is not EntryStatus.QUEUED)][:_MOST_GATES]
        gates = {entry.id: _gate(*found) for entry in asked if (found := fleet_views.gate(tx, entry)) is not None}
        return fleet_views.landed(tx, LANDED), {number: gate for number, gate in gates.items() if gate is not None}

    landed, gates = queries.fleet.store.read(read)
    names = dict.fromkeys(entry.target for entry in (*open_, *back, *landed))
    targets = tuple(
        TargetView(
            target=name,
            open=_in_line([entry for entry in open_ if entry.target == name], gates),
            back=tuple(QueuedView(entry=each, gate=gates.get(each.id)) for each in back if each.target == name),
            landed=tuple(QueuedView(entry=each) for each in landed if each.target == name),
        )
        for name in names
    )
    return QueueView(
        targets=targets,
        waiting=len(open_),
        back=len(back),
        rounds=settings.rounds,
        batch=settings.batch,
        paused=field.paused,
    )


def _in_line(entries: list[MergeEntry], gates: dict[int, QueueVerification]) -> tuple[QueuedView, ...]:
    merging = [entry for entry in entries if entry.status is EntryStatus.MERGING]
    return (
        *(QueuedView(entry=entry, gate=gates.get(entry.id)) for entry in merging),
        *(
            QueuedView(entry=entry, position=at, gate=gates.get(entry.id))
            for at, entry in enumerate(in_order(entries), len(merging) + 1)
        ),
    )


def _gate(data: str, at: str) -> QueueVerification | None:
    """The verification of an entry; None where another version of Genba wrote it."""
    try:
        found = _verification.decode(data)
    except msgspec.ValidationError:
        return None
    return QueueVerification(
        verdict=found.verdict,
        passed=sum(each.result.passed for each in found.results),
        total=len(found.results),
        commit=found.subject.commit,
        goals=tuple(_goal(each) for each in found.results if not each.result.passed),
        missing=found.missing,
        at=at,
    )


def _goal(each: GoalResult) -> QueueGoal:
    status = each.result.status
    return QueueGoal(
        name=each.result.name or each.goal.type,
        level=str(each.goal.level),
        status="failed" if status is CheckStatus.FAILED else str(status),
        required=each.goal.goal.required,
        detail=each.result.detail,
        log=each.log,
        seconds=each.result.seconds,
    )
