"""After the loop: merge → push → pull request → clean up. Every step is recorded first and safe to repeat."""

import msgspec

from genba.definitions.agent_file import Finalize
from genba.domain.errors import ConfigurationError, GenbaError
from genba.domain.events import EffectDone, EffectPlanned, MergeFinished, Notice, WorkspaceClosed
from genba.domain.problems import Problem
from genba.domain.workspaces import MergeStatus, PullRequest, Workspace
from genba.execution.world import World


class Finalized(msgspec.Struct, frozen=True, kw_only=True):
    """What became of the branch. Where something stands in the way, everything is kept."""

    done: bool
    merge: MergeStatus | None = None
    commit: str = ""
    paths: tuple[str, ...] = ()
    pull_request: str = ""
    reason: str = ""
    hint: str = ""


class Finalizer:
    """Carries the work of one run out of its working tree."""

    def __init__(self, world: World, workspace: Workspace, settings: Finalize, run: str) -> None:
        self.world = world
        self.workspace = workspace
        self.settings = settings
        self.run = run

    async def finalize(self, title: str, body: str) -> Finalized:
        result = Finalized(done=True)
        try:
            if self.workspace.isolated and self.settings.auto_merge and not self.settings.create_pr:
                result = await self._merge(title, body)
                if not result.done:
                    return result
            if self.settings.push or self.settings.create_pr:
                await self._push()
            if self.settings.create_pr and self.workspace.isolated:
                result = msgspec.structs.replace(result, pull_request=await self._pull_request(title, body))
        except GenbaError as error:
            again = f"genba run --resume {self.run}"
            reason = f"{result.reason}{error.message}"
            return msgspec.structs.replace(result, done=False, reason=reason, hint=error.hint or again)
        await self._clean_up()
        return result

    async def _merge(self, title: str, body: str) -> Finalized:
        workspace = self.workspace
        self._plan("merge", {"branch": workspace.branch, "into": workspace.base_branch})
        result = await self.world.repository.merge(workspace, f"{title}\n\n{body}")
        self.world.journal.emit(
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
                    hint=f"git -C {workspace.path} merge {workspace.base_branch}   resolve, commit, then: {again}",
                )
            case MergeStatus.CHECKOUT_IN_THE_WAY:
                return Finalized(
                    done=False,
                    merge=result.status,
                    reason=f"{workspace.base_branch} was not moved: {result.detail}",
                    hint=f"commit or stash your changes, then: {again}",
                )

    async def _push(self) -> None:
        merged = self.settings.auto_merge and not self.settings.create_pr
        branch = self.workspace.base_branch if merged else self.workspace.branch
        detail = {"remote": self.settings.remote, "branch": branch}
        self._plan("push", detail)
        await self.world.repository.push(self.settings.remote, branch)
        self.world.journal.emit(EffectDone(effect="push", detail=detail))

    async def _pull_request(self, title: str, body: str) -> str:
        if self.world.forge is None:
            raise ConfigurationError((no_forge(),))
        target = self.settings.pr_target or self.workspace.base_branch
        self._plan("pull_request", {"branch": self.workspace.branch, "target": target})
        address = await self.world.forge.find(self.workspace.branch)
        if not address:
            request = PullRequest(branch=self.workspace.branch, target=target, title=title, body=body)
            address = await self.world.forge.open(request)
        self.world.journal.emit(EffectDone(effect="pull_request", detail={"address": address}))
        return address

    async def _clean_up(self) -> None:
        removal = await self.world.trees.close(self.workspace)
        if not self.workspace.isolated:
            return
        if removal.rescued:
            told = f"uncommitted changes are kept: git show {removal.rescued}"
            self.world.journal.emit(Notice(message=told))
        self.world.journal.emit(
            WorkspaceClosed(
                removed=removal.removed,
                path=self.workspace.path,
                rescued=removal.rescued,
                reason=removal.reason,
            )
        )

    def _plan(self, effect: str, detail: dict[str, str]) -> None:
        self.world.journal.emit(EffectPlanned(effect=effect, detail=detail))


def no_forge() -> Problem:
    return Problem(
        ".genba/config.yaml",
        "forge",
        "a pull request was asked for, and the project names no forge",
        'forge: {open: ["gh", "pr", "create", "--head", "{branch}", "--base", "{target}", '
        '"--title", "{title}", "--body-file", "{body_file}"]}',
    )
