"""A branch, what it is held to, and what `genba verify` says of it."""

from collections.abc import Mapping
from typing import Any

import yaml

from tests.fields.flows import configure
from tests.project import Project

BRANCH = "work"
SERVICE = '''
"""Tells who asks what they asked; a path such as /status/418 chooses the status."""

import json
import os
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer


class Mirror(BaseHTTPRequestHandler):
    def answer(self):
        asked = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
        told = {"method": self.command, "body": asked, "kind": self.headers.get("Content-Type")}
        told |= {"colour": self.headers.get("X-Colour"), "mood": os.environ.get("MOOD")}
        words = self.path.split("/")
        self.send_response(int(words[2]) if words[1] == "status" else 200)
        self.end_headers()
        self.wfile.write(json.dumps(told).encode())

    do_GET = do_POST = do_PUT = answer

    def log_message(self, *words):
        pass


server = HTTPServer(("127.0.0.1", int(sys.argv[1])), Mirror)
print("the mirror hangs", flush=True)
server.serve_forever()
'''
SERVE = "exec python3 mirror.py {port}"


def hold_to(project: Project, dod: list[Any], **sections: Any) -> None:
    """Commit on the base branch what counts as done."""
    configure(project, yaml.safe_dump({"dod": dod, **sections}))
    project.commit("Say what done means")


def branch(project: Project, files: Mapping[str, str] | None = None) -> None:
    """A branch with one commit that writes these files."""
    project.git("switch", "-q", "-c", BRANCH)
    for path, text in (files or {"work.txt": "work\n"}).items():
        project.write(path, text)
    project.commit("Work")
    project.git("switch", "-q", "main")


def verdict(project: Project, *words: str) -> dict[str, Any]:
    """What `genba verify` says of the branch."""
    found: dict[str, Any] = project.genba("verify", BRANCH, "--json", *words).json["verification"]
    return found


def result_of(found: dict[str, Any], kind: str) -> dict[str, Any]:
    """What a verification says of the goal of one type."""
    results = [each["result"] for each in found["results"] if each["goal"]["goal"]["type"] == kind]
    assert len(results) == 1, found
    result: dict[str, Any] = results[0]
    return result


def judged(
    project: Project, goal: dict[str, Any], files: Mapping[str, str] | None = None, **sections: Any
) -> tuple[str, str]:
    """How one goal of the Definition of Done judges a branch: the status and what it says."""
    hold_to(project, [goal], **sections)
    branch(project, files)
    result = result_of(verdict(project), goal["type"])
    return result["status"], result["detail"]
