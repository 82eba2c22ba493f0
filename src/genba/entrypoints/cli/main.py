"""`genba`: the start of the command line."""

import gc
import os
import sys

from genba import __version__


def main() -> None:
    """Answer `--version` at once; everything else is worth importing for."""
    if sys.argv[1:] in (["--version"], ["-V"]):
        _leave(_version())
    if "_GENBA_COMPLETE" in os.environ:  # a shell asks what could come next
        from genba.entrypoints.cli.admin.completion_command import answer  # noqa: PLC0415  (only a shell asks)

        _leave(answer())
    gc.disable()  # nothing that start-up makes is garbage
    from genba.entrypoints.cli.commands import run_cli  # noqa: PLC0415  (the import is most of the cost of --version)

    gc.freeze()
    gc.enable()
    code = run_cli(sys.argv[1:])
    _send_telemetry()
    _leave(code)


def _version() -> int:
    try:
        sys.stdout.write(f"genba {__version__}\n")
        sys.stdout.flush()
    except OSError:
        return 1
    return 0


def _send_telemetry() -> None:
    """What was measured is sent before the process ends. Where nothing was, nothing of it is loaded."""
    if "genba.wiring" not in sys.modules:
        return
    from genba.wiring.telemetry import close_telemetry  # noqa: PLC0415  (most commands load no connection)

    try:
        result = close_telemetry()
        if result:
            sys.stderr.write(f"warning: {result}\n")
    except (KeyboardInterrupt, OSError, ValueError):
        return  # a second ctrl-c, or no stderr to write to


def _leave(code: int) -> None:
    """End at once: everything is written and closed by now, and taking the interpreter apart only costs time."""
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except BrokenPipeError:
            continue
        except (OSError, ValueError):
            code = code or 1  # the output could not be written
    os._exit(code)
