"""The agent that is code: each step of the facilitator is answered by what was seen of the field."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Protocol

import msgspec
from msgspec import Meta

from genba.connections.agents.one_shot import OneShotAdapter, OneShotInstance
from genba.domain.errors import UnrecoverableError
from genba.domain.ports import AgentInstance
from genba.domain.processes import OutputListener
from genba.domain.sessions.agent_adapter import BaseAdapter
from genba.domain.sessions.replies import AgentSession, Ask, InstanceStatus, Reply
from genba.domain.sessions.sandbox import McpServer, Provider
from genba.domain.text_limits import PARAGRAPH, cut
from genba.domain.tracker.quoting import harmless

_LONGEST = 4_000


class Answers(Protocol):
    """What is seen of the field, step by step."""

    def knows(self, step: str) -> bool:
        """Whether code has an answer to a step."""
        ...

    async def answer(self, step: str) -> dict[str, Any]: ...

    async def settle(self, step: str, answered: dict[str, Any]) -> None:
        """Carry out what a step answered, where the run is set to."""
        ...


class FieldSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What `runner.adapter` takes with the type `facilitator`."""

    type: Annotated[str, Meta(min_length=1)]


class FieldAdapter(OneShotAdapter):
    """Answers by code, with the answers that its constructor gets."""

    settings_type = FieldSettings

    def __init__(self, settings: FieldSettings, folder: Path, answers: Answers | None = None) -> None:
        self.settings = settings
        self.folder = folder
        self.answers = answers

    async def start(self, session: AgentSession) -> AgentInstance:
        return OneShotInstance(session)

    async def execute(self, instance: AgentInstance, ask: Ask, on_output: OutputListener) -> Reply:  # noqa: ARG002  (no process speaks)
        shot = OneShotInstance.of(instance)
        if self.answers is None:
            raise UnrecoverableError(
                "only the facilitator is answered by code: there are no answers here", hint="genba facilitate"
            )
        with shot.running():
            structured = await self.answers.answer(ask.step)
            await self.answers.settle(ask.step, structured)
        return Reply(text=msgspec.json.encode(structured).decode(), structured=structured)


class PhrasingAdapter(BaseAdapter):
    """A model that gets the facts, and words the comments. All else is answered by code, whatever it replies.

    A step that code does not know is the model's own.
    """

    def __init__(self, inner: BaseAdapter, answers: Answers) -> None:
        self._inner = inner
        self.answers = answers
        self.commits, self.install, self.uses_egress = inner.commits, inner.install, inner.uses_egress

    def problem(self, environment: Mapping[str, str]) -> str:
        return self._inner.problem(environment)

    def folders(self, environment: Mapping[str, str]) -> tuple[str, ...]:
        return self._inner.folders(environment)

    def provider(self, environment: Mapping[str, str]) -> Provider | None:
        return self._inner.provider(environment)

    def mcp_servers(self) -> tuple[McpServer, ...]:
        return self._inner.mcp_servers()

    async def start(self, session: AgentSession) -> AgentInstance:
        return await self._inner.start(session)

    async def status(self, instance: AgentInstance) -> InstanceStatus:
        return await self._inner.status(instance)

    async def stop(self, instance: AgentInstance) -> None:
        await self._inner.stop(instance)

    async def execute(self, instance: AgentInstance, ask: Ask, on_output: OutputListener) -> Reply:
        if not self.answers.knows(ask.step):
            return await self._inner.execute(instance, ask, on_output)
        facts = await self.answers.answer(ask.step)
        shown = msgspec.json.format(msgspec.json.encode(facts), indent=1).decode()
        message = (
            f"{ask.prompt}\n\nThis is what was found by code. Answer with exactly this; only the texts under `body` may"
            f" be worded better, with nothing added to what they say:\n\n```json\n{shown}\n```\n"
        )
        reply = await self._inner.execute(instance, msgspec.structs.replace(ask, prompt=message), on_output)
        answered = worded(facts, reply.structured or _object_in(reply.text))
        await self.answers.settle(ask.step, answered)
        return msgspec.structs.replace(reply, structured=answered)


def _object_in(text: str) -> dict[str, Any] | None:
    """The object that a text is, or has around it nothing but words."""
    try:
        found = msgspec.json.decode(text[text.index("{") : text.rindex("}") + 1])
    except (ValueError, msgspec.DecodeError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def worded(facts: dict[str, Any], reply: dict[str, Any] | None) -> dict[str, Any]:
    """The facts, with the model's wording of the comments on issues."""
    theirs = reply.get("actions") if isinstance(reply, dict) else None
    if "actions" not in facts or not isinstance(theirs, list):
        return facts
    wording = {
        (each.get("action"), each.get("issue")): harmless(cut(each["body"], _LONGEST))
        for each in theirs
        if isinstance(each, dict) and isinstance(each.get("body"), str) and each["body"].strip()
    }
    actions = [
        {**each, "body": _with_command(wording.get((each["action"], each["issue"])), each)} for each in facts["actions"]
    ]
    return {**facts, "actions": actions}


def _with_command(wording: str | None, action: dict[str, Any]) -> str:
    """The words for an action; of a comment the last paragraph stays, which names the next command."""
    body = str(action["body"])
    if wording is None or action["action"] not in ("comment", "update"):
        return wording or body
    command = body.rpartition(PARAGRAPH)[2]
    return wording if wording.endswith(command) else f"{wording.rstrip()}{PARAGRAPH}{command}"
