"""Where an instance works, and what becomes of its work."""

from enum import StrEnum
from typing import TYPE_CHECKING

import msgspec

from genba.domain.sessions.sandbox import Overlay

if TYPE_CHECKING:  # only a run that opens a pull request pays for it
    from genba.domain.tracker.remote import Terms


class WorkspaceRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What a run asks of the working trees."""

    run: str
    agent: str
    root: str
    """The folder for working trees, relative to the repository."""
    isolated: bool
    """Its own branch and working tree; otherwise the user's checkout, as it stands."""
    branch: str | None
    base_branch: str | None
    issue: int | None
    issue_title: str
    base: str = ""
    """The commit to begin at; by default the one that the base branch is on here."""
    only_reads: bool = False
    """True when nothing that the run leaves is committed: then the user's checkout may have changes."""


class Workspace(msgspec.Struct, frozen=True, kw_only=True):
    run: str
    path: str
    git_dir: str
    """Where git keeps what belongs to this working tree; never looked up inside the tree itself."""
    branch: str
    base_branch: str
    base: str
    """The commit of the base branch when the work began."""
    isolated: bool
    taken_from: str = ""
    """The run that held the branch before, and may have died without ending its processes."""
    overlay: Overlay | None = None
    """What is mounted at the path where something runs in it; without one the path is a plain folder."""


class MergeStatus(StrEnum):
    MERGED = "merged"
    NOTHING_TO_MERGE = "nothing_to_merge"
    CONFLICT = "conflict"
    CHECKOUT_IN_THE_WAY = "checkout_in_the_way"


class MergeResult(msgspec.Struct, frozen=True, kw_only=True):
    status: MergeStatus
    commit: str = ""
    paths: tuple[str, ...] = ()
    detail: str = ""


class Proposal(msgspec.Struct, frozen=True, kw_only=True):
    """A merge that was made and not landed: a commit that nothing points to yet."""

    refused: MergeResult | None = None
    """Why there is nothing to land."""
    base: str = ""
    tip: str = ""
    """The commit of the branch that is merged."""
    commit: str = ""
    tree: str = ""


class Removal(msgspec.Struct, frozen=True, kw_only=True):
    """What closing a workspace did. What is not removed says why."""

    removed: bool
    rescued: str = ""
    """The ref under which uncommitted changes are kept."""
    reason: str = ""


class PullRequest(msgspec.Struct, frozen=True, kw_only=True):
    branch: str
    target: str
    title: str
    body: str
    issue: int | None = None
    """The issue that it is about."""
    draft: bool = False
    reviewers: tuple[str, ...] = ()
    terms: "Terms | None" = None
    """What it is held to; None where it does not apply."""
