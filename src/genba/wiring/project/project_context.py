"""A project in its repository, with everything wired together."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from genba.connections.agents.catalogue import adapter_class, known_adapters
from genba.connections.clock import SystemClock
from genba.connections.forge.command import CommandForge
from genba.connections.git.merging.merge import GitRepository
from genba.connections.git.repository.committed_links import refuse_committed_links
from genba.connections.git.repository.layout import RepositoryLayout
from genba.connections.git.repository.locks import is_held
from genba.connections.git.repository.stale_locks import clear_locks
from genba.connections.git.worktrees.worktrees import GitWorkingTrees
from genba.connections.journal.jsonl import SUFFIX, JsonlJournal, Listener, journal_files, read_journal
from genba.connections.journal.redaction import Redactor
from genba.connections.processes.environment import passed_on, without_own_tools
from genba.connections.processes.orphans import take_in_orphans
from genba.connections.processes.supervisor import ProcessSupervisor
from genba.connections.tracker.nothing import NoTracker
from genba.definitions.agent.agent_json import Finalize
from genba.definitions.agent.completion import Custom, ExternalState, walk
from genba.definitions.agent.definition import AgentDefinition
from genba.definitions.agent.handlers import CompletionHandler, load_action
from genba.definitions.agent.registry import AgentRegistry, with_agents
from genba.definitions.project.project import Project, load_project
from genba.domain.convert import shape
from genba.domain.errors import ConfigurationError, NotFoundError, StateConflictError, UsageError
from genba.domain.ports import Forge, Processes, Sandbox, TaskLedger, Tracker
from genba.domain.problems import Problem, did_you_mean
from genba.domain.processes import claim_mark
from genba.domain.sessions.outcomes import Outcome
from genba.domain.sessions.sandbox import SandboxKind
from genba.domain.tracker.github_tokens import handed_over
from genba.execution.delivery.finalize import no_forge
from genba.execution.loop.resume import read_resumption
from genba.execution.run import Run, RunPlan, RunResult
from genba.execution.session_context import SessionContext
from genba.judgement.language.sentences import in_language
from genba.wiring.sandbox.agent_environment import AgentEnvironmentKeeper
from genba.wiring.sandbox.agent_identity import agent_identity, identity_variables
from genba.wiring.sandbox.preload import load_ahead
from genba.wiring.sandbox.sandbox_choice import choose, make
from genba.wiring.sessions.agent_checks import LazyChecks, looks_at_files, validators_of
from genba.wiring.sessions.session_record import keep, raised, recall, remember
from genba.wiring.verification.session_task import check_task

if TYPE_CHECKING:
    from genba.blackboard.tasks.board import Blackboard
    from genba.connections.goals.results import FileResults
    from genba.definitions.project.goal_sections import TaskTypeSettings
    from genba.definitions.project.sandbox_section import AgentEnvironment
    from genba.domain.events import Event
    from genba.domain.goals.verification import GoalResult, Verification
    from genba.domain.tasks.task import Actor, Task
    from genba.wiring.facilitator.facilitator_agent import FieldAnswers
    from genba.wiring.sessions.reviews import ReviewSession
    from genba.wiring.tracker.github import GitHubOffice
    from genba.wiring.verification.verifier import Examination, GoalSandbox

__all__ = ["PreparedRun", "ProjectContext", "adapter_files", "new_run_id", "read_journal"]

Dress = Callable[[SessionContext, AgentEnvironmentKeeper], SessionContext]
"""Changes what a run sees of the outside."""

_DATABASE_VARIABLE = "GENBA_DATABASE_URL"
_LONGEST_NAME = 255
"""Of a folder, in bytes: no file system takes a longer one."""
_FORGE_VARIABLES = ("GH_TOKEN", "GITHUB_TOKEN", "GITLAB_TOKEN", "GH_HOST", "GITLAB_HOST")

_OWN = "an agent that needs a token gets one of its own: export AGENT_TOKEN=…, and name AGENT_TOKEN here"


class ProjectContext:
    """A project in its repository, with everything wired together."""

    def __init__(self, layout: RepositoryLayout, project: Project) -> None:
        self.layout = layout
        self.project = project
        self.registry = AgentRegistry(project)
        self.processes: Processes = ProcessSupervisor()
        self._board: Blackboard | None = None
        self._office: GitHubOffice | None = None
        if (github := project.file.tracker.github) is not None:
            from genba.connections.git.repository.access import RemoteAccess, origin_of  # noqa: PLC0415  (only with GitHub)

            layout.git.access = RemoteAccess(origin_of(github.url), self._token)

    @classmethod
    async def find(cls, folder: Path) -> ProjectContext:
        take_in_orphans()
        layout = await RepositoryLayout.find(folder)
        try:
            project = load_project(layout.top)
        except ConfigurationError as error:
            raise with_agents(layout.top, error) from error
        return cls(layout, project)

    @classmethod
    async def find_to_look(cls, folder: Path) -> tuple[ProjectContext, ConfigurationError | None]:
        """For who only looks, or stops what runs: settings that cannot be used are in nobody's way, and are told."""
        from genba.definitions.project.config_recovery import usable_project  # noqa: PLC0415  (a run does not need it)

        layout = await RepositoryLayout.find(folder)
        project, wrong = usable_project(layout.top)
        return cls(layout, project), wrong

    def check_writable(self) -> None:
        """Refuse where nothing could be written down of what runs."""
        own = self.layout.own
        place = next(path for path in (own, *own.parents) if path.exists())
        if not os.access(place, os.W_OK):
            raise StateConflictError(
                f"{place} cannot be written, and what runs is written down there",
                unchanged="nothing was started, nothing was changed.",
                hint=f"see who may write it: ls -ld {place}",
            )

    def check(self, definition: AgentDefinition) -> None:
        """What only the connections know: whether the adapter takes what the definition gives it."""
        if definition.file.runner.adapter is not None:
            self.adapter(definition)
        self._handlers(definition)

    def adapter(self, definition: AgentDefinition) -> Any:
        raw = definition.file.runner.adapter
        source = definition.sources.get("runner.adapter.type", definition.sources["name"])
        if raw is None:
            known = ", ".join(known_adapters())
            line = 'agents: {default: {adapter: {type: custom, command: "…"}}}'
            hint = f"in .genba/config.yaml:  {line}   known: {known}"
            problem = Problem(source, "runner.adapter", "no adapter is chosen: nobody would answer", hint)
            raise ConfigurationError((problem,), hint="genba doctor   says which agents there are")
        try:
            kind = adapter_class(str(raw["type"]))
        except NotFoundError as error:
            problem = Problem(source, "runner.adapter.type", error.message, error.hint)
            raise ConfigurationError((problem,), hint=f"genba agent check {definition.name}") from error
        settings, problems = shape(raw, kind.settings_type, source, "runner.adapter")
        problems += tuple(
            Problem(
                source, path, f"{word} holds a GitHub token, and no file of the repository hands that to an agent", _OWN
            )
            for path, word in handed_over(raw, "runner.adapter")
        )
        if settings is None or problems:
            raise ConfigurationError(problems, hint=f"genba agent check {definition.name}")
        adapter = kind(settings, Path(definition.folder))
        look = getattr(adapter, "problem", None)  # adapters of other packages may have none
        message = look(without_own_tools(os.environ, *self.layout.folders)) if look is not None else ""
        if message:
            problem = Problem(source, "runner.adapter.command", message, "check runner.adapter")
            raise ConfigurationError((problem,), hint=f"genba agent show {definition.name} --explain")
        return adapter

    def refuse_links(self, *places: str | Path) -> None:
        """Raise StateConflictError before something is written through a link that the repository commits."""
        refuse_committed_links(self.layout, *places)

    def journal_path(self, definition: AgentDefinition, run: str) -> Path:
        directory = definition.file.runner.logging.directory.replace("{name}", definition.name)
        self.refuse_links(directory, definition.file.runner.execution.worktree.root)
        if not Path(directory).is_absolute():
            self.layout.exclude(f"/{directory.strip('/')}/")
        return self.layout.top / directory / f"{run}{SUFFIX}"

    def journals(self) -> list[Path]:
        """Every journal of the project, newest first. Runs remember where they wrote."""
        remembered = self.layout.own.glob("runs/*/journal")
        return journal_files({Path(path.read_text("utf-8")).parent for path in remembered})

    def is_running(self, branch: str) -> bool:
        """Whether a run holds this branch now."""
        path = self.layout.branch_lock(branch)
        return path.is_file() and is_held(path)

    def find_journal(self, run: str) -> Path:
        pointer = self.layout.run_folder(run) / "journal"
        is_name = "/" not in run and len(run.encode("utf-8", "replace")) <= _LONGEST_NAME
        if is_name and pointer.is_file() and (journal := Path(pointer.read_text("utf-8"))).is_file():
            return journal
        run = run[:_LONGEST_NAME]
        known = [path.stem for path in self.journals()]
        raise NotFoundError(f'there is no run "{run}"', hint=did_you_mean(run, known) if known else "genba logs")

    def prepare(self, plan: RunPlan, listeners: tuple[Listener, ...] = (), dress: Dress | None = None) -> PreparedRun:
        """Everything a run needs, before it touches anything. `dress` changes the world that it sees."""
        definition, alone = plan.definition, dress is None
        review = self._review(plan) if plan.review is not None else None
        self.check_writable()
        adapter, answers = self._told(plan, self.adapter(definition))
        completion_handlers, action_handlers = self._handlers(definition)
        self._check_plan(plan, alone)
        choice = choose(definition, self.layout, self.processes, plan.accepts_risk)
        checked = {**self._environment(plan), **definition.quarters.environment}
        folder = self.layout.run_folder(plan.run)
        path = self.journal_path(definition, plan.run)
        redactor = Redactor(os.environ)
        if self.project.file.telemetry.enabled:
            from genba.wiring.project.telemetry import listening  # noqa: PLC0415  (off by default)

            listeners = (*listeners, listening(self, plan.run))
        journal = JsonlJournal(
            path,
            plan.run,
            definition.name,
            plan.issue,
            redactor,
            listeners,
            before_first=lambda: remember(folder, plan, path),
        )
        keeper, trees = self.quarters(plan, choice.kind, adapter, journal.emit)
        world = SessionContext(
            adapter=adapter,
            adapter_commits=adapter.commits and definition.file.runner.execution.worktree.enabled,
            trees=trees,
            repository=GitRepository(self.layout),
            checks=LazyChecks(lambda around: validators_of(self.layout, around, checked), keeper, self.processes),
            processes=self.sweeping(choice.kind, keeper.sandbox, folder),
            tracker=self.tracker(plan.run) if plan.issue is not None else NoTracker(),
            forge=self._forge(plan.run),
            journal=journal,
            clock=SystemClock(),
            redact=redactor.text,
            jitter=_jitter,
            completion_handlers=completion_handlers,
            action_handlers=action_handlers,
            quarters=keeper.open,
            sandbox=str(choice.kind),
            network=str(definition.quarters.network) if choice.kind.has_walls else "",
            fallen_back=choice.fallen_back,
            **self._reviewing(plan),
            **self._judging(plan, redactor, choice.kind, keeper.sandbox),
        )
        office = self.office()
        if office is not None:
            world = office.dress(world, plan, alone=alone)
        world = dress(world, keeper) if dress is not None else world
        world = review.dress(world) if review is not None else world
        mine = office if alone else None
        run = Run(plan, world, _fits)
        return PreparedRun(run, journal, trees, keeper, office=mine, review=review, answers=answers)

    def _reviewing(self, plan: RunPlan) -> dict[str, Any]:
        """Who reviews the work on a task; nothing for a run without one."""
        if plan.issue is None:
            return {}
        review = self.project.fleet.review
        return {"reviewer": review.agent, "review_rounds": review.rounds}

    def _review(self, plan: RunPlan) -> ReviewSession:
        from genba.wiring.sessions.reviews import ReviewSession  # noqa: PLC0415  (only a review pays for it)

        assert plan.review is not None  # noqa: S101  (the caller looked)
        return ReviewSession(self, plan, plan.review)

    def _told(self, plan: RunPlan, adapter: Any) -> tuple[Any, FieldAnswers | None]:
        """The adapter; whoever declares that it facilitates is given what is seen of the field."""
        declared = (plan.definition.adapter_type, *plan.definition.capabilities)
        if "facilitator" not in declared and "facilitate-action" not in declared:
            return adapter, None
        from genba.wiring.facilitator.facilitator_agent import answered_by_code  # noqa: PLC0415  (only a facilitator needs it)

        return answered_by_code(self, plan, adapter)

    def quarters(
        self, plan: RunPlan, kind: SandboxKind, adapter: Any, emit: Callable[[Event], None]
    ) -> tuple[AgentEnvironmentKeeper, Any]:
        """Where the instances of a run live, and the working trees that fit the walls around them."""
        definition = plan.definition
        sandbox = self._sandbox(kind, adapter, definition)
        trees = self._trees(kind, sandbox, plan)
        keeper = AgentEnvironmentKeeper(
            definition=definition,
            adapter=adapter,
            sandbox=sandbox,
            kind=kind,
            processes=self.processes,
            folder=self.layout.run_folder(plan.run),
            top=self.layout.top,
            ignored=self._ignored,
            environment=self._environment(plan),
            emit=emit,
            parts=getattr(trees, "cell_parts", None),
            clear=partial(clear_locks, self.layout),
        )
        return keeper, trees

    def _check_plan(self, plan: RunPlan, alone: bool) -> None:
        """Refuse what could never end well."""
        if alone:
            check_task(self, plan)
        if plan.definition.state_driven and alone:
            raise UsageError(
                f"{plan.definition.name} asks for its next action, and only a fleet answers it",
                unchanged="nothing was started, nothing was changed.",
                hint="genba work",
            )
        self._check_forge(plan.definition.file.runner.execution.finalize)
        if plan.issue is None and any(isinstance(part, ExternalState) for part in walk(plan.definition.completion)):
            message = "externalState works on an issue, and none was given"
            raise ConfigurationError((Problem("command line", "--issue", message),))

    def _check_forge(self, finalize: Finalize) -> None:
        command, github = self.project.file.forge, self.project.file.tracker.github
        if finalize.create_pr and command is None and github is None:
            raise ConfigurationError((no_forge(),))
        only_there = {
            "prDraft": finalize.pr_draft,
            "prReviewers": bool(finalize.pr_reviewers),
            "prMerge": finalize.pr_merge != "people",
        }
        asked = next((name for name, given in only_there.items() if given), "")
        if finalize.create_pr and asked and (command is not None or github is None):
            message = "a command opens pull requests as it says itself: this takes tracker.github, and no forge"
            raise ConfigurationError((Problem("", f"runner.execution.finalize.{asked}", message),))

    def resumed(self, run: str, limits: dict[str, Any]) -> RunPlan:
        """The plan of a run that was cut off: its own frozen definition, and the state that its journal tells."""
        events = read_journal(self.find_journal(run), output=False)
        left = read_resumption(run, events)
        folder = self.layout.run_folder(run)
        memory = recall(folder, run)
        definition = raised(memory.definition, limits)
        if definition is not memory.definition:
            keep(folder / "run.json", msgspec.structs.replace(memory, definition=definition))
        return RunPlan(
            run=run,
            definition=definition,
            parameters=memory.parameters,
            workspace=left.workspace,
            state=left.state,
            merged=left.merged,
            delivered=left.delivered or (bool(left.merged) and not Path(left.workspace.path).exists()),
            commits=left.commits,
            may_change=memory.may_change,
            accepts_risk=memory.accepts_risk,
            mode=memory.mode,
            review=memory.review,
            branch=left.workspace.branch if memory.review is not None else None,
            process=os.getpid(),
        )

    def database(self) -> str:
        """Where the blackboard is: the environment, then the settings, then the file in the repository."""
        named = os.environ.get(_DATABASE_VARIABLE, "")
        if not named and "://" in (named := self.project.file.database.url):
            from genba.blackboard.database.connect import address_of_repository  # noqa: PLC0415  (see board)

            named = address_of_repository(named, os.environ)
        return named if "://" in named else str(self.layout.main / named)

    def has_board(self) -> bool:
        """Whether there is a blackboard already; asking makes none."""
        where = self.database()
        return "://" in where or os.path.lexists(where)

    def board(self, make: bool = True) -> Blackboard:
        """The blackboard of this project. It is made when it is first needed, but not by an agent or a mere look."""
        make = make and not os.environ.get("GENBA_RUN")
        if self._board is None and not make and not self.has_board():
            raise NotFoundError("this project has no tasks yet", hint='genba task add "what is to be done"')
        if self._board is None:
            where = self.database()
            if "://" not in where and Path(where).is_relative_to(self.layout.main):
                relative = Path(where).relative_to(self.layout.main).as_posix()
                beside = ("-wal", "-shm", ".executor.lock")
                with contextlib.suppress(OSError):  # who may not write here can still look
                    self.layout.exclude(f"/{relative}", *(f"/{relative}{end}" for end in beside))
            self._board = self._opened(where)
        return self._board

    def adopt(self) -> None:
        """Make the database that of this repository, whichever it belonged to."""
        from genba.blackboard.database.connect import without_executor  # noqa: PLC0415  (see board)

        where = self.database()
        if where.startswith("postgres"):
            raise UsageError(
                "on PostgreSQL a project is known by its name, and belongs to no single repository",
                unchanged="nothing was changed.",
                hint="write its name under project.name in .genba/config.yaml",
            )
        place = _file_of(where)
        with without_executor(place, "is in use by `genba work` of the repository that it belongs to"):
            self._board = self._opened(where, adopt=True)

    def _opened(self, where: str, adopt: bool = False) -> Blackboard:
        from genba.blackboard.tasks.board import Blackboard  # noqa: PLC0415  (a run without a task needs no database)
        from genba.wiring.project.repository_identity import owner_of  # noqa: PLC0415  (see above)

        if not where.startswith("postgres"):
            self.refuse_links(Path(_file_of(where)).absolute())
        name = self.project.name or self.layout.main.name
        owner = partial(owner_of, self.layout)
        return Blackboard.open(where, name, self.project.file.database.busy_seconds, owner, adopt)

    def close(self) -> None:
        """Let go of the blackboard: what is in its log is then in its file, which can be copied as it is."""
        if self._board is not None:
            self._board.close()
            self._board = None

    def office(self) -> GitHubOffice | None:
        """All that the project has to do with GitHub; None where its issues live elsewhere."""
        github = self.project.file.tracker.github
        if self._office is None and github is not None:
            from genba.wiring.tracker.github import GitHubOffice  # noqa: PLC0415  (only with GitHub)

            self._office = GitHubOffice(self, github)
        return self._office

    async def _token(self, origin: str) -> str:
        office = self.office()
        return await office.token(origin) if office is not None else ""

    def tracker(self, run: str = "") -> Tracker:
        office = self.office()
        if office is not None:
            return office.tracker(run)
        if not self.has_board():
            return NoTracker()
        from genba.blackboard.tracker.local_tracker import BlackboardTracker  # noqa: PLC0415  (see board)

        return BlackboardTracker(self.board())

    def actor(self) -> Actor:
        """Who typed the command: a person, or an agent, whose processes all carry its name."""
        from genba.domain.tasks.task import Actor, ActorKind  # noqa: PLC0415  (see board)

        if os.environ.get("GENBA_RUN"):
            return Actor(ActorKind.WORKER, os.environ.get("GENBA_AGENT") or os.environ["GENBA_RUN"])
        return Actor(ActorKind.HUMAN, _user())

    def task_type(self, name: str) -> TaskTypeSettings:
        """The settings of a task type that exists."""
        from genba.definitions.project.goal_sections import TaskTypeSettings  # noqa: PLC0415  (see board)
        from genba.execution.verification.policy import known_types  # noqa: PLC0415

        known = known_types(self.project.rules)
        if name not in known:
            raise NotFoundError(
                f'"{name[:80]}" is not a type of task',
                unchanged="nothing was changed.",
                hint=f"{did_you_mean(name, known)}   of your own: task_types in .genba/config.yaml",
            )
        rules = self.project.rules
        return rules.task_types.get(name, TaskTypeSettings()) if rules is not None else TaskTypeSettings()

    def session_of(self, number: int) -> str:
        """The newest run on a task, if it can be resumed."""
        run = self.board().newest_session(number).run
        return run if run and (self.layout.run_folder(run) / "journal").is_file() else ""

    def results(self) -> FileResults:
        from genba.wiring.verification.verifier import results  # noqa: PLC0415  (only who verifies pays for it)

        return results(self.layout)

    async def examination(
        self, target: str | None, base_branch: str | None, may_change: tuple[str, ...], needs_commit: bool
    ) -> Examination:
        from genba.wiring.verification.verify_target import find  # noqa: PLC0415  (only who verifies pays for it)

        return await find(self, target, base_branch, may_change, needs_commit)

    async def settle(self, number: int, base_branch: str | None) -> Task:
        from genba.wiring.verification.done_by_hand import settle  # noqa: PLC0415  (see examination)

        return await settle(self, number, base_branch)

    async def examine(self, examination: Examination, fresh: bool, told: Callable[[GoalResult], None]) -> Verification:
        from genba.wiring.verification.verify_target import look  # noqa: PLC0415  (see examination)

        return await look(self, examination, fresh, told)

    def _judging(self, plan: RunPlan, redactor: Redactor, kind: SandboxKind, sandbox: Sandbox | None) -> dict[str, Any]:
        """What a run needs to be verified: nothing at all when neither a task nor the settings ask for it."""
        ledger: TaskLedger | None = None
        office = self.office()
        if plan.issue is not None and office is not None:
            ledger = office.ledger()
        elif plan.issue is not None and self.has_board():
            from genba.blackboard.fleet.session_ledger import BlackboardLedger  # noqa: PLC0415  (see board)

            ledger = BlackboardLedger(self.board(), partial(in_language, self.project.language))
        if ledger is None and self.project.rules is None and plan.base_branch is None:
            return {}
        from genba.wiring.verification.session_task import inbox_of  # noqa: PLC0415
        from genba.wiring.verification.verifier import rulebook, verifier  # noqa: PLC0415  (only a run with goals pays for it)

        fence, agent = self.fence(kind, sandbox, plan.definition.quarters), plan.definition.name
        # A goal ends whatever carries its mark; it may be checked while an instance lives that asks what is next.
        mark = claim_mark(plan.run) if plan.definition.state_driven else plan.run
        judge = verifier(self.layout, self.processes, redactor.text, mark, fence, agent)
        return {
            "ledger": ledger,
            "inbox": inbox_of(self, plan.issue),
            "rulebook": rulebook(self.layout, self.project),
            "verifier": judge,
            "stages": self.project.stages,
            "knows_agent": lambda name: name in self.registry.folders(),
            "host": os.uname().nodename,
            "is_running": self.is_running,
        }

    def _sandbox(self, kind: SandboxKind, adapter: Any, definition: AgentDefinition) -> Sandbox | None:
        """What raises the walls; None where there are none, and no gate that would need them."""
        if not kind.has_walls and not hasattr(adapter, "provider"):
            return None
        load_ahead(passed_on(os.environ, *self.layout.folders))
        return make(kind, self.processes, definition.quarters.options)

    def sweeping(self, kind: SandboxKind, sandbox: Sandbox | None, folder: Path) -> Processes:
        """What ends the processes that a dead run left, wherever they are."""
        if sandbox is None or kind not in (SandboxKind.DOCKER, SandboxKind.PODMAN):
            return self.processes
        from genba.wiring.sandbox.goal_commands import EnclosedSweeps  # noqa: PLC0415  (only walls need it)

        return EnclosedSweeps(sandbox, self.processes, folder / "walls")

    def _trees(self, kind: SandboxKind, sandbox: Sandbox | None, plan: RunPlan) -> Any:
        """Behind walls an agent gets a repository of its own; without them, a plain working tree."""
        if not kind.has_walls or sandbox is None:
            return GitWorkingTrees(self.layout)
        from genba.connections.git.private.bundles import BundleLimits  # noqa: PLC0415  (only walls need it)
        from genba.connections.git.private.sandboxed_worktrees import WalledTrees  # noqa: PLC0415

        definition = plan.definition
        # A layer is mounted by one at a time: not for an instance whose work is looked at while it lives.
        overlays = kind is SandboxKind.BUBBLEWRAP and not looks_at_files(definition) and not definition.state_driven
        # A bundle has a size of its own that it may have, however little the agent may write.
        limits = BundleLimits(walls=msgspec.structs.replace(definition.quarters.limits, disk_mb=None))
        identity = agent_identity(definition, plan.issue)
        return WalledTrees(self.layout, sandbox, overlays=overlays, limits=limits, identity=identity)

    async def _ignored(self, names: tuple[str, ...]) -> frozenset[str]:
        """Which of these paths of the user's checkout git ignores."""
        asked = "\0".join(names)
        words = ("check-ignore", "--stdin", "-z")
        top, git_dir = self.layout.top, self.layout.git_dir
        done = await self.layout.git.run(*words, tree=top, git_dir=git_dir, stdin=asked, allow=(0, 1))
        return frozenset(name for name in done.stdout.split("\0") if name)

    def fence(
        self, kind: SandboxKind, sandbox: Sandbox | None = None, agent: AgentEnvironment | None = None
    ) -> GoalSandbox | None:
        """The sandbox of the commands of goals, with the network of an agent; None where the kind has none."""
        if not kind.has_walls:
            return None
        from genba.wiring.verification.verifier import GoalSandbox  # noqa: PLC0415  (see examination)

        settings = self.project.file.sandbox
        return GoalSandbox(self.layout, kind, sandbox or make(kind, self.processes, settings.options), settings, agent)

    def _forge(self, run: str) -> Forge | None:
        settings, office = self.project.file.forge, self.office()
        if settings is None:
            return office.forge(run) if office is not None else None
        tokens = {name: os.environ[name] for name in _FORGE_VARIABLES if name in os.environ}
        return CommandForge(
            settings.open,
            settings.find,
            self.processes,
            self.layout.top,
            {**passed_on(os.environ, *self.layout.folders), **tokens},
            settings.timeout_seconds,
        )

    def _environment(self, plan: RunPlan) -> dict[str, str]:
        identity = agent_identity(plan.definition, plan.issue)
        own = {"PYTHONDONTWRITEBYTECODE": "1"}  # compiled files that are committed by accident are rejected
        return {**passed_on(os.environ, *self.layout.folders), **own, **identity_variables(identity, plan.run)}

    def _handlers(self, definition: AgentDefinition) -> tuple[dict[str, Any], dict[str, Any]]:
        folder = Path(definition.folder)
        completions = {
            part.key: CompletionHandler(part.completion_handler, folder, part.options)
            for part in walk(definition.completion)
            if isinstance(part, Custom)
        }
        actions = {
            kind: load_action(reference, folder)
            for kind, reference in definition.file.runner.actions.handlers.items()
            if not reference.startswith("builtin:")
        }
        return completions, actions


class PreparedRun:
    """A run that is ready to go, and what must be let go of afterwards."""

    def __init__(
        self,
        run: Run,
        journal: JsonlJournal,
        trees: Any,
        keeper: AgentEnvironmentKeeper,
        *,
        office: GitHubOffice | None = None,
        review: ReviewSession | None = None,
        answers: FieldAnswers | None = None,
    ) -> None:
        self.run = run
        self.answers = answers
        """What an agent that facilitates has seen."""
        self.office = office
        """Its connections are let go of when the run ends."""
        self.journal = journal
        self.trees = trees
        self.keeper = keeper
        self.review = review
        """What the session does before and after a review."""

    async def execute(self) -> RunResult:
        try:
            result = await self._execute()
        finally:
            self.trees.release()
            self.journal.close()
            if self.office is not None:
                await self.office.close()
        if result.outcome is Outcome.COMPLETED:
            self.keeper.clear()
        return result

    async def _execute(self) -> RunResult:
        if self.review is None:
            return await self.run.execute()
        return await self.review.execute(self.run)


def _file_of(address: str) -> str:
    """The file of a database that is named by its path or by a `sqlite://` address."""
    return address.partition("://")[2].removeprefix("/") if "://" in address else address


def adapter_files() -> dict[str, tuple[Any, str]]:
    """The files and sections that the built-in adapters read, for their schemas."""
    from genba.connections.agents.custom import ReplyFile  # noqa: PLC0415  (only for schemas)
    from genba.connections.agents.scripted import Script  # noqa: PLC0415

    commands = ("acp", "claude-code", "codex", "custom", "opencode")
    return {
        **{name: (adapter_class(name).settings_type, f"runner.adapter with the type {name}") for name in commands},
        "reply": (ReplyFile, "the reply file that a custom command may write"),
        "script": (Script, "the script of a scripted agent"),
    }


def _user() -> str:
    """The name of whoever is logged in."""
    import getpass  # noqa: PLC0415  (only commands that write to the blackboard ask)

    try:
        return getpass.getuser()
    except (KeyError, OSError, ImportError):
        return f"user {os.getuid()}"


def new_run_id(agent: str) -> str:
    """Sorts by time, reads well, and is never given twice."""
    return f"{agent}-{time.strftime('%Y%m%d-%H%M%S')}-{os.urandom(3).hex()}"


def _jitter() -> float:
    return os.urandom(1)[0] / 256


def _fits(schema: dict[str, Any], value: Any) -> bool:
    from genba.definitions.agent.json_schema import problems_in_value  # noqa: PLC0415  (only agents with schemas pay)

    return not problems_in_value(schema, value, most=1)
