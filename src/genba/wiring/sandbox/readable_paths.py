"""What an instance may read besides its own working tree: the tools that it and its project are made of."""

from collections.abc import Mapping
from pathlib import Path

import genba
from genba.connections.sandbox.system_folders import shown_of_a_tool, toolchain_folders
from genba.domain.sessions.agent_adapter import BaseAdapter


def readable_folders(
    adapter: BaseAdapter | None, asked_for: tuple[str, ...], environment: Mapping[str, str]
) -> tuple[str, ...]:
    """Folders that are shown read-only: toolchains on the path, the agent's own program, and what the project names."""
    found = [*toolchain_folders(environment), str(Path(genba.__file__).parent)]
    if adapter is not None:
        found += shown_of_a_tool(adapter.folders(environment), environment)
    found += [str(Path(name).expanduser()) for name in asked_for]
    return tuple(dict.fromkeys(path for path in found if Path(path).exists()))
