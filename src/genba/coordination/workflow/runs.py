"""The workflow as a run sees it whose instances ask what is next: a secret for each, and how far it has come."""

import asyncio

from genba.blackboard.workflow.workflow_board import WorkflowBoard
from genba.coordination.workflow.rate_limits import Clocks, SystemClocks
from genba.coordination.workflow.tokens import SecretKind, hashed, new_secret
from genba.domain.timestamps import later
from genba.domain.workflow.actions import SessionResult

CREDENTIAL_SECONDS = 3600.0
"""How long an instance may take from its start to its first call."""


class RunWorkflow:
    """The port `Workflow` on the blackboard."""

    def __init__(self, board: WorkflowBoard, times: Clocks | None = None) -> None:
        self._board = board
        self._times = times or SystemClocks()

    async def credential(self, run: str) -> str:
        secret = new_secret(SecretKind.CREDENTIAL)
        secret_hash = await hashed(secret.text)
        until = later(self._times.now(), CREDENTIAL_SECONDS)
        await asyncio.to_thread(self._board.issue, secret.id, run, secret_hash, until)
        return secret.text

    async def standing(self, run: str) -> SessionResult:
        return await asyncio.to_thread(self._board.standing, run)

    async def leave(self, run: str, why: str) -> None:
        await asyncio.to_thread(self._board.leave, run, why)
