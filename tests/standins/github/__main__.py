"""Serve a GitHub on the loopback until interrupted, to try Genba on. The first line of stdout says where, as JSON."""

import argparse
import json
import signal
import sys
from pathlib import Path

from tests.standins.github.server import GitHub


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.standins.github", description=__doc__)
    parser.add_argument("--repository", default="acme/shop", metavar="OWNER/NAME", help="what is on it at first")
    parser.add_argument("--token", default="token-of-octocat", help="the token of octocat, who may write there")
    parser.add_argument("--reviewer-token", default="token-of-reviewer", help="the token of reviewer, who may as well")
    parser.add_argument("--issues", type=int, default=1, metavar="N", help="how many issues there are at first")
    parser.add_argument("--port", type=int, default=0, help="the port on the loopback; any free one by default")
    parser.add_argument("--schema", type=Path, metavar="FILE", help="GitHub's GraphQL schema; without it REST must do")
    given = parser.parse_args()
    if given.repository.count("/") != 1:
        print("error: --repository wants OWNER/NAME", file=sys.stderr)  # noqa: T201  (this is a door)
        return 2
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    with GitHub(port=given.port, schema=given.schema) as hub:
        hub.add_token(given.token, "octocat")
        hub.add_token(given.reviewer_token, "reviewer")
        hub.add_repository(given.repository)
        hub.add_issues(given.repository, given.issues, labels=["ready"])
        place = {"url": hub.url, "git": hub.git_url(given.repository), "socket": str(hub.socket)}
        print(json.dumps(place), flush=True)  # noqa: T201
        signal.sigwait({signal.SIGINT, signal.SIGTERM})
    return 0


if __name__ == "__main__":
    sys.exit(main())
