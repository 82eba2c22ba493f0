"""The tests that a branch adds.

The law: a test counts when it was not on the base under any name and can fail. Moved and renamed tests are not new;
more parameters for a test that was there are.
"""

from collections import Counter
from collections.abc import Mapping

import msgspec

from genba.domain.goals.verification import BranchFacts, FileChange
from genba.judgement.test_changes.python_source import Fingerprint, PythonSource, TestFunction, read_python
from genba.judgement.test_changes.python_tests import more_cases
from genba.judgement.test_changes.text_tests import cases_of, ending, is_known_language
from genba.judgement.test_changes.vacuous_tests import is_hollow
from genba.judgement.verification.paths import is_test

REGULAR = frozenset({"100644", "100755"})
"""The modes of files that hold text; links and repositories inside do not."""


class AddedTests(msgspec.Struct, frozen=True):
    files: tuple[str, ...] = ()
    """The files with at least one of them."""
    cases: tuple[str, ...] = ()
    """As `tests/test_titles.py::test_empty`."""
    hollow: tuple[str, ...] = ()
    """New tests that can never fail. They do not count."""


def added_tests(facts: BranchFacts, blobs: Mapping[str, str], pattern: str | None) -> AddedTests:
    """The tests that a branch adds, in the files that fit the pattern, or that have the usual names."""
    changes = [change for change in facts.changes if holds_tests(change.path, pattern)]
    python = [change for change in changes if change.path.endswith(".py")]
    others = [change for change in changes if not change.path.endswith(".py")]
    found = [*_python(python, blobs), *_others(others, blobs, pattern)]
    cases = tuple(f"{path}::{name}" for path, name, hollow in found if not hollow)
    return AddedTests(
        files=tuple(dict.fromkeys(path for path, _, hollow in found if not hollow)),
        cases=cases,
        hollow=tuple(f"{path}::{name}" for path, name, hollow in found if hollow),
    )


def holds_tests(path: str, pattern: str | None) -> bool:
    """Whether a file may hold tests; Rust writes them beside the code."""
    return is_test(path, pattern) or (pattern is None and path.endswith(".rs"))


def old_text(change: FileChange, blobs: Mapping[str, str]) -> str | None:
    """The text of a file on the base, unless it is a link or no text."""
    return blobs.get(change.old_blob) if change.old_mode in REGULAR else None


def new_text(change: FileChange, blobs: Mapping[str, str]) -> str | None:
    """The text of a file on the branch, unless it is gone, a link or no text."""
    return blobs.get(change.new_blob) if change.new_mode in REGULAR else None


_Found = tuple[str, str, bool]


def _python(changes: list[FileChange], blobs: Mapping[str, str]) -> list[_Found]:
    sources = [(change.path, _source(old_text(change, blobs)), _source(new_text(change, blobs))) for change in changes]
    known: Counter[Fingerprint] = Counter(test.whole for _, old, _ in sources if old is not None for test in old.tests)
    found: list[_Found] = []
    for path, old, new in sources:
        before = {test.name: test for test in old.tests} if old is not None else {}
        for test in new.tests if new is not None else ():
            if known[test.whole] > 0:
                known[test.whole] -= 1
            elif new is not None:
                found += _judged(path, test, before.get(test.name), new)
    return found


def _judged(path: str, test: TestFunction, before: TestFunction | None, source: PythonSource) -> list[_Found]:
    if before is None:
        return [(path, test.name, is_hollow(test, source))]
    return [(path, f"{test.name} with more cases", is_hollow(test, source))] if more_cases(before, test) else []


def _source(text: str | None) -> PythonSource | None:
    return read_python(text) if text is not None else None


def _others(changes: list[FileChange], blobs: Mapping[str, str], pattern: str | None) -> list[_Found]:
    texts = [(change, old_text(change, blobs), new_text(change, blobs)) for change in changes]
    known = Counter(
        (ending(change.path), case.name) for change, old, _ in texts for case in cases_of(change.path, old or "")
    )
    found: list[_Found] = []
    for change, _, new in texts:
        if new is None:
            continue
        for case in cases_of(change.path, new):
            if known[ending(change.path), case.name] > 0:
                known[ending(change.path), case.name] -= 1
            else:
                found.append((change.path, case.name, case.hollow))
        if pattern is not None and change.status == "A" and not is_known_language(change.path) and new.strip():
            found.append((change.path, "the whole file", False))
    return found
