"""An adapter whose agent runs elsewhere: starts or finds the supervisor of a question, and tells what it hears.

The same question of the same part of a run is never put twice at once. What it came to is taken as it is; who works on
it already is listened to; only where there is neither, a supervisor is started.
"""

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import msgspec

from genba.connections.detached.fork_server_client import ForkServerClient
from genba.connections.detached.job_dir import Attempt, Question, Request, questions
from genba.connections.detached.output_log import OutputReader
from genba.connections.detached.process_lock import Holder
from genba.connections.detached.results import Failure, Result
from genba.domain.errors import AgentUnavailable, DiskFullError, RecoverableError, UnrecoverableError
from genba.domain.events import Event
from genba.domain.ports import AgentInstance, Processes
from genba.domain.processes import OutputListener
from genba.domain.sessions.replies import AgentSession, Ask, InstanceStatus, Reply
from genba.domain.sessions.sandbox import SandboxKind
from genba.domain.sessions.workspaces import Workspace

_MOST_DEATHS = 3
"""So many supervisors may die of one question before the agent is reported as unavailable."""
_POLL_SECONDS = 0.15
_QUICK_POLL_SECONDS = 0.02
"""Where the end of a process can only be seen by looking."""
_SUSPENDING_SECONDS = 20.0
"""How long a supervisor may take to end its agent with everything that it started."""
_KILLING_SECONDS = 5.0


class Posting(msgspec.Struct, frozen=True, kw_only=True):
    """What stays the same for all questions of one part of a run."""

    run: str
    agent: str
    adapter: str
    """The type of the adapter that the supervisor asks with."""
    folder: str
    """Of the run."""
    top: str
    git_dir: str
    common: str
    kind: SandboxKind
    part: int = 1
    """Part of the name of a question: an answer to one segment is no answer for the next."""
    grace_seconds: float = 60.0
    workflow: str = ""
    """See `Request.workflow`."""


class DetachedInstance:
    """Between questions nothing runs."""

    def __init__(self, session: AgentSession) -> None:
        self._session = session
        self.status = InstanceStatus.IDLE
        self.question: Question | None = None

    @property
    def session(self) -> AgentSession:
        return self._session

    @classmethod
    def of(cls, instance: AgentInstance) -> "DetachedInstance":
        if not isinstance(instance, cls):
            raise TypeError("this instance belongs to another adapter")
        return instance

    @contextmanager
    def running(self, question: Question) -> Iterator[None]:
        if self.status is InstanceStatus.STOPPED:
            raise UnrecoverableError("the instance was stopped")
        self.status, self.question = InstanceStatus.RUNNING, question
        try:
            yield
        finally:
            self.question = None
            if self.status is InstanceStatus.RUNNING:
                self.status = InstanceStatus.IDLE


class DetachedAdapter:
    """Puts the questions of one part of a run through supervisors that outlive this process."""

    def __init__(
        self,
        posting: Posting,
        fork_server: ForkServerClient,
        processes: Processes,
        emit: Callable[[Event], None],
        workspace: Workspace | None = None,
        suspend_on_cancel: bool = True,
        end_orphans: Callable[[], int] = lambda: 0,
        credential: Callable[[], Awaitable[str]] | None = None,
        over: Callable[[], Awaitable[bool]] | None = None,
    ) -> None:
        self.posting = posting
        self.fork_server = fork_server
        self.processes = processes
        """What ends the processes that a dead supervisor left, wherever they are."""
        self.emit = emit
        """Takes the events of egress ports."""
        self.workspace = workspace
        self.suspend_on_cancel = suspend_on_cancel
        """Whether a cancelled question ends its agent; otherwise it goes on for the next one who asks."""
        self.end_orphans = end_orphans
        """Ends what this process adopted from a supervisor that died after its fork server, whatever its mark."""
        self.credential = credential
        """A new secret for each supervisor, where its agent asks what is next."""
        self.over = over
        """Whether the run has a result: then no supervisor is started in the place of one that died."""
        self.suspending_seconds = _SUSPENDING_SECONDS
        self._handed: dict[Path, str] = {}
        """By question: the secret that was left for its supervisor from here. Another worker may leave another one."""

    @asynccontextmanager
    async def open_environment(self, workspace: Workspace) -> AsyncIterator[AgentSession]:
        """The session of an instance, as the worker needs it: the supervisor opens the sandbox and its egress ports."""
        self.workspace = workspace
        yield AgentSession(
            run=self.posting.run,
            agent=self.posting.agent,
            workdir=workspace.path,
            folder=str(Path(self.posting.folder) / "asks"),
            environment={},
            processes=self.processes,
            sandboxed=self.posting.kind.is_sandboxed,
        )

    async def start(self, session: AgentSession) -> AgentInstance:
        return DetachedInstance(session)

    async def execute(self, instance: AgentInstance, ask: Ask, on_output: OutputListener) -> Reply:
        own = DetachedInstance.of(instance)
        question = Question.of(Path(self.posting.folder), self.posting.part, ask.number)
        with own.running(question):
            try:
                question.make()
                with question.watching():
                    result, replayed = await self._result(question, self._request(ask), on_output)
            except asyncio.CancelledError:
                if self.suspend_on_cancel:
                    await asyncio.shield(self._end(question))
                raise
            except RecoverableError as error:
                await self._end(question)
                await asyncio.to_thread(_write_down, question, error)
                raise
            except BaseException:  # no process would write down the agent's output any more
                await self._end(question)
                raise
            return result.taken(replayed)

    async def status(self, instance: AgentInstance) -> InstanceStatus:
        return DetachedInstance.of(instance).status

    async def stop(self, instance: AgentInstance) -> None:
        own = DetachedInstance.of(instance)
        if own.question is not None:
            await self._end(own.question)
        own.status = InstanceStatus.STOPPED

    def _request(self, ask: Ask) -> Request:
        if self.workspace is None:
            raise UnrecoverableError("there is no working tree for the agent to be asked in")
        return Request(
            run=self.posting.run,
            top=self.posting.top,
            git_dir=self.posting.git_dir,
            common=self.posting.common,
            kind=self.posting.kind,
            workspace=self.workspace,
            ask=ask,
            grace_seconds=self.posting.grace_seconds,
            workflow=self.posting.workflow,
        )

    async def _result(self, question: Question, request: Request, on_output: OutputListener) -> tuple[Result, bool]:
        """What the question came to, and whether it had done so before. What died is started again, a few times."""
        replayed, deaths = True, 0
        while True:
            result, newest = question.result(), question.newest()
            if result is not None and newest is not None:
                with OutputReader(newest, on_output, self.emit) as output_reader:
                    await output_reader.tell()
                question.take_secret()  # of a supervisor that was never born
                return result, replayed
            holder = question.holder()
            if not question.is_held():
                if deaths >= _MOST_DEATHS:
                    await self.processes.sweep(request.run)
                    log = newest.log if newest is not None else question.path
                    message = f"the supervisor of the agent died {deaths} times"
                    raise AgentUnavailable(message, hint=f"its output: {log}")
                if newest is not None:
                    await asyncio.to_thread(self.end_orphans)
                    if self.over is not None and await self.over():
                        raise AgentUnavailable("the supervisor of the agent died when everything was done")
                await self._end_others(question)
                question.ask(request)
                if self.credential is not None:
                    self._handed[question.path] = await self.credential()
                    question.hand(self._handed[question.path])
                holder = await self._start(question)
                deaths += 1
            replayed = False
            current = question.newest()
            if current is None or current.has_result():  # another worker has just had a supervisor started
                await asyncio.sleep(0 if question.result() is not None else _QUICK_POLL_SECONDS)
            else:
                await self._follow(question, current, holder, on_output)

    async def _start(self, question: Question) -> Holder | None:
        """Ask for a supervisor. Once that is under way it is waited for, so that none is started unseen."""
        adapter, sandboxed = self.posting.adapter, self.posting.kind.is_sandboxed
        starting = asyncio.ensure_future(asyncio.to_thread(self.fork_server.start, question.path, adapter, sandboxed))
        try:
            return (await asyncio.shield(starting)).holder
        except asyncio.CancelledError:
            await asyncio.wait({starting})
            raise

    async def _follow(
        self, question: Question, attempt: Attempt, holder: Holder | None, on_output: OutputListener
    ) -> None:
        """Pass on output until there is a result, or no process that could still give one."""
        with OutputReader(attempt, on_output, self.emit) as output_reader, _end_of(holder) as ended:
            while True:
                over = ended.is_set() or attempt.has_result() or not question.is_held()
                await output_reader.tell()
                if over:
                    break
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_POLL_SECONDS if ended.is_seen else _QUICK_POLL_SECONDS):
                        await ended.wait()
        _reap(holder)

    async def _end_others(self, question: Question) -> None:
        """A run has one worktree: a supervisor that still works there on another question is ended first."""
        for other in await asyncio.to_thread(_held_beside, question):
            await self._end(other)

    async def _end(self, question: Question) -> None:
        """Have the supervisor suspend its agent; one that does not is killed, and what it leaves is swept.

        A secret that none took is taken away: the next one who asks brings a new one, which may be there already.
        """
        if not await asyncio.to_thread(_signal_holder, question, signal.SIGTERM, self.suspending_seconds):
            await asyncio.to_thread(_signal_holder, question, signal.SIGKILL, _KILLING_SECONDS)
            await self.processes.sweep(self.posting.run)
        question.take_secret(self._handed.pop(question.path, None))


async def end_all(run_folder: Path, run: str, processes: Processes) -> None:
    """End every agent of a run that a supervisor still holds, with all that it started. Safe to repeat.

    A secret that was left for one who is never started goes with them.
    """
    for question in questions(run_folder):
        if not await asyncio.to_thread(_signal_holder, question, signal.SIGTERM, _SUSPENDING_SECONDS):
            await asyncio.to_thread(_signal_holder, question, signal.SIGKILL, _KILLING_SECONDS)
        question.take_secret()
    await processes.sweep(run)


class _End(asyncio.Event):
    """Set when a process has ended, where that can be waited for."""

    is_seen = False


@contextmanager
def _end_of(holder: Holder | None) -> Iterator[_End]:
    ended = _End()
    descriptor = _pidfd(holder) if holder is not None else None
    if descriptor is None:
        yield ended
        return
    loop = asyncio.get_running_loop()

    def notice() -> None:
        ended.set()
        loop.remove_reader(descriptor)

    try:
        loop.add_reader(descriptor, notice)
        ended.is_seen = True
        yield ended
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)


def _pidfd(holder: Holder) -> int | None:
    """A file that can be read when the process has ended; None where there is no such thing, or no such process."""
    try:
        descriptor = os.pidfd_open(holder.process)
    except (AttributeError, OSError):
        return None
    if not holder.is_alive():
        os.close(descriptor)
        return None
    return descriptor


def _reap(holder: Holder | None) -> None:
    """Reap a supervisor whose fork server died: it may have become a child of this process."""
    if holder is not None and not holder.is_alive():
        with contextlib.suppress(OSError):
            os.waitpid(holder.process, os.WNOHANG)


def _held_beside(question: Question) -> list[Question]:
    """The other questions of the same run that a supervisor works on."""
    return [other for other in questions(question.run_folder) if other.path != question.path and other.is_held()]


def _write_down(question: Question, error: RecoverableError) -> None:
    """A failure here is the answer to this question for every caller: the next attempt is another question."""
    lock = question.take_lock()
    if lock is None:
        return
    try:
        if question.result() is None:
            question.begin().write(Result(failure=Failure.of(error)))
    except DiskFullError:
        return
    finally:
        os.close(lock)


def _signal_holder(question: Question, number: signal.Signals, seconds: float) -> bool:
    """Signal the holder of the question, once its process id is known; True when there is no holder in the end."""
    deadline = time.monotonic() + seconds
    result: Holder | None = None
    while question.is_held():
        holder = question.holder()
        if holder is not None and holder != result:
            holder.signal(number)
            result = holder
        if time.monotonic() > deadline:
            return False
        time.sleep(_QUICK_POLL_SECONDS)
    _reap(result)
    return True
