"""A scripted double of the port that runs goals."""

from collections.abc import Sequence

from genba.domain.goals.goal import Goal, goal_type
from genba.domain.goals.verification import Place
from genba.domain.sessions.evidence import CheckResult
from genba.testing.doubles import UnexpectedStep


class ScriptedGoals:
    """Returns the scripted result of each goal, by the goal's type; runs nothing."""

    def __init__(self, results: dict[str, Sequence[CheckResult]]) -> None:
        self.results = {kind: list(found) for kind, found in results.items()}
        self.asked: list[tuple[Goal, Place]] = []

    async def run(self, goal: Goal, place: Place, mark: str) -> CheckResult:  # noqa: ARG002  (nothing is started)
        waiting = self.results.get(goal_type(goal))
        if not waiting:
            raise UnexpectedStep(f"the goal {goal_type(goal)} was not expected")
        self.asked.append((goal, place))
        return waiting.pop(0)

    def finish(self) -> None:
        left = [kind for kind, found in self.results.items() if found]
        if left:
            raise UnexpectedStep(f"goals were never run: {left}")
