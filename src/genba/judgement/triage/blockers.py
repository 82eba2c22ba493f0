"""What stands in the way of each issue, who can clear it, and where the chain of waiting ends."""

from collections.abc import Iterator, Mapping

import msgspec

from genba.domain.facilitation import FieldBlocker, IssueBlockerKind, IssueFacts
from genba.domain.tasks.task import TaskStatus
from genba.domain.text_limits import cut, one_line
from genba.judgement.triage.dependency_cycles import Circle, circles_of

_BLOCKED_LABELS = ("blocked",)
A_PERSON = "a person"
_BLOCKED = TaskStatus.BLOCKED
_LONGEST = 300
_LONGEST_CHAIN = 12
"""Issues of a chain that are named: the nearest ones, and the root."""

Waits = dict[int, tuple[int, ...]]


class _Waiting(msgspec.Struct, frozen=True):
    """Who waits for whom, and where it ends."""

    waits: Waits
    circles: Mapping[int, Circle]
    roots: Mapping[int, int]


def blockers_of(field: Mapping[int, IssueFacts], done: Mapping[int, bool]) -> dict[int, tuple[FieldBlocker, ...]]:
    """By issue, everything that is in its way. An issue that waits for nothing is left out.

    An issue that is not in the field is not known to be done.
    """
    waits: Waits = {}
    for number, facts in field.items():
        if facts.dependencies and not done.get(number):
            left = tuple(sorted({other for other in facts.dependencies if not done.get(other)}))
            if left:
                waits[number] = left
    waiting = _Waiting(waits, circles_of(waits), _roots(waits))
    found: dict[int, tuple[FieldBlocker, ...]] = {}
    for number, facts in field.items():
        if done.get(number):
            continue
        if number in waits or facts.blocked_elsewhere or facts.question or facts.labels or facts.status is _BLOCKED:
            blockers = tuple(_blockers(facts, waiting, field))
            if blockers:
                found[number] = blockers
    return found


def _blockers(facts: IssueFacts, waiting: _Waiting, field: Mapping[int, IssueFacts]) -> Iterator[FieldBlocker]:
    others = waiting.waits.get(facts.number, ())
    yield from _of_dependencies(facts.number, others, waiting, field)
    for address in sorted(facts.blocked_elsewhere):
        yield FieldBlocker(kind=IssueBlockerKind.ELSEWHERE, detail=f"waits for {_short(address)}", owner=A_PERSON)
    blocked = facts.status is _BLOCKED
    if facts.question:
        yield FieldBlocker(kind=IssueBlockerKind.QUESTION, detail=f'asks: "{_short(facts.question)}"', owner=A_PERSON)
    elif blocked and (facts.blocker_kind != IssueBlockerKind.DEPENDENCY or not others):
        kind = facts.blocker_kind or "failed"
        yield FieldBlocker(kind=kind, detail=_short(facts.blocker_reason), owner=A_PERSON)
    elif not blocked and not others and not facts.blocked_elsewhere and _is_labelled(facts):
        yield FieldBlocker(
            kind=IssueBlockerKind.LABEL, detail="labelled blocked, and nothing says by what", owner=A_PERSON
        )


def _is_labelled(facts: IssueFacts) -> bool:
    """Whether a person or a tool labelled it as blocked. The facilitator's own labels do not count."""
    return any(label.casefold() in _BLOCKED_LABELS and label not in facts.own_labels for label in facts.labels)


def _of_dependencies(
    number: int, others: tuple[int, ...], waiting: _Waiting, field: Mapping[int, IssueFacts]
) -> Iterator[FieldBlocker]:
    circle = waiting.circles.get(number)
    if circle is not None:
        names = [f"#{each}" for each in circle.way]
        shown = " → ".join(names if circle.whole else [*names[:-1], "…", names[-1]])
        many = "" if circle.whole else f", among {circle.size} that wait for each other"
        yield FieldBlocker(
            kind=IssueBlockerKind.CYCLE, detail=f"waits for itself: {shown}{many}", owner=A_PERSON, chain=circle.way
        )
    for other in others:
        there = waiting.circles.get(other)
        if circle is not None and there is not None and there.name == circle.name:
            continue
        root = waiting.roots.get(other, other)
        chain = _chain(number, other, root, waiting.waits)
        yield FieldBlocker(
            kind=IssueBlockerKind.DEPENDENCY,
            detail=_waits_for(other, root, field),
            issue=other,
            owner=_owner(field.get(root)),
            chain=chain,
            known=root in field,
        )


def _waits_for(other: int, root: int, field: Mapping[int, IssueFacts]) -> str:
    message = f"waits for #{other}" + (f", which waits for #{root}" if root != other else "")
    return message if root in field else f"{message}, of which nothing is known"


def _owner(facts: IssueFacts | None) -> str:
    """Who has the issue at the root in hand."""
    if facts is None:
        return A_PERSON
    alive = sorted(session.agent for session in facts.sessions if session.alive)
    return alive[0] if alive else (facts.assignees[0] if facts.assignees else "")


def _roots(waits: Waits) -> dict[int, int]:
    """By issue, where its waiting ends: the first that waits for nothing, or for itself, along the lowest numbers."""
    roots: dict[int, int] = {}
    for start in waits:
        way: list[int] = []
        on_way: set[int] = set()
        at = start
        while at in waits and at not in roots and at not in on_way:
            way.append(at)
            on_way.add(at)
            at = waits[at][0]
        root = min(way[way.index(at) :]) if at in on_way else roots.get(at, at)
        roots.update(dict.fromkeys(way, root))
    return roots


def _chain(start: int, first: int, root: int, waits: Waits) -> tuple[int, ...]:
    """From an issue along what it waits for to the root of it; the middle of a long chain is left out."""
    chain = [start, first]
    while chain[-1] != root and len(chain) < _LONGEST_CHAIN - 1 and chain[-1] in waits:
        after = waits[chain[-1]][0]
        if after in chain:
            break
        chain.append(after)
    return tuple(chain) if chain[-1] == root else (*chain, root)


def _short(text: str) -> str:
    return cut(one_line(text), _LONGEST)
