"""What an instance may read besides its own working tree: the tools that it and its project are made of."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import genba
from genba.connections.sandbox.system_folders import shown_of_a_tool, toolchain_folders


def readable_folders(adapter: Any, asked_for: tuple[str, ...], environment: Mapping[str, str]) -> tuple[str, ...]:
    """Folders that are shown read-only: toolchains on the path, the agent's own program, and what the project names."""
    found = [*toolchain_folders(environment), str(Path(genba.__file__).parent)]
    look = getattr(adapter, "folders", None)
    found += shown_of_a_tool(look(environment), environment) if look is not None else ()
    found += [str(Path(name).expanduser()) for name in asked_for]
    return tuple(dict.fromkeys(path for path in found if Path(path).exists()))
