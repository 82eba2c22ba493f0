"""Reviews of work that `genba run` made: by an agent, by a person, in the fleet or by a command."""

import json
import signal
from typing import Any

import pytest

from genba.domain.fleet.records import EscalationKind
from genba.domain.tasks.task import TaskStatus
from tests.bubblewrap import needs_bubblewrap
from tests.fleet.test_reviews import ANSWERS, APPROVE, CHANGES, author, reviewer, reviewer_by_rounds, reviews_of
from tests.fleet.yard import Yard
from tests.project import until

MUST = "must: task-1.txt:1: it says too little"


def made(yard: Yard, *words: str, reviewed_by: str = "ai", check: int | None = 1) -> dict[str, Any]:
    """A task whose work waits for its review, made by `genba run`."""
    yard.task(1, requires_review=True, reviewer_type=reviewed_by)
    return yard.project.run("worker", "--issue", "1", *words, check=check)


def review_branches(yard: Yard) -> list[str]:
    return [name for name in yard.project.branches() if "review" in name]


def worktrees(yard: Yard) -> list[str]:
    lines = yard.project.git("worktree", "list", "--porcelain").splitlines()
    return [line.removeprefix("branch refs/heads/") for line in lines if line.startswith("branch ")]


def verdict_of(yard: Yard, *words: str, check: int | None = 0) -> dict[str, Any]:
    found: dict[str, Any] = yard.project.run("reviewer", "--issue", "1", *words, check=check)
    return found


# ── an agent reviews ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_work_performs_the_review_that_a_run_asked_for_and_lands_the_commit(yard: Yard) -> None:
    yard.set()
    author(yard)
    reviewer(yard, APPROVE)
    waiting = made(yard)
    assert waiting["outcome"] == "blocked"
    assert "genba run reviewer --issue 1" in waiting["hint"]
    assert "genba work" in waiting["hint"]
    assert reviews_of(yard, 1) == ["open"]

    done = yard.work()

    assert yard.look(1).status is TaskStatus.DONE
    assert yard.started() == ["1", "reviewer"], "its author was not asked again"
    assert yard.project.git("show", "main:task-1.txt") == "1"
    assert "engine" not in done.err
    assert not review_branches(yard)
    assert not yard.unreachable()


def test_a_review_in_a_sandbox_ends_without_an_error_and_leaves_no_branch(small_yard: Yard) -> None:
    yard = small_yard
    needs_bubblewrap()
    yard.set(sandbox={"kind": "bubblewrap"})
    yard.project.agent(
        "reviewer",
        script={"turns": [{"reply": APPROVE}], "repeat": True},
        parameters={"issue": {"type": "number"}},
        completion=ANSWERS,
    )
    yard.project.agent("worker", parameters={"issue": {"type": "number"}})
    made(yard)

    done = yard.work()

    assert yard.look(1).status is TaskStatus.DONE
    assert "nobody foresaw" not in done.err
    assert not review_branches(yard)
    assert not yard.unreachable()


def test_work_gives_the_findings_of_that_review_to_the_author(small_yard: Yard) -> None:
    yard = small_yard
    yard.set()
    author(yard)
    reviewer_by_rounds(yard, CHANGES, APPROVE)
    made(yard)

    yard.work()

    assert yard.look(1).status is TaskStatus.DONE
    assert yard.started() == ["1", "reviewer", "1", "reviewer"]
    with yard.board() as board:
        last = board.sessions(1)[-1]
    assert MUST in yard.project.prompts(last.run)[0]
    assert not review_branches(yard)


def test_a_run_that_leaves_its_branch_unmerged_is_not_landed_by_work(small_yard: Yard) -> None:
    yard = small_yard
    yard.set()
    author(yard)
    reviewer(yard, APPROVE)
    made(yard, "--no-merge")

    yard.work(check=None)

    assert reviews_of(yard, 1) == ["approved"]
    assert "task-1.txt" not in yard.files()
    assert yard.look(1).status is TaskStatus.REVIEW


def test_run_reviewer_approves_the_commit_in_review_and_the_run_lands_it(yard: Yard) -> None:
    yard.set()
    author(yard)
    reviewer(yard, APPROVE, do="echo x > mine.txt; git add -A; git commit -qm mine")
    run = made(yard)

    found = verdict_of(yard)

    assert found["review"] == {
        "task": 1,
        "commit": run["verified"],
        "verdict": "approved",
        "findings": [],
        "summary": "Good.",
        "reviewer": "reviewer",
        "recorded": True,
    }
    assert found["hint"] == f"genba run --resume {run['run']}"
    assert yard.look(1).approved == run["verified"]
    assert not review_branches(yard)
    assert worktrees(yard) == ["main", run["branch"]], "the work of the author stays"
    assert not yard.unreachable(), "what the reviewer wrote is kept aside"
    yard.genba("run", "--resume", run["run"])
    assert yard.look(1).status is TaskStatus.DONE
    assert "mine.txt" not in yard.files()


def test_run_reviewer_prints_its_verdict_with_the_reasons(small_yard: Yard) -> None:
    yard = small_yard
    yard.set()
    author(yard)
    reviewer(yard, CHANGES)
    run = made(yard)

    done = yard.genba("run", "reviewer", "--issue", "1")

    assert done.out.splitlines() == [
        f"#1 changes requested on {run['verified'][:7]} by reviewer",
        f"  {MUST}",
        "  Nearly.",
    ]
    assert f"genba run --resume {run['run']}" in done.err


def test_changes_requested_send_the_work_back_and_only_the_newer_commit_can_be_approved(small_yard: Yard) -> None:
    yard = small_yard
    yard.set()
    author(yard)
    reviewer_by_rounds(yard, CHANGES, APPROVE)
    definition = json.loads(yard.project.read(".agent/reviewer/agent.json"))
    definition["parameters"]["commit"] = {"type": "string", "default": "HEAD"}
    yard.project.write(".agent/reviewer/agent.json", json.dumps(definition))
    yard.project.commit()
    run = made(yard)

    assert verdict_of(yard)["review"]["verdict"] == "changes_requested"
    assert yard.look(1).status is TaskStatus.OPEN
    again = yard.project.run("--resume", run["run"], check=1)

    assert MUST in yard.project.prompts(run["run"])[-1]
    assert again["verified"] != run["verified"]
    assert yard.look(1).approved == ""
    old = yard.genba("run", "reviewer", "--issue", "1", "--commit", run["verified"], check=5)
    assert f"{run['verified']} is not in review for task #1" in old.err
    assert yard.look(1).approved == ""
    assert verdict_of(yard)["review"]["commit"] == again["verified"]
    yard.project.run("--resume", run["run"])
    assert yard.look(1).status is TaskStatus.DONE
    assert yard.project.git("show", "main:task-1.txt").split() == ["1", "1"]


def test_a_verdict_on_an_older_commit_does_not_approve_a_newer_one(small_yard: Yard) -> None:
    yard = small_yard
    yard.set()
    author(yard)
    here, go = yard.project.root.parent / "here", yard.project.root.parent / "go"
    reviewer(yard, APPROVE, do=f"touch {here}; while [ ! -e {go} ]; do sleep 0.05; done")
    run = made(yard)
    reviewing = yard.begin("run", "reviewer", "--issue", "1")
    until(here.exists)

    yard.genba("reject", "1", "--reason", "Two lines.")
    newer = yard.project.run("--resume", run["run"], check=1)
    go.touch()

    assert reviewing.wait(60) == 5
    assert "does not count" in yard.log()
    assert newer["verified"] != run["verified"]
    assert yard.look(1).approved == ""
    assert reviews_of(yard, 1)[-1] == "open"
    assert not review_branches(yard)


def test_a_review_that_gives_no_verdict_leaves_nothing_and_decides_nothing(small_yard: Yard) -> None:
    yard = small_yard
    yard.set()
    author(yard)
    reviewer(yard, {"status": "completed", "verdict": "perhaps"})
    made(yard)

    found = verdict_of(yard, check=None)

    assert found["outcome"] != "completed"
    assert found["hint"] == "genba run reviewer --issue 1"
    assert yard.look(1).approved == ""
    assert reviews_of(yard, 1) == ["open"]
    assert not review_branches(yard)


def test_the_author_of_the_work_is_refused_as_its_reviewer(small_yard: Yard) -> None:
    yard = small_yard
    yard.set(review={"agent": "worker"})
    author(yard)
    made(yard)

    refused = yard.genba("run", "worker", "--issue", "1", check=5)

    assert "worker has worked on it" in refused.err
    assert "genba approve 1" in refused.err


def test_a_reviewer_advises_where_a_person_decides(small_yard: Yard) -> None:
    yard = small_yard
    yard.set()
    author(yard)
    reviewer(yard, CHANGES)
    made(yard, reviewed_by="human")

    found = verdict_of(yard)

    assert found["review"]["recorded"] is False
    assert "genba approve 1" in found["hint"]
    assert yard.look(1).status is TaskStatus.REVIEW
    with yard.board() as board:
        (comment,) = board.board.comments(1)
    assert comment.author == "reviewer"
    assert MUST in comment.body
    assert not review_branches(yard)


def test_a_verdict_on_a_task_that_is_not_in_review_is_not_recorded(small_yard: Yard) -> None:
    yard = small_yard
    yard.set()
    yard.project.agent(
        "reviewer",
        script={"turns": [{"reply": APPROVE}], "repeat": True},
        parameters={"issue": {"type": "number"}},
        completion=ANSWERS,
        boundaries={"permissionMode": "plan"},
        execution={"finalize": {"autoMerge": False}},
    )
    yard.task(1, requires_review=True, reviewer_type="ai")

    done = yard.genba("run", "reviewer", "--issue", "1")

    assert "task #1 is open: no commit is in review, so the verdict is not recorded" in done.err


# ── the same command ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_run_performs_the_review_itself_on_request(yard: Yard) -> None:
    yard.set()
    author(yard)
    reviewer_by_rounds(yard, CHANGES, APPROVE)

    result = made(yard, "--review", check=0)

    assert result["outcome"] == "completed"
    assert result["agent"] == "worker"
    assert yard.look(1).status is TaskStatus.DONE
    assert yard.started() == ["1", "reviewer", "1", "reviewer"]
    assert MUST in yard.project.prompts(result["run"])[-1]
    assert yard.project.branches() == ["main"]


def test_after_the_rounds_of_a_review_on_request_a_person_decides(small_yard: Yard) -> None:
    yard = small_yard
    yard.set(review={"rounds": 1})
    author(yard)
    reviewer(yard, CHANGES)

    result = made(yard, "--review")

    assert yard.started() == ["1", "reviewer", "1"]
    with yard.board() as board:
        (asked,) = board.escalations()
    assert asked.kind is EscalationKind.REVIEW
    assert "genba approve 1" in result["hint"]


@pytest.mark.parametrize(
    ("draft", "why"),
    [({}, "task #1 needs no review"), ({"requires_review": True}, "task #1 is reviewed by a person")],
)
def test_a_review_on_request_is_refused_where_no_agent_decides(small_yard: Yard, draft: Any, why: str) -> None:
    yard = small_yard
    yard.set()
    author(yard)
    yard.task(1, **draft)

    refused = yard.genba("run", "worker", "--issue", "1", "--review", check=2)

    assert why in refused.err
    assert "genba task edit 1 --review --reviewer ai" in refused.err
    assert not yard.started()


# ── a person reviews ─────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_person_sees_the_decision_of_a_run_and_approves_it(yard: Yard) -> None:
    yard.set()
    author(yard)
    run = made(yard, reviewed_by="human")

    (asked,) = json.loads(yard.genba("decisions", "--json").out)
    assert (asked["task"], asked["kind"], asked["commit"]) == (1, "review", run["verified"])
    assert "genba approve 1" in run["hint"]
    assert "genba reject 1" in run["hint"]
    approved = yard.genba("approve", "1")

    assert f"genba run --resume {run['run']}" in approved.err
    yard.genba("run", "--resume", run["run"])
    assert yard.look(1).status is TaskStatus.DONE
    assert "task-1.txt" in yard.files()
    assert yard.started() == ["1"]


def test_work_lands_what_a_person_approved(small_yard: Yard) -> None:
    yard = small_yard
    yard.set()
    author(yard)
    made(yard, reviewed_by="human")
    yard.genba("approve", "1")

    yard.work()

    assert yard.look(1).status is TaskStatus.DONE
    assert yard.started() == ["1"]


@pytest.mark.parametrize("onward", ["resume", "run", "work"])
def test_what_a_person_rejects_goes_back_with_the_reason(small_yard: Yard, onward: str) -> None:
    yard = small_yard
    yard.set()
    author(yard)
    run = made(yard, reviewed_by="human")

    rejected = yard.genba("reject", "1", "--reason", "It needs a second line.")

    assert f"genba run --resume {run['run']}" in rejected.err
    assert yard.look(1).status is TaskStatus.OPEN
    commands = {
        "resume": ("run", "--resume", run["run"]),
        "run": ("run", "worker", "--issue", "1"),
        "work": ("work", "--until-empty"),
    }
    yard.genba(*commands[onward], check=1)
    with yard.board() as board:
        last = board.sessions(1)[-1]
        (asked,) = board.escalations()
    assert "It needs a second line." in yard.project.prompts(last.run)[-1]
    assert asked.commit != run["verified"]
    yard.genba("approve", "1")
    yard.work()
    assert yard.look(1).status is TaskStatus.DONE
    assert yard.project.git("show", "main:task-1.txt").split() == ["1", "1"]


def test_work_that_comes_back_unchanged_is_a_new_decision(small_yard: Yard) -> None:
    yard = small_yard
    yard.set()
    yard.agent(script="test -e task-1.txt || echo 1 > task-1.txt")
    run = made(yard, reviewed_by="human")
    yard.genba("reject", "1", "--reason", "It needs a second line.")

    yard.project.run("--resume", run["run"], check=None)

    with yard.board() as board:
        (asked,) = board.escalations()
    assert "nothing was changed" in asked.question
    yard.genba("reject", "1", "--reason", "Really.")
    yard.project.run("--resume", run["run"], check=None)
    assert "Really." in yard.project.prompts(run["run"])[-1]


# ── deaths ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_death_between_the_verdict_and_the_landing_is_resumed(small_yard: Yard) -> None:
    yard = small_yard
    place = yard.project.root.parent
    here, go, hold, held = (place / name for name in ("here", "go", "hold", "held"))
    waits = f"test ! -e {hold} || {{ touch {held}; while test -e {hold}; do sleep 0.05; done; }}"
    yard.settings["dod"] = [{"type": "custom_script", "script": waits}]
    yard.set(sandbox={"kind": "worktree"})
    author(yard)
    reviewer(yard, APPROVE, do=f"touch {here}; while [ ! -e {go} ]; do sleep 0.05; done")
    yard.task(1, requires_review=True, reviewer_type="ai")
    running = yard.begin("run", "worker", "--issue", "1", "--review")
    until(here.exists)
    yard.project.write("other.txt", "the base moves")
    yard.project.commit()
    hold.touch()
    go.touch()
    until(held.exists)

    yard.kill(running, signal.SIGKILL)
    hold.unlink()

    assert reviews_of(yard, 1) == ["approved"]
    assert "task-1.txt" not in yard.files()
    with yard.board() as board:
        run = board.sessions(1)[-1].run
    yard.genba("run", "--resume", run)
    assert yard.look(1).status is TaskStatus.DONE
    assert yard.started() == ["1", "reviewer"]
    assert yard.project.branches() == ["main"]


def test_a_fleet_that_dies_between_the_verdict_and_the_landing_goes_on(yard: Yard) -> None:
    place = yard.project.root.parent
    here, go, hold, held = (place / name for name in ("here", "go", "hold", "held"))
    waits = f"test ! -e {hold} || {{ touch {held}; while test -e {hold}; do sleep 0.05; done; }}"
    yard.settings["dod"] = [{"type": "custom_script", "script": waits}]
    yard.set(sandbox={"kind": "worktree"})
    author(yard)
    reviewer(yard, APPROVE, do=f"touch {here}; while [ ! -e {go} ]; do sleep 0.05; done")
    made(yard)
    working = yard.start("--until-empty")
    until(here.exists)
    yard.project.write("other.txt", "the base moves")
    yard.project.commit()
    hold.touch()
    go.touch()
    until(held.exists)

    yard.kill(working)
    hold.unlink()
    assert reviews_of(yard, 1) == ["approved"]
    assert "task-1.txt" not in yard.files()
    yard.work()

    assert yard.look(1).status is TaskStatus.DONE
    assert yard.started() == ["1", "reviewer"]
    assert not review_branches(yard)


# ── the facilitator ──────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("by", "command"), [("ai", "genba run reviewer --issue 1"), ("human", "genba approve 1")])
def test_the_facilitator_suggests_who_reviews(small_yard: Yard, by: str, command: str) -> None:
    yard = small_yard
    yard.set()
    author(yard)
    reviewer(yard, APPROVE)
    made(yard, reviewed_by=by)

    found = json.loads(yard.genba("facilitate", "--json", check=None).out)

    result = json.dumps(found)
    assert command in result
    assert ("genba approve 1" in result) == (by == "human")


def test_the_facilitator_leaves_a_review_of_the_fleet_to_the_fleet(small_yard: Yard) -> None:
    yard = small_yard
    yard.set()
    author(yard)
    go = yard.project.root.parent / "go"
    reviewer(yard, APPROVE, do=f"while [ ! -e {go} ]; do sleep 0.05; done")
    yard.task(1, requires_review=True, reviewer_type="ai")
    working = yard.start("--until-empty")
    until(lambda: "reviewer" in yard.started())
    yard.kill(working)
    go.touch()

    result = yard.genba("facilitate", "--json", check=None).out

    assert "genba work" in result
    assert "genba approve 1" not in result


# ── others who come to a task in review ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("kind", "way"), [("human", "genba approve 1   or: genba reject 1 --reason TEXT"), ("ai", "genba approve 1   appr")]
)
def test_a_command_that_a_task_in_review_refuses_names_what_it_waits_for(small_yard: Yard, kind: str, way: str) -> None:
    yard = small_yard
    yard.set()
    author(yard)
    reviewer(yard, APPROVE)
    made(yard, reviewed_by=kind)

    refused = yard.genba("run", "worker", "--issue", "1", check=5)

    assert "task #1 is in review: its verified work waits for a review" in refused.err
    for words in (
        ("run", "worker", "--issue", "1"),
        ("task", "reopen", "1"),
        ("task", "edit", "1", "--status", "open"),
    ):
        assert way in yard.genba(*words, check=5).err, words
