"""Facts that Genba gathered itself: what git shows and what the checks found."""

from enum import StrEnum
from typing import Annotated, Literal

import msgspec


class CheckStatus(StrEnum):
    PASSED = "passed"
    FAILED = "failed"
    ERROR = "error"


class CheckResult(msgspec.Struct, frozen=True):
    """The result of one check. `error` means that the machinery broke: neither a pass nor a fail."""

    name: str
    status: CheckStatus
    detail: str = ""
    output: str = ""
    seconds: float = 0.0
    timed_out: bool = False
    """It failed because it took too long: on a quieter machine it might have passed."""
    ran_no_test: bool = False
    """It is an error because the command ran no test, and nothing else is wrong."""

    @property
    def passed(self) -> bool:
        return self.status is CheckStatus.PASSED


class Commit(msgspec.Struct, frozen=True):
    sha: str
    subject: str


class TreeFacts(msgspec.Struct, frozen=True):
    """What git shows of a working tree: committed work over the base, and what is not committed."""

    head: str
    tree: str
    """The tree as it stands, uncommitted changes included: equal trees mean that nothing changed."""
    dirty: tuple[str, ...] = ()
    strayed: str = ""
    """Where the working tree's HEAD is, when it is not on the branch of the run."""
    commits: tuple[Commit, ...] = ()
    changed_files: tuple[str, ...] = ()

    @property
    def mark(self) -> str:
        """Equal marks mean that nothing was committed and nothing changed."""
        return f"{self.head} {self.tree}"


class _Check(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel", tag_field="type"):
    failure_pattern: Annotated[
        str | None,
        msgspec.Meta(description="The failure pattern that picks the retry prompt when this check fails."),
    ] = None


class CommandCheck(_Check, frozen=True, tag="command"):
    """Passes when a command succeeds in the working tree."""

    command: Annotated[
        str | tuple[str, ...],
        msgspec.Meta(description="A shell line, or a list of words that no shell reads."),
    ]
    success_when: Annotated[
        Literal["exitZero", "emptyOutput"],
        msgspec.Meta(description="exitZero: the command ends with 0. emptyOutput: it also prints nothing."),
    ] = "exitZero"
    timeout_seconds: Annotated[float, msgspec.Meta(gt=0, description="Longer than this is a failure.")] = 600


class GitCleanCheck(_Check, frozen=True, tag="git-clean"):
    """Passes when the working tree has no uncommitted change."""


class CommitsExistCheck(_Check, frozen=True, tag="commits-exist"):
    """Passes when the branch has at least one commit over its base."""


class TestsPassCheck(_Check, frozen=True, tag="tests-pass"):
    """Passes when the project's own tests pass; the command is found by the project's files."""

    timeout_seconds: Annotated[float, msgspec.Meta(gt=0, description="Longer than this is a failure.")] = 1800


class FileExistsCheck(_Check, frozen=True, tag="file-exists"):
    """Passes when a file is in the working tree."""

    path: Annotated[str, msgspec.Meta(min_length=1, description="Relative to the working tree.")]


class FilesChangedCheck(_Check, frozen=True, tag="files-changed"):
    """Passes when a commit of the branch changed a file that fits the pattern."""

    pattern: Annotated[str, msgspec.Meta(min_length=1, description="A glob such as src/**/*.py.")]


Check = CommandCheck | GitCleanCheck | CommitsExistCheck | TestsPassCheck | FileExistsCheck | FilesChangedCheck

BUILTIN_CHECKS: dict[str, Check] = {
    "git-clean": GitCleanCheck(),
    "commits-exist": CommitsExistCheck(),
    "tests-pass": TestsPassCheck(),
}
"""Checks that every agent can name without declaring them."""
