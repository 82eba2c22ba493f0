"""Doubles for the state-driven workflow: a verifier that follows a script, and time that passes only in waits."""

import asyncio
from collections import defaultdict
from datetime import UTC, datetime, timedelta

import msgspec

from genba.blackboard.fleet.fleet_board import FleetBoard
from genba.coordination.workflow.work_verifier import VerificationResult, WorkLocation
from genba.domain.errors import GenbaError
from genba.domain.fleet.records import Purpose, SegmentEnd, SegmentOrder, WaitsFor
from genba.domain.goals.verification import VerdictStatus
from genba.domain.sessions.outcomes import Outcome
from genba.domain.tasks.task import Actor, ActorKind, StatusChange, TaskStatus
from genba.domain.workflow.actions import AgentConnection, ErrorCode, Evidence, Hierarchy, WorkflowError
from genba.testing.conformance import a_verification

_GENBA = Actor(ActorKind.ORCHESTRATOR, "genba")


class ManualTimes:
    def __init__(self) -> None:
        self.time = 1_000_000.0
        self.slept: list[float] = []
        self._began = datetime.now(UTC)
        self._start = self.time

    def now(self) -> str:
        at = self._began + timedelta(seconds=self.time - self._start)
        return at.strftime("%Y-%m-%dT%H:%M:%S.%fZ")

    def elapsed(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.time += seconds
        await asyncio.sleep(0)

    def pass_(self, seconds: float) -> None:
        self.time += seconds

    def set_clock(self, seconds: float) -> None:
        self._began += timedelta(seconds=seconds)


class ScriptedDesk:
    """Judges tasks by what the script says of their commits; what is not in the script is green.

    Verdicts and sessions are written to the blackboard, as real desks write them. It fails on a script that was not
    played to its end: `unplayed`.
    """

    def __init__(self, fleet: FleetBoard) -> None:
        self.fleet = fleet
        self.script: dict[int, list[bool | GenbaError]] = defaultdict(list)
        """By task: the next verdicts on it, or what goes wrong while it is judged."""
        self.judged: list[int] = []
        self.taken: list[int] = []
        self.handed_over: list[tuple[int, str]] = []
        self.let_go_of: list[tuple[int, str]] = []
        self.held: asyncio.Event | None = None
        """A verification does not end before this is set."""
        self.judging = asyncio.Event()
        """A verification has begun."""

    def unplayed(self) -> dict[int, int]:
        return {number: len(left) for number, left in self.script.items() if left}

    async def place(self, connection: AgentConnection) -> WorkLocation:
        path = "" if connection.hierarchy is Hierarchy.MANAGER else f"/tree/{connection.run}"
        return WorkLocation(
            branch=f"genba/{connection.task}", base_branch="main", path=path, goals=("tests_pass: pytest -q",)
        )

    async def judge(self, connection: AgentConnection) -> VerificationResult:
        return await self._judge(connection, _task(connection))

    async def judge_subtask(self, connection: AgentConnection, number: int) -> VerificationResult:
        return await self._judge(connection, number)

    async def take(self, connection: AgentConnection, number: int) -> AgentConnection:
        sessions = self.fleet.sessions(number)
        mine = [one for one in sessions if one.agent == connection.agent and one.external and one.status == "running"]
        if mine:
            return msgspec.structs.replace(connection, run=mine[-1].run, task=number)
        if any(one.status != "ended" for one in sessions):
            raise WorkflowError(ErrorCode.CONFLICT, f"somebody else works on #{number}")
        attempt = len(sessions) + 1
        order = SegmentOrder(
            run=f"{connection.agent}-{number}-{attempt}-external",
            task=number,
            agent=connection.agent,
            attempt=attempt,
            purpose=Purpose.MANAGE if connection.hierarchy is Hierarchy.MANAGER else Purpose.WORK,
            external=True,
        )
        session = self.fleet.start(order, executor=connection.id)
        self.taken.append(number)
        return msgspec.structs.replace(connection, run=session.run, task=number)

    async def hand_over(self, connection: AgentConnection, commit: str) -> None:
        if connection.spawned:
            return
        number = _task(connection)
        if self.fleet.board.get(number).status is TaskStatus.IN_PROGRESS:
            change = StatusChange(to=TaskStatus.REVIEW, actor=_GENBA, commit=commit, session=connection.run)
            self.fleet.board.change_status(number, change)
            self.fleet.end_part(SegmentEnd(run=connection.run, part=1, waits_for=WaitsFor.MERGE, verified=commit))
            self.handed_over.append((number, commit))

    async def let_go(self, connection: AgentConnection, why: str) -> None:
        number = _task(connection)
        if self.fleet.session(connection.run).status != "running":
            return
        self.fleet.end_part(SegmentEnd(run=connection.run, part=1, outcome=Outcome.ABORTED, reason=why))
        if self.fleet.board.get(number).status is TaskStatus.IN_PROGRESS:
            self.fleet.board.change_status(number, StatusChange(to=TaskStatus.OPEN, actor=_GENBA, reason=why))
        self.let_go_of.append((number, why))

    async def _judge(self, connection: AgentConnection, number: int) -> VerificationResult:
        self.judging.set()
        if self.held is not None:
            await self.held.wait()
        self.judged.append(number)
        line = self.script[number]
        verdict = line.pop(0) if line else True
        if isinstance(verdict, GenbaError):
            raise verdict
        commit = f"c{len(self.judged)}"
        status = VerdictStatus.DONE if verdict else VerdictStatus.REJECTED
        self.fleet.board.record_verification(number, connection.run, a_verification(commit, status))
        if verdict:
            return VerificationResult(done=True, commit=commit)
        evidence = Evidence(task=number, commit=commit, verdict="missing_artifacts", summary="the goals do not pass")
        return VerificationResult(done=False, commit=commit, evidence=evidence)


def _task(connection: AgentConnection) -> int:
    if connection.task is None:
        raise AssertionError(f"connection {connection.id} has no task")
    return connection.task
