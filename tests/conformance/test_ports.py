"""Every implementation of a port, and its double, passes the same suite."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from uuid import uuid4

import pytest
import yaml

from genba.blackboard.tasks.board import Blackboard
from genba.blackboard.tracker.local_tracker import BlackboardTracker
from genba.connections.agents.custom import CustomAdapter, CustomSettings
from genba.connections.agents.scripted import ScriptedAdapter, ScriptedSettings
from genba.connections.clock import SystemClock
from genba.connections.forge.command import CommandForge
from genba.connections.git.merging.merge import GitRepository
from genba.connections.git.repository.layout import RepositoryLayout
from genba.connections.git.worktrees.worktrees import GitWorkingTrees
from genba.connections.goals.runner import GoalEngine
from genba.connections.goals.validators import ValidatorRunner
from genba.connections.processes.supervisor import ProcessSupervisor
from genba.domain.goals.verification import Subject, VerdictStatus, Verification
from genba.domain.ports import AgentAdapter, Checks, Clock, Forge, Processes, Repository, Tracker, WorkingTrees
from genba.domain.processes import Command
from genba.domain.sessions.evidence import CheckResult, CheckStatus
from genba.domain.sessions.replies import AgentSession, Reply
from genba.domain.sessions.session import SessionStart
from genba.domain.sessions.workspaces import Workspace, WorkspaceRequest
from genba.domain.tasks.task import Actor, ActorKind, StatusChange, TaskDraft, TaskStatus
from genba.domain.tracker.issues import Issue
from genba.testing.conformance import (
    AgentAdapterSuite,
    ChecksSuite,
    ClockSuite,
    ForgeSuite,
    ProcessesSuite,
    RepositorySuite,
    TrackerSuite,
    WorkingTreesSuite,
)
from genba.testing.doubles import (
    ManualClock,
    MemoryForge,
    MemoryRepository,
    MemoryTracker,
    MemoryTrees,
    ReplyingAgent,
    ScriptedChecks,
    ScriptedProcesses,
    exited,
)
from tests.project import Project


class TestAgentAdapters(AgentAdapterSuite):
    @pytest.fixture(params=["custom", "custom by file", "scripted", "double"])
    def adapter(self, request: pytest.FixtureRequest, tmp_path: Path) -> AgentAdapter:
        match request.param:
            case "custom":
                settings = CustomSettings(type="custom", command="cat >/dev/null; echo hello")
                return CustomAdapter(settings, tmp_path)
            case "custom by file":
                line = """printf '{"text": "hello"}' > {reply_file}; test -s {prompt_file}"""
                return CustomAdapter(CustomSettings(type="custom", command=line), tmp_path)
            case "scripted":
                script = {"turns": [{"reply": "hello"}, {"reply": "hello again"}]}
                (tmp_path / "script.yaml").write_text(yaml.safe_dump(script))
                settings_ = ScriptedSettings(type="scripted", script="script.yaml")
                return ScriptedAdapter(settings_, tmp_path)
        return ReplyingAgent(Reply(text="hello"), Reply(text="hello again"))

    @pytest.fixture
    def session(self, tmp_path: Path) -> AgentSession:
        return AgentSession(
            run=f"run-{uuid4().hex}",
            agent="tester",
            workdir=str(tmp_path),
            folder=str(tmp_path / "asks"),
            environment={"PATH": os.environ["PATH"]},
            processes=ProcessSupervisor(),
        )


class TestTrackers(TrackerSuite):
    @pytest.fixture(params=["blackboard", "double"])
    def tracker(self, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Tracker]:
        if request.param == "double":
            yield MemoryTracker(Issue(number=1, title="One", body="Text", labels=("docs", "old")))
            return
        with Blackboard.open(str(tmp_path / "genba.db"), "tests") as board:
            board.add(TaskDraft(title="One", body="Text", labels=("docs", "old")), Actor(ActorKind.HUMAN, "tester"))
            start = SessionStart(run="run-1", agent="tester", branch="b", base="c0", workdir="/w")
            board.begin_session(1, start)
            subject = Subject(commit="c1", base="c0", branch="b", base_branch="main")
            done = Verification(status=VerdictStatus.DONE, subject=subject, tree="t1", commits=1)
            board.record_verification(1, "run-1", done)
            to_review = StatusChange(
                to=TaskStatus.REVIEW, actor=Actor(ActorKind.ORCHESTRATOR, "tester"), commit="c1", session="run-1"
            )
            board.change_status(1, to_review)
            yield BlackboardTracker(board)


class TestForges(ForgeSuite):
    @pytest.fixture(params=["command", "double"])
    def forge(self, request: pytest.FixtureRequest, tmp_path: Path) -> Forge:
        if request.param == "double":
            return MemoryForge()
        opening = ("sh", "-c", 'echo "pr:$0" > "$(echo $0 | tr / _).pr"; echo opening; echo "pr:$0"', "{branch}")
        finding = ("sh", "-c", 'cat "$(echo $0 | tr / _).pr" 2>/dev/null || true', "{branch}")
        environment = {"PATH": os.environ["PATH"]}
        return CommandForge(opening, finding, ProcessSupervisor(), tmp_path, environment, 20)


class TestClocks(ClockSuite):
    @pytest.fixture(params=[SystemClock, ManualClock])
    def clock(self, request: pytest.FixtureRequest) -> Clock:
        made: Clock = request.param()
        return made


class TestProcesses(ProcessesSuite):
    @pytest.fixture(params=["supervisor", "double"])
    def processes(self, request: pytest.FixtureRequest) -> Processes:
        if request.param == "supervisor":
            return ProcessSupervisor()
        return ScriptedProcesses({"sh": [exited(0, "hello\n")], "bash": [exited(3, "hello\n")]})

    @pytest.fixture
    def command(self, tmp_path: Path) -> Callable[[int], Command]:
        def make(code: int) -> Command:
            return Command(
                argv=("bash" if code else "sh", "-c", f"echo hello; exit {code}"),
                workdir=str(tmp_path),
                environment={"PATH": os.environ["PATH"]},
                timeout_seconds=20,
                idle_seconds=20,
                mark=f"mark-{tmp_path.name}",
            )

        return make


class TestWorkingTrees(WorkingTreesSuite):
    @pytest.fixture(params=["git", "double"])
    async def trees(self, request: pytest.FixtureRequest, project: Project) -> WorkingTrees:
        if request.param == "git":
            return GitWorkingTrees(await RepositoryLayout.find(project.root))
        return MemoryTrees()

    @pytest.fixture
    def request_(self) -> WorkspaceRequest:
        return WorkspaceRequest(
            run="run-1",
            agent="tester",
            root=".worktrees",
            isolated=True,
            branch="genba/tester",
            base_branch=None,
            issue=None,
            issue_title="",
        )


class TestRepositories(RepositorySuite):
    @pytest.fixture(params=["git", "double"])
    async def repository(self, request: pytest.FixtureRequest, project: Project) -> Repository:
        if request.param == "git":
            return GitRepository(await RepositoryLayout.find(project.root))
        return MemoryRepository()

    @pytest.fixture
    def ready(self, project: Project) -> Workspace:
        base = project.git("rev-parse", "main")
        tree = project.root / ".worktrees/ready"
        project.git("worktree", "add", "-q", "-b", "genba/ready", str(tree))
        (tree / "new.txt").write_text("new\n")
        project.git("add", "-A", cwd=tree)
        project.git("commit", "-q", "-m", "Add new.txt", cwd=tree)
        return Workspace(
            run="run-1",
            path=str(tree),
            git_dir=str(project.root / ".git/worktrees/ready"),
            branch="genba/ready",
            base_branch="main",
            base=base,
            isolated=True,
        )


class NothingScanned:
    """No validator looks for secrets."""

    async def scan(self, base: str, commit: str, timeout_seconds: float, mark: str) -> CheckResult:  # noqa: ARG002
        raise AssertionError("nobody asked for it")


class TestChecks(ChecksSuite):
    @pytest.fixture(params=["runner", "double"])
    def checks(self, request: pytest.FixtureRequest) -> Checks:
        if request.param == "runner":
            environment = {"PATH": os.environ["PATH"]}
            return ValidatorRunner(GoalEngine(ProcessSupervisor(), environment, NothingScanned()))
        values: dict[str, Sequence[CheckResult]] = {
            "good": [CheckResult("good", CheckStatus.PASSED)],
            "bad": [CheckResult("bad", CheckStatus.FAILED)],
            "broken": [CheckResult("broken", CheckStatus.ERROR)],
        }
        return ScriptedChecks(values)

    @pytest.fixture
    def workspace(self, tmp_path: Path) -> Workspace:
        path = str(tmp_path)
        return Workspace(run="run-1", path=path, git_dir=path, branch="b", base_branch="main", base="c0", isolated=True)


def test_the_product_never_loads_its_doubles() -> None:
    line = "import genba.wiring, genba.entrypoints.cli.work.run_command, sys; sys.exit('genba.testing' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", line], check=False).returncode == 0
