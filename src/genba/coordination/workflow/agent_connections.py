"""Who is calling: credentials and passkeys in, tokens out, and whether a token is still good.

Law: every refusal is the same, whatever is wrong, and takes as long. A token that was verified once is remembered by
its digest; whether its connection was closed is asked of the blackboard each time that anything was written there.
"""

import asyncio
import hmac
from collections.abc import Iterable
from typing import Any

import msgspec

from genba.blackboard.workflow.connection_values import StoredConnection
from genba.coordination.workflow.answers import Authenticated, Caller
from genba.coordination.workflow.boards import Boards
from genba.coordination.workflow.rate_limits import Clocks, RateLimits
from genba.coordination.workflow.tokens import Secret, SecretKind, digest, fits, hashed, new_secret, read_secret
from genba.domain.errors import StateConflictError
from genba.domain.fleet.records import Purpose
from genba.domain.timestamps import later
from genba.domain.workflow.actions import ActionKind, AgentConnection, ErrorCode, Hierarchy, Tool, WorkflowError

FAILURES_OF_ONE, FAILURES_OF_ALL = 10, 200
"""Failed authentications in a minute, of one name and of all together."""
CONNECTIONS_PER_NAME = 120
"""Connections in a minute of one name: each of them costs a hash and a row, and may make as many calls as any other."""
MOST_LATE = 64
"""Authentications beyond those that are looked at together: each costs a hash, and they are made one by one."""
_ALL = ""
_BEFORE = ("", str(ActionKind.GET_TASK))
"""The last action of an instance that has not fetched its task."""
_KEPT = 1024
"""Tokens that are remembered: with more, some are verified once more."""


class _CachedToken(msgspec.Struct):
    """A token that was verified by this process, and what was last seen of its connection."""

    digest: bytes
    known: StoredConnection
    pulse: int
    calls: int
    beaten: float
    """When its lease was last written down."""
    last_action: str = ""


class AgentConnections:
    """Authentication, tokens, leases, and the pace of calls."""

    def __init__(self, boards: Boards, project_id: str, times: Clocks) -> None:
        self._boards = boards
        self._board = boards.board
        self._settings = boards.settings.workflow
        self._project = project_id
        self._times = times
        self._failures = RateLimits(FAILURES_OF_ONE, times)
        self._all_failures = RateLimits(FAILURES_OF_ALL, times)
        self._late = 0
        self._recent_connections = RateLimits(CONNECTIONS_PER_NAME, times)
        self._calls = RateLimits(self._settings.calls_per_minute, times)
        self._remembered: dict[str, _CachedToken] = {}
        self._beats: set[asyncio.Task[Any]] = set()
        self._telling = asyncio.Lock()
        boards.has_fetched = self._has_fetched

    async def authenticate(self, caller: Caller, agent_id: str, passkey: str, project_id: str) -> Authenticated:
        credential = _credential(caller, passkey)
        name = credential.id if credential else agent_id
        if credential is not None:
            connection, text, expires_at = await self._by_credential(credential, agent_id, project_id)
            system_prompt = ""
        else:
            connection, text, expires_at, system_prompt = await self._by_passkey(agent_id, passkey.strip(), project_id)
        self._give_back(name)
        return Authenticated(
            session_token=text,
            agent=connection.agent,
            hierarchy=connection.hierarchy,
            project_id=self._project,
            task=connection.task,
            expires_at=expires_at,
            language=self._settings.language,
            system_prompt=system_prompt,
        )

    async def of(self, caller: Caller) -> AgentConnection:
        """The connection of the caller. Raises WorkflowError for a bad token or too many calls."""
        token = read_secret(caller.token, SecretKind.TOKEN)
        if token is None:
            raise not_authenticated()
        there = self._remembered.get(token.id)
        shown = digest(token.text)
        if there is None or not hmac.compare_digest(there.digest, shown):
            there = await self._verified(token.id, token.text, shown)
        pulse = await self._boards.beat()
        if pulse != there.pulse:
            known = await self._boards.read(lambda: self._board.connection(token.id))
            if known is None:
                raise not_authenticated()
            there.known, there.pulse = known, pulse
        if not there.known.is_good(self._times.now()) or there.known.connection.project != self._project:
            self._remembered.pop(token.id, None)
            raise not_authenticated()
        wait = self._calls.take(token.id)
        if wait:
            raise _slower(wait)
        there.calls += 1
        self._beat_now_and_then(token.id, there)
        return there.known.connection

    def pulse_of(self, connection: AgentConnection) -> int:
        """What the blackboard's pulse was when the connection was looked at in this call."""
        there = self._remembered.get(connection.id)
        return there.pulse if there else -1

    def exit_of(self, connection: AgentConnection) -> str:
        """The reason for which it was stopped, as far as it was seen."""
        there = self._remembered.get(connection.id)
        return there.known.exit if there else ""

    def note_action(self, connection: AgentConnection, action: str) -> None:
        """Record the last action of the connection when it changed."""
        there = self._remembered.get(connection.id)
        if there is not None and there.last_action != action:
            there.last_action = action
            self._beat(connection.id, there)

    async def fetched(self, connection: AgentConnection) -> None:
        """Record that the instance has fetched its task, also for other servers."""
        there = self._remembered.get(connection.id)
        if there is not None and there.last_action in _BEFORE:
            there.last_action = Tool.GET_MY_TASK
            await self._tell(connection.id)

    async def close(self, connection: AgentConnection, why: str) -> None:
        await self._tell(connection.id)
        await self._boards.write(lambda: self._board.close_connection(connection.id, why))
        self._remembered.pop(connection.id, None)

    async def keep(self, ids: Iterable[str]) -> None:
        """These have a call under way, which is a sign of life however long it takes."""
        for id_ in ids:
            there = self._remembered.get(id_)
            if there is not None and self._is_due(there):
                await self._tell(id_)

    async def settle(self) -> None:
        """Wait for the signs of life that are being written."""
        while self._beats:
            await asyncio.gather(*self._beats, return_exceptions=True)

    async def _by_credential(self, shown: Secret, agent_id: str, project_id: str) -> tuple[AgentConnection, str, str]:
        found = await self._boards.read(lambda: self._board.credential(shown.id))
        good = await self._fits(shown.id, shown.text, found.secret_hash if found else "")
        if found is None or not good or not found.is_good(self._times.now()):
            raise not_authenticated()
        if agent_id not in ("", found.agent, found.agent_id) or project_id not in ("", self._project):
            raise not_authenticated()
        session = await self._boards.read(lambda: self._boards.fleet.session(found.run))
        manages = session.purpose is Purpose.MANAGE
        connection = AgentConnection(
            id="",
            agent=found.agent,
            agent_id=found.agent_id,
            hierarchy=Hierarchy.MANAGER if manages else Hierarchy.WORKER,
            project=self._project,
            run=found.run,
            task=found.task,
        )
        return await self._connected(connection, shown.id)

    async def _by_passkey(self, agent_id: str, shown: str, project_id: str) -> tuple[AgentConnection, str, str, str]:
        agent = await self._boards.read(lambda: self._board.agent(agent_id)) if agent_id else None
        known = await self._boards.read(lambda: self._board.passkey_hash(agent.id)) if agent else ""
        good = await self._fits(agent_id, shown, known)
        if agent is None or not good or agent.status != "active" or project_id not in ("", self._project):
            raise not_authenticated()
        connection = AgentConnection(
            id="",
            agent=agent.name,
            agent_id=agent.id,
            hierarchy=agent.hierarchy,
            project=self._project,
            spawned=False,
        )
        if wait := self._recent_connections.take(agent.id):
            raise _slower(wait)
        return *await self._connected(connection, "", known), agent.system_prompt

    async def _connected(
        self, connection: AgentConnection, credential: str, passkey_hash: str | None = None
    ) -> tuple[AgentConnection, str, str]:
        token = new_secret(SecretKind.TOKEN)
        at = self._times.now()
        expires_at = later(at, self._settings.token_hours * 3600)
        # An instance that Genba started has no lease of its own: the watcher of its process closes its connection.
        lease = expires_at if connection.spawned else later(at, self._settings.lease_seconds)
        connection = msgspec.structs.replace(connection, id=token.id, lease_until=lease, created_at=at)
        token_hash = await hashed(token.text)

        def take() -> AgentConnection | None:
            try:
                return self._board.open_connection(connection, token_hash, expires_at, credential, passkey_hash)
            except StateConflictError:
                return None

        taken = await self._boards.write(take)
        if taken is None:
            raise not_authenticated()
        known = await self._boards.read(lambda: self._board.connection(token.id))
        if known is None:
            raise not_authenticated()
        self._remember(token.id, digest(token.text), known)
        return taken, token.text, expires_at

    async def _verified(self, id: str, text: str, shown: bytes) -> _CachedToken:  # noqa: A002  (the word of the house)
        known = await self._boards.read(lambda: self._board.connection(id))
        # A connection that was closed counts as a failure too: its token costs as much as a wrong one.
        lives = known is not None and known.is_good(self._times.now())
        good = await self._fits(id, text, known.token_hash if known is not None and lives else "")
        if known is None or not good:
            raise not_authenticated()
        self._give_back(id)
        return self._remember(id, shown, known)

    def _remember(self, id: str, shown: bytes, known: StoredConnection) -> _CachedToken:  # noqa: A002  (the word of the house)
        while len(self._remembered) >= _KEPT:
            self._remembered.pop(next(iter(self._remembered)))
        # The pulse was not looked at together with the connection, so the connection is looked at once more.
        there = _CachedToken(shown, known, -1, known.calls, self._times.elapsed(), known.last_action)
        self._remembered[id] = there
        return there

    def _has_fetched(self, id: str) -> bool:  # noqa: A002  (the word of the house)
        there = self._remembered.get(id)
        return there is None or there.last_action not in _BEFORE

    async def _fits(self, name: str, text: str, known: str) -> bool:
        """True when the secret of this name fits its hash. Each call counts as a failure until it is given back.

        However many calls fail, the right secret still works: it is always checked, so guessing under the name of an
        agent does not lock that agent out. Too many failures raise a limit error after the same time, whether the name
        exists or not. At most `MOST_LATE` of those are checked at once.
        """
        wait = self._failures.take(name) or self._all_failures.take(_ALL)
        if not wait:
            return await fits(text, known)
        if self._late >= MOST_LATE:
            raise _too_many(wait)
        self._late += 1
        try:
            good = await fits(text, known)
        finally:
            self._late -= 1
        if not good:
            raise _too_many(wait)
        return good

    def _give_back(self, name: str) -> None:
        self._all_failures.give_back(_ALL)
        self._failures.give_back(name)

    def _beat_now_and_then(self, id: str, there: _CachedToken) -> None:  # noqa: A002  (the word of the house)
        if self._is_due(there):
            self._beat(id, there)

    def _is_due(self, there: _CachedToken) -> bool:
        return self._times.elapsed() - there.beaten >= self._settings.lease_seconds / 4

    def _beat(self, id: str, there: _CachedToken) -> None:  # noqa: A002  (the word of the house)
        there.beaten = self._times.elapsed()
        beat = asyncio.create_task(self._tell(id))
        self._beats.add(beat)
        beat.add_done_callback(self._beats.discard)

    async def _tell(self, id: str) -> None:  # noqa: A002  (the word of the house)
        async with self._telling:  # calls are recorded in order
            there = self._remembered.get(id)
            if there is None:
                return
            at, connection = self._times.now(), there.known.connection
            lease = there.known.expires_at if connection.spawned else later(at, self._settings.lease_seconds)
            sign = (lease, there.calls, there.last_action)
            there.beaten = self._times.elapsed()
            try:
                await self._boards.write(lambda: self._board.beat({id: sign}))
            except WorkflowError:
                there.beaten = 0.0  # a lease that was not written is written with the next call


def _credential(caller: Caller, passkey: str) -> Secret | None:
    """The one-time credential that was shown. One that the connection carries counts, unless a passkey is shown too.

    Models fill in a passkey that they were not given, so that only what looks like one is one.
    """
    if passkey.strip().startswith(f"{SecretKind.PASSKEY}_"):
        return None
    return read_secret(passkey, SecretKind.CREDENTIAL) or read_secret(caller.token, SecretKind.CREDENTIAL)


def not_authenticated() -> WorkflowError:
    return WorkflowError(
        ErrorCode.NOT_AUTHENTICATED,
        "not authenticated",
        hint="authenticate comes first; if it did, the secret is not known here, or it is good no more",
        action="exit",
    )


def _too_many(wait: float) -> WorkflowError:
    return WorkflowError(
        ErrorCode.LIMIT,
        "there were too many failed authentications",
        hint=f"wait {wait:.0f} seconds, then authenticate again",
        action="exit",
    )


def _slower(wait: float) -> WorkflowError:
    return WorkflowError(
        ErrorCode.LIMIT,
        "too many calls in a minute",
        hint=f"wait {max(wait, 0.1):.1f} seconds before the next call",
        action="retry",
    )
