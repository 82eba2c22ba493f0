"""Which ready task first: by priority, by what waits for it, by age. And which tasks wait for each other for ever."""

from collections.abc import Mapping

from genba.domain.tasks.task import Priority, Task
from genba.domain.timestamps import hours_between

_RANK = {priority: rank for rank, priority in enumerate(Priority)}

Rank = tuple[int, int, str, int]
"""What is smaller comes first: priority with age, the negative length of the chain, when it was made, its number."""


def waits_for(task: Task, tasks: Mapping[int, Task]) -> tuple[int, ...]:
    """The unfinished tasks that must end before this one can: what it depends on, and its parts."""
    return tuple(
        number for number in (*task.dependencies, *task.children) if number in tasks and not tasks[number].status.ended
    )


def chains(tasks: Mapping[int, Task]) -> dict[int, int]:
    """By task: how many unfinished tasks wait for it one behind the other, at most."""
    needs = _needs(tasks)
    waiting = _waiting(needs)
    lengths = {number: 0 for number, count in waiting.items() if count == 0}
    free = list(lengths)
    while free:
        number = free.pop()
        for needed in needs[number]:
            lengths[needed] = max(lengths.get(needed, 0), lengths[number] + 1)
            waiting[needed] -= 1
            if waiting[needed] == 0:
                free.append(needed)
    return lengths | {number: 0 for number, count in waiting.items() if count > 0}


def circles(tasks: Mapping[int, Task]) -> tuple[tuple[int, ...], ...]:
    """Tasks that wait for each other in a circle, each circle from its smallest number on."""
    core = _core(_needs(tasks))
    found: list[tuple[int, ...]] = []
    while core:
        path = [min(core)]
        while (following := min(core[path[-1]])) not in path:
            path.append(following)
        circle = path[path.index(following) :]
        first = circle.index(min(circle))
        found.append(tuple(circle[first:] + circle[:first]))
        core = _core(
            {
                number: [one for one in needed if one not in circle]
                for number, needed in core.items()
                if number not in circle
            }
        )
    return tuple(sorted(found))


def rank(task: Task, chain: int, now: str, ageing_hours: float) -> Rank:
    """Where a task stands in the queue. Every `ageing_hours` it moves up one priority, so that nothing starves."""
    aged = steps_aged(task, now, ageing_hours)
    return (max(0, _RANK[task.priority] - aged), -chain, task.created_at, task.number)


def steps_aged(task: Task, now: str, ageing_hours: float) -> int:
    return int(max(0.0, hours_between(task.created_at, now)) // ageing_hours)


def _needs(tasks: Mapping[int, Task]) -> dict[int, list[int]]:
    return {number: list(waits_for(task, tasks)) for number, task in tasks.items() if not task.status.ended}


def _waiting(needs: dict[int, list[int]]) -> dict[int, int]:
    """By task: how many wait for it."""
    waiting = dict.fromkeys(needs, 0)
    for needed in needs.values():
        for number in needed:
            waiting[number] += 1
    return waiting


def _core(needs: dict[int, list[int]]) -> dict[int, list[int]]:
    """What is left when every task is taken away that could ever end."""
    left = {number: set(needed) for number, needed in needs.items()}
    behind: dict[int, list[int]] = {}
    for number, needed in left.items():
        for one in needed:
            behind.setdefault(one, []).append(number)
    free = [number for number, needed in left.items() if not needed]
    while free:
        gone = free.pop()
        left.pop(gone)
        for number in behind.get(gone, ()):
            left[number].discard(gone)
            if not left[number]:
                free.append(number)
    return {number: sorted(needed) for number, needed in left.items()}
