"""Agents that come by themselves: they are written down with a passkey, which is shown once and kept as a hash."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING

import msgspec

from genba.blackboard.fleet.fleet_board import FleetBoard
from genba.blackboard.workflow.workflow_board import WorkflowBoard
from genba.coordination.scheduler.handover_notes import leave_note
from genba.coordination.scheduler.session import reap
from genba.coordination.workflow.tokens import hashed, new_passkey
from genba.domain.errors import NotFoundError, UsageError
from genba.domain.workflow.actions import Hierarchy, RegisteredAgent

if TYPE_CHECKING:
    from genba.application.project.project_context import ProjectContext

_LONGEST_PROMPT = 100_000
_NAME = re.compile("[a-z][a-z0-9-]{0,62}")


class Registration(msgspec.Struct, frozen=True, kw_only=True):
    """All that an agent needs to sign in. The passkey is printed once."""

    agent: RegisteredAgent
    project: str
    passkey: str

    def __repr__(self) -> str:
        return f"Welcome(agent={self.agent.name!r})"


def register(
    context: ProjectContext,
    name: str,
    *,
    manager: bool | None = None,
    role: str = "developer",
    capabilities: tuple[str, ...] = (),
    system_prompt: str = "",
) -> Registration:
    """Register an agent. Hierarchy and capabilities default to those of the agent in `.agent/` with the same name."""
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"{name[:80]!r} is no name for an agent: lower-case letters, digits and -, at most 63, a letter first",
            unchanged="nothing was changed.",
            hint="genba agent register my-claude",
        )
    if len(system_prompt) > _LONGEST_PROMPT:
        raise UsageError(f"the system prompt has more than {_LONGEST_PROMPT} characters", hint="--prompt FILE")
    known = {info.name: info for info in context.registry.agents()[0]}.get(name)
    if known is not None:
        definition = context.registry.load(name)
        manager = definition.manages if manager is None else manager
        capabilities = capabilities or known.capabilities
    passkey = new_passkey()
    board = context.board()
    agent = WorkflowBoard(board).register(
        name,
        hierarchy=Hierarchy.MANAGER if manager else Hierarchy.WORKER,
        role=role,
        capabilities=capabilities,
        system_prompt=system_prompt,
        passkey_hash=asyncio.run(hashed(passkey)),
        actor=context.actor(),
    )
    return Registration(agent=agent, project=board.store.project, passkey=passkey)


def rotate(context: ProjectContext, name: str) -> Registration:
    """Issue a new passkey. Connections with the old one end."""
    board = context.board(make=False)
    agent = _known(context, name)
    passkey = new_passkey()
    agent = WorkflowBoard(board).set_passkey(agent.id, asyncio.run(hashed(passkey)), context.actor())
    return Registration(agent=agent, project=board.store.project, passkey=passkey)


def revoke(context: ProjectContext, name: str) -> RegisteredAgent:
    """No passkey any more, and the tasks that it has in hand are free. Safe to repeat."""
    board = context.board(make=False)
    agent = WorkflowBoard(board).set_passkey(_known(context, name).id, "", context.actor())
    fleet = FleetBoard(board)
    for session in fleet.field().sessions:
        if session.external and session.agent == name and session.status == "running":
            reap(fleet, session.run, session.part, "its passkey was revoked")
            leave_note(fleet, session.task, session.run, language=context.project.language)
    return agent


def registered(context: ProjectContext) -> tuple[RegisteredAgent, ...]:
    """Those who can come by themselves."""
    if not context.has_board():
        return ()
    return tuple(agent for agent in WorkflowBoard(context.board()).agents() if agent.has_passkey)


def _known(context: ProjectContext, name: str) -> RegisteredAgent:
    found = WorkflowBoard(context.board(make=False)).agent(name)
    if found is None:
        raise NotFoundError(f'no agent is registered as "{name}"', hint=f"genba agent register {name}")
    return found
