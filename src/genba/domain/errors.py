"""The error tree of the house: two branches, and an exit code on every leaf.

    GenbaError
    ├── RecoverableError            wait, then try again (retry_after)
    │   ├── AgentTimeout            no answer, or no sign of life, within the limit
    │   ├── RateLimited             the provider named a time to come back
    │   ├── AgentUnavailable        the process crashed or the outside had a passing fault
    │   └── RemoteUnavailable       the tracker or the forge did not answer, or not as it should
    └── UnrecoverableError          stop
        ├── UsageError              2  the command line is wrong
        ├── ConfigurationError      3  a definition is wrong; carries every problem at once
        ├── AccessRefusedError      3  the tracker or the forge does not take the credentials, or there are none
        ├── NotFoundError           4  no such agent, run, issue, branch
        ├── StateConflictError      5  the world is not in the state that this needs
        │   └── UnavailableError    5  the database cannot be reached, or is locked, for now
        ├── SchemaViolationError    1  a reply did not fit after all re-asks
        ├── BoundaryViolationError  1  an agent did what it may not do
        ├── CheckBrokenError        1  a check could not be run: neither passed nor failed
        ├── DiskFullError           1  nothing more can be written
        ├── GitError                1  git failed
        └── UnexpectedError         1  a bug, shown without a traceback

Foreign errors are translated where the foreign thing is called.
"""

import errno
import math
import re

from genba.domain.problems import Problem

LONGEST_WAIT = 31 * 86_400.0
"""Seconds. A longer wait is not believed."""


class GenbaError(Exception):
    """What went wrong, what was left unchanged, and the next command."""

    exit_code = 1

    def __init__(self, message: str, *, unchanged: str = "", hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.unchanged = unchanged
        self.hint = hint


class RecoverableError(GenbaError):
    """Trying again may help. `retry_after` is in seconds, where the outside named a time."""

    def __init__(self, message: str, *, retry_after: float | None = None, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        known = retry_after is not None and not math.isnan(retry_after)
        self.retry_after: float | None = min(retry_after or 0.0, LONGEST_WAIT) if known else None


class AgentTimeout(RecoverableError):
    """The instance gave no answer, or no sign of life, within its limit."""


class RateLimited(RecoverableError):
    """The provider refused for now. Waiting costs no iteration."""


class AgentUnavailable(RecoverableError):
    """The instance crashed, or the outside had a passing fault."""


class RemoteUnavailable(RecoverableError):
    """The tracker or the forge did not answer, or not as it should. What was sent may have been carried out."""


class UnrecoverableError(GenbaError):
    """Trying again cannot help."""


class UsageError(UnrecoverableError):
    exit_code = 2


class ConfigurationError(UnrecoverableError):
    """A definition was refused. All problems are reported at once."""

    exit_code = 3

    def __init__(self, problems: tuple[Problem, ...], *, hint: str = "") -> None:
        first = str(problems[0]) if problems else "the configuration is not valid"
        super().__init__(first, unchanged="nothing was started, nothing was changed.", hint=hint)
        self.problems = problems


class AccessRefusedError(UnrecoverableError):
    """The tracker or the forge does not take the credentials, or there are none."""

    exit_code = 3


class NotAllowedError(AccessRefusedError):
    """The credentials are good, and do not allow this one thing. Others may go on."""


class NotFoundError(UnrecoverableError):
    exit_code = 4


class StateConflictError(UnrecoverableError):
    exit_code = 5


class UnavailableError(StateConflictError):
    """The database cannot be reached, or is locked. Retry where time allows."""


class SchemaViolationError(UnrecoverableError):
    """A reply did not fit its schema or its gate after all re-asks."""


class BoundaryViolationError(UnrecoverableError):
    """An agent used what its definition does not allow."""


class CheckBrokenError(UnrecoverableError):
    """A check could not be run, which is neither a pass nor a fail."""


class DiskFullError(UnrecoverableError):
    """Nothing more can be written; what was written stays."""


def is_disk_full(error: BaseException) -> bool:
    """Whether the system says that nothing more can be written, or that its user may not write more."""
    return isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)


class GitError(UnrecoverableError):
    """Git refused."""


class UnexpectedError(UnrecoverableError):
    """What no part of Genba foresaw. It is shown like every other error, with its place on demand."""


def kind_of(error: GenbaError) -> str:
    """The name of an error's class, as programs read it: NotFoundError is not_found."""
    name = type(error).__name__.removeprefix("Genba").removesuffix("Error") or "Failure"
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
