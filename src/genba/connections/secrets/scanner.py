"""Scans every commit of a branch, with gitleaks where there is one that works and with detect-secrets elsewhere.

The sum of a branch is not enough: a key that one commit adds and the next one removes is public all the same. Settings
are taken from the base alone, and no comment in the code switches a finding off. The value of a secret is never shown.
"""

import asyncio
import contextlib
import os
import re
import shutil
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path

from genba.connections.private_folders import make_private_folder
from genba.connections.secrets.findings import Findings, introduced
from genba.connections.secrets.gitleaks import Gitleaks, TooOld, find_gitleaks
from genba.connections.secrets.log_options import HARDENED, LOG_OPTIONS, git_environment
from genba.connections.secrets.passed_over import Copies
from genba.domain.errors import CheckBrokenError
from genba.domain.ports import Processes
from genba.domain.processes import Command, Ending, Exit
from genba.domain.sessions.evidence import CheckResult, CheckStatus

Read = Callable[[tuple[str, ...]], Awaitable[dict[str, str]]]
"""Reads the text of each `commit:path`; what is not there is left out."""

_KEEP_BYTES = 32 * 1024 * 1024
"""Of the names of commits."""
_NAME = "no_secrets"
_COMMIT = re.compile(r"[0-9a-f]{7,64}")
_LISTED = 200
_VERSION_SECONDS = 10.0
"""Who cannot say its version by then is waiting for something that does not come."""
_WORKING: set[tuple[str, int]] = set()
"""Those that were seen to work, as they were then."""


class GitSecretScanner:
    def __init__(
        self,
        processes: Processes,
        environment: Mapping[str, str],
        repository: Path,
        read: Read,
        scratch: Path,
        find: Callable[[Mapping[str, str]], Path | None] = find_gitleaks,
    ) -> None:
        self.processes = processes
        self.environment = git_environment(environment, repository)
        self.repository = repository
        """The git directory that no agent can write."""
        self.read = read
        self.scratch = scratch
        self.find = find

    async def scan(self, base: str, commit: str, timeout_seconds: float, mark: str) -> CheckResult:
        """Whether a commit of base..commit contains a secret."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            async with asyncio.timeout(timeout_seconds):
                result = await self._scanned(base, commit, timeout_seconds, mark)
        except CheckBrokenError as error:
            result = CheckResult(_NAME, CheckStatus.ERROR, error.message)
        except TimeoutError:
            message = f"took longer than {timeout_seconds:g} s"
            result = CheckResult(_NAME, CheckStatus.FAILED, message, timed_out=True)
        return CheckResult(
            _NAME, result.status, result.detail, result.output, loop.time() - began, timed_out=result.timed_out
        )

    async def _scanned(self, base: str, commit: str, limit: float, mark: str) -> CheckResult:
        if not _COMMIT.fullmatch(base) or not _COMMIT.fullmatch(commit):
            raise CheckBrokenError("the commits to scan are not named by their hashes")
        parents = await self._parents(base, commit, limit, mark)
        with self._own_folder() as folder:
            found = await self._by_gitleaks(folder, base, commit, limit, mark)
            scanner = "gitleaks" if found is not None else "detect-secrets"
            if found is None:
                found = await self._by_detect_secrets(folder, base, commit, limit, mark)
        counts = {sha: len(each) for sha, each in parents.items()}
        findings = introduced(found, counts)
        scanned = f"{scanner}, {len(parents)} commit{'' if len(parents) == 1 else 's'}"
        if not findings:
            return CheckResult(_NAME, CheckStatus.PASSED, scanned)
        more = f" and {len(findings) - 1} more" if len(findings) > 1 else ""
        lines = [scanned, *(str(each) for each in findings[:_LISTED])]
        lines += [f"and {len(findings) - _LISTED} more"] if len(findings) > _LISTED else []
        return CheckResult(_NAME, CheckStatus.FAILED, f"{findings[0]}{more}", "\n".join(lines))

    async def _parents(self, base: str, commit: str, limit: float, mark: str) -> dict[str, tuple[str, ...]]:
        """The parents of every commit to scan. A name that git does not know is found out here."""
        done = await self._git(("rev-list", "--parents", f"{base}..{commit}", "--"), limit, mark)
        if done.left_out:  # what is not listed would not be scanned
            raise CheckBrokenError(f"git rev-list: more commits than can be scanned ({done.left_out:,} bytes of names)")
        rows = (line.split() for line in done.stdout.splitlines())
        return {row[0]: tuple(row[1:]) for row in rows if row}

    async def _by_gitleaks(self, folder: Path, base: str, commit: str, limit: float, mark: str) -> Findings | None:
        """What gitleaks finds; None where there is none that can do it."""
        binary = self.find(self.environment)
        if binary is None or not await self._works(binary, folder, limit, mark):
            return None
        gitleaks = Gitleaks(binary, folder)
        await gitleaks.configure(base, self.read)
        done = await self._run(gitleaks.argv(self.repository, base, commit), folder, limit, mark)
        try:
            found = gitleaks.findings(done)
        except TooOld:
            return None
        patch = await self._patch(folder, base, commit, limit, mark)
        copies = Copies(folder / "copies")
        deadline = asyncio.get_running_loop().time() + limit
        await asyncio.to_thread(copies.write, patch, gitleaks.allowed, {each.file for each in found}, deadline)
        if not copies:
            return found
        done = await self._run(gitleaks.argv_of_folder(copies.folder), folder, limit, mark)
        return [*found, *copies.named(gitleaks.findings(done))]

    async def _works(self, binary: Path, folder: Path, limit: float, mark: str) -> bool:
        """Whether it can say its version. One that only fetches gitleaks may have no leave or no network to do so.

        It is asked before it sees anything of the branch: what breaks it there is no reason to do without it.
        """
        with contextlib.suppress(OSError):  # a TimeoutError is one
            found = (str(binary), (await asyncio.to_thread(binary.stat)).st_mtime_ns)
            if found not in _WORKING:
                done = await self._run((str(binary), "version"), folder, min(limit, _VERSION_SECONDS), mark)
                if done.ending is not Ending.EXITED or done.code != 0:
                    return False
                _WORKING.add(found)
            return True
        return False

    async def _by_detect_secrets(self, folder: Path, base: str, commit: str, limit: float, mark: str) -> Findings:
        from genba.connections.secrets.fallback import scan_patch  # noqa: PLC0415  (heavy; only without gitleaks)

        patch = await self._patch(folder, base, commit, limit, mark)
        deadline = asyncio.get_running_loop().time() + limit
        return await asyncio.to_thread(scan_patch, patch, deadline)

    async def _patch(self, folder: Path, base: str, commit: str, limit: float, mark: str) -> Path:
        """All that the commits change, in a file."""
        patch = folder / "patch"
        args = ("log", "-p", "-U0", *LOG_OPTIONS, "--format=%x00%H", f"--output={patch}", f"{base}..{commit}", "--")
        await self._git(args, limit, mark)
        return patch

    async def _git(self, args: tuple[str, ...], limit: float, mark: str) -> Exit:
        done = await self._run(("git", *HARDENED, *args), self.repository, limit, mark)
        if done.ending is Ending.CANNOT_START or done.code != 0:
            lines = done.stderr.strip().splitlines()
            raise CheckBrokenError(f"git {args[0]}: {lines[-1][:200] if lines else f'exit code {done.code}'}")
        return done

    async def _run(self, argv: tuple[str, ...], folder: Path, limit: float, mark: str) -> Exit:
        command = Command(
            argv=argv,
            workdir=str(folder),
            environment=self.environment,
            timeout_seconds=limit,
            idle_seconds=limit,
            mark=mark,
            keep_bytes=_KEEP_BYTES,
        )
        done = await self.processes.run(command, lambda _stream, _line: None)
        if done.ending in (Ending.TIMED_OUT, Ending.WENT_SILENT):
            raise TimeoutError
        return done

    @contextlib.contextmanager
    def _own_folder(self) -> Iterator[Path]:
        """A folder that only its owner reads; it holds what the commits hold."""
        try:
            make_private_folder(self.scratch)
            folder = Path(tempfile.mkdtemp(prefix=f"scan-{os.getpid()}-", dir=self.scratch))
        except OSError as error:
            raise CheckBrokenError(f"there is no room to scan in: {error}") from error
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)
