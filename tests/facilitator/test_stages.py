"""A task whose type has stages is suggested to the agent of its stage, and to no other."""

import json
from typing import Any

import pytest

from tests.facilitator.test_suggestions_run import suggestions, typed
from tests.project import Project

STAGES = ("analyst", "architect", "writer", "facilitator")


def pipeline(project: Project, *stages: str, closure: str = "label-only") -> None:
    """A type of tasks with these stages; each agent adds a file that is called like it."""
    for name in stages:
        if name not in ("facilitator", "ghost"):
            line = f"echo done > {name}.txt; git add -A; git commit -qm {name}"
            project.agent(
                name,
                script={"turns": [{"do": [{"run": line}], "reply": "done"}], "repeat": True},
                parameters={"issue": {"type": "number", "cli": "--issue"}},
                actions={"enabled": True, "types": ["issue-action"], "handlers": {"issue-action": "builtin:record"}},
                integrations={"github": {"enabled": True, "defaultClosureAction": closure}},
            )
    project.write(".genba/config.yaml", json.dumps({"task_types": {"manual": {"stages": list(stages)}}}))
    project.commit("Name the stages")
    project.issue(1, "Write the manual", type="manual")


def only(project: Project) -> dict[str, Any]:
    (best,) = suggestions(project)
    return best


def test_each_stage_is_suggested_when_it_is_its_turn_and_the_suggestion_runs(project: Project) -> None:
    pipeline(project, *STAGES)
    for name in STAGES:
        best = only(project)
        assert (best["agent"], best["command"]) == (name, f"genba run {name} --issue 1")
        assert f"the stage of {name}" in best["rationale"]
        assert best["command"] in project.genba("status").out
        result = project.genba("run", "facilitator", "--json").json
        assert f"genba run {name} --issue 1" in json.dumps(result), result
        assert typed(project, best["command"]).code == 0
    assert suggestions(project) == []


def test_a_session_of_a_stage_that_is_over_is_not_resumed(project: Project) -> None:
    pipeline(project, *STAGES)
    project.genba("run", "analyst", "--issue", "1", check=0)
    project.sql(
        "INSERT INTO sessions (run, task_id, agent_id, attempt, status, waits_for, started_at, heartbeat_at)"
        " SELECT 'analyst-1-9', task_id, agent_id, 9, 'waiting', 'resume', started_at, heartbeat_at FROM sessions"
    )
    assert only(project)["command"] == "genba run architect --issue 1"


def test_a_task_whose_stages_are_all_complete_is_left_to_a_person(project: Project) -> None:
    pipeline(project, "analyst")
    project.genba("run", "analyst", "--issue", "1", check=0)
    best = only(project)
    assert (best["agent"], best["command"]) == ("none", "genba task show 1")
    assert "all of its stages are complete" in best["description"]


def test_a_stage_that_names_no_agent_is_left_to_a_person(project: Project) -> None:
    pipeline(project, "ghost", "writer")
    best = only(project)
    assert (best["agent"], best["command"]) == ("none", "genba agent check ghost")


@pytest.mark.parametrize("kind", ["manual", "task"])
def test_other_types_are_suggested_as_before(project: Project, kind: str) -> None:
    pipeline(project, "writer")
    project.issue(2, "Another one", type=kind)
    assert {each["command"] for each in suggestions(project)[:2]} == {f"genba run writer --issue {n}" for n in (1, 2)}
