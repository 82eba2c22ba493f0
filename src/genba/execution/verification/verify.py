"""Verification: is this commit done? Artifacts from git, then every goal on the exact commit in a clean checkout."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import msgspec

from genba.domain.goals.detection import DETECTION_FILES, detect, runs_whole_suite
from genba.domain.goals.goal import (
    BuildSucceeds,
    CommandLine,
    CustomScript,
    FrozenGoal,
    Goal,
    LintPasses,
    NoSecrets,
    ProtectedPaths,
    TestAdded,
    TestsPass,
    goal_type,
)
from genba.domain.goals.verification import (
    NOTHING_KEPT,
    BranchFacts,
    GoalResult,
    Kept,
    Place,
    Subject,
    VerdictStatus,
    Verification,
)
from genba.domain.sessions.evidence import CheckResult, CheckStatus
from genba.execution.verification.policy import Policy
from genba.judgement.verification.goal_results import (
    View,
    files_to_lay_over,
    judge_by_facts,
    judge_verification,
    missing_artifacts,
    paths_in_command,
    test_files,
)
from genba.judgement.verification.judging_files import commands_in, files_run, is_manifest
from genba.judgement.verification.paths import PROTECTED, is_setting_of_runners, some

if TYPE_CHECKING:
    from genba.domain.ports import Checkouts, Clock, GoalRunner, History, ResultStore

_OUTPUT_KEPT = 4000
_LINES_IN_PROMPT = 40
_SCRIPTS_IN_SCRIPTS = 3
_MOST_KEPT = 200
_NOT_RUN = "not run: the branch changes what judges it (protected_paths)"
Report = Callable[[GoalResult], None]
ToolsOf = Callable[[Policy, tuple[CommandLine, ...]], Awaitable[str]]


class Verifier:
    """Looks at one commit. It asks git and runs goals; it never asks the agent."""

    def __init__(
        self,
        history: History,
        checkouts: Checkouts,
        runner_for: Callable[[Policy], GoalRunner],
        results: ResultStore,
        clock: Clock,
        environment: str,
        mark: str,
        redact: Callable[[str], str],
        tools: ToolsOf | None = None,
    ) -> None:
        self.history = history
        self.checkouts = checkouts
        self.runner_for = runner_for
        """The runner whose commands get the variables of a policy, and the sandbox that it asks for."""
        self.results = results
        self.clock = clock
        self.environment = environment
        """What the results depend on besides the tree and the goal, as one word."""
        self.mark = mark
        self.redact = redact
        """Hides secrets in what a goal printed, before anybody keeps or shows it."""
        self.tools = tools or _no_tools
        """What the tools are that commands run: results of other ones do not count."""

    async def verify(self, subject: Subject, policy: Policy, report: Report, fresh: bool = False) -> Verification:
        """The verdict on a commit. With `fresh` every goal is checked again."""
        began = self.clock.elapsed()
        facts = await self.history.facts(subject.base, subject.commit)
        missing = missing_artifacts(policy.artifacts, facts, subject)
        results: tuple[GoalResult, ...] = ()
        if not missing:
            view = await self._view(subject, facts, policy)
            results = await _Checking(self, view, policy, report, fresh).all()
        seconds = round(self.clock.elapsed() - began, 3)
        return judge_verification(subject, facts, missing, results, seconds)

    async def _view(self, subject: Subject, facts: BranchFacts, policy: Policy) -> View:
        files, base_files, blobs = await asyncio.gather(
            self.history.files(facts.commit),
            self.history.files(facts.base),
            self.history.read(tuple(_texts(facts))),
        )
        commands = [command for frozen in policy.goals for command in _commands(frozen.goal)]
        judges = {path for command in commands for path in paths_in_command(command, base_files)}
        return View(
            facts=facts,
            subject=subject,
            blobs=blobs,
            files=files,
            base_files=base_files,
            may_change=policy.may_change,
            protected=PROTECTED if policy.protected is None else policy.protected,
            judges=tuple(sorted(judges)),
        )


class _Checking:
    """The goals of one verification, in order."""

    def __init__(self, verifier: Verifier, view: View, policy: Policy, report: Report, fresh: bool) -> None:
        self.verifier = verifier
        self.view = view
        self.policy = policy
        self.report = report
        self.fresh = fresh
        self.runner = verifier.runner_for(policy)
        self.mark = verifier.mark
        self.judges_changed = False
        """Whether the branch changes what judges it, without permission: then no command of it is run, and no setup."""
        self.folders: dict[str, str] = {}
        self.not_ready: dict[str, CheckResult] = {}
        """Why nothing can be run in a folder, for those whose setup did not work."""

    async def all(self) -> tuple[GoalResult, ...]:
        """Every goal in order. What git shows of what judges comes first: a judge that was changed is not run."""
        self.judges_changed = any(self._is_a_changed_judge(frozen) for frozen in self.policy.goals)
        try:
            return tuple([await self._one(frozen) for frozen in self.policy.goals])
        finally:
            for folder in self.folders.values():
                await self.verifier.checkouts.close(folder)

    def _is_a_changed_judge(self, frozen: FrozenGoal) -> bool:
        if not isinstance(frozen.goal, ProtectedPaths) or not frozen.goal.required or frozen.refused:
            return False
        found = judge_by_facts(frozen.goal, self.view)
        return found is not None and not found.passed

    async def _one(self, frozen: FrozenGoal) -> GoalResult:
        if frozen.refused:
            refused = GoalResult(goal=frozen, result=CheckResult(frozen.type, CheckStatus.ERROR, frozen.refused))
            self.report(refused)
            return refused
        by_facts = judge_by_facts(frozen.goal, self.view)
        result = GoalResult(goal=frozen, result=by_facts) if by_facts else await self._run(frozen)
        self.report(result)
        return result

    async def _run(self, frozen: FrozenGoal) -> GoalResult:
        goal = await self._with_command(frozen.goal)
        frozen = msgspec.structs.replace(frozen, goal=goal)
        key = await self._key(goal)
        known = None if self.fresh else self.verifier.results.find(key)
        if known is not None:
            return GoalResult(goal=frozen, result=_short(known), log=key[:12], cached=True)
        if self.judges_changed and not _is_scan(goal):
            return GoalResult(goal=frozen, result=CheckResult(frozen.type, CheckStatus.ERROR, _NOT_RUN))
        result = await self._in_checkout(goal)
        if isinstance(goal, TestAdded) and result.passed and runs_whole_suite(goal.command):
            result = await self._with_control(goal, result)
        result = self._without_secrets(result)
        log = self.verifier.results.keep(key, result, _reusable(result))
        return GoalResult(goal=frozen, result=_short(result), log=log)

    def _without_secrets(self, result: CheckResult) -> CheckResult:
        redact = self.verifier.redact
        return msgspec.structs.replace(result, detail=redact(result.detail), output=redact(result.output))

    async def _with_control(self, goal: TestAdded, result: CheckResult) -> CheckResult:
        """A whole suite that is red on the base proves something only if it is green there without the new tests."""
        facts, suite = self.view.facts, TestsPass(command=goal.command, timeout_seconds=goal.timeout_seconds)
        folder = await self._folder(facts.base, await self._kept(goal))
        control = await self.runner.run(suite, Place(folder=folder, commit=facts.base, base=facts.base), self.mark)
        if control.passed or control.ran_no_test:  # where there is no other test, none is red
            return result
        message = f"the tests are red on the base already, so a new one proves nothing: {control.detail}"
        return CheckResult(result.name, CheckStatus.ERROR, message, control.output, result.seconds + control.seconds)

    async def _in_checkout(self, goal: Goal) -> CheckResult:
        """Run a goal where nothing but the commit is. Who needs no files gets none."""
        facts, name = self.view.facts, goal_type(goal)
        if _is_scan(goal):
            place = Place(folder="", commit=facts.commit, base=facts.base)
            return await self.runner.run(goal, place, self.mark)
        kept = await self._kept(goal)
        folder = await self._folder(facts.commit, kept)
        if folder in self.not_ready:
            return msgspec.structs.replace(self.not_ready[folder], name=name)
        place = Place(folder=folder, commit=facts.commit, base=facts.base)
        if isinstance(goal, TestAdded):
            files, laid = test_files(self.view, goal), files_to_lay_over(self.view, goal)
            over = tuple((change.path, change.new_blob) for change in facts.changes if change.path in laid)
            base = await self._folder(facts.base, kept, over)
            if base in self.not_ready:  # nothing is red there for the right reason
                why = f"on the base: {self.not_ready[base].detail}"
                return CheckResult(name, CheckStatus.ERROR, why, self.not_ready[base].output)
            place = msgspec.structs.replace(place, base_folder=base, files=files)
        return await self._unless_judges_changed(await self.runner.run(goal, place, self.mark), place)

    async def _unless_judges_changed(self, result: CheckResult, place: Place) -> CheckResult:
        """The result of what ran in a place. It passes nothing that rewrote what judges it."""
        folders = [folder for folder in (place.folder, place.base_folder) if folder]
        changed = [path for folder in folders for path in await self.verifier.checkouts.changed(folder)]
        if not changed or not result.passed:
            return result
        message = f"changed {some(list(dict.fromkeys(changed)), 3)}, which judges it, while it ran"
        return msgspec.structs.replace(result, status=CheckStatus.FAILED, detail=message)

    async def _kept(self, goal: Goal) -> Kept:
        """What judges while a goal runs: the scripts that its command runs, what these run, and settings of runners."""
        commands, commit, files = _commands(goal), self.view.facts.commit, frozenset(self.view.files)
        if not commands:
            return NOTHING_KEPT
        texts = [words if isinstance(words, str) else " ".join(words) for words in commands]
        run = new = frozenset[str]().union(*(files_run(words, files) for words in commands))
        for _ in range(_SCRIPTS_IN_SCRIPTS):
            found = await self.verifier.history.read(tuple(f"{commit}:{path}" for path in sorted(new)))
            scripts = [commands_in(name.partition(":")[2], text) for name, text in found.items()]
            texts += scripts
            new = frozenset[str]().union(*(files_run(script, files) for script in scripts)) - run
            run |= new
        judges = {path for path in run if not is_manifest(path)} | {
            path for path in files if is_setting_of_runners(path)
        }
        return Kept(paths=tuple(sorted(judges))[:_MOST_KEPT], modes_change=any("chmod" in text for text in texts))

    async def _folder(self, commit: str, kept: Kept, over: tuple[tuple[str, str], ...] = ()) -> str:
        """A checkout that nothing has run in since its setup: no goal sees what another one left."""
        key = f"{commit} {over}"
        if key not in self.folders:
            self.folders[key] = await self._opened(commit, over)
        await self.verifier.checkouts.renew(self.folders[key], kept=kept)
        return self.folders[key]

    async def _opened(self, commit: str, over: tuple[tuple[str, str], ...]) -> str:
        """A new checkout with what its commands need."""
        folder = await self.verifier.checkouts.open(commit, over, self.policy.sandboxed)
        try:
            await self._set_up(folder, commit)
        except BaseException:
            await self.verifier.checkouts.close(folder)
            raise
        return folder

    async def _set_up(self, folder: str, commit: str) -> None:
        """Install what the commands need. If that fails, nothing that runs there can be judged."""
        if not self.policy.setup:
            return
        limit = self.policy.setup_timeout_seconds
        script = CustomScript(script=self.policy.setup, timeout_seconds=limit)
        place = Place(folder=folder, commit=commit, base=commit)
        await self.verifier.checkouts.renew(folder, setup=True)
        done = await self.runner.run(script, place, self.mark)
        await self.verifier.checkouts.keep(folder)
        if not done.passed:
            self.not_ready[folder] = msgspec.structs.replace(done, detail=f"the setup of the checkout: {done.detail}")

    async def _with_command(self, goal: Goal) -> Goal:
        """A goal whose command the base did not suggest takes the one that the commit itself suggests."""
        if not isinstance(goal, LintPasses | BuildSucceeds | TestsPass) or goal.command is not None:
            return goal
        commit = self.view.facts.commit
        texts = await self.verifier.history.read(tuple(f"{commit}:{name}" for name in DETECTION_FILES))
        found = detect({name.partition(":")[2]: text for name, text in texts.items()}, self.view.files)
        match goal:
            case LintPasses():
                return msgspec.structs.replace(goal, command=found.lint)
            case BuildSucceeds():
                return msgspec.structs.replace(goal, command=found.build)
            case TestsPass():
                return msgspec.structs.replace(goal, command=found.test)

    async def _key(self, goal: Goal) -> str:
        """What a result depends on: the tree, the goal, its tools and the environment; for some also their origin."""
        facts = self.view.facts
        parts = [facts.tree, self.verifier.environment, msgspec.json.encode(self.policy.setup).decode()]
        parts.append(msgspec.json.encode(msgspec.structs.replace(goal, required=True)).decode())
        parts.append(msgspec.json.encode(self.policy.environment, order="sorted").decode())
        network = f"network={self.policy.network} setup={self.policy.setup_network}"
        parts.append(f"sandbox={self.policy.sandboxed} {network}")
        run = (*_commands(goal), *filter(None, (getattr(goal, "serve", None), self.policy.setup)))
        parts.append(await self.verifier.tools(self.policy, run))
        if isinstance(goal, NoSecrets | TestAdded | CustomScript):  # a script may ask git for its history
            parts += [facts.base, facts.commit]
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _is_scan(goal: Goal) -> bool:
    """Whether it is the scan of Genba's own, which runs no file of the commit."""
    return isinstance(goal, NoSecrets) and goal.command is None


async def _no_tools(_policy: Policy, _commands: tuple[CommandLine, ...]) -> str:
    return ""


def _reusable(result: CheckResult) -> bool:
    """Whether a result would be the same again: not when the machinery broke or the time was up."""
    return result.status is not CheckStatus.ERROR and not result.timed_out


def evidence(verification: Verification) -> CheckResult:
    """A verdict that is not `done`, as the one failed check that goes back to the agent."""
    lines = list(verification.findings)
    for found in verification.results:
        if found.rejects or found.broken:
            lines.append(f"{found.goal.type} ({found.goal.level}): {found.result.detail}")
            lines += [f"  | {line}" for line in found.result.output.strip().splitlines()[-_LINES_IN_PROMPT:]]
    failed = [found.goal.type for found in verification.results if found.rejects or found.broken]
    named = ", ".join(verification.missing or failed)
    broken = verification.status is VerdictStatus.ERROR
    status = CheckStatus.ERROR if broken else CheckStatus.FAILED
    detail = lines[0] if broken and lines else f"{verification.verdict} ({named})"
    return CheckResult("verification", status, detail, "\n".join(lines))


def _texts(facts: BranchFacts) -> list[str]:
    """The blobs on both sides of every change, links included: their text is where they point to."""
    sides = [(change.old_mode, change.old_blob) for change in facts.changes]
    sides += [(change.new_mode, change.new_blob) for change in facts.changes]
    return [blob for mode, blob in sides if mode not in ("000000", "160000") and blob.strip("0")]


def _commands(goal: Goal) -> list[CommandLine]:
    """What a goal judges by, in its own words. A service is what is judged, not a judge."""
    named = [getattr(goal, field, None) for field in ("command", "script")]
    return [command for command in named if command]


def _short(result: CheckResult) -> CheckResult:
    """The end of a long output; the whole of it is in the log."""
    return msgspec.structs.replace(result, output=result.output[-_OUTPUT_KEPT:])
