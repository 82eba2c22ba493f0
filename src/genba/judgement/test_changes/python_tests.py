"""Whether the Python tests of the base go on in the branch.

The law: a test is kept when what it does, what marks it, what it stands in and what it uses are the same. It may move
to another test file and get another name; it may get more parameters to be run with, and more at its end. New tests,
fixtures and helpers are ordinary, as long as nothing that is there changes its meaning by them.
"""

import ast
import re

import msgspec

from genba.judgement.test_changes.python_source import (
    PythonSource,
    TestFunction,
    body_of,
    dotted,
    fingerprint,
    grown,
    read_python,
)
from genba.judgement.test_changes.test_bypass import ways_out
from genba.judgement.test_changes.test_dependencies import names_used, surrounding_losses
from genba.judgement.test_changes.test_regressions import Loss
from genba.judgement.test_changes.vacuous_tests import is_hollow, is_skipped, skips
from genba.judgement.verification.paths import TEST_FOLDERS, is_test_name

_NOT_COLLECTED = re.compile(r"\..*|_darcs|build|CVS|dist|node_modules|venv|\{arch\}|.*\.egg")


_ENCODING = re.compile(r"[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")
"""As Python looks for it in the first two lines."""
_PLAIN_ENCODING = re.compile(r"utf[-_]?8(?:[-_]sig)?|u8|(?:us[-_])?ascii|latin[-_]?1|iso[-_]8859[-_]1")


class PythonChange(msgspec.Struct, frozen=True):
    """A Python file among the tests, before and after. None where it is not there, or is no text."""

    path: str
    old: str | None
    new: str | None
    judged: bool = True
    """False where the task may change it."""


class _Pair(msgspec.Struct, frozen=True):
    change: PythonChange
    old: PythonSource | None
    new: PythonSource | None
    before: dict[str, list[TestFunction]]
    after: dict[str, list[TestFunction]]

    @property
    def path(self) -> str:
        return self.change.path

    @property
    def broken(self) -> bool:
        return self.change.new is not None and self.new is None

    def keeps(self, name: str) -> bool:
        """Whether the tests of this name are the same in this file, and nothing stands in for them."""
        had, has = self.before.get(name, []), self.after.get(name, [])
        if self.old is None or self.new is None or len(had) != len(has):
            return False
        words = name.split(".")
        for place in (".".join(words[: count + 1]) for count in range(len(words))):
            if len(self.old.bindings.get(place, ())) != len(self.new.bindings.get(place, ())):
                return False
        return all(same_test(one, other) for one, other in zip(had, has, strict=True))


def python_losses(changes: tuple[PythonChange, ...], changed_modules: frozenset[str] = frozenset()) -> list[Loss]:
    """Everything that is lost. `changed_modules` are the Python files that the branch changes outside the tests."""
    pairs = [_pair(change) for change in changes]
    losses: list[Loss] = []
    homeless: list[tuple[_Pair, TestFunction]] = []
    for pair in pairs:
        if not pair.change.judged:
            continue
        if pair.broken and pair.old is not None:
            losses.append(Loss("breaks", "a file that Python cannot read any more", pair.path))
            continue
        if odd := _odd_encoding(pair.change):
            losses.append(Loss("declares", f"the encoding {odd}", pair.path))
        losses += ways_out(pair.path, pair.old, pair.new, changed_modules)
        homeless += [(pair, test) for test in (pair.old.tests if pair.old else ()) if not pair.keeps(test.name)]
    losses += _removals(homeless, pairs)
    gone = frozenset(change.path for change in changes if change.new is None) | changed_modules
    for pair in pairs:
        if pair.change.judged and pair.old is not None and pair.new is not None:
            kept = [test for test in pair.old.tests if pair.keeps(test.name)]
            losses += surrounding_losses(pair.path, kept, pair.old, pair.new, gone)
    return losses


def _odd_encoding(change: PythonChange) -> str:
    """A new declaration of an encoding in which Python reads other text than stands there."""
    declared = [
        next((found[1].lower() for line in (text or "").split("\n")[:2] if (found := _ENCODING.match(line))), "")
        for text in (change.old, change.new)
    ]
    return "" if declared[1] in ("", declared[0]) or _PLAIN_ENCODING.fullmatch(declared[1]) else declared[1]


def _pair(change: PythonChange) -> _Pair:
    old = read_python(change.old) if change.old is not None else None
    new = read_python(change.new) if change.new is not None else None
    return _Pair(change, old, new, _by_name(old), _by_name(new))


def _by_name(source: PythonSource | None) -> dict[str, list[TestFunction]]:
    found: dict[str, list[TestFunction]] = {}
    for test in source.tests if source is not None else ():
        found.setdefault(test.name, []).append(test)
    return found


def _removals(homeless: list[tuple[_Pair, TestFunction]], pairs: list[_Pair]) -> list[Loss]:
    """The tests that go on nowhere. Each new test can be the new home of one."""
    newcomers = [found for pair in pairs for found in _newcomers(pair)]
    homes: dict[object, list[int]] = {}
    for index, (_, test) in enumerate(newcomers):
        homes.setdefault(test.whole, []).append(index)
        homes.setdefault(test.node.name, []).append(index)
    taken: set[int] = set()
    losses = []
    for pair, test in homeless:
        candidates = [*homes.get(test.whole, []), *homes.get(test.node.name, [])]
        fits = (index for index in candidates if index not in taken and _moved(pair, test, *newcomers[index], pairs))
        home = next(fits, None)
        if home is None:
            losses.append(Loss(_verb(pair, test), test.name, pair.path))
        else:
            taken.add(home)
    return losses


def _newcomers(pair: _Pair) -> list[tuple[_Pair, TestFunction]]:
    """The tests of the branch that the same file did not have, where pytest finds them and nothing hides them."""
    *folders, _ = pair.path.split("/")
    hidden = any(_NOT_COLLECTED.fullmatch(folder) for folder in folders)
    if pair.new is None or hidden or not is_test_name(pair.path):
        return []
    found = []
    for name, tests in pair.after.items():
        nodes = pair.new.nodes(name)
        hides = bool(nodes) and nodes[-1] is not tests[-1].node and not tests[-1].conditions
        if name not in pair.before and not hides:
            found.append((pair, tests[-1]))
    return found


def _moved(pair: _Pair, test: TestFunction, place: _Pair, found: TestFunction, pairs: list[_Pair]) -> bool:
    """Whether a test of the base goes on elsewhere, or under another name, with what it uses."""
    old, new = pair.old, place.new
    if old is None or new is None or not same_test(test, found) or not _same_top(pair.path, place.path):
        return False
    if place is pair and not test.owners:
        return True
    members = _members(test, old) == _members(found, new)
    return members and all(_same_meaning(name, old, new, pairs) for name in names_used(test, old))


def _same_top(old: str, new: str) -> bool:
    """A folder that no runner reads is no new place."""
    first = new.partition("/")[0]
    return old.partition("/")[0] == first or first in TEST_FOLDERS or ("/" not in old and "/" not in new)


def _members(test: TestFunction, source: PythonSource) -> dict[str, object]:
    owner = ".".join(owner.name for owner in test.owners)
    tests = {found.name for found in source.tests}
    names = source.members(owner) - tests if owner else frozenset()
    return {name.removeprefix(owner): source.fingerprints(name) for name in names}


def _same_meaning(name: str, old: PythonSource, new: PythonSource, pairs: list[_Pair]) -> bool:
    """Whether a name means in the new home what it meant in the old one, or is imported from where that went."""
    before, after = old.fingerprints(name), new.fingerprints(name)
    if before == after:
        return True
    if not before or (after and after[-1][:1] != ("from",)):
        return False
    if before[-1][:1] == ("from",) and after:
        words = [made[-1][2].rpartition(".")[2:] + made[-1][3:] for made in (before, after)]
        return words[0] == words[1]
    return any(pair.new is not None and pair.new.fingerprints(name) == before for pair in pairs)


def same_test(old: TestFunction, new: TestFunction) -> bool:
    """Whether a test does all that it did, perhaps with more parameters and with more at its end."""
    if old.around != new.around or type(old.node) is not type(new.node):
        return False
    if old.whole == new.whole:
        return True
    if fingerprint(old.node.args) != fingerprint(new.node.args):
        return False
    marks = _same_marks(old.node.decorator_list, new.node.decorator_list)
    return marks and _begins_with(body_of(old.node), body_of(new.node))


def _same_marks(old: list[ast.expr], new: list[ast.expr]) -> bool:
    known = {fingerprint(mark) for mark in old}
    kept = [mark for mark in new if dotted(mark).rpartition(".")[2] != "example" or fingerprint(mark) in known]
    return len(kept) == len(old) and all(_same_mark(had, has) for had, has in zip(old, kept, strict=True))


def _same_mark(old: ast.expr, new: ast.expr) -> bool:
    if fingerprint(old) == fingerprint(new):
        return True
    match old, new:
        case ast.Call(), ast.Call() if dotted(old).endswith("parametrize") and dotted(old) == dotted(new):
            had = [*old.args, *(key.value for key in old.keywords)]
            has = [*new.args, *(key.value for key in new.keywords)]
            names = [key.arg for key in old.keywords] == [key.arg for key in new.keywords]
            return names and len(had) == len(has) and all(grown(*both) for both in zip(had, has, strict=True))
    return False


def more_cases(old: TestFunction, new: TestFunction) -> bool:
    """Whether a kept test is run with more parameters than before."""
    marks = fingerprint(old.node.decorator_list) != fingerprint(new.node.decorator_list)
    return marks and same_test(old, new)


def _begins_with(old: list[ast.stmt], new: list[ast.stmt]) -> bool:
    """Whether all that was done is done as before; what comes after it cannot make it pass.

    A `yield` could: it would turn the function into one whose body is never run.
    """
    added = new[len(old) :]
    yields = any(isinstance(part, ast.Yield | ast.YieldFrom) for node in added for part in ast.walk(node))
    if len(new) < len(old) or yields:
        return False
    return all(_same_statement(had, has) for had, has in zip(old, new, strict=False))


def _same_statement(old: ast.stmt, new: ast.stmt) -> bool:
    """Equal, or a loop over a literal that got more to go through."""
    match old, new:
        case ast.For(), ast.For() if isinstance(old.iter, ast.List | ast.Tuple):
            had, has = ([loop.target, loop.body, loop.orelse] for loop in (old, new))
            return grown(old.iter, new.iter) and fingerprint(had) == fingerprint(has)
    return fingerprint(old) == fingerprint(new)


def _verb(pair: _Pair, test: TestFunction) -> str:
    """What was done to a test that is not kept."""
    now = pair.after.get(test.name, [None])[-1]
    if now is None or pair.new is None or pair.old is None:
        return "removes"
    if len(pair.new.bindings.get(test.name, ())) > len(pair.old.bindings.get(test.name, ())):
        return "replaces"
    more = _skip_marks(now) > _skip_marks(test)
    if more or (is_skipped(now, pair.new) and not is_skipped(test, pair.old)):
        return "skips"
    return "empties" if is_hollow(now, pair.new) else "changes"


def _skip_marks(test: TestFunction) -> int:
    marks = [mark for owner in test.owners for mark in owner.decorator_list]
    return sum(skips(part) for part in (test.node, *marks))
