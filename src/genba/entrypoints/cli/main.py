"""`genba`: the door of the command line."""

import gc
import os
import sys

from genba import __version__


def main() -> None:
    """Answer `--version` at once; everything else is worth importing for."""
    if sys.argv[1:] in (["--version"], ["-V"]):
        sys.stdout.write(f"genba {__version__}\n")
        return
    gc.disable()  # nothing that start-up makes is garbage
    from genba.entrypoints.cli.commands import run_cli  # noqa: PLC0415  (the import is most of the cost of --version)

    gc.enable()
    _leave(run_cli(sys.argv[1:]))


def _leave(code: int) -> None:
    """End at once: everything is written and closed by now, and taking the interpreter apart only costs time."""
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)
