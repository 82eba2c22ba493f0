"""Issues that wait for themselves, through others: which, and the way round. A hostile field costs no more."""

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping

import msgspec

from genba.domain.facilitation import IssueFacts

_LONGEST_WAY = 12
_MOST_STEPS = 200_000
"""Steps that are spent on ways round, in all: beyond them a circle is named, and its way is not."""


class Circle(msgspec.Struct, frozen=True):
    way: tuple[int, ...]
    """From an issue to itself; only its beginning and its end where it is long."""
    size: int
    """How many issues wait for each other."""
    name: int
    """The lowest number among them."""
    whole: bool = True


def circles_of(waits: Mapping[int, tuple[int, ...]]) -> dict[int, Circle]:
    """By each issue that waits for itself: the shortest way round, from it to it."""
    found: dict[int, Circle] = {}
    left = _MOST_STEPS
    for component in sorted(sorted(each) for each in components(waits)):
        first = component[0]
        if len(component) == 1 and first not in waits.get(first, ()):
            continue
        within = frozenset(component)
        for number in component:
            way: tuple[int, ...] = ()
            if left > 0:
                way, steps = _way_round(number, waits, within)
                left -= steps
            whole = bool(way) and len(way) <= _LONGEST_WAY
            if not way:
                way = (number, next(other for other in waits[number] if other in within), number)
            elif not whole:
                way = (*way[: _LONGEST_WAY - 1], number)
            found[number] = Circle(way=way, size=len(component), name=first, whole=whole)
    return found


def _way_round(start: int, waits: Mapping[int, tuple[int, ...]], within: frozenset[int]) -> tuple[tuple[int, ...], int]:
    """The shortest way from an issue back to it, and how many steps it took to find."""
    came: dict[int, int] = {}
    ahead = deque((start,))
    steps = 0
    while ahead:
        at = ahead.popleft()
        for other in waits.get(at, ()):
            steps += 1
            if other == start:
                way = [start]
                while at != start:
                    way.append(at)
                    at = came[at]
                return (start, *reversed(way)), steps
            if other in within and other not in came:
                came[other] = at
                ahead.append(other)
    return (), steps


def needed_by(field: Mapping[int, IssueFacts], numbers: Iterable[int]) -> set[int]:
    """Some issues with their parts and what they wait for, and theirs: all that they are judged by."""
    seen: set[int] = set()
    ahead = [number for number in numbers if number in field]
    while ahead:
        number = ahead.pop()
        if number not in seen:
            seen.add(number)
            facts = field[number]
            if facts.children or facts.dependencies:
                ahead += [other for other in (*facts.children, *facts.dependencies) if other in field]
    return seen


def those_behind(field: Mapping[int, IssueFacts], numbers: Collection[int]) -> set[int]:
    """Some issues with those whose parts they are and who wait for them, and theirs: all who are judged by them."""
    behind: dict[int, list[int]] = {}
    for number, facts in field.items() if numbers else ():
        for other in (*facts.children, *facts.dependencies):
            behind.setdefault(other, []).append(number)
    seen: set[int] = set()
    ahead = list(numbers)
    while ahead:
        number = ahead.pop()
        if number not in seen:
            seen.add(number)
            ahead += behind.get(number, ())
    return {number for number in seen if number in field}


def components(waits: Mapping[int, tuple[int, ...]]) -> Iterator[list[int]]:
    """Sets of issues that all lead to each other, each after those that it leads to (Tarjan, without recursion)."""
    index: dict[int, int] = {}
    low: dict[int, int] = {}
    stack: list[int] = []
    on_stack: set[int] = set()
    for root in waits:
        if root in index:
            continue
        work = [(root, iter(waits.get(root, ())))]
        index[root] = low[root] = len(index)
        stack.append(root)
        on_stack.add(root)
        while work:
            number, others = work[-1]
            other = next(others, None)
            if other is None:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[number])
                if low[number] == index[number]:
                    yield _popped(stack, on_stack, number)
            elif other not in index:
                index[other] = low[other] = len(index)
                stack.append(other)
                on_stack.add(other)
                work.append((other, iter(waits.get(other, ()))))
            elif other in on_stack:
                low[number] = min(low[number], index[other])


def _popped(stack: list[int], on_stack: set[int], until: int) -> list[int]:
    component: list[int] = []
    while not component or component[-1] != until:
        component.append(stack.pop())
        on_stack.discard(component[-1])
    return component
