"""The policy of a verification: the goals of all three levels and what goes with them, frozen from the base branch.

Nothing of it is read from the branch that is verified, so a branch cannot change what it is judged by.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from genba.definitions.project.goal_sections import RulesFile, TaskTypeSettings
from genba.definitions.project.project import CONFIG_FILES, rules_from
from genba.domain.goals.detection import DETECTION_FILES, Detected, detect, is_gitleaks
from genba.domain.goals.goal import (
    GUARDS,
    OF_CHANGES,
    BuildSucceeds,
    CommandLine,
    EndpointResponds,
    FilesChanged,
    FrozenGoal,
    Goal,
    GoalLevel,
    GoalSource,
    LintPasses,
    NoSecrets,
    ResponseContains,
    TestAdded,
    TestsPass,
    goal_type,
    what_it_runs,
)
from genba.domain.goals.verification import ArtifactType
from genba.domain.sessions.sandbox import Network
from genba.judgement.language.wording import say
from genba.judgement.loop.closure import moves_on, stage_of

if TYPE_CHECKING:
    from genba.domain.ports import History
    from genba.domain.tasks.task import Task

_COMMIT, _BRANCH = ArtifactType.COMMIT, ArtifactType.BRANCH
EXPECTED: dict[str, tuple[ArtifactType, ...]] = {
    "task": (_COMMIT,),
    "feature": (_COMMIT, _BRANCH),
    "bug": (_COMMIT, _BRANCH),
    "refactor": (_COMMIT, _BRANCH),
    "docs": (_COMMIT,),
    "test": (_COMMIT,),
}
"""The built-in task types, and the artifacts that each must leave."""
TYPE_RULES: dict[str, tuple[Goal, ...]] = {
    "feature": (FilesChanged(pattern=":code"),),
    "bug": (TestAdded(must_fail_on_base=True),),
    "refactor": (TestsPass(),),
    "test": (FilesChanged(pattern=":tests"),),
}
MAY_CHANGE: dict[str, tuple[str, ...]] = {"test": (":tests",)}
"""What a type allows by itself: a task about tests may change tests."""


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """What a commit is held to."""

    goals: tuple[FrozenGoal, ...]
    artifacts: tuple[ArtifactType, ...] = ()
    may_change: tuple[str, ...] = ()
    protected: tuple[str, ...] | None = None
    setup: CommandLine | None = None
    setup_timeout_seconds: float = 900
    environment: dict[str, str] = {}
    sandboxed: bool = True
    """True when commands run in the sandbox of the project, where it has one."""
    network: Network | None = None
    """What goals can reach in a sandbox; None: what the agents of the project can."""
    setup_network: Network = Network.FULL
    base: str = ""
    """The commit that it was read from."""

    @property
    def declared(self) -> bool:
        """True when the project or the task asks for a goal; built-in checks alone do not count."""
        return any(frozen.origin != "built in" for frozen in self.goals)

    def described(self, language: str = "en") -> str:
        """The goals in words for a prompt."""
        lines = [f"- {_in_words(frozen, language)}" for frozen in self.goals]
        if self.may_change:
            lines.append(say(language, "protected", paths=", ".join(self.may_change)))
        return "\n".join(lines)


class BaseRules(msgspec.Struct, frozen=True):
    """What a commit says that work on it is held to."""

    base: str
    rules: RulesFile
    origin: str
    """Where the rules stand, in words."""
    detected: Detected

    def policy(self, task: Task | None, may_change: tuple[str, ...] = (), *, own_goals: bool = False) -> Policy:
        """See `PolicyResolver.freeze`."""
        rules = self.rules
        goals = [] if own_goals else _dod(rules, self.origin)
        settings = rules.task_types.get(task.type, TaskTypeSettings()) if task is not None else TaskTypeSettings()
        if task is not None and not own_goals:
            goals += _type_rules(task.type, settings, self.origin, _test_command(rules), self.detected.test)
        if task is not None:
            goals += _acceptance(task)
        stages = settings.stages if task is not None and not own_goals else ()
        each = _each_once(_with_endpoints(goals))
        completed = tuple(_due(_complete(frozen, rules, self.detected), stages, task) for frozen in each)
        own = MAY_CHANGE.get(task.type, ()) if task is not None and settings.may_change is None else settings.may_change
        return Policy(
            goals=completed,
            artifacts=() if own_goals else _expected(task, settings, stages),
            may_change=(*(own or ()), *(task.may_change if task is not None else ()), *may_change),
            protected=rules.verification.protected_paths,
            setup=rules.verification.setup or self.detected.setup,
            setup_timeout_seconds=rules.verification.setup_timeout_seconds,
            environment=rules.verification.environment,
            sandboxed=rules.verification.sandbox,
            network=rules.verification.network,
            setup_network=rules.verification.setup_network or rules.verification.network or Network.FULL,
            base=self.base,
        )


class PolicyResolver:
    """Freezes policies. `fallback` are the settings of the user's checkout, for a base that has none committed."""

    def __init__(self, history: History, fallback: RulesFile | None, fallback_source: str) -> None:
        self.history = history
        self.fallback = fallback
        self.fallback_source = fallback_source

    async def freeze(
        self,
        base: str,
        base_branch: str,
        task: Task | None,
        may_change: tuple[str, ...] = (),
        *,
        own_goals: bool = False,
    ) -> Policy:
        """The policy for a task, or for a run without one: then only the Definition of Done counts.

        With `own_goals` the acceptance criteria of the task count alone, those too that stand elsewhere already.
        """
        return (await self.read(base, base_branch)).policy(task, may_change, own_goals=own_goals)

    async def read(self, base: str, base_branch: str) -> BaseRules:
        """What a base says, for any number of tasks."""
        names = tuple(f"{base}:{name}" for name in (*CONFIG_FILES, *DETECTION_FILES))
        files = await self.history.files(base)
        texts = await self.history.read(names)
        found = {name.partition(":")[2]: text for name, text in texts.items()}
        rules, origin = self._rules(found, base_branch or base[:7])
        detected = detect({name: found[name] for name in DETECTION_FILES if name in found}, files)
        return BaseRules(base, rules, origin, detected)

    def _rules(self, found: dict[str, str], branch: str) -> tuple[RulesFile, str]:
        """What the base branch calls done, and where that stands."""
        for path in CONFIG_FILES:
            if path in found:
                at = f"{path} at {branch}"
                return rules_from(found[path], at) or RulesFile(), at
        if self.fallback is not None:
            return self.fallback, f"{self.fallback_source}, not committed"
        return RulesFile(), "built in"


def known_types(rules: RulesFile | None) -> tuple[str, ...]:
    """The task types of a project: the built-in ones, and those of its settings."""
    return tuple(dict.fromkeys([*EXPECTED, *(rules.task_types if rules is not None else ())]))


def _in_words(frozen: FrozenGoal, language: str) -> str:
    """A goal as a line: its type, its condition, and whether it rejects."""
    result = msgspec.to_builtins(frozen.goal)
    condition = {
        key: value
        for key, value in result.items()
        if key not in ("type", "required", "timeout_seconds", "ready_seconds") and value not in (None, {}, False)
    }
    shown = ", ".join(f"{key} {value}" for key, value in condition.items())
    meaning = say(language, f"means_{frozen.type}") if frozen.goal in GUARDS and not shown else ""
    required = "" if frozen.goal.required else say(language, "reported_only")
    return f"{frozen.type}: {shown or meaning}".rstrip(": ") + required


def _dod(rules: RulesFile, origin: str) -> list[FrozenGoal]:
    level, source = GoalLevel.DOD, GoalSource.PROJECT_CONFIG
    declared = [FrozenGoal(level=level, source=source, origin=origin, goal=goal) for goal in rules.dod]
    named = {frozen.type for frozen in declared}
    guards = [
        FrozenGoal(level=level, source=GoalSource.TYPE_DEFAULT, origin="built in", goal=guard)
        for guard in GUARDS
        if goal_type(guard) not in named
    ]
    return [*declared, *guards]


def _type_rules(
    kind: str, settings: TaskTypeSettings, origin: str, own_tests: CommandLine | None, detected_tests: str | None
) -> list[FrozenGoal]:
    level = GoalLevel.TYPE_RULE
    if settings.goals is not None:
        source = GoalSource.PROJECT_CONFIG
        message = f"{kind} rule, {origin}"
        return [FrozenGoal(level=level, source=source, origin=message, goal=goal) for goal in settings.goals]
    source, message = GoalSource.TYPE_DEFAULT, f"{kind} rule, built in"
    goals = (_possible(goal, own_tests, detected_tests) for goal in TYPE_RULES.get(kind, ()))
    return [FrozenGoal(level=level, source=source, origin=message, goal=goal) for goal in goals]


def _possible(goal: Goal, own_tests: CommandLine | None, detected_tests: str | None) -> Goal:
    """A built-in rule asks for no more than the project can show: without a test command nothing can be red.

    It runs the tests as the project itself does; what would be found out by the files counts only without a setting.
    """
    if isinstance(goal, TestAdded) and own_tests is None and detected_tests is None:
        return msgspec.structs.replace(goal, must_fail_on_base=False)
    if isinstance(goal, TestsPass) and own_tests is not None:
        return msgspec.structs.replace(goal, command=own_tests)
    return goal


def _acceptance(task: Task) -> list[FrozenGoal]:
    """The criteria of a task. One that an agent wrote and that runs something no person enabled is refused."""
    found = []
    for goal in task.goals:
        by_agent = goal in task.agent_goals
        runs = what_it_runs(goal) if by_agent and goal not in task.enabled_goals else ""
        found.append(
            FrozenGoal(
                level=GoalLevel.ACCEPTANCE_CRITERIA,
                source=GoalSource.AI_INFERRED if by_agent else GoalSource.HUMAN_DEFINED,
                origin=f"task #{task.number}",
                goal=goal,
                refused=f"an agent wrote its `{runs}`: genba task edit {task.number} --agent-commands" if runs else "",
            )
        )
    return found


def _expected(task: Task | None, settings: TaskTypeSettings, stages: tuple[str, ...]) -> tuple[ArtifactType, ...]:
    if task is None or _another_follows(stages, task):
        return ()
    expected = settings.artifacts if settings.artifacts is not None else EXPECTED.get(task.type, (_COMMIT,))
    found = {kind for phase in task.phases for kind in phase.artifacts} if stages else set()
    return tuple(kind for kind in expected if kind not in found)


def _another_follows(stages: tuple[str, ...], task: Task) -> bool:
    stage = stage_of(stages, task)
    return bool(stage) and moves_on(stages, task, stage)


def _due(frozen: FrozenGoal, stages: tuple[str, ...], task: Task | None) -> FrozenGoal:
    """The goal as it counts at the stage of a task: reported only where it is due later, or was met already.

    What the type and the task ask for is due at the last stage. A goal about changes is met once, by whichever stage.
    """
    if task is None or not stages or not frozen.goal.required:
        return frozen
    later = frozen.level is not GoalLevel.DOD and _another_follows(stages, task)
    shown = [msgspec.structs.replace(goal, required=True) for phase in task.phases for goal in phase.shown]
    met = isinstance(frozen.goal, OF_CHANGES) and frozen.goal in shown
    if not later and not met:
        return frozen
    return msgspec.structs.replace(frozen, goal=msgspec.structs.replace(frozen.goal, required=False))


_NO_ENDPOINT = "it names no url, and no endpoint_responds stands before it: write response_contains: URL $.PATH exists"


def _with_endpoints(goals: list[FrozenGoal]) -> list[FrozenGoal]:
    """A response_contains without a url asks what the last endpoint_responds before it asks."""
    found: list[FrozenGoal] = []
    last: EndpointResponds | None = None
    for frozen in goals:
        goal, written = frozen.goal, frozen
        if isinstance(goal, EndpointResponds):
            last = goal
        elif isinstance(goal, ResponseContains) and not goal.url and last is None:
            written = msgspec.structs.replace(frozen, refused=frozen.refused or _NO_ENDPOINT)
        elif isinstance(goal, ResponseContains) and not goal.url and last is not None:
            written = msgspec.structs.replace(frozen, goal=_same_request(goal, last))
        found.append(written)
    return found


def _same_request(goal: ResponseContains, asked: EndpointResponds) -> ResponseContains:
    return msgspec.structs.replace(
        goal,
        url=asked.url,
        method=asked.method,
        headers=asked.headers,
        body=asked.body,
        serve=goal.serve or asked.serve,
        ready_when=goal.ready_when or asked.ready_when,
        ready_seconds=asked.ready_seconds,
    )


def _each_once(goals: list[FrozenGoal]) -> list[FrozenGoal]:
    """The same goal on two levels is checked once, where it stands first; required wins over not required."""
    found: dict[bytes, FrozenGoal] = {}
    for frozen in goals:
        key = msgspec.json.encode(msgspec.structs.replace(frozen.goal, required=True))
        known = found.get(key)
        if known is None or (frozen.goal.required and not known.goal.required):
            found[key] = frozen
    return list(found.values())


def _complete(frozen: FrozenGoal, rules: RulesFile, detected: Detected) -> FrozenGoal:
    """The goal with the command that the base suggests, and the service of the project."""
    if frozen.refused:
        return frozen
    goal = frozen.goal
    match goal:
        case LintPasses(command=None):
            goal = msgspec.structs.replace(goal, command=detected.lint)
        case BuildSucceeds(command=None):
            goal = msgspec.structs.replace(goal, command=detected.build)
        case TestsPass(command=None):
            goal = msgspec.structs.replace(goal, command=detected.test)
        case TestAdded(command=None, must_fail_on_base=True):
            goal = msgspec.structs.replace(goal, command=_test_command(rules) or detected.test)
        case EndpointResponds(serve=None) | ResponseContains(serve=None):
            settings = rules.verification
            goal = msgspec.structs.replace(
                goal, serve=settings.serve, ready_when=goal.ready_when or settings.ready_when
            )
        case NoSecrets(command=command) if command is not None and is_gitleaks(command):
            goal = msgspec.structs.replace(goal, command=None)
        case _:
            return frozen
    return msgspec.structs.replace(frozen, goal=goal)


def _test_command(rules: RulesFile) -> CommandLine | None:
    """The command by which the project itself runs its tests."""
    return next((goal.command for goal in rules.dod if isinstance(goal, TestsPass) and goal.command), None)
