"""What the pages of a fleet are shown with: sessions of an executor that lives, work that lands and comes back."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from genba.coordination.engine.executor_lock import FileLock
from genba.domain.fleet.records import (
    EntryStatus,
    Executor,
    FleetSession,
    MergeEntry,
    SegmentEnd,
    SegmentOrder,
    Spending,
    WaitsFor,
)
from genba.domain.goals.goal import CustomScript, FrozenGoal, GoalLevel, GoalSource
from genba.domain.goals.verification import GoalResult, RejectionReason, Subject, VerdictStatus, Verification
from genba.domain.sessions.evidence import CheckResult, CheckStatus
from genba.domain.tasks.task import Actor, ActorKind, StatusChange, TaskDraft, TaskStatus
from genba.testing.conformance import a_verification
from tests.web.serving import PERSON, Dashboard

HERE = os.uname().nodename
FLEET = Actor(ActorKind.ORCHESTRATOR, "genba")


@contextlib.contextmanager
def executor(served: Dashboard, name: str = "laptop", workers: int = 4) -> Iterator[None]:
    """An executor that lives as long as the block: this process is it."""
    lock = FileLock(Path(served.board.store.place), name)
    lock.take(5)
    served.board.register(Executor(id=name, host=HERE, process=os.getpid(), workers=workers))
    try:
        yield
    finally:
        lock.release()


def add(served: Dashboard, title: str, **more: object) -> int:
    return served.board.board.add(TaskDraft(title=title, **more), PERSON).number  # type: ignore[arg-type]


def begun(
    served: Dashboard, number: int, *, agent: str = "worker", executor: str = "laptop", attempt: int = 1
) -> FleetSession:
    order = SegmentOrder(run=f"{agent}-{number}-{attempt}-abcdef", task=number, agent=agent, attempt=attempt)
    return served.board.start(order, executor=executor, host=HERE, provider="nobody", base_branch="main")


def spent(served: Dashboard, run: str, iteration: int, tokens: int, cost: float) -> None:
    result = Spending(run=run, iteration=iteration, tokens=tokens, cost_usd=cost)
    served.board.progress(
        run, phase="iterating", step="implement", iterations=iteration, tokens=tokens, cost_usd=cost, spending=result
    )


def queued(served: Dashboard, number: int, *, commit: str = "c" * 40, target: str = "main") -> MergeEntry:
    """The verified work of a task, in the merge queue."""
    session = begun(served, number)
    served.board.board.record_verification(number, session.run, a_verification(commit))
    served.board.board.change_status(number, StatusChange(to=TaskStatus.REVIEW, actor=FLEET, commit=commit))
    served.board.end_part(
        SegmentEnd(run=session.run, part=1, waits_for=WaitsFor.MERGE, verified=commit, iterations=2, cost_usd=0.5)
    )
    entry = MergeEntry(task=number, run=session.run, branch=f"genba/{number}", commit=commit, target=target)
    return served.board.enqueue_merge(entry)


def settled(
    served: Dashboard,
    entry: MergeEntry,
    status: EntryStatus,
    *,
    landed: str = "",
    detail: str = "",
    paths: tuple[str, ...] = (),
) -> None:
    served.board.take([entry.id])
    served.board.settle(entry.id, status, landed=landed, detail=detail, paths=paths, over="a" * 40)


def red(served: Dashboard, entry: MergeEntry, detail: str, log: str = "") -> None:
    """What would have landed does not reach a goal, and the gate says which."""
    goal = FrozenGoal(
        level=GoalLevel.DOD,
        source=GoalSource.PROJECT_CONFIG,
        origin=".genba/config.yaml",
        goal=CustomScript(script="make test"),
    )
    found = Verification(
        status=VerdictStatus.REJECTED,
        reason=RejectionReason.GOALS_NOT_MET,
        subject=Subject(commit="d" * 40, base="a" * 40),
        tree="t",
        commits=1,
        results=(GoalResult(goal=goal, result=CheckResult("tests_pass", CheckStatus.FAILED, detail), log=log),),
    )
    served.board.board.record_verification(entry.task, entry.run, found)
    settled(served, entry, EntryStatus.FAILED, detail=detail)


def shown(served: Dashboard, path: str) -> str:
    with served.client() as client:
        answer = client.get(path)
    assert answer.status_code == 200, answer.text
    return answer.text
