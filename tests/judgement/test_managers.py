"""Managers in a fleet: when they begin, when they are woken, and who brings their task home."""

from typing import Any

from genba.domain.fleet.records import Cause, EscalationKind, FleetSession, Purpose, WaitsFor
from genba.domain.tasks.task import Blocker, BlockerKind, Task, TaskStatus
from genba.judgement.scheduling.actions import (
    Agent,
    Block,
    Continue,
    EndSession,
    SchedulerAction,
    Start,
    Wait,
    WaitReason,
)
from tests.judgement.fleets import AGENTS, COMMIT, asked, decide, failure, field, only, review, session, settings, task

LEAD = Agent(name="lead", provider="north", manages=True)
EVERYBODY = (*AGENTS, LEAD)
DONE, OPEN = TaskStatus.DONE, TaskStatus.OPEN


def _moves(here: Any, **more: Any) -> tuple[SchedulerAction, ...]:
    return decide(here, agents=EVERYBODY, **more)


def _managed(*children: int, **more: Any) -> Task:
    return task(1, **{"assignee": "lead", "children": children, **more})


def _manager(**more: Any) -> FleetSession:
    return session(1, **{"agent": "lead", "purpose": Purpose.MANAGE, **more})


def _part(number: int, **more: Any) -> Task:
    return task(number, **{"parent": 1, "assignee": "builder", **more})


def test_a_task_of_a_manager_is_managed() -> None:
    begun = only(Start, _moves(field(_managed())))

    assert (begun.agent, begun.purpose) == ("lead", Purpose.MANAGE)


def test_a_manager_begins_although_the_parts_of_its_task_have_not_ended() -> None:
    here = field(_managed(2), _part(2, status=TaskStatus.BACKLOG), ready=())

    assert only(Start, _moves(here)).purpose is Purpose.MANAGE


def test_a_manager_waits_for_what_its_task_depends_on() -> None:
    here = field(_managed(dependencies=(5,)), task(5), ready=(5,))

    assert only(Start, _moves(here)).task == 5


def test_a_manager_that_was_sent_home_waits_while_others_work() -> None:
    here = field(
        _managed(2, status=TaskStatus.IN_PROGRESS),
        _part(2, status=TaskStatus.IN_PROGRESS),
        sessions=(_manager(waits_for=WaitsFor.PARTS), session(2, agent="builder")),
    )

    assert [move.kind for move in _moves(here) if isinstance(move, Wait) and move.task == 1] == [WaitReason.PARTS]


def test_a_manager_is_woken_when_its_parts_have_ended() -> None:
    here = field(
        _managed(2, status=TaskStatus.IN_PROGRESS),
        _part(2, status=DONE),
        sessions=(_manager(waits_for=WaitsFor.PARTS),),
    )

    onward = only(Continue, _moves(here))

    assert (onward.cause, onward.reason) == (Cause.WOKEN, "the parts of its task have ended")


def test_a_manager_is_woken_when_a_part_is_blocked_and_not_again_once_a_person_has_it() -> None:
    blocked = _part(2, status=TaskStatus.BLOCKED, blocker=Blocker(BlockerKind.FAILED, "3 of 3 attempts failed"))
    result = field(_managed(2, status=TaskStatus.IN_PROGRESS), blocked, sessions=(_manager(waits_for=WaitsFor.PARTS),))
    with_person = field(
        _managed(2, status=TaskStatus.IN_PROGRESS),
        blocked,
        sessions=(_manager(waits_for=WaitsFor.PARTS),),
        escalations=(asked(2, EscalationKind.STOPPED, evidence={"by": "run-1"}),),
    )

    assert only(Continue, _moves(result)).cause is Cause.WOKEN
    assert not [move for move in _moves(with_person) if isinstance(move, Continue)]


def test_a_subtask_that_is_given_up_goes_to_the_manager_and_not_to_a_person() -> None:
    here = field(
        _managed(2, status=TaskStatus.IN_PROGRESS),
        _part(2),
        ready=(2,),
        sessions=(_manager(waits_for=WaitsFor.PARTS),),
        failures={2: tuple(failure(2, attempt, agent="builder") for attempt in (1, 2, 3))},
    )

    given_up = only(Block, _moves(here))

    assert (given_up.task, given_up.blocker.kind) == (2, BlockerKind.FAILED)


def _completed(**more: Any) -> FleetSession:
    return _manager(status="ended", outcome="completed", **more)


def _landing(**more: Any) -> FleetSession:
    return session(1, **{"run": "run-1-2", "attempt": 2, "agent": "lead", "purpose": Purpose.INTEGRATE, **more})


def _came_back(*sessions: FleetSession, **more: Any) -> Any:
    return field(_managed(2), _part(2, status=DONE, **more), ready=(1,), sessions=sessions)


def test_a_manager_lands_its_task_once_it_has_completed() -> None:
    begun = only(Start, _moves(_came_back(_completed())))

    assert (begun.agent, begun.purpose) == ("lead", Purpose.INTEGRATE)


def test_a_landing_that_failed_by_accident_is_tried_again_by_the_same_manager() -> None:
    lost = _landing(status="ended", outcome="failed", reason="its part was lost")
    here = field(
        _managed(2),
        _part(2, status=DONE),
        ready=(1,),
        sessions=(_completed(), lost),
        failures={1: (lost,)},
    )

    begun = only(Start, decide(here, settings(attempts={"backoff_seconds": 0}), agents=EVERYBODY))

    assert (begun.agent, begun.purpose) == ("lead", Purpose.INTEGRATE)


def test_a_manager_is_not_asked_about_what_came_back_from_its_landing() -> None:
    wanted = review(9, of=1, status="changes", findings=("must: it says too little",))
    here = field(
        _managed(2, status=TaskStatus.REVIEW, requires_review=True, reviewer_type="ai"),
        _part(2, status=DONE),
        sessions=(_completed(), _landing(status="waiting", waits_for=WaitsFor.REVIEW, verified=COMMIT)),
        reviews=(wanted,),
    )

    ended = only(EndSession, _moves(here))

    assert (ended.task, ended.gives_back) == (1, True)
    assert ended.reason == "a reviewer wants changes, and a manager does not work itself"


def test_what_came_back_from_the_landing_of_a_manager_goes_to_a_worker() -> None:
    aborted = _landing(status="ended", outcome="aborted")
    unnamed = settings(work={"agent": "nobody-here"})

    by_name = only(Start, _moves(_came_back(_completed(), aborted)))
    by_part = only(Start, decide(_came_back(_completed(), aborted), unnamed, agents=EVERYBODY))
    none = _came_back(_completed(), aborted, assignee="of-somebody-else")
    waits = [move for move in decide(none, unnamed, agents=EVERYBODY) if isinstance(move, Wait) and move.task == 1]

    assert (by_name.agent, by_name.purpose) == ("iterator", Purpose.INTEGRATE)
    assert (by_part.agent, by_part.purpose) == ("builder", Purpose.INTEGRATE)
    assert [wait.kind for wait in waits] == [WaitReason.AGENT]


def test_a_manager_whose_parts_were_all_cancelled_begins_again() -> None:
    here = field(
        _managed(2),
        _part(2, status=TaskStatus.CANCELLED),
        ready=(1,),
        sessions=(_manager(status="ended", outcome="completed"),),
    )

    assert only(Start, _moves(here)).purpose is Purpose.MANAGE


def test_only_another_manager_takes_the_place_of_a_manager_that_failed() -> None:
    result = settings(attempts={"per_agent": 1, "max": 3, "alternates": ["builder", "chief"]})
    here = field(_managed(), ready=(1,), failures={1: (failure(1, 1, agent="lead", purpose=Purpose.MANAGE),)})
    chief = Agent(name="chief", provider="north", manages=True)

    begun = only(Start, decide(here, result, agents=(*EVERYBODY, chief)))

    assert (begun.agent, begun.purpose) == ("chief", Purpose.MANAGE)
