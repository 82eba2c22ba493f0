"""The frozen definition of an agent: what runs, whatever happens to the files meanwhile."""

from typing import Any

import msgspec

from genba.definitions.agent.agent_json import AgentFile
from genba.definitions.agent.completion import Completion, IterationBudget
from genba.definitions.agent.state_driven import SERVER, STATE_DRIVEN
from genba.definitions.project.sandbox_section import AgentEnvironment
from genba.definitions.steps.steps_registry import Step, StepsRegistry
from genba.domain.sessions.evidence import BUILTIN_CHECKS, Check
from genba.domain.sessions.outcomes import PermissionMode


class PromptText(msgspec.Struct, frozen=True):
    source: str
    text: str
    notice: str = ""
    """A notice for the first use of the prompt, such as a fallback."""


_WITHOUT_MODEL = frozenset({"custom", "scripted"})


class AgentDefinition(msgspec.Struct, frozen=True, kw_only=True):
    file: AgentFile
    completion: Completion
    registry: StepsRegistry
    system_prompt: PromptText
    prompts: dict[str, PromptText]
    """By step. A step without one is asked with the built-in prompt."""
    retry_prompts: dict[str, dict[str, PromptText]]
    """By step, then by failure pattern."""
    schemas: dict[str, dict[str, Any]]
    """The output schema by step."""
    folder: str
    language: str = "en"
    """The language in which Genba speaks to its instances."""
    environment: AgentEnvironment = AgentEnvironment()
    """The sandbox of its instances, and what is prepared inside."""
    sources: dict[str, str]
    """Where each value of the effective agent.json came from; what is not listed is a default."""

    @property
    def name(self) -> str:
        return self.file.name

    @property
    def capabilities(self) -> tuple[str, ...]:
        return self.file.runner.actions.types

    @property
    def state_driven(self) -> bool:
        """Whether its instances ask for their next action; otherwise Genba asks them, step by step."""
        return self.file.runner.flow.mode == STATE_DRIVEN

    @property
    def manages(self) -> bool:
        """Whether it has others work, and never works itself."""
        return self.state_driven and self.file.runner.flow.hierarchy == "manager"

    @property
    def only_reads(self) -> bool:
        """True when its answer is its work, such as a plan or a review: it may write nothing and delivers nothing."""
        execution = self.file.runner.execution
        finalize = execution.finalize
        delivers = (finalize.auto_merge and execution.worktree.enabled) or finalize.push or finalize.create_pr
        return self.widest_permission is PermissionMode.PLAN and not delivers

    @property
    def joins_fleets(self) -> bool:
        """True where `genba work` can start it: it has an adapter and a worktree of its own."""
        return self.adapter_type is not None and self.file.runner.execution.worktree.enabled

    @property
    def adapter_type(self) -> str | None:
        adapter = self.file.runner.adapter
        return str(adapter["type"]) if adapter and "type" in adapter else None

    @property
    def shown_model(self) -> str:
        """The model as screens show it; empty for an adapter that runs no model."""
        return "" if self.adapter_type in _WITHOUT_MODEL else self.file.runner.flow.default_model

    @property
    def digest(self) -> str:
        """The hash that names this snapshot in the journal."""
        import hashlib  # noqa: PLC0415  (most commands never ask for the hash)

        return hashlib.sha256(msgspec.json.encode(self, order="sorted")).hexdigest()[:16]

    @property
    def iteration_cap(self) -> int:
        """The most iterations of one run: the budget itself, or the safety cap of every other type."""
        if isinstance(self.completion, IterationBudget):
            return self.completion.max_iterations
        return self.file.runner.limits.max_iterations

    def step(self, step_id: str) -> Step:
        return self.registry.steps[step_id]

    def check(self, name: str) -> Check:
        declared = self.registry.validators.get(name)
        return declared if declared is not None else BUILTIN_CHECKS[name]

    def find_check(self, name: str) -> Check | None:
        """The check of this name, if it is one of the agent's: a verification is not."""
        return self.registry.validators.get(name) or BUILTIN_CHECKS.get(name)

    def model_for(self, step_id: str) -> str:
        """Step, then agent, then the default of the house."""
        return self.step(step_id).model or self.file.runner.flow.default_model

    def permission_for(self, step_id: str) -> PermissionMode:
        return self.step(step_id).permission_mode or self.file.runner.boundaries.permission_mode

    def tools_for(self, step_id: str) -> tuple[str, ...] | None:
        """The tools that the step may use; None is any."""
        own = self.step(step_id).allowed_tools
        tools = own if own is not None else self.file.runner.boundaries.allowed_tools
        # An agent that asks for its next action may always do so, whatever else it may use.
        return (*tools, f"mcp__{SERVER}") if tools is not None and self.state_driven else tools

    @property
    def widest_permission(self) -> PermissionMode:
        """The widest mode that any question of this agent is put with."""
        modes = [self.permission_for(step) for step in self.registry.steps]
        return max(modes, key=lambda mode: mode.width)

    def entry_step(self, mode: str | None) -> str:
        """The step a run begins with: the mode's, else the completion type's, else the declared one."""
        mapping = self.registry.entry_step_mapping
        if mode is not None:
            return mapping[mode]
        kind = self.file.runner.completion.type
        only = next(iter(self.registry.steps))
        return mapping.get(kind) or self.registry.entry_step or mapping.get("default") or only

    def outputs_of(self, step_id: str) -> tuple[str, ...] | None:
        """The declared output of a step, as dotted fields; None when nothing is declared."""
        step = self.step(step_id)
        if step.structured_gate is not None and step.structured_gate.handoff_fields:
            return step.structured_gate.handoff_fields
        properties = self.schemas.get(step_id, {}).get("properties")
        return tuple(properties) if isinstance(properties, dict) else None
