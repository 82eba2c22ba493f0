"""Branches as values: two sets of files become the facts that git would show."""

import hashlib
from collections.abc import Mapping
from textwrap import dedent

import msgspec

from genba.domain.goals.verification import BranchFacts, CommitFacts, FileChange, Subject
from genba.domain.sessions.evidence import CheckResult
from genba.judgement.verification.built_in_checks import judge_links_inside, judge_protected_paths, judge_tests_kept
from genba.judgement.verification.goal_results import View

_NOTHING = ("000000", "0" * 40)


class Link(msgspec.Struct, frozen=True):
    target: str


class Program(msgspec.Struct, frozen=True):
    text: str


class Binary(msgspec.Struct, frozen=True):
    """Content that is no text: its blob is known, and nothing else."""

    content: str


class Inner(msgspec.Struct, frozen=True):
    """A repository inside the repository."""

    commit: str


Entry = str | Link | Program | Binary | Inner
Files = Mapping[str, Entry]


class Branch(msgspec.Struct, frozen=True):
    facts: BranchFacts
    blobs: dict[str, str]
    base_files: tuple[str, ...]
    files: tuple[str, ...]

    def view(self, **settings: object) -> View:
        subject = Subject(commit=self.facts.commit, base=self.facts.base, branch="work", base_branch="main")
        view = View(facts=self.facts, subject=subject, blobs=self.blobs, base_files=self.base_files, files=self.files)
        return msgspec.structs.replace(view, **settings)

    def tests_kept(self, *may_change: str) -> CheckResult:
        return judge_tests_kept(self.facts, self.blobs, may_change, None)

    def protected(self, *may_change: str, judges: tuple[str, ...] = ()) -> CheckResult:
        return judge_protected_paths(self.facts, self.blobs, self.base_files, may_change, judges=judges)

    def links(self) -> CheckResult:
        return judge_links_inside(self.facts, self.blobs)


def branch(base: Files, commit: Files, *, commits: tuple[CommitFacts, ...] | None = None) -> Branch:
    """The facts of a branch from one set of files to another. Texts are dedented."""
    changes = []
    blobs: dict[str, str] = {}
    for path in sorted({*base, *commit}):
        old_mode, old_blob = _entry(base.get(path), blobs)
        new_mode, new_blob = _entry(commit.get(path), blobs)
        if (old_mode, old_blob) != (new_mode, new_blob):
            status = "A" if path not in base else "D" if path not in commit else "M"
            status = "T" if status == "M" and old_mode[:3] != new_mode[:3] else status
            changes.append(
                FileChange(
                    status=status,
                    path=path,
                    old_mode=old_mode,
                    new_mode=new_mode,
                    old_blob=old_blob,
                    new_blob=new_blob,
                )
            )
    one = CommitFacts(sha="c" * 40, subject="Work", empty=not changes)
    facts = BranchFacts(
        base="b" * 40,
        commit="c" * 40,
        tree="t" * 40,
        commits=(one,) if commits is None else commits,
        changes=tuple(changes),
        touched=tuple(change.path for change in changes),
    )
    return Branch(facts, blobs, tuple(sorted(base)), tuple(sorted(commit)))


def _entry(entry: Entry | None, blobs: dict[str, str]) -> tuple[str, str]:
    match entry:
        case None:
            return _NOTHING
        case Link(target=target):
            return "120000", _blob(target, blobs)
        case Program(text=text):
            return "100755", _blob(dedent(text), blobs)
        case Binary(content=content):
            return "100644", hashlib.sha1(content.encode()).hexdigest()
        case Inner(commit=sha):
            return "160000", sha
        case str():
            return "100644", _blob(dedent(entry), blobs)


def _blob(text: str, blobs: dict[str, str]) -> str:
    name = hashlib.sha1(text.encode("utf-8", "surrogatepass")).hexdigest()
    blobs[name] = text
    return name
