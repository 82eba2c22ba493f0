"""After the loop: merge → push → pull request → clean up. Every step is recorded first and safe to repeat.

What leaves the working tree was checked: when the commit that would land is not the tree that was judged, because the
base moved, a conflict was resolved or changes were left uncommitted, the checks run again on that commit alone.
"""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Protocol

import msgspec

from genba.definitions.agent.agent_json import Finalize
from genba.domain.errors import ConfigurationError, DiskFullError, GenbaError, StateConflictError
from genba.domain.events import EffectDone, EffectPlanned, MergeFinished, Notice, WorkspaceClosed
from genba.domain.problems import Problem
from genba.domain.sessions.evidence import CheckResult
from genba.domain.sessions.workspaces import MergeResult, MergeStatus, Proposal, PullRequest, Workspace
from genba.execution.run_values import ReviewResult
from genba.execution.session_context import SessionContext
from genba.execution.shield import uncut
from genba.judgement.verification.paths import some

if TYPE_CHECKING:  # see PullRequest
    from genba.domain.tracker.remote import Terms

Verify = Callable[[], Awaitable[CheckResult | None]]
"""Runs the checks of the run on its working tree; returns the first that fails."""


class Landing(Protocol):
    """What lands is held to the goals as they are now."""

    held: str
    """The commit of the branch on which the goals hold; empty where nothing was verified."""

    async def of_merge(self, workspace: Workspace, proposal: Proposal) -> CheckResult | None:
        """Why what would land is not done."""
        ...

    async def is_current(self, base: str) -> bool:
        """Whether the newest verdict is about the goals that work over this base is held to now."""
        ...


_ROUNDS = 10


class Finalized(msgspec.Struct, frozen=True, kw_only=True):
    """What became of the branch. Where something stands in the way, everything is kept."""

    done: bool
    merge: MergeStatus | None = None
    commit: str = ""
    paths: tuple[str, ...] = ()
    pull_request: str = ""
    arrived: bool = True
    """Whether the work is on the base, so that its issue can be closed."""
    base: str = ""
    """The commit of the base that the working tree contains now, when the work goes back."""
    red: CheckResult | None = None
    """The check that fails on what would have landed: the work goes back to its author."""
    waits: bool = False
    """True when a reviewer must approve the work before it goes on."""
    handed_over: bool = False
    """Whether the work is verified, and others bring it to its base."""
    reason: str = ""
    hint: str = ""
    review: ReviewResult | None = None
    """The verdict of a session that reviewed."""


class Delivery(msgspec.Struct, frozen=True, kw_only=True):
    """What a commit or a pull request says, and what it must be."""

    subject: str
    trailers: str
    judged: str
    """The tree on which the checks held; empty when no tree without uncommitted changes was judged."""
    title: str = ""
    body: str = ""
    """The words of a pull request, where one is opened."""
    issue: int | None = None
    terms: "Terms | None" = None
    """What the pull request is held to, for a run that works on a task."""


class Finalizer:
    """Carries the work of one run out of its working tree."""

    def __init__(
        self,
        context: SessionContext,
        workspace: Workspace,
        settings: Finalize,
        run: str,
        verify: Verify | None = None,
        only_reads: bool = False,
        landing: Landing | None = None,
    ) -> None:
        self.context = context
        self.workspace = workspace
        self.settings = settings
        self.run = run
        self.verify = verify
        self.only_reads = only_reads
        self.landing = landing
        # Where there was nothing to verify no commit holds, so what lands after all is verified first.
        self.verified = (workspace.base, landing.held) if landing is not None else ("", "")
        """The base and the commit of the branch on which the goals hold."""

    async def finalize(self, delivery: Delivery) -> Finalized:
        result = Finalized(done=True)
        try:
            if self.workspace.isolated and self.settings.auto_merge and not self.settings.create_pr:
                result = await self._merge(delivery)
            elif self.workspace.isolated:
                result = await self._keep_branch(delivery)
            elif not self.only_reads:
                result = await self._in_place()
            if not result.done:
                return result
            if self.settings.push or self.settings.create_pr:
                result = await self._send(delivery, result)
        except GenbaError as error:
            again = f"genba run --resume {self.run}"
            if isinstance(error, DiskFullError):
                again = f"free some space, then: {again}"
            return msgspec.structs.replace(result, done=False, reason=error.message, hint=error.hint or again)
        await uncut(self._clean_up())
        return result

    async def _merge(self, delivery: Delivery) -> Finalized:
        workspace, judged = self.workspace, delivery.judged
        self._plan("merge", {"branch": workspace.branch, "into": workspace.base_branch})
        for _ in range(_ROUNDS):
            proposal = await self.context.git.repository.propose(
                workspace, f"Merge {delivery.subject}\n\n{delivery.trailers}"
            )
            if proposal.refused is not None:
                return await self._refused(proposal.refused, delivery)
            if proposal.tree != judged:
                red = await self._try_out(proposal.commit)
                if red is not None:
                    return Finalized(done=False, red=red, base=proposal.base)
                judged = proposal.tree
            if self.landing is not None and not await self._is_verified(self.landing, proposal):
                red = await self.landing.of_merge(workspace, proposal)
                if red is not None:
                    self._tell_rescued(
                        await self.context.git.repository.try_out(workspace, proposal.commit, adopt=True)
                    )
                    return Finalized(done=False, red=red, base=proposal.base)
                self.verified = (proposal.base, proposal.tip)
            landed = await uncut(self.context.git.repository.land(workspace, proposal))
            if landed is not None:
                return self._merged(landed)
        raise StateConflictError(
            f"{workspace.base_branch} moved {_ROUNDS} times while {workspace.branch} was being merged",
            hint=f"genba run --resume {self.run}",
        )

    async def _is_verified(self, landing: Landing, proposal: Proposal) -> bool:
        return (proposal.base, proposal.tip) == self.verified and await landing.is_current(proposal.base)

    async def _refused(self, refused: MergeResult, delivery: Delivery) -> Finalized:
        """Nothing to land: work that was left uncommitted is not done because of that."""
        if refused.status is MergeStatus.NOTHING_TO_MERGE and not delivery.judged:
            kept = await self._keep_branch(delivery)
            if kept.red is not None:
                return kept
        return self._merged(refused)

    async def _keep_branch(self, delivery: Delivery) -> Finalized:
        """The branch itself is what is handed over: it stays, and it was checked as it is."""
        seen = await self.context.git.trees.observe(self.workspace)
        if self.landing is not None and seen.commits and seen.head != self.verified[1]:
            message = f"{self.workspace.branch} has moved to {seen.head[:7]}, which is not verified"
            return Finalized(done=False, reason=message, hint=f"genba run --resume {self.run}")
        same = not (seen.dirty or seen.strayed) and seen.tree == delivery.judged
        red = None if same else await self._try_out(seen.head)
        return Finalized(done=red is None, red=red, arrived=not seen.commits)

    async def _in_place(self) -> Finalized:
        """In the user's own checkout Genba commits nothing, so a change that is not committed is not done.

        Nothing is moved aside there, so only what is committed as it was judged is pushed.
        """
        seen, push = await self.context.git.trees.observe(self.workspace), self.settings.push
        if seen.dirty:
            why = f"it has changes that are not committed: {some(seen.dirty)}"
        elif push and seen.strayed:
            why = f"it is on {seen.strayed}, not on {self.workspace.branch}"
        else:
            return Finalized(done=True)
        what = "nothing was pushed from your checkout" if push else "Genba commits nothing in your checkout"
        hint = f"commit or stash them, then: genba run --resume {self.run}"
        return Finalized(done=False, reason=f"{what}: {why}", hint=hint)

    async def _try_out(self, commit: str) -> CheckResult | None:
        """The checks on a commit, with nothing else in the working tree."""
        if self.verify is None:
            return None
        self._tell_rescued(await self.context.git.repository.try_out(self.workspace, commit))
        red = await self.verify()
        if red is not None:
            self._tell_rescued(await self.context.git.repository.try_out(self.workspace, commit, adopt=True))
        return red

    def _merged(self, result: MergeResult) -> Finalized:
        """Write down how the merge ended, and say what that means."""
        workspace = self.workspace
        self.context.journal.emit(
            MergeFinished(status=result.status, commit=result.commit, paths=result.paths, detail=result.detail)
        )
        again = f"genba run --resume {self.run}"
        match result.status:
            case MergeStatus.MERGED | MergeStatus.NOTHING_TO_MERGE:
                return Finalized(done=True, merge=result.status, commit=result.commit)
            case MergeStatus.CONFLICT:
                files = ", ".join(result.paths)
                return Finalized(
                    done=False,
                    merge=result.status,
                    paths=result.paths,
                    reason=f"{workspace.branch} conflicts with {workspace.base_branch} in {files}",
                    hint=f"git -C {workspace.path} merge {workspace.base_branch}\nresolve, commit, then:\n{again}",
                )
            case MergeStatus.CHECKOUT_IN_THE_WAY:
                return Finalized(
                    done=False,
                    merge=result.status,
                    reason=f"{workspace.base_branch} was not moved: {result.detail}",
                    hint=f"commit or stash your changes, then: {again}",
                )

    async def send_landed(self, delivery: Delivery, commit: str) -> Finalized:
        """What is left when others have landed the work: to push it where that is asked for, and to clean up."""
        landed = Finalized(done=True, merge=MergeStatus.MERGED, commit=commit)
        try:
            if self.settings.push and not self.settings.create_pr:
                await self._send(delivery, landed)
        except GenbaError as error:
            hint = error.hint or f"genba run --resume {self.run}"
            return msgspec.structs.replace(landed, done=False, reason=error.message, hint=hint)
        await uncut(self._clean_up())
        return landed

    async def _send(self, delivery: Delivery, result: Finalized) -> Finalized:
        """Push, and open a pull request where one is asked for and there is something to propose."""
        if self.settings.create_pr and result.arrived:
            self.context.journal.emit(Notice(message="no pull request: the branch has no commit of its own"))
            return result
        merged = self.settings.auto_merge and not self.settings.create_pr
        branch = self.workspace.base_branch if merged else self.workspace.branch
        detail = {"remote": self.settings.remote, "branch": branch}
        self._plan("push", detail)
        try:
            await self.context.git.repository.push(self.settings.remote, branch)
        except StateConflictError as error:
            bring_in = f"git -C {self.workspace.path} pull --no-rebase {self.settings.remote} {branch}"
            error.hint = f"bring that in:  {bring_in}\nthen:  genba run --resume {self.run}"
            raise
        self.context.journal.emit(EffectDone(effect="push", detail=detail))
        if not (self.settings.create_pr and self.workspace.isolated):
            return result
        return msgspec.structs.replace(result, pull_request=await self._pull_request(delivery))

    async def _pull_request(self, delivery: Delivery) -> str:
        if self.context.tracker.forge is None:
            raise ConfigurationError((no_forge(),))
        target = self.settings.pr_target or self.workspace.base_branch
        self._plan("pull_request", {"branch": self.workspace.branch, "target": target})
        request = PullRequest(
            branch=self.workspace.branch,
            target=target,
            title=delivery.title or delivery.subject,
            body=delivery.body or delivery.trailers,
            issue=delivery.issue,
            draft=self.settings.pr_draft,
            reviewers=self.settings.pr_reviewers,
            terms=delivery.terms,
        )
        address = await self.context.tracker.forge.open(request)
        self.context.journal.emit(EffectDone(effect="pull_request", detail={"address": address}))
        return address

    async def _clean_up(self) -> None:
        removal = await self.context.git.trees.close(self.workspace)
        if not self.workspace.isolated:
            return
        self._tell_rescued(removal.rescued)
        self.context.journal.emit(
            WorkspaceClosed(
                removed=removal.removed,
                path=self.workspace.path,
                rescued=removal.rescued,
                reason=removal.reason,
            )
        )

    def _tell_rescued(self, ref: str) -> None:
        if ref:
            self.context.journal.emit(Notice(message=f"work that is not on the branch is kept: git show {ref}"))

    def _plan(self, effect: str, detail: dict[str, str]) -> None:
        self.context.journal.emit(EffectPlanned(effect=effect, detail=detail))


def no_forge() -> Problem:
    return Problem(
        ".genba/config.yaml",
        "forge",
        "a pull request was asked for, and the project names no forge",
        "tracker: {github: {repository: OWNER/NAME}}   or   "
        'forge: {open: ["gh", "pr", "create", "--head", "{branch}", "--base", "{target}", '
        '"--title", "{title}", "--body-file", "{body_file}"]}',
    )
