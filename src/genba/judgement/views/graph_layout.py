"""Places for what needs other things: what is needed stands on the left of what needs it.

Pure and deterministic: the same graph has the same layout. Circles are allowed. Nothing here is more than
a few walks over the edges.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TypeVar

Name = TypeVar("Name", bound=Hashable)

TALL = 16
"""So many stand in one column; what is more goes into another one beside it."""
_SWEEPS = 4


def layers(names: Sequence[Name], needs: Mapping[Name, Iterable[Name]]) -> dict[Name, int]:
    """By name: how many others come before it, on the longest way to it.

    In a circle the way ends where it would come back to one that it has passed: the first name of a circle is its
    beginning.
    """
    leads = _leads(names, needs)
    order, back = _walk(names, leads)
    found = dict.fromkeys(names, 0)
    for name in order:
        for other in leads[name]:
            if (name, other) not in back:
                found[other] = max(found[other], found[name] + 1)
    return found


def _leads(names: Sequence[Name], needs: Mapping[Name, Iterable[Name]]) -> dict[Name, list[Name]]:
    """By name: those that need it."""
    found: dict[Name, list[Name]] = {name: [] for name in names}
    for name in names:
        for other in dict.fromkeys(needs.get(name, ())):
            if other in found and other != name:
                found[other].append(name)
    return found


def _walk(names: Sequence[Name], leads: Mapping[Name, Sequence[Name]]) -> tuple[list[Name], set[tuple[Name, Name]]]:
    """Each name after those that lead to it, and the edges that lead back in a circle. Without recursion."""
    ended: list[Name] = []
    seen: set[Name] = set()
    on_the_way: set[Name] = set()
    back: set[tuple[Name, Name]] = set()
    for root in names:
        if root in seen:
            continue
        seen.add(root)
        on_the_way.add(root)
        work = [(root, iter(leads[root]))]
        while work:
            name, others = work[-1]
            fresh = None
            for other in others:
                if other in on_the_way:
                    back.add((name, other))
                elif other not in seen:
                    fresh = other
                    break
            if fresh is None:
                work.pop()
                on_the_way.discard(name)
                ended.append(name)
            else:
                seen.add(fresh)
                on_the_way.add(fresh)
                work.append((fresh, iter(leads[fresh])))
    return ended[::-1], back


def places(
    names: Sequence[Name], needs: Mapping[Name, Iterable[Name]], tall: int = TALL
) -> dict[Name, tuple[int, int]]:
    """By name: its column and its row. What nothing relates to stands below the others."""
    known = frozenset(names)
    edges = [(one, other) for other in names for one in needs.get(other, ()) if one in known and one != other]
    near: dict[Name, list[Name]] = {name: [] for name in names}
    for one, other in edges:
        near[one].append(other)
        near[other].append(one)
    related = [name for name in names if near[name]]
    found, height = _related(related, needs, near, tall)
    alone = [name for name in names if not near[name]]
    wide = max(6, 1 + max((x for x, _ in found.values()), default=0))
    for at, name in enumerate(alone):
        found[name] = (at % wide, height + at // wide)
    return found


def _related(
    names: Sequence[Name], needs: Mapping[Name, Iterable[Name]], near: Mapping[Name, Sequence[Name]], tall: int
) -> tuple[dict[Name, tuple[int, int]], int]:
    layer = layers(names, needs)
    columns: list[list[Name]] = [[] for _ in range(1 + max(layer.values(), default=-1))]
    for name in names:
        columns[layer[name]].append(name)
    _untangle(columns, layer, near)
    found: dict[Name, tuple[int, int]] = {}
    x = 0
    for column in columns:
        for at, name in enumerate(column):
            found[name] = (x + at // tall, at % tall)
        x += max(1, -(-len(column) // tall))
    return found, 1 + max((y for _, y in found.values()), default=-1)


def _untangle(columns: list[list[Name]], layer: Mapping[Name, int], near: Mapping[Name, Sequence[Name]]) -> None:
    """Put each beside the middle of those that it is tied to, from the left and from the right in turn."""
    row = {name: at for column in columns for at, name in enumerate(column)}
    for sweep in range(_SWEEPS):
        forward = sweep % 2 == 0
        for column in columns if forward else reversed(columns):
            middle: dict[Name, float] = {}
            for name in column:
                tied = [
                    row[other]
                    for other in near[name]
                    if (layer[other] < layer[name] if forward else layer[other] > layer[name])
                ]
                middle[name] = sum(tied) / len(tied) if tied else float(row[name])
            column.sort(key=lambda name: (middle[name], row[name]))
            row.update({name: at for at, name in enumerate(column)})
