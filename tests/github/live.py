"""The whole story on a repository of yours on GitHub: `make live-github REPO=owner/name`. No test needs it.

It opens one issue and one branch as target, runs an agent that needs no model on the issue, proposes the work, merges
it into that branch (never into one of yours), looks at what became of the issue, and takes away its branches. The
closed issue and the merged pull request stay: a token cannot delete them. The token is the one that Genba
itself finds.
"""
# ruff: noqa: T201  (it prints for make)

import asyncio
import contextlib
import json
import os
import secrets
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import httpx

from genba.connections.git.repository.access import origin_of
from genba.connections.github.access.credentials import TokenCredentials, find_credentials, gh_by
from genba.connections.processes.supervisor import ProcessSupervisor
from genba.definitions.project.tracker_section import GitHubSettings
from genba.domain.errors import GenbaError

GENBA = Path(sys.executable).parent / "genba"
HELPER = '!f() { test "$1" = get && echo username=x-access-token && echo "password=$GENBA_GITHUB_TOKEN"; }; f'
URL_VARIABLE = "GENBA_LIVE_URL"
AGENT = {
    "name": "writer",
    "description": "Writes one line, to show the way of an issue",
    "parameters": {"issue": {"type": "integer", "required": True}},
    "runner": {
        "completion": {"type": "iterationBudget", "config": {"maxIterations": 1}},
        "adapter": {"type": "custom", "command": "cat > /dev/null; echo genba > genba-live.txt", "commit": True},
        "integrations": {
            "github": {
                "enabled": True,
                "labels": {"inProgress": "genba-live"},
                "defaultClosureAction": "label-and-close",
            }
        },
        "execution": {"finalize": {"createPr": True, "prMerge": "green"}},
    },
}
FILES = {
    ".agent/writer/agent.json": json.dumps(AGENT),
    ".agent/writer/steps_registry.json": json.dumps(
        {"steps": {"work": {"completionConditions": [{"validator": "commits-exist"}, {"validator": "git-clean"}]}}}
    ),
    ".agent/writer/prompts/system.md": "You write one line.\n",
    ".agent/writer/prompts/work.md": "{uv-issue_title}\n",
}


class Failed(Exception):
    """What did not become true."""


class Live:
    """One walk through the story, with what must be taken away again."""

    def __init__(self, repository: str, url: str, token: str, folder: Path) -> None:
        self.repository = repository
        self.url = url
        self.word = secrets.token_hex(3)
        self.target = f"genba-live-{self.word}"
        self.root = folder / "clone"
        self.environment = {**named(url), "GENBA_GITHUB_TOKEN": token, "GIT_TERMINAL_PROMPT": "0"}
        self.http = httpx.Client(
            base_url=url,
            headers={"Authorization": f"Bearer {token}", "Accept": "application/vnd.github+json"},
            timeout=30,
        )
        self.issue = 0
        self.branch = ""

    def run(self) -> None:
        self.clone()
        self.open_issue()
        self.declare()
        pulled = self.work()
        self.follow(pulled)

    def api(self, method: str, path: str, **more: Any) -> Any:
        done = self.http.request(method, f"/repos/{self.repository}{path}", **more)
        if done.status_code >= httpx.codes.BAD_REQUEST:
            raise Failed(f"{method} {path}: {done.status_code} {done.text[:300]}")
        return done.json() if done.content else None

    def git(self, *words: str) -> str:
        lines = ("-c", "credential.helper=", "-c", f"credential.{origin_of(self.url)}.helper={HELPER}")
        done = subprocess.run(
            ["git", *lines, *words], cwd=self.root, env=self.environment, check=False, capture_output=True, text=True
        )
        if done.returncode != 0:
            raise Failed(f"git {words[0]}: {done.stderr.strip()[-300:]}")
        return done.stdout.strip()

    def genba(self, *words: str) -> Any:
        done = subprocess.run(
            [GENBA, *words, "--json"], cwd=self.root, env=self.environment, check=False, capture_output=True, text=True
        )
        if done.returncode != 0:
            raise Failed(f"genba {' '.join(words)}: exit {done.returncode}\n{done.stderr.strip()[-1000:]}")
        return json.loads(done.stdout)

    def clone(self) -> None:
        found = self.api("GET", "")
        self.root.mkdir()
        self.git("init", "-q")
        self.git("remote", "add", "origin", found["clone_url"])
        self.git("fetch", "-q", "--depth=50", "origin", found["default_branch"])
        self.git("switch", "-q", "-c", self.target, "FETCH_HEAD")
        printed(f"cloned {found['default_branch']} of {self.repository}")

    def open_issue(self) -> None:
        body = "Opened by `make live-github`, and closed by it."
        self.issue = int(self.api("POST", "/issues", json={"title": f"Genba live {self.word}", "body": body})["number"])
        printed(f"opened issue #{self.issue}")

    def declare(self) -> None:
        settings = f"tracker:\n  github:\n    repository: {self.repository}\n    url: {self.url}\n"
        for name, text in {**FILES, ".genba/config.yaml": settings}.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        self.git("add", "-A", "-f", ".agent", ".genba")
        who = ("-c", "user.name=Genba live", "-c", "user.email=genba@localhost")
        self.git(*who, "commit", "-qm", "Declare an agent for a walk through Genba")
        self.git("push", "-q", "origin", f"HEAD:refs/heads/{self.target}")
        printed(f"pushed {self.target}, where the work will land")

    def work(self) -> int:
        result = self.genba("run", "writer", "--issue", str(self.issue))
        self.branch = result["branch"]
        if not result["pull_request"]:
            raise Failed(f"there is no pull request: {result['reason']}")
        printed(f"worked, verified and proposed: {result['pull_request']}")
        return int(result["pull_request"].rsplit("/", 1)[1])

    def follow(self, pulled: int) -> None:
        for _ in range(20):
            self.genba("sync")
            if self.api("GET", f"/pulls/{pulled}")["merged"]:
                break
        else:
            raise Failed(f"pull request #{pulled} was not merged")
        printed(f"merged pull request #{pulled}")
        self.genba("sync")
        if self.api("GET", f"/issues/{self.issue}")["state"] != "closed":
            raise Failed(f"issue #{self.issue} is open")
        printed(f"closed issue #{self.issue}")
        status = self.genba("task", "show", str(self.issue))["task"]["status"]
        if status != "done":
            raise Failed(f"task #{self.issue} is {status}")
        printed(f"task #{self.issue} is done")

    def clean_up(self) -> None:
        """Whatever happened: no branch of ours stays, and no issue is left open."""
        for branch in filter(None, (self.target, self.branch)):
            with contextlib.suppress(Failed):
                self.api("DELETE", f"/git/refs/heads/{branch}")
        if self.issue:
            with contextlib.suppress(Failed):
                self.api("PATCH", f"/issues/{self.issue}", json={"state": "closed"})
        self.http.close()


def printed(text: str) -> None:
    print(f" ✓ {text}", flush=True)


def named(url: str) -> dict[str, str]:
    return {**os.environ, "GENBA_GITHUB_HOST": url}


def token_of(repository: str, url: str) -> str:
    settings = GitHubSettings(repository=repository, url=url)
    run_gh = gh_by(ProcessSupervisor(), named(url), Path.cwd())
    found = asyncio.run(find_credentials(settings, named(url), run_gh))
    if not isinstance(found, TokenCredentials):
        raise Failed("a token is needed: set GENBA_GITHUB_TOKEN")
    return found.token


def main(words: list[str]) -> int:
    if len(words) != 1 or "/" not in words[0]:
        print("usage: make live-github REPO=owner/name", file=sys.stderr)
        return 2
    url = os.environ.get(URL_VARIABLE, "https://api.github.com")
    print(f"{words[0]} at {url}: one issue, one pull request into a branch of its own; nothing of yours is changed")
    with tempfile.TemporaryDirectory(prefix="genba-live-") as folder:
        try:
            live = Live(words[0], url, token_of(words[0], url), Path(folder))
        except GenbaError as error:
            print(f" ✗ {error.message}\nhint: {error.hint}", file=sys.stderr)
            return 1
        try:
            live.run()
        except (Failed, httpx.HTTPError) as error:
            print(f" ✗ {error}", file=sys.stderr)
            return 1
        finally:
            live.clean_up()
    print("the whole story holds")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
