"""What a shell can complete: tasks, agents, runs and names of this project, by a quick look at its files.

Law: it changes nothing and makes nothing. Whatever goes wrong, there is simply nothing to complete. A shell puts what
a name is completed as it is, and left out where it holds characters of the shell.
"""

import json
import os
import re
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

Values = Iterator[tuple[str, str]]
"""Each value, and a word about it."""
_PLAIN = re.compile(r"\w[\w.+@:-]*")
_PATIENCE_SECONDS = 0.05
_MOST = 500
_BUILT_IN = Path(__file__).parents[3] / "definitions" / "builtin"
SCHEMAS = (
    "acp", "agent", "agent-registry", "claude-code", "codex", "completion", "config", "custom", "event",
    "facilitate-action", "goal", "issue-assessment", "opencode", "recommend-action", "reply", "script",
    "steps_registry",
)  # fmt: skip
"""What `genba schema` lists: the types behind these names are slow to import."""
_SHELLS = ("bash", "zsh", "fish")
_PROGRAMS = ("claude-code", "codex", "opencode")


def repository(folder: Path) -> tuple[Path, Path] | None:
    """The main checkout around a folder, and git's own folder for it."""
    for place in (folder, *folder.parents):
        git = place / ".git"
        if git.is_dir():
            return place, git
        if git.is_file():
            own = Path(git.read_text("utf-8").partition("gitdir:")[2].strip())
            common = (own / (own / "commondir").read_text("utf-8").strip()).resolve()
            return common.parent, common
    return None


def tasks(folder: Path) -> Values:
    """The tasks that have not ended, then the others, newest first."""
    found = repository(folder)
    address = os.environ.get("GENBA_DATABASE_URL", "")
    database = found[0] / ".genba" / "genba.db" if found is not None else None
    if database is None or address or not database.is_file():
        return
    order = "CASE WHEN status IN ('done', 'cancelled') THEN 1 ELSE 0 END, number DESC"
    connection = sqlite3.connect(f"file:{quote(str(database))}?mode=ro", uri=True, timeout=_PATIENCE_SECONDS)
    try:
        rows = connection.execute(
            f"SELECT number, title, status FROM tasks WHERE review_of IS NULL ORDER BY {order} LIMIT {_MOST}"  # noqa: S608  (constants)
        ).fetchall()
    finally:
        connection.close()
    for number, title, status in rows:
        yield str(number), f"{status}: {title}"


def agents(folder: Path) -> Values:
    found = repository(folder)
    own = found[0] / ".agent" if found is not None else None
    places = [place for place in (own, _BUILT_IN) if place is not None and place.is_dir()]
    result: set[str] = set()
    for place in places:
        for path in sorted(place.iterdir()):
            definition = path / "agent.json"
            if path.name not in result and definition.is_file():
                result.add(path.name)
                yield path.name, str(json.loads(definition.read_text("utf-8")).get("description", ""))


def runs(folder: Path) -> Values:
    """The runs of this repository, newest first."""
    found = repository(folder)
    if found is None:
        return
    with os.scandir(found[1] / "genba" / "runs") as entries:
        newest = sorted(entries, key=lambda entry: entry.stat().st_mtime, reverse=True)
    for entry in newest[:_MOST]:
        yield entry.name, ""


def schemas(_folder: Path) -> Values:
    yield from ((name, "") for name in SCHEMAS)


def shells(_folder: Path) -> Values:
    yield from ((shell, "") for shell in _SHELLS)


def programs(_folder: Path) -> Values:
    yield from ((program, "") for program in _PROGRAMS)


ARGUMENTS: dict[tuple[str, ...], Callable[[Path], Values]] = {
    **{(name,): tasks for name in ("answer", "approve", "reject", "pause", "resume", "stop", "sessions", "verify")},
    **{("task", name): tasks for name in ("show", "edit", "comment", "block", "unblock", "cancel", "reopen", "depend")},
    **{("task", name): tasks for name in ("approve", "done")},
    ("decisions", "show"): tasks,
    ("run",): agents,
    ("agent", "show"): agents,
    ("agent", "check"): agents,
    ("agent", "passkey", "rotate"): agents,
    ("agent", "passkey", "revoke"): agents,
    ("logs",): runs,
    ("schema",): schemas,
    ("completion",): shells,
    ("mcp", "install"): programs,
}
"""By command, what its first argument is."""
OPTIONS: dict[str, Callable[[Path], Values]] = {
    "--issue": tasks,
    "--depends-on": tasks,
    "--on": tasks,
    "--by": tasks,
    "--parent": tasks,
    "--remove": tasks,
    "--agent": agents,
    "--assignee": agents,
    "--resume": runs,
}
"""By option, what it takes."""


def complete(words: list[str], incomplete: str, folder: Path) -> list[tuple[str, str]] | None:
    """The values that can stand here; None where a command or an option can."""
    last = words[-1] if words else ""
    source = OPTIONS.get(last)
    if source is None and not incomplete.startswith("-"):
        source = ARGUMENTS.get(tuple(word for word in words if not word.startswith("-")))
    if source is None:
        return None
    return [
        (value, message)
        for value, message in source(folder)
        if value.startswith(incomplete) and _PLAIN.fullmatch(value)
    ]
