"""Freezing goals and verifying a commit, with doubles of everything outside."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from genba.definitions.project.goal_sections import RulesFile
from genba.definitions.project.goal_text import read_goal_line, read_goals
from genba.definitions.project.project import rules_from
from genba.domain.errors import ConfigurationError, GenbaError
from genba.domain.goals.goal import GOAL_TYPES, Goal, goal_type
from genba.domain.goals.verification import GoalResult, Subject, Verification
from genba.domain.sessions.evidence import CheckResult, CheckStatus
from genba.domain.tasks.task import Task
from genba.execution.verification.policy import Policy, PolicyResolver
from genba.execution.verification.verify import Verifier, evidence
from genba.testing.doubles import ManualClock
from genba.testing.goal_doubles import ScriptedGoals
from tests.doubles.verification_doubles import MemoryCheckouts, MemoryHistory, MemoryResults

PASSED, FAILED, ERROR = CheckStatus.PASSED, CheckStatus.FAILED, CheckStatus.ERROR
PYTHON = {"pyproject.toml": "[tool.pytest.ini_options]\n[tool.ruff]\n", "tests/test_a.py": "def test_a():\n    f()\n"}


def printed(kind: str, status: CheckStatus, detail: str = "", **more: Any) -> CheckResult:
    return CheckResult(kind, status, detail, **more)


class Bench:
    """A history with a base and a branch, and everything that a verification needs."""

    def __init__(self, config: str = "", base: dict[str, str] | None = None, branch: dict[str, str] | None = None):
        self.history = MemoryHistory()
        files = {**(base or {"a.txt": "one"}), **({".genba/config.yaml": config} if config else {})}
        self.history.branches["main"] = self.history.commit("base", files)
        self.history.branches["work"] = self.history.commit("tip", {**files, **(branch or {"b.txt": "two"})}, "base")
        self.checkouts = MemoryCheckouts()
        self.results = MemoryResults()
        self.told: list[GoalResult] = []

    async def policy(self, task: Task | None = None, fallback: RulesFile | None = None) -> Policy:
        return await PolicyResolver(self.history, fallback, ".genba/config.yaml").freeze("base", "main", task)

    async def verify(
        self,
        policy: Policy,
        results: Mapping[str, Sequence[CheckResult]] | None = None,
        fresh: bool = False,
        environment: str = "here",
    ) -> Verification:
        goals = ScriptedGoals(dict(results or {}))
        self.runner = goals
        verifier = Verifier(
            history=self.history,
            checkouts=self.checkouts,
            runner_for=lambda _more: goals,
            results=self.results,
            clock=ManualClock(),
            environment=environment,
            mark="m",
            redact=lambda text: text.replace("hunter2", "[redacted]"),
        )
        subject = Subject(commit="tip", base="base", branch="work", base_branch="main")
        found = await verifier.verify(subject, policy, self.told.append, fresh)
        goals.finish()
        return found


def types(policy: Policy, level: str) -> list[str]:
    return [frozen.type for frozen in policy.goals if frozen.level == level and frozen.origin != "built in"]


async def test_the_three_levels_are_merged_and_each_goal_knows_where_it_comes_from() -> None:
    bench = Bench("dod: [{lint_passes: ruff check}]\ntask_types: {bug: {goals: [{type: test_added}]}}\n")
    task = Task(id=1, number=7, title="x", type="bug", goals=(read_goal_line("file_exists:b.txt"),))
    policy = await bench.policy(task)

    lines = [(str(each.level), each.type, each.origin) for each in policy.goals if each.origin != "built in"]
    assert lines == [
        ("dod", "lint_passes", ".genba/config.yaml at main"),
        ("type_rule", "test_added", "bug rule, .genba/config.yaml at main"),
        ("acceptance_criteria", "file_exists", "task #7"),
    ]


@pytest.mark.parametrize(
    ("kind", "rules", "artifacts"),
    [
        ("task", [], ["commit"]),
        ("feature", ["files_changed"], ["commit", "branch"]),
        ("bug", ["test_added"], ["commit", "branch"]),
        ("refactor", ["tests_pass"], ["commit", "branch"]),
        ("docs", [], ["commit"]),
        ("test", ["files_changed"], ["commit"]),
    ],
)
async def test_each_type_has_rules_and_artifacts_of_its_own(kind: str, rules: list[str], artifacts: list[str]) -> None:
    policy = await Bench().policy(Task(id=1, number=1, title="x", type=kind))
    assert types(policy, "type_rule") == rules
    assert list(policy.artifacts) == artifacts


async def test_a_bug_needs_a_test_that_was_red_where_tests_can_be_run() -> None:
    task = Task(id=1, number=1, title="x", type="bug")
    with_tests = (await Bench(base=PYTHON).policy(task)).goals[-1].goal
    without = (await Bench().policy(task)).goals[-1].goal
    assert (with_tests.must_fail_on_base, without.must_fail_on_base) == (True, False)  # type: ignore[union-attr]


async def test_the_rule_of_a_type_runs_the_tests_as_the_project_does() -> None:
    task = Task(id=1, number=1, title="x", type="refactor")
    policy = await Bench("dod: [{tests_pass: python3 -m unittest}]\n", base=PYTHON).policy(task)
    commands = [frozen.goal.command for frozen in policy.goals if frozen.type == "tests_pass"]  # type: ignore[union-attr]
    assert commands == ["python3 -m unittest"], "one goal, and nothing that was only found out"


async def test_commands_are_detected_on_the_base_and_not_on_the_branch() -> None:
    bench = Bench("dod: [tests_pass, lint_passes]\n", base=PYTHON, branch={"Makefile": "test:\n\ttrue\n"})
    policy = await bench.policy()
    commands = [frozen.goal.command for frozen in policy.goals[:2]]  # type: ignore[union-attr]
    assert "pytest" in str(commands[0])
    assert "ruff" in str(commands[1])


async def test_where_the_base_suggests_no_command_the_commit_does() -> None:
    bench = Bench("dod: [tests_pass]\n", branch={"Makefile": "test:\n\ttrue\n"})
    await bench.verify(await bench.policy(), {"tests_pass": [printed("tests_pass", PASSED)]})
    assert bench.runner.asked[0][0].command == "make test"  # type: ignore[union-attr]


async def test_settings_that_are_not_committed_count_until_the_base_has_some() -> None:
    own = rules_from("dod: [git_clean]\n", "x")
    assert types(await Bench().policy(fallback=own), "dod") == ["git_clean"]
    assert types(await Bench("dod: [commits_exist]\n").policy(fallback=own), "dod") == ["commits_exist"]


async def test_the_same_goal_on_two_levels_is_checked_once_and_required_wins() -> None:
    bench = Bench("dod: [{type: tests_pass, command: pytest, required: false}]\n")
    task = Task(id=1, number=1, title="x", goals=(read_goal_line("tests_pass:pytest"),))
    policy = await bench.policy(task)
    found = [frozen.goal.required for frozen in policy.goals if frozen.type == "tests_pass"]
    assert found == [True]


async def test_a_guard_can_be_made_a_report_by_the_definition_of_done() -> None:
    policy = await Bench("dod: [{type: tests_kept, required: false}]\n").policy()
    assert [frozen.goal.required for frozen in policy.goals if frozen.type == "tests_kept"] == [False]


async def test_a_line_that_does_more_than_gitleaks_is_run_as_it_is() -> None:
    bench = Bench("dod: [{no_secrets: gitleaks detect}, {no_secrets: gitleaks detect && ./our-own-scan}]\n")
    commands = [frozen.goal.command for frozen in (await bench.policy()).goals[:2]]  # type: ignore[union-attr]
    assert commands == [None, "gitleaks detect && ./our-own-scan"]


async def test_missing_artifacts_come_before_every_goal() -> None:
    bench = Bench("dod: [{custom_script: never}]\n")
    bench.history.trees["tip"] = dict(bench.history.trees["base"])
    found = await bench.verify(await bench.policy(Task(id=1, number=1, title="x")))
    assert (found.verdict, found.missing) == ("rejected: missing_artifacts", ("commit",))
    assert bench.checkouts.opened == []


async def test_every_goal_is_checked_and_reported_even_after_a_failure() -> None:
    bench = Bench("dod: [{custom_script: one}, {tests_pass: two}]\n")
    results = {"custom_script": [printed("custom_script", FAILED, "no")], "tests_pass": [printed("tests_pass", PASSED)]}
    found = await bench.verify(await bench.policy(), results)
    assert found.verdict == "rejected: goals_not_met"
    assert [each.goal.type for each in bench.told] == [each.goal.type for each in found.results]
    assert evidence(found).detail == "rejected: goals_not_met (custom_script)"
    assert len(bench.checkouts.opened) == 1
    assert bench.checkouts.open_now == set()


async def test_what_breaks_is_an_error_and_is_checked_again() -> None:
    bench = Bench("dod: [{custom_script: one}]\n")
    policy = await bench.policy()
    first = await bench.verify(policy, {"custom_script": [printed("custom_script", ERROR, "no such command")]})
    again = await bench.verify(policy, {"custom_script": [printed("custom_script", PASSED)]})
    assert (first.verdict, again.verdict) == ("error", "done")


async def test_a_result_is_reused_for_the_same_tree_goal_and_environment_only() -> None:
    bench = Bench("dod: [{custom_script: one}]\n")
    policy = await bench.policy()
    script = {"custom_script": [printed("custom_script", PASSED)]}
    await bench.verify(policy, script)
    again = await bench.verify(policy)
    assert [each.cached for each in again.results if each.goal.type == "custom_script"] == [True]
    await bench.verify(policy, script, fresh=True)
    await bench.verify(policy, script, environment="elsewhere")
    bench.history.trees["tip"]["b.txt"] = "three"
    await bench.verify(policy, script)


async def test_a_failure_by_the_clock_is_not_remembered() -> None:
    bench = Bench("dod: [{custom_script: one}]\n")
    policy = await bench.policy()
    slow = printed("custom_script", FAILED, "took longer than 1 s", timed_out=True)
    assert not (await bench.verify(policy, {"custom_script": [slow]})).done
    assert (await bench.verify(policy, {"custom_script": [printed("custom_script", PASSED)]})).done


async def test_a_setup_that_fails_fails_what_needs_it_and_nothing_else() -> None:
    bench = Bench("verification: {setup: npm ci}\ndod: [{tests_pass: npm test}, no_secrets]\n")
    results = {
        "custom_script": [printed("custom_script", FAILED, "exit code 1")],
        "no_secrets": [printed("no_secrets", PASSED)],
    }
    found = await bench.verify(await bench.policy(), results)
    details = {each.goal.type: each.result.detail for each in found.results}
    assert details["tests_pass"] == "the setup of the checkout: exit code 1"
    assert found.verdict == "rejected: goals_not_met"


async def test_a_setup_that_fails_on_the_base_makes_no_test_red_and_fails_nothing_else() -> None:
    new = {"tests/test_b.py": "def test_b():\n    g()\n"}
    added = "{type: test_added, must_fail_on_base: true, command: pytest}"
    bench = Bench(f"verification: {{setup: make deps}}\ndod: [{added}, {{tests_pass: pytest}}]\n", branch=new)
    results = {
        "custom_script": [printed("custom_script", PASSED), printed("custom_script", FAILED, "exit code 1")],
        "tests_pass": [printed("tests_pass", PASSED)],
    }
    found = await bench.verify(await bench.policy(), results)
    assert found.verdict == "error"
    assert [each.result.detail for each in found.results if each.broken] == [
        "on the base: the setup of the checkout: exit code 1"
    ]


async def test_a_whole_suite_that_is_red_on_the_base_alone_proves_nothing() -> None:
    new = {"test_b.py": "import unittest\n\n\nclass T(unittest.TestCase):\n    def test_b(self):\n        g()\n"}
    bench = Bench("dod: [{type: test_added, must_fail_on_base: true, command: make test}]\n", branch=new)
    red = {
        "test_added": [printed("test_added", PASSED, "red on the base, green on the branch")],
        "tests_pass": [printed("tests_pass", FAILED, "2 failed")],
    }
    found = await bench.verify(await bench.policy(), red)
    assert found.verdict == "error"
    assert "red on the base already" in next(each for each in found.results if each.broken).result.detail
    green = {"test_added": [printed("test_added", PASSED)], "tests_pass": [printed("tests_pass", PASSED)]}
    assert (await bench.verify(await bench.policy(), green)).done
    assert bench.checkouts.opened[1] == ("base", (("test_b.py", "blob:" + new["test_b.py"]),))


async def test_a_secret_that_a_goal_prints_is_kept_nowhere() -> None:
    bench = Bench("dod: [{custom_script: one}]\n")
    leaky = printed("custom_script", FAILED, "the password is hunter2", output="hunter2\n")
    found = await bench.verify(await bench.policy(), {"custom_script": [leaky]})
    assert "hunter2" not in repr(found) + repr(bench.results.logs) + repr(bench.results.kept) + evidence(found).output


async def test_checkouts_are_closed_when_a_goal_raises() -> None:
    bench = Bench("dod: [{custom_script: one}]\n")
    with pytest.raises(AssertionError):
        await bench.verify(await bench.policy(), {})
    assert bench.checkouts.open_now == set()


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("tests_pass", {"type": "tests_pass"}),
        ("tests_pass: pytest -q", {"command": "pytest -q"}),
        ("endpoint_responds:/health", {"url": "/health", "method": "GET", "status": 200}),
        ("endpoint_responds:post /x -> 201", {"url": "/x", "method": "POST", "status": 201}),
        ("response_contains:/x $.token exists", {"json_path": "$.token"}),
        ("response_contains:GET /x $.a == [1, 2]", {"json_path": "$.a", "equals": [1, 2]}),
        ("response_contains:/x welcome back", {"text": "welcome back"}),
        ("{type: no_secrets, required: false}", {"required": False}),
    ],
)
def test_goals_in_one_line(text: str, wanted: dict[str, Any]) -> None:
    import msgspec

    result = msgspec.to_builtins(read_goal_line(text))
    assert {key: result[key] for key in wanted} == wanted


@pytest.mark.parametrize("kind", sorted(GOAL_TYPES))
def test_every_type_of_goal_is_read_in_its_long_form(kind: str) -> None:
    conditions = {"pattern": "src/**", "path": "x", "script": "true", "url": "/x", "text": "y"}
    fields = GOAL_TYPES[kind].__struct_fields__
    raw = {"type": kind, **{key: value for key, value in conditions.items() if key in fields}}
    goals: tuple[Goal, ...] = read_goals([raw], "here")
    assert goal_type(goals[0]) == kind


@pytest.mark.parametrize(
    "raw", [["x"], [{"type": "x"}], [{"a": 1, "b": 2}], [None], [7], [[]], "x", {"type": "x"}, [{}]]
)
def test_what_is_no_goal_is_refused_with_its_place(raw: Any) -> None:
    with pytest.raises(ConfigurationError) as refused:
        read_goals(raw, "here")
    assert refused.value.problems
    assert isinstance(refused.value, GenbaError)
