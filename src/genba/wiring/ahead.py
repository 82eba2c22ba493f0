"""Loading ahead: what a run behind walls needs soon is imported while it waits for git."""

import importlib
import threading
from collections.abc import Mapping

_SOON = (
    "genba.connections.git.bundles",
    "genba.connections.sandbox.bubblewrap",
    "genba.connections.gates.broker",
    "genba.connections.gates.proxy",
    "genba.wiring.surroundings",
)


def load_ahead(environment: Mapping[str, str]) -> None:
    """Begin to import, and come back at once. Whoever needs a module before it is there waits for it as always."""
    threading.Thread(target=_load, args=(environment,), name="genba-load-ahead", daemon=True).start()


def _load(environment: Mapping[str, str]) -> None:
    from genba.connections.sandbox.system_folders import toolchain_folders  # noqa: PLC0415  (that is the point)

    toolchain_folders(environment)
    for name in _SOON:
        importlib.import_module(name)
