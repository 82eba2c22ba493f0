"""The proof of a run: its work is verified as a commit before it leaves its branch, and again as it would land.

Law: a person who changes the goals of a task, or what the base calls done, changes what the work is held to from the
next verification on. What was verified before that does not land on the old verdict.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from genba.domain.events import GoalChecked, VerificationFinished
from genba.domain.goals.verification import GoalResult, Subject, Verification
from genba.domain.sessions.evidence import CheckResult, CheckStatus
from genba.domain.sessions.workspaces import Proposal, Workspace
from genba.execution.delivery.pull_request_text import Evidence, evidence_of
from genba.execution.delivery.task_updates import TaskKeeper
from genba.execution.session_context import SessionContext
from genba.execution.verification.policy import Policy, PolicyResolver
from genba.execution.verification.verify import Verifier, evidence
from genba.judgement.language.wording import say

if TYPE_CHECKING:
    from genba.definitions.agent.definition import AgentDefinition
    from genba.domain.ports import Steps


class Proved(msgspec.Struct, frozen=True, kw_only=True):
    """What a verification of the branch came to."""

    red: CheckResult | None = None
    commit: str = ""
    """The commit that was looked at; empty when there was nothing to verify."""
    verdict: str = ""
    evidence: Evidence | None = None
    """What was seen, for a run that opens a pull request."""


PolicyOf = Callable[[str], Awaitable[Policy]]
"""Returns what work over a base is held to now."""


class VerificationContext(msgspec.Struct, frozen=True, kw_only=True):
    """Reads what work is held to, and verifies it."""

    policies: PolicyResolver
    verifier: Verifier

    def proof(
        self,
        context: SessionContext,
        definition: AgentDefinition,
        policy: Policy,
        tasks: TaskKeeper | None,
        policy_of: PolicyOf,
        claiming: asyncio.Lock,
    ) -> Proof:
        return Proof(context, self.verifier, definition, policy, tasks, policy_of, claiming)


class Proof:
    """Verifies the work of one run against what it is held to, and writes down what was seen."""

    def __init__(
        self,
        context: SessionContext,
        verifier: Verifier,
        definition: AgentDefinition,
        policy: Policy,
        tasks: TaskKeeper | None,
        policy_of: PolicyOf,
        claiming: asyncio.Lock,
    ) -> None:
        self.context = context
        self.verifier = verifier
        self.definition = definition
        self.claiming = claiming
        """Held while the work is verified, which an agent may claim to be done while it lives."""
        self.policy = policy
        """What the newest verdict held the work to; at first, what the session began with."""
        self.policy_of = policy_of
        self.tasks = tasks
        self.verdict = ""
        """The newest verdict on the work of this run."""
        self.held = ""
        """The commit that the newest verdict is about."""
        self.done = False
        self.last: Verification | None = None
        """The newest verification, where this process has made it."""
        self.evidence: Evidence | None = None
        """What a pull request tells of it."""

    async def verify(self, steps: Steps, workspace: Workspace, conflicts: tuple[str, ...]) -> CheckResult | None:
        """Verify the branch as a step; returns what fails, None when it is done."""
        proved = await steps.run("verify", partial(self.prove, workspace, conflicts), Proved)
        self._recall(proved)
        return proved.red

    async def prove(self, workspace: Workspace, conflicts: tuple[str, ...]) -> Proved:
        """Verify the branch as it is now. Safe to repeat."""
        async with self.claiming:
            known = await self.known(workspace) if self.definition.state_driven else None
            if known is not None:
                return known
            markers = await self._markers_left(workspace, conflicts)
            if markers is not None:
                return Proved(red=markers)
            proved = await self.of_branch(workspace)
        proposes = self.definition.file.runner.execution.finalize.create_pr
        if proposes and self.last is not None:
            return msgspec.structs.replace(proved, evidence=evidence_of(self.last))
        return proved

    async def _markers_left(self, workspace: Workspace, conflicts: tuple[str, ...]) -> CheckResult | None:
        """Returns a failed check where the work still has the markers of the conflict that it came back with."""
        rework = self.context.git.rework
        if not conflicts or rework is None:
            return None
        seen = await self.context.git.trees.observe(workspace)
        left = await rework.markers_left(seen.head, conflicts)
        if not left:
            return None
        message = say(self.definition.language, "markers_left", paths=", ".join(left))
        return CheckResult("conflict", CheckStatus.FAILED, message)

    async def known(self, workspace: Workspace) -> Proved | None:
        """What was proved of the branch as it stands; None where it must be looked at."""
        if not self.done or not self.held:
            return None
        seen = await self.context.git.trees.observe(workspace)
        if seen.head != self.held or seen.strayed or not await self.is_current(workspace.base):
            return None
        return Proved(commit=self.held, verdict=self.verdict)

    async def is_current(self, base: str) -> bool:
        """Whether the newest verdict is about what work over this base is held to now."""
        current = await self.policy_of(base)
        return msgspec.structs.replace(current, base=self.policy.base) == self.policy

    async def of_branch(self, workspace: Workspace) -> Proved:
        """Whether the branch as it stands is done; nothing is red when there is nothing to verify."""
        red = await self._of_branch(workspace)
        return Proved(red=red, commit=self.held, verdict=self.verdict)

    def _recall(self, proved: Proved) -> None:
        """Know again what was proved, by whichever process."""
        self.held, self.verdict, self.done = proved.commit, proved.verdict, bool(proved.commit) and proved.red is None
        self.evidence = proved.evidence
        if self.tasks is not None and self.held:
            self.tasks.verified = self.held if self.done else ""

    async def _of_branch(self, workspace: Workspace) -> CheckResult | None:
        seen = await self.context.git.trees.observe(workspace)
        if self.tasks is None and not seen.commits:
            return None
        if await self._shares_nothing(workspace, seen.head):
            message = f"{workspace.branch} shares no commit with {workspace.base_branch} any more: it could not land"
            return CheckResult("history", CheckStatus.FAILED, message)
        elsewhere = await self.context.git.repository.left_elsewhere(
            f"{self.definition.name}@agents.invalid", workspace
        )
        return await self._verdict(
            Subject(
                commit=seen.head,
                base=workspace.base,
                branch=workspace.branch,
                base_branch=workspace.base_branch,
                dirty=seen.dirty,
                strayed=seen.strayed,
                elsewhere=elsewhere,
            ),
        )

    async def _shares_nothing(self, workspace: Workspace, head: str) -> bool:
        """True when the branch no longer contains the commit that it began at."""
        return await self.verifier.history.fork_point(workspace.base, head) is None

    async def of_merge(self, workspace: Workspace, proposal: Proposal) -> CheckResult | None:
        """Why what would land is not done; the base may have moved since the branch was verified."""
        return await self._verdict(
            Subject(
                commit=proposal.commit,
                base=proposal.base,
                branch=workspace.branch,
                base_branch=workspace.base_branch,
            ),
            of_merge=True,
        )

    async def _verdict(self, subject: Subject, of_merge: bool = False) -> CheckResult | None:
        """Verify a commit; what is not done comes back as one failed check, with the evidence in it."""
        self.policy = await self.policy_of(subject.base)
        verification = await self.verifier.verify(subject, self.policy, self._tell)
        self.held, self.verdict, self.done = subject.commit, verification.verdict, verification.done
        self.last = verification
        self.context.journal.emit(verification_finished(verification, self.context.redact))
        if self.tasks is not None:
            await self.tasks.record(verification, of_merge)
        return None if verification.done else evidence(verification)

    def _tell(self, found: GoalResult) -> None:
        self.context.journal.emit(goal_checked(found))


def goal_checked(found: GoalResult) -> GoalChecked:
    return GoalChecked(
        goal=found.goal.type,
        level=found.goal.level,
        required=found.goal.goal.required,
        result=found.result,
        log=found.log,
        cached=found.cached,
    )


def verification_finished(verification: Verification, redact: Callable[[str], str]) -> VerificationFinished:
    return VerificationFinished(
        status=verification.status,
        reason=verification.reason or "",
        commit=verification.subject.commit,
        findings=tuple(redact(message) for message in verification.findings),
        seconds=verification.seconds,
    )
