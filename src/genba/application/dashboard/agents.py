"""What the pages of the agents look at: every definition with its problems, how well each did, what it is made of.

Law: looking runs nothing. A handler of a project is code, so it is named here and never loaded. What could be a secret
is not shown.
"""

from __future__ import annotations

import os
import threading
import time
from typing import TYPE_CHECKING, Any

import msgspec

from genba.application.project.agent_registration import registered
from genba.blackboard.views import fleet_views
from genba.definitions.agent.layers import leaves
from genba.definitions.agent.parameters import option_name
from genba.definitions.steps.step_graph import END, StepGraph, ways
from genba.domain.errors import ConfigurationError, NotFoundError
from genba.domain.redaction import Redactor, is_secret_name
from genba.domain.views.agents import (
    AgentCard,
    AgentListView,
    AgentParameter,
    AgentPrompt,
    AgentRecord,
    AgentView,
    Setting,
    StepTransitionView,
    StepView,
)
from genba.judgement.views.graph_layout import places

if TYPE_CHECKING:
    from genba.application.dashboard.queries import DashboardQueries
    from genba.definitions.agent.definition import AgentDefinition
    from genba.domain.fleet.records import FleetSession
    from genba.domain.problems import Problem

SESSIONS = 50
HIDDEN = "••••••"
_HOLDS_SECRETS = frozenset({"environment", "env", "headers", "passkey"})
"""What stands below these may be a secret, whatever it is called."""
_MOMENT_SECONDS = 2.0
_STEP_COLUMN = 6

Read = dict[str, "AgentDefinition | tuple[Problem, ...]"]


class AgentsView:
    """Looks at the agents of one project. Any thread may ask; files are read again after a moment."""

    def __init__(self, queries: DashboardQueries) -> None:
        self.queries = queries
        self._lock = threading.Lock()
        self._read: tuple[float, Read] | None = None
        self._redactor = Redactor(os.environ)

    def picture(self) -> AgentListView:
        records = self._records()
        shown = self.queries.context.registry.folders()
        cards = [
            self._card(name, found, shown[name][1] if name in shown else "", records.get(name, AgentRecord()))
            for name, found in self._definitions().items()
        ]
        external_agents = [
            each for each in registered(self.queries.context) if each.name not in {card.name for card in cards}
        ]
        cards += [
            AgentCard(
                name=external_agent.name,
                description=f"comes by itself, as a {external_agent.hierarchy}",
                capabilities=external_agent.capabilities,
                source="registered",
                record=records.get(external_agent.name, AgentRecord()),
            )
            for external_agent in external_agents
        ]
        known = {card.name for card in cards}
        gone = tuple(AgentCard(name=name, record=records[name]) for name in sorted(records.keys() - known))
        return AgentListView(agents=tuple(cards), gone=gone)

    def one(self, name: str) -> AgentView:
        """One agent; one that is not defined any more has its sessions."""
        listed = self.queries.fleet.store.read(lambda tx: fleet_views.sessions_of(tx, name, SESSIONS))
        suspended = {each.run for each in self._suspended()}
        sessions = tuple(
            msgspec.structs.replace(each, status="suspended") if each.run in suspended else each for each in listed
        )
        everybody = self.picture()
        card = next((each for each in (*everybody.agents, *everybody.gone) if each.name == name), None)
        if card is None:
            raise NotFoundError(f'there is no agent "{name[:80]}"', hint="genba agent list")
        found = self._definitions().get(name)
        if found is None or isinstance(found, tuple):
            return AgentView(card=card, sessions=sessions)
        steps, end = _steps(found)
        return AgentView(
            card=card,
            completes=_completes(found),
            digest=found.digest,
            parameters=tuple(
                AgentParameter(
                    option=option_name(key, each),
                    type=str(each.type),
                    required=each.required,
                    description=each.description,
                )
                for key, each in found.file.parameters.items()
            ),
            prompts=_prompts(found),
            settings=self._settings(found),
            steps=steps,
            end=end,
            asks=found.state_driven,
            sessions=sessions,
        )

    def _records(self) -> dict[str, AgentRecord]:
        """What the sessions of each agent came to. One whose executor is gone does not run, whatever it says."""
        records = self.queries.fleet.store.read(fleet_views.records)
        for session in self._suspended():
            known = records.get(session.agent, AgentRecord())
            records[session.agent] = msgspec.structs.replace(
                known, running=max(0, known.running - 1), waiting=known.waiting + 1
            )
        return records

    def _suspended(self) -> list[FleetSession]:
        standing = self.queries.standing()
        return [each for each in standing.field.sessions if each.status == "running" and not standing.runs(each)]

    def _definitions(self) -> Read:
        """Every agent as its files say now, or its problems; who looks within a moment sees the same."""
        with self._lock:
            now = time.monotonic()
            if self._read is None or now - self._read[0] > _MOMENT_SECONDS:
                registry = self.queries.context.registry
                self._read = (now, {name: self._load(name) for name in registry.folders()})
            return self._read[1]

    def _load(self, name: str) -> AgentDefinition | tuple[Problem, ...]:
        try:
            return self.queries.context.registry.load(name)
        except ConfigurationError as error:
            return error.problems

    def _card(
        self, name: str, found: AgentDefinition | tuple[Problem, ...], source: str, record: AgentRecord
    ) -> AgentCard:
        if isinstance(found, tuple):
            return AgentCard(name=name, source=source, problems=found, record=record)
        return AgentCard(
            name=name,
            title=found.file.title,
            description=found.file.description,
            capabilities=found.capabilities,
            adapter=found.adapter_type or "",
            model=found.shown_model,
            source=source,
            problems=self._problems(found),
            record=record,
        )

    def _problems(self, definition: AgentDefinition) -> tuple[Problem, ...]:
        """What the adapter says to what the definition gives it."""
        if definition.file.runner.adapter is None:
            return ()
        try:
            self.queries.context.adapter(definition)
        except ConfigurationError as error:
            return error.problems
        return ()

    def _settings(self, definition: AgentDefinition) -> tuple[Setting, ...]:
        """Each effective value with its source, as `genba agent show --explain` has them, and without secrets."""
        found = []
        for path, value in leaves(msgspec.to_builtins(definition.file)):
            hidden = _is_secret(path) and value not in (None, "", {}, [])
            shown = HIDDEN if hidden else self._redactor.value(value)
            source = _source_of(path, definition.sources)
            found.append(Setting(path=path, value=shown, source=source, masked=hidden or shown != value))
        return tuple(found)


def _is_secret(path: str) -> bool:
    *above, last = path.split(".")
    return any(word in _HOLDS_SECRETS for word in above) or is_secret_name(last)


def _source_of(path: str, sources: dict[str, str]) -> str:
    """A list is set as a whole; a value that is not set is a default."""
    while path:
        if path in sources:
            return sources[path]
        path = path.rpartition(".")[0]
    return "default"


def _completes(definition: AgentDefinition) -> str:
    runner = definition.file.runner
    if not definition.state_driven:
        return str(runner.completion.type)
    return f"when its report is verified; it is a {runner.flow.hierarchy}, and asks what is next"


def _prompts(definition: AgentDefinition) -> tuple[AgentPrompt, ...]:
    found = {"system": definition.system_prompt, **definition.prompts}
    for step, patterns in definition.retry_prompts.items():
        found.update({f"{step}, after {pattern}": prompt for pattern, prompt in patterns.items()})
    return tuple(AgentPrompt(use=use, source=prompt.source) for use, prompt in found.items())


def _steps(definition: AgentDefinition) -> tuple[tuple[StepView, ...], tuple[int, int] | None]:
    """The flow, each step at its place: what comes first stands on the left."""
    if definition.state_driven:
        return (), None
    registry = definition.registry
    entries = StepGraph(registry, "").entries()
    leads = {step_id: _ways(step_id, step) for step_id, step in registry.steps.items()}
    # The end is no step: no name of one is empty.
    names = (*entries, *(step for step in registry.steps if step not in entries), END)
    needs: dict[str, list[str]] = {}
    for step_id in names[:-1]:
        for way in leads[step_id]:
            needs.setdefault(way.target, []).append(step_id)
    stands = places(names, needs, _STEP_COLUMN)
    steps = tuple(
        StepView(
            id=step_id,
            kind=str(step.step_kind),
            entry=step_id in entries,
            ways=leads[step_id],
            conditions=tuple(each.validator for each in step.completion_conditions),
            prompt=definition.prompts[step_id].source if step_id in definition.prompts else "",
            model=definition.model_for(step_id),
            x=stands[step_id][0],
            y=stands[step_id][1],
        )
        for step_id, step in registry.steps.items()
    )
    return steps, stands[END] if END in needs else None


def _ways(step_id: str, step: Any) -> tuple[StepTransitionView, ...]:
    found: dict[str, list[str]] = {}
    for intent, target in ways(step_id, step):
        found.setdefault(target, []).append(str(intent))
    return tuple(
        StepTransitionView(target=target, intents=tuple(dict.fromkeys(intents))) for target, intents in found.items()
    )
