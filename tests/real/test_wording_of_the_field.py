"""The real Claude Code as the voice of the facilitator: it gets what code found, and nothing but its words counts."""

from pathlib import Path

from tests.clis import path_with_clis
from tests.project import Project
from tests.standins.model_server import Answer, ModelServer

KEY = "sk-only-the-host-holds-this"
STEPS = ["discover", "statuscheck", "blockercheck", "stalecheck", "facilitate", "report", "complete"]
LIES = {
    "agents": [{"name": "nobody"}],
    "assessments": [{"issue": 1, "state": "done"}],
    "blockers": [],
    "stale": [],
    "actions": [
        {"action": "comment", "issue": 2, "body": "Patience, @octocat: this waits for issue one."},
        {"action": "comment", "issue": 1, "body": "   "},
        {"action": "label", "issue": 1, "label": "done", "body": "It is done."},
        {"action": "comment", "issue": 99, "body": "There is no such issue."},
    ],
    "recommendations": [{"nextAgent": "nobody", "reason": "because"}],
}


def lie(action: str) -> tuple[Answer]:
    return (Answer({**LIES, "next_action": {"action": action}}),)


def test_a_model_words_what_code_found_and_decides_nothing(claude: Path, model: ModelServer, project: Project) -> None:
    assert claude
    project.issue(1, "Add a page")
    project.issue(2, "Write docs")
    project.genba("task", "depend", "2", "--on", "1", check=0)
    url = model.rounds("field", *(lie("next") for _ in STEPS[:-1]), lie("closing"))
    project.environment |= {"PATH": path_with_clis(), "ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": KEY}

    result = project.run("facilitator", "--apply", "--adapter", "claude-code")

    assert result["outcome"] == "completed"
    assert project.steps_walked(result["run"]) == STEPS
    answers = {
        each["step"]: each["structured"] for each in project.events(result["run"]) if each["event"] == "reply_received"
    }
    assert [each["state"] for each in answers["statuscheck"]["assessments"]] == ["incomplete", "blocked"]
    assert answers["report"]["recommendations"][0]["nextAgent"] == "iterator"
    with project.board() as board:
        values = {number: [each.body for each in board.comments(number)] for number in (1, 2)}
    assert [len(each) for each in values.values()] == [1, 1]
    assert "State: incomplete" in values[1][0]
    assert values[2][0].startswith("Patience, @")
    assert "@octocat" not in values[2][0]
    assert (project.task(1).status, project.task(1).labels) == ("open", ())
    assert project.task(2).labels == ("blocked",)
    assert any("**State: blocked**" in str(request.body) for request in model.asked("field"))
