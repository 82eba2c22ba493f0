"""Housekeeping: what ended tasks left is cleared away after a time, and nothing becomes unreachable.

First everything is found, then each thing is cleared away for itself. A process that dies in between leaves what the
next one finds again; what was moved out of the way is deleted by the next run.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from genba.domain.decoding import reader
from genba.domain.errors import GenbaError
from genba.domain.events import Event, RunEnded, RunResumed, RunStarted
from genba.domain.sessions.outcomes import Outcome
from genba.domain.tasks.housekeeping import Candidate, Collected, SessionLeftovers

if TYPE_CHECKING:
    from genba.application.ports import Housekeeping
    from genba.application.project.project_context import ProjectContext
    from genba.domain.tasks.task import TaskStatus

__all__ = ["Collected", "collect"]

_TAIL = 256 * 1024


async def collect(
    context: ProjectContext, *, dry_run: bool, keep_days: int, now: datetime | None = None, rescued: bool = False
) -> list[Collected]:
    """Clear away what tasks left that ended longer ago than `keep_days`; tells what went, and what stays and why.

    With `rescued` old rescue refs go although nothing else has their commits.
    """
    moment = now or datetime.now(UTC)
    before = moment - timedelta(days=keep_days)
    housekeeping = context.ports.housekeeping()
    async with housekeeping.alone() if not dry_run else contextlib.nullcontext():
        runs = await asyncio.to_thread(_runs, context, before)
        candidates = await housekeeping.find(runs, before.timestamp(), rescued)
        done = [await _cleared(candidate, dry_run) for candidate in candidates]
        staying = {found.name for found in done if found.kept and found.kind == "branch"}
        files = await asyncio.to_thread(lambda: list(_files(context, housekeeping, runs, before, staying)))
        done += [await _cleared(candidate, dry_run) for candidate in files]
        done += await asyncio.to_thread(_durable_runs, context, runs, before, dry_run)
        if not dry_run:
            done += await _forgotten(context, housekeeping, runs)
    return done


async def _cleared(candidate: Candidate, dry_run: bool) -> Collected:
    if candidate.act is None or dry_run:
        return candidate.found
    try:
        stays = await candidate.act()
    except (GenbaError, OSError) as error:
        stays = error.message if isinstance(error, GenbaError) else str(error)
    return msgspec.structs.replace(candidate.found, why=stays, kept=True) if stays else candidate.found


async def _forgotten(
    context: ProjectContext, housekeeping: Housekeeping, runs: dict[str, SessionLeftovers]
) -> list[Collected]:
    """What the remote has of sessions that are over, as far as other refs there have it too."""
    remote = context.project.fleet.merge.remote
    over = [fact for fact in runs.values() if fact.over and fact.branch]
    if not remote or not over:
        return []
    sharing, found = housekeeping.shared(remote), []
    try:
        there = await sharing.listed()
        for fact in over:
            ref = f"refs/genba/sessions/{fact.run}"
            if ref in there and await sharing.forget(fact.run, fact.branch):
                found.append(Collected(kind="shared ref", name=f"{remote} {ref}", why=fact.why))
    except GenbaError as error:
        found.append(Collected(kind="shared ref", name=remote, why=error.message, kept=True))
    return found


def _durable_runs(
    context: ProjectContext, runs: dict[str, SessionLeftovers], before: datetime, dry_run: bool
) -> list[Collected]:
    """What the engine remembers of parts and merge turns that ended, of sessions that are over."""
    if not context.has_board():
        return []
    from genba.coordination.engine.durable_engine import Workflow, prune  # noqa: PLC0415  (without tasks: no database)
    from genba.domain.fleet.records import session_of_workflow  # noqa: PLC0415

    def may_go(workflow: Workflow) -> bool:
        run = session_of_workflow(workflow.id)
        return not run or (run in runs and runs[run].over)

    project = context.board(make=False).store.project
    try:
        count = prune(context.database(), project=project, before=before, may_go=may_go, dry_run=dry_run)
    except GenbaError as error:
        return [Collected(kind="engine", name="durable runs", why=error.message, kept=True)]
    why = f"they ended before {before.date().isoformat()}"
    return [Collected(kind="engine", name=f"{count} durable runs", why=why)] if count else []


def _runs(context: ProjectContext, before: datetime) -> dict[str, SessionLeftovers]:
    """Everything that is known of the runs of this project: from the blackboard, and else from their journals."""
    found: dict[str, SessionLeftovers] = {}
    tasks: dict[int, tuple[TaskStatus, str]] = {}
    if context.has_board():
        from genba.blackboard.fleet.ended_sessions import known_runs, known_tasks  # noqa: PLC0415  (without tasks: no database)

        store = context.board(make=False).store
        tasks = store.read(known_tasks)
        for known in store.read(known_runs):
            over = known.ended and _is_before(known.since, before)
            found[known.run] = SessionLeftovers(
                run=known.run,
                over=over,
                why=_of_task(known.task, known.status, known.since),
                task=known.task,
                branch=known.branch,
                base_branch=known.base_branch,
            )
    for folder in sorted((context.layout.own / "runs").glob("*")):
        if folder.name not in found:
            found[folder.name] = _by_journal(context, folder, tasks, before)
    return found


def _by_journal(
    context: ProjectContext, folder: Path, tasks: dict[int, tuple[TaskStatus, str]], before: datetime
) -> SessionLeftovers:
    """A run that the blackboard does not know. It is over with its task; on no task, when it ended or its process."""
    fact = SessionLeftovers(run=folder.name, over=False, why="it never ended", recorded=False)
    journal = _journal_of(context, folder)
    if journal is None:
        return fact
    started = next((event for event in context.ports.journals.read(journal) if isinstance(event, RunStarted)), None)
    last = _last_of(journal)
    if started is None or last is None or (started.issue is not None and not isinstance(last, RunEnded)):
        return fact
    place = {"branch": started.workspace.branch, "base_branch": started.workspace.base_branch}
    fact = msgspec.structs.replace(fact, **place, task=started.issue, why="it can be resumed")
    if started.issue in tasks:
        status, changed = tasks[started.issue]
        since = max(changed, last.time)
        over = status.ended and _is_before(since, before)
        return msgspec.structs.replace(fact, over=over, why=_of_task(started.issue, status, since))
    if started.issue is not None and not (isinstance(last, RunEnded) and last.outcome is Outcome.COMPLETED):
        return fact
    if not isinstance(last, RunEnded) and context.is_running(fact.branch):
        return msgspec.structs.replace(fact, why="it runs")
    over, result = _is_before(last.time, before), _end_of(last)
    completed = isinstance(last, RunEnded) and last.outcome is Outcome.COMPLETED
    why = (
        result if over else f"{result}; go on: genba run --resume {folder.name}   clear it away: genba gc --keep-days 0"
    )
    return msgspec.structs.replace(fact, over=over, why=why, listed=not completed)


def _end_of(last: Event) -> str:
    """How a session without a task came to its end. One that was killed has not written any."""
    if not isinstance(last, RunEnded):
        return f"it stopped on {last.time[:10]} without an end"
    if last.outcome is Outcome.COMPLETED:
        return f"it ended on {last.time[:10]}"
    return f"{last.outcome} on {last.time[:10]}"


def _of_task(number: int, status: TaskStatus, since: str) -> str:
    return f"#{number} is {status} since {since[:10]}"


def _last_of(journal: Path) -> Event | None:
    """The last thing that a journal tells of the beginning or the end of its run."""
    last: Event | None = None
    with journal.open("rb") as file:
        file.seek(max(0, journal.stat().st_size - _TAIL))
        for line in file:
            try:
                event = reader(Event).decode(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(event, RunStarted | RunResumed | RunEnded):
                last = event
    return last


def _journal_of(context: ProjectContext, folder: Path) -> Path | None:
    """The journal of a run, as far as it is there and Genba's."""
    try:
        path = Path((folder / "journal").read_text("utf-8"))
    except OSError:
        return None
    return path if path.name == context.ports.journals.name(folder.name) and path.is_file() else None


def _files(
    context: ProjectContext,
    housekeeping: Housekeeping,
    runs: dict[str, SessionLeftovers],
    before: datetime,
    staying: set[str],
) -> Iterator[Candidate]:
    """Journals, the folders of runs, and the logs of goals."""
    layout = context.layout
    for folder in sorted((layout.own / "runs").glob("*")):
        fact = runs.get(folder.name)
        if fact is None or not fact.over or (fact.branch in staying and not fact.recorded):
            continue
        journal = _journal_of(context, folder)
        size = context.ports.files.size(folder) + (context.ports.files.size(journal) if journal is not None else 0)
        found = Collected(kind="run", name=folder.name, why=fact.why, size=size)
        if housekeeping.has_agent(folder):
            yield Candidate(msgspec.structs.replace(found, why="an agent of it still runs", kept=True))
            continue
        yield Candidate(
            found, partial(housekeeping.discard, folder.name, *([journal] if journal is not None else []), folder)
        )
    logs = _old_logs(context, before)
    if logs:
        found = Collected(
            kind="goal logs",
            name=f"{len(logs)} files",
            why="no task that is open names them",
            size=sum(context.ports.files.size(path) for path in logs),
        )
        yield Candidate(found, partial(housekeeping.discard, "goals", *logs))
    yield from _left_indexes(context, housekeeping, before)


def _old_logs(context: ProjectContext, before: datetime) -> list[Path]:
    in_use: set[str] = set()
    if context.has_board():
        from genba.blackboard.fleet.ended_sessions import logs_in_use  # noqa: PLC0415  (see _runs)

        in_use = context.board(make=False).store.read(logs_in_use)
    goals = context.layout.own / "goals"
    files = [path for path in goals.glob("*") if path.is_file() and path.stat().st_mtime < before.timestamp()]
    return [path for path in files if not any(path.name.startswith(name) for name in in_use)]


def _left_indexes(context: ProjectContext, housekeeping: Housekeeping, before: datetime) -> Iterator[Candidate]:
    """Copies of an index that a dead process had made to look at a tree."""
    for path in context.layout.own.glob("index-*"):
        if path.is_file() and path.stat().st_mtime < before.timestamp():
            found = Collected(kind="leftover", name=path.name, why="its process is gone", size=path.stat().st_size)
            yield Candidate(found, partial(housekeeping.discard, "index", path))


def _is_before(text: str, moment: datetime) -> bool:
    """Whether a time of ours is before a moment; what cannot be read is not."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return False
    return (at if at.tzinfo is not None else at.replace(tzinfo=UTC)) <= moment
