"""What a turn of the merge queue needs of this machine: the target in git, and the goals of what would land."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

from genba.connections.git.queueing import GitTarget
from genba.connections.journal.redaction import Redactor
from genba.execution.verifying import evidence
from genba.wiring.judging import rulebook, verifier

if TYPE_CHECKING:
    from genba.blackboard.fleet import FleetBoard
    from genba.definitions.fleet_file import FleetSettings
    from genba.domain.evidence import CheckResult
    from genba.domain.fleet import MergeEntry
    from genba.domain.verification import Subject
    from genba.wiring.house import House


def target_of(house: House, settings: FleetSettings) -> GitTarget:
    return GitTarget(house.layout, settings.merge.remote)


class Proving:
    """Holds what would land to the goals of its task, and writes down what was seen."""

    def __init__(self, house: House, board: FleetBoard) -> None:
        self.house = house
        self.board = board

    async def verify(self, entry: MergeEntry, subject: Subject) -> CheckResult | None:
        task = await asyncio.to_thread(self.board.board.get, entry.task)
        policy = await rulebook(self.house.layout, self.house.project).freeze(subject.base, subject.base_branch, task)
        mark = f"{entry.run}.merge"
        house, redact = self.house, Redactor(os.environ).text
        judge = verifier(house.layout, house.processes, redact, mark, house.fence(), entry.agent)
        found = await judge.verify(subject, policy, lambda _result: None)
        await asyncio.to_thread(self.board.board.record_verification, entry.task, entry.run, found)
        return None if found.done else evidence(found)
