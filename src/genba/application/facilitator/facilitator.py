"""The facilitator of a project: what it sees of the repository, and its settings."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import msgspec

from genba.application.project.base_branch import base_branch
from genba.application.sessions.host import host_name
from genba.blackboard.fleet.fleet_board import FleetBoard
from genba.blackboard.triage.triage_board import FieldBoard
from genba.coordination.engine.worker_liveness import absent
from genba.coordination.facilitator.facilitator import (
    Discovered,
    FacilitationMode,
    Facilitator,
    Journals,
    Scope,
    TriageResult,
)
from genba.coordination.facilitator.issue_facts import is_board
from genba.domain.decoding import reader
from genba.domain.errors import (
    AccessRefusedError,
    GenbaError,
    NotFoundError,
    RecoverableError,
    StateConflictError,
    UsageError,
)
from genba.domain.events import Event, RunEnded, RunResumed, RunStarted
from genba.domain.facilitation import (
    AgentRegistry,
    AvailableAgent,
    CompletionCondition,
    FieldReport,
    Scanned,
    ScanPosition,
    SeenSession,
)
from genba.domain.timestamps import format_time, hours_between
from genba.domain.tracker.commit_time import commit_time
from genba.judgement.tracking.issue_changes import Wanted
from genba.judgement.triage.maintenance import Keeping, needs_a_person

if TYPE_CHECKING:
    from genba.application.project.project_context import ProjectContext
    from genba.application.tracker.github import GitHubOffice
    from genba.blackboard.triage.triage_board import SessionSeen
    from genba.domain.tracker.outbox import SendResult

_MOST_JOURNALS = 500
_MOST_BOUNDARIES = 50
_MOST_TREES = 50
_ALIVE_ELSEWHERE_HOURS = 1.0
_SESSION_EVENT = b'"event":"run_'
_PATIENCE_SECONDS = 60.0
_NEVER_READ = "the issues were never read: genba sync"


class _Run(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What was read of the journal of a run."""

    read: int = 0
    issue: int = 0
    agent: str = ""
    branch: str = ""
    started_at: str = ""
    last_at: str = ""
    outcome: str = ""
    reason: str = ""


_runs = reader(dict[str, _Run])
_event = reader(Event)


def now() -> str:
    return format_time(datetime.now(UTC))


class ProjectReader:
    """Looks at a repository, its agents, its runs. It changes nothing."""

    def __init__(self, context: ProjectContext, base: str, board: FleetBoard) -> None:
        self.context = context
        self.base = base
        self.board = board
        self._host = host_name()

    def discover(self) -> Discovered:
        """The agents that can be called, and the first problem of each that cannot."""
        infos, broken = self.context.registry.agents()
        offered = tuple(
            AvailableAgent(
                name=info.name,
                display_name=info.display_name,
                description=info.description,
                capabilities=info.capabilities,
                parameters={name: msgspec.to_builtins(each) for name, each in info.parameters.items()},
                answers=info.answers,
                asks=info.asks,
            )
            for info in infos
        )
        return Discovered(agents=offered, broken={name: str(problems[0]) for name, problems in broken.items()})

    async def scan(self, position: ScanPosition | None) -> Scanned:
        return await self.context.ports.repository.scan().scan(self.base, position)

    async def commits(self, names: Iterable[str]) -> Scanned:
        return await self.context.ports.repository.scan().again(names)

    async def around(self, branches: frozenset[str]) -> tuple[Mapping[str, str], str]:
        return await self._dirty(branches), await self._horizon()

    async def _dirty(self, branches: frozenset[str]) -> dict[str, str]:
        if not branches:
            return {}
        trees, found = self.context.ports.repository.worktrees(), {}
        there = {name: folder for name, folder in (await self.context.layout.checkouts()).items() if name in branches}
        for name, folder in list(there.items())[:_MOST_TREES]:
            try:
                if folder.is_dir() and folder != self.context.layout.main and await trees.uncommitted(folder):
                    found[name] = str(folder)
            except GenbaError:
                continue  # a tree that cannot be looked at tells nothing
        return found

    async def _horizon(self) -> str:
        """The time of the newest commit behind which a shallow clone knows nothing."""
        try:
            cut_off = (self.context.layout.git_dir / "shallow").read_text("ascii").split()[:_MOST_BOUNDARIES]
        except (OSError, ValueError):
            return ""
        if not cut_off:
            return ""
        times = await self.context.layout.git.text("log", "--no-walk", "--format=%ct", *cut_off, "--")
        return max((commit_time(each) for each in times.split()), default="")

    async def conditions(self, numbers: Collection[int]) -> Mapping[int, tuple[CompletionCondition, ...]]:
        from genba.application.facilitator.completion_conditions import conditions_of  # noqa: PLC0415  (only where something is in progress)

        return await conditions_of(self.context, self.base, numbers)

    @cached_property
    def _absent(self) -> frozenset[str]:
        return absent(self.board)

    def alive(self, session: SessionSeen) -> bool:
        """True while a process works on it: an executor by its lock, a run of its own by that of its branch."""
        if session.connected:
            return True
        if session.executor:
            return session.executor not in self._absent
        if session.host in ("", self._host):
            return bool(session.branch) and self.context.is_running(session.branch)
        return hours_between(session.heartbeat_at, now()) < _ALIVE_ELSEWHERE_HOURS

    def journals(self, position: str) -> Journals:
        """Runs on issues, by their journals: of each only what was written since the last look."""
        known = _runs.decode(position) if position else {}
        seen: dict[str, _Run] = {}
        runs: dict[int, list[SeenSession]] = {}
        for path in self.context.journals()[:_MOST_JOURNALS]:
            run = seen[path.stem] = known.get(path.stem) or _Run()
            _read_on(path, run)
            if run.issue:
                runs.setdefault(run.issue, []).append(self._session(path.stem, run))
        for found in runs.values():
            found.sort(key=lambda each: each.started_at)
        return Journals(runs=runs, position=msgspec.json.encode(seen).decode() if seen else "")

    def _session(self, name: str, run: _Run) -> SeenSession:
        alive = not run.outcome and bool(run.branch) and self.context.is_running(run.branch)
        return SeenSession(
            run=name,
            agent=run.agent,
            status="ended" if run.outcome else "running",
            alive=alive,
            outcome=run.outcome,
            reason=run.reason,
            branch=run.branch,
            started_at=run.started_at,
            last_at=run.last_at,
        )


def _read_on(path: Path, run: _Run) -> None:
    """What a journal tells of the run as a whole, from where it was read last."""
    try:
        size = path.stat().st_size
        if size == run.read:
            return
        with path.open("rb") as file:
            run.read = run.read if size > run.read else 0
            file.seek(run.read)
            for line in file:
                if not line.endswith(b"\n"):
                    break
                run.read += len(line)
                if _SESSION_EVENT in line[:64]:
                    _take(line, run)
    except OSError:
        return


def _take(line: bytes, run: _Run) -> None:
    try:
        event = _event.decode(line)
    except (ValueError, RecursionError):
        return
    if isinstance(event, RunStarted):
        run.issue, run.agent = event.issue or 0, event.agent
        run.branch, run.started_at = event.workspace.branch, _uniform(event.time)
    elif isinstance(event, RunResumed):
        run.outcome = run.reason = ""
    elif isinstance(event, RunEnded):
        run.outcome, run.reason = str(event.outcome), event.reason
    run.last_at = _uniform(event.time)


def _uniform(text: str) -> str:
    from genba.coordination.facilitator.issue_facts import uniform  # noqa: PLC0415  (one form for all times)

    return uniform(text)


async def facilitator(context: ProjectContext) -> Facilitator:
    """The facilitator of this project."""
    settings = context.project.fleet.facilitator
    github = context.project.file.tracker.github
    board = context.board(make=github is not None)
    repository = ProjectReader(context, await base_branch(context) or "main", FleetBoard(board))
    mode = FacilitationMode(
        project=context.project.name or context.layout.main.name,
        worker=context.project.fleet.work.agent,
        reviewer=context.project.fleet.review.agent,
        repository=github.repository if github is not None else "",
        everything=github is None or not (github.label or github.board),
        stages=context.project.stages,
        active_hours=settings.active_hours,
        stale_days=settings.stale_days,
        keeping=Keeping(labels=settings.labels.by_state(), language=context.project.fleet.workflow.language),
    )
    return Facilitator(FieldBoard(board), repository, mode, now)


def report_of(look: TriageResult) -> dict[str, Any]:
    """The report for a program: the four outputs by their names, and what else was seen."""
    return report_values(look.report, look.moves.command_for)


def report_values(report: FieldReport, command_for: Callable[[int], str]) -> dict[str, Any]:
    """The same of a report alone; `command_for` gives the next command of an issue."""
    values: dict[str, Any] = msgspec.to_builtins(report)
    del values["agents"], values["resting"]
    registry = AgentRegistry(agents=report.agents, discovered_at=report.looked_at)
    over = {each.issue for each in report.assessments if each.over}
    for each in values["assessments"]:
        each["command"] = "" if each["issue"] in over else command_for(each["issue"])
    waiting = [{"issue": each.issue, "why": why} for each in report.assessments if (why := needs_a_person(each))]
    return {**values, "agent_registry": msgspec.to_builtins(registry), "attention": waiting}


def scope_of(
    context: ProjectContext,
    label: str | None,
    project: int | None,
    owner: str | None,
    command: str = "genba facilitate",
) -> Scope:
    """What is asked for, as far as the project has it."""
    github = context.project.file.tracker.github
    if owner is not None and project is None:
        raise UsageError("--project-owner belongs to --project", hint=f"{command} --project 5 --project-owner acme")
    if project is None:
        return Scope(label=label or "")
    if github is None:
        raise UsageError(
            "--project names a board of GitHub, and the issues of this project do not live there",
            unchanged="nothing was changed.",
            hint=f"{command}   or   genba init --github OWNER/REPOSITORY",
        )
    return Scope(label=label or "", board=(owner or github.repository.partition("/")[0], project))


async def fresh_copy(
    context: ProjectContext, scope: Scope, offline: bool, old_board: bool = True
) -> tuple[Scope, tuple[str, ...]]:
    """Bring the copy of the tracker up to date. Where that cannot be, the copy serves, and its age is reported.

    The scope that comes back names what was never read. Without `old_board` it has the issues of its board only where
    the board was read now. Raises NotFoundError where there is no such board.
    """
    office = context.office()
    if office is None:
        return scope, ()
    if offline:
        kept = as_kept(context, scope, command=_facilitate(scope))
        return kept, kept.unread or (_age(office),)
    refused = ""
    try:
        try:
            await office.synchronizer().sync(label=scope.label or None, board=scope.board)
        except StateConflictError as error:  # such as another process that reads the issues now; a board has no lease
            refused = error.message
        scope = await _with_board(context, office, scope)
    except NotFoundError:
        raise
    except (RecoverableError, AccessRefusedError, StateConflictError) as error:
        refused = error.message
    finally:
        await office.close()
    if not refused:
        return scope, ()
    kept = as_kept(context, scope, command="genba doctor")
    left = kept.unread or (_age(office), *(("the board is as it was read last",) if scope.board else ()))
    note = "; ".join((f"GitHub was not asked: {refused}", *left))
    return kept if old_board else scope, (note,)


async def _with_board(context: ProjectContext, office: GitHubOffice, scope: Scope) -> Scope:
    """The scope with the issues on its board, which are kept for a look that cannot ask for them."""
    if scope.board is None:
        return scope
    numbers = await _on_board(office, *scope.board)
    FieldBoard(context.board()).set_position(_board_name(scope), msgspec.json.encode(sorted(numbers)).decode())
    return msgspec.structs.replace(scope, numbers=numbers)


async def _on_board(office: GitHubOffice, owner: str, project: int) -> frozenset[int]:
    """The issues of the repository that have a card on a board."""
    field = office.settings.board.field if office.settings.board is not None else "Status"
    found: set[int] = set()
    following = ""
    while True:
        page = await office.issues.cards(owner, project, field, following=following)
        found |= {number for number, _ in page.cards}
        following = page.following
        if not following:
            return frozenset(found)


def as_kept(context: ProjectContext, scope: Scope, command: str = "genba sync") -> Scope:
    """The scope by what was read of the tracker before. It names what was never read, with a command that reads it."""
    office = context.office()
    if office is None:
        return scope
    unread: list[str] = [] if office.board().value("full_at") else [_NEVER_READ]
    if scope.board is not None:
        owner, project = scope.board
        kept = FieldBoard(context.board()).positions().get(_board_name(scope), "")
        if kept:
            scope = msgspec.structs.replace(scope, numbers=frozenset(reader(list[int]).decode(kept)))
        elif unread or not _is_copied(office, owner, project):
            unread.append(f"the board {owner}/{project} was never read: {command}")
    return msgspec.structs.replace(scope, unread=tuple(unread))


def _is_copied(office: GitHubOffice, owner: str, project: int) -> bool:
    """Whether the copy of an issue says where it lies on a board: it does of the board that the settings name."""
    wanted = Wanted.by(office.settings)
    return wanted.project is not None and is_board(wanted.owner, wanted.project, (owner, project))


def _facilitate(scope: Scope) -> str:
    owner, project = scope.board or ("", 0)
    return f"genba facilitate --project {project} --project-owner {shlex.quote(owner)}"


def _board_name(scope: Scope) -> str:
    owner, number = scope.board or ("", 0)
    return f"board:{owner.casefold()}/{number}"


def _age(office: GitHubOffice) -> str:
    hours = hours_between(office.board().value("full_at"), now())
    return f"the copy of the issues is {hours:.0f} hours old" if hours >= 1 else "the copy of the issues is fresh"


async def say(
    context: ProjectContext,
    look: TriageResult,
    words: Mapping[tuple[str, int], str] = MappingProxyType({}),
    *,
    offline: bool = False,
) -> TriageResult:
    """Carry out what a look proposes, and send it where it lives elsewhere. See `Facilitator.apply` for `words`."""
    report = await (await facilitator(context)).apply(look, words)
    sent = await _send(context) if not offline else None
    if sent is not None and (sent.left or sent.failed):
        why = sent.refused or sent.why or (sent.failed[0].error if sent.failed else "")
        message = f"{sent.left + len(sent.failed)} still wait in the outbox: {why}   genba outbox list"
        report = msgspec.structs.replace(report, incomplete=(*report.incomplete, message))
    return look.after(report)


async def _send(context: ProjectContext) -> SendResult | None:
    """Send what waits in the outbox, where the settings say so."""
    office = context.office()
    if office is None or not office.settings.send:
        return None
    try:
        return await office.sender().send(_PATIENCE_SECONDS)
    finally:
        await office.close()
