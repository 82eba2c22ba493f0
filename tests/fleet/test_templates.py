"""Agents as `genba agent new` writes them."""

from genba.domain.tasks.task import TaskStatus
from tests.fleet.yard import Yard


def test_the_first_agent_that_a_person_makes_can_be_used_by_a_fleet(small_yard: Yard) -> None:
    yard = small_yard
    yard.genba("agent", "new", "worker", "--template", "simple")
    command = "cat > prompt.txt; echo done >> work.txt"
    yard.set(agents={"default": {"adapter": {"type": "custom", "command": command, "commit": True}}})
    yard.task(1, "Move the till", body="It does not open.")

    yard.work()

    assert yard.look(1).status is TaskStatus.DONE
    result = yard.project.git("show", "main:prompt.txt")
    assert "Do what the issue asks for.\n\nMove the till\n\nIt does not open.\n\nCommit your work." in result
