"""The remote that the hosts of a fleet share: fetching and moving one branch of it."""

import contextlib
from collections.abc import Mapping

from genba.connections.git.repository.layout import RepositoryLayout
from genba.connections.git.repository.locks import held
from genba.connections.git.repository.run_process import Output
from genba.domain.errors import GitError

SECONDS = 120.0
_MISSING = "couldn't find remote ref"
_REFUSED = ("[rejected]", "[remote rejected]", "stale info", "failed to push")


async def fetch(layout: RepositoryLayout, remote: str, refs: Mapping[str, str], purpose: str) -> Output:
    """Fetch refs of a remote, each under a name here; the output of git, which may have failed."""
    args = ("fetch", "--quiet", "--no-tags", "--no-recurse-submodules", "--no-write-fetch-head", "--no-auto-gc",
            remote, *(f"+{ref}:{into}" for ref, into in refs.items()))  # fmt: skip
    # A fetch beside the making of a worktree fails now and then: one at a time.
    async with held(layout.repository_lock, purpose):
        return await layout.git.reach(remote, *args, tree=layout.top, seconds=SECONDS)


class SharedRemote:
    """One remote of a repository. What is there is what counts; the local branches follow."""

    def __init__(self, layout: RepositoryLayout, name: str) -> None:
        self.layout = layout
        self.git = layout.git
        self.name = name

    async def tip(self, branch: str) -> str | None:
        """The commit of a branch of the remote, which is here afterwards."""
        return await self.fetch(f"refs/heads/{branch}", f"refs/remotes/{self.name}/{branch}")

    async def fetch(self, ref: str, into: str) -> str | None:
        """Bring one ref of the remote here; None where it has none."""
        done = await fetch(self.layout, self.name, {ref: into}, f"fetch of {ref}")
        if done.returncode == 0:
            return await self.git.commit_of(into)
        if _MISSING in done.stderr:
            with contextlib.suppress(GitError):
                await self.git.run("update-ref", "-d", into)
            return None
        raise GitError(
            f"{ref.removeprefix('refs/heads/')} could not be fetched from {self.name}: {error_line(done.stderr)}",
            hint=f"git fetch {self.name}",
        )

    async def push(self, branch: str, old: str, new: str, *more: str) -> str:
        """Move a branch of the remote, if it is still where it was; says why that was refused.

        `more` are refspecs that go along. An outside that cannot be reached is an error and no refusal.
        """
        lease = f"--force-with-lease=refs/heads/{branch}:{old}"
        args = ("push", "--quiet", lease, self.name, *more, f"{new}:refs/heads/{branch}")
        done = await self.git.reach(self.name, *args, tree=self.layout.top, push=True, seconds=SECONDS)
        if done.returncode == 0:
            return ""
        why = error_line(done.stderr)
        if any(mark in done.stderr for mark in _REFUSED):
            return why
        raise GitError(f"{branch} could not be pushed to {self.name}: {why}", hint=f"git fetch {self.name}")


def error_line(text: str) -> str:
    """The line that says why git failed, among those that give advice."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    wanted = [line for mark in ("rejected]", "fatal:", "error:", "ERROR") for line in lines if mark in line]
    return (wanted or lines or ["git gave no reason"])[0]
