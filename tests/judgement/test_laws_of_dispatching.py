"""Laws of dispatching that hold for every field, not only for the examples."""

from collections import Counter
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from genba.definitions.project.work_sections import FleetSettings
from genba.domain.fleet.records import (
    Cost,
    EntryStatus,
    EscalationKind,
    Executor,
    FleetSession,
    FleetSnapshot,
    ProviderPause,
    Purpose,
    Resources,
    SpendingTotals,
    WaitsFor,
)
from genba.domain.tasks.task import Priority, Task, TaskStatus
from genba.judgement.scheduling.actions import Continue, Queue, SchedulerAction, Start, Wait, WorkerContext
from genba.judgement.scheduling.dispatch import scheduler_actions
from tests.judgement.fleets import (
    AGENTS,
    BEFORE,
    COMMIT,
    NOW,
    asked,
    entry,
    failure,
    field,
    me,
    plan,
    review,
    session,
    task,
)
from tests.judgement.fleets import settings as report

NUMBERS = st.integers(1, 9)
AGENT = st.sampled_from([agent.name for agent in AGENTS])
PROVIDER = {agent.name: agent.provider for agent in AGENTS}
SCOPES = st.lists(st.sampled_from(["src/", "docs/**", "*.py", "src/a.py"]), max_size=2).map(tuple)


@st.composite
def tasks(draw: Any) -> dict[int, Task]:
    found = {}
    for number in draw(st.sets(NUMBERS, max_size=9)):
        found[number] = task(
            number,
            status=draw(st.sampled_from(list(TaskStatus))),
            priority=draw(st.sampled_from(list(Priority))),
            dependencies=tuple(draw(st.sets(NUMBERS, max_size=2))),
            children=tuple(draw(st.sets(NUMBERS, max_size=2))),
            parent=draw(st.none() | NUMBERS),
            review_of=draw(st.none() | st.none() | NUMBERS),
            review_commit=COMMIT,
            decompose=draw(st.booleans()),
            requires_review=draw(st.booleans()),
            reviewer_type=draw(st.sampled_from(["human", "ai"])),
            approved=draw(st.sampled_from(["", COMMIT])),
            assignee=draw(st.sampled_from(["", "", "builder", "ada"])),
            scope=draw(SCOPES),
            labels=draw(st.sampled_from([(), ("web",)])),
            created_at=draw(st.sampled_from([BEFORE, "2026-02-20T00:00:00.000000Z", ""])),
        )
    return found


@st.composite
def sessions(draw: Any) -> tuple[FleetSession, ...]:
    found = []
    for number, purpose in sorted(draw(st.sets(st.tuples(NUMBERS, st.sampled_from(list(Purpose))), max_size=8))):
        agent = draw(AGENT)
        found.append(
            session(
                number,
                run=f"run-{number}" if purpose is Purpose.WORK else f"run-{number}-{purpose}",
                purpose=purpose,
                agent=agent,
                provider=PROVIDER[agent],
                attempt=draw(st.integers(1, 4)),
                status=draw(st.sampled_from(["running", "waiting", "waiting", "ended"])),
                waits_for=draw(st.sampled_from(list(WaitsFor))),
                verified=draw(st.sampled_from(["", COMMIT])),
                executor=draw(st.sampled_from(["", "here", "there", "gone"])),
                rounds=draw(st.integers(0, 4)),
                reviews=draw(st.integers(0, 4)),
                changed=draw(st.sampled_from([(), ("src/a.py",)])),
            )
        )
    return tuple(found)


ESCALATIONS = st.lists(
    st.builds(
        asked,
        NUMBERS,
        st.sampled_from(list(EscalationKind)),
        st.sampled_from(["open", "answered", "approved", "rejected", "withdrawn"]),
    ),
    max_size=4,
).map(tuple)
ENTRIES = st.lists(st.builds(entry, NUMBERS, st.sampled_from(list(EntryStatus))), max_size=4).map(tuple)
FAILURES = st.dictionaries(NUMBERS, st.integers(1, 4), max_size=3).map(
    lambda found: {number: tuple(failure(number, n) for n in range(1, count + 1)) for number, count in found.items()}
)


REVIEWS = st.lists(
    st.builds(review, NUMBERS, NUMBERS, status=st.sampled_from(["open", "approved", "changes", "stale"])), max_size=2
).map(tuple)
PLANS = st.lists(st.builds(plan, NUMBERS, status=st.sampled_from(["proposed", "created", "rejected"])), max_size=2).map(
    tuple
)
LEDGERS = [SpendingTotals(), SpendingTotals(today=Cost(cost_usd=50)), SpendingTotals(by_task={1: Cost(cost_usd=50)})]


def _executor(name: str, status: str) -> Executor:
    return Executor(id=name, host=name, process=1, workers=1, status=status)


@st.composite
def fields(draw: Any) -> FleetSnapshot:
    known = draw(tasks())
    openly = [number for number, one in known.items() if one.status is TaskStatus.OPEN]
    return field(
        *known.values(),
        ready=tuple(draw(st.permutations(openly))) if draw(st.booleans()) else (),
        sessions=draw(sessions()),
        failures=draw(FAILURES),
        entries=draw(ENTRIES),
        escalations=draw(ESCALATIONS),
        reviews=draw(REVIEWS),
        plans=draw(PLANS),
        pauses=draw(st.sampled_from([(), (ProviderPause(provider="north", until="2026-03-01T13:00:00Z"),)])),
        executors=(_executor("there", "live"), _executor("gone", "dead")),
        ledger=draw(st.sampled_from(LEDGERS)),
        paused=draw(st.booleans()),
        held=frozenset(draw(st.sets(NUMBERS, max_size=1))),
        stopping=draw(st.sampled_from([False, False, False, True])),
    )


SETTINGS = st.sampled_from(
    [
        report(),
        report(work={"max_sessions": 2, "max_per_agent": {"iterator": 1}, "max_per_provider": {"north": 2}}),
        report(work={"overlap": "prefer"}, budget={"day_usd": 20, "task_usd": 20}, decompose={"approval": "auto"}),
        report(
            work={"overlap": "allow"}, attempts={"alternates": ["builder"]}, merge={"rounds": 0}, review={"rounds": 0}
        ),
    ]
)
EXECUTORS = st.builds(
    lambda workers, running, memory, label, turning: me(
        workers=workers,
        running=running,
        resources=Resources(free_memory_mb=memory),
        only_label=label,
        turning=turning,
    ),
    st.integers(1, 4),
    st.integers(0, 3),
    st.sampled_from([100, 400, 1 << 20]),
    st.sampled_from(["", "", "web"]),
    st.sampled_from([None, frozenset(), frozenset({"main"})]),
)

every_field = given(fields(), SETTINGS, EXECUTORS)
thoroughly = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def beginning(found: tuple[SchedulerAction, ...]) -> list[Start | Continue]:
    return [move for move in found if isinstance(move, Start | Continue)]


@thoroughly
@every_field
def test_no_more_sessions_begin_than_the_limits_allow(
    here: FleetSnapshot, how: FleetSettings, who: WorkerContext
) -> None:
    begun = beginning(scheduler_actions(here, how, who))
    assert len(begun) <= max(0, who.workers - who.running)
    by_run = {one.run: one for one in here.sessions}
    running = [one for one in here.sessions if one.status == "running"]
    agents, providers = Counter(one.agent for one in running), Counter(one.provider for one in running)
    new = [(one.agent, one.provider) for one in begun if isinstance(one, Start)]
    new += [
        (by_run[one.run].agent, by_run[one.run].provider) for one in begun if isinstance(one, Continue) and one.asks
    ]
    if not new:
        return
    agents.update(agent for agent, _ in new)
    providers.update(provider for _, provider in new)
    limits = how.work
    assert len(running) + len(new) <= (limits.max_sessions or 100)
    assert all(agents[agent] <= limits.max_per_agent.get(agent, 100) for agent, _ in new)
    assert all(providers[provider] <= limits.max_per_provider.get(provider, 100) for _, provider in new)
    paused = {pause.provider for pause in here.pauses}
    assert not any(provider in paused for _, provider in new)
    assert who.resources.free_memory_mb - limits.memory_per_worker_mb * (len(new) - 1) >= limits.min_free_memory_mb


@thoroughly
@every_field
def test_a_task_never_gets_a_second_session_beside_one_that_lives(
    here: FleetSnapshot, how: FleetSettings, who: WorkerContext
) -> None:
    found = scheduler_actions(here, how, who)
    begun = Counter(move.task for move in beginning(found))
    assert all(count == 1 for count in begun.values())
    alive = {one.task for one in here.sessions if one.status != "ended"}
    busy = {one.task for one in here.sessions if one.status == "running"}
    assert not any(move.task in alive for move in found if isinstance(move, Start))
    assert not any(move.task in busy for move in found if isinstance(move, Continue))


@thoroughly
@every_field
def test_only_open_tasks_without_a_worker_are_begun(
    here: FleetSnapshot, how: FleetSettings, who: WorkerContext
) -> None:
    for move in scheduler_actions(here, how, who):
        if isinstance(move, Start):
            assert here.tasks[move.task].status is TaskStatus.OPEN
            assert move.task in here.ready
        if isinstance(move, Start | Queue) or (isinstance(move, Continue) and move.asks):
            assert move.task not in here.held


@thoroughly
@every_field
def test_no_agent_is_asked_while_the_project_is_paused(
    here: FleetSnapshot, how: FleetSettings, who: WorkerContext
) -> None:
    if here.paused or here.stopping:
        asks = [
            move
            for move in scheduler_actions(here, how, who)
            if isinstance(move, Start) or (isinstance(move, Continue) and move.asks)
        ]
        assert asks == []


@thoroughly
@every_field
def test_every_task_that_has_not_ended_runs_or_has_a_move_or_a_reason_to_wait(
    here: FleetSnapshot, how: FleetSettings, who: WorkerContext
) -> None:
    found = scheduler_actions(here, how, who)
    recorded_facts = {getattr(move, "task", 0) for move in found}
    busy = {one.task for one in here.sessions if one.status == "running"}
    silent = [n for n, one in here.tasks.items() if not one.status.ended and n not in recorded_facts and n not in busy]
    assert silent == []
    assert all(move.why for move in found if isinstance(move, Wait))


@thoroughly
@every_field
def test_the_same_field_always_gives_the_same_moves(
    here: FleetSnapshot, how: FleetSettings, who: WorkerContext
) -> None:
    assert scheduler_actions(here, how, who) == scheduler_actions(here, how, who)
    assert here.now == NOW
