"""`get_next_action`: the snapshot, the decision, the instruction; and a call that is held while there is nothing to do.

Law: an answer is given again only while nothing was written to the blackboard since it was made.
"""

from collections.abc import Mapping

import msgspec

from genba.coordination.workflow.agent_connections import AgentConnections
from genba.coordination.workflow.boards import Boards
from genba.coordination.workflow.external_tasks import ExternalTasks
from genba.coordination.workflow.rate_limits import Clocks
from genba.domain.workflow.actions import Action, ActionKind, AgentConnection, ExitReason, Snapshot
from genba.judgement.workflow.instructions import write
from genba.judgement.workflow.next_action import decide

LOOK_EVERY = 0.25
"""Seconds between two looks of a call that is held."""
LOOK_AGAIN = 60.0
"""Seconds after which it is worth asking again for an external agent that there was no task for."""
_KEPT = 1024
_FREES_EXTERNAL_AGENT = (ExitReason.COMPLETED, ExitReason.CANCELLED, ExitReason.TAKEN, ExitReason.BLOCKED)
"""After these an external agent can take another task."""
_SILENT = (ExitReason.COMPLETED, ExitReason.NO_TASK)
"""What needs no word on the blackboard: it stands there already, or there is nothing to tell."""


class _LastAnswer(msgspec.Struct):
    """The last answer to one connection."""

    pulse: int
    seen: Snapshot
    answer: Action
    repeats: int = 0
    waiting_since: float | None = None


class NextActions:
    def __init__(
        self,
        boards: Boards,
        connections: AgentConnections,
        taking: ExternalTasks,
        overrides: Mapping[str, str],
        times: Clocks,
    ) -> None:
        self._boards = boards
        self._connections = connections
        self._taking = taking
        self._overrides = overrides
        self._times = times
        self._settings = boards.settings.workflow
        self._asked: dict[str, _LastAnswer] = {}
        self._holding: dict[str, object] = {}
        """By connection: the one call that is held for it."""

    async def next_action(self, connection: AgentConnection) -> Action:
        asked = self._asked.get(connection.id)
        pulse = self._connections.pulse_of(connection)
        if (
            asked is not None
            and asked.pulse == pulse
            and asked.answer.action is not ActionKind.WAIT
            and (asked.repeats + 1) * 2 < self._settings.max_repeats
        ):
            asked.repeats += 1
            return asked.answer
        if connection.task is None and not connection.spawned:
            connection = await self._taking.take(connection)
        return await self._held(connection, pulse)

    def forget(self, connection: AgentConnection) -> None:
        self._asked.pop(connection.id, None)

    async def _held(self, connection: AgentConnection, pulse: int) -> Action:
        """The answer, or a wait that was held as long as the settings say and ended by whatever happens first."""
        answer = await self._looked(connection, pulse)
        if answer.action is ActionKind.WAIT:
            mine = self._holding[connection.id] = object()
            try:
                answer = await self._changed(connection, pulse, answer, mine)
            finally:
                if self._holding.get(connection.id) is mine:
                    del self._holding[connection.id]
        self._connections.note_action(connection, _named(answer))
        await self._part(connection, answer)
        return answer

    async def _changed(self, connection: AgentConnection, pulse: int, answer: Action, mine: object) -> Action:
        """One call is held for each connection: a newer one ends it, so that no client holds more than one."""
        began = self._times.elapsed()
        while answer.action is ActionKind.WAIT and self._times.elapsed() - began < self._settings.wait_seconds:
            await self._times.sleep(LOOK_EVERY)
            if self._holding.get(connection.id) is not mine:
                break
            now = await self._boards.read(self._boards.pulse.now)
            if now != pulse or self._is_to_suspend(connection):
                pulse = now
                answer = await self._looked(connection, pulse)
        return answer

    async def _looked(self, connection: AgentConnection, pulse: int) -> Action:
        before = self._asked.get(connection.id)
        waited = self._waited(before)
        snapshot = await self._boards.snapshot(connection, waited_seconds=waited)
        core = msgspec.structs.replace(snapshot, waited_seconds=0.0)
        same = before is not None and before.seen == core
        waits = before is not None and before.answer.action is ActionKind.WAIT
        repeats = before.repeats + (0 if waits else 1) if before is not None and same else 0
        action = decide(msgspec.structs.replace(snapshot, repeats=repeats))
        if action.reason == ExitReason.NO_TASK and not connection.spawned:
            action = msgspec.structs.replace(action, retry_after=LOOK_AGAIN)
        if (
            before is not None
            and same
            and before.answer == msgspec.structs.replace(action, instruction=before.answer.instruction)
        ):
            answer = before.answer
        else:
            instruction = write(action, self._settings.language, self._overrides)
            answer = msgspec.structs.replace(action, instruction=instruction)
        since = before.waiting_since if before is not None and waits else None
        if action.action is ActionKind.WAIT and since is None:
            since = self._times.elapsed()
        self._keep(connection, _LastAnswer(pulse, core, answer, repeats, since))
        return answer

    def _waited(self, before: _LastAnswer | None) -> float:
        if before is None or before.waiting_since is None:
            return 0.0
        return self._times.elapsed() - before.waiting_since

    def _is_to_suspend(self, connection: AgentConnection) -> bool:
        return connection.spawned and self._waited(self._asked.get(connection.id)) >= self._settings.suspend_seconds

    def _keep(self, connection: AgentConnection, asked: _LastAnswer) -> None:
        self._asked.pop(connection.id, None)
        while len(self._asked) >= _KEPT:
            self._asked.pop(next(iter(self._asked)))
        self._asked[connection.id] = asked

    async def _part(self, connection: AgentConnection, answer: Action) -> None:
        """Record why an instance is stopped, for the process that started it."""
        if answer.action is not ActionKind.EXIT or not answer.reason:
            return
        reason = ExitReason(answer.reason)
        if connection.spawned or reason is ExitReason.NO_PROGRESS:
            if reason not in _SILENT and not self._connections.exit_of(connection):
                await self._boards.write(lambda: self._boards.board.stop_instance(connection.id, reason))
        elif reason in _FREES_EXTERNAL_AGENT and connection.task is not None:
            await self._taking.release(connection, reason)


def _named(answer: Action) -> str:
    return f"{answer.action}: {answer.reason}" if answer.action is ActionKind.EXIT else str(answer.action)
