"""A session: one attempt of one instance at one task."""

from collections.abc import Callable
from enum import StrEnum

import msgspec

from genba.domain.goals.verification import Verification
from genba.domain.sessions.loop_state import Feedback
from genba.domain.sessions.outcomes import Outcome
from genba.domain.tasks.task import Task


class SessionStatus(StrEnum):
    RUNNING = "running"
    WAITING = "waiting"
    """Between two parts: it holds no worker, and what it waits for stands on the blackboard."""
    ENDED = "ended"


class SessionStart(msgspec.Struct, frozen=True, kw_only=True):
    run: str
    agent: str
    branch: str
    base: str
    workdir: str
    host: str = ""
    process: int = 0
    heartbeat_at: str = ""
    """Its last heartbeat; empty where none is recorded."""


Died = Callable[[SessionStart], bool]
"""Whether an older session that never ended has lost its process."""


class SessionEnd(msgspec.Struct, frozen=True, kw_only=True):
    run: str
    outcome: Outcome
    reason: str
    iterations: int = 0
    tokens: int = 0
    cost_usd: float = 0.0
    verified: str = ""
    """The commit that is verified."""
    lands_on: str = ""
    """The branch that it lands on by a merge; empty where it is delivered in another way."""


class ChangesRequested(msgspec.Struct, frozen=True, kw_only=True):
    """What the last review of a task requested, on the commit that was in review last."""

    key: str
    """Names this request: a run that knows it already is not given it again."""
    commit: str
    reviewer: str
    findings: tuple[str, ...]
    count: int = 1
    """How many reviews of the task requested changes."""


class Briefing(msgspec.Struct, frozen=True, kw_only=True):
    """What a run gets to know when it has claimed its task."""

    task: Task
    attempt: int
    """Which session of this task it is, from 1."""
    verified: str = ""
    """The commit of this run that was verified last, when the verdict was `done`."""
    last: Verification | None = None
    """The newest verdict, when it sent the work back: the evidence to go on with."""
    gap: Feedback | None = None
    """What others want of the work before it lands, such as those who reviewed its pull request."""
    changes: ChangesRequested | None = None
    """What a review requested, while no newer commit was in review."""
