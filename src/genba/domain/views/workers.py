"""Who works, on what, since when: pictures of executors, of sessions at work, and of who did what when."""

import msgspec

from genba.domain.fleet.records import Purpose


class MemoryUse(msgspec.Struct, frozen=True, kw_only=True):
    """Of one look."""

    total_mb: int
    free_mb: int
    by_mark: dict[str, int]
    """Megabytes by mark. Marks that end in a word of their own, such as RUN.claim, count for the run too."""
    by_process: dict[int, int]
    """Megabytes of a process and all that descend from it, by the numbers that were asked for."""


class Memory(msgspec.Struct, frozen=True, kw_only=True):
    """The memory of the host that this picture was made on."""

    host: str = ""
    total_mb: int = 0
    free_mb: int = 0


class ExecutorView(msgspec.Struct, frozen=True, kw_only=True):
    """One process that carries out parts."""

    id: str
    host: str
    process: int
    status: str
    """live | suspended | dead | absent: it says that it lives, and its lock is free"""
    slots: int
    used: int = 0
    """Sessions that it has now."""
    here: bool = False
    """Whether it is a process of this host."""
    memory_mb: int | None = None
    """Of its process and all below it; nothing where that cannot be seen from here."""
    started_at: str = ""
    heartbeat_at: str = ""


class BusyView(msgspec.Struct, frozen=True, kw_only=True):
    """One session that holds a worker."""

    run: str
    task: int
    title: str = ""
    agent: str = ""
    executor: str = ""
    host: str = ""
    purpose: Purpose = Purpose.WORK
    status: str = "running"
    """running | suspended: no executor runs it now; it continues with the next `genba work`"""
    phase: str = ""
    step: str = ""
    iteration: int = 0
    seconds: float = 0.0
    """Since the session began."""
    tokens: int = 0
    cost_usd: float = 0.0
    memory_mb: int | None = None
    """Of its agent and everything that it started; nothing where that cannot be seen from here."""
    heartbeat_at: str = ""


class SegmentMark(msgspec.Struct, frozen=True, kw_only=True):
    """That a part of a session began or ended, as it was written down."""

    run: str
    part: int
    began: bool
    executor: str
    at: str
    outcome: str = ""
    """Of an end: what the session came to, or `waiting`."""


class SpanFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a session whose time is drawn."""

    run: str
    task: int
    title: str
    agent: str
    purpose: Purpose
    status: str
    executor: str
    host: str
    outcome: str
    started_at: str
    heartbeat_at: str
    ended_at: str
    part: int
    in_parts: bool
    """Whether a fleet carries it out; else it is one run from its beginning to its end."""
    cost_usd: float = 0.0


class WorkSpan(msgspec.Struct, frozen=True, kw_only=True):
    """One uninterrupted time in which a session was worked on."""

    run: str
    task: int
    title: str
    agent: str
    executor: str
    purpose: Purpose
    part: int
    began: str
    ended: str = ""
    """Nothing while it goes on."""
    outcome: str = "running"
    """running | waiting | suspended, or the outcome of the session"""
    cost_usd: float = 0.0
    """Of the whole session."""
    row: int = 0
    """Which of the rows of its lane: no two in one row overlap."""


class Lane(msgspec.Struct, frozen=True, kw_only=True):
    """The stretches of one executor, or of one agent."""

    name: str
    rows: int
    stretches: tuple[WorkSpan, ...]


class Timeline(msgspec.Struct, frozen=True, kw_only=True):
    """Who did what when."""

    since: str
    until: str
    by: str = "worker"
    """worker | agent"""
    lanes: tuple[Lane, ...] = ()
    total: int = 0
    left_out: int = 0
    """Sessions of this time that are older than those that are shown."""


class WorkerListView(msgspec.Struct, frozen=True, kw_only=True):
    executors: tuple[ExecutorView, ...] = ()
    busy: tuple[BusyView, ...] = ()
    waiting: int = 0
    """Sessions that hold no worker, and wait for something."""
    slots: int = 0
    """Of all executors that live."""
    used: int = 0
    memory: Memory = Memory()
    timeline: Timeline
