"""`genba`: the door of the command line."""

import sys

from genba import __version__


def main() -> None:
    """Answer `--version` at once; everything else is worth importing for."""
    if sys.argv[1:] in (["--version"], ["-V"]):
        sys.stdout.write(f"genba {__version__}\n")
        return
    from genba.entrypoints.cli.commands import run_cli  # noqa: PLC0415  (the import is most of the cost of --version)

    sys.exit(run_cli(sys.argv[1:]))
