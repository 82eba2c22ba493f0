"""Counting tests by what runners print. A command that ran no test has shown nothing, whatever its exit code.

The output is hostile input: code under test can print any line. So a count never turns a failure into a pass; it can
only take a pass away. Every look is bounded: so many characters of the output, so many lines, so much of a line.
"""

import re
from collections.abc import Iterator

import msgspec

from genba.domain.goals.test_summaries import Reading, read_line

_HEAD, _TAIL = 1 << 20, 3 << 20
"""Characters of the output that are looked at. Runners print their summary at the end."""
_MOST_LINES = 40_000
_LONGEST_LINE = 400
_COLOUR = re.compile(r"\x1b(?:\[[0-9;:?]{0,40}[ -/]{0,4}[@-~]|\][^\x07\x1b]{0,200}(?:\x07|\x1b\\)|[()][A-Z0-9]|[=>78])")
_HINT = re.compile(
    r"pass|test|spec|example|scenario|assert|success|\bok\b|\bRan |Executed|collected|\d\.\.\d|FAIL|Task :"
    r"|\brun(?:s|ning)?\b|is up to date|Nothing to be done|Summary|skip|deselect|pending|\tcoverage: 0",
    re.IGNORECASE,
)
_INSTEAD = {
    "tap": ("node", "tape"),
    "surefire class": ("surefire",),
    "bun": ("listed",),
    "vstest": ("dotnet",),
    "collected": ("pytest",),
}
"""Readings that count only where no reading of these others is there: they tell of the same tests."""


class SuiteCount(msgspec.Struct, frozen=True, kw_only=True):
    """What the runners of one command counted, summed up."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    exact: bool = True
    """False where a runner tells of packages, and not of single tests."""
    says_none: bool = False
    """Whether a runner says in words that there was no test, and not by a count alone."""

    @property
    def ran_none(self) -> bool:
        """Whether no test ran: none was found, or all were skipped or left out."""
        return self.passed == 0 and self.failed == 0

    def __str__(self) -> str:
        what = "test" if self.exact else "package of tests"
        passed = _several(self.passed, what) + " passed"
        more = [f"{number} {name}" for number, name in ((self.failed, "failed"), (self.skipped, "skipped")) if number]
        return ", ".join((passed, *more))


def count_tests(*outputs: str) -> SuiteCount | None:
    """The tests that a command ran, by the summaries in its output; None where no known summary is found."""
    sums: dict[str, Reading] = {}
    go = _GoPackages()
    for output in outputs:
        for line in _lines(output):
            reading = go.read(line) or read_line(line)
            if reading is not None:
                sums[reading.runner] = sums[reading.runner].plus(reading) if reading.runner in sums else reading
    found = [each for each in sums.values() if not any(other in sums for other in _INSTEAD.get(each.runner, ()))]
    if not any(each.counts for each in found):
        return None
    return SuiteCount(
        passed=sum(max(0, each.passed - each.uncounted) for each in found),
        failed=sum(each.failed for each in found),
        skipped=sum(each.skipped for each in found),
        exact=not any(each.runner in ("go", "gradle") and each.passed for each in found),
        says_none=any(each.says_none for each in found),
    )


def _several(number: int, what: str) -> str:
    first, _, rest = what.partition(" ")
    named = first if number == 1 else f"{first}s"
    return f"{number} {named} {rest}".rstrip()


def _lines(output: str) -> Iterator[str]:
    """The lines that could be part of a summary, without colours. Most lines of most outputs are none."""
    if len(output) > _HEAD + _TAIL:
        output = f"{output[:_HEAD]}\n{output[-_TAIL:]}"
    text = output.replace("\r", "\n")
    spans = _candidates(text)
    for begin, end in spans if len(spans) <= _MOST_LINES else [*spans[: _MOST_LINES // 4], *spans[-_MOST_LINES:]]:
        line = text[begin : min(end, begin + 4 * _LONGEST_LINE)]
        yield (_COLOUR.sub("", line) if "\x1b" in line else line)[:_LONGEST_LINE]


def _candidates(text: str) -> list[tuple[int, int]]:
    found, at = [], 0
    while (hint := _HINT.search(text, at)) is not None:
        begin = text.rfind("\n", at, hint.start()) + 1 or at
        end = text.find("\n", hint.end())
        end = len(text) if end < 0 else end
        found.append((begin, end))
        at = end + 1
    return found


class _GoPackages:
    """Packages of `go test`. With -v a package that is ok may have skipped each of its tests."""

    _PACKAGE = re.compile(
        r"(?:.{0,80}[:|\]>] )?(?:(?P<ok>ok)[ \t]{2,8}\S{1,200}[ \t]+(?:\(cached\)|\d[\d.]{0,12}s)"
        r"|(?P<failed>FAIL)[ \t]+\S{1,200}[ \t]+(?:\d[\d.]{0,12}s|\[)"
        r"|(?P<empty>\?) +\t?\S{1,200}\s+\[no test files\]|\t\S{1,200}\t\tcoverage: 0\.0%)"
    )
    _TEST = re.compile(r"\s*--- (PASS|SKIP|FAIL): \S")

    def __init__(self) -> None:
        self.tests = 0
        self.ran = 0

    def read(self, line: str) -> Reading | None:
        if (test := self._TEST.match(line)) is not None:
            self.tests += 1
            self.ran += test[1] != "SKIP"
            return None
        package = self._PACKAGE.match(line)
        if package is None:
            return None
        empty = "[no test" in line or (self.tests > 0 and self.ran == 0)
        self.tests = self.ran = 0
        if package["failed"]:
            return Reading(runner="go", failed=1)
        return Reading(runner="go", passed=1 if package["ok"] and not empty else 0)
