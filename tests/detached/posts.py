"""A run whose agent is held by a supervisor, with everything real: a repository, an agent, a fork_server."""

import asyncio
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from genba.application.sessions.session_record import new_run_id
from genba.connections.detached.adapter import DetachedAdapter
from genba.connections.detached.fork_server_client import ForkServerClient
from genba.connections.detached.job_dir import Question, questions
from genba.connections.git.repository.layout import RepositoryLayout
from genba.definitions.project.project import load_project
from genba.domain.events import Event, Notice
from genba.domain.sessions.outcomes import PermissionMode
from genba.domain.sessions.replies import Ask, Reply
from genba.domain.sessions.workspaces import Workspace, WorkspaceRequest
from genba.execution.run_values import RunPlan
from genba.wiring.project.project_context import ProjectContext
from genba.wiring.sessions.session_factory import PreparedSession, standalone_session
from genba.wiring.sessions.supervisor import detached, fork_server_of, sparing
from tests.project import Project


class Memory(msgspec.Struct):
    """What another worker needs to go on with a run."""

    root: str
    agent: str
    run: str
    workspace: Workspace


@dataclass
class Post:
    """One run, as a worker holds it."""

    context: ProjectContext
    prepared: PreparedSession
    workspace: Workspace
    fork_server: ForkServerClient
    events: list[Event] = field(default_factory=list)
    lines: list[tuple[str, str]] = field(default_factory=list)

    @property
    def run(self) -> str:
        return self.workspace.run

    @property
    def folder(self) -> Path:
        return self.context.layout.run_folder(self.run)

    def adapter(self, part: int = 1, grace_seconds: float = 60.0) -> DetachedAdapter:
        made = detached(
            self.context.layout,
            self.prepared.keeper,
            self.fork_server,
            sparing(self.context.layout, self.context.processes),
            self.events.append,
            run=self.run,
            part=part,
            grace_seconds=grace_seconds,
        )
        made.workspace = self.workspace
        return made

    def question(self, number: int = 1, part: int = 1) -> Question:
        return Question.of(self.folder, part, number)

    def ask(self, number: int = 1, timeout_seconds: float = 120.0) -> Ask:
        return Ask(
            run=self.run,
            agent="worker",
            step="work",
            iteration=number,
            number=number,
            number_in_step=number,
            prompt="Say hello.",
            system_prompt="You are polite.",
            model="haiku",
            allowed_tools=None,
            permission_mode=PermissionMode.ACCEPT_EDITS,
            session_id=None,
            output_schema=None,
            issue=None,
            timeout_seconds=timeout_seconds,
            idle_seconds=timeout_seconds,
        )

    async def put(self, number: int = 1, adapter: DetachedAdapter | None = None) -> Reply:
        """Ask once, as the loop of a run does."""
        adapter = adapter or self.adapter()
        async with adapter.open_environment(self.workspace) as session:
            instance = await adapter.start(session)
            try:
                return await adapter.execute(instance, self.ask(number), self.heard)
            finally:
                await adapter.stop(instance)

    def place(self, name: str) -> None:
        """Put an empty file into the working tree."""
        (Path(self.workspace.path) / name).touch()

    def heard(self, stream: str, line: str) -> None:
        self.lines.append((stream, line))

    def said(self) -> list[str]:
        return [line for stream, text in self.lines if stream == "stdout" for line in text.split("\n")]

    def supervisor(self, number: int = 1) -> int:
        holder = self.question(number).holder()
        return holder.process if holder is not None else 0

    def memory(self, root: Path) -> bytes:
        return msgspec.json.encode(Memory(str(root), "worker", self.run, self.workspace))


async def posted(root: Path, agent: str = "worker", memory: Memory | None = None) -> Post:
    layout = await RepositoryLayout.find(root)
    context = ProjectContext(layout, load_project(layout.top))
    run = memory.run if memory is not None else new_run_id(agent)
    prepared = standalone_session(context, RunPlan(run=run, definition=context.registry.load(agent), parameters={}))
    if memory is not None:
        return Post(context, prepared, memory.workspace, fork_server_of(layout))
    wanted = WorkspaceRequest(
        run=run,
        agent=agent,
        root=".worktrees",
        isolated=True,
        branch=f"genba/{run}",
        base_branch=None,
        issue=None,
        issue_title="",
    )
    workspace = await prepared.trees.open(wanted)
    prepared.journal.emit(Notice(message="it begins"))
    return Post(context, prepared, workspace, fork_server_of(layout))


@contextmanager
def cleared(project: Project) -> Iterator[None]:
    """Nothing that a test has started is left, however it ends."""
    try:
        yield
    finally:
        for folder in (project.root / ".git" / "genba" / "runs").glob("*"):
            for question in questions(folder):
                holder = question.holder()
                if holder is not None and question.is_held():
                    holder.signal(signal.SIGTERM)


async def when(holds: Callable[[], object], seconds: float = 90.0) -> None:
    """Wait for something that will happen, and let others go on meanwhile."""
    async with asyncio.timeout(seconds):
        while not holds():  # noqa: ASYNC110  (what happens does so in other processes)
            await asyncio.sleep(0.01)


def is_alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except OSError:
        return False


def living(word: str) -> list[int]:
    """Every process with this word on its command line."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and is_alive(int(entry.name)) and int(entry.name) != os.getpid():
            with suppress(OSError):
                if word.encode() in (entry / "cmdline").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
    return found
