"""Agents that work on a task one after the other: each ends its own phase, and the last one's closure ends the task."""

import json
from typing import Any

import pytest

from genba.domain.tasks.task import TaskStatus
from tests.fleet.chaos import Chaos, on_both
from tests.fleet.yard import Yard, summary

STAGES = ("analyst", "architect", "writer")
PHASE_LABELS = {"completion": {"add": ["seen"], "remove": ["new"]}}


def github(closure: str = "label-only", **more: Any) -> dict[str, Any]:
    return {"github": {"enabled": True, "defaultClosureAction": closure, "labels": PHASE_LABELS, **more}}


def worker(yard: Yard, name: str = "worker", closure: str = "label-only", **more: Any) -> None:
    """An agent that says that it began, and adds a file that is called like it."""
    line = f"echo {name} >> {yard.starts}; echo $GENBA_ISSUE > {name}.txt; git add -A; git commit -qm {name}"
    script = {"turns": [{"do": [{"run": line}], "reply": more.pop("reply", "done")}], "repeat": True}
    yard.project.agent(
        name, script=script, parameters={"issue": {"type": "number"}}, integrations=github(closure), **more
    )


def pipeline(yard: Yard, *stages: str, **settings: Any) -> None:
    """A type of tasks with the agents of its stages. The built-in facilitator may be one of them."""
    yard.set(task_types={"manual": {"stages": list(stages), **settings}})
    for name in stages:
        if name != "facilitator":
            worker(yard, name)


def phases(yard: Yard, number: int = 1) -> list[str]:
    return [phase.agent for phase in yard.look(number).phases]


def merges(yard: Yard) -> int:
    return len([line for line in yard.landed() if line.startswith("Merge")])


# ── without stages ───────────────────────────────────────────────────────────────────────────────────────────────────


def test_label_only_labels_the_issue_and_leaves_its_task_open_for_another_agent(yard: Yard) -> None:
    yard.set()
    worker(yard)
    yard.task(1, labels=("new",))

    done = yard.work(check=1)

    task = yard.look(1)
    assert (task.status, task.labels) == (TaskStatus.OPEN, ("seen",))
    assert yard.started() == ["worker"]
    assert "worker.txt" in yard.files()
    (end,) = summary(done)["tasks"]
    assert end["status"] == "open"
    assert end["detail"].startswith("a phase has landed; ")
    assert "genba task edit 1 --assignee" in end["detail"]
    with yard.board() as board:
        assert [session.outcome for session in board.sessions(1)] == ["completed"]
        assert not [one for one in board.escalations() if one.status == "open"]
    yard.work(check=1)
    assert yard.started() == ["worker"]
    worker(yard, "closer", closure="label-and-close")
    yard.genba("task", "edit", "1", "--assignee", "closer")
    yard.work()
    assert (yard.look(1).status, yard.started()) == (TaskStatus.DONE, ["worker", "closer"])


def test_a_reply_may_choose_label_only_in_a_fleet(small_yard: Yard) -> None:
    yard = small_yard
    yard.set()
    worker(yard, closure="close", reply={"status": "completed", "closure_action": "label-only"})
    yard.task(1, labels=("new",))

    yard.work(check=1)

    assert (yard.look(1).status, yard.look(1).labels) == (TaskStatus.OPEN, ("seen",))
    assert yard.started() == ["worker"]


def test_a_task_that_a_person_reopens_begins_again_with_the_same_agent(small_yard: Yard) -> None:
    yard = small_yard
    pipeline(yard, "analyst", "writer")
    worker(yard, "writer", closure="close")
    yard.task(1, type="manual")
    yard.work()
    assert yard.look(1).status is TaskStatus.DONE

    yard.genba("task", "reopen", "1")
    assert phases(yard) == []
    for name in ("analyst", "writer"):
        line = f"echo {name} >> {yard.starts}; echo again >> {name}.txt; git add -A; git commit -qm {name}"
        yard.project.write(f".agent/{name}/script.yaml", json.dumps({"turns": [{"do": [{"run": line}]}]}))
    yard.project.commit("Do more")
    yard.work()

    assert yard.started() == ["analyst", "writer"] * 2
    assert yard.look(1).status is TaskStatus.DONE


def test_a_task_whose_closure_came_to_nothing_is_open_and_not_done(small_yard: Yard) -> None:
    yard = small_yard
    chaos = Chaos(yard, tasks=0)
    worker(yard)
    yard.task(1)
    assert chaos.die_at("board:continue_:1:before") == -9, chaos.said
    yard.project.sql("UPDATE sessions SET status = 'ended', waits_for = '', outcome = 'failed', reason = 'not closed'")

    yard.work(check=1)

    assert (yard.look(1).status, phases(yard)) == (TaskStatus.OPEN, ["worker"])
    assert yard.started() == ["worker"]


# ── with stages ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_fleet_brings_a_task_through_its_stages_and_ends_it_after_the_facilitator(yard: Yard) -> None:
    pipeline(yard, *STAGES, "facilitator")
    yard.task(1, type="manual", labels=("new",))

    done = summary(yard.work())

    task = yard.look(1)
    assert (task.status, task.labels) == (TaskStatus.DONE, ("seen",))
    assert yard.started() == list(STAGES)
    assert phases(yard) == list(STAGES)
    assert done["done"] == 1
    assert {f"{name}.txt" for name in STAGES} <= set(yard.files())
    assert merges(yard) == 3
    with yard.board() as board:
        sessions = board.sessions(1)
        assert [(one.agent, one.outcome) for one in sessions] == [
            (name, "completed") for name in (*STAGES, "facilitator")
        ]
        events = [event for event in board.board.events(1) if event.kind == "status_changed"]
    moves = [(event.data["from"], event.data["to"], event.data.get("phase", "")) for event in events]
    assert [move for move in moves if move[0] == "review"] == [
        *(("review", "open", name) for name in STAGES),
        ("review", "done", ""),
    ]
    assert yard.project.branches() == ["main"]


def test_a_stage_that_closes_by_its_settings_moves_on_all_the_same(small_yard: Yard) -> None:
    yard = small_yard
    pipeline(yard, "analyst", "writer")
    worker(yard, "analyst", closure="close", reply={"status": "completed", "closure_action": "close"})
    worker(yard, "writer", closure="close")
    yard.task(1, type="manual")

    yard.work()

    assert yard.started() == ["analyst", "writer"]
    assert yard.look(1).status is TaskStatus.DONE


def test_what_a_task_asks_for_is_due_at_its_last_stage_and_may_be_met_by_an_earlier_one(small_yard: Yard) -> None:
    yard = small_yard
    goals = [{"type": "files_changed", "pattern": "analyst.txt"}, {"type": "file_exists", "path": "writer.txt"}]
    pipeline(yard, "analyst", "writer", "facilitator", goals=goals)
    yard.task(1, type="manual")

    yard.work()

    assert yard.started() == ["analyst", "writer"]
    assert yard.look(1).status is TaskStatus.DONE


def test_a_task_whose_stages_did_not_do_what_it_asks_for_is_not_done(small_yard: Yard) -> None:
    yard = small_yard
    pipeline(yard, "analyst", "facilitator", goals=[{"type": "file_exists", "path": "writer.txt"}])
    yard.task(1, type="manual")

    yard.work(check=None)

    assert yard.look(1).status is not TaskStatus.DONE
    assert phases(yard) == ["analyst"]


def test_a_stage_is_held_to_the_definition_of_done(small_yard: Yard) -> None:
    yard = small_yard
    pipeline(yard, "analyst", "writer")
    yard.settings["dod"] = [{"type": "custom_script", "script": "! test -e analyst.txt"}]
    yard.set()
    yard.task(1, type="manual")

    yard.work(check=None)

    assert phases(yard) == []
    assert set(yard.started()) == {"analyst"}
    assert "analyst.txt" not in yard.files()


def test_a_stage_that_needs_a_review_waits_for_it(small_yard: Yard) -> None:
    yard = small_yard
    pipeline(yard, "analyst", "writer")
    worker(yard, "writer", closure="close")
    yard.task(1, type="manual", requires_review=True)

    yard.work(check=1)
    assert (yard.look(1).status, phases(yard)) == (TaskStatus.REVIEW, [])
    yard.genba("approve", "1")
    yard.work(check=1)
    assert (yard.look(1).status, phases(yard)) == (TaskStatus.REVIEW, ["analyst"])
    yard.genba("approve", "1")
    yard.work()

    assert yard.look(1).status is TaskStatus.DONE


def test_failed_attempts_of_one_stage_do_not_count_for_the_next(small_yard: Yard) -> None:
    yard = small_yard
    seen = yard.project.root.parent / "tries"
    pipeline(yard, "analyst", "writer")
    worker(yard, "writer", closure="close")
    for name in ("analyst", "writer"):
        line = f"echo x >> {seen}-{name}; test $(wc -l < {seen}-{name}) -ge 3 && echo y > {name}.txt"
        yard.agent(name, line, integrations=github("close"))
    yard.task(1, type="manual")

    yard.work()

    assert yard.look(1).status is TaskStatus.DONE


def taken_back(yard: Yard, number: int) -> None:
    """A task that is done, and whose work was reverted: its state is not known."""
    yard.task(number)
    yard.project.sql(f"UPDATE tasks SET status = 'done' WHERE number = {number}")
    yard.project.write("page.txt", "a page\n")
    yard.project.commit(f"Add a page\n\nIssue: {number}")
    yard.project.git("revert", "--no-edit", "HEAD")


def test_the_facilitator_as_a_stage_is_not_failed_by_other_issues(small_yard: Yard) -> None:
    yard = small_yard
    pipeline(yard, "analyst", "facilitator")
    yard.task(1, type="manual")
    taken_back(yard, 2)

    yard.work()

    assert "the state of #2 is not known" in yard.genba("facilitate", check=1).err
    assert yard.look(1).status is TaskStatus.DONE
    with yard.board() as board:
        assert [(one.agent, one.outcome) for one in board.sessions(1)] == [
            ("analyst", "completed"),
            ("facilitator", "completed"),
        ]


def test_the_facilitator_as_a_stage_ends_only_when_what_its_task_waits_for_is_known(small_yard: Yard) -> None:
    yard = small_yard
    pipeline(yard, "facilitator")
    taken_back(yard, 1)
    yard.task(2, type="manual", dependencies=(1,))

    done = yard.project.genba("run", "facilitator", "--issue", "2", check=1)

    assert "the field is not ready: the state of #1 is not known" in done.err
    assert yard.look(2).status is not TaskStatus.DONE


def test_a_stage_without_an_agent_waits_and_says_so(small_yard: Yard) -> None:
    yard = small_yard
    pipeline(yard, "analyst")
    yard.set(task_types={"manual": {"stages": ["analyst", "ghost"]}})
    yard.task(1, type="manual")

    done = summary(yard.work(check=1))

    assert (phases(yard), yard.look(1).status) == (["analyst"], TaskStatus.OPEN)
    with yard.board() as board:
        assert not [one for one in board.escalations() if one.status == "open"]
    (end,) = done["tasks"]
    assert (end["status"], end["merged"] != "", done["suspended"]) == ("open", True, 0)
    assert 'a phase has landed; it is at the stage of "ghost"' in end["detail"]
    assert end["detail"].endswith("  genba agent check ghost")
    (again,) = summary(yard.work(check=1))["tasks"]
    assert (again["status"], again["detail"]) == ("open", end["detail"])
    refused = yard.project.genba("run", "analyst", "--issue", "1", check=5)
    assert "hint: genba agent check ghost" in refused.err
    assert "genba run ghost" not in refused.err


def test_a_task_whose_last_stage_only_labels_is_open_in_the_summary_with_what_to_look_at(small_yard: Yard) -> None:
    yard = small_yard
    pipeline(yard, "analyst", "writer")
    yard.task(1, type="manual")

    done = summary(yard.work(check=1))

    assert (phases(yard), yard.look(1).status) == (["analyst", "writer"], TaskStatus.OPEN)
    (end,) = done["tasks"]
    assert (end["status"], done["suspended"]) == ("open", 0)
    why = "all of its stages are complete, and the last one left it open"
    assert end["detail"] == f"a phase has landed; {why}  genba task show 1"


def test_an_error_names_the_agent_of_the_stage_and_none_that_is_not_there(small_yard: Yard) -> None:
    yard = small_yard
    pipeline(yard, "analyst", "writer")
    yard.set(task_types={"lost": {"stages": ["ghost"]}})
    yard.task(1, type="manual")
    yard.task(2, type="lost")

    assert "hint: genba run analyst --issue 1\n" in yard.project.genba("verify", "1", check=5).err
    assert "hint: genba agent check ghost\n" in yard.project.genba("verify", "2", check=5).err


def test_an_agent_that_is_named_twice_is_refused(small_yard: Yard) -> None:
    small_yard.set(task_types={"manual": {"stages": ["analyst", "writer", "analyst"]}})

    refused = small_yard.work(check=3)

    assert "task_types.manual.stages" in refused.err
    assert '"analyst" is named twice' in refused.err


# ── single sessions ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_single_sessions_bring_a_task_through_its_stages(small_yard: Yard) -> None:
    yard = small_yard
    pipeline(yard, *STAGES, "facilitator")
    yard.task(1, type="manual", labels=("new",))

    for number, name in enumerate(STAGES, 1):
        yard.project.run(name, "--issue", "1")
        assert (yard.look(1).status, len(phases(yard))) == (TaskStatus.OPEN, number)
    yard.project.run("facilitator", "--issue", "1")

    assert (yard.look(1).status, yard.look(1).labels) == (TaskStatus.DONE, ("seen",))
    assert yard.started() == list(STAGES)
    assert {f"{name}.txt" for name in STAGES} <= set(yard.files())


def test_a_session_of_another_stage_is_refused_with_the_command_of_the_right_one(small_yard: Yard) -> None:
    yard = small_yard
    pipeline(yard, "analyst", "writer", "facilitator")
    yard.task(1, type="manual")

    refused = yard.project.genba("run", "writer", "--issue", "1", check=5)

    assert 'at the stage of "analyst"' in refused.err
    assert "genba run analyst --issue 1" in refused.err
    assert (yard.look(1).status, yard.started()) == (TaskStatus.OPEN, [])


def test_work_of_a_stage_that_was_merged_by_hand_moves_the_task_on(small_yard: Yard) -> None:
    yard = small_yard
    pipeline(yard, "analyst", "writer")
    yard.task(1, type="manual")
    branch = yard.project.run("analyst", "--issue", "1", "--no-merge")["branch"]
    assert (yard.look(1).status, phases(yard)) == (TaskStatus.REVIEW, [])

    yard.project.git("merge", "-q", branch)
    yard.genba("task", "done", "1")

    assert (yard.look(1).status, phases(yard)) == (TaskStatus.OPEN, ["analyst"])


def test_the_stage_of_a_task_is_shown(small_yard: Yard) -> None:
    yard = small_yard
    pipeline(yard, "analyst", "writer")
    yard.task(1, type="manual")
    yard.project.run("analyst", "--issue", "1")

    shown = yard.genba("task", "show", "1")

    assert "writer (2 of 2)" in shown.out
    assert [one["agent"] for one in yard.genba("task", "show", "1", "--json").json["task"]["phases"]] == ["analyst"]


# ── deaths ───────────────────────────────────────────────────────────────────────────────────────────────────────────

MOVES = (
    "board:continue_:1:before",
    "board:continue_:1:after",
    "board:phase:1:before",
    "board:phase:1:after",
    "board:end_part:2:before",
    "board:end_part:2:after",
    "board:start:2:before",
    "board:start:2:after",
    "part:open:2:inside",
    "part:iterate:2:after",
    "turn:land:2:inside",
    "board:phase:2:after",
    "board:end_part:4:before",
    "part:open:3:after",
    "part:iterate:5:inside",
    "part:verify:3:inside",
    "turn:settle:3:inside",
    "board:end_part:6:before",
    "board:end_part:6:after",
)


@pytest.mark.parametrize(("yard", "boundary"), on_both(MOVES), indirect=["yard"])
def test_a_death_between_stages_skips_no_stage_and_repeats_none(yard: Yard, boundary: str) -> None:
    chaos = Chaos(yard, tasks=0)
    pipeline(yard, "analyst", "writer", "facilitator")
    yard.task(1, type="manual", labels=("new",))

    assert chaos.die_at(boundary) == -9, chaos.said

    yard.work()
    assert (yard.look(1).status, yard.look(1).labels) == (TaskStatus.DONE, ("seen",))
    assert phases(yard) == ["analyst", "writer"]
    assert yard.started() == ["analyst", "writer"]
    assert merges(yard) == 2
    with yard.board() as board:
        assert [(one.agent, one.outcome) for one in board.sessions(1)] == [
            ("analyst", "completed"),
            ("writer", "completed"),
            ("facilitator", "completed"),
        ]
    assert yard.project.branches() == ["main"]
    chaos.check_commits()
    chaos.check_no_process()
