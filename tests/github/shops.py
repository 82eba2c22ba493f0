"""A project of the tests whose issues live on a GitHub of the tests, and whose work goes there over HTTP."""

import json
from typing import Any

from tests.project import COMMIT, Project
from tests.standins.github.server import GitHub
from tests.standins.github.state import PullRequest

SHOP = "acme/shop"
TOKEN = "ghp_genbagenbagenbagenba00"
SETTINGS = """
tracker:
  github:
    repository: {shop}
    url: {url}
    sync_seconds: 0.3
    mutation_pause_seconds: 0
dod:
  - type: tests_pass
    command: test -f work.txt
"""
ISSUES: dict[str, Any] = {
    "enabled": True,
    "labels": {"inProgress": "in progress", "blocked": "blocked", "completion": {"add": ["done"], "remove": ["ready"]}},
}


class Shop:
    """What a test has in its hands: the project, and the GitHub that its issues live on."""

    def __init__(self, project: Project, hub: GitHub) -> None:
        self.project = project
        self.hub = hub

    def agent(
        self,
        name: str = "iterator",
        *,
        do: str = COMMIT,
        turns: list[dict[str, Any]] | None = None,
        closure: str = "label-and-close",
        **finalize: Any,
    ) -> None:
        """An agent that works on an issue, and proposes what it did."""
        self.project.agent(
            name,
            script={"turns": turns or [{"do": [{"run": do}], "reply": "done"}], "repeat": True},
            parameters={"issue": {"type": "integer"}},
            integrations={"github": {**ISSUES, "defaultClosureAction": closure}},
            execution={"finalize": {"createPr": True, **finalize}},
            commit=False,
        )
        self.publish()

    def publish(self) -> None:
        """What is in the checkout is on main, here and there."""
        self.project.commit("Declare what works here")
        bare = self.hub.git_dir(SHOP)
        self.project.git("push", "-q", "--force", str(bare), "main")

    def issue(self, title: str = "Add green tea", **more: Any) -> int:
        return self.hub.add_issue(SHOP, title=title, labels=["ready"], **more)

    def labels(self, number: int) -> set[str]:
        return set(self.hub.labels(SHOP, number))

    def status(self, number: int) -> str:
        return str(self.project.task(number).status)

    def told(self, number: int) -> str:
        return self.project.genba("task", "show", str(number), check=0).out

    def last_run(self) -> str:
        """The newest run of the project."""
        listed = self.project.genba("logs", "--json", check=0).out.splitlines()
        return str(json.loads(listed[0])["run"])

    def run_of(self, number: int) -> str:
        """The newest run on a task."""
        with self.project.board() as board:
            return board.newest_session(number).run

    def sync(self) -> None:
        """Look at GitHub, and send what follows from it."""
        self.project.genba("sync", check=0)

    def pulls(self) -> list[PullRequest]:
        """The pull requests there, oldest first."""
        return sorted(self.hub.repository(SHOP).pulls, key=lambda one: one.number)

    def tip(self, branch: str) -> str:
        """The commit of a branch there."""
        return self.project.git("--git-dir", str(self.hub.git_dir(SHOP)), "rev-parse", f"refs/heads/{branch}")


def settled(project: Project, hub: GitHub) -> Shop:
    """octocat's token is what Genba has; rita belongs to the shop, and a stranger does not."""
    hub.add_token(TOKEN, "octocat")
    hub.add_user("rita")
    hub.add_user("stranger")
    hub.add_repository(SHOP, collaborators={"octocat": "write", "rita": "write"})
    project.environment |= {"GENBA_GITHUB_TOKEN": TOKEN, "GENBA_GITHUB_HOST": hub.url}
    project.write(".genba/config.yaml", SETTINGS.format(shop=SHOP, url=hub.url))
    project.git("remote", "add", "origin", hub.git_url(SHOP))
    return Shop(project, hub)


def in_journal(project: Project, run: str, kind: str) -> list[dict[str, Any]]:
    return [event for event in project.events(run) if event["event"] == kind]
