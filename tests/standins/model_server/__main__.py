"""Serve scenarios from files until interrupted. The first line of stdout is the address, as JSON."""

import argparse
import json
import signal
import sys
from pathlib import Path

import msgspec

from tests.standins.model_server.server import ModelServer
from tests.standins.model_server.turns import STANDARD, scenarios_from_json


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.standins.model_server", description=__doc__)
    parser.add_argument("files", nargs="*", type=Path, metavar="scenarios.json")
    parser.add_argument("--port", type=int, default=0, help="the port on the loopback; any free one by default")
    given = parser.parse_args()
    names = list(STANDARD)
    server = ModelServer(given.port)
    for path in given.files:
        try:
            for name, scenario in scenarios_from_json(path.read_bytes()).items():
                server.add(name, scenario)
                names.append(name)
        except (OSError, ValueError, msgspec.MsgspecError) as error:
            print(f"error: {path}: {error}", file=sys.stderr)  # noqa: T201  (this is a door)
            return 2
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    with server:
        print(json.dumps({"url": f"http://127.0.0.1:{server.port}/s/", "scenarios": names}), flush=True)  # noqa: T201
        signal.sigwait({signal.SIGINT, signal.SIGTERM})
    return 0


if __name__ == "__main__":
    sys.exit(main())
