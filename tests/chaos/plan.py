"""What a round of chaos is about: sixty tasks, who works on each of them, and how each must end.

A plan is a pure function of its seed. The one who plays reads it to build the field; the checker reads it to know what
is right. Neither asks the other.
"""

import random
from enum import StrEnum

import msgspec

TASKS = 60


class Kind(StrEnum):
    """How the agent of a task behaves."""

    HONEST = "honest"
    SLOW = "slow"
    """Commits more than once, and takes its time between."""
    CRASHING = "crashing"
    """Dies in its first attempts, at times after a commit, and does its work then."""
    DOOMED = "doomed"
    """Dies in every attempt."""
    LYING = "lying"
    """Says that it is done and never is: no commit, a red goal, or a goal it has changed."""
    SORRY = "sorry"
    CONFLICTING = "conflicting"
    """Writes where another one writes, and settles the conflict when it is shown to it."""
    CLASHING = "clashing"
    """Is green alone and merges cleanly with another one, and both together are red, until it has seen the other."""
    ASKING = "asking"
    """Asks the MCP server for its next action until there is none."""


class End(StrEnum):
    MERGED = "merged"
    """The task is done, and its work is on the target exactly once."""
    BLOCKED = "blocked"
    """A person has to decide. Nothing of it is on the target; what it committed is kept."""


ENDS = {kind: End.BLOCKED if kind in (Kind.DOOMED, Kind.LYING) else End.MERGED for kind in Kind}
SHARES = {
    Kind.HONEST: 16, Kind.SLOW: 8, Kind.CRASHING: 8, Kind.DOOMED: 3, Kind.LYING: 5, Kind.SORRY: 4,
    Kind.CONFLICTING: 8, Kind.CLASHING: 4, Kind.ASKING: 4,
}  # fmt: skip
"""How many of sixty."""
PAIRED = (Kind.CONFLICTING, Kind.CLASHING)
"""Those that have a partner."""


class Part(msgspec.Struct, frozen=True):
    """One task of the field."""

    number: int
    kind: Kind
    variant: int
    """Which of the ways of its kind: which lie, after how many deaths, how slow."""
    after: tuple[int, ...] = ()
    """Tasks that must be done first. Never one that ends blocked."""
    partner: int = 0
    """The other one who writes the same line, or what does not go with it."""

    @property
    def end(self) -> End:
        return ENDS[self.kind]

    @property
    def path(self) -> str:
        """The file that this task, and no other, brings onto the target. It holds the number of the task."""
        return f"task-{self.number}.txt"


class Plan(msgspec.Struct, frozen=True):
    seed: int
    parts: tuple[Part, ...]
    target: str = "main"


def plan(seed: int, tasks: int = TASKS) -> Plan:
    """The field of a seed. Every kind is there as soon as there are fourteen tasks."""
    chance = random.Random(f"field {seed}")
    kinds = _kinds(tasks)
    chance.shuffle(kinds)
    partners: dict[int, int] = {}
    for paired in PAIRED:
        those = [number for number, kind in enumerate(kinds, 1) if kind is paired]
        for first, second in zip(those[::2], those[1::2], strict=True):
            partners |= {first: second, second: first}
    parts: list[Part] = []
    for number, kind in enumerate(kinds, 1):
        free = [part.number for part in parts if part.end is End.MERGED and partners.get(part.number) != number]
        after = tuple(sorted(chance.sample(free, 1))) if free and chance.random() < 0.2 else ()
        parts.append(Part(number, kind, chance.randrange(1000), after, partners.get(number, 0)))
    return Plan(seed, tuple(parts))


def _kinds(tasks: int) -> list[Kind]:
    counted = {kind: max(1, round(share * tasks / TASKS)) for kind, share in SHARES.items()}
    for paired in PAIRED:
        counted[paired] += counted[paired] % 2
    others = sum(count for kind, count in counted.items() if kind is not Kind.HONEST)
    counted[Kind.HONEST] = max(1, tasks - others)
    return [kind for kind, count in counted.items() for _ in range(count)]
