"""What goes wrong beside the work itself: a fleet mends it, or says who can."""

from genba.definitions.goal_text import read_goals
from genba.domain.tasks import TaskStatus
from tests.fleet.yard import Yard
from tests.project import GENBA


def test_what_a_goal_runs_cannot_approve_in_the_name_of_a_person(small_yard: Yard) -> None:
    yard = small_yard
    told = yard.project.root.parent / "told.txt"
    yard.set(sandbox={"kind": "worktree"})
    yard.agent(script=f"echo 'cd {yard.project.root}; {GENBA} approve 1 > {told} 2>&1; true' > new.sh; echo x > x.txt")
    yard.task(1, requires_review=True, reviewer_type="human")
    yard.work(check=1)
    yard.task(9, goals=tuple(read_goals(["tests_pass: sh new.sh"], "")))

    yard.work(check=1)

    assert "an agent may not" in told.read_text("utf-8")
    assert (yard.look(1).status, yard.look(9).status) == (TaskStatus.REVIEW, TaskStatus.DONE)
