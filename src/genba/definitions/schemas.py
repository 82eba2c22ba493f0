"""The JSON Schemas of every file that users write and of what the facilitator says, made from the types themselves."""

from typing import Any

import msgspec

from genba.definitions.agent.agent_json import AgentFile
from genba.definitions.agent.completion import Completion
from genba.definitions.agent.state_driven import STATE_DRIVEN
from genba.definitions.project.config_file import ProjectFile
from genba.definitions.project.goal_sections import RulesFile
from genba.definitions.project.work_sections import FleetSettings
from genba.definitions.steps.steps_registry import StepsRegistry
from genba.domain.events import Event
from genba.domain.facilitation import AgentRegistry, FacilitateAction, IssueAssessment, RecommendAction
from genba.domain.goals.goal import Goal

ConfigFile = msgspec.defstruct(
    "ConfigFile",
    [
        (field.name, field.type, field.default if field.default is not msgspec.NODEFAULT else field.default_factory())
        for part in (ProjectFile, RulesFile, FleetSettings)
        for field in msgspec.structs.fields(part)
    ],
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    rename={"schema": "$schema"},
)
"""All parts of the project's settings, as they stand in one file."""

FILES: dict[str, tuple[Any, str]] = {
    "agent": (AgentFile, "agent.json; config.json and config.local.json take any part of it"),
    "completion": (Completion, "the eight completion types: type, and what its config takes"),
    "config": (ConfigFile, ".genba/config.yaml"),
    "goal": (Goal, "one goal: of the Definition of Done, of a task type, or of a task"),
    "event": (Event, "one line of a journal"),
    "steps_registry": (StepsRegistry, "steps_registry.json"),
    "agent-registry": (AgentRegistry, "the agents that the facilitator found"),
    "issue-assessment": (IssueAssessment, "the state of one issue, with why"),
    "facilitate-action": (FacilitateAction, "one thing that makes the field clearer"),
    "recommend-action": (RecommendAction, "what to do next"),
}


def json_schema(kind: Any, title: str) -> dict[str, Any]:
    """The schema of a type, with a name and the dialect it is written in."""
    schema = _completion_schema() if kind is Completion else msgspec.json.schema(kind)
    if kind is AgentFile:
        _without_completion(schema["$defs"]["Runner"])
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title, **schema}


def _without_completion(runner: dict[str, Any]) -> None:
    """An agent that asks for its next action says nothing about when it is done; every other one must."""
    runner["required"] = [name for name in runner["required"] if name != "completion"]
    asks = {"properties": {"mode": {"const": STATE_DRIVEN}}, "required": ["mode"]}
    runner["if"] = {"properties": {"flow": asks}, "required": ["flow"]}
    runner["then"] = {"properties": {"completion": False}}
    runner["else"] = {"required": ["completion"]}


def _completion_schema() -> dict[str, Any]:
    """A completion as it is written: a type and its config. Inside a composite it may be a reference to a name."""
    kinds = {name: _with_config(message) for name, message in msgspec.json.schema(Completion)["$defs"].items()}
    condition = {"$ref": "#/$defs/Condition"}
    inside = kinds["Composite"]["properties"]["config"]["properties"]
    inside["completionConditions"] |= {"items": condition, "minItems": 1}
    inside["definitions"] = {"description": "Conditions by name.", "type": "object", "additionalProperties": condition}
    each = [{"$ref": f"#/$defs/{name}"} for name in kinds]
    reference = {
        "description": "A condition by its name under definitions.",
        "type": "object",
        "properties": {"ref": {"type": "string"}},
        "required": ["ref"],
        "additionalProperties": False,
    }
    return {"anyOf": each, "$defs": {**kinds, "Condition": {"anyOf": [*each, reference]}}}


def _with_config(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema of one completion type, with its own fields where they are written: under config."""
    fields = {name: field for name, field in schema["properties"].items() if name != "type"}
    required = [name for name in schema["required"] if name != "type"]
    config = {"type": "object", "properties": fields, "required": required, "additionalProperties": False}
    return {
        **schema,
        "properties": {"type": schema["properties"]["type"], "config": config},
        "required": ["type", *(["config"] if required else [])],
    }
