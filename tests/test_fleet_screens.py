import io
import unicodedata
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot
from rich.console import Console

from genba.domain.fleet.progress import (
    DecisionView,
    FleetEvent,
    FleetEventKind,
    FleetView,
    GoalMark,
    QueueEntryView,
    TaskResult,
    WaitView,
    WorkEndReason,
    WorkerView,
    WorkSummary,
    command_for,
)
from genba.domain.fleet.records import (
    EntryStatus,
    Escalation,
    EscalationKind,
    FleetSession,
    MergeEntry,
    Purpose,
    WaitsFor,
)
from genba.domain.tasks.housekeeping import Collected
from genba.domain.tasks.task import Task, TaskStatus
from genba.entrypoints.cli.admin.gc_command import collected_lines
from genba.entrypoints.cli.rendering.columns import cell, cut, fit, width
from genba.entrypoints.cli.rendering.fleet_views import (
    ago,
    escalation_lines,
    escalation_page,
    queue_lines,
    session_lines,
)
from genba.entrypoints.cli.rendering.work_view import (
    ENTRY_MARKS,
    EVENT_MARKS,
    ending_line,
    event_line,
    picture_lines,
    summary_lines,
)
from genba.entrypoints.cli.work.work_command import exit_code

NOW = datetime(2026, 1, 5, 14, 30, tzinfo=UTC)
HOSTILE = [
    "\x1b[2J\x1b]0;owned\x07plain",
    "two\nlines\r\nand\ttabs",
    "x" * 500,
    "عنوان من اليمين \u202eلمن\u2066 اليسار\u200f",
    "題名が長い" * 40,
    "e\u0301" * 80,
    "👩‍👩‍👧‍👦 family",
    "[bold red]markup[/bold red] {braces} %s",
    "\u2028line\u2029separators\x85next",
    "",
]

WORKERS = (
    WorkerView(
        task=12,
        title="Add login endpoint",
        agent="iterator",
        step="implement",
        iteration=4,
        iterations=20,
        doing="editing tests/test_login.py",
        seconds=72,
        tokens=18200,
        cost_usd=0.41,
    ),
    WorkerView(
        task=14,
        title="Speed up the parser",
        agent="builder",
        phase="verify",
        step="close",
        iteration=3,
        seconds=310,
        cost_usd=1.2,
        goals=(
            GoalMark(name="lint_passes", status="passed"),
            GoalMark(name="tests_pass", status="failed", detail="2 failed"),
        ),
    ),
    WorkerView(task=15, title="Review: Rename config", agent="reviewer", purpose=Purpose.REVIEW, seconds=4),
)
QUEUE = (
    QueueEntryView(task=9, target="main", title="Rename config", status=EntryStatus.MERGING, round=2),
    QueueEntryView(task=7, target="main", title="Fix the empty title"),
    QueueEntryView(
        task=5, target="main", title="Docs", status=EntryStatus.STUCK, detail="your checkout of main has changes"
    ),
)
NEEDS = (
    DecisionView(
        task=18,
        title="Choose a region",
        kind=EscalationKind.QUESTION,
        question="Which region?",
        command=command_for(EscalationKind.QUESTION, 18),
    ),
    DecisionView(
        task=20,
        title="Move the till",
        kind=EscalationKind.ATTEMPTS,
        question="3 attempts of 2 agents came to nothing. Shall it be tried again?",
        command=command_for(EscalationKind.ATTEMPTS, 20),
    ),
)
PICTURE = FleetView(
    project="shop",
    executor="laptop",
    slots=4,
    workers=WORKERS,
    queue=QUEUE,
    waits=(
        WaitView(task=16, title="Show prices", why="waits for #14"),
        WaitView(why="anthropic asks for patience", until="2026-01-05T15:05:00.000000Z"),
    ),
    needs=NEEDS,
    ready=3,
    open=9,
    done=4,
    merged=4,
    seconds=761,
    tokens=182000,
    cost_usd=4.1,
    budget_usd=10,
)
SUMMARY = WorkSummary(
    ended=WorkEndReason.EMPTY,
    tasks=(
        TaskResult(
            task=1, title="add slugify()", agent="builder", iterations=2, goals_passed=4, goals=4, merged="3f9c2ab0d1"
        ),
        TaskResult(
            task=2, title="fix empty title", agent="builder", iterations=1, goals_passed=5, goals=5, merged="81d0e17"
        ),
        TaskResult(
            task=3,
            title="speed up parser",
            status="failed",
            agent="liar",
            detail='claimed "all pass"; tests_pass failed on 5c1a0f2',
        ),
        TaskResult(
            task=6,
            parent=4,
            title="rename the file",
            agent="builder",
            iterations=1,
            goals_passed=2,
            goals=2,
            merged="a07b3cd",
        ),
        TaskResult(
            task=4,
            title="rename config",
            agent="builder",
            iterations=3,
            goals_passed=4,
            goals=4,
            merged="b81e22f",
            detail="conflict in app.py, round 2",
        ),
        TaskResult(
            task=5,
            title="choose a licence",
            status="waits",
            agent="builder",
            detail='needs you: "MIT or Apache-2.0?"',
            command='genba answer 5 "…"',
        ),
    ),
    sessions=7,
    merged=4,
    done=4,
    failed=1,
    needs=(
        DecisionView(task=5, kind=EscalationKind.QUESTION, question="MIT or Apache-2.0?", command='genba answer 5 "…"'),
    ),
    seconds=192,
    tokens=24300,
    cost_usd=0.1,
)


def report(lines: list[str]) -> str:
    return "\n".join(lines) + "\n"


def test_a_fleet_at_work() -> None:
    assert report(picture_lines(PICTURE)) == snapshot("""\
shop · 3 of 4 workers busy · laptop                        12:41 m · 182.0k tokens · $4.10 of $10.00

 ◐ works     #12 Add login endpoint     iterator  implement 4/20  1:12 m  $0.41
   └ editing tests/test_login.py
 ◐ verifies  #14 Speed up the parser    builder   close 3         5:10 m  $1.20
   └ goals 1/2  ✗ tests_pass: 2 failed
 ◐ reviews   #15 Review: Rename config  reviewer                  4.0 s
 · idle

 queue of main
 ◐ merging  #9 Rename config        round 2
 ○ queued   #7 Fix the empty title
 ■ stuck    #5 Docs                          your checkout of main has changes

 ◌ waits   #16 Show prices  waits for #14
 ◌ waits   anthropic asks for patience, until 15:05 UTC

 needs you
 ? #18 Choose a region           "Which region?"   genba answer 18 "…"
 ? #20 Move the till             attempts: 3 attempts of 2 agents came to nothing. Shall it be trie…
      genba decisions show 20

 4 merged · 4 done · 0 failed · 3 ready · 9 open · ctrl-c suspends it
""")


def test_a_fleet_at_work_on_a_narrow_screen() -> None:
    assert report(picture_lines(PICTURE, 80)) == snapshot("""\
shop · 3 of 4 workers busy · laptop    12:41 m · 182.0k tokens · $4.10 of $10.00

 ◐ works     #12 Add login endpoint    iterator  implement 4/20  1:12 m  $0.41
   └ editing tests/test_login.py
 ◐ verifies  #14 Speed up the parser   builder   close 3         5:10 m  $1.20
   └ goals 1/2  ✗ tests_pass: 2 failed
 ◐ reviews   #15 Review: Rename conf…  reviewer                  4.0 s
 · idle

 queue of main
 ◐ merging  #9 Rename config        round 2
 ○ queued   #7 Fix the empty title
 ■ stuck    #5 Docs                          your checkout of main has changes

 ◌ waits   #16 Show prices  waits for #14
 ◌ waits   anthropic asks for patience, until 15:05 UTC

 needs you
 ? #18 Choose a region           "Which region?"   genba answer 18 "…"
 ? #20 Move the till             attempts: 3 attempts of 2 agents came to nothi…
      genba decisions show 20

 4 merged · 4 done · 0 failed · 3 ready · 9 open · ctrl-c suspends it
""")


def test_a_fleet_with_nothing_to_do() -> None:
    assert report(picture_lines(FleetView(project="shop", executor="laptop", slots=2, seconds=3))) == snapshot("""\
shop · 0 of 2 workers busy · laptop                                                            3.0 s

 · idle × 2

 0 merged · 0 done · 0 failed · 0 ready · 0 open · ctrl-c suspends it
""")


def test_a_fleet_that_suspend() -> None:
    suspended = FleetView(slots=1, workers=WORKERS[:1], suspending=True, paused="the project is paused  genba resume")
    assert report(picture_lines(suspended)) == snapshot("""\
1 of 1 worker busy                                                                             0.0 s

 ◐ works  #12 Add login endpoint  iterator  implement 4/20  1:12 m  $0.41
   └ editing tests/test_login.py

 ‖ paused  the project is paused   genba resume

 0 merged · 0 done · 0 failed · 0 ready · 0 open · suspending: everything is kept
""")


def test_what_happens_is_one_line_each() -> None:
    events = [
        FleetEvent(kind=FleetEventKind.OPENED, detail="2 workers on laptop"),
        FleetEvent(kind=FleetEventKind.STARTED, task=12, title="Add login endpoint", agent="iterator"),
        FleetEvent(
            kind=FleetEventKind.STEP, task=12, title="Add login endpoint", agent="iterator", detail="plan 1 next"
        ),
        FleetEvent(
            kind=FleetEventKind.CONFLICT, task=12, title="Add login endpoint", detail="in app.py; back to its author"
        ),
        FleetEvent(
            kind=FleetEventKind.ESCALATED,
            task=18,
            title="Choose a region",
            detail="Which region?",
            command='genba answer 18 "…"',
        ),
        FleetEvent(kind=FleetEventKind.MERGED, task=12, title="Add login endpoint", detail="3f9c2ab into main"),
        FleetEvent(kind=FleetEventKind.TAKEN_OVER, detail="2 sessions of worker-2, which is gone"),
    ]
    assert report([event_line(event) for event in events]) == snapshot("""\
 ▸ opened      2 workers on laptop
 ▸ started     #12 Add login endpoint  iterator
 · step        #12 Add login endpoint  iterator  plan 1 next
 ≠ conflict    #12 Add login endpoint  in app.py; back to its author
 ? escalated   #18 Choose a region  Which region?   genba answer 18 "…"
 ● merged      #12 Add login endpoint  3f9c2ab into main
 ↷ taken over  2 sessions of worker-2, which is gone
""")


def test_the_story_in_the_end() -> None:
    assert report([*summary_lines(SUMMARY), ending_line(SUMMARY)]) == snapshot("""\
 #1 add slugify()        ● done       builder  2 iterations   goals 4/4   merged 3f9c2ab
 #2 fix empty title      ● done       builder  1 iteration    goals 5/5   merged 81d0e17
 #3 speed up parser      ✗ failed     liar     claimed "all pass"; tests_pass failed on 5c1a0f2
 #4 rename config        ● done       builder  3 iterations   goals 4/4   merged b81e22f
      conflict in app.py, round 2
   └ #6 rename the file  ● done       builder  1 iteration    goals 2/2   merged a07b3cd
 #5 choose a licence     ? waits      builder  needs you: "MIT or Apache-2.0?"   genba answer 5 "…"

 7 sessions · 4 merged · 4 done · 1 failed · 1 needs you · 3:12 m · 24.3k tokens · $0.10
nothing more can be done without you: 1 decision
""")


def test_no_command_is_cut_in_the_story_in_the_end() -> None:
    why = "the last one of them said that it could not go on without the key of the other account, which nobody gave it"
    summary = WorkSummary(
        ended=WorkEndReason.EMPTY,
        tasks=(
            TaskResult(task=1, title="add slugify()", status="waits", agent="builder", detail=f"{why}  genba resume 1"),
            TaskResult(
                task=2, title="add a till", status="failed", agent="builder", detail=f"{why}: {why}: {why}: {why}"
            ),
        ),
        sessions=4,
        sessions_failed=3,
        waits=(WaitView(task=3, title="move the till", why=f"{why}  genba resume 3"),),
        seconds=3,
    )
    assert report([*summary_lines(summary)]) == snapshot("""\
 #1 add slugify()  ? waits      builder
      the last one of them said that it could not go on without the key of the other account, which
      nobody gave it   genba resume 1
 #2 add a till     ✗ failed     builder
      the last one of them said that it could not go on without the key of the other account, which
      nobody gave it: the last one of them said that it could not go on without the key of the other
      account, which nobody gave it: the last one of them said that it could not go on without the…

 ◌ #3 move the till  the last one of them said that it could not go on without the key of the other…
      genba resume 3
 4 sessions, 3 of them in vain · 0 merged · 0 done · 3.0 s
""")


@pytest.mark.parametrize("kind", FleetEventKind)
def test_everything_that_can_happen_has_a_word_and_a_shape(kind: FleetEventKind) -> None:
    line = event_line(FleetEvent(kind=kind, task=1, title="a title"))
    assert line.startswith(f" {EVENT_MARKS[kind]} {kind.replace('_', ' ')}")


def test_every_state_of_the_queue_has_a_shape() -> None:
    assert set(ENTRY_MARKS) == set(EntryStatus)


@pytest.mark.parametrize("kind", EscalationKind)
def test_every_escalation_names_a_command(kind: EscalationKind) -> None:
    assert command_for(kind, 7).startswith("genba ")
    assert "7" in command_for(kind, 7)


# ── exit codes and endings ───────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("summary", "until_empty", "code"),
    [
        (WorkSummary(ended=WorkEndReason.EMPTY), True, 0),
        (
            WorkSummary(ended=WorkEndReason.EMPTY, tasks=(TaskResult(task=1), TaskResult(task=2, status="cancelled"))),
            True,
            0,
        ),
        (WorkSummary(ended=WorkEndReason.EMPTY, failed=1), True, 1),
        (WorkSummary(ended=WorkEndReason.EMPTY, tasks=(TaskResult(task=1, status="waits"),)), True, 1),
        (SUMMARY, True, 1),
        (WorkSummary(ended=WorkEndReason.SUSPENDED, suspended=2), True, 1),
        (WorkSummary(ended=WorkEndReason.SUSPENDED, suspended=2), False, 0),
        (WorkSummary(ended=WorkEndReason.STOPPED, suspended=2), False, 0),
        (WorkSummary(ended=WorkEndReason.BUDGET), True, 6),
        (WorkSummary(ended=WorkEndReason.BUDGET), False, 6),
    ],
)
def test_the_exit_code_says_what_it_came_to(summary: WorkSummary, until_empty: bool, code: int) -> None:
    assert exit_code(summary, until_empty) == code


def test_how_it_ended_is_one_sentence() -> None:
    endings = [
        WorkSummary(ended=WorkEndReason.EMPTY),
        WorkSummary(ended=WorkEndReason.EMPTY, tasks=(TaskResult(task=1),), done=1),
        WorkSummary(ended=WorkEndReason.EMPTY, tasks=(TaskResult(task=1), TaskResult(task=2, status="waits")), done=1),
        WorkSummary(ended=WorkEndReason.EMPTY, tasks=(TaskResult(task=1, status="failed"),), failed=1),
        SUMMARY,
        WorkSummary(ended=WorkEndReason.SUSPENDED),
        WorkSummary(ended=WorkEndReason.SUSPENDED, suspended=1),
        WorkSummary(ended=WorkEndReason.STOPPED, suspended=3, detail="by ann"),
        WorkSummary(ended=WorkEndReason.BUDGET, detail="$10.00 of today are spent"),
    ]
    assert report([ending_line(each) for each in endings]) == snapshot("""\
there was nothing to do
1 task done, and nothing is left to begin
nothing more can be done now: 1 task left
the field is empty, 1 task failed
nothing more can be done without you: 1 decision
suspended: nothing was running
suspended: 1 session, nothing is lost
stopped (by ann): 3 sessions suspended, nothing is lost
a budget is used up: $10.00 of today are spent
""")


# ── records ──────────────────────────────────────────────────────────────────────────────────────────────────────────

ESCALATIONS = (
    Escalation(
        task=18,
        kind=EscalationKind.QUESTION,
        question="Which region?",
        created_at="2026-01-05T12:00:00.000000Z",
    ),
    Escalation(
        task=20,
        kind=EscalationKind.CONFLICT,
        question="The work conflicts with main in app.py, after 3 rounds. Shall its author try once more?",
        created_at="2026-01-04T12:00:00.000000Z",
        commit="3f9c2ab0d1e2f3",
        evidence={
            "round": 3,
            "target": "main",
            "paths": ["app.py", "README.md"],
            "detail": "both changed it",
            "over": "",
        },
    ),
    Escalation(
        task=21,
        kind=EscalationKind.ATTEMPTS,
        question="Shall it be tried again?",
        status="approved",
        answered_by="ann",
        answer="the key is there now",
        created_at="2026-01-05T14:29:40.000000Z",
    ),
)
TITLES = {18: "Choose a region", 20: "Move the till", 21: "Print receipts"}
SESSIONS = (
    FleetSession(
        run="iterator-20-1-aaaaaa",
        task=20,
        agent="iterator",
        attempt=1,
        status="ended",
        outcome="failed",
        reason="the same failure twice",
        branch="genba/20-move-the-till",
        cost_usd=0.4,
        tokens=12000,
        started_at="2026-01-05T12:00:00.000000Z",
        ended_at="2026-01-05T12:05:10.000000Z",
    ),
    FleetSession(
        run="builder-20-2-bbbbbb",
        task=20,
        agent="builder",
        attempt=2,
        status="waiting",
        waits_for=WaitsFor.MERGE,
        branch="genba/20-move-the-till",
        verified="3f9c2ab0d1e2f3",
        cost_usd=1.1,
        tokens=30000,
        started_at="2026-01-05T13:00:00.000000Z",
    ),
    FleetSession(
        run="iterator-18-1-cccccc",
        task=18,
        agent="iterator",
        attempt=1,
        phase="iterating",
        step="implement",
        iterations=3,
        executor="laptop",
        started_at="2026-01-05T14:20:00.000000Z",
    ),
)


def test_what_waits_for_a_person() -> None:
    assert report(list(escalation_lines(ESCALATIONS, TITLES, NOW))) == snapshot("""\
    task                 kind      since     question
 ?  #18 Choose a region  question  2 h ago   Which region?   genba answer 18 "…"
 ?  #20 Move the till    conflict  1 d ago   The work conflicts with main in app.py, after 3 rounds…
   genba decisions show 20
 ✓  #21 Print receipts   attempts  just now  approved by ann: the key is there now · Shall it be tr…
""")


def test_everything_that_is_needed_to_decide() -> None:
    task = Task(id=1, number=20, title="Move the till", status=TaskStatus.REVIEW, type="bug")
    page = escalation_page(ESCALATIONS[1], task, SESSIONS[:2], None, None, NOW)
    assert report(list(page)) == snapshot("""\
? #20 Move the till
   conflict · open · since 2026-01-04 12:00, 1 d ago

   The work conflicts with main in app.py, after 3 rounds. Shall its author try once more?

   task         review · bug · medium priority   genba task show 20
   branch       genba/20-move-the-till at 3f9c2ab   git show 3f9c2ab0d1e2
   tried        1. iterator: failed: the same failure twice   genba logs iterator-20-1-aaaaaa
                2. builder: waits for the merge queue   genba logs builder-20-2-bbbbbb
   cost         $1.50 · 42.0k tokens
   round        3
   target       main
   paths        app.py, README.md
   detail       both changed it

   genba approve 20       one more round for its author
   genba answer 20 "…"    one more round, with what you know
   genba task cancel 20   give the task up; its branches and commits stay
""")


def test_a_plan_is_shown_as_a_tree() -> None:
    parts = [
        {"key": "menu", "title": "The menu", "scope": ["src/menu/**"]},
        {"key": "till", "title": "The till", "depends_on": ["menu"]},
    ]
    asked = Escalation(
        task=4,
        kind=EscalationKind.PLAN,
        question="Shall it be done in these 2 parts?",
        evidence={"plan": 3, "summary": "Menu first.", "subtasks": parts, "cost_usd": 0.2},
        created_at="2026-01-05T14:00:00.000000Z",
    )
    task = Task(id=1, number=4, title="Open a shop")
    assert report(list(escalation_page(asked, task, (), None, None, NOW))) == snapshot("""\
? #4 Open a shop
   plan · open · since 2026-01-05 14:00, 30 min ago

   Shall it be done in these 2 parts?

   task         open · task · medium priority   genba task show 4
   cost usd     0.20

   #4 in 2 parts
   │ Menu first.
   ├─ menu  The menu  (task, medium)
   │        writes src/menu/**
   │        goal   none of its own
   └─ till  The till  (task, medium)
            after  menu
            goal   none of its own

   genba approve 4               create these parts
   genba reject 4 --reason "…"   let it be planned again with your reason
   genba task cancel 4           give the task up; its branches and commits stay
""")


def test_unknown_evidence_is_shown_as_it_is() -> None:
    odd = {"subtasks": "none", "deep": {"a": [1, {"b": None}]}, "yes": True, "text": "one\ntwo\x1b[2J"}
    asked = Escalation(task=4, kind=EscalationKind.PLAN, question="?", evidence={**odd, "list": [{"x": 1}, "y" * 50]})
    page = report(list(escalation_page(asked, Task(id=1, number=4, title="t"), (), None, None, NOW)))
    assert "yes" in page
    assert "\x1b" not in page


def test_the_merge_queue() -> None:
    entry = MergeEntry(
        task=9,
        run="r",
        branch="genba/9-rename",
        commit="3f9c2ab0d1",
        target="main",
        title="Rename config",
        status=EntryStatus.MERGING,
        round=2,
        enqueued_at="2026-01-05T14:20:00.000000Z",
    )
    others = (
        MergeEntry(task=7, run="s", branch="b", commit="81d0e17aa", target="main", title="Fix the title", turns=2),
        MergeEntry(
            task=5,
            run="t",
            branch="b",
            commit="91d0e17aa",
            target="main",
            title="Docs",
            status=EntryStatus.STUCK,
            detail="your checkout of main has changes",
        ),
        MergeEntry(
            task=6,
            run="u",
            branch="b",
            commit="a1d0e17aa",
            target="genba/4-shop",
            title="Menu",
            status=EntryStatus.CONFLICT,
            paths=("app.py", "menu.py"),
        ),
        MergeEntry(
            task=8,
            run="v",
            branch="b",
            commit="b1d0e17aa",
            target="genba/4-shop",
            title="Till",
            status=EntryStatus.MERGED,
            landed="c1d0e17aa",
        ),
    )
    assert report(list(queue_lines((entry, *others), NOW))) == snapshot("""\
queue of main · 3 open
 ◐ merging  #9 Rename config  3f9c2ab  round 2  10 min ago
 ○ queued   #7 Fix the title  81d0e17                       passed by 2 times
 ■ stuck    #5 Docs           91d0e17                       your checkout of main has changes

queue of genba/4-shop · 0 open
 ≠ conflict  #6 Menu  a1d0e17  in app.py, menu.py
 ● merged    #8 Till  b1d0e17  landed as c1d0e17
""")


def test_sessions() -> None:
    assert report(list(session_lines(SESSIONS, TITLES, NOW, 120))) == snapshot("""\
            task                 session               attempt  for   time        cost
 ✗ failed   #20 Move the till    iterator-20-1-aaaaaa  1        work  5:10 m      $0.40  the same failure twice
 ◌ waiting  #20 Move the till    builder-20-2-bbbbbb   2        work  1 h ago     $1.10  waits for the merge queue
 ◐ running  #18 Choose a region  iterator-18-1-cccccc  1        work  10 min ago         iterating implement 3 on laptop
""")


def test_what_is_cleared_away_and_what_stays() -> None:
    found = [
        Collected(kind="branch", name="genba/3-keep", why="1 commit is nowhere else", kept=True),
        Collected(kind="branch", name="genba/1-done", why="all of it is on main"),
        Collected(kind="working tree", name=".worktrees/genba-1-done", why="#1 is done", size=5 * 1024 * 1024),
    ]
    assert report(collected_lines(found, dry_run=True)) == snapshot("""\
 ● would go  branch        genba/1-done             0 B   all of it is on main
 ● would go  working tree  .worktrees/genba-1-done  5 MB  #1 is done
 · stays     branch        genba/3-keep             0 B   1 commit is nowhere else
""")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("2026-01-05T14:29:59.000000Z", "just now"),
        ("2026-01-05T14:20:00.000000Z", "10 min ago"),
        ("2026-01-05T10:20:00+00:00", "4 h ago"),
        ("2026-01-01T10:20:00", "4 d ago"),
        ("2027-01-01T10:20:00Z", "just now"),
        ("yesterday", ""),
        ("", ""),
    ],
)
def test_how_long_ago(text: str, shown: str) -> None:
    assert ago(text, NOW) == shown


# ── hostile text ─────────────────────────────────────────────────────────────────────────────────────────────────────


def every_screen(text: str, columns: int) -> list[str]:
    marks = (GoalMark(name=text, status="failed"),)
    worker = WorkerView(task=1, title=text, agent=text, step=text, iteration=2, doing=text, goals=marks)
    need = DecisionView(task=1, title=text, kind=EscalationKind.QUESTION, question=text, command='genba answer 1 "…"')
    wait = WaitView(task=1, title=text, why=text, until=text)
    picture = FleetView(
        project=text, executor=text, slots=2, workers=(worker, worker), waits=(wait,), needs=(need,), paused=text,
        queue=(QueueEntryView(task=1, target=text, title=text, detail=text),),
    )  # fmt: skip
    end = TaskResult(task=1, title=text, agent=text, detail=text, command="genba task show 1")
    part = TaskResult(task=2, parent=1, title=text, agent=text, detail=text)
    summary = WorkSummary(ended=WorkEndReason.EMPTY, tasks=(end, part), needs=(need,), waits=(wait,))
    asked = Escalation(task=1, kind=EscalationKind.CONFLICT, question=text, evidence={"detail": text})
    entry = MergeEntry(
        task=1, run=text, branch=text, commit="abc", target=text, title=text, detail=text, paths=(text, text)
    )
    session = FleetSession(run=text, task=1, agent=text, attempt=1, status="ended", outcome="failed", reason=text)
    return [
        *picture_lines(picture, columns),
        *summary_lines(summary, columns),
        *escalation_lines((asked,), {1: text}, NOW, columns),
        *queue_lines((entry,), NOW, columns),
        *session_lines((session,), {1: text}, NOW, columns),
    ]


def check_lines(lines: list[str], columns: int) -> None:
    for line in lines:
        assert width(line) <= columns, line
        assert len(line.splitlines()) <= 1
        assert not any(unicodedata.category(letter) in ("Cc", "Cf", "Cs") for letter in line), ascii(line)


@pytest.mark.parametrize("columns", [80, 100])
@pytest.mark.parametrize("text", HOSTILE)
def test_no_text_of_others_breaks_a_screen(text: str, columns: int) -> None:
    lines = every_screen(text, columns)
    check_lines(lines, columns)
    assert any('genba answer 1 "…"' in line for line in lines)


@given(st.text(max_size=60), st.integers(0, 40))
def test_a_cell_has_the_given_width(text: str, columns: int) -> None:
    shown = cell(text)
    assert width(fit(shown, columns)) == columns
    assert width(cut(shown, columns)) <= columns
    assert cut(shown, width(shown)) == shown


@given(st.text(max_size=40))
def test_an_event_is_one_line_whatever_it_says(text: str) -> None:
    event = FleetEvent(kind=FleetEventKind.FAILED, task=1, title=text, agent=text, detail=text, command=text)
    check_lines([event_line(event)], 10_000)


def test_a_screen_that_is_too_low_tells_how_many_are_not_shown() -> None:
    many = FleetView(
        slots=64,
        workers=tuple(WorkerView(task=number, title=f"task {number}") for number in range(1, 65)),
        queue=tuple(QueueEntryView(task=number, target="main") for number in range(70, 90)),
        needs=NEEDS,
    )
    lines = picture_lines(many, 100, rows=24)
    assert len(lines) <= 24
    assert any("more" in line for line in lines)
    assert any('genba answer 18 "…"' in line for line in lines)


@pytest.mark.parametrize("columns", [80, 100])
def test_the_live_view_reads_the_same_without_colour(columns: int) -> None:
    from genba.entrypoints.cli.rendering.work_live import LiveFleetView

    screen = io.StringIO()
    console = Console(file=screen, width=columns, height=50, force_terminal=True, no_color=True, color_system=None)
    with LiveFleetView(console) as view:
        view(FleetEvent(kind=FleetEventKind.STEP, task=1, detail="not worth a line here"))
        view(FleetEvent(kind=FleetEventKind.MERGED, task=12, title="[bold]markup[/bold]", detail="3f9c2ab into main"))
        view.show(PICTURE)
    shown = screen.getvalue()
    assert " ● merged      #12 [bold]markup[/bold]  3f9c2ab into main" in shown
    assert "not worth a line here" not in shown
    for line in picture_lines(PICTURE, columns):
        assert line.replace(" ◐ ", "", 1).rstrip() in shown
