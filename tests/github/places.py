"""A repository on emulate with git beside it."""

import itertools
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from tests.github.emulate_git import EmulateGit
from tests.github.emulated import Emulate

_NAMES = itertools.count(1)


@dataclass
class Place:
    """A repository on emulate, as people use it, and its git. Only what the product asks goes by the door."""

    emulate: Emulate
    repository: str
    git: EmulateGit
    folder: Path
    client: httpx.Client

    def ask(self, method: str, path: str, body: Any = None, *, by: str = "octocat") -> Any:
        headers = {"authorization": f"Bearer {self.emulate.tokens[by]}"}
        answer = self.client.request(method, f"/repos/{self.repository}{path}", json=body, headers=headers)
        assert answer.status_code < 300, answer.text
        return answer.json() if answer.content else None

    def add_issue(self, title: str, *labels: str, body: str = "") -> int:
        return int(self.ask("POST", "/issues", {"title": title, "labels": list(labels), "body": body})["number"])

    def run(self, *arguments: str) -> str:
        who = {f"GIT_{one}_{what}": "ada@example.com" for one in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        home = {"PATH": "/usr/bin:/bin:/usr/local/bin", "HOME": str(self.folder), "TZ": "Europe/Lisbon"}
        done = subprocess.run(
            ["git", *arguments], cwd=self.folder, env=home | who, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def push(self, branch: str, path: str = "work.txt", text: str = "work\n") -> str:
        self.run("switch", "-q", "-C", branch, "origin/main")
        (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
        (self.folder / path).write_text(text)
        self.run("add", ".")
        self.run("commit", "-q", "-m", f"Do {branch}\n\nIssue: #1")
        self.run("push", "-q", "origin", branch)
        return self.run("rev-parse", "HEAD")


@contextmanager
def a_place(emulate: Emulate, folder: Path) -> Iterator[Place]:
    """A repository of its own, with a bare repository and a clone of it in the folder; the reviewer belongs to it."""
    name = f"shop-{next(_NAMES)}"
    token = emulate.tokens["octocat"]
    with httpx.Client(base_url=f"http://127.0.0.1:{emulate.port}", timeout=60) as client:
        headers = {"authorization": f"Bearer {token}"}
        made = client.post("/user/repos", json={"name": name, "auto_init": True}, headers=headers)
        assert made.status_code == 201, made.text
        git = EmulateGit.make(folder / "origin.git", emulate.port, f"octocat/{name}", token)
        subprocess.run(["git", "clone", "-q", str(git.path), str(folder / "clone")], check=True, capture_output=True)
        place = Place(emulate, f"octocat/{name}", git, folder / "clone", client)
        place.ask("PUT", "/collaborators/reviewer", {"permission": "push"})
        yield place
