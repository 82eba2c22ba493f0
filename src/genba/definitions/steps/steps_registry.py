"""The shape of `steps_registry.json`."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from genba.domain.sessions.evidence import Check
from genba.domain.sessions.outcomes import Intent, PermissionMode, StepKind


class _Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    pass


class StepInput(_Section, frozen=True, rename={"source": "from"}):
    """A value that an earlier step hands over, given to the prompt as {uv-NAME}."""

    source: Annotated[str, Meta(pattern=r"^.+\..+$", description="step.key of the step that supplies it.")]
    required: Annotated[bool, Meta(description="Whether every path must supply it.")] = True
    default: Annotated[Any, Meta(description="The value when the supplying step was not on the path.")] = None


class Gate(_Section, frozen=True):
    """How the reply's structured output chooses the way on."""

    allowed_intents: Annotated[tuple[Intent, ...], Meta(min_length=1, description="The intents that are allowed.")]
    intent_field: Annotated[str, Meta(min_length=1, description="Where the intent stands, with dots.")] = (
        "next_action.action"
    )
    target_field: Annotated[str, Meta(min_length=1, description="Where the target of a jump stands.")] = (
        "next_action.target"
    )
    handoff_fields: Annotated[
        tuple[str, ...], Meta(description="What the step hands to later ones; by default all of its output.")
    ] = ()
    fallback_intent: Annotated[
        Intent | None, Meta(description="Taken when no reply named an allowed intent, after the re-asks.")
    ] = None


class Transition(_Section, frozen=True):
    """Where an intent leads."""

    target: Annotated[str | None, Meta(description="A step, or null for the end of the flow.")] = None
    targets: Annotated[tuple[str, ...], Meta(description="For jump: the steps that the reply may choose between.")] = ()


class ConditionReference(_Section, frozen=True):
    validator: Annotated[str, Meta(min_length=1, description="A built-in check, or one under validators.")]


class OnFailure(_Section, frozen=True):
    action: Annotated[
        Literal["retry", "abort", "skip"],
        Meta(description="retry: ask again with the gap. abort: end. skip: go on."),
    ] = "retry"
    max_attempts: Annotated[int, Meta(ge=1, description="Failed attempts before the run ends incomplete.")] = 3


class FailurePattern(_Section, frozen=True):
    """Chooses the prompt of a retry: f_{edition}_{adaptation}.md beside the step's own prompt."""

    description: Annotated[str, Meta(description="What went wrong, for readers.")] = ""
    match: Annotated[str | None, Meta(description="A regular expression on the output of the failed check.")] = None
    edition: Annotated[str, Meta(min_length=1, description="The edition of the retry prompt.")] = "failed"
    adaptation: Annotated[str | None, Meta(description="The adaptation of the retry prompt.")] = None


class Step(_Section, frozen=True):
    """One node of the flow."""

    step_id: Annotated[str | None, Meta(description="The step's key again, for readers.")] = None
    name: Annotated[str, Meta(description="The step's name, for readers.")] = ""
    description: Annotated[str, Meta(description="What the step is for, for readers.")] = ""
    step_kind: Annotated[StepKind, Meta(description="work, verification or closure")] = StepKind.WORK
    c2: Annotated[str | None, Meta(description="First part of the prompt's path.")] = None
    c3: Annotated[str | None, Meta(description="Second part of the prompt's path.")] = None
    edition: Annotated[str, Meta(min_length=1, description="The prompt's edition: f_{edition}.md.")] = "default"
    adaptation: Annotated[str | None, Meta(description="f_{edition}_{adaptation}.md, or f_{edition}.md.")] = None
    uv_variables: Annotated[
        tuple[str, ...] | None, Meta(description="The variables of the prompt; others are refused.")
    ] = None
    inputs: dict[str, StepInput] = {}
    output_schema_ref: Annotated[
        str | None, Meta(description="A JSON Schema file, or file#/pointer, relative to agent.json.")
    ] = None
    structured_gate: Gate | None = None
    transitions: Annotated[dict[str, Transition | str | None], Meta(description="Intent to where it leads.")] = {}
    completion_conditions: Annotated[
        tuple[ConditionReference, ...], Meta(description="Checks that hold before the step is left.")
    ] = ()
    on_failure: OnFailure = OnFailure()
    model: Annotated[str | None, Meta(description="The model for this step.")] = None
    allowed_tools: Annotated[
        tuple[str, ...] | None, Meta(description="Fewer tools than the agent may use, never others.")
    ] = None
    permission_mode: Annotated[PermissionMode | None, Meta(description="Narrower than the agent's, never wider.")] = (
        None
    )

    def transition(self, intent: Intent) -> Transition | None:
        """Where the intent leads from here; repeating and closing need no declaration."""
        found = self.transitions.get(str(intent), "absent")
        if found == "absent":
            return Transition() if intent is Intent.CLOSING else None
        if found is None or isinstance(found, str):
            return Transition(target=found)
        return found


class StepsRegistry(_Section, frozen=True, kw_only=True):
    """The flow of an agent."""

    entry_step: Annotated[str | None, Meta(description="The step that a run begins with.")] = None
    entry_step_mapping: Annotated[
        dict[str, str], Meta(description="--mode or completion type to the step that the run begins with.")
    ] = {}
    steps: Annotated[dict[str, Step], Meta(min_length=1, description="The steps by id.")]
    validators: Annotated[dict[str, Check], Meta(description="Checks by name.")] = {}
    failure_patterns: dict[str, FailurePattern] = {}
    schema: Annotated[str, Meta(description="The JSON Schema that editors use; Genba does not read it.")] = (
        msgspec.field(name="$schema", default="")
    )
    version: Annotated[str, Meta(description="The version of the registry, for readers.")] = ""
    description: Annotated[str, Meta(description="What the flow does, for readers.")] = ""
