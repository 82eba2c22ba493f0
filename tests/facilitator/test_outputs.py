"""What the facilitator prints has the shape that it promises."""

import json
from typing import Any

import jsonschema_rs
import pytest

from tests.project import Project


def schema(project: Project, name: str) -> dict[str, Any]:
    found: dict[str, Any] = project.genba("schema", name, check=0).json
    jsonschema_rs.meta.validate(found)
    return found


@pytest.fixture
def report(project: Project) -> dict[str, Any]:
    for number, title in enumerate(("Add a page", "Fix the parser", "Write docs"), 1):
        project.issue(number, title)
    project.genba("task", "depend", "3", "--on", "1", check=0)
    project.commit("Fix the parser\n\nIssue: 2")
    found: dict[str, Any] = project.genba("facilitate", "--json").json
    return found


def test_each_of_the_four_outputs_fits_its_schema(project: Project, report: dict[str, Any]) -> None:
    outputs = {
        "agent-registry": [report["agent_registry"]],
        "issue-assessment": report["assessments"],
        "facilitate-action": report["actions"],
        "recommend-action": [report["recommendation"]],
    }
    for name, all_ in outputs.items():
        validator = jsonschema_rs.validator_for(schema(project, name))
        assert all_, name
        for each in all_:
            validator.validate(each)


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("facilitate-action", {"action": "close", "issue": 1, "body": ""}),
        ("issue-assessment", {"issue": 1, "state": "finished", "evidence": [], "recommendation": ""}),
        ("recommend-action", {"nextAgent": "none"}),
        ("agent-registry", {"agents": []}),
    ],
)
def test_what_has_another_shape_does_not_fit(project: Project, name: str, wrong: dict[str, Any]) -> None:
    assert not jsonschema_rs.validator_for(schema(project, name)).is_valid(wrong)


def test_the_public_shape_has_the_names_that_others_read(report: dict[str, Any]) -> None:
    assert {"issue", "state", "evidence", "recommendation", "requiredCapability"} <= report["assessments"][0].keys()
    assert {"action", "issue", "body"} <= report["actions"][0].keys()
    assert report["recommendation"].keys() == {
        "nextAgent", "targetIssues", "reason", "availableAgents", "suggestions"
    }  # fmt: skip
    suggestion = report["recommendation"]["suggestions"][0]
    assert {"agent", "command", "description", "priority", "score", "rationale"} <= suggestion.keys()
    assert {"name", "displayName", "description", "capabilities", "parameters"} <= report["agent_registry"]["agents"][
        0
    ].keys()
    assert report["agent_registry"]["discoveredAt"].endswith("Z")
    assert json.dumps(report)
