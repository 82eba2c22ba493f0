"""Making a working tree ready: free ports, copied files and the setup command, once for each tree."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from genba.application.sandbox.ports import EnvironmentPorts
from genba.definitions.project.sandbox_section import AgentEnvironment
from genba.domain.errors import StateConflictError, UnrecoverableError
from genba.domain.processes import Command, Ending
from genba.domain.sessions.replies import AgentSession

Ignored = Callable[[tuple[str, ...]], Awaitable[frozenset[str]]]
"""Which of these paths of the user's checkout git ignores."""


class Ready:
    """What a working tree needs before its agent comes, beyond the files of git."""

    def __init__(
        self,
        plan: AgentEnvironment,
        folder: Path,
        top: Path,
        ignored: Ignored,
        variables: dict[str, str],
        tools: EnvironmentPorts,
    ) -> None:
        self.plan = plan
        self.done = folder / "ready"
        """Holds the path of the tree that was made ready; written last."""
        self.top = top
        self.ignored = ignored
        self.variables = variables
        self.tools = tools

    async def set_up(self, session: AgentSession) -> None:
        """Copy and run what the project asks for. Safe to repeat; a tree that is ready is left alone."""
        if not self.plan.copied and self.plan.setup is None:
            return
        this_tree = f"{session.workdir} {os.stat(session.workdir).st_ino}"  # noqa: PTH116  (one number of it)
        if self.done.is_file() and self.done.read_text("utf-8") == this_tree:
            return
        await self._copy(session)
        if self.plan.setup is not None:
            words = ("sh", "-c", self.plan.setup) if isinstance(self.plan.setup, str) else self.plan.setup
            await self._run(session, words, "worktree.setup")
        self.tools.files.put(self.done, this_tree.encode())

    async def _run(self, session: AgentSession, argv: tuple[str, ...], what: str) -> None:
        limit = self.plan.setup_timeout_seconds
        command = Command(
            argv=argv,
            workdir=session.workdir,
            environment=session.environment,
            timeout_seconds=limit,
            idle_seconds=limit,
            mark=session.run,
        )
        done = await session.processes.run(command, _ignore_output)
        if done.violations:
            message = "; ".join(each.detail for each in done.violations)
            raise UnrecoverableError(f"{what} failed: it {message}", hint=f"genba run --resume {session.run}")
        if done.ending is not Ending.EXITED or done.code != 0:
            output = (done.stderr.strip() or done.stdout.strip() or f"exit code {done.code}").splitlines()[-1][:300]
            ended = "" if done.ending is Ending.EXITED else f" ({done.ending.replace('_', ' ')})"
            again = f"fix it, and start a new session: this one keeps the {what} that it began with"
            raise UnrecoverableError(f"{what} failed{ended}: {output}", hint=again)

    async def _copy(self, session: AgentSession) -> None:
        """Through a folder that both sides see: the tree itself may only be there inside the sandbox."""
        names = await asyncio.to_thread(self._wanted)
        if not names:
            return
        foreign = sorted(set(names) - await self.ignored(names))
        if foreign:
            raise StateConflictError(
                f"worktree.copy names {foreign[0]}, which git does not ignore: it would be taken for the agent's work",
                hint=f"echo {foreign[0]} >> .gitignore",
            )
        # A new name each time: an agent could write there before and may have planted files under a known name.
        staged = Path(tempfile.mkdtemp(prefix="copied-", dir=session.folder))
        await asyncio.to_thread(self._stage, names, staged)
        try:
            await self._run(session, ("cp", "-R", "-P", "-p", f"{staged}/.", session.workdir), "worktree.copy")
        finally:
            await asyncio.to_thread(self.tools.host.remove_tree, staged)

    def _wanted(self) -> tuple[str, ...]:
        """The files that the globs name, none of them outside of the checkout."""
        top = self.top.resolve()
        found = {path for pattern in self.plan.copied for path in self.top.glob(pattern.lstrip("/"))}
        files = {path for path in found if path.is_file() and path.resolve().is_relative_to(top)}
        for folder in (path for path in found if path.is_dir() and not path.is_symlink()):
            files |= {path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()}
        return tuple(sorted(path.relative_to(self.top).as_posix() for path in files))

    def _stage(self, names: tuple[str, ...], staged: Path) -> None:
        for name in names:
            target = staged / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(self.top / name, target)


@contextmanager
def making_ready(
    plan: AgentEnvironment, folder: Path, top: Path, ignored: Ignored, tools: EnvironmentPorts
) -> Iterator[Ready]:
    """Everything that a tree needs; its ports are free and its own until the end."""
    variables = dict(plan.environment)
    if not plan.ports:
        yield Ready(plan, folder, top, ignored, variables, tools)
        return
    with tools.host.reserved_ports(plan.ports) as ports:
        values = {"GENBA_PORT_FIRST": str(ports[0]), "GENBA_PORT_LAST": str(ports[-1]), "PORT": str(ports[0])}
        yield Ready(plan, folder, top, ignored, {**variables, **values}, tools)


def _ignore_output(_stream: str, _line: str) -> None:
    """The output of a setup is shown only when it fails."""
