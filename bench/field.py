"""The facilitator on 10,000 issues and 100,000 commits, beside a bare `git log` of the same history."""

import asyncio
import os
import resource
import subprocess
import tempfile
import time
from pathlib import Path

from bench.measuring import Row
from genba.blackboard.store import Statement, Transaction
from genba.connections.git.trash import delete_later
from genba.wiring.facilitating import facilitator
from genba.wiring.house import House

ISSUES, COMMITS = 10_000, 100_000
ROUNDS = 3
_LOG = ("git", "log", "--format=%H %ct%n%B")
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
    bare, first, again = (min(found[name]) for name in ("bare", "first", "again"))
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    what = f"{ISSUES:,} issues, {COMMITS:,} commits"
    return [
        Row(f"{what}: first look / git log", f"{first:.2f} s beside {bare:.2f} s, {memory} MB", first / bare, 1.5),
        Row(f"{what}: next look / first look", f"{again * 1000:.0f} ms, with one new commit", again / first, 0.05),
    ]


async def _measured(root: Path) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {"bare": [], "first": [], "again": []}
    house = await House.find(root)
    store = house.board().store
    store.write(_fill)
    for number in range(ROUNDS):
        found["bare"].append(_bare(root))
        store.write(_forget)
        found["first"].append(await _look(house))
        _git(root, "commit", "-q", "--allow-empty", "-m", f"One more\n\nIssue: {number * 7 + 5}")
        found["again"].append(await _look(house))
    house.close()
    return found


def _bare(root: Path) -> float:
    began = time.perf_counter()
    subprocess.run(_LOG, cwd=root, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - began


async def _look(house: House) -> float:
    began = time.perf_counter()
    await (await facilitator(house)).look()
    return time.perf_counter() - began


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
    told = f"Change part {number} of the shop\n\nWhy this was needed, in a sentence.\n\nIssue: {issue}\n"
    message = f"{told}Agent: iterator\nSession: iterator-{issue}-1-abcdef\n".encode()
    stamp = b"committer Bench <bench@localhost> %d +0000\n" % (1_700_000_000 + number * 60)
    content = b"M 100644 inline part\ndata %d\n%d\n" % (len(str(number)), number)
    return b"commit refs/heads/main\n" + stamp + b"data %d\n" % len(message) + message + content


def _git(root: Path, *words: str) -> None:
    subprocess.run(["git", *words], cwd=root, check=True, env={**os.environ, "GIT_OPTIONAL_LOCKS": "0"})
