"""The JSON Schemas of every file that users write, made from the same types that read them."""

from typing import Any

import msgspec

from genba.definitions.agent_file import AgentFile
from genba.definitions.completion import Completion
from genba.definitions.project_file import ProjectFile
from genba.definitions.steps_file import StepsRegistry
from genba.domain.events import Event

FILES: dict[str, tuple[Any, str]] = {
    "agent": (AgentFile, "agent.json; config.json and config.local.json take any part of it"),
    "completion": (Completion, "the eight completion types: type, and what its config takes"),
    "config": (ProjectFile, ".genba/config.yaml"),
    "event": (Event, "one line of a journal"),
    "steps_registry": (StepsRegistry, "steps_registry.json"),
}


def json_schema(kind: Any, title: str) -> dict[str, Any]:
    """The schema of a type, with a name and the dialect it is written in."""
    schema = msgspec.json.schema(kind)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title, **schema}
