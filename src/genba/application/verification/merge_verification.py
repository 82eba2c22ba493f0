"""What a turn of the merge queue needs of this machine: the target in git, and the goals of what would land."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

import msgspec

from genba.application.verification.maker import Maker
from genba.application.verification.policies import policy_resolver
from genba.domain.processes import merge_mark
from genba.execution.verification.policy import Policy
from genba.execution.verification.verify import evidence

if TYPE_CHECKING:
    from genba.application.project.project_context import ProjectContext
    from genba.blackboard.fleet.fleet_board import FleetBoard
    from genba.domain.fleet.records import MergeEntry
    from genba.domain.goals.verification import Subject, Verification
    from genba.domain.sessions.evidence import CheckResult

_MOST_REMEMBERED = 500


class Proving:
    """Holds what would land to the goals of its task, and writes down what was seen.

    What cannot land is tried again and again. So what was seen of the same tree is not looked at again, and not written
    down twice: a target that is in the way for a night does not fill the blackboard.
    """

    def __init__(self, context: ProjectContext, board: FleetBoard) -> None:
        self.context = context
        self.board = board
        self._done: dict[int, _Seen] = {}
        """By entry: what was held to its goals last, and passed."""
        self._written: dict[int, Verification] = {}

    async def verify(self, entry: MergeEntry, subject: Subject) -> CheckResult | None:
        task = await asyncio.to_thread(self.board.board.get, entry.task)
        policy = await policy_resolver(self.context).freeze(subject.base, subject.base_branch, task)
        if entry.id in self._done and self._done[entry.id] == _Seen(await self._tree(subject), subject.base, policy):
            return None
        mark = merge_mark(entry.run, f"{os.getpid()}-{os.urandom(3).hex()}")
        maker = Maker(agent=entry.agent, run=entry.run)
        verifier = await asyncio.to_thread(self.context.ports.verifier, maker, mark)
        found = await verifier.verify(subject, policy, lambda _result: None)
        if not _says_the_same(self._written.get(entry.id), found):
            await asyncio.to_thread(self.board.board.record_verification, entry.task, entry.run, found)
        self._remember(entry.id, found, policy)
        return None if found.done else evidence(found)

    async def _tree(self, subject: Subject) -> str:
        return await self.context.layout.git.text("rev-parse", f"{subject.commit}^{{tree}}")

    def _remember(self, entry: int, found: Verification, policy: Policy) -> None:
        if len(self._written) >= _MOST_REMEMBERED:
            self._written.clear()
            self._done.clear()
        self._written[entry] = found
        self._done.pop(entry, None)
        if found.done:
            self._done[entry] = _Seen(found.tree, found.subject.base, policy)


class _Seen(msgspec.Struct, frozen=True):
    tree: str
    base: str
    policy: Policy


def _says_the_same(one: Verification | None, other: Verification) -> bool:
    """True for equal verdicts on the same tree; durations do not count."""
    return one is not None and _outcome(one) == _outcome(other)


def _outcome(found: Verification) -> tuple[object, ...]:
    results = [(each.goal, each.result.status, each.result.detail) for each in found.results]
    return found.tree, found.subject.base, found.status, found.reason, results
