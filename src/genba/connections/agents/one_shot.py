"""An instance that lives for one question at a time, and how the end of its process is read."""

from collections.abc import Iterator
from contextlib import contextmanager

from genba.domain.errors import AgentTimeout, AgentUnavailable, BoundaryViolationError, UnrecoverableError
from genba.domain.ports import AgentInstance
from genba.domain.processes import Ending, Exit
from genba.domain.sessions.agent_adapter import BaseAdapter
from genba.domain.sessions.replies import AgentSession, InstanceStatus, Reply


class OneShotInstance:
    """Between questions nothing runs."""

    def __init__(self, session: AgentSession) -> None:
        self._session = session
        self.status = InstanceStatus.IDLE

    @property
    def session(self) -> AgentSession:
        return self._session

    @classmethod
    def of(cls, instance: AgentInstance) -> "OneShotInstance":
        if not isinstance(instance, cls):
            raise TypeError("this instance belongs to another adapter")
        return instance

    @contextmanager
    def running(self) -> Iterator[None]:
        if self.status is InstanceStatus.STOPPED:
            raise UnrecoverableError("the instance was stopped")
        self.status = InstanceStatus.RUNNING
        try:
            yield
        finally:
            if self.status is InstanceStatus.RUNNING:
                self.status = InstanceStatus.IDLE
        if self.status is InstanceStatus.STOPPED:  # it may have answered while its processes ended one by one
            raise AgentUnavailable("the agent was stopped, and ended without a result")


class OneShotAdapter(BaseAdapter):
    """What adapters that start one process per question have in common."""

    async def status(self, instance: AgentInstance) -> InstanceStatus:
        return OneShotInstance.of(instance).status

    async def stop(self, instance: AgentInstance) -> None:
        shot = OneShotInstance.of(instance)
        is_running = shot.status is InstanceStatus.RUNNING
        shot.status = InstanceStatus.STOPPED
        if is_running:
            await shot.session.processes.sweep(shot.session.run)


def reply_from_exit(done: Exit) -> Reply:
    """The reply of a process that answers on stdout; an end that is no answer is an error of the right kind."""
    reply = reply_of_command(done)
    if reply.failure:
        raise AgentUnavailable(reply.failure)
    return reply


def reply_of_command(done: Exit) -> Reply:
    """The reply of any command. An exit code other than 0 is its failure, which the work may contradict."""
    check_end(done)
    if done.code < 0:
        raise AgentUnavailable(f"the agent was killed by signal {-done.code}")
    failure = with_detail(f"the agent ended with exit code {done.code}", last_output(done)) if done.code else ""
    return Reply(text=done.stdout, exit_code=done.code, seconds=done.seconds, failure=failure)


def check_end(done: Exit) -> None:
    """Raise for an end that was not the agent's own: a wall, the clock, or no start at all."""
    if done.violations:
        raise BoundaryViolationError("the agent " + "; ".join(each.detail for each in done.violations))
    if done.ending is Ending.TIMED_OUT:
        raise AgentTimeout(f"the agent gave no answer within its time ({done.seconds:.1f} s)")
    if done.ending is Ending.WENT_SILENT:
        raise AgentTimeout(f"the agent went silent ({done.seconds:.1f} s)")
    if done.never_ran:
        raise UnrecoverableError(
            with_detail("the agent cannot be started", last_output(done)), hint="check runner.adapter"
        )


def last_output(done: Exit) -> str:
    return _tail(done.stderr) or _tail(done.stdout)


def with_detail(what: str, detail: str) -> str:
    return f"{what}: {detail}" if detail else what


def _tail(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1][:300] if lines else ""
