"""Goals that git facts decide, and the verdict."""

import msgspec
import pytest

from genba.domain.goals import goal as wanted
from genba.domain.goals.goal import FrozenGoal, Goal, GoalLevel, GoalSource
from genba.domain.goals.verification import (
    ArtifactType,
    BranchArtifact,
    CommitArtifact,
    CommitFacts,
    FileArtifact,
    GoalResult,
    Subject,
    VerdictStatus,
)
from genba.domain.sessions.evidence import CheckResult, CheckStatus
from genba.judgement.verification import goal_results
from genba.judgement.verification.judging_files import commands_in, files_run
from tests.judgement.branches import Binary, Branch, Link, Program, branch

WORK = branch({"src/a.py": "x = 1\n"}, {"src/a.py": "x = 2\n", "docs/b.md": "b\n"})
NOTHING = branch({"a": "x\n"}, {"a": "x\n"}, commits=())


def judged(goal: Goal, made: Branch, **settings: object) -> CheckResult:
    result = goal_results.judge_by_facts(goal, made.view(**settings))
    assert result is not None
    assert result.name == wanted.goal_type(goal)
    return result


def test_files_changed_is_about_what_is_different_in_the_end() -> None:
    assert judged(wanted.FilesChanged(pattern="src/**"), WORK).detail == "changes src/a.py"
    assert judged(wanted.FilesChanged(pattern="lib/**"), WORK).detail == "changes no file that fits lib/**"


@pytest.mark.parametrize(
    "made",
    [
        branch({"src/a.py": "x\n"}, {"src/a.py": Program("x\n")}),
        branch({"src/a.py": "x\n"}, {"src/a.py": "x\n\n\n"}),
        branch({"src/a.py": "x\n"}, {"src/a.py": "x  \n"}),
        branch({}, {"src/a.py": ""}),
        branch({}, {"src/a.py": "\n\n"}),
    ],
)
def test_a_mode_a_blank_line_and_an_empty_file_are_no_change(made: Branch) -> None:
    assert not judged(wanted.FilesChanged(pattern="src/**"), made).passed


@pytest.mark.parametrize(
    "made",
    [
        branch({"src/a.py": "if x:\n    y\n    z\n"}, {"src/a.py": "if x:\n    y\nz\n"}),
        branch({"src/a.py": "x\n"}, {}),
        branch({}, {"src/a.png": Binary("x")}),
        branch({"src/a.png": Binary("x")}, {"src/a.png": Binary("y")}),
    ],
)
def test_indentation_a_removal_and_an_image_are_changes(made: Branch) -> None:
    assert judged(wanted.FilesChanged(pattern="src/**"), made).passed


def test_an_empty_file_that_is_asked_for_by_its_name_counts() -> None:
    made = branch({}, {"src/py.typed": ""})
    assert judged(wanted.FilesChanged(pattern="src/py.typed"), made).passed


def test_file_exists_by_path_folder_and_glob() -> None:
    for path in ("src/a.py", "./src/a.py", "docs", "docs/", "src/*.py", "*.md"):
        assert judged(wanted.FileExists(path=path), WORK).passed, path
    for path in ("a.py", "src/b.py", "*.txt", "sr"):
        assert not judged(wanted.FileExists(path=path), WORK).passed, path


def test_a_folder_is_no_file_of_its_name() -> None:
    made = branch({}, {"docs/tea.md/x": "x\n", ".github/x": "x\n"})
    assert not judged(wanted.FileExists(path="docs/tea.md"), made).passed
    assert judged(wanted.FileExists(path="docs/tea.md/"), made).passed
    assert judged(wanted.FileExists(path=".github"), made).passed


def test_a_link_exists_only_where_it_leads_to_a_file_of_the_branch() -> None:
    made = branch({}, {"docs/a.md": Link("/etc/passwd"), "b.md": Link("nowhere"), "c.md": Link("d.md"), "d.md": "d\n"})
    assert not judged(wanted.FileExists(path="docs/a.md"), made).passed
    assert not judged(wanted.FileExists(path="b.md"), made).passed
    assert judged(wanted.FileExists(path="c.md"), made).passed
    assert not judged(wanted.FileExists(path="a"), branch({}, {"a": Link("a")})).passed


def test_commits_must_change_something_and_leave_it_changed() -> None:
    empty = CommitFacts(sha="e" * 40, subject="Nothing", empty=True)
    full = CommitFacts(sha="f" * 40, subject="Something", empty=False)
    same = {"a": "x\n"}
    assert judged(wanted.CommitsExist(), WORK).detail == "1 commit"
    assert judged(wanted.CommitsExist(), NOTHING).detail == "the branch has no commit over its base"
    only_empty = branch(same, same, commits=(empty,))
    assert judged(wanted.CommitsExist(), only_empty).detail == "its commits change nothing"
    taken_back = branch(same, same, commits=(full, full))
    assert judged(wanted.CommitsExist(), taken_back).detail == "its commits take back what they change"


def test_git_clean_looks_at_the_working_tree_and_where_it_is() -> None:
    subject = WORK.view().subject
    dirty = msgspec.structs.replace(subject, dirty=("a", "b"))
    strayed = msgspec.structs.replace(subject, strayed="other")
    assert judged(wanted.GitClean(), WORK).passed
    assert judged(wanted.GitClean(), WORK, subject=dirty).detail == "2 files not committed: a, b"
    assert judged(wanted.GitClean(), WORK, subject=strayed).detail == "the working tree is on other, not on work"


def test_the_guards_are_goals_that_know_what_the_task_may_change() -> None:
    made = branch({"ruff.toml": "a\n", "tests/test_a.py": "def test_a():\n    f()\n"}, {"ruff.toml": "b\n"})
    assert not judged(wanted.ProtectedPaths(), made).passed
    assert judged(wanted.ProtectedPaths(), made, may_change=("ruff.toml",)).passed
    assert judged(wanted.ProtectedPaths(), made, protected=()).passed
    assert not judged(wanted.ProtectedPaths(), WORK, judges=("src/a.py",)).passed
    assert not judged(wanted.TestsKept(), made).passed
    assert judged(wanted.TestsKept(), made, may_change=("tests/**",)).passed
    assert not judged(wanted.LinksInside(), branch({}, {"a": Link("/")})).passed


TEST = "def test_a():\n    assert f()\n"


def test_test_added_tells_what_is_added_and_what_is_hollow() -> None:
    made = branch({}, {"tests/test_a.py": TEST})
    assert judged(wanted.TestAdded(), made).detail == "adds tests/test_a.py::test_a"
    assert judged(wanted.TestAdded(), WORK).detail == "adds no test"
    assert judged(wanted.TestAdded(pattern="*.test.*"), made).detail == "adds no test that fits *.test.*"
    hollow = branch({}, {"tests/test_a.py": "def test_a():\n    pass\n"})
    message = "adds no test; what it adds can never fail: tests/test_a.py::test_a"
    assert judged(wanted.TestAdded(), hollow).detail == message


def test_tests_that_must_fail_on_the_base_are_run_unless_there_are_none() -> None:
    goal = wanted.TestAdded(must_fail_on_base=True)
    made = branch(
        {}, {"tests/test_a.py": TEST, "tests/conftest.py": "x = 1\n", "tests/data.json": "1\n", "a.py": "x\n"}
    )
    assert not judged(goal, WORK).passed
    assert goal_results.judge_by_facts(goal, made.view()) is None
    assert goal_results.test_files(made.view(), goal) == ("tests/test_a.py",)
    assert goal_results.files_to_lay_over(made.view(), goal) == (
        "tests/conftest.py",
        "tests/data.json",
        "tests/test_a.py",
    )


def test_tests_beside_the_code_cannot_be_run_on_the_base() -> None:
    made = branch({}, {"src/lib.rs": "#[test]\nfn a() {\n    check(f());\n}\n"})
    assert judged(wanted.TestAdded(), made).passed
    result = judged(wanted.TestAdded(must_fail_on_base=True), made)
    assert "only beside the code (src/lib.rs)" in result.detail


@pytest.mark.parametrize(
    "goal",
    [
        wanted.LintPasses(),
        wanted.BuildSucceeds(),
        wanted.TestsPass(),
        wanted.NoSecrets(),
        wanted.EndpointResponds(url="/"),
        wanted.ResponseContains(url="/"),
        wanted.CustomScript(script="true"),
    ],
)
def test_what_must_be_run_is_not_judged_by_facts(goal: Goal) -> None:
    assert goal_results.judge_by_facts(goal, WORK.view()) is None


ALL = (ArtifactType.COMMIT, ArtifactType.BRANCH, ArtifactType.FILE)


def test_artifacts_are_what_git_shows() -> None:
    subject = WORK.view().subject
    assert goal_results.missing_artifacts(ALL, WORK.facts, subject) == ()
    found = goal_results.artifacts(WORK.facts, subject)
    assert found[0] == CommitArtifact(sha="c" * 40, branch="work")
    assert found[1] == BranchArtifact(name="work", base_branch="main")
    assert [part.path for part in found if isinstance(part, FileArtifact)] == ["docs/b.md", "src/a.py"]
    assert found[2] == FileArtifact(path="docs/b.md", checksum=WORK.facts.changes[0].new_blob)


def test_artifacts_that_are_not_there_are_missing() -> None:
    nowhere = Subject(commit="c", base="b")
    assert goal_results.missing_artifacts(ALL, NOTHING.facts, nowhere) == ALL
    on_base = Subject(commit="c", base="b", branch="main", base_branch="main")
    assert goal_results.missing_artifacts((ArtifactType.BRANCH,), WORK.facts, on_base) == (ArtifactType.BRANCH,)
    only_removed = branch({"a": "x\n"}, {})
    assert goal_results.missing_artifacts(ALL, only_removed.facts, WORK.view().subject) == (ArtifactType.FILE,)


def test_no_more_than_a_thousand_files_are_listed() -> None:
    made = branch({}, {f"f{n}": f"{n}\n" for n in range(1100)})
    assert len(goal_results.artifacts(made.facts, made.view().subject)) == 1002


def test_findings_are_sentences() -> None:
    commits = (
        CommitFacts(sha="abcdef0123", subject="x", empty=True),
        CommitFacts(sha="1234567890", subject="y", empty=False),
    )
    made = branch({"a": "x\n"}, {"a": "x\n"}, commits=commits)
    subject = Subject(
        commit="c",
        base="b",
        branch="work",
        dirty=tuple("abcdefg"),
        strayed="other",
        elsewhere=("mine", "yours"),
    )
    assert goal_results.findings(made.facts, subject) == (
        "1 commit changes nothing: abcdef0",
        "the commits take back what they change: nothing is different from the base",
        "7 files not committed: a, b, c, d, e and 2 more",
        "the working tree is on other, not on work",
        "commits were left on other branches: mine, yours",
    )
    assert goal_results.findings(WORK.facts, WORK.view().subject) == ()


def result(status: CheckStatus, *, required: bool = True) -> GoalResult:
    goal = wanted.TestsPass(required=required)
    frozen = FrozenGoal(
        level=GoalLevel.DOD, source=GoalSource.PROJECT_CONFIG, origin=".genba/config.yaml at main", goal=goal
    )
    return GoalResult(goal=frozen, result=CheckResult("tests_pass", status))


PASSED, FAILED, ERROR = CheckStatus.PASSED, CheckStatus.FAILED, CheckStatus.ERROR


@pytest.mark.parametrize(
    ("results", "verdict"),
    [
        ((), "done"),
        ((result(PASSED),), "done"),
        ((result(PASSED), result(FAILED)), "rejected: goals_not_met"),
        ((result(PASSED), result(ERROR)), "error"),
        ((result(ERROR), result(FAILED)), "rejected: goals_not_met"),
        ((result(FAILED, required=False), result(ERROR, required=False)), "done"),
        ((result(FAILED, required=False), result(ERROR)), "error"),
    ],
)
def test_the_verdict_on_results(results: tuple[GoalResult, ...], verdict: str) -> None:
    made = goal_results.judge_verification(WORK.view().subject, WORK.facts, (), results, 1.5)
    assert made.verdict == verdict
    assert (made.tree, made.commits, made.results, made.seconds) == (WORK.facts.tree, 1, results, 1.5)


def test_missing_artifacts_come_first_and_nothing_is_done_without_them() -> None:
    subject = WORK.view().subject
    made = goal_results.judge_verification(
        subject, NOTHING.facts, (ArtifactType.COMMIT,), (result(ERROR), result(PASSED)), 0
    )
    assert made.status is VerdictStatus.REJECTED
    assert made.verdict == "rejected: missing_artifacts"
    assert made.missing == ("commit",)


FILES = (
    "Makefile",
    "package.json",
    "web/package.json",
    "check",
    "scripts/check.sh",
    "scripts/lib/run.js",
    "tools/lint.py",
    "tools/deep/__main__.py",
    "strict.toml",
    "tests/test_a.py",
    "tests/run.sh",
    "justfile",
    "src/app.py",
)


@pytest.mark.parametrize(
    ("command", "paths"),
    [
        ("sh scripts/check.sh", ("scripts/check.sh",)),
        ("./check", ("check",)),
        ("bash ./scripts/../scripts/check.sh --fast", ("scripts/check.sh",)),
        ("python tools/lint.py", ("tools/lint.py",)),
        ("python -m tools.lint", ("tools/lint.py",)),
        ("python -m tools.deep", ("tools/deep/__main__.py",)),
        ("cd scripts && ./check.sh", ("scripts/check.sh",)),
        ("make lint", ("Makefile",)),
        ("npm test", ("package.json",)),
        ("cd web && npm run build", ("package.json", "web/package.json")),
        ("pnpm --dir=web test", ("package.json",)),
        ("true;./check", ("check",)),
        ("true&&sh scripts/check.sh|cat", ("scripts/check.sh",)),
        ("sh -c 'cd scripts; sh check.sh'", ("scripts/check.sh",)),
        ("ruff check --config=strict.toml .", ("strict.toml",)),
        ("ruff check -cstrict.toml .", ("strict.toml",)),
        ("node scripts/lib/run", ("scripts/lib/run.js",)),
        ("just test", ("justfile",)),
        ("sh tests/run.sh", ("tests/run.sh",)),
        ("pytest tests/test_a.py", ()),
        ("pytest -q", ()),
        ("ruff check src/app.py scripts/check.sh", ()),
        ("python src/app.py --port 1", ()),
        ("python -m src.app", ()),
        ("uv run tools/lint.py", ("tools/lint.py",)),
        ("FAST=1 timeout 10 ./check", ("check",)),
        ("! grep -r TODO src/app.py", ()),
        ("cargo check", ()),
        ("echo done\n./check", ("check",)),
        ("if true; then sh scripts/check.sh; fi", ("scripts/check.sh",)),
        ("x=$(sh scripts/check.sh)", ("scripts/check.sh",)),
        ("/scripts/check.sh", ()),
        ('sh "scripts/check.sh', ("scripts/check.sh",)),
        ("", ()),
        (("sh", "scripts/check.sh"), ("scripts/check.sh",)),
        (("sh", "-c", "make x && ./check"), ("Makefile", "check")),
        ((), ()),
    ],
)
def test_the_files_that_a_command_names(command: wanted.CommandLine, paths: tuple[str, ...]) -> None:
    assert goal_results.paths_in_command(command, FILES) == paths


RUN = frozenset(
    {"run.sh", "scripts/b.sh", "tools/check.py", "Makefile", "ci.mk", "package.json", "data.sql", "tests/test_a.py"}
)


@pytest.mark.parametrize(
    ("path", "command", "run"),
    [
        ("", "bash -e run.sh --fast", {"run.sh"}),
        ("", "nice -n 5 ./run.sh", {"run.sh"}),
        ("", "make -f ci.mk", {"Makefile", "ci.mk"}),
        ("", "cd scripts && sh b.sh", {"scripts/b.sh"}),
        ("", "make -C sub x && sh run.sh 2>&1 > data.sql", {"Makefile", "run.sh"}),
        ("", "python3 tools/check.py tests/test_a.py", {"tools/check.py"}),
        ("", "sh run.sh > data.sql && git diff --exit-code data.sql", {"run.sh"}),
        ("", "cp scripts/b.sh x; echo x >scripts/b.sh; shellcheck scripts/b.sh", set()),
        ("", "python3 -m pytest tests/test_a.py", set()),
        ("Makefile", "test:\n\t@$(PYTHON) tools/check.py\n\t-sh scripts/b.sh\n", {"tools/check.py", "scripts/b.sh"}),
        ("package.json", '{"scripts":{"test":"sh scripts/b.sh && x","lint":"./run.sh"}}', {"scripts/b.sh", "run.sh"}),
    ],
)
def test_the_files_that_a_command_runs(path: str, command: str, run: set[str]) -> None:
    assert files_run(commands_in(path, command), RUN) == run
