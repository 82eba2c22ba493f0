"""Observing: facts from git, and the checks that are due, in order."""

import msgspec

from genba.definitions.agent.completion import ExternalState
from genba.domain.errors import CheckBrokenError
from genba.domain.events import CheckFinished
from genba.domain.sessions.evidence import CheckResult, CheckStatus, TreeFacts
from genba.domain.sessions.loop_state import LoopState
from genba.domain.sessions.workspaces import Workspace
from genba.execution.session_context import SessionContext
from genba.judgement.language.wording import say
from genba.judgement.loop.git_checks import judge_check
from genba.judgement.loop.verdicts import Judge


class Observing:
    """Gathers the evidence of one iteration. It believes nothing that the reply says."""

    def __init__(self, judge: Judge, context: SessionContext, workspace: Workspace, issue: int | None) -> None:
        self.judge = judge
        self.context = context
        self.workspace = workspace
        self.issue = issue
        self.follows_issue = any(isinstance(part, ExternalState) for part in judge.parts)

    async def issue_closed(self) -> bool:
        if self.issue is None or not self.follows_issue:
            return False
        return (await self.context.tracker.tracker.read(self.issue)).closed

    async def facts(self) -> TreeFacts:
        """What git shows now."""
        return await self.context.git.trees.observe(self.workspace)

    async def gather(self, state: LoopState, due: tuple[str, ...]) -> tuple[TreeFacts, tuple[CheckResult, ...]]:
        """Conditions run in order and stop at the first failure that counts."""
        facts = await self.facts()
        results: list[CheckResult] = []
        for name in due:
            result = await self._recorded(name, facts, state)
            results.append(result)
            if not result.passed and not self.judge.skips(state.step, name):
                break
        return await self._after_checks(facts) if results else facts, tuple(results)

    async def _after_checks(self, facts: TreeFacts) -> TreeFacts:
        """The facts, unless a check changed the tree: then what it left counts as uncommitted."""
        after = await self.context.git.trees.observe(self.workspace)
        if after.tree == facts.tree and after.head == facts.head:
            return facts
        return msgspec.structs.replace(after, dirty=after.dirty or ("changed by a check",))

    async def first_failure(self, state: LoopState, checks: tuple[str, ...]) -> CheckResult | None:
        """Run these checks on the tree that would land, as Genba has put it there; the first that does not hold.

        It is on no branch by then, and that is no fault of the work.
        """
        facts = msgspec.structs.replace(await self.context.git.trees.observe(self.workspace), strayed="")
        for name in checks:
            result = await self._recorded(name, facts, state)
            if not result.passed:
                return result
        after = await self._after_checks(facts)
        if checks and after.dirty and not facts.dirty:
            outcome = say(self.judge.definition.language, "check_changes_tree", paths=", ".join(after.dirty[:5]))
            return CheckResult(checks[-1], CheckStatus.FAILED, outcome)
        return None

    async def _recorded(self, name: str, facts: TreeFacts, state: LoopState) -> CheckResult:
        """The result of a check, written down; a check that cannot be run is an error."""
        result = await self._check(name, facts)
        where = {"step": state.step, "iteration": state.iterations + 1}
        self.context.journal.emit(CheckFinished(result=result, **where))  # type: ignore[arg-type]
        if result.status is CheckStatus.ERROR:
            raise CheckBrokenError(f"the check {name} could not be run: {result.detail}")
        return result

    async def _check(self, name: str, facts: TreeFacts) -> CheckResult:
        check = self.judge.definition.check(name)
        by_facts = judge_check(name, check, facts, self.judge.definition.language)
        if by_facts is not None:
            return by_facts
        return await self.context.git.checks.run(name, check, self.workspace, self.workspace.run)
