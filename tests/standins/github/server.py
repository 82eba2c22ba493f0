"""A GitHub of our own on a loopback port, and on a unix socket for `gh`: what tests hold in their hands."""

import asyncio
import contextlib
import shutil
import socket
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.standins.github import push_rules
from tests.standins.github.door import Door
from tests.standins.github.faults import Faults
from tests.standins.github.hub import Hub
from tests.standins.github.people import People
from tests.standins.github.recorded import Exchange, Recorded
from tests.standins.github.state import Token


class GitHub(People):
    """The server, and what people do there. It answers in a thread of its own.

    `schema` is the file with GitHub's GraphQL schema; without it the GraphQL door answers 404.
    `watch` hears every exchange of REST and GraphQL. `port` 0 is any free one.
    """

    def __init__(
        self, *, schema: Path | None = None, watch: Callable[[Exchange], None] | None = None, port: int = 0
    ) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="github-"))
        super().__init__(Hub(self._folder))
        self.state.pushed = lambda repository: push_rules.look(self.state, repository)
        self.faults = Faults()
        self._port = port
        self._door = Door(self.state, self.faults, watch)
        if schema is not None:
            self._open_graphql(schema)
        self._thread: threading.Thread | None = None
        self._stop: Callable[[], None] = lambda: None

    def _open_graphql(self, schema: Path) -> None:
        from tests.standins.github import graphql_door

        def answer(viewer: Token, content: bytes) -> tuple[int, dict[str, Any], dict[str, str]]:
            made = graphql_door.answer(self.state, viewer, schema, content)
            return made.status, made.body, made.headers

        self._door.graphql = answer

    # running

    def start(self) -> Self:
        port = socket.socket()
        port.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        port.bind(("127.0.0.1", self._port))
        local = socket.socket(socket.AF_UNIX)
        local.bind(str(self.socket))
        self.state.url = self.state.web = f"http://127.0.0.1:{port.getsockname()[1]}"
        started = threading.Event()
        self._thread = threading.Thread(target=self._serve, args=([port, local], started), name="github", daemon=True)
        self._thread.start()
        if not started.wait(20):
            raise RuntimeError("the GitHub of the tests did not start")
        return self

    def stop(self) -> None:
        self.faults.clear()
        self._stop()
        if self._thread is not None:
            self._thread.join(20)
        shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _serve(self, sockets: list[socket.socket], started: threading.Event) -> None:
        import uvicorn

        async def serve() -> None:
            config = uvicorn.Config(
                self._door,
                http="h11",
                ws="none",
                lifespan="off",
                log_config=None,
                log_level="critical",
                access_log=False,
                server_header=False,
                timeout_graceful_shutdown=1,
                timeout_keep_alive=600,  # a client never meets a connection that closes under its hands
            )
            server = uvicorn.Server(config)
            loop = asyncio.get_running_loop()

            def stop() -> None:
                server.should_exit = True
                self._door.stopping.set()

            self._stop = lambda: _quietly(loop, stop)
            for one in sockets:
                one.listen(128)
            serving = asyncio.ensure_future(server.serve(sockets=sockets))
            while not server.started and not serving.done():  # noqa: ASYNC110  (uvicorn has no event for it)
                await asyncio.sleep(0.002)
            started.set()
            await serving

        asyncio.run(serve())
        for one in sockets:
            one.close()

    # where it is

    @property
    def url(self) -> str:
        """The base of the API."""
        return self.state.url

    @property
    def enterprise_url(self) -> str:
        """The base of the API as a GitHub Enterprise server has it."""
        return f"{self.state.web}/api/v3"

    @property
    def socket(self) -> Path:
        return self._folder / "github.sock"

    def git_url(self, repository: str, token: str = "") -> str:
        """Where git finds a repository; with a token in it, as people paste it."""
        place = f"{self.state.web}/{repository}.git"
        return place.replace("://", f"://x-access-token:{token}@", 1) if token else place

    def git_dir(self, repository: str) -> Path:
        """The bare repository on the disk: what is pushed there is noticed too."""
        return self.state.repository(repository).git.path

    @property
    def requests(self) -> list[Recorded]:
        """Every request so far."""
        return list(self._door.requests)

    @property
    def mutations(self) -> list[Recorded]:
        """Those that changed something: not refused, not cut before their effect."""
        return [one for one in self.requests if one.mutation]

    def forget_requests(self) -> None:
        self._door.requests.clear()

    # time

    def freeze(self) -> None:
        """The clock of the server stands still until it is set on."""
        self.state.frozen = self.state.seconds() - self.state.skew

    def advance(self, seconds: float) -> None:
        self.state.skew += seconds


def _quietly(loop: asyncio.AbstractEventLoop, stop: Callable[[], None]) -> None:
    with contextlib.suppress(RuntimeError):  # the loop has ended by itself
        loop.call_soon_threadsafe(stop)
