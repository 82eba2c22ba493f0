"""The project's ceiling over what an agent may do: what it leaves open is filled in, what exceeds it is a problem."""

from collections.abc import Mapping
from typing import Any

import msgspec

from genba.definitions.agent.agent_json import AgentFile, Boundaries
from genba.definitions.project.sandbox_section import MaximumLimits
from genba.domain.problems import Problem
from genba.domain.tool_names import is_listed

_TOOLS, _MODE = "runner.boundaries.allowedTools", "runner.boundaries.permissionMode"


def under_ceiling(
    file: AgentFile, ceiling: MaximumLimits, sources: Mapping[str, str], shown: str
) -> tuple[AgentFile, tuple[Problem, ...]]:
    """The agent as the project lets it be, and everything in which it asked for more."""
    boundaries, problems = _boundaries(file.runner.boundaries, ceiling, sources, shown)
    runner = msgspec.structs.replace(file.runner, boundaries=boundaries, adapter=_with_models(file, ceiling))
    return msgspec.structs.replace(file, runner=runner), problems


def _boundaries(
    own: Boundaries, ceiling: MaximumLimits, sources: Mapping[str, str], shown: str
) -> tuple[Boundaries, tuple[Problem, ...]]:
    most, problems = ceiling.boundaries, []
    hint = f"boundaries in {ceiling.source} sets the most that an agent may do"
    tools, mode = own.allowed_tools, own.permission_mode
    if most.allowed_tools is not None:
        foreign = [tool for tool in tools or () if not is_listed(tool, most.allowed_tools)]
        problems += [Problem(shown, _TOOLS, f'the project allows no agent to use "{tool}"', hint) for tool in foreign]
        tools = most.allowed_tools if tools is None else tools
    if most.permission_mode is not None and mode.width > most.permission_mode.width:
        if _MODE in sources:
            problems.append(
                Problem(shown, _MODE, f'"{mode}" is wider than the project\'s "{most.permission_mode}"', hint)
            )
        mode = most.permission_mode
    return msgspec.structs.replace(own, allowed_tools=tools, permission_mode=mode), tuple(problems)


def _with_models(file: AgentFile, ceiling: MaximumLimits) -> dict[str, Any] | None:
    """The adapter's section with the project's names for models under its own."""
    adapter = file.runner.adapter
    named = ceiling.models.get(str(adapter.get("type"))) if adapter is not None else None
    if adapter is None or not named:
        return adapter
    own = adapter.get("models")
    return {**adapter, "models": {**named, **(own if isinstance(own, dict) else {})}}
