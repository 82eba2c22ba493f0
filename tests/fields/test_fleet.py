"""work, attempts, merge, review, decompose, budget and gc of .genba/config.yaml: how tasks are worked off."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from genba.connections.git.merging.merge_target import GitTarget
from genba.connections.git.repository.layout import RepositoryLayout
from genba.definitions.project.project import load_project
from genba.definitions.project.work_sections import FleetSettings
from genba.domain.errors import ConfigurationError
from genba.domain.fleet.merge_queue import MergeHistory, Work
from genba.domain.fleet.records import Cost, EntryStatus, FleetSnapshot, Purpose, Resources, SpendingTotals, WaitsFor
from genba.domain.tasks.task import Priority
from genba.judgement.scheduling.actions import (
    AskReview,
    Continue,
    CreateSubtasks,
    Escalate,
    RejectPlan,
    RunQueue,
    SchedulerAction,
    Start,
)
from genba.judgement.scheduling.queue_order import next_batch
from tests.judgement.fleets import (
    decide,
    entry,
    failure,
    field,
    in_review,
    none,
    only,
    plan,
    review,
    session,
    started,
    task,
    verified,
    wait_of,
)
from tests.project import Project


class Settings:
    """A project whose settings are written, read, and put to use."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / ".genba").mkdir()

    def read(self, text: str) -> FleetSettings:
        (self.root / ".genba/config.yaml").write_text(text, encoding="utf-8")
        return load_project(self.root).fleet

    def moves(self, text: str, here: FleetSnapshot, **about_me: Any) -> tuple[SchedulerAction, ...]:
        output = self.read(text)
        return decide(here, output, **({"workers": output.work.workers} | about_me))


@pytest.fixture
def config(tmp_path: Path) -> Settings:
    return Settings(tmp_path)


def many(count: int = 6, **more: Any) -> FleetSnapshot:
    return field(*(task(number) for number in range(1, count + 1)), **more)


def test_every_problem_of_the_settings_is_reported_at_once(config: Settings) -> None:
    with pytest.raises(ConfigurationError) as refused:
        config.read("work: {wokers: 4}\nattempts: {max: 0}\nbudgt: {}\ndecompose: {approval: nobody}\n")
    lines = [str(problem) for problem in refused.value.problems]
    assert len(lines) == 4
    assert any("wokers" in line for line in lines)
    assert any("attempts.max" in line for line in lines)


# ── work ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_workers_are_the_sessions_at_one_time(config: Settings) -> None:
    assert len(started(config.moves("work: {}\n", many()))) == 2
    assert len(started(config.moves("work: {workers: 5}\n", many()))) == 5


def test_the_agent_of_the_project_takes_unassigned_tasks(config: Settings) -> None:
    assert only(Start, config.moves("work: {agent: builder}\n", many(1))).agent == "builder"


def test_max_sessions_holds_for_all_hosts_together(config: Settings) -> None:
    here = field(task(1), task(2), task(3), sessions=(session(3, executor="there"),))
    assert started(config.moves("work: {max_sessions: 2, workers: 8}\n", here)) == [1]


def test_an_agent_has_no_more_sessions_than_its_limit(config: Settings) -> None:
    assert started(config.moves("work: {workers: 8, max_per_agent: {iterator: 3}}\n", many())) == [1, 2, 3]


def test_a_provider_has_no_more_sessions_than_its_limit(config: Settings) -> None:
    assert started(config.moves("work: {workers: 8, max_per_provider: {north: 1}}\n", many())) == [1]


def test_free_memory_is_kept(config: Settings) -> None:
    little = Resources(free_memory_mb=900)
    assert started(config.moves("work: {min_free_memory_mb: 901}\n", many(), resources=little)) == []
    assert started(config.moves("work: {min_free_memory_mb: 100}\n", many(), resources=little)) == [1, 2]


def test_free_disk_is_kept(config: Settings) -> None:
    little = Resources(free_disk_mb=900)
    assert started(config.moves("work: {min_free_disk_mb: 901}\n", many(), resources=little)) == []
    assert started(config.moves("work: {min_free_disk_mb: 100}\n", many(), resources=little)) == [1, 2]


def test_memory_is_set_aside_for_every_session_that_begins(config: Settings) -> None:
    text = "work: {workers: 8, min_free_memory_mb: 100, memory_per_worker_mb: 200}\n"
    assert started(config.moves(text, many(), resources=Resources(free_memory_mb=500))) == [1, 2, 3]


@pytest.mark.parametrize(("mode", "begun"), [("wait", [2]), ("prefer", [2, 1]), ("allow", [1, 2])])
def test_overlap_says_what_becomes_of_a_task_in_the_way_of_another(
    config: Settings, mode: str, begun: list[int]
) -> None:
    here = field(task(1, scope=("src/",)), task(2, scope=("docs/",)), task(3, scope=("src/",)), sessions=(session(3),))
    assert started(config.moves(f"work: {{overlap: {mode}}}\n", here)) == begun


def test_a_task_moves_up_with_its_age(config: Settings) -> None:
    old = "2026-03-01T07:00:00.000000Z"
    here = field(task(1), task(2, priority=Priority.LOW, created_at=old))
    assert started(config.moves("work: {}\n", here)) == [1, 2]
    assert started(config.moves("work: {ageing_hours: 2}\n", here)) == [2, 1]


def test_the_time_after_which_agents_that_no_one_watches_are_suspended_is_read(config: Settings) -> None:
    assert (
        config.read("work: {}\n").work.grace_seconds,
        config.read("work: {grace_seconds: 5}\n").work.grace_seconds,
    ) == (
        60,
        5,
    )


def test_how_long_a_session_waits_for_its_provider_is_read(config: Settings) -> None:
    assert config.read("work: {}\n").work.patience_seconds == 30
    assert config.read("work: {patience_seconds: 5}\n").work.patience_seconds == 5


def test_how_often_the_blackboard_is_looked_at_is_read(config: Settings) -> None:
    assert config.read("work: {poll_seconds: 2}\n").work.poll_seconds == 2


# ── attempts ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def failed(times: int, **more: Any) -> FleetSnapshot:
    return field(task(1), failures={1: tuple(failure(1, attempt, **more) for attempt in range(1, times + 1))})


def test_an_agent_has_so_many_attempts(config: Settings) -> None:
    assert only(Start, config.moves("attempts: {per_agent: 3, max: 9}\n", failed(2))).agent == "iterator"
    assert only(Escalate, config.moves("attempts: {per_agent: 2, max: 9}\n", failed(2)))


def test_alternates_try_after_the_first_agent(config: Settings) -> None:
    text = "attempts: {per_agent: 1, alternates: [builder, reviewer], max: 9}\n"
    assert only(Start, config.moves(text, failed(1))).agent == "builder"


def test_after_so_many_attempts_a_person_decides(config: Settings) -> None:
    text = "attempts: {{per_agent: 9, max: {}}}\n"
    assert only(Start, config.moves(text.format(5), failed(4))).attempt == 5
    assert only(Escalate, config.moves(text.format(4), failed(4)))


def test_a_failure_is_waited_out(config: Settings) -> None:
    here = failed(1, ended_at="2026-03-01T11:59:59.000000Z")
    assert wait_of(1, config.moves("attempts: {backoff_seconds: 60}\n", here)).until == "2026-03-01T12:00:59.000000Z"
    assert only(Start, config.moves("attempts: {backoff_seconds: 0}\n", here))


def test_no_failure_is_waited_out_longer_than_the_longest_wait(config: Settings) -> None:
    here = failed(2, ended_at="2026-03-01T11:59:59.000000Z")
    text = "attempts: {backoff_seconds: 60, backoff_max_seconds: 90, per_agent: 9, max: 9}\n"
    assert wait_of(1, config.moves(text, here)).until == "2026-03-01T12:01:29.000000Z"


# ── merge ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_tasks_begin_at_the_base_branch(config: Settings) -> None:
    assert only(Start, config.moves("merge: {base_branch: develop}\n", many(1))).base_branch == "develop"


@pytest.mark.parametrize(("history", "parents"), [("merge", 2), ("linear", 1)])
def test_history_says_what_lands_for_each_task(project: Project, history: str, parents: int) -> None:
    project.write(".genba/config.yaml", f"merge: {{history: {history}}}\n")
    base = project.commit("Settings")
    project.git("checkout", "-qb", "work")
    project.write("work.txt", "tea\n")
    work = Work(task=1, commit=project.commit("Work"), subject="Make tea")
    result = MergeHistory(load_project(project.root).fleet.merge.history)

    async def stack() -> str:
        target = GitTarget(await RepositoryLayout.find(project.root))
        return (await target.stack(base, [work], result))[0].commit

    assert len(project.git("log", "-1", "--format=%P", asyncio.run(stack())).split()) == parents


def test_a_batch_is_taken_at_one_time(config: Settings) -> None:
    waiting = [entry(number) for number in range(1, 6)]
    assert len(next_batch(waiting, config.read("merge: {}\n").merge.batch)) == 1
    assert len(next_batch(waiting, config.read("merge: {batch: 3}\n").merge.batch)) == 3


def test_work_goes_back_to_its_author_a_number_of_rounds(config: Settings) -> None:
    here = field(
        in_review(1), sessions=(verified(1, rounds=1),), entries=(entry(1, EntryStatus.CONFLICT, paths=("a",)),)
    )
    assert only(Continue, config.moves("merge: {rounds: 2}\n", here)).gap is not None
    assert only(Escalate, config.moves("merge: {rounds: 1}\n", here))


def test_a_target_that_was_in_the_way_is_tried_again_after_a_while(config: Settings) -> None:
    stuck = entry(1, EntryStatus.STUCK, finished_at="2026-03-01T11:59:50.000000Z")
    here = field(in_review(1), sessions=(verified(1),), entries=(stuck,))
    assert none(RunQueue, config.moves("merge: {retry_seconds: 60}\n", here))
    assert only(RunQueue, config.moves("merge: {retry_seconds: 5}\n", here)).target == "main"


def test_the_target_is_read_from_the_remote_that_all_hosts_share(project: Project, tmp_path: Path) -> None:
    shared = tmp_path / "shared.git"
    project.git("clone", "-q", "--bare", ".", str(shared))
    project.git("remote", "add", "shared", str(shared))
    project.write(".genba/config.yaml", "merge: {remote: shared}\n")
    here = project.commit("Ahead of the others")
    there = project.git("rev-parse", "main~1")

    async def tip(remote: str) -> str | None:
        return await GitTarget(await RepositoryLayout.find(project.root), remote).tip("main")

    assert asyncio.run(tip("")) == here
    assert asyncio.run(tip(load_project(project.root).fleet.merge.remote)) == there


# ── review ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_reviewer_of_the_project_reviews(config: Settings) -> None:
    here = field(
        in_review(1, requires_review=True, reviewer_type="ai"), sessions=(verified(1, waits_for=WaitsFor.REVIEW),)
    )
    assert only(AskReview, config.moves("review: {}\n", here)).assignee == "reviewer"
    assert only(AskReview, config.moves("review: {agent: builder}\n", here)).assignee == "builder"


def test_changes_are_asked_for_a_number_of_times(config: Settings) -> None:
    here = field(
        in_review(1, requires_review=True, reviewer_type="ai"),
        sessions=(verified(1, waits_for=WaitsFor.REVIEW, reviews=1),),
        reviews=tuple(review(number, 1, status="changes", findings=("must: x",)) for number in (2, 3)),
    )
    assert only(Continue, config.moves("review: {rounds: 2}\n", here))
    assert only(Escalate, config.moves("review: {rounds: 1}\n", here))


# ── decompose ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_planner_of_the_project_plans(config: Settings) -> None:
    here = field(task(1, decompose=True))
    assert only(Start, config.moves("decompose: {agent: builder}\n", here)).agent == "builder"


def test_a_plan_is_approved_by_a_person_or_by_policy(config: Settings) -> None:
    here = field(task(1, decompose=True), plans=(plan(1),))
    assert only(Escalate, config.moves("decompose: {}\n", here))
    assert only(CreateSubtasks, config.moves("decompose: {approval: auto}\n", here)).plan == 7


def test_tasks_of_a_type_are_taken_apart(config: Settings) -> None:
    here = field(task(1, type="epic"))
    assert only(Start, config.moves("decompose: {types: [epic]}\n", here)).purpose is Purpose.PLAN


def test_tasks_with_a_label_are_taken_apart(config: Settings) -> None:
    here = field(task(1, labels=("large",)))
    assert only(Start, config.moves("decompose: {labels: [large]}\n", here)).purpose is Purpose.PLAN


def test_a_plan_has_no_more_parts_than_allowed(config: Settings) -> None:
    here = field(task(1, decompose=True), plans=(plan(1, parts=4),))
    assert only(RejectPlan, config.moves("decompose: {approval: auto, max_parts: 3}\n", here))
    assert only(CreateSubtasks, config.moves("decompose: {approval: auto, max_parts: 4}\n", here))


def test_parts_of_parts_are_taken_apart_down_to_a_depth(config: Settings) -> None:
    here = field(task(1, children=(2,)), task(2, parent=1, decompose=True), ready=(2,))
    assert only(Start, config.moves("decompose: {max_depth: 2}\n", here)).purpose is Purpose.PLAN
    assert only(Start, config.moves("decompose: {max_depth: 1}\n", here)).purpose is Purpose.WORK


# ── budget and gc ────────────────────────────────────────────────────────────────────────────────────────────────────

SPENT = SpendingTotals(
    project=Cost(cost_usd=4), today=Cost(cost_usd=4), by_agent_today={"iterator": Cost(cost_usd=4)},
    by_task={1: Cost(cost_usd=4)},
)  # fmt: skip


@pytest.mark.parametrize("name", ["task_usd", "agent_day_usd", "day_usd", "project_usd"])
def test_a_budget_that_is_reached_keeps_agents_from_being_asked(config: Settings, name: str) -> None:
    here = field(task(1), ledger=SPENT)
    assert none(Start, config.moves(f"budget: {{{name}: 4}}\n", here))
    assert only(Start, config.moves(f"budget: {{{name}: 5}}\n", here)).task == 1


def test_how_long_ended_work_is_kept_is_read(config: Settings) -> None:
    assert (config.read("gc: {}\n").gc.keep_days, config.read("gc: {keep_days: 3}\n").gc.keep_days) == (14, 3)
