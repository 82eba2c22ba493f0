"""Goals that ask a running service: start it from the checkout, wait, ask, look, and end it whatever happens."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping

import msgspec

from genba.connections.goals.commands import (
    Folders,
    argv_of,
    bounded,
    bounded_line,
    error_line,
    is_empty,
    shown,
    surroundings,
)
from genba.connections.goals.contents import Unusable, expectation_of
from genba.connections.goals.http_requests import (
    Address,
    Answer,
    NoAnswer,
    Question,
    address_of,
    ask,
    fill,
    free_port,
    has_port,
    is_open,
    is_taken,
)
from genba.connections.goals.protected_files import judged_by_path
from genba.domain.goals.goal import CommandLine, EndpointResponds, ResponseContains, goal_type
from genba.domain.goals.verification import Place
from genba.domain.ports import Processes
from genba.domain.processes import AWAITED, Command, Exit, service_mark
from genba.domain.sessions.evidence import CheckResult, CheckStatus
from genba.domain.sessions.sandbox import Dialer, Entry

_POLL_SECONDS = 0.05
_PROBE_SECONDS = 5.0
_SERVER_ERROR = 500
_OUTPUT_HEAD, _OUTPUT_TAIL = 64 * 1024, 192 * 1024
_ADDRESS = ("http://", "https://")

Asked = EndpointResponds | ResponseContains


class RunnerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """How the service of a project is started, where a goal does not say it."""

    serve: CommandLine | None = None
    ready_when: str | None = None


class _Settled(Exception):
    """The goal is decided before the service was asked."""

    def __init__(self, status: CheckStatus, detail: str, timed_out: bool = False) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.timed_out = timed_out


class Endpoints:
    """One service at a time. Nothing is asked that was not started here: it would not be the commit that answers."""

    def __init__(
        self,
        processes: Processes,
        environment: Mapping[str, str],
        settings: RunnerSettings,
        folders: Folders,
        own_network: bool,
    ) -> None:
        self.processes = processes
        self.folders = folders
        self.own_network = own_network
        """Whether each service has a network of its own, where no other process can answer for it."""
        self.environment = environment
        self.settings = settings
        self._turn = asyncio.Lock()

    async def ask(self, goal: Asked, place: Place, mark: str) -> CheckResult:
        name, loop = goal_type(goal), asyncio.get_running_loop()
        async with self._turn:
            began, printed = loop.time(), _ServiceOutput()
            try:
                status, detail, output = await self._asked(goal, place, service_mark(mark), printed)
                timed_out = False
            except _Settled as settled:
                status, detail, output, timed_out = settled.status, settled.detail, "", settled.timed_out
            except Unusable as problem:
                status, detail, output, timed_out = CheckStatus.ERROR, str(problem), "", False
            parts = (output, f"the output of the service:\n{printed.text}" if printed.text else "")
            whole = bounded("\n\n".join(part for part in parts if part))
            return CheckResult(name, status, detail, whole, loop.time() - began, timed_out=timed_out)

    async def _asked(
        self, goal: Asked, place: Place, mark: str, output: "_ServiceOutput"
    ) -> tuple[CheckStatus, str, str]:
        serve = goal.serve if goal.serve is not None else self.settings.serve
        if serve is None or is_empty(serve):
            raise Unusable("nothing to ask: no serve command; name one: serve: … (or verification.serve)")
        expectation = expectation_of(goal)
        ready_when = goal.ready_when if goal.ready_when is not None else self.settings.ready_when
        await self.processes.sweep(mark)  # a service that was left by a process that died would answer instead
        port = _port_for(goal, ready_when, self.own_network)
        question = Question.of(goal, port)
        probe = fill(ready_when, port) if ready_when is not None else None
        output.awaited = probe or ""
        async with self._service(fill(serve, port), place, mark, port, goal, output) as service:
            await _until_ready(service, probe, question, goal.ready_seconds, output)
            answer = await _answer(question, goal.timeout_seconds, output.way)
            if service.done():
                raise _Settled(CheckStatus.FAILED, f"the service ended while it was asked: {output.last_line()}")
        passed, result = expectation.judge(answer) or await self._by_path(goal, answer, mark)
        return CheckStatus.PASSED if passed else CheckStatus.FAILED, f"{question.shown} → {result}", answer.text

    async def _by_path(self, goal: Asked, answer: Answer, mark: str) -> tuple[bool, str]:
        assert isinstance(goal, ResponseContains)  # noqa: S101  (nothing else has a path)
        try:
            passed, result = await judged_by_path(self.processes, goal, answer.text, mark)
        except TimeoutError as error:
            raise _Settled(CheckStatus.FAILED, str(error), timed_out=True) from error
        return passed, f"{answer.status}, {result}"

    @contextlib.asynccontextmanager
    async def _service(
        self, serve: CommandLine, place: Place, mark: str, port: int, goal: Asked, output: "_ServiceOutput"
    ) -> AsyncIterator["asyncio.Task[Exit]"]:
        """The service while it is needed; nothing of it is left afterwards."""
        limit = goal.ready_seconds + goal.timeout_seconds + _PROBE_SECONDS
        command = Command(
            argv=argv_of(serve),
            workdir=place.folder,
            environment={**surroundings(self.environment, place.folder, self.folders), "PORT": str(port)},
            timeout_seconds=limit,
            idle_seconds=limit,
            mark=mark,
            entry=Entry(opened=output.way.opened) if self.own_network else None,
            awaits=output.awaited,
        )
        output.way.needs_a_dialer = self.own_network
        output.command = shown(serve)
        service = asyncio.create_task(self.processes.run(command, output.on_output))
        try:
            yield service
        finally:
            service.cancel()
            await asyncio.gather(service, return_exceptions=True)
            await self.processes.sweep(mark)


def _port_for(goal: Asked, ready_when: str | None, own_network: bool) -> int:
    """The port that an address names, or a free one. A port of this machine that is in use is never asked."""
    for text in (goal.url, ready_when or ""):
        if text.startswith(_ADDRESS) and not has_port(text):
            port = address_of(text).port
            if not own_network and is_taken(port):
                raise Unusable(f"port {port} is taken by another process")
            return port
    return free_port()


async def _until_ready(
    service: "asyncio.Task[Exit]", probe: str | None, question: Question, seconds: float, output: "_ServiceOutput"
) -> None:
    loop = asyncio.get_running_loop()
    deadline = loop.time() + seconds
    while not await _is_ready(probe, question, output, min(_PROBE_SECONDS, max(deadline - loop.time(), 0.1))):
        await asyncio.wait({service}, timeout=_POLL_SECONDS)
        if service.done():
            raise _ended_early(service.result(), output)
        if loop.time() >= deadline:
            waited = f"was not ready within {seconds:g} s"
            is_silent = not probe and not output.way.is_open(question.address)
            hint = "" if not is_silent else f": nothing listens on port {question.address.port}"
            raise _Settled(CheckStatus.FAILED, f"the service {waited}{hint}", timed_out=True)
    if service.done():
        raise _ended_early(service.result(), output)


def _ended_early(done: Exit, output: "_ServiceOutput") -> _Settled:
    if done.never_ran:
        message = error_line(done.stdout + done.stderr)
        return _Settled(CheckStatus.ERROR, f"`{output.command}` cannot be run: {message}")
    message = f"{output.last_line()} (exit code {done.code})"
    return _Settled(CheckStatus.FAILED, f"the service ended before it was ready: {message}")


async def _is_ready(probe: str | None, question: Question, output: "_ServiceOutput", seconds: float) -> bool:
    """A path or an address answers; or a text was printed and the port is open; or the port is open."""
    if probe is not None and probe.startswith(("/", *_ADDRESS)):
        asked = Question(method="GET", address=address_of(probe, question.address.port))
        try:
            return (await _answer(asked, seconds, output.way)).status < _SERVER_ERROR
        except _Settled:
            return False
    if probe is not None and not output.is_ready:
        return False
    return await asyncio.to_thread(output.way.is_open, question.address)


async def _answer(question: Question, seconds: float, way: "_Way") -> Answer:
    """Ask in a thread. One that waits for ever is let go when the service ends, which closes its connection."""
    try:
        return await asyncio.wait_for(asyncio.to_thread(way.ask, question, seconds), seconds)
    except TimeoutError as error:
        message = f"{question.shown} → no answer within {seconds:g} s"
        raise _Settled(CheckStatus.FAILED, message, timed_out=True) from error
    except NoAnswer as error:
        raise _Settled(CheckStatus.FAILED, f"{question.shown} → no answer: {bounded_line(str(error))}") from error


class _Way:
    """The way to a service: by the loopback of this machine, or into the network of its own sandbox."""

    def __init__(self) -> None:
        self.needs_a_dialer = False
        self.dialer: Dialer | None = None

    def opened(self, dialer: Dialer) -> None:
        self.dialer = dialer

    def ask(self, question: Question, seconds: float) -> Answer:
        if self.needs_a_dialer and self.dialer is None:
            raise NoAnswer("the service has not been started yet")
        return ask(question, seconds, self.dialer)

    def is_open(self, address: Address) -> bool:
        return not (self.needs_a_dialer and self.dialer is None) and is_open(address, self.dialer)


class _ServiceOutput:
    """What a service prints, as much of it as is kept, and the way to it."""

    def __init__(self) -> None:
        self.way = _Way()
        self._head, self._tail = "", ""
        self.command = ""
        self.awaited = ""
        """The text that says that the service is ready."""
        self.is_ready = False

    def on_output(self, stream: str, text: str) -> None:
        self.is_ready = self.is_ready or stream == AWAITED
        if stream not in ("stdout", "stderr"):
            return
        if len(self._head) < _OUTPUT_HEAD:
            self._head += f"{text}\n"
        else:
            self._tail = f"{self._tail}{text}\n"[-_OUTPUT_TAIL:]

    @property
    def text(self) -> str:
        return self._head + self._tail

    def last_line(self) -> str:
        return error_line(self.text) or "it printed nothing"
