"""A provider that says when to come back: one pause for all of its sessions, and one time at which they go on."""

from typing import Any

from genba.domain.tasks.task import TaskStatus
from tests.fleet.yard import Yard, summary
from tests.project import until

ISSUE = {"issue": {"type": "number"}}


def limited(yard: Yard, seconds: float) -> None:
    begun = f"echo $GENBA_ISSUE >> {yard.starts}"
    work = f"{begun}; echo $GENBA_ISSUE > task-$GENBA_ISSUE.txt; git add -A; git commit -qm work"
    done: dict[str, Any] = {"do": [{"run": work}], "reply": "done"}
    first = {"turns": [{"rate_limit": seconds}, done], "repeat": True}
    yard.project.agent("limited", script=first, parameters=ISSUE)
    yard.project.agent("worker", script={"turns": [done], "repeat": True}, parameters=ISSUE)


def limited_elsewhere(yard: Yard, seconds: float) -> None:
    """An agent of another provider, which tells it to wait the first time."""
    result = yard.project.root.parent / "told"
    work = f"echo $GENBA_ISSUE >> {yard.starts}; echo x > other.txt; git add -A; git commit -qm other"
    refuse = f"""touch {result}; printf '{{"text": "", "retry_after": {seconds}}}' > {{reply_file}}"""
    command = f"if [ -f {result} ]; then {work}; echo done; else {refuse}; fi"
    yard.project.agent("elsewhere", adapter={"type": "custom", "command": command}, parameters=ISSUE)


def test_a_short_wait_is_one_pause_for_everybody_of_that_provider(yard: Yard) -> None:
    yard.set(work={"workers": 1})
    limited(yard, 2)
    yard.task(1, assignee="limited", priority="high")
    yard.task(2)

    yard.work()

    assert set(yard.statuses().values()) == {TaskStatus.DONE}
    with yard.board() as board:
        (first,) = board.sessions(1)
    assert first.iterations == 1, "a refusal is no iteration"
    events = yard.project.events(first.run)
    assert sum(event["event"] == "iteration_started" for event in events) == 1
    assert yard.started() == ["1", "2"]
    assert [event["event"] for event in events].count("ask_retried") == 1
    assert not yard.left_running()


def test_a_long_wait_gives_the_worker_away_and_goes_on_at_its_time(small_yard: Yard) -> None:
    yard = small_yard
    yard.set(work={"workers": 1, "patience_seconds": 0.5})
    yard.agent()
    limited_elsewhere(yard, 8)
    yard.task(1, assignee="elsewhere", priority="high")
    yard.task(2)

    done = yard.work()

    assert set(yard.statuses().values()) == {TaskStatus.DONE}
    assert yard.started() == ["2", "1"], "meanwhile the only worker went on with another provider"
    assert "for resume: custom asks all sessions to wait until" in done.err
    with yard.board() as board:
        (same,) = board.sessions(1)
        assert not board.pauses(), "the pause is over"
    assert (same.part, same.iterations) == (3, 1), "told to wait, worked, landed; only the work is an iteration"
    assert not yard.left_running()


def test_no_agent_of_a_paused_provider_is_started(small_yard: Yard) -> None:
    yard = small_yard
    yard.set(work={"workers": 2})
    limited(yard, 3600)
    yard.task(1)
    with yard.board() as board:
        board.pause_provider("scripted", "2999-01-01T00:00:00.000000+00:00", "come back later")

    process = yard.start("--until-empty", "--json")
    until(lambda: "come back later" in yard.log())

    assert yard.started() == []
    assert process.poll() is None, "it waits for the time that it knows"


def test_summary_says_nothing_of_a_pause_that_is_over(small_yard: Yard) -> None:
    yard = small_yard
    yard.set()
    limited(yard, 1)
    yard.task(1, assignee="limited")

    done = summary(yard.work())

    assert done["waits"] == []
