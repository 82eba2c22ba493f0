"""Pull requests by a command of the user's, such as gh or glab."""

from collections.abc import Mapping
from pathlib import Path

from genba.domain.errors import UnrecoverableError
from genba.domain.ports import Processes
from genba.domain.processes import Command
from genba.domain.sessions.workspaces import PullRequest


class CommandForge:
    """Opens and finds pull requests. The words of the command are filled in; no shell reads them."""

    def __init__(
        self,
        opening: tuple[str, ...],
        finding: tuple[str, ...],
        processes: Processes,
        folder: Path,
        environment: Mapping[str, str],
        timeout_seconds: float,
    ) -> None:
        self.opening = opening
        self.finding = finding
        self.processes = processes
        self.folder = folder
        self.environment = environment
        self.timeout_seconds = timeout_seconds

    async def find(self, branch: str) -> str:
        if not self.finding:
            return ""
        return await self._last_line(self.finding, {"{branch}": branch}, "looked for")

    async def open(self, request: PullRequest) -> str:
        """Open it, unless the branch has an open one: Genba does not edit that."""
        found = await self.find(request.branch)
        if found:
            return found
        import tempfile  # noqa: PLC0415  (only a new pull request needs it)

        with tempfile.NamedTemporaryFile("w", encoding="utf-8", suffix=".md") as body:
            body.write(request.body)
            body.flush()
            values = {
                "{branch}": request.branch,
                "{target}": request.target,
                "{title}": request.title,
                "{body_file}": body.name,
            }
            return await self._last_line(self.opening, values, "opened")

    async def _last_line(self, args: tuple[str, ...], values: dict[str, str], verb: str) -> str:
        for name, value in values.items():
            args = tuple(arg.replace(name, value) for arg in args)
        done = await self.processes.run(
            Command(
                argv=args,
                workdir=str(self.folder),
                environment=self.environment,
                timeout_seconds=self.timeout_seconds,
                idle_seconds=self.timeout_seconds,
                mark=f"forge-{id(values)}",
            ),
            lambda _stream, _line: None,
        )
        if done.code != 0:
            output = (done.stderr or done.stdout).strip()[-500:]
            raise UnrecoverableError(
                f"the pull request could not be {verb}: {output}", hint="check `forge` in .genba/config.yaml"
            )
        lines = done.stdout.strip().splitlines()
        return lines[-1].strip() if lines else ""
