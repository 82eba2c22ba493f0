"""A small tracker and forge that deeds can be carried out on, in memory or in a file."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from genba.domain.errors import NotFoundError, StateConflictError
from genba.domain.tracker.outbox import (
    CloseIssue,
    Deed,
    DeliveryReceipt,
    KeepComment,
    MergePullRequest,
    OpenPullRequest,
    PostComment,
    Relabel,
    ReopenIssue,
    SetCardStatus,
)


class Effect(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that was done on the outside."""

    key: str
    deed: Deed


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """What goes wrong with the next deed, and whether it was carried out nevertheless."""

    error: Exception
    after: bool = False


class MemoryDeeds:
    """Carries out deeds on issues that have labels, and remembers every one; a file makes it survive its process."""

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

    async def made(self, deed: Deed, key: str) -> DeliveryReceipt | None:
        self.at("look")
        self.looks += 1
        self._check(deed)
        found = self._made(deed, key)
        self.at("looked")
        return found

    async def do(self, deed: Deed, key: str) -> DeliveryReceipt:
        self.at("do")
        self._check(deed)
        fault = self.faults.pop(0) if self.faults else None
        if fault is not None and not fault.after:
            raise fault.error
        made = self._do(deed, key)
        self.at("done")
        if fault is not None:
            raise fault.error
        return made

    def labels_of(self, issue: int) -> set[str]:
        labels = set(self.labels)
        for effect in self.effects:
            if isinstance(effect.deed, Relabel) and effect.deed.issue == issue:
                labels = (labels | set(effect.deed.add)) - set(effect.deed.remove)
        return labels

    def is_closed(self, issue: int) -> bool:
        states = [
            isinstance(effect.deed, CloseIssue)
            for effect in self.effects
            if isinstance(effect.deed, CloseIssue | ReopenIssue) and effect.deed.issue == issue
        ]
        return bool(states) and states[-1]

    def comments_of(self, issue: int) -> list[str]:
        """Its comments, oldest first; one that is kept has its newest words."""
        found: dict[str, str] = {}
        for effect in self.effects:
            if isinstance(effect.deed, PostComment | KeepComment) and effect.deed.issue == issue:
                found[effect.key] = effect.deed.body
        return list(found.values())

    def _check(self, deed: Deed) -> None:
        issue = getattr(deed, "issue", None)
        if issue is not None and issue not in self.issues:
            raise NotFoundError(f"there is no issue #{issue}")
        if isinstance(deed, MergePullRequest) and self.heads.get(self._branch(deed.number), "") != deed.commit:
            raise StateConflictError(f"the head of pull request #{deed.number} is not {deed.commit[:7]}")

    def _branches(self) -> list[str]:
        opened = [effect.deed.branch for effect in self.effects if isinstance(effect.deed, OpenPullRequest)]
        return list(dict.fromkeys(opened))

    def _branch(self, number: int) -> str:
        branches = self._branches()
        return branches[number - 1] if 0 < number <= len(branches) else ""

    def _pull_request(self, branch: str) -> DeliveryReceipt:
        number = self._branches().index(branch) + 1
        return DeliveryReceipt(address=f"memory://pull/{number}", number=number, commit=self.heads.get(branch, ""))

    def _made(self, deed: Deed, key: str) -> DeliveryReceipt | None:
        mine = [effect.deed for effect in self.effects if effect.key == key]
        match deed:
            case KeepComment() | SetCardStatus():
                there = mine[-1:] == [deed]
            case Relabel():
                labels = self.labels_of(deed.issue)
                there = labels >= set(deed.add) and not labels & set(deed.remove)
            case CloseIssue() | ReopenIssue():
                there = self.is_closed(deed.issue) == isinstance(deed, CloseIssue)
            case MergePullRequest():
                merged = [effect.deed for effect in self.effects if isinstance(effect.deed, MergePullRequest)]
                there = any(one.number == deed.number for one in merged)
            case OpenPullRequest():
                opened = [effect.deed for effect in self.effects if isinstance(effect.deed, OpenPullRequest)]
                same = [one for one in opened if one.branch == deed.branch]
                return self._pull_request(deed.branch) if same[-1:] == [deed] else None
            case _:
                there = bool(mine)
        return self._left(deed) if there else None

    def _do(self, deed: Deed, key: str) -> DeliveryReceipt:
        effect = Effect(key=key, deed=deed)
        if self.file is None:
            self._effects.append(effect)
        else:
            file = os.open(self.file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            try:
                os.write(file, msgspec.json.encode(effect) + b"\n")
            finally:
                os.close(file)
        return self._pull_request(deed.branch) if isinstance(deed, OpenPullRequest) else self._left(deed)

    def _left(self, deed: Deed) -> DeliveryReceipt:
        if isinstance(deed, MergePullRequest):
            return DeliveryReceipt(
                address=f"memory://pull/{deed.number}", number=deed.number, commit=f"merged-{deed.commit}"
            )
        return DeliveryReceipt(address=f"memory://issue/{deed.issue}", number=deed.issue)
