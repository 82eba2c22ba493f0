"""What to type about an error that names nothing itself. There is no kind of error without an answer."""

import re

from genba.domain.errors import (
    AccessRefusedError,
    BoundaryViolationError,
    CheckBrokenError,
    ConfigurationError,
    DiskFullError,
    GenbaError,
    GitError,
    NotFoundError,
    RecoverableError,
    RemoteUnavailable,
    SchemaViolationError,
    StateConflictError,
    UnavailableError,
    UsageError,
)

_AGENT_FILE = re.compile(r"(?:^|/)\.agent/([\w-]+)/")
_GROUPS = {"agent": 2, "mcp": 2, "outbox": 2, "task": 2, "decisions": 1}
"""Commands with commands of their own: how many words name one."""
_LISTS = {
    "agent": "genba agent list",
    "logs": "genba logs",
    "run": "genba agent list   or   genba task list",
    "schema": "genba schema",
    "mcp": "genba mcp --help",
    "outbox": "genba outbox",
}


def next_command(error: GenbaError, arguments: list[str]) -> str:
    """The next command, by the kind of the error and by what was typed."""
    typed = _typed(arguments)
    match error:
        case UsageError():
            return f"{typed} --help"
        case ConfigurationError():
            return _for_settings(error)
        case AccessRefusedError():
            return "genba doctor   says what lets you in"
        case NotFoundError():
            return _LISTS.get(arguments[0] if arguments else "", "genba task list --all")
        case UnavailableError():
            return "genba doctor   says whether the database can be reached; then try again"
        case StateConflictError():
            return "genba status   says how it stands"
        case DiskFullError():
            return "genba gc   or free some space, then try again"
        case GitError():
            return "git status   says what git sees; then try again"
        case CheckBrokenError():
            return "genba doctor   says what works here"
        case BoundaryViolationError() | SchemaViolationError():
            return "genba sessions --all   then: genba logs SESSION --output"
        case RemoteUnavailable():
            return "try again later; genba doctor says whether you are let in"
        case RecoverableError():
            return "try again; genba doctor says what works here"
    return "genba doctor   says what works here"


def _typed(arguments: list[str]) -> str:
    """The command that was typed, without what was given to it."""
    words = [word for word in arguments if not word.startswith("-")]
    count = _GROUPS.get(words[0], 1) if words else 0
    known = [word for word in words[:count] if re.fullmatch(r"[a-z-]+", word)]
    return " ".join(["genba", *known])


def _for_settings(error: ConfigurationError) -> str:
    """The command that looks at the file again."""
    files = [problem.file for problem in error.problems]
    agent = next((found[1] for file in files if (found := _AGENT_FILE.search(file))), "")
    return f"genba agent check {agent}" if agent else "genba doctor"
