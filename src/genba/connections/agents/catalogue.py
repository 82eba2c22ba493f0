"""The kinds of agent that Genba can talk to, by name."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from typing import TYPE_CHECKING

from genba.domain.errors import NotFoundError
from genba.domain.problems import did_you_mean
from genba.domain.sessions.agent_adapter import BaseAdapter

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

ADAPTERS = {
    "acp": "genba.connections.agents.acp.adapter:AcpAdapter",
    "claude-code": "genba.connections.agents.cli_tools.claude_code:ClaudeCodeAdapter",
    "codex": "genba.connections.agents.cli_tools.codex:CodexAdapter",
    "custom": "genba.connections.agents.custom:CustomAdapter",
    "facilitator": "genba.connections.agents.facilitator:FieldAdapter",
    "opencode": "genba.connections.agents.cli_tools.opencode:OpenCodeAdapter",
    "scripted": "genba.connections.agents.scripted:ScriptedAdapter",
}
ENTRY_POINTS = "genba.agents"
"""The group under which other packages bring adapters."""


def known_adapters() -> tuple[str, ...]:
    return tuple(sorted({*ADAPTERS, *(point.name for point in _entry_points())}))


def adapter_class(name: str) -> type[BaseAdapter]:
    """The class of an adapter; built-in ones first, so that no plugin can replace them."""
    if name in ADAPTERS:
        module, _, attribute = ADAPTERS[name].partition(":")
        built_in: type[BaseAdapter] = getattr(importlib.import_module(module), attribute)
        return built_in
    for point in _entry_points():
        if point.name == name:
            return _loaded(point, name)
    known = known_adapters()
    raise NotFoundError(f'there is no adapter "{name}"', hint=did_you_mean(name, known) or f"known: {', '.join(known)}")


def _loaded(point: EntryPoint, name: str) -> type[BaseAdapter]:
    """Raises NotFoundError for a class that cannot be loaded, or that is no adapter."""
    try:
        kind = point.load()
    except (Exception, SystemExit) as error:
        raise NotFoundError(f'the adapter "{name}" cannot be loaded: {type(error).__name__}: {error}') from error
    if not (isinstance(kind, type) and issubclass(kind, BaseAdapter)):
        raise NotFoundError(f'the adapter "{name}" does not inherit {BaseAdapter.__module__}.{BaseAdapter.__name__}')
    return kind


def _entry_points() -> Iterable[EntryPoint]:
    from importlib import metadata  # noqa: PLC0415  (runs with a built-in adapter do not pay for it)

    return metadata.entry_points(group=ENTRY_POINTS)
