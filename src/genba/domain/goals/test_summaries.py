"""The lines by which test runners tell how many tests they ran. One line in, what it says out.

Every pattern is tried on one short line, begins at its start and repeats nothing that repeats.
"""

import re
from collections.abc import Callable

import msgspec


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """What one line of a runner says."""

    runner: str
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    uncounted: int = 0
    """Of those that passed, so many were skipped, as another line of the runner says."""
    says_none: bool = False
    counts: bool = True
    """False for a line that only belongs to a summary, and is none by itself."""

    def plus(self, other: "Reading") -> "Reading":
        return Reading(
            runner=self.runner,
            passed=self.passed + other.passed,
            failed=self.failed + other.failed,
            skipped=self.skipped + other.skipped,
            uncounted=self.uncounted + other.uncounted,
            says_none=self.says_none or other.says_none,
            counts=self.counts or other.counts,
        )


_PASSED = frozenset(
    {"passed", "passing", "pass", "success", "successes", "successful", "succeeded", "xpassed", "flaky"}
)
_FAILED = frozenset({"failed", "failing", "fail", "failure", "failures", "error", "errors"})
_SKIPPED = frozenset({
    "skipped", "skips", "skip", "pending", "pendings", "omission", "omissions", "omitted", "excluded", "ignored",
    "deselected", "todo", "xfailed", "disabled", "canceled", "cancelled", "inconclusive", "incomplete", "risky",
    "invalid", "filtered",
})  # fmt: skip
_TOTAL = frozenset({
    "test", "tests", "doctest", "doctests", "property", "properties", "run", "runs", "example", "examples", "spec",
    "specs", "scenario", "scenarios", "total", "completed",
})  # fmt: skip
_ASIDE = frozenset({
    "warning", "warnings", "assertion", "assertions", "notification", "notifications", "rerun", "reruns", "step",
    "steps", "snapshot", "snapshots", "subtest", "subtests", "suite", "suites", "file", "files", "feature", "features",
    "expect", "retried", "undefined", "untested", "measured", "slow", "rule", "rules", "xpass",
})  # fmt: skip
"""What is counted beside tests."""
_PHRASES = {
    "known failure": "skipped",
    "known failures": "skipped",
    "expected failure": "skipped",
    "expected failures": "skipped",
    "unexpected successes": "failed",
    "did not run": "skipped",
}
_TERM = re.compile(r"(\d{1,9}) {1,3}([A-Za-z]{1,20}(?:[ -][A-Za-z]{1,20}){0,3})")
_AFTER = re.compile(r"\s*(?:\([^()]{0,80}\)|\[[^\[\]]{0,80}\])$")


class _Terms(msgspec.Struct, kw_only=True):
    """`5 passed, 2 skipped`, taken apart."""

    passed: int | None = None
    failed: int | None = None
    skipped: int = 0
    total: int | None = None

    def reading(self, runner: str, **more: bool) -> Reading:
        failed = self.failed or 0
        passed = self.passed if self.passed is not None else max(0, (self.total or 0) - failed - self.skipped)
        return Reading(runner=runner, passed=passed, failed=failed, skipped=self.skipped, **more)


def _terms(text: str, between: str = r"[,;|/]") -> _Terms | None:
    """The numbers of a list, each with its word; None where anything else stands in it."""
    found = _Terms()
    for piece in re.split(between, text):
        term = _TERM.match(piece.strip())
        kind = _kind(term[2]) if term is not None else ""
        if term is None or not kind:
            return None
        if kind != "aside":
            setattr(found, kind, (getattr(found, kind) or 0) + int(term[1]))
    return found


def _kind(words: str) -> str:
    named = words.lower().replace("-", " ")
    for phrase, kind in _PHRASES.items():
        if named.startswith(phrase):
            return kind
    each = named.split()
    if each[0] in _ASIDE:
        return "aside"
    for kind, known in (("passed", _PASSED), ("failed", _FAILED), ("skipped", _SKIPPED), ("total", _TOTAL)):
        if any(word in known for word in each[:3]):
            return kind
    return "aside" if any(word in _ASIDE for word in each) else ""


def _int(match: re.Match[str], group: int | str) -> int:
    return int(match[group] or 0)


def _pytest(match: re.Match[str]) -> Reading | None:
    message = match["list"].strip()
    if re.match(r"no tests (?:ran|collected)", message):
        terms = _terms(message.partition(", ")[2]) if ", " in message else _Terms()
        return (terms or _Terms()).reading("pytest", says_none=True)
    if re.match(r"\d{1,9}(?:/\d{1,9})? tests? collected", message):
        return Reading(runner="pytest", says_none=True)
    terms = _terms(message)
    return terms.reading("pytest") if terms is not None and terms.total is None else None


def _collected_none(match: re.Match[str]) -> Reading:
    terms = _terms(match["rest"].strip(" /")) or _Terms()
    return terms.reading("collected", says_none=True)


def _unittest_end(match: re.Match[str]) -> Reading:
    """`OK (skipped=3)`: of those that ran, so many did not."""
    numbers = {
        key: int(number) for key, number in re.findall(r"([a-z]{1,12}(?: [a-z]{1,12})?)=(\d{1,9})", match["of"] or "")
    }
    left_out = sum(numbers.get(name, 0) for name in ("skipped", "skips", "expected failures", "todos"))
    wrong = sum(numbers.get(name, 0) for name in ("failures", "errors", "unexpected successes"))
    none = match["how"].startswith("NO TESTS")
    return Reading(
        runner="unittest", failed=wrong, skipped=left_out, uncounted=left_out + wrong, says_none=none, counts=none
    )


def _node(match: re.Match[str]) -> Reading | None:
    number, word = _int(match, "number"), match["word"]
    return Reading(
        runner="node",
        passed=number if word == "pass" else 0,
        failed=number if word in ("fail", "cancelled") else 0,
        skipped=number if word in ("skipped", "todo") else 0,
        counts=word in ("pass", "tests"),
    )


def _tests(match: re.Match[str]) -> Reading | None:
    """`Tests:` of jest, vitest, pest, phpunit and scalatest."""
    message = match["rest"].strip().rstrip(".")
    if message.startswith("no tests"):
        return Reading(runner="tests", says_none=True)
    if re.match(r"\d{1,9}, Assertions: ", message):
        numbers = {name: int(number) for name, number in re.findall(r"([A-Z][a-z]{1,20}): (\d{1,9})", message)}
        failed = numbers.get("Failures", 0) + numbers.get("Errors", 0)
        skipped = sum(numbers.get(name, 0) for name in ("Skipped", "Incomplete"))
        total = int(message.partition(",")[0])
        return Reading(runner="tests", passed=max(0, total - failed - skipped), failed=failed, skipped=skipped)
    if message.startswith("succeeded "):
        message = re.sub(r"([a-z]{1,12}) (\d{1,9})", r"\2 \1", message)
    terms = _terms(_AFTER.sub("", message))
    return terms.reading("tests") if terms is not None else None


def _listed(match: re.Match[str]) -> Reading | None:
    """`5 passing (3ms)`, `5 examples, 0 failures`, `5 tests passed`: a list of numbers is the whole line."""
    result = _AFTER.sub("", re.sub(r"\s+in \d[\d.]{0,12} ?m?s(?:ec(?:onds)?)?$", "", match["list"].rstrip(" .!")))
    terms = _terms(result)
    if terms is None:
        return None
    if terms.passed is None and (terms.total is None or terms.failed is None):
        alone = terms.total is None and terms.failed is not None
        return Reading(runner="listed", failed=terms.failed or 0, counts=False) if alone else None
    return terms.reading("listed")


def _of_terms(runner: str) -> Callable[[re.Match[str]], Reading | None]:
    def read(match: re.Match[str]) -> Reading | None:
        pieces = [_AFTER.sub("", piece.strip()) for piece in re.split(r"[,;|]", match["list"].strip(" .|"))]
        terms = _terms(",".join(pieces))
        return terms.reading(runner) if terms is not None else None

    return read


def _of_numbers(runner: str, **names: str) -> Callable[[re.Match[str]], Reading]:
    """Groups of a match by what they count: passed, failed (which are no part of passed), skipped, or a total."""

    def read(match: re.Match[str]) -> Reading:
        numbers = {name: sum(_int(match, int(group)) for group in groups.split()) for name, groups in names.items()}
        failed, skipped = numbers.get("failed", 0), numbers.get("skipped", 0)
        passed = numbers["passed"] if "passed" in numbers else max(0, numbers.get("total", 0) - failed - skipped)
        return Reading(runner=runner, passed=passed, failed=failed, skipped=skipped)

    return read


def _surefire(match: re.Match[str]) -> Reading:
    numbers = [_int(match, group) for group in ("run", "failures", "errors", "skipped")]
    failed = numbers[1] + numbers[2]
    return Reading(
        runner="surefire class" if "Time elapsed" in match["rest"] else "surefire",
        passed=max(0, numbers[0] - failed - numbers[3]),
        failed=failed,
        skipped=numbers[3],
    )


def _gradle(match: re.Match[str]) -> Reading:
    how = match["how"] or ""
    if how == "FAILED":
        return Reading(runner="gradle", failed=1)
    return Reading(runner="gradle", passed=0 if how in ("NO-SOURCE", "SKIPPED") else 1)


def _asserts(match: re.Match[str]) -> Reading:
    numbers = {word: int(number) for number, word in re.findall(r"(\d{1,9}) (pass|fail)", match["rest"])}
    return Reading(runner="tape", passed=numbers.get("pass", 0), failed=numbers.get("fail", 0))


def _go_event(match: re.Match[str]) -> Reading | None:
    """A line of `go test -json`."""
    line = match.string
    if '"Test":"' not in line:
        return Reading(runner="go events") if "[no test" in line else None
    return Reading(
        runner="go events",
        passed=int('"Action":"pass"' in line),
        failed=int('"Action":"fail"' in line),
        skipped=int('"Action":"skip"' in line),
    )


def _vstest_skipped(match: re.Match[str]) -> Reading:
    return Reading(runner="vstest", uncounted=_int(match, "number"), counts=False)


def _constant(reading: Reading) -> Callable[[re.Match[str]], Reading]:
    return lambda _match: reading


_NONE = Reading(runner="none", says_none=True)
_CTEST_SKIPPED = Reading(runner="ctest", uncounted=1, skipped=1, counts=False)
_PATTERNS: tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], Reading | None]], ...] = tuple(
    (re.compile(pattern.replace("%N", r"\d{1,9}")), read)
    for pattern, read in (
        (
            r"=*\s*(?P<list>(?:\d|no tests )[^=]{0,300}?) in \d[\d.]{0,12} ?s(?:econds)?"
            r"(?: \([\d:., a-z]{0,30}\))?\s*=*$",
            _pytest,
        ),
        (r"collected 0 items(?P<rest>.{0,80})$", _collected_none),
        (r"Ran:? (%N) tests? (?:in|containing) ", _of_numbers("unittest", passed="1")),
        (r"Ran (%N) tests? across ", _of_numbers("bun", passed="1")),
        (r"Ran (%N) of %N Specs? in ", _of_numbers("ginkgo", passed="1")),
        (r"(?P<how>OK|FAILED|PASSED|NO TESTS RAN)(?: \((?P<of>[a-z][^()]{0,200}=%N)\))?$", _unittest_end),
        (r"(?:#|ℹ\ufe0f?) (?P<word>tests|pass|fail|skipped|todo|cancelled) {1,8}(?P<number>%N)$", _node),
        (r"(?:Tests|Specs):? +(?P<rest>\S.*)$", _tests),
        (r"Asserts: +(?P<rest>.*)$", _asserts),
        (r"test result: \w{1,10}\. (?P<list>.{0,200}?)(?:; finished in .*)?$", _of_terms("cargo")),
        (r"running 0 tests$", _constant(Reading(runner="cargo"))),
        (r"Summary \[[^\]]{0,30}\] +%N(?:/%N)? tests? run: (?P<list>.*)$", _of_terms("nextest")),
        (
            r"Tests run: +(?P<run>%N), +Failures: +(?P<failures>%N)(?:, +Errors: +(?P<errors>%N))?"
            r"(?:, +Skipped: +(?P<skipped>%N))?(?P<rest>.*)$",
            _surefire,
        ),
        (r"> Task :(?:[\w.:-]{0,200}:)?\w*[tT]est(?: (?P<how>[A-Z-]{2,12}))?$", _gradle),
        (r"\d{1,3}% tests passed, (%N) tests? failed out of (%N)", _of_numbers("ctest", failed="1", total="2")),
        (r"\d{1,3}% tests passed out of (%N)", _of_numbers("ctest", passed="1")),
        (r"%N/%N Test +#%N: .{0,200}\*\*\*(?:Skipped|Not Run)", _constant(_CTEST_SKIPPED)),
        (r"\[  PASSED  \] (%N) tests?", _of_numbers("gtest", passed="1")),
        (r"\[  FAILED  \] (%N) tests?, listed", _of_numbers("gtest", failed="1", passed="")),
        (r"All tests passed \(%N assertions? in (%N) test cases?\)", _of_numbers("catch", passed="1")),
        (r"(?:\[doctest\] )?test cases: +%N +\| *(?P<list>\d.*)$", _of_terms("catch")),
        (r"All (%N) tests? passed", _of_numbers("all", passed="1")),
        (r"OK \((%N) tests?\b", _of_numbers("phpunit", passed="1")),
        (
            r"(?:Passed|Failed|Skipped)! +- Failed: +(%N), Passed: +(%N), Skipped: +(%N)",
            _of_numbers("dotnet", failed="1", passed="2", skipped="3"),
        ),
        (
            r"Test summary: total: (%N), failed: (%N), succeeded: (%N), skipped: (%N)",
            _of_numbers("dotnet", failed="2", passed="3", skipped="4"),
        ),
        (r"Total tests: (%N)$", _of_numbers("vstest", passed="1")),
        (r"Skipped: +(?P<number>%N) *$", _vstest_skipped),
        (r"(?:ok|FAILED) \| (?P<list>.*)$", _of_terms("deno")),
        (r"Ok: +(%N) *$", _of_numbers("meson", passed="1")),
        (r"\[ *(%N) tests successful *\]$", _of_numbers("junit", passed="1")),
        (r"\[ *(%N) tests failed *\]$", _of_numbers("junit", failed="1", passed="")),
        (
            r"(?:Passed|Failed): Total %N, Failed (%N), Errors (%N), Passed (%N)",
            _of_numbers("sbt", failed="1 2", passed="3"),
        ),
        (
            r"\[ FAIL (%N) \| WARN %N \| SKIP (%N) \| PASS (%N) \]$",
            _of_numbers("testthat", failed="1", skipped="2", passed="3"),
        ),
        (r"Files=%N, Tests=(%N),", _of_numbers("prove", passed="1")),
        (
            r"DONE (%N) tests?(?:, (%N) skipped)?(?:, (%N) failures?)?(?:, %N errors?)? in ",
            _of_numbers("gotestsum", total="1", skipped="2", failed="3"),
        ),
        (r".{0,120}Executed (%N) of %N .{0,80}(?:SUCCESS|FAILED|ERROR|\(\d)", _of_numbers("karma", passed="1")),
        (
            r"Executed (%N) tests?, with (?:(%N) tests? skipped and )?(%N) failures?",
            _of_numbers("xctest", total="1", skipped="2", failed="3"),
        ),
        (r"\S{0,2} ?Test run with (%N) tests?\b.{0,80} passed", _of_numbers("swift", passed="1")),
        (
            r"\d{1,4}:\d\d \+(%N)(?: ~(%N))?(?: -(%N))?: (?:All tests passed|Some tests failed)",
            _of_numbers("dart", passed="1", skipped="2", failed="3"),
        ),
        (r"Test Successful in .{1,40}\. (%N) tests? run", _of_numbers("alcotest", passed="1")),
        (r"(?P<count>%N) scenarios? \((?P<list>[^()]{1,200})\)$", _of_terms("cucumber")),
        (r"\{\"(?:Time|Action)\":.{0,60}\"Action\":\"", _go_event),
        (r"Found 0 test\(s\)", _constant(_NONE)),
        (
            r"g?make: (?:[`'][^`']{0,60}(?:test|check|spec)[^`']{0,60}' is up to date"
            r"|Nothing to be done for [`'][^`']{0,60}(?:test|check|spec)[^`']{0,60}')\.$",
            _constant(_NONE),
        ),
        (
            r"(?i:no tests? (?:ran|found|executed|collected|were (?:found|executed)|to run|defined|is available|matches"
            r"|modules found|files found|targets were found|cases matched)|no (?:specs|examples) found"
            r"|no suitable tests defined|no packages to test|couldn.t find any files to test"
            r"|there (?:are|were) no tests to run|tests are skipped\.|all tests have been excluded|result: notests"
            r"|0 test files matching|0 scenarios$)",
            _constant(_NONE),
        ),
        (r"(?P<list>%N .{1,300})$", _listed),
    )
)
_OTHER = re.compile(r"(?:Test )?(?:Suites|Files|Snapshots|Time|Duration)\b:? +(?:(?P<failed>\d{1,9}) failed)?")
"""Lines of a summary that count something else. A file that could not be loaded has failed with all of its tests."""
_IN_FRONT = re.compile(
    r"(?:\[[^\[\]]{1,80}\]:?|[\w@./:+-]{1,80}(?: [\w@./:+-]{1,40}){0,2}(?:[:|>]| {1,20}[|│>])|[^\w\s#=\[({>?.]{1,3})\s+"
)
"""What tools that run others put before each line: `test-py: `, `[INFO] `, `packages/a test$ `, `✔ `."""
_FRONTS = 3


def read_line(line: str) -> Reading | None:
    """What a line of output says of tests; None for most."""
    if line.startswith(("1..", "ok ", "not ok ")):
        return _tap(line.rstrip())
    body = line.strip()
    for _ in range(_FRONTS + 1):
        if (other := _OTHER.match(body)) is not None:
            return Reading(runner="files", failed=_int(other, "failed"), counts=False) if other["failed"] else None
        for pattern, read in _PATTERNS:
            match = pattern.match(body)
            reading = read(match) if match is not None else None
            if reading is not None:
                return reading
        front = _IN_FRONT.match(body)
        if front is None:
            return None
        body = body[front.end() :]
    return None


_PLAN = re.compile(r"1\.\.(\d{1,9})(?:\s+#.*)?$")
_SKIPPED_POINT = re.compile(r"ok \d{1,9}\b.{0,380}# (?i:skip|todo)")


def _tap(line: str) -> Reading | None:
    """TAP at its outermost level: the plan, and the points that were skipped."""
    if (plan := _PLAN.match(line)) is not None:
        return Reading(runner="tap", passed=int(plan[1]), says_none=plan[1] == "0")
    if _SKIPPED_POINT.match(line):
        return Reading(runner="tap", uncounted=1, skipped=1, counts=False)
    if line.startswith("ok | "):
        return _of_terms("deno")(match) if (match := re.match(r"ok \| (?P<list>.*)$", line)) else None
    return None
