"""Goals: conditions that can be checked. Three levels, one list of types, one engine.

In files a goal is written as a mapping with its `type`, and its condition beside it:

    - type: tests_pass
      command: pytest -q
      required: false
"""

from enum import StrEnum
from typing import Annotated, Any, ClassVar

import msgspec
from msgspec import Meta

CommandLine = str | tuple[str, ...]
"""A shell line, or a list of words that no shell reads."""

_COMMAND = Meta(description="A shell line, or a list of words that no shell reads. Without it one is detected.")


class GoalLevel(StrEnum):
    DOD = "dod"
    TYPE_RULE = "type_rule"
    ACCEPTANCE_CRITERIA = "acceptance_criteria"


class GoalSource(StrEnum):
    PROJECT_CONFIG = "project_config"
    TYPE_DEFAULT = "type_default"
    AI_INFERRED = "ai_inferred"
    HUMAN_DEFINED = "human_defined"


class _Goal(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="type"):
    main: ClassVar[str] = ""
    """The field that a goal written in one line sets."""

    required: Annotated[bool, Meta(description="false: it is reported, and does not reject.")] = True


class _Run(_Goal, frozen=True, kw_only=True):
    """A goal for which something is run."""

    timeout_seconds: Annotated[float, Meta(gt=0, description="Longer than this is a failure.")] = 900


class LintPasses(_Run, frozen=True, kw_only=True, tag="lint_passes"):
    """The linter finds nothing."""

    main: ClassVar[str] = "command"
    command: Annotated[CommandLine | None, _COMMAND] = None


class BuildSucceeds(_Run, frozen=True, kw_only=True, tag="build_succeeds"):
    """The project builds."""

    main: ClassVar[str] = "command"
    command: Annotated[CommandLine | None, _COMMAND] = None


class TestsPass(_Run, frozen=True, kw_only=True, tag="tests_pass"):
    """The tests pass."""

    main: ClassVar[str] = "command"
    command: Annotated[CommandLine | None, _COMMAND] = None


class TestAdded(_Run, frozen=True, kw_only=True, tag="test_added"):
    """The branch adds a test: a new file, or a new test in a file that was there."""

    main: ClassVar[str] = "pattern"
    pattern: (
        Annotated[str, Meta(min_length=1, description="Which files are tests. Without it: the usual names.")] | None
    ) = None
    must_fail_on_base: Annotated[
        bool, Meta(description="The new tests must be red on the base and green on the branch.")
    ] = False
    command: Annotated[
        CommandLine | None,
        Meta(description="How the tests are run for must_fail_on_base; {files} stands for the test files."),
    ] = None


class FilesChanged(_Goal, frozen=True, kw_only=True, tag="files_changed"):
    """A commit of the branch changes a file that fits."""

    main: ClassVar[str] = "pattern"
    pattern: Annotated[str, Meta(min_length=1, description="A glob such as src/**/*.")]


class FileExists(_Goal, frozen=True, kw_only=True, tag="file_exists"):
    """A file is there."""

    main: ClassVar[str] = "path"
    path: Annotated[str, Meta(min_length=1, description="A path, or a glob, relative to the repository.")]


class NoSecrets(_Run, frozen=True, kw_only=True, tag="no_secrets"):
    """No commit of the branch contains a secret."""

    main: ClassVar[str] = "command"
    command: Annotated[
        CommandLine | None,
        Meta(description="A scanner of your own. `gitleaks …`, or nothing: Genba scans every commit itself."),
    ] = None


class _Asked(_Run, frozen=True, kw_only=True):
    """A goal that asks a running service."""

    url: Annotated[str, Meta(min_length=1, description="An address, or a path of the service that is started.")]
    method: Annotated[str, Meta(min_length=1)] = "GET"
    headers: dict[str, str] = {}
    body: Annotated[Any, Meta(description="A text, or a value that is sent as JSON.")] = None
    serve: Annotated[
        CommandLine | None,
        Meta(description="Starts the service; {port} is a free port. Without it: verification.serve."),
    ] = None
    ready_when: Annotated[
        str | None,
        Meta(description="A path that answers, or a text that the service prints. Without it: its port is open."),
    ] = None
    ready_seconds: Annotated[float, Meta(gt=0, description="How long the service may take to be ready.")] = 30


class EndpointResponds(_Asked, frozen=True, kw_only=True, tag="endpoint_responds"):
    """An endpoint answers with a status."""

    main: ClassVar[str] = "url"
    status: Annotated[int, Meta(ge=100, le=599)] = 200


class ResponseContains(_Asked, frozen=True, kw_only=True, tag="response_contains"):
    """An answer contains what it should: a value at a JSONPath, or a text."""

    main: ClassVar[str] = "url"
    url: Annotated[
        str,
        Meta(description="An address, or a path. Without it: the request of the last endpoint_responds before it."),
    ] = ""
    status: Annotated[int, Meta(ge=100, le=599)] | None = None
    json_path: Annotated[str, Meta(min_length=1, description="RFC 9535; something must be found there.")] | None = None
    equals: Annotated[Any, Meta(description="One of the values found must be this one.")] = msgspec.UNSET
    text: Annotated[str, Meta(min_length=1, description="The body must contain it.")] | None = None


class CustomScript(_Run, frozen=True, kw_only=True, tag="custom_script"):
    """A script ends with 0."""

    main: ClassVar[str] = "script"
    script: Annotated[CommandLine, Meta(description="A shell line, or a list of words that no shell reads.")]
    empty_output: Annotated[bool, Meta(description="It must also print nothing.")] = False


class GitClean(_Goal, frozen=True, kw_only=True, tag="git_clean"):
    """Nothing is left uncommitted, and the working tree is on its branch."""


class CommitsExist(_Goal, frozen=True, kw_only=True, tag="commits_exist"):
    """The branch has a commit over its base that changes something."""


class ProtectedPaths(_Goal, frozen=True, kw_only=True, tag="protected_paths"):
    """The branch leaves alone what judges it: configuration, CI, lint settings, and what the goals run."""


class TestsKept(_Goal, frozen=True, kw_only=True, tag="tests_kept"):
    """No test of the base is removed, skipped, emptied or changed."""


class LinksInside(_Goal, frozen=True, kw_only=True, tag="links_inside"):
    """Nothing in the branch points out of the repository."""


Goal = (
    LintPasses
    | BuildSucceeds
    | TestsPass
    | TestAdded
    | FilesChanged
    | FileExists
    | NoSecrets
    | EndpointResponds
    | ResponseContains
    | CustomScript
    | GitClean
    | CommitsExist
    | ProtectedPaths
    | TestsKept
    | LinksInside
)

GUARDS: tuple[Goal, ...] = (ProtectedPaths(), TestsKept(), LinksInside())
"""Against gaming: every verification has them."""

OF_CHANGES = (TestAdded, FilesChanged, CommitsExist)
"""Goals about what a branch changes, not about what it comes to: later work need not meet them again."""

GOAL_TYPES: dict[str, type[Goal]] = {str(kind.__struct_config__.tag): kind for kind in Goal.__args__}


def goal_type(goal: Goal) -> str:
    """The word by which a goal's type is known everywhere."""
    return str(type(goal).__struct_config__.tag)


_RUNS = ("command", "script", "serve")
"""The fields that name a program."""
DECLARATIVE = (
    "file_exists",
    "files_changed",
    "test_added",
    "commits_exist",
    "git_clean",
    "tests_pass, lint_passes and build_succeeds without a command",
    "endpoint_responds and response_contains with a path and without serve",
)
"""The goals that run nothing of their own, in words: where a program is needed, that of the project runs."""


def what_it_runs(goal: Goal) -> str:
    """The field by which a goal runs a program of its own or asks another host; empty when it does neither."""
    for name in _RUNS:
        if getattr(goal, name, None) is not None:
            return name
    return "url" if "://" in getattr(goal, "url", "") else ""


class FrozenGoal(msgspec.Struct, frozen=True, kw_only=True):
    """A goal of one verification, with where it comes from."""

    level: GoalLevel
    source: GoalSource
    origin: str
    """In words: `.genba/config.yaml at main`, `bug rule`, `task #12`."""
    goal: Goal
    refused: str = ""
    """Why it is not checked: an agent wrote what it would run. It is an error then, and never a pass."""

    @property
    def type(self) -> str:
        return goal_type(self.goal)
