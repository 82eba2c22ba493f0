"""Whatever the ground is like, the facilitator gives a clear answer, and never a wrong one."""

from pathlib import Path
from typing import Any

import pytest

from genba.domain.tasks.task import TaskDraft
from tests.project import TESTER, Project


def states(project: Project) -> dict[int, str]:
    return {each["issue"]: each["state"] for each in project.genba("facilitate", "--json").json["assessments"]}


def landed(project: Project) -> None:
    project.issue(1, "Add a page")
    project.issue(2, "Fix the parser")
    project.write("page.txt", "a page\n")
    project.commit("Add a page\n\nIssue: 1")


def test_without_any_agent_of_its_own_a_project_has_the_built_in_ones(project: Project) -> None:
    project.issue(1, "Add a page")
    assert not (project.root / ".agent").exists()
    result = project.genba("facilitate", "--json").json
    assert "iterator" in [each["name"] for each in result["agent_registry"]["agents"]]
    assert result["recommendation"]["nextAgent"] == "iterator"


@pytest.mark.parametrize("broken", ["{", "[]", '{"name": 7}', "\udcff", '{"name": "broken"}'])
def test_a_broken_definition_is_named_and_left_out(project: Project, broken: str) -> None:
    project.issue(1, "Add a page")
    folder = project.root / ".agent" / "broken"
    folder.mkdir(parents=True)
    (folder / "agent.json").write_bytes(broken.encode("utf-8", "surrogateescape"))
    done = project.genba("facilitate")
    assert "the agent broken is left out" in done.err
    assert "genba agent check broken" in done.err
    assert "genba run iterator --issue 1" in done.out
    assert "broken" not in project.genba("facilitate", "--json").json["recommendation"]["availableAgents"]


def test_where_there_is_no_repository_it_says_what_to_do(project: Project, tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    for command in ("status", "facilitate"):
        done = project.genba(command, cwd=tmp_path / "plain", check=1)
        assert "is not inside a git repository" in done.err
        assert "hint: git init" in done.err


def test_a_bare_clone_has_no_place_to_work_from(project: Project, tmp_path: Path) -> None:
    landed(project)
    project.git("clone", "-q", "--bare", str(project.root), str(tmp_path / "bare.git"))
    assert "is a bare repository" in project.genba("status", cwd=tmp_path / "bare.git", check=1).err


def test_with_a_detached_head_the_base_is_the_branch_that_people_mean(project: Project) -> None:
    landed(project)
    project.git("switch", "-q", "--detach")
    assert states(project) == {1: "done", 2: "incomplete"}
    project.git("branch", "-q", "-m", "main", "trunk")
    assert states(project) == {1: "done", 2: "incomplete"}


def test_without_a_base_merged_work_is_unknown(project: Project) -> None:
    landed(project)
    project.write(".genba/config.yaml", "merge:\n  base_branch: nowhere\n")
    done = project.genba("facilitate", check=1)
    assert states(project) == {1: "unknown", 2: "unknown"}
    assert "there is no branch nowhere: what has landed is not seen" in done.out
    assert "not complete: the state of #1, #2 is not known" in done.err
    project.git("branch", "nowhere", "main")
    assert states(project) == {1: "done", 2: "incomplete"}


@pytest.mark.parametrize(
    "title",
    [
        'Evil \x1b[31m"];\n  click i1 call x()\n<script>--> %% end',
        "`rm -rf /` $(rm -rf /) ; rm -rf / #",
        "x" * 500,
        "\u202eevitaler",
        "題名" * 100,
    ],
)
def test_a_hostile_title_breaks_neither_table_nor_graph_nor_command(project: Project, title: str) -> None:
    with project.board() as board:
        board.add(TaskDraft(title="Add a page"), TESTER)
        board.add(TaskDraft(title="Fix the parser"), TESTER)
    project.sql(f"UPDATE tasks SET title = {quoted(title)}, description = {quoted(title * 50)} WHERE number = 1")
    project.genba("task", "depend", "2", "--on", "1", check=0)
    for words in (("status",), ("facilitate",), ("facilitate", "--graph")):
        lines = project.genba(*words).out.splitlines()
        assert all(line.isprintable() for line in lines)
        assert not any("\u202e" in line for line in lines)
    drawn = project.genba("facilitate", "--graph", check=0).out.splitlines()
    assert sum("-->" in line for line in drawn) == 1
    assert not any("click" in line and not line.strip().startswith("i1[") for line in drawn)
    result = project.genba("facilitate", "--json").json
    assert [each["command"] for each in result["assessments"]] == ["genba run iterator --issue 1"] * 2
    project.genba("facilitate", "--apply", check=0)
    assert project.genba("facilitate", "--json", check=0).json["actions"] == []


def test_five_thousand_comments_are_no_matter(project: Project) -> None:
    project.issue(1, "Add a page")
    rows = ", ".join(f"(1, 'human', 'stranger', 'closes #{at}', '2026-01-05T08:00:00.000000Z')" for at in range(5000))
    project.sql(f"INSERT INTO comments (task_id, author_kind, author, body, created_at) VALUES {rows}")
    assert states(project) == {1: "incomplete"}
    project.genba("facilitate", "--apply", check=0)
    assert project.genba("facilitate", "--json", check=0).json["actions"] == []
    assert len(project.genba("facilitate", "--events", check=0).out.splitlines()) == 5001


def test_a_circle_of_a_thousand_issues_is_named(project: Project) -> None:
    with project.board() as board:
        for number in range(1, 1001):
            board.add(TaskDraft(title=f"Part {number}"), TESTER)
    project.sql(
        "INSERT INTO task_dependencies (task_id, depends_on_id)"
        " SELECT a.id, b.id FROM tasks a JOIN tasks b ON b.number = a.number % 1000 + 1"
    )
    values: dict[str, Any] = project.genba("facilitate", "--json").json
    assert {each["state"] for each in values["assessments"]} == {"blocked"}
    assert values["assessments"][0]["evidence"][0].startswith("waits for itself: #1 → #2 → ")
    assert all(len(json_) < 2000 for each in values["assessments"] for json_ in [str(each)])
    broken = {each["name"] for each in values["health"] if not each["holds"]}
    assert broken == {"startable"}
    assert "genba task depend 1 --remove 2" in [each["command"] for each in values["recommendation"]["suggestions"]]


def quoted(text: str) -> str:
    return "CAST(x'" + text.encode().hex() + "' AS TEXT)"
