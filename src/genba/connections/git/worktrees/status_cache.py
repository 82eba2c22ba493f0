"""Working trees in which nothing has changed since git looked at them: git need not look again.

Every change of a file, a folder or the index sets its change time, which no program can set back. What
changed a moment ago may change again without a trace, so it is looked at again. A tree with many files is left to git,
who is quicker there.
"""

import os
import time
from collections import OrderedDict
from pathlib import Path

Print = tuple[str, int, int, int, int, int]
"""A name, and what tells one state of it from another."""
Prints = tuple[Print, ...]
Status = tuple[str, str, tuple[str, ...]]
"""The commit, the branch and the uncommitted paths."""

_MANY = 400
_MOST_TREES = 500
_TICK_NS = 20_000_000
"""Two changes that follow each other more closely than this may bear the same time."""
_COARSE_NS = 2_500_000_000
"""The same, where times have no parts of a millisecond."""
_MILLISECOND_NS = 1_000_000
_OF_TREE = ("index", "HEAD", "config.worktree", "info/sparse-checkout")
_OF_REPOSITORY = ("config", "info/exclude", "info/attributes")


class Stillness:
    """Git's answers about trees without uncommitted changes, as long as they are as they were then."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, tuple[Prints, Status]] = OrderedDict()

    def recall(self, tree: Path, prints: Prints | None) -> Status | None:
        """Git's answer about a tree when it had these prints."""
        known = self._known.get(str(tree))
        return known[1] if known is not None and known[0] == prints else None

    def remember(self, tree: Path, prints: Prints | None, taken_ns: int, status: Status) -> None:
        """The prints are those from before git looked, and the moment is the one before that."""
        self._known.pop(str(tree), None)
        _, on, dirty = status
        if prints is None or dirty or not on or not _are_old(prints, taken_ns):
            return
        self._known[str(tree)] = (prints, status)
        if len(self._known) > _MOST_TREES:
            self._known.popitem(last=False)


def take_prints(tree: Path, git_dir: Path, common: Path) -> tuple[Prints | None, int]:
    """The prints of a working tree and of what git reads besides it, and when they were taken; None of a large one."""
    taken = time.time_ns()
    found: list[Print] = []
    try:
        for folder, names in ((git_dir, _OF_TREE), (common, _OF_REPOSITORY)):
            found += [_print_of(f"{folder}/{name}") for name in names]
        waiting = [str(tree)]
        found.append(_print_of(waiting[0]))
        while waiting:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    if entry.path == f"{tree}/.git":  # of a repository in there, what matters was taken above
                        continue
                    found.append(_print(entry.path, entry.stat(follow_symlinks=False)))
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
                    if len(found) > _MANY:
                        return None, taken
    except OSError:  # it changes right now, or it cannot be read
        return None, taken
    return tuple(found), taken


def _print_of(path: str) -> Print:
    try:
        return _print(path, os.lstat(path))
    except FileNotFoundError:
        return path, 0, 0, 0, 0, 0


def _print(path: str, seen: os.stat_result) -> Print:
    return path, seen.st_mode, seen.st_ino, seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns


def _are_old(prints: Prints, taken_ns: int) -> bool:
    newest = max(one[5] for one in prints)
    apart = _TICK_NS if newest % _MILLISECOND_NS else _COARSE_NS
    return newest < taken_ns - apart
