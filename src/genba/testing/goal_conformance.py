"""What every implementation of the port that runs goals must do."""

from genba.domain.goals.goal import CommitsExist, CustomScript, Goal, LintPasses, TestsPass, goal_type
from genba.domain.goals.verification import Place
from genba.domain.ports import GoalRunner
from genba.domain.sessions.evidence import CheckStatus


class GoalRunnerConformance:
    """Fixtures: `goals` runs `exit 0`, `exit 1` and a command that is not there; `place` is a folder without files."""

    async def test_it_tells_passed_from_failed_from_broken(self, goals: GoalRunner, place: Place) -> None:
        wanted: tuple[tuple[Goal, CheckStatus], ...] = (
            (TestsPass(command="exit 0"), CheckStatus.PASSED),
            (LintPasses(command="exit 1"), CheckStatus.FAILED),
            (CustomScript(script=("no-such-command-here",)), CheckStatus.ERROR),
        )
        for goal, status in wanted:
            result = await goals.run(goal, place, "mark")
            assert (result.name, result.status) == (goal_type(goal), status)

    async def test_what_git_shows_is_not_its_business(self, goals: GoalRunner, place: Place) -> None:
        result = await goals.run(CommitsExist(), place, "mark")
        assert (result.name, result.status) == ("commits_exist", CheckStatus.ERROR)
