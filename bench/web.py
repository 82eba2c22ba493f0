"""The dashboard in a real browser: a large board and a long log beside small ones, and what its server keeps."""

import asyncio
import contextlib
import functools
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from http.client import HTTPResponse
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from bench.measuring import Row, clean_environment
from genba.blackboard.database.store import Statement, Transaction
from genba.blackboard.fleet.fleet_board import FleetBoard
from genba.connections.git.worktrees.trash import delete_later
from genba.domain import events
from genba.domain.sessions.workspaces import Workspace
from genba.domain.tasks.task import Actor, ActorKind, Priority, TaskDraft
from genba.wiring.project.project_context import ProjectContext

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

    from genba.blackboard.tasks.board import Blackboard

TASKS, LINES, EVENTS = 1_000, 100_000, 10_000
ROUNDS = 9
_DRAWN_AFTER = 100
_TOKEN = "operator-of-the-bench"
_PERSON = Actor(ActorKind.HUMAN, "bench")
_AT = "2026-01-01T00:00:00.000Z"
_STATUSES = ("backlog", "open", "in_progress", "review", "done")
_ADD = Statement("""
INSERT INTO tasks (project_id, number, title, description, status, created_at, updated_at)
VALUES (:project, :number, :title, :body, :status, :at, :at)
""")
_PAINTED = "() => performance.getEntriesByType('paint').some((each) => each.name === 'first-contentful-paint')"
_WHEN = "() => performance.getEntriesByName('first-contentful-paint')[0].startTime / 1000"
_NOTICE = """(text) => {
  window.seen = 0;
  const look = () => {
    const there = document.querySelector("#live").textContent.includes(text);
    requestAnimationFrame(there ? () => (window.seen = Date.now()) : look);
  };
  look();
}"""


@dataclass(frozen=True)
class Served:
    """A project, and its dashboard in a process of its own."""

    context: ProjectContext
    board: "Blackboard"
    url: str
    process: int

    def memory(self) -> int:
        """What its server holds, in kB."""
        result = Path(f"/proc/{self.process}/status").read_text("ascii")
        return next(int(line.split()[1]) for line in result.splitlines() if line.startswith("VmRSS:"))


def rows() -> list[Row]:
    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if found is None:
        return [Row("the dashboard in a browser", "not run: there is no chromium (Debian: apt-get install chromium)")]
    from playwright.sync_api import sync_playwright  # noqa: PLC0415  (where there is a browser)

    folder = Path(tempfile.mkdtemp(prefix="genba-bench-"))
    words = ["--disable-dev-shm-usage", *(["--no-sandbox"] if os.geteuid() == 0 else [])]
    try:
        with _served(folder / "empty") as empty, _served(folder / "full") as full:
            full.board.store.write(_fill)
            with sync_playwright() as playing:
                browser = playing.chromium.launch(executable_path=found, args=words)
                painted = [*_boards(browser, empty, full), *_logs(browser, full), _seen(browser, full)]
                browser.close()
            return [*painted, _kept(full)]
    finally:
        delete_later(folder)


# ── first paint ──────────────────────────────────────────────────────────────────────────────────────────────────────


def _boards(browser: "Browser", empty: Served, full: Served) -> list[Row]:
    """Write to each project, so that no cached page is valid."""
    small, large = _page(browser, empty), _page(browser, full)
    idle = FleetBoard(empty.board)
    times: dict[str, list[float]] = {"empty": [], "full": []}
    for _ in range(ROUNDS + 1):
        idle.pause_project(False, _PERSON)
        times["empty"].append(_first_paint(small, f"{empty.url}/board"))
        full.board.comment(1, "Still at it.", _PERSON)
        times["full"].append(_first_paint(large, f"{full.url}/board"))
    for page in (small, large):
        page.context.close()
    return [_painted(f"board of {TASKS:,} tasks / empty board, first paint", times["full"], times["empty"])]


def _logs(browser: "Browser", full: Served) -> list[Row]:
    """Each is read for the first time."""
    page = _page(browser, full)
    times: dict[str, list[float]] = {"short": [], "long": []}
    for number in range(ROUNDS + 1):
        for name, lines in (("short", 10), ("long", LINES)):
            run = f"{name}-{number}"
            _journal(full, run, lines)
            times[name].append(_first_paint(page, f"{full.url}/sessions/{run}"))
    page.context.close()
    return [_painted(f"log of {LINES:,} lines / of 10, first paint", times["long"], times["short"])]


def _painted(what: str, large: list[float], small: list[float]) -> Row:
    """The first of each does not count: the browser fills its cache."""
    big, little = statistics.median(large[1:]), statistics.median(small[1:])
    return Row(what, f"{big * 1000:.0f} ms beside {little * 1000:.0f} ms", big / little, 3)


def _first_paint(page: "Page", url: str) -> float:
    page.goto(url)
    page.wait_for_function(_PAINTED)
    return float(page.evaluate(_WHEN))


# ── what several see ─────────────────────────────────────────────────────────────────────────────────────────────────


def _seen(browser: "Browser", full: Served) -> Row:
    """Another process writes; two browsers look at the board of 1,000 tasks. The later of the two counts."""
    pages = [_page(browser, full), _page(browser, full)]
    times = []
    for page in pages:
        page.goto(f"{full.url}/board")
        page.wait_for_selector("#line[data-state=live]")
    for number in range(ROUNDS):
        title = f"Seen by both {number}"
        for page in pages:
            page.evaluate(_NOTICE, title)
        began = time.time()
        full.board.add(TaskDraft(title=title, number=TASKS + 1 + number, priority=Priority.CRITICAL), _PERSON)
        for page in pages:
            page.wait_for_function("() => window.seen > 0")
        times.append(max(float(page.evaluate("() => window.seen")) for page in pages) / 1000 - began)
    for page in pages:
        page.context.close()
    middle = statistics.median(times)
    figure = f"{middle * 1000:.0f} ms, at worst {max(times) * 1000:.0f} ms"
    return Row("change seen by a second browser / one second", figure, middle, 1)


# ── what the server keeps ────────────────────────────────────────────────────────────────────────────────────────────


def _kept(full: Served) -> Row:
    """A browser reloads its page after each change, while others write continuously.

    Who writes waits now and then until the page was drawn once more: otherwise the server would only get
    10,000 events, and hardly have anything to do with them.
    """
    stop, drawn = threading.Event(), [0]
    listener = threading.Thread(target=_listen, args=(full, stop, drawn))
    listener.start()
    memory = {}
    for number in range(1, EVENTS + 1):
        full.board.comment(number % TASKS + 1, "A word about it.", _PERSON)
        if number % _DRAWN_AFTER == 0:
            before, deadline = drawn[0], time.monotonic() + 60
            while drawn[0] == before and time.monotonic() < deadline:
                time.sleep(0.01)
        if number in (EVENTS // 10, EVENTS):
            memory[number] = full.memory()
    stop.set()
    full.board.comment(1, "The last word.", _PERSON)
    listener.join()
    early, late = memory[EVENTS // 10] / 1024, memory[EVENTS] / 1024
    figure = f"{late:.0f} MB beside {early:.0f} MB, drawn {drawn[0]:,} times"
    return Row(f"memory of the server after {EVENTS:,} events / after {EVENTS // 10:,}", figure, late / early, 1.2)


def _listen(full: Served, stop: threading.Event, drawn: list[int]) -> None:
    with _asked(full, "/live") as stream:
        for line in stream:
            if stop.is_set():
                return
            if line.startswith(b"event: changed"):
                with _asked(full, "/board") as answer:
                    answer.read()
                drawn[0] += 1


def _asked(served: Served, path: str) -> HTTPResponse:
    request = urllib.request.Request(
        f"{served.url}{path}", headers={"authorization": f"Bearer {_TOKEN}", "genba-live": "1"}
    )
    answer: HTTPResponse = urllib.request.urlopen(request, timeout=60)
    return answer


# ── the ground ───────────────────────────────────────────────────────────────────────────────────────────────────────


@contextlib.contextmanager
def _served(root: Path) -> Iterator[Served]:
    subprocess.run(["git", "init", "-q", "-b", "main", str(root)], check=True)
    for name, value in (("user.name", "Bench"), ("user.email", "bench@localhost")):
        subprocess.run(["git", "config", name, value], cwd=root, check=True)
    subprocess.run(["git", "commit", "-q", "--allow-empty", "-m", "Begin"], cwd=root, check=True)
    words = [str(Path(sys.executable).parent / "genba"), "serve", "--port", "0"]
    environment = {**clean_environment(), "GENBA_SERVE_TOKEN": _TOKEN}
    context = asyncio.run(ProjectContext.find(root))
    board = context.board()
    process = subprocess.Popen(
        words, cwd=root, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    assert process.stdout is not None
    try:
        url = process.stdout.readline().partition("/enter")[0]
        yield Served(context=context, board=board, url=url, process=process.pid)
    finally:
        process.send_signal(signal.SIGINT)
        process.wait()
        process.stdout.close()
        context.close()


def _page(browser: "Browser", served: Served) -> "Page":
    """A signed-in browser."""
    page = browser.new_context(viewport={"width": 1280, "height": 800}).new_page()
    page.set_default_timeout(60_000)
    page.goto(f"{served.url}/enter#token={_TOKEN}")
    page.wait_for_url(lambda url: "/enter" not in url)
    return page


def _fill(tx: Transaction) -> None:
    """Tasks in every column."""
    tx.do_each(
        _ADD,
        [
            {
                "project": tx.project,
                "number": number,
                "title": f"Part {number} of the shop, with a title as long as titles are",
                "body": "Some words that say what is to be done. " * 20,
                "status": _STATUSES[number % len(_STATUSES)],
                "at": _AT,
            }
            for number in range(1, TASKS + 1)
        ],
    )


def _journal(full: Served, run: str, lines: int) -> Path:
    """The journal of a run, as it would have written it."""
    place = Workspace(run=run, path="/x", git_dir="/x", branch="x", base_branch="main", base="", isolated=True)
    start = events.RunStarted(
        time=_AT, run=run, agent="worker", issue=None, adapter="scripted", model="m", definition="", workspace=place,
        title="Make tea", limits={}, process=1, sandbox="worktree",
    )  # fmt: skip
    folder = full.context.layout.run_folder(run)
    folder.mkdir(parents=True, exist_ok=True)
    path = full.context.layout.main.parent / f"{run}.jsonl"
    with path.open("wb") as file:
        file.write(msgspec.json.encode(start) + b"\n")
        file.writelines(_lines()[:lines])
    (folder / "journal").write_text(str(path), "utf-8")
    return path


@functools.cache
def _lines() -> list[bytes]:
    output = "what an agent prints while it works, again and again and again"
    lines = (events.AgentOutput(time=_AT, stream="stdout", text=f"{each} {output}") for each in range(LINES))
    return [msgspec.json.encode(line) + b"\n" for line in lines]
