"""How many tests a command ran, by what its runners print: a table of outputs, and hostile ones."""

# ruff: noqa: E501  (lines of runners, as they print them)
import time

import pytest

from genba.domain.goals.detection import names_tests
from genba.domain.goals.test_counts import SuiteCount, count_tests

NONE_RAN = {
    "pytest": "============ test session starts ============\ncollected 0 items\n\n====== no tests ran in 0.01s ======\n",
    "pytest, quiet": "\nno tests ran in 0.00s\n",
    "pytest, all skipped": "ss                          [100%]\n2 skipped in 0.01s\n",
    "pytest, all deselected": "collected 3 items / 3 deselected / 0 selected\n\n==== 3 deselected in 0.01s ====\n",
    "pytest, expected failures alone": "xx                                    [100%]\n2 xfailed in 0.02s\n",
    "pytest, skipped with a warning": "=== 1 skipped, 2 warnings in 0.10s ===\n",
    "pytest, long": "=========== 12 skipped in 61.00s (0:01:01) ============\n",
    "pytest, old": "===== no tests ran in 0.01 seconds =====\n",
    "pytest, only collected": "test_a.py::test_it\n\n1 test collected in 0.00s\n",
    "pytest, modules that are skipped": "collected 0 items / 1 skipped\n\n==== 1 skipped in 0.01s ====\n",
    "pytest, in colour": "\x1b[33m==== \x1b[33mno tests ran\x1b[0m\x1b[33m in 0.01s\x1b[0m\x1b[33m ====\x1b[0m\n",
    "pytest with coverage": (
        "Name      Stmts   Miss  Cover\n-----------------\nsrc/a.py      5      5     0%\nTOTAL 5 5 0%\n2 skipped in 0.1s\n"
    ),
    "unittest": "\n----------------------------------------------------------------------\nRan 0 tests in 0.000s\n\nOK\n",
    "unittest, new": "\n-----\nRan 0 tests in 0.000s\n\nNO TESTS RAN\n",
    "unittest, all skipped": "sss\n-----\nRan 3 tests in 0.001s\n\nOK (skipped=3)\n",
    "make, a file in place of the target": "make: 'test' is up to date.\n",
    "make, nothing behind the target": "make: Nothing to be done for 'check'.\n",
    "django": "Found 0 test(s).\nSystem check identified no issues (0 silenced).\n\nRan 0 tests in 0.000s\n\nOK\n",
    "trial, all skipped": "Ran 2 tests in 0.01s\n\nPASSED (skips=2)\n",
    "node:test": "TAP version 13\n1..0\n# tests 0\n# suites 0\n# pass 0\n# fail 0\n# cancelled 0\n# skipped 0\n# todo 0\n",
    "node:test, spec": "ℹ tests 0\nℹ suites 0\nℹ pass 0\nℹ fail 0\nℹ skipped 0\nℹ duration_ms 3.1\n",
    "node:test, all skipped": "1..2\n# tests 2\n# pass 0\n# fail 0\n# skipped 2\n",
    "jest": "No tests found, exiting with code 0\n",
    "jest, all skipped": "Test Suites: 1 skipped, 0 of 1 total\nTests:       2 skipped, 2 total\nSnapshots:   0 total\n",
    "jest, in colour": "\x1b[1mTest Suites: \x1b[22m0 total\n\x1b[1mTests:       \x1b[22m0 total\n",
    "vitest": "No test files found, exiting with code 0\n\ninclude: **/*.{test,spec}.?(c|m)[jt]s?(x)\n",
    "vitest, all skipped": " Test Files  1 skipped (1)\n      Tests  2 skipped (2)\n   Start at  10:00:00\n",
    "mocha": "\n\n  0 passing (1ms)\n\n",
    "mocha, all pending": "  - works\n\n  0 passing (2ms)\n  1 pending\n",
    "ava": "  ✖ Couldn't find any files to test\n",
    "tap": "\nAsserts:  0 pass  0 fail  0 of 0 complete\nSuites:   0 pass  0 fail  0 of 0 complete\n",
    "tape": "TAP version 13\n\n1..0\n# tests 0\n# pass  0\n\n# ok\n",
    "a plan of TAP": "1..0 # SKIP no database\n",
    "TAP, all skipped": "1..2\nok 1 - a # SKIP slow\nok 2 # skip\n",
    "jasmine": "No specs found\nFinished in 0.002 seconds\nIncomplete: No specs found\n",
    "jasmine, all pending": "2 specs, 0 failures, 2 pending specs\n",
    "karma": "Chrome Headless 120 (Linux): Executed 0 of 0 ERROR (0.003 secs / 0 secs)\n",
    "playwright": "Error: No tests found\n",
    "go": "?   \texample.com/shop\t[no test files]\n?   \texample.com/shop/tea\t[no test files]\n",
    "go, none chosen": "testing: warning: no tests to run\nPASS\nok  \texample.com/shop\t0.003s [no tests to run]\n",
    "go, with coverage": "\texample.com/shop\t\tcoverage: 0.0% of statements\n",
    "go, verbose and all skipped": "=== RUN   TestA\n    a_test.go:5: slow\n--- SKIP: TestA (0.00s)\nPASS\nok  \tx\t0.002s\n",
    "go, events": '{"Time":"2026-01-01T00:00:00Z","Action":"output","Package":"x","Output":"?   \\tx\\t[no test files]\\n"}\n',
    "gotestsum": "∅  shop\n\nDONE 0 tests in 0.2s\n",
    "ginkgo": "Ran 0 of 3 Specs in 0.000 seconds\n",
    "cargo": "\nrunning 0 tests\n\ntest result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n",
    "cargo, all ignored": "running 2 tests\ntest result: ok. 0 passed; 0 failed; 2 ignored; 0 measured; 0 filtered out\n",
    "nextest": "     Summary [   0.000s] 0 tests run: 0 passed, 4 skipped\nerror: no tests to run\n",
    "maven": "[INFO] --- surefire:3.2.5:test (default-test) @ shop ---\n[INFO] No tests to run.\n[INFO] BUILD SUCCESS\n",
    "maven, by its count": "[WARNING] Tests run: 2, Failures: 0, Errors: 0, Skipped: 2\n[INFO] BUILD SUCCESS\n",
    "maven, switched off": "[INFO] Tests are skipped.\n[INFO] BUILD SUCCESS\n",
    "gradle": "> Task :compileTestJava NO-SOURCE\n> Task :test NO-SOURCE\n\nBUILD SUCCESSFUL in 1s\n",
    "sbt": "[info] No tests were executed.\n[success] Total time: 1 s\n",
    "ctest": "Test project /build\nNo tests were found!!!\n",
    "ctest, all skipped": "1/1 Test #1: tea ...............***Skipped   0.00 sec\n\n100% tests passed, 0 tests failed out of 1\n",
    "gtest": "[==========] Running 0 tests from 0 test suites.\n[==========] 0 tests ran.\n[  PASSED  ] 0 tests.\n",
    "catch": "No tests ran\n",
    "meson": "No tests defined.\n",
    "rspec": "No examples found.\n\nFinished in 0.0002 seconds\n0 examples, 0 failures\n",
    "rspec, all pending": "2 examples, 0 failures, 2 pending\n",
    "minitest": "0 runs, 0 assertions, 0 failures, 0 errors, 0 skips\n",
    "test-unit": "0 tests, 0 assertions, 0 failures, 0 errors, 0 pendings, 0 omissions, 0 notifications\n",
    "phpunit": "PHPUnit 10.5.0\n\nNo tests executed!\n",
    "phpunit, all skipped": "OK, but some tests were skipped!\nTests: 2, Assertions: 0, Skipped: 2.\n",
    "dotnet": "No test is available in /src/bin/T.dll. Make sure that test discoverer & executors are registered\n",
    "dotnet, all skipped": "Skipped! - Failed:     0, Passed:     0, Skipped:     2, Total:     2, Duration: 3 ms - T.dll\n",
    "dotnet, terminal": "Test summary: total: 0, failed: 0, succeeded: 0, skipped: 0, duration: 0.5s\n",
    "deno": "\nok | 0 passed | 0 failed (0ms)\n",
    "deno, none": "error: No test modules found\n",
    "bun": "bun test v1.1\n\n 0 pass\n 0 fail\nRan 0 tests across 1 files. [5.00ms]\n",
    "bun, all skipped": " 0 pass\n 2 skip\n 0 fail\nRan 2 tests across 1 files. [5.00ms]\n",
    "exunit": "There are no tests to run\n",
    "exunit, all excluded": "All tests have been excluded.\n\n3 tests, 0 failures, 3 excluded\n",
    "prove": "Files=0, Tests=0,  0 wallclock secs\nResult: NOTESTS\n",
    "bats": "1..0\n0 tests, 0 failures\n",
    "testthat": "[ FAIL 0 | WARN 0 | SKIP 3 | PASS 0 ]\n",
    "xctest": "Executed 0 tests, with 0 failures (0 unexpected) in 0.000 (0.000) seconds\n",
    "make": "test-py: ====== no tests ran in 0.01s ======\r\ntest-go: ?   \tx\t[no test files]\r\n",
    "tox": "py311: commands[0]> pytest\nno tests ran in 0.01s\n  py311: OK (0.52=setup[0.01]+cmd[0.51] seconds)\n  congratulations :)\n",
    "pnpm": "packages/a test$ vitest run\npackages/a test: No test files found, exiting with code 0\npackages/a test: Done\n",
    "turbo": "@shop/a:test: \n@shop/a:test:   0 passing (1ms)\n@shop/b:test: No tests found, exiting with code 0\n",
    "docker compose": "shop-1  | Ran 0 tests in 0.000s\nshop-1  | \nshop-1  | OK\n",
}

RAN = {
    "pytest": ("===== 5 passed, 2 skipped, 1 warning in 0.03s =====\n", 5, 0, 2),
    "pytest, quiet": (".....                   [100%]\n5 passed in 0.01s\n", 5, 0, 0),
    "pytest, in colour": ("\x1b[32m\x1b[32m\x1b[1m5 passed\x1b[0m\x1b[32m in 0.01s\x1b[0m\x1b[0m\n", 5, 0, 0),
    "pytest, failed": ("FAILED test_a.py::test_it - assert 1\n1 failed, 4 passed in 0.01s\n", 4, 1, 0),
    "pytest, not collected": ("collected 0 items / 1 error\n\nERROR test_a.py\n=== 1 error in 0.10s ===\n", 0, 1, 0),
    "pytest, subtests": ("3 passed, 4 subtests passed in 0.02s\n", 3, 0, 0),
    "pytest-sugar": ("Results (0.12s):\n       5 passed\n", 5, 0, 0),
    "unittest": ("Ran 5 tests in 0.001s\n\nOK (skipped=1)\n", 4, 0, 1),
    "unittest, failed": ("Ran 3 tests in 0.001s\n\nFAILED (failures=1, errors=1)\n", 1, 2, 0),
    "node:test": ("1..3\n# tests 3\n# suites 0\n# pass 2\n# fail 0\n# skipped 1\n", 2, 0, 1),
    "node:test, spec": ("ℹ tests 3\nℹ pass 3\nℹ fail 0\n", 3, 0, 0),
    "jest": ("Test Suites: 2 passed, 2 total\nTests:       1 skipped, 5 passed, 6 total\n", 5, 0, 1),
    "vitest": (" Test Files  2 passed (2)\n      Tests  5 passed | 1 skipped (6)\n", 5, 0, 1),
    "vitest, not loaded": (" Test Files  1 failed (1)\n      Tests  no tests\n", 0, 1, 0),
    "mocha": ("\n  5 passing (12ms)\n  1 pending\n  2 failing\n", 5, 2, 0),
    "ava": ("  ✔ works\n  ─\n\n  5 tests passed\n  1 test skipped\n", 5, 0, 0),
    "tap": ("Asserts:  4 pass  1 fail  5 of 5 complete\n", 4, 1, 0),
    "TAP": ("1..3\nok 1\nok 2 - a # SKIP\nok 3\n", 2, 0, 1),
    "jasmine": ("5 specs, 0 failures, 1 pending spec\n", 4, 0, 1),
    "playwright": ("  5 passed (3.2s)\n", 5, 0, 0),
    "gotestsum": ("DONE 5 tests, 1 skipped in 0.2s\n", 4, 0, 1),
    "cargo": (
        "running 3 tests\ntest result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s\n"
        "   Doc-tests shop\n\nrunning 0 tests\n\ntest result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\n",
        3, 0, 1,
    ),
    "nextest": ("     Summary [   0.015s] 5 tests run: 5 passed (1 slow), 1 skipped\n", 5, 0, 1),
    "maven": (
        "[INFO] Tests run: 2, Failures: 0, Errors: 0, Skipped: 0, Time elapsed: 0.05 s -- in shop.ATest\n"
        "[INFO] Tests run: 3, Failures: 0, Errors: 0, Skipped: 1, Time elapsed: 0.01 s -- in shop.BTest\n"
        "[INFO] Results:\n[INFO] \n[WARNING] Tests run: 5, Failures: 0, Errors: 0, Skipped: 1\n",
        4, 0, 1,
    ),
    "ctest": ("100% tests passed, 0 tests failed out of 5\n", 5, 0, 0),
    "gtest": ("[  PASSED  ] 4 tests.\n[  FAILED  ] 1 test, listed below:\n", 4, 1, 0),
    "catch": ("All tests passed (5 assertions in 2 test cases)\n", 2, 0, 0),
    "rspec": ("5 examples, 1 failure, 1 pending\n", 3, 1, 1),
    "rspec, not loaded": ("0 examples, 0 failures, 1 error occurred outside of examples\n", 0, 1, 0),
    "minitest": ("5 runs, 9 assertions, 0 failures, 0 errors, 1 skips\n", 4, 0, 1),
    "phpunit": ("OK (5 tests, 9 assertions)\n", 5, 0, 0),
    "pest": ("  Tests:    5 passed (9 assertions)\n  Duration: 0.10s\n", 5, 0, 0),
    "dotnet": ("Passed!  - Failed:     0, Passed:     5, Skipped:     1, Total:     6, Duration: 9 ms - T.dll\n", 5, 0, 1),
    "deno": ("ok | 5 passed (2 steps) | 0 failed | 1 ignored (10ms)\n", 5, 0, 1),
    "bun": (" 5 pass\n 0 fail\n 9 expect() calls\nRan 5 tests across 1 files. [5.00ms]\n", 5, 0, 0),
    "exunit": ("2 doctests, 5 tests, 0 failures, 1 excluded\n", 6, 0, 1),
    "prove": ("Files=2, Tests=5,  0 wallclock secs\nResult: PASS\n", 5, 0, 0),
    "busted": ("5 successes / 0 failures / 0 errors / 1 pending : 0.01 seconds\n", 5, 0, 1),
    "cucumber": ("5 scenarios (4 passed, 1 skipped)\n", 4, 0, 1),
    "junit": ("[         5 tests found           ]\n[         5 tests successful      ]\n", 5, 0, 0),
    "testthat": ("[ FAIL 0 | WARN 0 | SKIP 0 | PASS 5 ]\n", 5, 0, 0),
    "two runners under make": ("test-py: 5 passed in 0.01s\r\ntest-js: Tests:       3 passed, 3 total\r\n", 8, 0, 0),
    "one of two workspaces": ("a test: No tests found, exiting with code 0\nb test: Tests:       3 passed, 3 total\n", 3, 0, 0),
    "xcode and swift": (
        "Executed 0 tests, with 0 failures (0 unexpected) in 0.000 (0.000) seconds\n"
        "✔ Test run with 5 tests passed after 0.001 seconds.\n",
        5, 0, 0,
    ),
}  # fmt: skip

PACKAGES = {
    "go": ("?   \tx/a\t[no test files]\nok  \tx/b\t0.003s\nok  \tx/c\t(cached)\n", 2),
    "go, verbose": (
        "=== RUN   TestA\n--- PASS: TestA (0.00s)\nPASS\nok  \tx\t0.002s\tcoverage: 40.0% of statements\n",
        1,
    ),
    "gradle": ("> Task :compileTestJava\n> Task :test\n\nBUILD SUCCESSFUL in 1s\n", 1),
}

NOT_KNOWN = (
    "",
    "fine\n",
    "All checks passed!\n",
    "Success: no issues found in 5 source files\n",
    "12 files already formatted\n",
    "✖ 5 problems (2 errors, 3 warnings)\n",
    "done in 3s\n",
    "Test Suites: 1 passed, 1 total\n",
    "3 vulnerabilities found\n",
)


@pytest.mark.parametrize("runner", NONE_RAN)
def test_a_runner_that_ran_no_test_is_known_by_its_output(runner: str) -> None:
    count = count_tests(NONE_RAN[runner])

    assert count is not None
    assert count.ran_none, count


@pytest.mark.parametrize("runner", RAN)
def test_tests_are_counted(runner: str) -> None:
    output, passed, failed, skipped = RAN[runner]
    count = count_tests("", output)

    assert count is not None
    assert (count.passed, count.failed, count.skipped) == (passed, failed, skipped)


@pytest.mark.parametrize("runner", PACKAGES)
def test_a_runner_that_names_packages_only_has_run_tests(runner: str) -> None:
    output, packages = PACKAGES[runner]
    count = count_tests(output)

    assert count is not None
    assert (count.passed, count.exact) == (packages, False)


@pytest.mark.parametrize("output", NOT_KNOWN)
def test_what_is_no_summary_counts_nothing(output: str) -> None:
    assert count_tests(output) is None


@pytest.mark.parametrize("runner", NONE_RAN)
def test_one_test_anywhere_in_the_command_is_not_none(runner: str) -> None:
    count = count_tests(f"{NONE_RAN[runner]}\n1 passed in 0.01s\n")

    assert count is not None
    assert count.passed == 1


def test_a_count_is_reported_in_words() -> None:
    assert str(SuiteCount(passed=1)) == "1 test passed"
    assert str(SuiteCount(passed=5, failed=1, skipped=2)) == "5 tests passed, 1 failed, 2 skipped"
    assert str(SuiteCount(passed=2, exact=False)) == "2 packages of tests passed"


@pytest.mark.parametrize(
    "piece",
    ["a\n", "\n", "a", "\r", "test ", "1 passed, ", "[a] ", "a: ", "\x1b[31m", "\x1b]0;", "=" * 50, "ok 1\n",
     "1 a, 2 b, test\n", "Ran 1 tests across \n", f"{'a' * 78}: {'b' * 38} {'c' * 38} test\n", "no tests ran in 0.01"],
)  # fmt: skip
def test_hostile_output_takes_a_bounded_time(piece: str) -> None:
    output = piece * (48 * 1024 * 1024 // len(piece))
    began = time.process_time()
    count_tests(output)

    assert time.process_time() - began < 20


def test_the_summary_at_the_end_of_a_long_output_is_found() -> None:
    count = count_tests("some words\n" * 1_000_000 + "Ran 0 tests in 0.000s\n\nOK\n")

    assert count is not None
    assert count.ran_none


@pytest.mark.parametrize(
    ("command", "names"),
    [
        ("make test", True),
        ("npm run test:unit", True),
        ("python3 -m pytest -q", True),
        (("sh", "-c", "tox -e py311"), True),
        ("cargo nextest run", True),
        ("make latest", False),
        ("./attest.sh", False),
        ("ruff check .", False),
    ],
)
def test_a_command_that_runs_tests_is_known_by_its_words(command: str | tuple[str, ...], names: bool) -> None:
    assert names_tests(command) is names
