"""Imports what a session in a sandbox needs soon, while it waits for git and then for its agent."""

import importlib
import threading
import time
from collections.abc import Mapping

_SOON = ("genba.wiring.sandbox.readable_paths",)
_LATER = (
    "shutil",
    "genba.connections.egress.broker",
    "genba.connections.egress.proxy",
    "genba.connections.git.private.bundles",
)
_PATIENCE_SECONDS = 0.12
"""By then the agent is starting, and Genba has nothing to do."""


def load_ahead(environment: Mapping[str, str]) -> None:
    """Begin to import in a thread, and return. Importing a module meanwhile waits for it."""
    threading.Thread(target=_load, args=(environment,), name="genba-load-ahead", daemon=True).start()


def _load(environment: Mapping[str, str]) -> None:
    from genba.connections.sandbox.bubblewrap.bubblewrap import look_around  # noqa: PLC0415  (that is the point)
    from genba.connections.sandbox.system_folders import toolchain_folders  # noqa: PLC0415

    toolchain_folders(environment)
    look_around()
    for name in _SOON:
        importlib.import_module(name)
    time.sleep(_PATIENCE_SECONDS)
    for name in _LATER:
        importlib.import_module(name)
