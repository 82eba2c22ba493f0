"""Verification: what was looked at, and the verdict on it."""

from enum import StrEnum

import msgspec

from genba.domain.goals.goal import FrozenGoal
from genba.domain.sessions.evidence import CheckResult, CheckStatus


class CommitArtifact(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="commit"):
    sha: str
    branch: str


class FileArtifact(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="file"):
    path: str
    checksum: str
    """The name of its content in git."""


class BranchArtifact(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="branch"):
    name: str
    base_branch: str


Artifact = CommitArtifact | FileArtifact | BranchArtifact


class ArtifactType(StrEnum):
    COMMIT = "commit"
    FILE = "file"
    BRANCH = "branch"


class CommitFacts(msgspec.Struct, frozen=True, kw_only=True):
    sha: str
    subject: str
    empty: bool
    """It changes nothing."""


class FileChange(msgspec.Struct, frozen=True, kw_only=True):
    """What a branch does to one file. Renames are a removal and an addition."""

    status: str
    """A added, M modified, D deleted, T turned into something else."""
    path: str
    old_mode: str
    new_mode: str
    old_blob: str
    new_blob: str


class BranchFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What git shows of a commit over its base."""

    base: str
    """The commit that the branch began at."""
    commit: str
    tree: str
    commits: tuple[CommitFacts, ...] = ()
    changes: tuple[FileChange, ...] = ()
    """From `base` to `commit`, as a whole."""
    touched: tuple[str, ...] = ()
    """Every path that one of the commits changes."""


class Subject(msgspec.Struct, frozen=True, kw_only=True):
    """What is verified: a commit, on a branch where there is one, over a base."""

    commit: str
    base: str
    branch: str = ""
    base_branch: str = ""
    dirty: tuple[str, ...] = ()
    """What the working tree of the branch has not committed."""
    strayed: str = ""
    """Where the working tree's HEAD is, when it is not on the branch."""
    elsewhere: tuple[str, ...] = ()
    """Other branches on which the agent left commits."""


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Where a goal is checked."""

    folder: str
    """A checkout of the commit."""
    commit: str
    base: str
    base_folder: str = ""
    """A checkout of the base with the tests of the branch laid over it, where a goal needs one."""
    files: tuple[str, ...] = ()
    """The files that a goal is about, such as the tests that a branch adds."""


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """Files of a checkout that judge: commands that run there leave them as they are."""

    paths: tuple[str, ...] = ()
    modes_change: bool = False
    """Whether the commands change modes, so that the files cannot be mounted read-only."""


NOTHING_KEPT = Kept()


class GoalResult(msgspec.Struct, frozen=True, kw_only=True):
    goal: FrozenGoal
    result: CheckResult
    log: str = ""
    """The name of its log: `genba logs goal NAME`."""
    cached: bool = False

    @property
    def rejects(self) -> bool:
        return self.goal.goal.required and self.result.status is CheckStatus.FAILED

    @property
    def broken(self) -> bool:
        return self.goal.goal.required and self.result.status is CheckStatus.ERROR


class VerdictStatus(StrEnum):
    DONE = "done"
    REJECTED = "rejected"
    ERROR = "error"


class RejectionReason(StrEnum):
    MISSING_ARTIFACTS = "missing_artifacts"
    GOALS_NOT_MET = "goals_not_met"


class Verification(msgspec.Struct, frozen=True, kw_only=True):
    """The verdict on one commit, with the reasons. An error is never a pass and never a fail."""

    status: VerdictStatus
    reason: RejectionReason | None = None
    subject: Subject
    tree: str
    commits: int
    missing: tuple[str, ...] = ()
    """The kinds of artifact that were expected and are not there."""
    findings: tuple[str, ...] = ()
    """What was seen besides, in sentences: empty commits, a dirty tree, commits elsewhere."""
    artifacts: tuple[Artifact, ...] = ()
    results: tuple[GoalResult, ...] = ()
    seconds: float = 0.0

    @property
    def done(self) -> bool:
        return self.status is VerdictStatus.DONE

    @property
    def verdict(self) -> str:
        """In one phrase: `done`, `rejected: goals_not_met`, `error`."""
        return f"{self.status}: {self.reason}" if self.reason else str(self.status)
