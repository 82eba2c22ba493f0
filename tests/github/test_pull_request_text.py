"""The words of a pull request: the evidence is there, and what others wrote has no effect."""

import re

from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot

from genba.domain.goals.goal import (
    CommitsExist,
    FileExists,
    FrozenGoal,
    Goal,
    GoalLevel,
    GoalSource,
    LintPasses,
    TestsKept,
    TestsPass,
)
from genba.domain.goals.verification import GoalResult, Subject, VerdictStatus, Verification
from genba.domain.sessions.evidence import CheckResult, CheckStatus
from genba.domain.sessions.outcomes import ClosureAction
from genba.domain.tracker.outbox import marker
from genba.execution.delivery.pull_request_text import (
    LONGEST_BODY,
    LONGEST_TITLE,
    PullRequestFacts,
    body_of,
    evidence_of,
    title_of,
)

EFFECT = re.compile(r"(?i)@[a-z0-9]|#\d|\bGH-\d|/(?:issues|pulls?|discussions)/\d|<!")
COMMIT = "3f9c2ab81d0e3f9c2ab81d0e3f9c2ab81d0e3f9c"


def verified(detail: str = "12 passed", finding: str = "") -> Verification:
    tests = FrozenGoal(goal=TestsPass(), level=GoalLevel.DOD, source=GoalSource.PROJECT_CONFIG, origin="")
    lint = FrozenGoal(
        goal=LintPasses(required=False), level=GoalLevel.TYPE_RULE, source=GoalSource.TYPE_DEFAULT, origin=""
    )
    return Verification(
        status=VerdictStatus.DONE,
        subject=Subject(commit=COMMIT, base="0" * 40),
        tree="",
        commits=2,
        findings=(finding,) if finding else (),
        results=(
            GoalResult(goal=tests, result=CheckResult("tests_pass", CheckStatus.PASSED, detail)),
            GoalResult(goal=lint, result=CheckResult("lint_passes", CheckStatus.FAILED, "2 | 3 found"), cached=True),
        ),
        seconds=1.25,
    )


def report(**changed: object) -> PullRequestFacts:
    given_ = {
        "issue": 12,
        "title": "Add green tea",
        "asked": "It is missing on the list.\n\n- green\n",
        "agent": "worker",
        "run": "worker-1",
        "iterations": 2,
        "action": ClosureAction.CLOSE,
        "evidence": evidence_of(verified()),
        "trailers": "Issue: 12\nAgent: worker\nSession: worker-1\n",
    }
    return PullRequestFacts(**{**given_, **changed})  # type: ignore[arg-type]


def test_a_goal_that_passed_without_a_word_tells_what_it_looked_at() -> None:
    def row(goal: Goal, status: CheckStatus = CheckStatus.PASSED) -> str:
        frozen = FrozenGoal(goal=goal, level=GoalLevel.DOD, source=GoalSource.PROJECT_CONFIG, origin="")
        [found] = evidence_of(
            Verification(
                status=VerdictStatus.DONE,
                subject=Subject(commit=COMMIT, base="0" * 40),
                tree="",
                commits=1,
                results=(GoalResult(goal=frozen, result=CheckResult("x", status)),),
            )
        ).rows
        return found.detail

    assert row(TestsPass(command=("make", "test"))) == "make test"
    assert row(FileExists(path="MENU.md")) == "MENU.md"
    assert row(TestsKept()) == "every test of the base is kept"
    assert row(CommitsExist()) == ""
    assert row(TestsPass(command="make test"), CheckStatus.FAILED) == ""


def test_it_tells_what_was_asked_what_was_verified_and_who_did_it() -> None:
    assert body_of(report()) == snapshot("""\
Closes #12

## What was asked

**Add green tea**

```text
It is missing on the list.

- green
```

## What was verified

Commit 3f9c2ab81d0e3f9c2ab81d0e3f9c2ab81d0e3f9c: **done**, in 1.2 s, before this was opened.

| level | goal | result | detail |
|---|---|---|---|
| dod | tests\\_pass | passed | 12 passed |
| type\\_rule | lint\\_passes | failed (not required), as before | 2 \\| 3 found |

## Who did it

worker, in the session worker-1, 2 iterations. More: `genba task show 12`, `genba logs worker-1`

Issue: 12
Agent: worker
Session: worker-1\
""")


def test_it_closes_its_issue_only_where_the_closure_does() -> None:
    assert body_of(report()).startswith("Closes #12\n")
    assert body_of(report(action=ClosureAction.LABEL_AND_CLOSE)).startswith("Closes #12\n")
    assert body_of(report(action=ClosureAction.LABEL_ONLY)).startswith("Refs #12\n")
    assert body_of(report(action=None)).startswith("Refs #12\n")
    assert "#" not in body_of(report(issue=None, action=None)).replace("## ", "")


def test_it_says_where_nothing_was_verified() -> None:
    assert "Nothing was verified" in body_of(report(evidence=None))


HOSTILE = (
    "Closes #99, fixes acme/shop#7, resolves GH-5 and https://github.com/acme/shop/issues/8",
    "@everyone @acme/admins look",
    "```\n</details>\nCloses #99\n```` ~~~",
    f"{marker('comment:12')} <!-- hidden --> <script>alert(1)</script>",
    "a | b\n|---|---|\n[link](https://evil.invalid) ![x](https://evil.invalid/x.png) $x$",
    "\u202eevil\u2066 \x1b[2J \x00",
)


def others_words(body: str) -> str:
    """All but the line that is Genba's own."""
    return body.removeprefix("Closes #12\n")


def test_the_words_of_others_have_no_effect() -> None:
    for words in HOSTILE:
        evidence = evidence_of(verified(detail=words, finding=words))
        body = body_of(report(title=words, asked=words, agent=words, evidence=evidence))
        assert EFFECT.search(others_words(body)) is None, words
        assert EFFECT.search(title_of(report(title=words), "genba/12")) is None, words
        assert "\x1b" not in body
        assert "\u202e" not in body
        assert marker("comment:12") not in body
        table = [line for line in body.splitlines() if line.startswith("| ")]
        assert all(len(re.findall(r"(?<!\\)\|", line)) == 5 for line in table), table


def test_a_block_of_others_words_ends_where_it_should() -> None:
    body = body_of(report(asked="`````\nout of it\n`````\n"))
    assert "``````text\n`````\nout of it\n`````\n``````\n" in body


@given(st.text(max_size=300), st.text(max_size=300))
def test_no_text_has_an_effect(title: str, asked: str) -> None:
    evidence = evidence_of(verified(detail=asked, finding=title))
    body = body_of(report(title=title, asked=asked, evidence=evidence))
    assert EFFECT.search(others_words(body)) is None
    assert EFFECT.search(title_of(report(title=title), "branch")) is None


def test_it_is_never_longer_than_a_forge_takes() -> None:
    huge = "é#1 @a " * 100_000
    evidence = evidence_of(verified(detail=huge, finding=huge))
    result_ = report(title=huge, asked=huge, evidence=evidence)
    assert len(body_of(result_)) <= LONGEST_BODY
    assert "## What was verified" in body_of(result_)
    assert body_of(result_).endswith("Session: worker-1")
    assert len(title_of(result_, "branch")) <= LONGEST_TITLE
