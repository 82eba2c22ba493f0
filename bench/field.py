"""The facilitator on 10,000 issues and 100,000 commits, beside a bare `git log` of the same history."""

import asyncio
import os
import resource
import subprocess
import tempfile
import time
from pathlib import Path

from bench.measuring import Row
from genba.application.facilitator.facilitator import facilitator
from genba.blackboard.database.store import Statement, Transaction
from genba.connections.git.worktrees.trash import delete_later
from genba.coordination.facilitator.facilitator import TriageResult
from genba.domain.facilitation import How, IssueFacts, SeenCommit
from genba.judgement.triage.assessment import assess_all
from genba.judgement.triage.health import health_of
from genba.judgement.triage.maintenance import Keeping, Known, actions
from genba.judgement.triage.orphaned_work import orphaned
from genba.judgement.triage.recommendations import TriageContext, recommend
from genba.wiring.project.project_context import ProjectContext

ISSUES, COMMITS = 10_000, 100_000
ROUNDS = 5
_LOG = ("git", "log", "-z", "--format=%H %ct%n%B")
_PIECE = 1 << 20
_ADD = Statement("""
INSERT INTO tasks (project_id, number, title, description, status, created_at, updated_at)
VALUES (:project, :number, :title, '', :status, :at, :at)
""")
_FORGET = tuple(Statement(f"DELETE FROM {table}") for table in ("field_issues", "field_commits", "field_positions"))


def rows() -> list[Row]:
    folder = Path(tempfile.mkdtemp(prefix="genba-bench-"))
    try:
        root = _repository(folder)
        found = asyncio.run(_measured(root))
    finally:
        delete_later(folder)
    bare, first, again, whole = (min(found[name]) for name in ("bare", "first", "again", "whole"))
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    what = f"{ISSUES:,} issues, {COMMITS:,} commits"
    judged = _judged()
    next_look = f"{again * 1000:.0f} ms, with one new commit; {whole * 1000:.0f} ms with every closed issue read too"
    return [
        Row(f"{what}: first look / git log", f"{first:.2f} s beside {bare:.2f} s", first / bare, 1.5),
        Row(f"{what}: next look / first look", next_look, again / first, 0.05),
        Row(f"{what}: memory / 500 MB", f"{memory:.0f} MB", memory / 500, 1),
        Row(f"{ISSUES:,} issues judged / git log", f"{judged * 1000:.0f} ms of the processor", judged / bare, 1),
    ]


async def _measured(root: Path) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {"bare": [], "first": [], "again": [], "whole": []}
    context = await ProjectContext.find(root)
    store = context.board().store
    store.write(_fill)
    for number in range(ROUNDS):
        found["bare"].append(_bare(root))
        store.write(_forget)
        found["first"].append((await _look(context))[0])
        _git(root, "commit", "-q", "--allow-empty", "-m", f"One more\n\nIssue: {number * 7 + 5}")
        seconds, look = await _look(context)
        found["again"].append(seconds)
        began = time.perf_counter()
        assert len(look.report.assessments) == ISSUES
        found["whole"].append(seconds + time.perf_counter() - began)
    context.close()
    return found


def _bare(root: Path) -> float:
    """The cost of reading the history: git writes hash, time and message of each commit.

    The reader only tells the commits apart and counts them. Nothing is parsed, kept or judged.
    """
    began = time.perf_counter()
    commits = 0
    with subprocess.Popen(_LOG, cwd=root, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        while piece := os.read(process.stdout.fileno(), _PIECE):
            commits += piece.count(b"\0")
    assert process.returncode == 0
    assert commits >= COMMITS - 1
    return time.perf_counter() - began


async def _look(context: ProjectContext) -> tuple[float, TriageResult]:
    began = time.perf_counter()
    look = await (await facilitator(context)).look()
    return time.perf_counter() - began, look


def _judged() -> float:
    """All that is decided about issues of which everything is known, in seconds of the processor."""
    now = "2026-01-08T08:00:00.000000Z"
    facts = {number: _facts(number) for number in range(1, ISSUES + 1)}
    began = time.process_time()
    found = assess_all(facts, now)
    following = recommend(found, facts, ())
    health_of(found, following)
    orphaned(found, facts, TriageContext())
    actions(found, facts, {}, Keeping(), Known())
    return time.process_time() - began


def _facts(number: int) -> IssueFacts:
    """Of ten issues seven are closed, eight have ten commits, and two wait for another."""
    time_ = "2026-01-06T08:00:00.000000Z"
    commits = tuple(
        SeenCommit(sha=f"{number * 10 + each:040x}", time=time_, how=How.TRAILER, on_base=True)
        for each in range(10 if number % 10 < 8 else 0)
    )
    return IssueFacts(
        number=number,
        title="Part of the shop",
        body="Some words that say what is to be done. " * 20,
        state="closed" if number % 10 < 7 else "open",
        commits=commits,
        dependencies=(number - 1,) if number % 5 == 0 else (),
        last_at=time_,
    )


def _fill(tx: Transaction) -> None:
    """One issue in twenty is open."""
    at = "2026-01-01T00:00:00.000000Z"
    tx.do_each(
        _ADD,
        [
            {
                "project": tx.project,
                "number": number,
                "title": f"Part {number} of the shop",
                "status": "done" if number % 20 else "open",
                "at": at,
            }
            for number in range(1, ISSUES + 1)
        ],
    )


def _forget(tx: Transaction) -> None:
    for statement in _FORGET:
        tx.do(statement)


def _repository(folder: Path) -> Path:
    root = folder / "repository"
    subprocess.run(["git", "init", "-q", "-b", "main", str(root)], check=True)
    for name, value in (("user.name", "Bench"), ("user.email", "bench@localhost"), ("gc.auto", "0")):
        _git(root, "config", name, value)
    writing = subprocess.Popen(["git", "fast-import", "--quiet"], cwd=root, stdin=subprocess.PIPE)
    assert writing.stdin is not None
    for number in range(1, COMMITS + 1):
        writing.stdin.write(_commit(number))
    writing.stdin.close()
    writing.wait()
    _git(root, "reset", "-q", "--hard", "main")
    return root


def _commit(number: int) -> bytes:
    issue = number * 7919 % ISSUES + 1
    text = f"Change part {number} of the shop\n\nWhy this was needed, in a sentence.\n\nIssue: {issue}\n"
    message = f"{text}Agent: iterator\nSession: iterator-{issue}-1-abcdef\n".encode()
    stamp = b"committer Bench <bench@localhost> %d +0000\n" % (1_700_000_000 + number * 60)
    content = b"M 100644 inline part\ndata %d\n%d\n" % (len(str(number)), number)
    return b"commit refs/heads/main\n" + stamp + b"data %d\n" % len(message) + message + content


def _git(root: Path, *words: str) -> None:
    subprocess.run(["git", *words], cwd=root, check=True, env={**os.environ, "GIT_OPTIONAL_LOCKS": "0"})
