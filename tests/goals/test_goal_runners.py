"""The engine that runs goals, and its double, pass the same suite."""

from collections.abc import Sequence

import pytest

from genba.connections.goals.runner import GoalEngine
from genba.domain.goals.goal import TestsPass as TestsPassGoal
from genba.domain.goals.verification import Place
from genba.domain.ports import GoalRunner
from genba.domain.sessions.evidence import CheckResult, CheckStatus
from genba.testing.doubles import UnexpectedStep
from genba.testing.goal_conformance import GoalRunnerConformance
from genba.testing.goal_doubles import ScriptedGoals


def scripted() -> ScriptedGoals:
    values: dict[str, Sequence[CheckResult]] = {
        "tests_pass": [CheckResult("tests_pass", CheckStatus.PASSED)],
        "lint_passes": [CheckResult("lint_passes", CheckStatus.FAILED)],
        "custom_script": [CheckResult("custom_script", CheckStatus.ERROR)],
        "commits_exist": [CheckResult("commits_exist", CheckStatus.ERROR)],
    }
    return ScriptedGoals(values)


class TestGoalRunners(GoalRunnerConformance):
    @pytest.fixture(params=["engine", "double"])
    def goals(self, request: pytest.FixtureRequest, engine: GoalEngine) -> GoalRunner:
        return engine if request.param == "engine" else scripted()


async def test_the_double_fails_on_an_unexpected_goal(place: Place) -> None:
    double = ScriptedGoals({})

    with pytest.raises(UnexpectedStep):
        await double.run(TestsPassGoal(command="true"), place, "mark")


def test_the_double_fails_on_a_goal_that_never_came() -> None:
    with pytest.raises(UnexpectedStep):
        scripted().finish()
