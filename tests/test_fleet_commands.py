import json
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from genba.blackboard.fleet.fleet_board import FleetBoard
from genba.coordination.engine.executor_lock import FileLock
from genba.domain.fleet.records import (
    Cause,
    EntryStatus,
    Escalation,
    EscalationKind,
    Executor,
    MergeEntry,
    Plan,
    SegmentEnd,
    SegmentOrder,
    Subtask,
    WaitsFor,
)
from genba.domain.tasks.task import Blocker, BlockerKind, TaskStatus
from tests.blackboard.fleets import begin, to_review
from tests.project import GENBA, Project, ordinary_environment, until

RUN = "worker-1-1-abcdef"
COMMIT = "3f9c2ab0d1e2f3a4b5c6d7e8f90a1b2c3d4e5f60"


@contextmanager
def fleet(project: Project) -> Iterator[FleetBoard]:
    with project.board() as board:
        yield FleetBoard(board)


@contextmanager
def at_work(project: Project) -> Iterator[None]:
    lock = FileLock(project.root / ".genba" / "genba.db", "laptop")
    lock.take(patience=0)
    try:
        yield
    finally:
        lock.release()


def started(project: Project, number: int = 1, run: str = RUN, **order: Any) -> None:
    """A session on a task, as the orchestrator would have begun it."""
    with fleet(project) as board:
        board.start(
            SegmentOrder(run=run, task=number, agent="worker", attempt=1, **order),
            executor="laptop",
            base_branch="main",
        )


def asked(project: Project, number: int = 1, question: str = "Which region?") -> None:
    """A session that waits for an answer, and its task with it."""
    started(project, number, f"worker-{number}-1-abcdef")
    with fleet(project) as board:
        run = f"worker-{number}-1-abcdef"
        board.end_part(SegmentEnd(run=run, part=1, waits_for=WaitsFor.ANSWER, reason=question))
        escalation = Escalation(task=number, kind=EscalationKind.QUESTION, question=question, run=run)
        board.escalate(escalation, Blocker(BlockerKind.NEEDS_INPUT, question))


def reviewed(project: Project, number: int = 1) -> None:
    """A task in review, whose session waits for a judgement of its commit."""
    with fleet(project) as board:
        to_review(board.board, board, begin(board, number), COMMIT)


def refused(project: Project, *words: str, code: int = 5, **environment: str) -> str:
    """A refusal: its exit code, what is unchanged, and the next command."""
    done = project.genba(*words, check=code, cwd=None, **environment)
    assert done.out == ""
    assert done.err.startswith("error: ")
    assert "hint: " in done.err
    return done.err


# ── questions ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_question_is_listed_with_the_command_that_answers_it(project: Project) -> None:
    project.issue(1, "Choose a region")
    assert "nothing waits for you" in project.genba("decisions", check=0).err
    asked(project)

    listed = project.genba("decisions", check=0).out
    shown = project.genba("decisions", "show", "1", check=0).out

    assert "#1 Choose a region  question  just now  Which region?   genba answer 1" in listed
    assert "Which region?" in shown
    assert "genba logs worker-1-1-abcdef" in shown
    assert 'genba answer 1 "…"' in shown
    assert project.genba("decisions", "--json", check=0).json[0]["kind"] == "question"
    assert project.genba("decisions", "show", "1", "--json", check=0).json["task"]["number"] == 1


def test_an_answer_is_written_down_and_the_task_can_go_on(project: Project) -> None:
    project.issue(1, "Choose a region")
    asked(project)

    done = project.genba("answer", "1", "Europe", check=0)

    assert "#1 is answered" in done.out
    assert "hint: genba work" in done.err
    assert project.task(1).status is TaskStatus.OPEN
    with fleet(project) as board:
        found = board.escalation(1)
    assert (found.status, found.answer) == ("answered", "Europe")
    assert "nothing about task #1 waits for an answer" in refused(project, "answer", "1", "Asia")
    decided = project.genba("decisions", "--all", check=0).out
    assert "answered by" in decided
    assert "Europe" in decided


def test_an_answer_is_read_from_standard_input(project: Project) -> None:
    project.issue(1, "Choose a region")
    asked(project)
    done = subprocess.run(
        [str(GENBA), "answer", "#1", "-"],
        cwd=project.root,
        env={**ordinary_environment(), **project.environment},
        input="Europe,\nand quickly\n",
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    with fleet(project) as board:
        assert board.escalation(1).answer == "Europe,\nand quickly"


@pytest.mark.parametrize("nothing", ["", "  ", "-"])
def test_an_answer_says_something(project: Project, nothing: str) -> None:
    project.issue(1, "Choose a region")
    asked(project)
    assert "the text is empty" in refused(project, "answer", "1", nothing, code=2)
    assert project.task(1).status is TaskStatus.BLOCKED


def test_where_a_worker_runs_the_command_to_start_one_is_not_suggested(project: Project) -> None:
    project.issue(1, "Choose a region")
    asked(project)
    with fleet(project) as board:
        board.register(Executor(id="laptop", host="here", process=os.getpid(), workers=2))
    with at_work(project):
        assert project.genba("answer", "1", "Europe", check=0).err == ""


def test_a_question_is_not_shown_to_a_terminal_as_it_is(project: Project) -> None:
    project.issue(1, "Choose\x1b[2J a region\u202e")
    asked(project, question="Which\x1b]0;title\x07 region?\nNow!")

    listed = project.genba("decisions", check=0).out
    shown = project.genba("decisions", "show", "1", check=0).out

    assert "\x1b" not in listed + shown
    assert "\u202e" not in listed + shown
    assert "Which region? Now!" in listed
    assert len(listed.splitlines()) == 2


# ── decisions ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_attempts_that_came_to_nothing_are_approved_for_one_more(project: Project) -> None:
    project.issue(1, "Move the till")
    with fleet(project) as board:
        tried = Escalation(task=1, kind=EscalationKind.ATTEMPTS, question="3 attempts failed. Again?")
        board.escalate(tried, Blocker(BlockerKind.FAILED, "3 attempts failed"))

    done = project.genba("approve", "1", "--reason", "the key is there now", check=0)

    assert "#1 is approved: another attempt" in done.out
    assert project.task(1).status is TaskStatus.OPEN
    with fleet(project) as board:
        assert board.escalation(1).answer == "the key is there now"


def test_attempts_that_are_rejected_stay_blocked_and_the_way_on_is_named(project: Project) -> None:
    project.issue(1, "Move the till")
    with fleet(project) as board:
        tried = Escalation(task=1, kind=EscalationKind.ATTEMPTS, question="3 attempts failed. Again?")
        board.escalate(tried, Blocker(BlockerKind.FAILED, "3 attempts failed"))

    done = project.genba("reject", "1", "--reason", "not worth it", check=0)

    assert "genba task cancel 1" in done.err
    assert project.task(1).status is TaskStatus.BLOCKED


def test_a_plan_is_shown_with_its_parts_and_approved(project: Project) -> None:
    project.issue(1, "Open a shop")
    parts = (Subtask(key="menu", title="The menu"), Subtask(key="till", title="The till", depends_on=("menu",)))
    with fleet(project) as board:
        board.propose(Plan(task=1, subtasks=parts, summary="Menu first."))
        board.escalate(Escalation(task=1, kind=EscalationKind.PLAN, question="Shall it be done so?"))

    shown = project.genba("decisions", "show", "1", check=0).out
    done = project.genba("approve", "1", "--json", check=0).json

    assert "├─ menu  The menu" in shown
    assert "after  menu" in shown
    assert "genba approve 1 " in shown
    assert done["task"]["number"] == 1
    with fleet(project) as board:
        assert board.escalation(1).status == "approved"


def test_a_plan_is_rejected_with_a_reason(project: Project) -> None:
    project.issue(1, "Open a shop")
    with fleet(project) as board:
        board.propose(Plan(task=1, subtasks=(Subtask(key="menu", title="The menu"),)))
        board.escalate(Escalation(task=1, kind=EscalationKind.PLAN, question="Shall it be done so?"))

    assert "Missing option '--reason'" in refused(project, "reject", "1", code=2)
    project.genba("reject", "1", "--reason", "smaller parts", check=0)

    with fleet(project) as board:
        assert (board.escalation(1).status, board.escalation(1).answer) == ("rejected", "smaller parts")


def test_only_the_commit_that_was_asked_about_is_approved(project: Project) -> None:
    project.issue(1, "Move the till")
    with fleet(project) as board:
        tried = Escalation(task=1, kind=EscalationKind.CONFLICT, question="Once more?", commit=COMMIT)
        board.escalate(tried, Blocker(BlockerKind.CONFLICT, "a conflict"))

    assert "is not what is to be approved: that is 3f9c2ab0d1e2" in refused(project, "approve", "1", "81d0e17")
    project.genba("approve", "1", "3F9C2AB", check=0)


def asked_to_review(project: Project) -> None:
    project.issue(1, "Move the till", requires_review=True)
    reviewed(project)
    with fleet(project) as board:
        board.escalate(Escalation(task=1, kind=EscalationKind.REVIEW, question="Approve it?", commit=COMMIT))


@pytest.mark.parametrize("words", [("approve", "1"), ("task", "approve", "1"), ("approve", "1", COMMIT[:7])])
def test_a_commit_that_waits_for_a_review_is_approved(project: Project, words: tuple[str, ...]) -> None:
    asked_to_review(project)

    assert f"git show {COMMIT[:12]}" in project.genba("decisions", "show", "1", check=0).out
    project.genba(*words, check=0)

    assert project.task(1).approved == COMMIT
    assert project.genba("decisions", "--json", check=0).json == []


def test_a_commit_that_is_rejected_is_not_approved(project: Project) -> None:
    asked_to_review(project)

    done = project.genba("reject", "1", "--reason", "no tests for the empty till", check=0)

    assert "#1 is rejected: its commit" in done.out
    assert project.task(1).approved == ""
    with fleet(project) as board:
        assert board.escalation(1).answer == "no tests for the empty till"


def test_a_commit_in_review_is_approved_before_anybody_asks(project: Project) -> None:
    project.issue(1, "Move the till", requires_review=True)
    reviewed(project)

    assert "is not what was verified" in refused(project, "approve", "1", "81d0e17")
    project.genba("approve", "1", check=0)

    assert project.task(1).approved == COMMIT


def test_nothing_is_decided_without_a_question(project: Project) -> None:
    project.issue(1, "Move the till")

    assert "there is nothing to approve" in refused(project, "approve", "1")
    assert "waits for a decision" in refused(project, "reject", "1", "--reason", "no")
    assert "waits for an answer" in refused(project, "answer", "1", "yes")
    for words in (("approve", "7"), ("reject", "7", "--reason", "no"), ("answer", "7", "x"), ("pause", "7")):
        refused(project, *words, code=4)
    assert "was ever escalated" in refused(project, "decisions", "show", "1", code=4)


@pytest.mark.parametrize(
    "words",
    [
        ("answer", "1", "Europe"),
        ("approve", "1"),
        ("task", "approve", "1"),
        ("reject", "1", "--reason", "no"),
        ("pause",),
        ("pause", "1"),
        ("resume",),
        ("resume", "1"),
        ("stop",),
        ("stop", "1"),
        ("work",),
        ("work", "--until-empty"),
        ("migrate",),
        ("agent", "register", "friend", "--manager"),
        ("agent", "passkey", "rotate", "friend"),
        ("agent", "passkey", "revoke", "friend"),
    ],
)
def test_an_agent_decides_nothing(project: Project, words: tuple[str, ...]) -> None:
    project.issue(1, "Choose a region")
    asked(project)
    result = refused(project, *words, GENBA_RUN=RUN, GENBA_AGENT="worker")
    assert "an agent may not" in result
    assert "genba task comment" in result
    with fleet(project) as board:
        field = board.field()
    assert (field.paused, field.stopping, field.held) == (False, False, frozenset())
    assert project.task(1).status is TaskStatus.BLOCKED


def test_an_agent_may_look(project: Project) -> None:
    project.issue(1, "Choose a region")
    asked(project)
    for words in (("decisions",), ("decisions", "show", "1"), ("queue",), ("sessions",), ("sessions", "1")):
        project.genba(*words, check=0, GENBA_RUN=RUN, GENBA_AGENT="worker")


# ── pause, resume, stop ──────────────────────────────────────────────────────────────────────────────────────────────


def controls(project: Project) -> tuple[bool, bool, list[int]]:
    with fleet(project) as board:
        field = board.field()
    return field.paused, field.stopping, sorted(field.held)


def test_a_project_is_paused_and_goes_on(project: Project) -> None:
    project.issue(1, "Move the till")

    done = project.genba("pause", check=0)
    assert "what runs now goes on" in done.out
    assert "hint: genba resume" in done.err
    assert controls(project) == (True, False, [])
    project.genba("pause", check=0)

    assert project.genba("resume", "--json", check=0).json["paused"] is False
    assert controls(project) == (False, False, [])


def test_one_task_is_paused_and_goes_on(project: Project) -> None:
    project.issue(1, "Move the till")
    project.issue(2, "Open a shop")

    assert "hint: genba resume 2" in project.genba("pause", "2", check=0).err
    assert controls(project) == (False, False, [2])
    project.genba("resume", "2", check=0)
    assert controls(project) == (False, False, [])


def test_stop_tells_everybody_and_work_is_refused_until_it_is_taken_back(project: Project) -> None:
    project.issue(1, "Move the till")

    assert "branches and commits stay" in project.genba("stop", check=0).out
    assert controls(project) == (False, True, [])
    assert "hint: genba resume" in refused(project, "work", "--until-empty")
    project.genba("resume", check=0)
    assert controls(project) == (False, False, [])


def test_a_task_that_is_stopped_waits_for_a_person(project: Project) -> None:
    project.issue(1, "Move the till")
    started(project)

    project.genba("stop", "1", "--reason", "a wrong idea", check=0)
    project.genba("stop", "1", check=0)

    listed = project.genba("decisions", "--json", check=0).json
    assert [(each["kind"], each["question"]) for each in listed] == [("stopped", "a wrong idea")]
    assert controls(project) == (False, False, [1])
    project.genba("resume", "1", check=0)
    assert project.genba("decisions", "--json", check=0).json == []
    assert controls(project) == (False, False, [])


def test_resume_decides_nothing_but_the_stop(project: Project) -> None:
    project.issue(1, "Choose a region")
    project.genba("stop", "1", check=0)
    asked_later = Escalation(task=1, kind=EscalationKind.BUDGET, question="Spend more?")
    with fleet(project) as board:
        board.escalate(asked_later, Blocker(BlockerKind.RESOURCE, "no money"))

    done = project.genba("resume", "1", check=0)

    assert "genba decisions show 1" in done.err
    kinds = {each["kind"] for each in project.genba("decisions", "--json", check=0).json}
    assert "budget" in kinds


# ── the queue and the sessions ───────────────────────────────────────────────────────────────────────────────────────


def test_an_empty_project_has_an_empty_queue_and_no_sessions(project: Project) -> None:
    assert project.genba("queue", check=0).err == "the merge queue is empty\n"
    assert project.genba("queue", "--json", check=0).json == []
    assert "hint: genba work" in project.genba("sessions", check=0).err
    assert project.genba("sessions", "--json", check=0).json == []
    assert project.genba("decisions", "--json", check=0).json == []
    assert not (project.root / ".genba").exists()


def test_the_queue_tells_what_is_stuck_and_why(project: Project) -> None:
    project.issue(1, "Move the till")
    reviewed(project)
    with fleet(project) as board:
        entry = MergeEntry(task=1, run="writer-1-1-work", branch="genba/1-move", commit=COMMIT, target="main")
        made = board.enqueue_merge(entry)
        board.take([made.id])
        board.settle(made.id, EntryStatus.STUCK, detail="your checkout of main has changes")

    done = project.genba("queue", check=0)

    assert "queue of main · 1 open" in done.out
    assert "■ stuck  #1 Move the till" in done.out
    assert "your checkout of main has changes" in done.out
    assert "tried again by itself" in done.err
    assert project.genba("queue", "--target", "main", "--json", check=0).json[0]["status"] == "stuck"
    assert project.genba("queue", "--target", "other", "--json", check=0).json == []


def test_sessions_tell_who_tried_what_and_what_they_wait_for(project: Project) -> None:
    project.issue(1, "Choose a region")
    project.issue(2, "Move the till")
    asked(project)
    started(project, 2, "worker-2-1-abcdef")

    everything = project.genba("sessions", check=0).out
    one = project.genba("sessions", "1", check=0).out

    assert "◌ waiting  #1 Choose a region" in everything
    assert "waits for an answer" in everything
    assert "◐ running  #2 Move the till" in everything
    assert "#2" not in one
    assert project.genba("sessions", "2", "--json", check=0).json[0]["run"] == "worker-2-1-abcdef"
    refused(project, "sessions", "9", code=4)


@pytest.mark.parametrize("leaves", [True, False], ids=["it left", "it was killed"])
def test_a_session_whose_executor_has_gone_is_suspended(project: Project, leaves: bool) -> None:
    project.issue(1, "Move the till")
    started(project)
    with fleet(project) as board:
        board.register(Executor(id="laptop", host="laptop", process=os.getpid(), workers=2))
    with at_work(project):
        assert "◐ running  #1 Move the till" in project.genba("sessions", check=0).out
    if leaves:
        with fleet(project) as board:
            board.leave("laptop", "suspended")

    result = project.genba("sessions", check=0)

    assert "■ suspended  #1 Move the till" in result.out
    assert "laptop has ended" in result.out
    assert "hint: genba work   continues stopped sessions" in result.err
    assert project.genba("sessions", "1", "--json", check=0).json[0]["status"] == "suspended"


def test_all_sessions_are_listed_with_those_that_have_ended(project: Project) -> None:
    project.issue(1, "Choose a region")
    project.issue(2, "Move the till")
    started(project)
    started(project, 2, "worker-2-1-abcdef")
    with fleet(project) as board:
        board.end_part(SegmentEnd(run="worker-2-1-abcdef", part=1, outcome="failed", reason="it gave up"))
    project.genba("task", "cancel", "2", check=0)

    assert "#2" not in project.genba("sessions", check=0).out
    result = project.genba("sessions", "--all", check=0).out
    assert "◐ running  #1 Choose a region" in result
    assert "✗ failed   #2 Move the till" in result


def test_where_all_sessions_have_ended_their_place_is_reported(project: Project) -> None:
    project.issue(1, "Move the till")
    started(project)
    with fleet(project) as board:
        board.end_part(SegmentEnd(run=RUN, part=1, outcome="failed", reason="it gave up"))
    project.genba("task", "cancel", "1", check=0)

    result = project.genba("sessions", check=0).err

    assert result == "no session is open; all have ended\nhint: genba sessions --all\n"


def test_a_run_that_was_lost_before_it_wrote_anything_is_reported(project: Project) -> None:
    project.issue(1, "Move the till")
    started(project)
    assert f"{RUN} has written no journal: it is running" in refused(project, "logs", RUN, code=4)
    with fleet(project) as board:
        board.end_part(SegmentEnd(run=RUN, part=1, outcome="failed", reason="its part was lost: nobody knows of it"))

    result = refused(project, "logs", RUN, code=4)

    assert f"{RUN} has written no journal: its part was lost: nobody knows of it" in result
    assert "hint: genba sessions 1" in result
    assert 'there is no session "worker-9-9-abcdef"' in refused(project, "logs", "worker-9-9-abcdef", code=4)


def test_a_session_that_went_on_is_one_session(project: Project) -> None:
    project.issue(1, "Choose a region")
    asked(project)
    project.genba("answer", "1", "Europe", check=0)
    with fleet(project) as board:
        order = SegmentOrder(run=RUN, task=1, agent="worker", attempt=1, part=2, cause=Cause.ANSWER)
        board.continue_(order, executor="laptop")
    assert [each["part"] for each in project.genba("sessions", "1", "--json", check=0).json] == [2]


# ── tasks ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_task_tells_what_it_writes_what_it_may_cost_and_that_it_is_planned(project: Project) -> None:
    words = ("--scope", "src/menu/**", "--scope", "docs/menu.md", "--decompose", "--budget", "2.50")
    project.genba("task", "add", "The menu", *words, check=0)

    shown = project.genba("task", "show", "1", check=0).out
    assert "writes       src/menu/**, docs/menu.md" in shown
    assert "a planner proposes its parts first" in shown
    assert "budget       $2.50" in shown

    changed = ("--remove-scope", "docs/menu.md", "--scope", "src/till/**", "--no-decompose", "--budget", "$4")
    task = project.genba("task", "edit", "1", *changed, "--json", check=0).json
    assert (task["scope"], task["decompose"], task["budget_usd"]) == (["src/menu/**", "src/till/**"], False, 4.0)
    assert project.genba("task", "edit", "1", "--budget", "0", "--json", check=0).json["budget_usd"] is None


@pytest.mark.parametrize(
    "words",
    [
        ("--scope", "/etc"),
        ("--scope", "../other"),
        ("--scope", "a/../../b"),
        ("--scope", ""),
        ("--scope", "~/x"),
        ("--budget", "much"),
        ("--budget", "-1"),
        ("--budget", "nan"),
        ("--budget", "inf"),
    ],
)
def test_a_scope_is_inside_the_repository_and_a_budget_is_money(project: Project, words: tuple[str, str]) -> None:
    refused(project, "task", "add", "x", *words, code=2)


def test_a_scope_that_is_not_there_is_not_taken_away(project: Project) -> None:
    project.genba("task", "add", "The menu", "--scope", "src/**", check=0)
    assert "is not in the scope" in refused(project, "task", "edit", "1", "--remove-scope", "docs/**", code=2)


# ── migrate, work ────────────────────────────────────────────────────────────────────────────────────────────────────


def test_tables_that_are_up_to_date_stay_as_they_are(project: Project) -> None:
    project.issue(1, "x")
    result = project.genba("migrate", "--json", check=0).json
    assert result["from"] == result["to"]
    assert result["changed"] is False
    assert "up to date" in project.genba("migrate", check=0).out


def test_nothing_is_cleared_away_where_nothing_was_left(project: Project) -> None:
    project.issue(1, "x")
    assert project.genba("gc", "--dry-run", "--json", check=0).json == {
        "dry_run": True,
        "keep_days": 14,
        "collected": [],
    }
    assert project.genba("gc", "--keep-days", "0", check=0).err == "nothing to clear away\n"
    assert "an agent may not" in refused(project, "gc", GENBA_RUN=RUN)


@pytest.mark.parametrize(
    ("words", "code", "reported"),
    [
        (("--workers", "0"), 2, "0 is not in the range"),
        (("--workers", "many"), 2, "is not a valid integer"),
        (("--agent", "wroker"), 4, 'there is no agent "wroker"'),
        (("--executor", "../x"), 2, "is not a name for an executor"),
        (("--executor", "x" * 65), 2, "is not a name for an executor"),
        (("--label",), 2, "requires an argument"),
    ],
)
def test_what_cannot_be_worked_with_is_refused_before_anything_starts(
    project: Project, words: tuple[str, ...], code: int, reported: str
) -> None:
    assert reported in refused(project, "work", *words, code=code)


SCRIPTED = textwrap.dedent("""
    import asyncio, contextlib, json, signal, sys
    from genba.domain.fleet.progress import FleetEvent, FleetEventKind, FleetView, WorkerView
    from genba.domain.fleet.progress import WorkEndReason, WorkSummary
    from genba.entrypoints.cli.work.work_command import drive, exit_code, tell, watching

    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # tests may run under nohup

    class ScriptedFleet:
        def __init__(self, listener):
            self.listener = listener
            self.suspended = 0
            self.ends = asyncio.Event()

        def picture(self):
            return FleetView(slots=1, workers=(WorkerView(task=1, title="a task"),))

        def suspend(self):
            self.suspended += 1

        async def work(self, *, until_empty):
            self.listener(FleetEvent(kind=FleetEventKind.STARTED, task=1, title="a task"))
            # it suspends as slowly as somebody reads what it says
            await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)
            ended = WorkEndReason.SUSPENDED if self.suspended else WorkEndReason.EMPTY
            return WorkSummary(ended=ended, suspended=self.suspended)

    def open_fleet(listener):
        @contextlib.asynccontextmanager
        async def opened():
            if sys.argv[1:] == ["slow"]:
                listener(FleetEvent(kind=FleetEventKind.NOTICE, detail="it takes for ever to open"))
                await asyncio.Event().wait()
            yield ScriptedFleet(listener)
            print("closed", flush=True)
        return opened()

    with watching(plain=True) as view:
        summary = asyncio.run(drive(open_fleet, view, False))
    tell(summary, True)
    sys.exit(exit_code(summary, False))
""")


def begun(tmp_path: Path, *words: str) -> "subprocess.Popen[str]":
    output = (tmp_path / "said").open("w", encoding="utf-8")
    with output:
        return subprocess.Popen(
            [sys.executable, "-c", SCRIPTED, *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=output,
            text=True,
            env=os.environ,
        )


def ended(process: "subprocess.Popen[str]") -> tuple[int, str]:
    out, _ = process.communicate("end\n", timeout=60)
    return process.returncode, out


@pytest.mark.parametrize("word", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_ctrl_c_suspend_once_and_stays_clean_however_often_it_is_pressed(tmp_path: Path, word: signal.Signals) -> None:
    process = begun(tmp_path)
    output = tmp_path / "said"
    until(lambda: "started" in output.read_text())
    process.send_signal(word)
    until(lambda: "1 session; everything is kept, and genba work goes on with it" in output.read_text())
    process.send_signal(signal.SIGINT)
    until(lambda: output.read_text().count("still suspending") == 1)
    process.send_signal(signal.SIGINT)
    until(lambda: output.read_text().count("still suspending") == 2)

    code, out = ended(process)

    closed, _, summary = out.partition("\n")
    assert (code, closed) == (0, "closed")
    assert json.loads(summary)["suspended"] == 1
    assert "suspended: 1 session, nothing is lost" in output.read_text()
    assert "hint: genba work   goes on" in output.read_text()
    assert "Traceback" not in output.read_text()


def test_a_fleet_that_ends_by_itself_says_so(tmp_path: Path) -> None:
    process = begun(tmp_path)
    until(lambda: "▸ started     #1 a task" in (tmp_path / "said").read_text())
    code, out = ended(process)
    assert code == 0
    assert json.loads(out.partition("\n")[2])["ended"] == "empty"
    assert "there was nothing to do" in (tmp_path / "said").read_text()


def test_a_fleet_that_is_ended_while_it_opens_has_nothing_to_suspend(tmp_path: Path) -> None:
    process = begun(tmp_path, "slow")
    until(lambda: "it takes for ever to open" in (tmp_path / "said").read_text())
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=60)
    assert (process.returncode, json.loads(out)["ended"]) == (0, "suspended")
    assert "suspended: nothing was running" in (tmp_path / "said").read_text()
    assert "Traceback" not in (tmp_path / "said").read_text()
