"""A small tracker and forge that changes can be carried out on, in memory or in a file."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from genba.domain.errors import NotFoundError, StateConflictError
from genba.domain.tracker.outbox import (
    CloseIssue,
    DeliveryReceipt,
    KeepComment,
    MergePullRequest,
    OpenPullRequest,
    PostComment,
    Relabel,
    RemoteChange,
    ReopenIssue,
    SetCardStatus,
)


class Effect(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that was done on the outside."""

    key: str
    change: RemoteChange


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """What goes wrong with the next change, and whether it was carried out nevertheless."""

    error: Exception
    after: bool = False


class MemoryChanges:
    """Carries out changes on issues that have labels, and remembers every one; a file makes it survive its process."""

    def __init__(
        self,
        *,
        file: Path | None = None,
        labels: Sequence[str] = ("docs", "old"),
        issues: Sequence[int] = (1,),
        heads: dict[str, str] | None = None,
        at: Callable[[str], None] = lambda _point: None,
    ) -> None:
        self.file = file
        self.labels = tuple(labels)
        self.issues = tuple(issues)
        self.heads = heads if heads is not None else {"genba/1": "c1"}
        """By branch, the commit that the forge has."""
        self.faults: list[Fault] = []
        self.looks = 0
        self.at = at
        """Called before and after each look and each effect: a test may end the process there."""
        self._effects: list[Effect] = []

    @property
    def effects(self) -> list[Effect]:
        if self.file is None:
            return self._effects
        lines = self.file.read_bytes().splitlines() if self.file.exists() else []
        return [msgspec.json.decode(line, type=Effect) for line in lines]

    @property
    def keys(self) -> list[str]:
        return [effect.key for effect in self.effects]

    async def find(self, change: RemoteChange, key: str) -> DeliveryReceipt | None:
        self.at("look")
        self.looks += 1
        self._check(change)
        found = self._find(change, key)
        self.at("looked")
        return found

    async def apply(self, change: RemoteChange, key: str) -> DeliveryReceipt:
        self.at("do")
        self._check(change)
        fault = self.faults.pop(0) if self.faults else None
        if fault is not None and not fault.after:
            raise fault.error
        made = self._apply(change, key)
        self.at("done")
        if fault is not None:
            raise fault.error
        return made

    def labels_of(self, issue: int) -> set[str]:
        labels = set(self.labels)
        for effect in self.effects:
            if isinstance(effect.change, Relabel) and effect.change.issue == issue:
                labels = (labels | set(effect.change.add)) - set(effect.change.remove)
        return labels

    def is_closed(self, issue: int) -> bool:
        states = [
            isinstance(effect.change, CloseIssue)
            for effect in self.effects
            if isinstance(effect.change, CloseIssue | ReopenIssue) and effect.change.issue == issue
        ]
        return bool(states) and states[-1]

    def comments_of(self, issue: int) -> list[str]:
        """Its comments, oldest first; one that is kept has its newest words."""
        found: dict[str, str] = {}
        for effect in self.effects:
            if isinstance(effect.change, PostComment | KeepComment) and effect.change.issue == issue:
                found[effect.key] = effect.change.body
        return list(found.values())

    def _check(self, change: RemoteChange) -> None:
        issue = getattr(change, "issue", None)
        if issue is not None and issue not in self.issues:
            raise NotFoundError(f"there is no issue #{issue}")
        if isinstance(change, MergePullRequest) and self.heads.get(self._branch(change.number), "") != change.commit:
            raise StateConflictError(f"the head of pull request #{change.number} is not {change.commit[:7]}")

    def _branches(self) -> list[str]:
        opened = [effect.change.branch for effect in self.effects if isinstance(effect.change, OpenPullRequest)]
        return list(dict.fromkeys(opened))

    def _branch(self, number: int) -> str:
        branches = self._branches()
        return branches[number - 1] if 0 < number <= len(branches) else ""

    def _pull_request(self, branch: str) -> DeliveryReceipt:
        number = self._branches().index(branch) + 1
        return DeliveryReceipt(address=f"memory://pull/{number}", number=number, commit=self.heads.get(branch, ""))

    def _find(self, change: RemoteChange, key: str) -> DeliveryReceipt | None:
        mine = [effect.change for effect in self.effects if effect.key == key]
        match change:
            case KeepComment() | SetCardStatus():
                there = mine[-1:] == [change]
            case Relabel():
                labels = self.labels_of(change.issue)
                there = labels >= set(change.add) and not labels & set(change.remove)
            case CloseIssue() | ReopenIssue():
                there = self.is_closed(change.issue) == isinstance(change, CloseIssue)
            case MergePullRequest():
                merged = [effect.change for effect in self.effects if isinstance(effect.change, MergePullRequest)]
                there = any(one.number == change.number for one in merged)
            case OpenPullRequest():
                opened = [effect.change for effect in self.effects if isinstance(effect.change, OpenPullRequest)]
                same = [one for one in opened if one.branch == change.branch]
                return self._pull_request(change.branch) if same[-1:] == [change] else None
            case _:
                there = bool(mine)
        return self._left(change) if there else None

    def _apply(self, change: RemoteChange, key: str) -> DeliveryReceipt:
        effect = Effect(key=key, change=change)
        if self.file is None:
            self._effects.append(effect)
        else:
            file = os.open(self.file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            try:
                os.write(file, msgspec.json.encode(effect) + b"\n")
            finally:
                os.close(file)
        return self._pull_request(change.branch) if isinstance(change, OpenPullRequest) else self._left(change)

    def _left(self, change: RemoteChange) -> DeliveryReceipt:
        if isinstance(change, MergePullRequest):
            return DeliveryReceipt(
                address=f"memory://pull/{change.number}", number=change.number, commit=f"merged-{change.commit}"
            )
        return DeliveryReceipt(address=f"memory://issue/{change.issue}", number=change.issue)
