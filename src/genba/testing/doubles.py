"""Scripted doubles of the ports. A double fails on an unexpected step; `finish` fails on one that was never used."""

from collections.abc import Sequence
from typing import TypeVar

import msgspec

from genba.domain.errors import GenbaError, NotFoundError, StateConflictError, UnrecoverableError, UsageError
from genba.domain.events import Event
from genba.domain.fleet.records import Review
from genba.domain.goals.verification import VerdictStatus, Verification
from genba.domain.ports import AgentInstance
from genba.domain.processes import OUTPUT_BYTES, Command, Ending, Exit, OutputListener
from genba.domain.sessions.evidence import Check, CheckResult, Commit, TreeFacts
from genba.domain.sessions.replies import AgentSession, Ask, InstanceStatus, Reply
from genba.domain.sessions.session import Briefing, Died, SessionEnd, SessionStart
from genba.domain.sessions.workspaces import (
    MergeResult,
    MergeStatus,
    Proposal,
    PullRequest,
    Removal,
    Workspace,
    WorkspaceRequest,
)
from genba.domain.tasks.statuses import refusal
from genba.domain.tasks.task import Actor, ActorKind, StatusChange, Task, TaskStatus
from genba.domain.tracker.issues import Issue, IssueChange

T = TypeVar("T")


class UnexpectedStep(AssertionError):
    """The script of a double and what really happened differ."""


class ManualClock:
    """Time that passes only in `sleep`."""

    def __init__(self, start: float = 1_000_000.0) -> None:
        self.time = start
        self.slept: list[float] = []

    def elapsed(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.time += seconds


class MemoryJournal:
    """Keeps the events of a run in a list."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def emit(self, event: Event) -> None:
        self.events.append(event)

    def room(self) -> int:
        return OUTPUT_BYTES

    def of(self, kind: type[T]) -> list[T]:
        return [event for event in self.events if isinstance(event, kind)]


class MemoryTracker:
    """Issues in a dictionary."""

    def __init__(self, *issues: Issue) -> None:
        self.issues = {issue.number: issue for issue in issues}
        self.comments: dict[int, list[str]] = {}

    async def read(self, number: int) -> Issue:
        if number not in self.issues:
            raise NotFoundError(f"there is no issue #{number}")
        return self.issues[number]

    async def labelled(self, label: str) -> tuple[Issue, ...]:
        return tuple(issue for _, issue in sorted(self.issues.items()) if label in issue.labels)

    async def change(self, number: int, change: IssueChange) -> None:
        issue = await self.read(number)
        kept = [label for label in issue.labels if label not in change.remove_labels]
        self.issues[number] = msgspec.structs.replace(
            issue,
            labels=tuple(dict.fromkeys([*kept, *change.add_labels])),
            state="closed" if change.close else issue.state,
        )
        result = self.comments.setdefault(number, [])
        if change.comment and change.comment not in result[-1:]:
            result.append(change.comment)


class MemoryForge:
    """Pull requests in a dictionary."""

    def __init__(self) -> None:
        self.requests: dict[str, PullRequest] = {}

    async def find(self, branch: str) -> str:
        return f"memory:{branch}" if branch in self.requests else ""

    async def open(self, request: PullRequest) -> str:
        if request.branch in self.requests:
            raise UnrecoverableError(f"{request.branch} has a pull request already")
        self.requests[request.branch] = request
        return f"memory:{request.branch}"


class RememberedInstance:
    """An instance that only remembers its session."""

    def __init__(self, session: AgentSession) -> None:
        self._session = session
        self.status = InstanceStatus.IDLE

    @property
    def session(self) -> AgentSession:
        return self._session


class ReplyingAgent:
    """Answers with the replies, or raises the errors, that it was given; no process is started."""

    commits = False

    def __init__(self, *answers: Reply | GenbaError) -> None:
        self.answers = list(answers)
        self.asked: list[Ask] = []

    async def start(self, session: AgentSession) -> AgentInstance:
        return RememberedInstance(session)

    async def execute(self, instance: AgentInstance, ask: Ask, on_output: OutputListener) -> Reply:
        if isinstance(instance, RememberedInstance) and instance.status is InstanceStatus.STOPPED:
            raise UnrecoverableError("the instance was stopped")
        if not self.answers:
            raise UnexpectedStep(f"question {ask.number} was not expected, at the step {ask.step}")
        self.asked.append(ask)
        on_output("started", "0")
        answer = self.answers.pop(0)
        if isinstance(answer, GenbaError):
            raise answer
        return answer

    async def status(self, instance: AgentInstance) -> InstanceStatus:
        return instance.status if isinstance(instance, RememberedInstance) else InstanceStatus.IDLE

    async def stop(self, instance: AgentInstance) -> None:
        if isinstance(instance, RememberedInstance):
            instance.status = InstanceStatus.STOPPED

    def finish(self) -> None:
        if self.answers:
            raise UnexpectedStep(f"{len(self.answers)} answers were never asked for")


class ScriptedProcesses:
    """Ends commands as scripted, by their first argument; starts nothing."""

    def __init__(self, exits: dict[str, Sequence[Exit]]) -> None:
        self.exits = {word: list(found) for word, found in exits.items()}
        self.commands: list[Command] = []

    async def run(self, command: Command, on_output: OutputListener) -> Exit:
        self.commands.append(command)
        waiting = self.exits.get(command.argv[0])
        if not waiting:
            raise UnexpectedStep(f"the command {command.argv} was not expected")
        on_output("started", "0")
        done = waiting.pop(0)
        for line in done.stdout.splitlines():
            on_output("stdout", line)
        return done

    async def sweep(self, mark: str) -> int:  # noqa: ARG002  (nothing was ever started)
        return 0

    def finish(self) -> None:
        left = {word: len(found) for word, found in self.exits.items() if found}
        if left:
            raise UnexpectedStep(f"commands were never run: {left}")


def exited(code: int = 0, stdout: str = "", stderr: str = "") -> Exit:
    return Exit(ending=Ending.EXITED, code=code, stdout=stdout, stderr=stderr, seconds=0.0)


class MemoryTrees:
    """A worktree that is only a list of facts, given one after the other."""

    def __init__(self, *facts: TreeFacts, isolated: bool = True) -> None:
        self.facts = list(facts) or [TreeFacts(head="c0", tree="t0")]
        self.isolated = isolated
        self.closed: list[Workspace] = []
        self.in_use: set[str] = set()
        self.committed: list[str] = []

    async def open(self, request: WorkspaceRequest) -> Workspace:
        branch = request.branch or f"genba/{request.agent}"
        if branch in self.in_use:
            raise UnexpectedStep(f"{branch} is in use")
        self.in_use.add(branch)
        return Workspace(
            run=request.run,
            path="/memory",
            git_dir="/memory/.git",
            branch=branch,
            base_branch=request.base_branch or "main",
            base="c0",
            isolated=self.isolated,
        )

    async def reopen(self, workspace: Workspace) -> Workspace:
        return workspace

    async def observe(self, workspace: Workspace) -> TreeFacts:  # noqa: ARG002  (there is only one tree)
        return self.facts.pop(0) if len(self.facts) > 1 else self.facts[0]

    async def commit(self, workspace: Workspace, message: str, author: str) -> None:  # noqa: ARG002
        self.committed.append(message)

    async def close(self, workspace: Workspace) -> Removal:
        self.closed.append(workspace)
        self.in_use.discard(workspace.branch)
        return Removal(removed=workspace.isolated)


class MemoryRepository:
    """Merges as scripted. Without instructions the merged tree is the one that was judged."""

    def __init__(self, *results: MergeResult, tree: str = "t1") -> None:
        self.results = list(results)
        self.tree = tree
        self.pushed: list[tuple[str, str]] = []
        self.messages: list[str] = []
        self.tried: list[str] = []

    async def has_remote(self, remote: str) -> bool:
        return remote == "origin"

    async def propose(self, workspace: Workspace, message: str) -> Proposal:  # noqa: ARG002
        self.messages.append(message)
        if self.results and self.results[0].status in (MergeStatus.CONFLICT, MergeStatus.NOTHING_TO_MERGE):
            return Proposal(refused=self.results.pop(0))
        return Proposal(base="c0", tip="c1", commit="m1", tree=self.tree)

    async def try_out(self, workspace: Workspace, commit: str, adopt: bool = False) -> str:  # noqa: ARG002
        self.tried.append(commit)
        return ""

    async def land(self, workspace: Workspace, proposal: Proposal) -> MergeResult | None:  # noqa: ARG002
        return self.results.pop(0) if self.results else MergeResult(status=MergeStatus.MERGED, commit=proposal.commit)

    async def left_elsewhere(self, email: str, workspace: Workspace) -> tuple[str, ...]:  # noqa: ARG002
        return ()

    async def push(self, remote: str, branch: str) -> None:
        self.pushed.append((remote, branch))


class ScriptedChecks:
    """Returns the scripted result of each check."""

    def __init__(self, results: dict[str, Sequence[CheckResult]]) -> None:
        self.results = {name: list(found) for name, found in results.items()}

    async def run(self, name: str, check: Check, workspace: Workspace, mark: str) -> CheckResult:  # noqa: ARG002
        waiting = self.results.get(name)
        if not waiting:
            raise UnexpectedStep(f"the check {name} was not expected")
        return waiting.pop(0)

    def finish(self) -> None:
        left = [name for name, found in self.results.items() if found]
        if left:
            raise UnexpectedStep(f"checks were never run: {left}")


def facts(tree: str = "t1", commits: int = 1, dirty: tuple[str, ...] = ()) -> TreeFacts:
    """Facts of a tree with so many commits."""
    made = tuple(Commit(f"c{number}", f"commit {number}") for number in range(commits, 0, -1))
    return TreeFacts(head=made[0].sha if made else "c0", tree=tree, dirty=dirty, commits=made, changed_files=("a",))


class MemoryLedger:
    """Tasks in a dictionary, by the laws that one run meets: statuses, versions, commits that were verified."""

    def __init__(self, *tasks: Task) -> None:
        self.tasks = {task.number: task for task in tasks}
        self.verifications: dict[int, list[Verification]] = {}
        self.verified: dict[str, str] = {}
        self.started: dict[str, SessionStart] = {}
        self.sessions: dict[int, list[str]] = {}
        self.ended: dict[str, SessionEnd] = {}
        self.changes: list[tuple[int, StatusChange]] = []
        self.reviews: dict[tuple[int, str], Review] = {}

    async def look(self, number: int) -> Task:
        if number not in self.tasks:
            raise NotFoundError(f"there is no task #{number}", hint="genba task list")
        return self.tasks[number]

    async def begin(self, number: int, session: SessionStart, died: Died | None = None) -> Briefing:
        task = await self.look(number)
        runs = self.sessions.setdefault(number, [])
        older = self.started.get(runs[-1]) if runs else None
        running = older is not None and older.run != session.run and older.run not in self.ended
        if running and older is not None and died is not None and not died(older):
            raise StateConflictError(f"task #{number}: {older.run} works on it")
        self.started[session.run] = session
        comes_back = task.status is TaskStatus.REVIEW and runs[-1:] == [session.run]
        if not comes_back and not (task.status is TaskStatus.IN_PROGRESS and runs[-1:] == [session.run]):
            if task.status is not TaskStatus.IN_PROGRESS:
                actor = Actor(ActorKind.WORKER, session.agent)
                task = await self.move(
                    number, StatusChange(to=TaskStatus.IN_PROGRESS, actor=actor, session=session.run)
                )
            if runs[-1:] != [session.run]:
                runs.append(session.run)
            self.ended.pop(session.run, None)
        last = next(reversed(self.verifications.get(number, [])), None)
        sent_back = last is not None and last.status is VerdictStatus.REJECTED
        return Briefing(
            task=task,
            attempt=len(runs),
            verified=self.verified.get(session.run, ""),
            last=last if sent_back else None,
        )

    async def record(self, number: int, run: str, verification: Verification) -> None:
        await self.look(number)
        self.verified[run] = verification.subject.commit if verification.done else ""
        self.verifications.setdefault(number, []).append(verification)

    async def move(self, number: int, change: StatusChange) -> Task:
        task = await self.look(number)
        if not change.actor.name.strip():
            raise UsageError("a change of a task needs a name")
        if change.version is not None and change.version != task.version:
            raise StateConflictError(f"task #{number} was changed meanwhile: it is at version {task.version}")
        why = "" if task.status is not change.to else f"it is {change.to} already"
        why = why or refusal(task.status, change.to, change.actor.kind) or self._lacks(number, change)
        if why:
            raise StateConflictError(f"task #{number}: {why}")
        blocker = change.blocker if change.to is TaskStatus.BLOCKED else None
        moved = msgspec.structs.replace(task, status=change.to, blocker=blocker, version=task.version + 1)
        self.tasks[number] = moved
        self.changes.append((number, change))
        return moved

    async def ask_review(self, number: int, commit: str, run: str, rounds: int) -> Review:  # noqa: ARG002
        task = await self.look(number)
        in_review = [change.commit for _, change in self.changes if change.to is TaskStatus.REVIEW]
        if task.status is not TaskStatus.REVIEW or in_review[-1:] != [commit]:
            raise StateConflictError(f"task #{number} is not in review with commit {commit!r}")
        key = (number, commit)
        number_of = len(self.tasks) + len(self.reviews) + 1
        asked = Review(task=number_of, of=number, commit=commit, reviewer_type=task.reviewer_type)
        return self.reviews.setdefault(key, asked)

    async def end(self, session: SessionEnd) -> None:
        if not any(session.run in runs for runs in self.sessions.values()):
            raise NotFoundError(f"there is no session of the run {session.run!r}")
        self.ended.setdefault(session.run, session)

    def _lacks(self, number: int, change: StatusChange) -> str:
        if change.to is TaskStatus.BLOCKED and change.blocker is None:
            return "a blocked task needs a reason"
        if change.to in (TaskStatus.REVIEW, TaskStatus.DONE):
            on_commit = [found for found in self.verifications.get(number, []) if found.subject.commit == change.commit]
            if not on_commit or not on_commit[-1].done:
                return f"commit {change.commit!r} was not verified"
        if change.to is TaskStatus.DONE and not change.finalized:
            return "the way to done needs how its work was finalized"
        return ""
