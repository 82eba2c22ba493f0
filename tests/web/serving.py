"""A dashboard on a port of this machine, in a thread of its own, over a real repository and a real blackboard."""

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from dataclasses import dataclass

import httpx

from genba.application.dashboard.keys import WebKeys
from genba.application.dashboard.queries import DashboardQueries
from genba.application.verification.decisions import Decisions
from genba.blackboard.fleet.fleet_board import FleetBoard
from genba.domain.tasks.task import Actor, ActorKind
from genba.entrypoints.listeners import bound_port, serving
from genba.entrypoints.web.app import application
from genba.entrypoints.web.live import Hub
from genba.entrypoints.web.security import Passes
from genba.entrypoints.web.site import Site
from genba.wiring import ProjectContext
from tests.project import Project, furnish

OPERATOR = "operator-of-the-tests"
VIEWER = "viewer-of-the-tests-x"
PERSON = Actor(ActorKind.HUMAN, "tester")
PATIENCE = 90.0


@dataclass
class Dashboard:
    """A dashboard that answers, and what it looks at."""

    url: str
    project: Project
    site: Site
    hub: Hub

    @property
    def board(self) -> FleetBoard:
        return self.site.queries.fleet

    def client(self, token: str = OPERATOR) -> httpx.Client:
        """A program with a token."""
        headers = {"authorization": f"Bearer {token}"} if token else {}
        return httpx.Client(base_url=self.url, headers=headers, timeout=PATIENCE)

    def visitor(self, token: str = OPERATOR) -> httpx.Client:
        """A browser without a script: it came in by the form, and has a cookie."""
        answer = httpx.post(f"{self.url}/enter", data={"token": token}, timeout=PATIENCE)
        assert answer.status_code == 303
        return httpx.Client(base_url=self.url, cookies=answer.cookies, timeout=PATIENCE)


@contextlib.contextmanager
def dashboard(project: Project, *, read_only: bool = False, port: int = 0) -> Iterator[Dashboard]:
    """Serve a project until the block ends."""
    furnish(project.root / ".genba" / "genba.db")
    made: list[Dashboard] = []
    failed: list[BaseException] = []
    ready, leave = threading.Event(), threading.Event()

    async def serve() -> None:
        context = await ProjectContext.find(project.root)
        keys = WebKeys(operator=OPERATOR, viewer=VIEWER, signing="the key of the tests")
        listening = bound_port("127.0.0.1", port, "genba serve --port=0")
        with (
            contextlib.closing(listening),
            contextlib.closing(context),
            contextlib.closing(DashboardQueries(context)) as queries,
        ):
            hub = Hub(queries.stamp)
            site = Site(queries, Decisions(context, PERSON), hub)
            passes = Passes(keys=keys, name="genba-tests", read_only=read_only)
            app = application(site, passes, frozenset({"127.0.0.1", "localhost"}))
            async with serving(app, listening), contextlib.aclosing(hub):
                url = f"http://127.0.0.1:{listening.getsockname()[1]}"
                made.append(Dashboard(url=url, project=project, site=site, hub=hub))
                ready.set()
                await asyncio.to_thread(leave.wait)

    def run() -> None:
        try:
            asyncio.run(serve())
        except BaseException as error:  # noqa: BLE001  (reported to the test, which waits)
            failed.append(error)
        finally:
            ready.set()

    thread = threading.Thread(target=run, name="dashboard")
    thread.start()
    try:
        assert ready.wait(PATIENCE)
        if failed:
            raise failed[0]
        yield made[0]
    finally:
        leave.set()
        thread.join(PATIENCE)
    if failed:
        raise failed[0]
