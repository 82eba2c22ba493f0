"""Goals that need nothing but what git shows, and the verdict on all of them.

The law: done = the artifacts are there ∧ every required goal passes. An error is never a pass and never a fail; a goal
that failed rejects even where another one broke, since no repair of the machinery could make it pass.
"""

from collections.abc import Mapping

import msgspec

from genba.domain.goals.goal import (
    CommitsExist,
    FileExists,
    FilesChanged,
    GitClean,
    Goal,
    LinksInside,
    ProtectedPaths,
    TestAdded,
    TestsKept,
    goal_type,
)
from genba.domain.goals.verification import (
    Artifact,
    ArtifactType,
    BranchArtifact,
    BranchFacts,
    CommitArtifact,
    FileArtifact,
    FileChange,
    GoalResult,
    RejectionReason,
    Subject,
    VerdictStatus,
    Verification,
)
from genba.domain.sessions.evidence import CheckResult, CheckStatus
from genba.judgement.test_changes.added_tests import REGULAR, added_tests, new_text, old_text
from genba.judgement.verification.built_in_checks import judge_links_inside, judge_protected_paths, judge_tests_kept
from genba.judgement.verification.judging_files import paths_in_command
from genba.judgement.verification.links import LINK, REPOSITORY, way_out
from genba.judgement.verification.paths import PROTECTED, is_glob, is_test, matches, shown, some

__all__ = [
    "View",
    "artifacts",
    "files_to_lay_over",
    "findings",
    "judge_by_facts",
    "judge_verification",
    "missing_artifacts",
    "paths_in_command",
    "test_files",
]

_MOST_FILES = 1000
_SHORT = 7


class View(msgspec.Struct, frozen=True, kw_only=True):
    """What git shows of a branch, as far as goals look at it."""

    facts: BranchFacts
    subject: Subject
    blobs: Mapping[str, str] = {}
    """The texts of changed files, on both sides. What is no text is not there."""
    base_files: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    """Every path of the base, and of the commit."""
    may_change: tuple[str, ...] = ()
    protected: tuple[str, ...] = PROTECTED
    judges: tuple[str, ...] = ()
    """The files that the goals run."""


def judge_by_facts(goal: Goal, view: View) -> CheckResult | None:
    """The result of a goal that needs only git facts, or None when it must be run."""
    facts, name = view.facts, goal_type(goal)
    match goal:
        case FilesChanged(pattern=pattern):
            fitting = [change.path for change in facts.changes if _counts(change, pattern, view.blobs)]
            return _result(name, bool(fitting), f"changes {some(fitting, 3)}", f"changes no file that fits {pattern}")
        case FileExists(path=path):
            found = _existing(path, view)
            return _result(name, bool(found), "", f"there is no file {path}")
        case CommitsExist():
            return _result(name, _has_work(facts), _count(_work(facts), "commit"), _no_work(facts))
        case GitClean():
            return _git_clean(name, view.subject)
        case ProtectedPaths():
            return judge_protected_paths(
                facts, view.blobs, view.base_files, view.may_change, view.protected, view.judges
            )
        case TestsKept():
            return judge_tests_kept(facts, view.blobs, view.may_change, None)
        case LinksInside():
            return judge_links_inside(facts, view.blobs, view.files)
        case TestAdded():
            return _test_added(name, goal, view)
    return None


def test_files(view: View, goal: TestAdded) -> tuple[str, ...]:
    """The files to run for a goal: those with tests that the branch adds, apart from the code that they test."""
    added = added_tests(view.facts, view.blobs, goal.pattern)
    return tuple(path for path in added.files if is_test(path, goal.pattern))


def files_to_lay_over(view: View, goal: TestAdded) -> tuple[str, ...]:
    """All that the branch adds or changes among the tests, fixtures and data too: what its tests need on the base."""
    made = [change for change in view.facts.changes if change.new_mode in REGULAR]
    return tuple(change.path for change in made if is_test(change.path) or is_test(change.path, goal.pattern))


def _test_added(name: str, goal: TestAdded, view: View) -> CheckResult | None:
    added = added_tests(view.facts, view.blobs, goal.pattern)
    if not added.cases:
        never = f"; what it adds can never fail: {some(added.hollow, 3)}" if added.hollow else ""
        where = f" that fits {goal.pattern}" if goal.pattern else ""
        return _result(name, False, "", f"adds no test{where}{never}")
    if not goal.must_fail_on_base:
        return _result(name, True, f"adds {some(added.cases, 3)}", "")
    if not test_files(view, goal):
        message = f"adds tests only beside the code ({some(added.files, 3)}): they cannot be run on the base without it"
        return _result(name, False, "", f"{message}; put them into a file of tests")
    return None


def _counts(change: FileChange, pattern: str, blobs: Mapping[str, str]) -> bool:
    """Whether a file fits and really differs: not by its mode, by blank lines, or by being there and empty."""
    if not matches(change.path, pattern) or change.old_blob == change.new_blob:
        return False
    old, new = old_text(change, blobs), new_text(change, blobs)
    if change.status == "A" and new is not None:
        return bool(new.strip()) or not is_glob(pattern)
    return old is None or new is None or _words(old) != _words(new)


def _words(text: str) -> list[str]:
    return [line.rstrip() for line in text.splitlines() if line.strip()]


def _existing(path: str, view: View) -> list[str]:
    """The files that a path or a glob names. What is no file, and a link to what is not there, does not count.

    A name with an ending is that of a file; one without may be a folder with files in it.
    """
    plain = path.removeprefix("./").lstrip("/").rstrip("/")
    files = frozenset(view.files)
    if is_glob(path):
        named = [file for file in view.files if matches(file, path)]
    else:
        is_folder = path.endswith("/") or "." not in plain.rpartition("/")[2][1:]
        named = [file for file in view.files if file == plain or (is_folder and file.startswith(f"{plain}/"))]
    odd = {change.path: change for change in view.facts.changes if change.new_mode in (LINK, REPOSITORY)}
    return [file for file in named if file not in odd or _leads_to_a_file(odd[file], files, view.blobs)]


def _leads_to_a_file(change: FileChange, files: frozenset[str], blobs: Mapping[str, str]) -> bool:
    target = blobs.get(change.new_blob, "")
    if change.new_mode != LINK or way_out(change.path, target, {}):
        return False
    place = change.path.split("/")[:-1]
    for word in target.split("/"):
        if word == "..":
            place.pop()
        elif word not in ("", "."):
            place.append(word)
    aim = "/".join(place)
    return aim != change.path and (aim in files or any(file.startswith(f"{aim}/") for file in files))


def _git_clean(name: str, subject: Subject) -> CheckResult:
    if subject.strayed:
        return _result(name, False, "", f"the working tree is on {shown(subject.strayed)}, not on {subject.branch}")
    message = f"{_count(subject.dirty, 'file')} not committed: {some(subject.dirty)}"
    return _result(name, not subject.dirty, "", message)


def _work(facts: BranchFacts) -> tuple[str, ...]:
    return tuple(commit.sha for commit in facts.commits if not commit.empty)


def _has_work(facts: BranchFacts) -> bool:
    """A commit that changes something, and something that is different in the end."""
    return bool(_work(facts)) and bool(facts.changes)


def _no_work(facts: BranchFacts) -> str:
    if not facts.commits:
        return "the branch has no commit over its base"
    return "its commits take back what they change" if _work(facts) else "its commits change nothing"


def missing_artifacts(
    expected: tuple[ArtifactType, ...], facts: BranchFacts, subject: Subject
) -> tuple[ArtifactType, ...]:
    """The kinds of artifact that were expected and that git does not show."""
    there = {
        ArtifactType.COMMIT: _has_work(facts),
        ArtifactType.BRANCH: bool(subject.branch) and subject.branch != subject.base_branch,
        ArtifactType.FILE: any(change.new_mode in REGULAR for change in facts.changes),
    }
    return tuple(kind for kind in dict.fromkeys(expected) if not there[kind])


def artifacts(facts: BranchFacts, subject: Subject) -> tuple[Artifact, ...]:
    """What git shows: commits that change something, the branch, and the files as they are now, up to a limit."""
    found: list[Artifact] = [CommitArtifact(sha=sha, branch=subject.branch) for sha in _work(facts)]
    if subject.branch:
        found.append(BranchArtifact(name=subject.branch, base_branch=subject.base_branch))
    made = [change for change in facts.changes if change.new_mode in REGULAR]
    found += [FileArtifact(path=change.path, checksum=change.new_blob) for change in made[:_MOST_FILES]]
    return tuple(found)


def findings(facts: BranchFacts, subject: Subject) -> tuple[str, ...]:
    """What was seen besides, in sentences that someone can act on."""
    lines = []
    empty = [commit.sha[:_SHORT] for commit in facts.commits if commit.empty]
    if empty:
        change = "changes" if len(empty) == 1 else "change"
        lines.append(f"{_count(empty, 'commit')} {change} nothing: {some(empty)}")
    if facts.commits and len(empty) < len(facts.commits) and not facts.changes:
        lines.append("the commits take back what they change: nothing is different from the base")
    if subject.dirty:
        lines.append(f"{_count(subject.dirty, 'file')} not committed: {some(subject.dirty)}")
    if subject.strayed:
        lines.append(f"the working tree is on {shown(subject.strayed)}, not on {subject.branch or 'its branch'}")
    if subject.elsewhere:
        lines.append(f"commits were left on other branches: {some(subject.elsewhere)}")
    return tuple(lines)


def judge_verification(
    subject: Subject,
    facts: BranchFacts,
    missing: tuple[ArtifactType, ...],
    results: tuple[GoalResult, ...],
    seconds: float,
) -> Verification:
    """The verdict. Missing artifacts come first, then goals that failed, then goals that could not be checked."""
    status, reason = VerdictStatus.DONE, None
    if missing:
        status, reason = VerdictStatus.REJECTED, RejectionReason.MISSING_ARTIFACTS
    elif any(found.rejects for found in results):
        status, reason = VerdictStatus.REJECTED, RejectionReason.GOALS_NOT_MET
    elif any(found.broken for found in results):
        status = VerdictStatus.ERROR
    return Verification(
        status=status,
        reason=reason,
        subject=subject,
        tree=facts.tree,
        commits=len(facts.commits),
        missing=tuple(str(kind) for kind in missing),
        findings=findings(facts, subject),
        artifacts=artifacts(facts, subject),
        results=results,
        seconds=seconds,
    )


def _result(name: str, passed: bool, praise: str, complaint: str) -> CheckResult:
    status = CheckStatus.PASSED if passed else CheckStatus.FAILED
    return CheckResult(name, status, praise if passed else complaint)


def _count(things: tuple[str, ...] | list[str], word: str) -> str:
    return f"{len(things)} {word}{'' if len(things) == 1 else 's'}"
