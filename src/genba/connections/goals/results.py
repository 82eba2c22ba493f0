"""Results of goals, kept by what they depend on, with the whole output of each as a log."""

import os
import re
from pathlib import Path

import msgspec

from genba.connections.atomic_write import put
from genba.connections.private_folders import make_private_folder
from genba.domain.decoding import reader
from genba.domain.errors import NotFoundError
from genba.domain.sessions.evidence import CheckResult

_NAME = re.compile(r"[0-9a-f]{12}(-[0-9a-f]{6})?")
_NAME_LENGTH = 12


class FileResults:
    """One file per result. What cannot be read is no result: the goal is checked again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def find(self, key: str) -> CheckResult | None:
        try:
            kept = reader(CheckResult).decode((self.folder / f"{key}.json").read_bytes())
        except (OSError, ValueError, RecursionError):
            return None
        return msgspec.structs.replace(kept, output=self._text(key[:_NAME_LENGTH]))

    def keep(self, key: str, result: CheckResult, reusable: bool) -> str:
        """Keep a result and its whole output; returns the name of the log."""
        make_private_folder(self.folder)
        name = key[:_NAME_LENGTH] if reusable else f"{key[:_NAME_LENGTH]}-{os.urandom(3).hex()}"
        put(self.folder / f"{name}.log", result.output.encode("utf-8", "replace"))
        if reusable:
            message = msgspec.structs.replace(result, output="")
            put(self.folder / f"{key}.json", msgspec.json.encode(message))
        return name

    def log(self, name: str) -> str:
        if not _NAME.fullmatch(name) or not (self.folder / f"{name}.log").is_file():
            raise _no_log(name)
        return self._text(name)

    def end_of_log(self, name: str, most: int) -> tuple[str, bool]:
        """The last so many bytes of a log, and whether there is more before them."""
        if not _NAME.fullmatch(name):
            raise _no_log(name)
        try:
            with (self.folder / f"{name}.log").open("rb") as file:
                size = file.seek(0, os.SEEK_END)
                file.seek(max(0, size - most))
                return file.read(most).decode("utf-8", "replace"), size > most
        except OSError as error:
            raise _no_log(name) from error

    def _text(self, name: str) -> str:
        try:
            return (self.folder / f"{name}.log").read_text(encoding="utf-8", errors="replace")
        except OSError:
            return ""


def _no_log(name: str) -> NotFoundError:
    return NotFoundError(f'there is no log "{name[:80]}" of a goal', hint="genba verify TASK   names its logs")
