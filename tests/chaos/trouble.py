"""What happens to a round: drawn from its seed, as its field is, before anybody has begun.

The same seed gives the same troubles in the same order at the same number of events. Processes race, so who is hit in
the middle of what is not the same each time.
"""

import random
from enum import StrEnum

import msgspec

EVENTS_PER_TASK = 11
"""As many as stand on the blackboard in the end, for each task, at least."""


class Kind(StrEnum):
    """What can happen. A death is by SIGKILL."""

    WORKER = "worker"
    """The process that decides and works, with everything in it."""
    BOUNDARY = "boundary"
    """The worker dies, and the one who comes next dies too, at a boundary between two steps."""
    FORK_SERVER = "nursery"
    SUPERVISOR = "supervisor"
    AGENT = "agent"
    SERVER = "server"
    """The MCP server that those ask who came by themselves."""
    EVERYBODY = "everybody"
    DATABASE = "database"
    DISK = "disk"
    """There is no room left, for a moment."""
    CLOCK = "clock"
    """It is another hour, all of a sudden."""
    LOCK = "lock"
    """A git that was killed has left a lock behind."""


class Lock(StrEnum):
    """Which lock. The last two are those of a task that is being worked on: the fleet takes them away by itself."""

    INDEX = "index.lock"
    TARGET = "refs/heads/main.lock"
    PACKED = "packed-refs.lock"
    CONFIG = "config.lock"
    TREE = "worktrees/…/index.lock"
    BRANCH = "refs/heads/genba/….lock"

    @property
    def of_the_fleet(self) -> bool:
        return self in (Lock.TREE, Lock.BRANCH)


SHARES = {
    Kind.WORKER: 6, Kind.BOUNDARY: 4, Kind.FORK_SERVER: 2, Kind.SUPERVISOR: 3, Kind.AGENT: 3, Kind.SERVER: 2,
    Kind.EVERYBODY: 1, Kind.DATABASE: 3, Kind.DISK: 2, Kind.LOCK: 3,
}  # fmt: skip
CLOCK_ROUNDS = 10
_LONGEST_JITTER = 0.15
_HOURS = (-30.0, -3.0, -0.2, 0.2, 3.0, 30.0)

PLACES = {
    "part:open": 4, "part:iterate": 6, "part:verify": 6, "part:send back": 2, "turn:take": 4, "turn:prove": 4,
    "turn:land": 4, "turn:settle": 4,
}  # fmt: skip
"""The steps of the engine, and how often each is reached early in a round of a dozen tasks."""
VERBS = {
    "board:register": 1, "board:start": 4, "board:continue_": 4, "board:end_part": 4, "board:enqueue_merge": 4,
    "board:take": 4, "board:settle_all": 4, "engine:enqueue_in": 6,
}  # fmt: skip


def boundaries() -> list[str]:
    steps = [
        f"{place}:{nth}:{when}"
        for place, most in PLACES.items()
        for nth in range(1, most + 1)
        for when in ("before", "inside", "after")
    ]
    verbs = [
        f"{place}:{nth}:{when}"
        for place, most in VERBS.items()
        for nth in range(1, most + 1)
        for when in ("before", "after")
    ]
    return steps + verbs


def database_of(seed: int, databases: tuple[str, ...]) -> str:
    """The database of a round. After twice as many seeds as there are boundaries, each was met on both."""
    return databases[(seed + 1 + seed // len(boundaries())) % len(databases)]


class Trouble(msgspec.Struct, frozen=True):
    """One thing that happens."""

    kind: Kind
    at: int
    """How many events stand on the blackboard when it does."""
    jitter: float
    """Seconds after that."""
    choice: float
    """Which of those whom it could hit, from 0 to 1."""
    boundary: str = ""
    lock: Lock = Lock.INDEX
    hours: float = 0.0
    seconds: float = 0.0
    """How long it lasts."""


class Troubles(msgspec.Struct, frozen=True):
    """Everything that happens in a round."""

    first: str
    clock: bool
    """Whether everybody lives by a clock that can be turned."""
    those: tuple[Trouble, ...]


def draw(seed: int, tasks: int) -> Troubles:
    """The troubles of a seed. Over as many seeds as there are boundaries, every one of them is died at."""
    chance = random.Random(f"trouble {seed}")
    clock = seed % CLOCK_ROUNDS == 0
    many = max(3, chance.randint(tasks // 9, tasks // 6))
    kinds = chance.choices(list(SHARES), list(SHARES.values()), k=many)
    while kinds.count(Kind.EVERYBODY) > 1:
        kinds[kinds.index(Kind.EVERYBODY)] = Kind.WORKER
    if clock:
        kinds = [*kinds[2:], Kind.CLOCK, Kind.CLOCK]
        chance.shuffle(kinds)
    moments = sorted(chance.randrange(tasks * EVENTS_PER_TASK) for _ in kinds)
    every = boundaries()
    return Troubles(
        first=every[seed % len(every)],
        clock=clock,
        those=tuple(
            Trouble(
                kind=kind,
                at=at,
                jitter=chance.uniform(0, _LONGEST_JITTER),
                choice=chance.random(),
                boundary=chance.choice(every),
                lock=chance.choice(list(Lock)),
                hours=chance.choice(_HOURS),
                seconds=chance.uniform(0.2, 1.0),
            )
            for kind, at in zip(kinds, moments, strict=True)
        ),
    )
