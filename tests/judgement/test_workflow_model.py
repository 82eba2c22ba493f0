"""The workflow as a whole: an obedient instance, the others, people and death, walked through in every order.

The model knows what each tool does to the blackboard, and nothing of how the next action is chosen. From every state
that can be reached, `decide` is asked, and whatever its answer tells to do is done, in every way that it may come out:
green or red, answered or refused, cancelled, stopped and woken, killed and begun again.
"""

from collections.abc import Iterator
from itertools import product
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from genba.domain.tasks.task import Blocker, BlockerKind, TaskStatus
from genba.domain.workflow.actions import (
    Action,
    ActionKind,
    Evidence,
    ExitReason,
    Hierarchy,
    Phase,
    Snapshot,
    SubtaskView,
    Tool,
)
from genba.judgement.workflow.instructions import write
from genba.judgement.workflow.next_action import TOOLS, decide

S, K = TaskStatus, ActionKind
MAIN, MOST_REWORKS, MOST_ATTEMPTS = 1, 2, 1
Shape = tuple[tuple[int, ...], ...]
"""The dependencies of each subtask, by position."""


class Part(NamedTuple):
    number: int
    status: TaskStatus
    dependencies: tuple[int, ...] = ()
    goals: bool = False
    assigned: bool = False
    human: bool = False
    attempts: int = 0
    late: bool = False
    """Made after the newest verdict."""


class World(NamedTuple):
    """Everything that the blackboard knows."""

    hierarchy: Hierarchy
    spawned: bool = True
    tells_answers: bool = True
    """Whether the blackboard can tell that a red verdict was answered by a new subtask."""
    room: int = 1
    """How many subtasks there may be beyond the first plan."""
    phase: Phase = Phase.NEW
    atomic: bool = False
    parts: tuple[Part, ...] = ()
    evidence: int = 0
    verified: bool = False
    reworks: int = 0
    blocked: bool = False
    home: bool = False
    deaths: int = 0
    meddled: int = 0


class Plan(NamedTuple):
    """How the first plan is made, and what may happen to it."""

    shape: Shape
    deaths: int = 1
    reviews: bool = False


def shown(world: World, plan: Plan) -> Snapshot:
    """What the blackboard shows of a world."""
    return Snapshot(
        agent="someone",
        hierarchy=world.hierarchy,
        spawned=world.spawned,
        task=SubtaskView(number=MAIN, title="main", status=S.BLOCKED if world.blocked else S.IN_PROGRESS),
        phase=world.phase,
        atomic=world.atomic,
        pieces=tuple(piece(part) for part in world.parts),
        evidence=Evidence(task=world.evidence) if world.evidence else None,
        answered=world.tells_answers and any(part.late and part.status is S.DONE for part in world.parts),
        verified="c0ffee" if world.verified else "",
        reworks=world.reworks,
        max_reworks=MOST_REWORKS,
        max_subtasks=len(plan.shape) + world.room,
    )


def piece(part: Part) -> SubtaskView:
    kind = BlockerKind.FAILED if part.attempts else BlockerKind.NEEDS_INPUT
    return SubtaskView(
        number=part.number,
        title=f"part {part.number}",
        status=part.status,
        dependencies=part.dependencies,
        assignee="worker" if part.assigned else "",
        goals=("tests_pass",) if part.goals else (),
        blocker=Blocker(kind, "?") if part.status is S.BLOCKED else None,
        attempts=part.attempts,
        with_human=part.human,
    )


def changed(world: World, part: Part, **to: Any) -> World:
    parts = tuple(one._replace(**to) if one.number == part.number else one for one in world.parts)
    return world._replace(parts=parts)


def part_of(world: World, number: int) -> Part:
    return next(part for part in world.parts if part.number == number)


# ── an instance that follows the actions ────────────────────────────────────────────────────────────────


def obeyed(world: World, action: Action, plan: Plan) -> Iterator[World]:
    """Every way in which it may come out when the instance does what the action says."""
    match action.action:
        case K.GET_TASK:
            yield world._replace(phase=Phase.FETCHED)
        case K.CREATE_SUBTASKS:
            yield from planned(world, action, plan)
        case K.START_SUBTASK:
            assert action.subtask is not None
            yield changed(world, part_of(world, action.subtask.number), status=S.IN_PROGRESS)._replace(
                phase=Phase.EXECUTING
            )
        case K.EXECUTE_SUBTASK | K.REWORK if action.subtask is not None:
            yield from finished(world, part_of(world, action.subtask.number))
        case K.REWORK if world.hierarchy is Hierarchy.MANAGER:
            yield from claimed(world)
            if Tool.CREATE_TASK in action.tools:
                yield more(world, late=True)
        case K.EXECUTE_SUBTASK | K.REWORK | K.REPORT_COMPLETION:
            yield from claimed(world)
        case K.DELEGATE:
            for one in action.subtasks:
                yield changed(world, part_of(world, one.number), status=S.OPEN, assigned=True)
        case K.HANDLE_BLOCKED:
            yield from handled(world, action)
        case K.EXIT if action.reason == ExitReason.SUSPENDED:
            yield world._replace(home=True)


def planned(world: World, action: Action, plan: Plan) -> Iterator[World]:
    begun = S.OPEN if world.hierarchy is Hierarchy.WORKER else S.BACKLOG
    if world.parts:
        yield more(world)
    else:
        numbers = range(MAIN + 1, MAIN + 1 + len(plan.shape))
        yield world._replace(
            phase=Phase.PLANNED,
            parts=tuple(
                Part(number, begun, tuple(numbers[at] for at in needs), goals=number == MAIN + 1)
                for number, needs in zip(numbers, plan.shape, strict=True)
            ),
        )
    if Tool.UPDATE_TASK_STATUS in action.tools:
        yield world._replace(atomic=True, phase=Phase.EXECUTING)
        yield from claimed(world)


def more(world: World, late: bool = False) -> World:
    """One more subtask."""
    begun = S.OPEN if world.hierarchy is Hierarchy.WORKER else S.BACKLOG
    number = MAIN + 1 + len(world.parts)
    return world._replace(parts=(*world.parts, Part(number, begun, late=late)), phase=Phase.PLANNED)


def finished(world: World, part: Part) -> Iterator[World]:
    """The claim that a subtask is done: believed where it has no goals, and checked where it has."""
    evidence = 0 if world.evidence == part.number else world.evidence
    yield changed(world, part, status=S.DONE)._replace(evidence=evidence)
    if part.goals:
        yield world._replace(evidence=part.number, reworks=world.reworks + 1)


def claimed(world: World) -> Iterator[World]:
    """The claim that the task is completed, and the verdict on it."""
    old = world._replace(parts=tuple(part._replace(late=False) for part in world.parts))
    yield old._replace(phase=Phase.COMPLETED, verified=True, evidence=0)
    yield old._replace(phase=Phase.EXECUTING, evidence=MAIN, reworks=world.reworks + 1)


def handled(world: World, action: Action) -> Iterator[World]:
    if Tool.UPDATE_TASK_STATUS not in action.tools:
        yield world._replace(blocked=True)
        return
    assert action.subtask is not None
    part = part_of(world, action.subtask.number)
    for choice in action.choices:
        match choice:
            case "retry" | "reassign":
                yield changed(world, part, status=S.OPEN, assigned=True)
            case "split":
                yield changed(more(world), part, status=S.CANCELLED)
            case "cancel":
                yield changed(world, part, status=S.CANCELLED)
            case "ask_human":
                yield changed(world, part, human=True)
            case _:
                pytest.fail(f"nobody knows the choice {choice}")


# ── what everybody else does ─────────────────────────────────────────────────────────────────────────────────────────


def others(world: World, plan: Plan) -> Iterator[World]:
    """What workers, the merge queue and people may do to the subtasks next."""
    done = {part.number for part in world.parts if part.status is S.DONE}
    for part in world.parts:
        if part.human and not part.status.ended:
            yield changed(world, part, status=S.OPEN, assigned=True, human=False, dependencies=())
            yield changed(world, part, status=S.CANCELLED, human=False)
        elif world.hierarchy is Hierarchy.MANAGER:
            yield from worked(world, part, plan, done)


def worked(world: World, part: Part, plan: Plan, done: set[int]) -> Iterator[World]:
    if part.status is S.OPEN and part.assigned and done.issuperset(part.dependencies):
        yield changed(world, part, status=S.IN_PROGRESS)
    if part.status is S.IN_PROGRESS:
        yield changed(world, part, status=S.REVIEW if plan.reviews else S.DONE)
        if part.attempts < MOST_ATTEMPTS:
            yield changed(world, part, status=S.BLOCKED, attempts=part.attempts + 1)
    if part.status is S.REVIEW:
        yield changed(world, part, status=S.DONE)


def chance(world: World, plan: Plan) -> Iterator[World]:
    if not world.meddled and world.hierarchy is Hierarchy.WORKER:
        for part in world.parts:
            if part.status is S.OPEN:
                for status in (S.CANCELLED, S.BLOCKED):
                    yield changed(world, part, status=status)._replace(meddled=1)
    if world.deaths < plan.deaths and not world.home and world.phase is not Phase.NEW:
        yield world._replace(phase=Phase.NEW, atomic=False, reworks=0, deaths=world.deaths + 1)


class Seen(NamedTuple):
    """One state: the answer, where the instance goes from it, and where everything goes."""

    action: Action
    own: tuple[World, ...]
    all: tuple[World, ...]


def walk(first: World, plan: Plan) -> dict[World, Seen]:
    """Every state that can be reached."""
    found: dict[World, Seen] = {}
    waiting = [first]
    while waiting:
        world = waiting.pop()
        if world in found:
            continue
        assert len(found) < 50_000, f"there is no end of states: {world}"
        action = decide(shown(world, plan))
        ended = action.action is K.EXIT and action.reason != ExitReason.SUSPENDED
        own: tuple[World, ...] = ()
        if world.home:
            own = () if action.action is K.WAIT else (world._replace(home=False),)
        elif not ended:
            own = tuple(obeyed(world, action, plan))
            if action.action is K.WAIT and world.spawned:
                own += (world._replace(home=True),)
        after = () if ended else (*own, *others(world, plan), *chance(world, plan))
        found[world] = Seen(action, own, after)
        waiting += [one for one in after if one not in found]
    return found


SHAPES: dict[str, Shape] = {
    "one": ((),),
    "two": ((), ()),
    "chain": ((), (0,)),
    "backwards": ((1,), ()),
    "cycle": ((1,), (0,)),
    "three": ((), (), ()),
    "long chain": ((), (0,), (1,)),
    "join": ((), (), (0, 1)),
    "fork": ((), (0,), (0,)),
    "cycle and one": ((1,), (0,), ()),
    "behind a cycle": ((1,), (0,), (1,)),
    "cycle of three": ((2,), (0,), (1,)),
}
STARTS = {
    "worker": World(Hierarchy.WORKER),
    "manager": World(Hierarchy.MANAGER),
    "manager that is not told": World(Hierarchy.MANAGER, tells_answers=False),
    "external_agent": World(Hierarchy.WORKER, spawned=False),
    "managing external agent": World(Hierarchy.MANAGER, spawned=False, room=0),
}
CASES = [
    pytest.param(
        first._replace(room=2) if len(shape) == 1 else first,
        Plan(shape, deaths=len(shape) < 3, reviews=len(shape) < 3),
        id=f"{who}, {name}",
    )
    for (who, first), (name, shape) in product(STARTS.items(), SHAPES.items())
]


def order_of(found: dict[World, Seen]) -> list[World]:
    """The states, each after all that come after it. A circle has no such order."""
    order: list[World] = []
    state: dict[World, bool] = {}
    for start, seen in found.items():
        stack = [(start, iter(seen.all))] if start not in state else []
        if stack:
            state[start] = False
        while stack:
            world, after = stack[-1]
            following = next(after, None)
            if following is None:
                stack.pop()
                state[world] = True
                order.append(world)
            elif following not in state:
                state[following] = False
                stack.append((following, iter(found[following].all)))
            else:
                assert state[following], f"it goes round in circles: {world} → {found[world].action.action}"
    return order


@pytest.mark.parametrize(("first", "plan"), CASES)
def test_an_agent_that_follows_the_actions_ends_and_never_waits_for_nothing(first: World, plan: Plan) -> None:
    found = walk(first, plan)

    reached = {world: seen.action for world, seen in found.items() if not seen.all}
    for world, action in reached.items():
        assert action.action is K.EXIT, f"nothing leads on from {world}, which was told to {action.action}"
        assert action.reason in (ExitReason.COMPLETED, ExitReason.BLOCKED, ExitReason.NO_PROGRESS)
    assert any(action.reason == ExitReason.COMPLETED for action in reached.values())
    assert len(order_of(found)) == len(found)
    for world, seen in found.items():
        check_order(world, seen, plan)


def check_order(world: World, seen: Seen, plan: Plan) -> None:
    action = seen.action
    if action.action is K.WAIT or action.reason == ExitReason.SUSPENDED:
        assert list(others(world, plan)), f"nobody will move anything in {world}"
    elif action.action is not K.EXIT and not world.home:
        assert seen.own, f"an order that nobody can carry out: {action.action} in {world}"
        assert world not in seen.own, f"an order that changes nothing: {action.action} in {world}"
    assert TOOLS[world.hierarchy].issuperset(action.tools)
    if world.hierarchy is Hierarchy.MANAGER:
        assert action.action not in (K.START_SUBTASK, K.EXECUTE_SUBTASK)


@pytest.mark.parametrize("who", STARTS)
def test_every_action_is_met_on_the_way(who: str) -> None:
    first = STARTS[who]
    met = {
        seen.action.action for shape in SHAPES.values() if len(shape) < 3 for seen in walk(first, Plan(shape)).values()
    }

    worker = {K.START_SUBTASK, K.EXECUTE_SUBTASK}
    manager = {K.DELEGATE, K.WAIT}
    unused = manager if first.hierarchy is Hierarchy.WORKER else worker
    assert set(ActionKind) - met == unused


# ── larger ones, at random ───────────────────────────────────────────────────────────────────────────────────────────


@st.composite
def shapes(draw: st.DrawFn) -> Shape:
    count = draw(st.integers(1, 7))
    positions = st.integers(0, count - 1)
    return tuple(tuple(sorted(draw(st.sets(positions, max_size=3)))) for _ in range(count))


@given(st.data())
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_a_long_random_walk_ends(data: st.DataObject) -> None:
    plan = Plan(data.draw(shapes()), deaths=2, reviews=data.draw(st.booleans()))
    world = data.draw(st.sampled_from(list(STARTS.values())))
    world = world._replace(room=data.draw(st.integers(0, 3)))
    for _ in range(2_000):
        action = decide(shown(world, plan))
        if action.action is K.EXIT and action.reason != ExitReason.SUSPENDED:
            return
        after = list(others(world, plan))
        if world.home:
            after += [] if action.action is K.WAIT else [world._replace(home=False)]
        else:
            after += obeyed(world, action, plan)
        assert after, f"nothing leads on from {world}"
        if data.draw(st.integers(0, 9)) == 0:
            after += chance(world, plan)
        world = after[data.draw(st.integers(0, len(after) - 1))]
    pytest.fail("it does not end")


STATUSES = st.sampled_from(list(TaskStatus))
ANY_PIECE = st.builds(
    SubtaskView,
    number=st.integers(2, 9),
    title=st.text(max_size=20),
    status=STATUSES,
    assignee=st.sampled_from(["", "worker"]),
    dependencies=st.lists(st.integers(1, 12), max_size=3).map(tuple),
    blocker=st.none() | st.builds(Blocker, st.sampled_from(list(BlockerKind)), st.text(max_size=20)),
    attempts=st.integers(0, 12),
    with_human=st.booleans(),
)
ANY_SNAPSHOT = st.builds(
    Snapshot,
    agent=st.just("someone"),
    hierarchy=st.sampled_from(list(Hierarchy)),
    spawned=st.booleans(),
    task=st.none() | st.builds(SubtaskView, number=st.just(1), title=st.text(max_size=20), status=STATUSES),
    phase=st.sampled_from(list(Phase)),
    atomic=st.booleans(),
    pieces=st.lists(ANY_PIECE, max_size=8, unique_by=lambda one: one.number).map(tuple),
    evidence=st.none() | st.builds(Evidence, task=st.integers(1, 9), output=st.text(max_size=20)),
    answered=st.booleans(),
    verified=st.sampled_from(["", "c0ffee"]),
    ending=st.none() | st.none() | st.sampled_from(list(ExitReason)),
    worker_needed=st.booleans(),
    waited_seconds=st.floats(0, 120),
    repeats=st.integers(0, 60),
    reworks=st.integers(0, 12),
    messages=st.integers(0, 3),
    may_split=st.booleans(),
)


@given(ANY_SNAPSHOT)
@settings(max_examples=300, deadline=None)
def test_whatever_the_blackboard_shows_there_is_one_answer(snapshot: Snapshot) -> None:
    action = decide(snapshot)

    assert action == decide(snapshot)
    assert set(action.tools) <= TOOLS[snapshot.hierarchy]
    assert (action.action is K.EXIT) == (not action.tools)
    if action.action is K.WAIT:
        assert action.subtasks
        assert not any(one.status.ended for one in action.subtasks)
    if action.reason == ExitReason.SUSPENDED and snapshot.ending is None:
        assert snapshot.spawned
    for language in ("en", "ja"):
        assert write(action, language, {})
