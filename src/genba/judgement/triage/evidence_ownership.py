"""Which commits and branches are work on an issue: those of its own sessions, and those that are newer than it.

Law: a number in a text belongs to one tracker. A commit that is older than the issue cannot be work on it, whatever it
says. Sessions of Genba are known by their records and not by dates. What a session made is evidence for its own task
and for no other, whatever its commits and branches say.
"""

import re
from collections.abc import Mapping

import msgspec

from genba.domain.facilitation import How, SeenBranch, SeenCommit, SeenSession
from genba.domain.tracker.branch_names import numbered

_SECONDS = len("2026-01-01T00:00:00")
_WORD = re.compile(r"[^\W\d_]{3,}")
_REPOSITORY = re.compile(r"(?:^[a-z+]+://(?:[^/@]*@)?[^/]+/|^[^/:]+:)(?P<path>[^/]+/.+?)(?:\.git)?/*$", re.IGNORECASE)


class Owner(msgspec.Struct, frozen=True, kw_only=True):
    """An issue, as far as it decides what is work on it."""

    number: int
    title: str
    created_at: str
    texts: bool
    """True where a number in the text of a commit or in the name of a branch belongs to its tracker."""
    runs: frozenset[str] = frozenset()
    branches: frozenset[str] = frozenset()
    """Of its sessions, by their records."""
    tasks_of: Mapping[str, frozenset[int]] = {}
    """By session, and by branch of sessions: the numbers of their tasks, as far as others are named here."""

    def is_elsewhere(self, *names: str) -> bool:
        """True where one of these is a session, or a branch of sessions, of other tasks alone."""
        return any(name in self.tasks_of and self.number not in self.tasks_of[name] for name in names)


def own_commits(commits: list[SeenCommit], owner: Owner) -> list[SeenCommit]:
    """Those of the commits that name its number that are about it."""
    return [commit for commit in commits if _is_own_commit(commit, owner)]


def own_branches(branches: list[SeenBranch], owner: Owner) -> list[SeenBranch]:
    """Those of the branches with its number in their names that are about it."""
    return [branch for branch in branches if branch.name in owner.branches or _is_own_branch(branch, owner)]


def _is_own_branch(branch: SeenBranch, owner: Owner) -> bool:
    """A branch of this clone shows that the work has begun; to call an issue done takes more."""
    if not is_newer(branch.time, owner.created_at) or owner.is_elsewhere(branch.run, branch.name):
        return False
    if branch.landed:
        return owner.texts and names_issue(branch.name, owner)
    return owner.texts or not branch.remote


def own_sessions(sessions: list[SeenSession], created_at: str) -> list[SeenSession]:
    """Sessions that only their journals show, which may be about an older issue of the same number."""
    return [each for each in sessions if is_newer(each.started_at, created_at)]


def _is_own_commit(commit: SeenCommit, owner: Owner) -> bool:
    if commit.run and commit.run in owner.runs:
        return True
    if owner.is_elsewhere(commit.run, "" if commit.on_base else commit.branch):
        return False
    by_name = commit.how is How.BRANCH
    if by_name and commit.branch in owner.branches:
        return True
    if not is_newer(commit.time, owner.created_at):
        return False
    if commit.how is How.TRAILER:
        return True
    return owner.texts and (not (by_name and commit.on_base) or names_issue(commit.branch, owner))


def is_newer(time: str, created_at: str) -> bool:
    """True for a time in the second of the creation or later: git knows no fractions."""
    return time[:_SECONDS] >= created_at[:_SECONDS]


def names_issue(branch: str, owner: Owner) -> bool:
    """True when a branch is named after an issue. `12-factor` needs a word of its title, `fix/12` does not.

    Asked of what has landed: to call an issue done takes more than a number.
    """
    found = numbered(branch)
    if found is None or found[0] != owner.number:
        return False
    _, certain, rest = found
    return certain or bool({word.casefold() for word in _WORD.findall(rest)} & _words(owner.title))


def _words(title: str) -> set[str]:
    return {word.casefold() for word in _WORD.findall(title)}


def texts_are_ours(remotes: tuple[str, ...], repository: str) -> bool:
    """True when numbers in texts belong to the tracker: of GitHub's `repository`, or, without one, the local one.

    In a repository with a remote they belong to whatever tracker is there, so they say nothing of a local task.
    """
    if not repository:
        return not remotes
    hosted = [match["path"].casefold() for url in remotes if (match := _REPOSITORY.search(url))]
    return not hosted or any(path == repository.casefold() for path in hosted)
