"""Files that gitleaks passes over by their names, such as images and lock files: their lines under plain names.

The list of gitleaks keeps its reports short. It is also a hiding place: a key in `logo.png` is as public as any other.
What commits add to such files is written down once more, and gitleaks looks through it in a second pass. Hashes of
packages are left out of lock files.
"""

import contextlib
import re
import time
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from genba.connections.secrets.fallback import AddedLine, added_lines
from genba.connections.secrets.findings import Finding, Findings

_BY_NAME = re.compile(
    r"gitleaks\.toml"
    r"|(?i:\.(?:bmp|gif|jpe?g|png|svg|tiff?|eot|[ot]tf|woff2?)$)"
    r"|(?i:\.(?:docx?|xlsx?|pdf|bin|socket|vsidx|v2|suo|wsuo|.dll|pdb|exe|gltf)$)"
    r"|go\.(?:mod|sum|work(?:\.sum)?)$|(?:^|/)vendor/|(?:^|/)gradlew(?:\.bat)?$|(?:^|/)gradle\.lockfile$"
    r"|(?:^|/)mvnw(?:\.cmd)?$|(?:^|/)\.mvn/wrapper/MavenWrapperDownloader\.java$"
    r"|(?:^|/)(?:node_modules|bower_components)(?:/.*)?$"
    r"|(?:^|/)(?:deno\.lock|npm-shrinkwrap\.json|package-lock\.json|pnpm-lock\.yaml|yarn\.lock)$"
    r"|(?:^|/)(?:angular|bootstrap|jquery(?:-?ui)?|plotly|swagger-?ui)[a-zA-Z0-9.-]*(?:\.min)?\.js(?:\.map)?$"
    r"|(?:^|/)javascript\.json$|(?:^|/)(?:Pipfile|poetry)\.lock$"
    r"|(?i:(?:^|/)(?:v?env|virtualenv)/lib(?:64)?(?:/.*)?$)"
    r"|(?i:(?:^|/)(?:lib(?:64)?/python[23](?:\.\d{1,2})+|python/[23](?:\.\d{1,2})+/lib(?:64)?)(?:/.*)?$)"
    r"|(?i:(?:^|/)[a-z0-9_.]+-[0-9.]+\.dist-info(?:/.+)?$)|\.gem$"
    r"|verification-metadata\.xml|Database.refactorlog|(?:^|/)\.git$"
)
"""The names that gitleaks 8.30 passes over, and a few more."""
_LOCK = re.compile(
    r"(?:^|/)(?:go\.(?:sum|work\.sum)|gradle\.lockfile|deno\.lock|npm-shrinkwrap\.json|package-lock\.json"
    r"|pnpm-lock\.yaml|yarn\.lock|(?:Pipfile|poetry)\.lock|verification-metadata\.xml)$"
)
_HASH = re.compile(
    r"\b(?:sha512-[A-Za-z0-9+/]{86}==|sha384-[A-Za-z0-9+/]{64}|sha256-[A-Za-z0-9+/]{43}=|sha1-[A-Za-z0-9+/]{27}="
    r"|h1:[A-Za-z0-9+/]{43}=|(?<![0-9A-Za-z])(?:[0-9a-f]{128}|[0-9a-f]{64}|[0-9a-f]{40}|[0-9a-f]{32})(?![0-9A-Za-z]))"
)
"""Of a package: its kind and its exact length. Everything else in a lock file is looked at."""


class Copies:
    """The lines that commits add to such files, one plain file for each commit and file."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._of: list[tuple[str, str, list[int]]] = []
        """By the number of a copy: the commit, the file, and the number that each of its lines has there."""

    def __bool__(self) -> bool:
        return bool(self._of)

    def write(self, patch: Path, own: "Allowed", but: Iterable[str], deadline: float) -> None:
        """Write down what a patch adds to files that are passed over, unless the settings of the base allow them.

        Raises TimeoutError after the deadline, which is on the monotonic clock.
        """
        self.folder.mkdir()
        done = frozenset(but)
        with contextlib.ExitStack() as stack:
            file = None
            for line in added_lines(patch):
                if time.monotonic() > deadline:
                    raise TimeoutError
                if line.file in done or not _BY_NAME.search(line.file) or own.allows(line.file):
                    continue
                if file is None or self._begins(line):
                    stack.close()
                    path = self.folder / f"{len(self._of)}.txt"
                    file = stack.enter_context(path.open("w", encoding="utf-8", errors="replace", newline="\n"))
                    file.write("\n")  # so that it is not taken for an image by its first bytes
                    self._of.append((line.commit, line.file, []))
                text = _HASH.sub("", line.text) if _LOCK.search(line.file) else line.text
                self._of[-1][2].append(line.number)
                file.write(text.replace("\r", " ") + "\n")

    def _begins(self, line: AddedLine) -> bool:
        commit, file, numbers = self._of[-1]
        return (commit, file) != (line.commit, line.file) or line.number <= numbers[-1]

    def named(self, found: Iterable[Finding]) -> Findings:
        """Findings in copies, by the commits and the files that they are of."""
        return list(self._named(found))

    def _named(self, found: Iterable[Finding]) -> Iterator[Finding]:
        for each in found:
            commit, file, numbers = self._of[int(Path(each.file).stem)]
            place = min(max(each.line - 2, 0), len(numbers) - 1)  # the first line of a copy is empty
            yield Finding(file=file, line=numbers[place], rule=each.rule, commit=commit)


class Allowed(msgspec.Struct, frozen=True):
    """The files that the settings of the base itself allow."""

    patterns: tuple[re.Pattern[str], ...] = ()

    @classmethod
    def read(cls, texts: Iterable[str]) -> "Allowed":
        found: list[re.Pattern[str]] = []
        for text in texts:
            with contextlib.suppress(ValueError, RecursionError):  # gitleaks says what is wrong with them
                found += _compiled(tomllib.loads(text))
        return cls(tuple(found))

    def allows(self, file: str) -> bool:
        return any(pattern.search(file) for pattern in self.patterns)


def _compiled(settings: Mapping[str, Any]) -> Iterator[re.Pattern[str]]:
    listed = settings.get("allowlists")
    for each in (settings.get("allowlist"), *(listed if isinstance(listed, list) else ())):
        paths = each.get("paths") if isinstance(each, dict) else None
        for path in paths if isinstance(paths, list) else ():
            with contextlib.suppress(re.error, TypeError):  # of another dialect: the file is looked at
                yield re.compile(path)
