"""Issues as files: `.genba/issues/12.md`, with its title, state and labels in front."""

import asyncio
import os
import re
from pathlib import Path
from typing import Any

import msgspec

from genba.domain.errors import ConfigurationError, NotFoundError, UnrecoverableError
from genba.domain.issues import Issue, IssueChange
from genba.domain.problems import Problem
from genba.domain.shapes import read_plain, shape

_NUMBER = re.compile(r"[1-9][0-9]{0,17}")
_FRONT = re.compile(r"\A---\n(.*?)^---\n?(.*)\Z", re.MULTILINE | re.DOTALL)


class _Front(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    title: str
    state: str = "open"
    labels: tuple[str, ...] = ()


class FolderTracker:
    """Reads and writes the issues of one folder. Every write replaces the file in one step."""

    def __init__(self, folder: Path, shown: str = ".genba/issues") -> None:
        self.folder = folder
        self.shown = shown

    async def read(self, number: int) -> Issue:
        return await asyncio.to_thread(self._read, number)

    async def labelled(self, label: str) -> tuple[Issue, ...]:
        return await asyncio.to_thread(self._labelled, label)

    async def change(self, number: int, change: IssueChange) -> None:
        await asyncio.to_thread(self._change, number, change)

    def _read(self, number: int) -> Issue:
        path = self.folder / f"{number}.md"
        if not path.is_file():
            raise NotFoundError(
                f"there is no issue #{number}: {self.shown}/{number}.md is not there",
                hint=f"write {self.shown}/{number}.md with a line `title: …` between two lines `---`",
            )
        return self._parse(path, number)

    def _labelled(self, label: str) -> tuple[Issue, ...]:
        files = (path for path in self.folder.glob("*.md") if _NUMBER.fullmatch(path.stem) and path.is_file())
        numbers = sorted(int(path.stem) for path in files)
        issues = (self._parse(self.folder / f"{number}.md", number) for number in numbers)
        return tuple(issue for issue in issues if label in issue.labels)

    def _parse(self, path: Path, number: int) -> Issue:
        shown = f"{self.shown}/{path.name}"
        found = _FRONT.match(_text(path, shown))
        if found is None:
            raise ConfigurationError((Problem(shown, "", "expected a first part between two lines ---"),))
        front, problems = shape(_load(found.group(1), shown), _Front, shown)
        if front is None:
            raise ConfigurationError(problems)
        return Issue(
            number=number,
            title=front.title,
            body=found.group(2).strip(),
            state=front.state,
            labels=front.labels,
        )

    def _change(self, number: int, change: IssueChange) -> None:
        issue = self._read(number)
        kept = [label for label in issue.labels if label not in change.remove_labels]
        labels = list(dict.fromkeys([*kept, *change.add_labels]))
        body = issue.body
        if change.comment and not body.endswith(change.comment):
            body = f"{body}\n\n{change.comment}"
        front = {"title": issue.title, "state": "closed" if change.close else issue.state, "labels": labels}
        self._replace(self.folder / f"{number}.md", f"---\n{_dump(front)}---\n\n{body.strip()}\n")

    def _replace(self, path: Path, text: str) -> None:
        fresh = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            fresh.write_text(text, encoding="utf-8")
            fresh.replace(path)
        except OSError as error:
            fresh.unlink(missing_ok=True)
            raise UnrecoverableError(f"{self.shown}/{path.name} cannot be written: {error.strerror}") from error


def _text(path: Path, shown: str) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigurationError((Problem(shown, "", f"cannot be read: {error.strerror}"),)) from error
    except UnicodeDecodeError as error:
        raise ConfigurationError((Problem(shown, f"byte {error.start}", "cannot be read: it is not UTF-8"),)) from error


def _load(text: str, shown: str) -> Any:
    import yaml  # noqa: PLC0415  (runs without an issue do not pay for YAML)

    try:
        value, problems = read_plain(lambda: yaml.safe_load(text), shown, "YAML")
    except yaml.YAMLError as error:
        raise ConfigurationError((Problem(shown, "", f"not YAML: {error}"),)) from error
    if problems:
        raise ConfigurationError(problems)
    return value


def _dump(front: dict[str, Any]) -> str:
    import yaml  # noqa: PLC0415  (see _load)

    return str(yaml.safe_dump(front, sort_keys=False, allow_unicode=True, default_flow_style=None))
