"""runner.integrations.github: what a run does to its issue, and how its prompts speak of it."""

from typing import Any

import pytest

from genba.domain.tasks.task import Blocker, BlockerKind
from tests.fields.flows import EXTERNAL_STATE, ISSUE, idle, report, work
from tests.project import GENBA, Project

COMPLETION_LABELS = {"completion": {"add": ["done"], "remove": ["docs"]}}


def run_on_issue(
    project: Project, turn: dict[str, Any] | None = None, has: tuple[str, ...] = (), check: int = 0, **github: Any
) -> dict[str, Any]:
    """Run on issue 7 with the integration enabled, and return the front of the issue afterwards."""
    project.issue(7, "Move the clock", "It stands still.", labels=has)
    project.agent(
        completion=EXTERNAL_STATE,
        parameters=ISSUE,
        integrations={"github": {"enabled": True, **github}},
        script={"turns": [turn or work()]},
    )
    project.run("worker", "--issue", "7", check=check)
    return project.issue_front(7)


def test_a_disabled_integration_writes_no_label_and_a_task_of_our_own_still_ends_by_its_verified_work(
    project: Project,
) -> None:
    front = run_on_issue(
        project, has=("docs",), enabled=False, labels=COMPLETION_LABELS, defaultClosureAction="label-and-close"
    )
    assert (front["state"], front["labels"]) == ("closed", ["docs"])
    assert str(project.task(7).status) == "done"


def test_an_enabled_integration_closes_the_issue_by_default(project: Project) -> None:
    assert run_on_issue(project)["state"] == "closed"


def test_close_sets_the_completion_labels_and_closes(project: Project) -> None:
    front = run_on_issue(project, has=("docs",), labels=COMPLETION_LABELS, defaultClosureAction="close")
    assert (front["state"], front["labels"]) == ("closed", ["done"])


def test_label_only_labels_and_leaves_the_issue_open(project: Project) -> None:
    front = run_on_issue(project, has=("docs",), labels=COMPLETION_LABELS, defaultClosureAction="label-only")
    assert (front["state"], front["labels"]) == ("open", ["done"])


def test_label_and_close_does_both(project: Project) -> None:
    front = run_on_issue(project, has=("docs",), labels=COMPLETION_LABELS, defaultClosureAction="label-and-close")
    assert (front["state"], front["labels"]) == ("closed", ["done"])


def test_completion_labels_are_added(project: Project) -> None:
    labels = {"completion": {"add": ["done", "phase-2"]}}
    front = run_on_issue(project, has=("docs",), labels=labels, defaultClosureAction="label-only")
    assert front["labels"] == ["docs", "done", "phase-2"]


def test_completion_labels_are_removed(project: Project) -> None:
    labels = {"completion": {"remove": ["docs"]}}
    front = run_on_issue(project, has=("docs", "bug"), labels=labels, defaultClosureAction="label-only")
    assert front["labels"] == ["bug"]


def test_the_in_progress_label_is_on_the_issue_while_the_run_works(project: Project) -> None:
    look = f"{GENBA} task show 7 > seen.txt && git add -A && git commit -qm seen"
    front = run_on_issue(project, work(run=look), labels={"inProgress": "being-moved"})
    assert "being-moved" in project.read("seen.txt")
    assert front["labels"] == []


def test_the_blocked_label_is_set_when_a_run_ends_blocked(project: Project) -> None:
    turn = idle({"status": "blocked", "question": "Which clock?"})
    labels = {"inProgress": "being-moved", "blocked": "need clearance"}
    front = run_on_issue(project, turn, check=1, labels=labels)
    assert (front["state"], front["labels"]) == ("open", ["need clearance"])
    assert "Blocked: Which clock?" in project.genba("task", "show", "7", check=0).out
    assert project.task(7).blocker == Blocker(BlockerKind.NEEDS_INPUT, "Which clock?")


def test_the_blocked_label_goes_when_a_new_run_begins(project: Project) -> None:
    assert run_on_issue(project, has=("need clearance",), labels={"blocked": "need clearance"})["labels"] == []


def test_issues_with_the_requirements_label_are_given_to_the_prompt(project: Project) -> None:
    project.issue(3, "Clocks are quiet", "No clock ticks at night.", labels=("docs",))
    project.issue(4, "Doors are red", labels=("other",))
    project.issue(7, "Move the clock")
    project.agent(
        completion=EXTERNAL_STATE,
        parameters=ISSUE,
        integrations={"github": {"labels": {"requirements": "docs"}}},
        prompts={"work.md": "The requirements:\n{uv-requirements}|\n"},
        script={"turns": [work(expect="requirements:\n#3 Clocks are quiet\n\nNo clock ticks at night.|")]},
    )
    project.run("worker", "--issue", "7")


def test_the_structured_output_wins_over_the_default_closure_action(project: Project) -> None:
    turn = work({"status": "completed", "closure_action": "label-only"})
    front = run_on_issue(project, turn, has=("docs",), labels=COMPLETION_LABELS, defaultClosureAction="close")
    assert (front["state"], front["labels"]) == ("open", ["done"])


def test_the_structured_output_may_name_labels_of_its_own(project: Project) -> None:
    closure = {"action": "label-and-close", "labels": {"add": ["moved"], "remove": ["bug"]}}
    turn = work({"status": "completed", "closure": closure})
    front = run_on_issue(
        project, turn, has=("docs", "bug"), labels=COMPLETION_LABELS, defaultClosureAction="label-only"
    )
    assert (front["state"], front["labels"]) == ("closed", ["done", "moved"])


def test_an_unknown_closure_action_in_the_structured_output_is_reported_and_the_default_applies(
    project: Project,
) -> None:
    turn = work({"status": "completed", "closure_action": "explode"})
    assert run_on_issue(project, turn, defaultClosureAction="label-only")["state"] == "open"
    lines = [event["message"] for event in project.events() if event["event"] == "notice"]
    assert '"explode" is no closure action, and the default applies' in lines


def test_nothing_is_closed_whose_work_did_not_hold(project: Project) -> None:
    project.issue(7, "Move the clock")
    project.agent(
        completion=EXTERNAL_STATE,
        parameters=ISSUE,
        integrations={"github": {"enabled": True}},
        script={"turns": [idle({"status": "completed", "closure_action": "close"})], "repeat": True},
    )
    assert project.run("worker", "--issue", "7", check=1)["outcome"] == "incomplete"
    assert project.issue_front(7)["state"] == "open"


@pytest.mark.parametrize(
    ("action", "criteria", "instruction", "word"),
    [
        ("close", "Close Issue #7", "close it when done", "close"),
        ("label-only", "Complete phase for Issue #7", "Do NOT close the issue", "complete"),
        ("label-and-close", "Issue #7 labeled and closed", "close it when done", "close"),
    ],
)
def test_the_prompt_speaks_the_language_of_the_closure_action(
    project: Project, action: str, criteria: str, instruction: str, word: str
) -> None:
    spoken = [criteria, instruction, f'"action": "{word}"']
    run_on_issue(project, work(expect=spoken), defaultClosureAction=action)


@pytest.mark.parametrize("action", ["close", "label-only", "label-and-close"])
def test_the_prompt_to_go_on_speaks_the_same_language(project: Project, action: str) -> None:
    instruction, word = {
        "close": ("close it when done", "close"),
        "label-only": ("Do NOT close the issue", "complete"),
        "label-and-close": ("close it when done", "close"),
    }[action]
    project.issue(7, "Move the clock")
    turns = [work({"status": "in_progress"}), idle(says_done(word), expect=["# Go on", instruction, f'"{word}"'])]
    project.agent(
        completion=EXTERNAL_STATE,
        parameters=ISSUE,
        integrations={"github": {"defaultClosureAction": action}},
        script={"turns": turns},
    )
    project.run("worker", "--issue", "7")


def says_done(word: str) -> dict[str, Any]:
    return {"next_action": {"action": word}}


def test_the_own_prompt_of_a_step_can_use_the_same_words(project: Project) -> None:
    project.issue(7, "Move the clock", "It stands still.", labels=("bug",))
    text = "{uv-issue}|{uv-issue_title}|{uv-issue_body}|{uv-issue_labels}|{uv-closure_instruction}|{uv-closure_word}"
    spoken = "7|Move the clock|It stands still.|bug|Do NOT close the issue|complete"
    project.agent(
        completion=EXTERNAL_STATE,
        parameters=ISSUE,
        integrations={"github": {"defaultClosureAction": "label-only"}},
        prompts={"work.md": text},
        script={"turns": [work(expect=spoken)]},
    )
    project.run("worker", "--issue", "7")


def test_an_enabled_integration_needs_the_number_of_an_issue(project: Project) -> None:
    project.agent(integrations={"github": {"enabled": True}})
    assert "runner.integrations.github needs the parameter issue" in project.genba("run", "worker", check=3).err
    project.agent(integrations={"github": {"enabled": True}}, parameters={"issue": {"type": "string"}})
    assert "parameters.issue.type: must be number" in project.genba("run", "worker", check=3).err


def test_the_words_about_an_issue_are_empty_when_none_is_given(project: Project) -> None:
    project.agent(
        parameters={"issue": {"type": "number"}},
        prompts={"work.md": "<{uv-issue_title}{uv-requirements}{uv-closure_word}>"},
        script={"turns": [work(expect="<>")]},
    )
    project.run("worker")


def test_every_change_to_the_issue_is_recorded_before_it_is_made(project: Project) -> None:
    project.issue(7, "Move the clock")
    project.agent(completion=EXTERNAL_STATE, parameters=ISSUE, integrations={"github": {"enabled": True}})
    result = project.run("worker", "--issue", "7")
    planned = [event for event in report(project, result, "effect_planned") if event["effect"] == "issue"]
    assert [event["detail"]["close"] for event in planned] == [True]
