"""`genba facilitate` and `genba status`, as people type them."""

import inspect
import json
from pathlib import Path

import pytest

from genba.blackboard.triage.triage_board import FieldBoard
from genba.coordination.facilitator.facilitator import Facilitator, RepositoryReader
from genba.definitions.agent.json_schema import problems_in_value
from tests.project import Project


@pytest.fixture
def field(project: Project) -> Project:
    """Four issues: one to begin, one landed and still open, one that waits, one in work."""
    for number, title in enumerate(("Add a page", "Fix the parser", "Write docs", "Tidy up"), 1):
        project.issue(number, title)
    project.genba("task", "depend", "3", "--on", "1", check=0)
    project.write("parser.txt", "fixed\n")
    project.commit("Fix the parser\n\nIssue: 2")
    project.git("switch", "-q", "-c", "4-tidy-up")
    project.write("tidy.txt", "half\n")
    project.commit("Begin to tidy up")
    project.git("switch", "-q", "main")
    return project


def states(project: Project, *words: str) -> dict[int, str]:
    return {each["issue"]: each["state"] for each in project.genba("facilitate", "--json", *words).json["assessments"]}


def comments(project: Project) -> dict[int, list[str]]:
    with project.board() as board:
        return {task.number: [each.body for each in board.comments(task.number)] for task in board.find()}


def test_every_issue_has_a_state_by_what_git_and_the_blackboard_show(field: Project) -> None:
    assert states(field) == {1: "incomplete", 2: "done", 3: "blocked", 4: "in_progress"}


def test_the_status_says_what_is_true_and_what_to_type(field: Project) -> None:
    shown = field.genba("status", check=0).out
    assert "repository · 4 issues · updated just now" in shown
    assert "health   states clear ✓   next clear ✓   blockers visible ✓   startable ✓" in shown
    assert " ✗ blocked      #3" in shown
    assert "#3 waits for #1" in shown
    assert " ! orphaned     #2" in shown
    assert "   genba verify 2\n" in shown
    assert "genba run iterator --issue 1" in shown


def test_by_default_nothing_is_posted_and_a_preview_is_shown(field: Project) -> None:
    done = field.genba("facilitate", check=1)
    assert "comments and labels, not sent   genba facilitate --apply" in done.out
    assert "#3 label +blocked: waits for #1" in done.out
    assert "not complete: 5 actions are not carried out" in done.err
    assert comments(field) == {1: [], 2: [], 3: [], 4: []}


def test_with_apply_it_comments_and_labels_and_the_second_time_it_posts_nothing(field: Project) -> None:
    field.genba("facilitate", "--apply", check=0)
    output = comments(field)
    assert [len(each) for each in output.values()] == [1, 1, 1, 1]
    assert "waits for #1" in output[3][0]
    assert field.task(3).labels == ("blocked",)
    versions = [field.task(number).version for number in output]
    assert field.genba("facilitate", "--apply", "--json", check=0).json["actions"] == []
    assert comments(field) == output
    assert [field.task(number).version for number in output] == versions


def test_the_single_comment_is_rewritten_when_the_state_changes_and_the_label_goes(field: Project) -> None:
    field.genba("facilitate", "--apply", check=0)
    field.write("page.txt", "a page\n")
    field.commit("Add a page\n\nIssue: 1")
    assert states(field)[3] == "incomplete"
    field.genba("facilitate", "--apply", check=0)
    (output,) = comments(field)[3]
    assert "State: incomplete" in output
    assert field.task(3).labels == ()
    assert field.genba("facilitate", "--json", check=0).json["actions"] == []


def test_a_label_that_a_person_put_there_stays(project: Project) -> None:
    project.issue(1, "Add a page", labels=("blocked",))
    project.genba("facilitate", "--apply", check=0)
    project.genba("facilitate", "--apply", check=0)
    assert project.task(1).labels == ("blocked",)
    assert states(project) == {1: "blocked"}


def test_what_it_says_reaches_no_prompt(project: Project) -> None:
    project.issue(1, "Add a page")
    project.agent(
        parameters={"issue": {"type": "integer", "cli": "--issue"}}, prompts={"system.md": "{uv-issue_body}\n"}
    )
    project.genba("facilitate", "--apply", check=0)
    run = project.run("worker", "--issue", "1", check=None)["run"]
    assert "State:" not in "".join(project.prompts(run))


def test_the_second_look_reads_on_and_sees_what_is_new(field: Project) -> None:
    before = states(field)
    field.write("docs.txt", "docs\n")
    field.commit("Write docs\n\nIssue: 3")
    assert states(field) == {**before, 3: "done"}
    field.git("revert", "--no-edit", "HEAD")
    assert states(field)[3] == "blocked"


def test_what_ended_is_looked_at_again_when_something_happens_to_it(field: Project) -> None:
    field.sql("UPDATE tasks SET status = 'done' WHERE number = 2")
    before = states(field)
    assert (before[2], states(field)) == ("done", before)
    field.git("revert", "--no-edit", "HEAD")
    assert states(field)[2] == "unknown"
    assert states(field)[2] == "unknown"


def test_history_that_was_rewritten_is_read_again(field: Project) -> None:
    assert states(field)[2] == "done"
    field.git("branch", "-q", "-D", "4-tidy-up")
    field.git("reset", "-q", "--hard", "HEAD~1")
    assert states(field)[2] == "incomplete"


def test_a_label_narrows_the_report(project: Project) -> None:
    project.issue(1, "Add a page", labels=("sprint-1",))
    project.issue(2, "Fix the parser")
    assert states(project, "--label", "sprint-1") == {1: "incomplete"}
    assert states(project, "--label", "nobody has it") == {}


def test_a_program_gets_the_four_outputs(field: Project) -> None:
    result = field.genba("facilitate", "--json").json
    assert set(result["recommendation"]) == {"nextAgent", "targetIssues", "reason", "availableAgents", "suggestions"}
    assert result["recommendation"]["nextAgent"] == "iterator"
    assert "facilitator" not in result["recommendation"]["availableAgents"]
    assert "facilitator" in [each["name"] for each in result["agent_registry"]["agents"]]
    assert result["agent_registry"]["discoveredAt"]
    assert {each["action"] for each in result["actions"]} == {"comment", "label"}


def test_the_four_outputs_fit_the_schemas_that_are_printed(field: Project) -> None:
    result = field.genba("facilitate", "--json").json
    outputs = {
        "issue-assessment": result["assessments"],
        "facilitate-action": result["actions"],
        "agent-registry": [result["agent_registry"]],
        "recommend-action": [result["recommendation"]],
    }
    for name, values in outputs.items():
        schema = field.genba("schema", name, check=0).json
        assert values
        for value in values:
            assert problems_in_value(schema, value) == ()


def test_a_graph_shows_what_waits_for_what(field: Project) -> None:
    drawn = field.genba("facilitate", "--graph", check=0).out.splitlines()
    assert drawn[0] == "flowchart LR"
    assert "  i1 --> i3" in drawn
    assert '  i3["#3 Write docs<br/>blocked"]:::blocked' in drawn


def test_what_happened_is_reported_in_the_order_of_time(field: Project) -> None:
    field.sql("UPDATE tasks SET status = 'done' WHERE number = 2")
    first = field.genba("facilitate", "--events", check=0).out
    assert field.genba("facilitate", "--events", check=0).out == first
    lines = [json.loads(line) for line in first.splitlines()]
    assert [each["time"] for each in lines] == sorted(each["time"] for each in lines)
    seen = [(each["type"], each["issue"], each["source"]) for each in lines]
    assert ("issue_created", 1, "blackboard") in seen
    assert ("merged", 2, "git") in seen
    assert ("commit_pushed", 4, "git") in seen
    assert len({each["key"] for each in lines}) == len(lines)


def test_a_run_that_only_its_journal_tells_of_is_seen(project: Project) -> None:
    project.issue(1, "Add a page")
    folder = project.root / ".git/genba/runs/worker-1"
    folder.mkdir(parents=True)
    journal = project.write("tmp/logs/agents/worker/worker-1.jsonl", "")
    (folder / "journal").write_text(str(journal))
    workspace = {
        "run": "worker-1",
        "git_dir": "",
        "isolated": True,
        "path": "/gone",
        "branch": "genba/1-add-a-page",
        "base": "",
        "base_branch": "main",
    }
    stamp = {"time": project.task(1).created_at, "run": "worker-1", "agent": "worker", "issue": 1}
    started = {"event": "run_started", **stamp, "adapter": "a", "model": "", "definition": "", "workspace": workspace}
    journal.write_text(json.dumps(started, separators=(",", ":")) + "\n")
    (only,) = project.genba("facilitate", "--json").json["assessments"]
    assert only["state"] == "in_progress"
    assert only["evidence"] == ["worker-1 was at work, and its process is gone"]


@pytest.mark.parametrize(
    ("words", "reported"),
    [
        (("--project", "5"), "the issues of this project do not live there"),
        (("--project-owner", "acme"), "--project-owner belongs to --project"),
        (("--apply", "--dry-run"), "--apply and --dry-run exclude each other"),
        (("--watch", "0"), "a number of minutes above zero"),
        (("--graph", "--apply"), "only show: they go with neither"),
    ],
)
def test_what_cannot_be_is_refused(project: Project, words: tuple[str, ...], reported: str) -> None:
    project.issue(1, "Add a page")
    assert reported in project.genba("facilitate", *words, check=2).err


def test_an_agent_does_not_speak_for_the_facilitator(project: Project) -> None:
    project.issue(1, "Add a page")
    done = project.genba("facilitate", "--apply", check=5, GENBA_RUN="worker-1", GENBA_AGENT="worker")
    assert "an agent may not speak for the facilitator" in done.err


def test_bad_ground_gets_a_clear_answer(project: Project, tmp_path: Path) -> None:
    assert "next  nothing: there are no issues" in project.genba("status").out
    assert project.genba("status", "--json").json["assessments"] == []
    (tmp_path / "plain").mkdir()
    assert "git" in project.genba("status", cwd=tmp_path / "plain", check=1).err
    project.issue(1, "Add a page")
    project.write(".agent/broken/agent.json", "{")
    done = project.genba("facilitate")
    assert "the agent broken is left out" in done.err
    assert "genba run iterator --issue 1" in done.out


def test_an_empty_repository_is_reported(project: Project) -> None:
    project.issue(1, "Add a page")
    project.git("update-ref", "-d", "HEAD")
    done = project.genba("facilitate")
    assert "there is no branch main, or it has no commit" in done.err
    assert "incomplete" in done.out


def test_a_shallow_clone_does_not_know_what_was_done_before(project: Project, tmp_path: Path) -> None:
    project.write("page.txt", "a page\n")
    project.commit("Add a page\n\nIssue: 1")
    project.commit("Something else")
    project.git("clone", "-q", "--depth", "1", f"file://{project.root}", str(tmp_path / "clone"))
    clone = Project(tmp_path / "clone", project.environment)
    clone.issue(1, "Add a page")
    clone.sql("UPDATE tasks SET created_at = '2000-01-01T00:00:00.000000Z'")
    done = clone.genba("facilitate", "--json", check=1).json
    (only,) = done["assessments"]
    assert only["state"] == "unknown"
    assert "the clone is shallow" in only["evidence"][0]
    assert "the state of #1 is not known" in done["incomplete"][0]


def test_a_circle_is_named(project: Project) -> None:
    for number in (1, 2):
        project.issue(number, f"Part {number}")
    project.genba("task", "depend", "1", "--on", "2", check=0)
    project.sql(
        "INSERT INTO task_dependencies (task_id, depends_on_id)"
        " SELECT a.id, b.id FROM tasks a, tasks b WHERE a.number = 2 AND b.number = 1"
    )
    shown = project.genba("facilitate").out
    assert "waits for itself: #1 → #2 → #1" in shown


def test_of_a_hundred_agents_of_one_capability_one_is_recommended(project: Project) -> None:
    project.issue(1, "Add a page")
    for number in range(100):
        project.agent(
            f"maker-{number}",
            commit=False,
            parameters={"issue": {"type": "integer", "cli": "--issue"}},
            actions={"enabled": True, "types": ["issue-action"], "handlers": {"issue-action": "builtin:record"}},
        )
    result = project.genba("facilitate", "--json").json["recommendation"]
    assert len(result["availableAgents"]) > 100
    assert [each["issue"] for each in result["suggestions"]] == [1]


def test_nothing_that_it_is_given_can_start_close_land_or_test_anything() -> None:
    """It gets a place on the blackboard, a reader of the repository, settings and a clock: no port that acts."""
    given = inspect.signature(Facilitator.__init__).parameters
    assert list(given) == ["self", "board", "repository", "settings", "now"]
    assert public(RepositoryReader) == {"alive", "around", "commits", "conditions", "discover", "journals", "scan"}
    reads = {"before", "commits", "kept", "positions", "read", "tasks_of"}
    assert public(FieldBoard) == reads | {"keep", "say", "set_position"}


def public(kind: type) -> set[str]:
    return {name for name in vars(kind) if not name.startswith("_")}
