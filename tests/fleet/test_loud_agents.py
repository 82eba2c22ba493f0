"""Agents that say more than anybody reads."""

from genba.domain.tasks.task import TaskStatus
from tests.fleet.yard import Yard

ISSUE = {"issue": {"type": "number"}}
MEGABYTE = 1024 * 1024
LOUD = "head -c 3000000 /dev/zero | tr '\\0' 'x' | fold -w 99; echo >> task-$GENBA_ISSUE.txt"


def test_the_output_of_a_loud_agent_is_not_kept_twice_after_its_segment(small_yard: Yard) -> None:
    yard = small_yard
    yard.project.agent("worker", adapter={"type": "custom", "command": LOUD, "commit": True}, parameters=ISSUE)
    yard.set()
    yard.task(1)

    yard.work()

    assert yard.look(1).status is TaskStatus.DONE
    runs = yard.project.root / ".git" / "genba" / "runs"
    kept = {path: path.stat().st_size for path in runs.rglob("*") if path.is_file()}
    assert sum(kept.values()) < MEGABYTE, kept
    assert "xxx" in yard.genba("logs", sole_run(yard), "--output").out, "the journal has the beginning of it"


def sole_run(yard: Yard) -> str:
    with yard.board() as board:
        [session] = board.sessions(1)
    return session.run
