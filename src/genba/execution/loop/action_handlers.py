"""Action blocks of a reply, handed to their handlers."""

import asyncio

import msgspec

from genba.definitions.agent.agent_json import Actions
from genba.domain.errors import UnrecoverableError
from genba.domain.events import ActionHandled, ActionRefused
from genba.domain.sessions.loop_state import ClosureChoice, LoopState
from genba.execution.session_context import SessionContext
from genba.judgement.loop.action_blocks import ActionBlock, find_actions
from genba.judgement.loop.claims import read_closure

RECORD = "builtin:record"


class Signals(msgspec.Struct, frozen=True):
    """What the actions of one reply mean for the loop."""

    complete: bool = False
    blocked: str = ""
    closure: ClosureChoice | None = None


async def handle_actions(text: str, settings: Actions, context: SessionContext, state: LoopState) -> Signals:
    """Refuse what is not allowed, hand over the rest, and gather what it signals."""
    signals = Signals()
    for block in find_actions(text, settings):
        where = {"step": state.step, "iteration": state.iterations + 1}
        if not block.allowed:
            reason = "it is not in runner.actions.types"
            context.journal.emit(ActionRefused(type=block.type, reason=reason, **where))  # type: ignore[arg-type]
            continue
        handler = settings.handlers.get(block.type, RECORD)
        signals, result = await _handle(block, handler, context, signals)
        handled = ActionHandled(type=block.type, handler=handler, result=result, **where)  # type: ignore[arg-type]
        context.journal.emit(handled)
    return signals


async def _handle(block: ActionBlock, handler: str, context: SessionContext, signals: Signals) -> tuple[Signals, str]:
    match handler:
        case "builtin:record":
            return signals, msgspec.json.encode(block.content).decode()
        case "builtin:completion-signal":
            return msgspec.structs.replace(signals, complete=True), "signals completion"
        case "builtin:blocked-signal":
            reason = str(block.content.get("reason") or block.content.get("question") or "the agent is blocked")
            return msgspec.structs.replace(signals, blocked=reason), reason
        case "builtin:closure-action":
            choice = read_closure({"closure": block.content})
            return msgspec.structs.replace(signals, closure=choice), str(choice.action or "")
    try:
        result = await asyncio.to_thread(context.agent.action_handlers[block.type], block.content)
    except Exception as error:
        raise UnrecoverableError(f"the handler {handler} failed: {type(error).__name__}: {error}") from error
    return signals, "" if result is None else str(result)
