"""What the page about real agents shows is what the real Claude Code prints, with a scripted model."""

from pathlib import Path

from genba.domain.tasks.task import TaskStatus
from tests.bubblewrap import bubblewrap_problem
from tests.clis import path_with_clis
from tests.project import Project
from tests.standins.model_server import Answer, ModelServer, Run
from tests.test_docs import ROOT, blocks
from tests.test_stories import same_every_time, shown_runs, type_in, yaml_blocks

PAGE = ROOT / "docs" / "how-to" / "real-agents.md"
MODEL = {
    "# Understand issue": (Answer({"plan": "Add a line to the menu.", "next_action": {"action": "next"}}),),
    "# Work on": (
        Run("echo 'green tea: 3' >> MENU.md"),
        Run("git add -A && git commit -qm 'Add green tea to the menu'"),
        Answer({"summary": "Green tea is on the menu.", "next_action": {"action": "next"}}),
    ),
    "# Review your work": (Answer({"findings": [], "next_action": {"action": "next"}}),),
    "# Close issue": (Answer({"status": "completed", "next_action": {"action": "closing"}}),),
}


def test_an_issue_goes_from_the_command_to_the_merge_as_the_page_tells(
    project: Project, claude: Path, model: ModelServer
) -> None:
    assert claude.is_file()
    project.write("MENU.md", "black tea: 2\n")
    project.write(".genba/config.yaml", yaml_blocks(PAGE)[0])
    project.commit("A menu")
    project.environment |= {
        "PATH": path_with_clis(),
        "ANTHROPIC_API_KEY": "sk-ant-only-the-host-holds-this",
        "ANTHROPIC_BASE_URL": model.answers("menu", MODEL),
        "GENBA_SANDBOX": "worktree" if bubblewrap_problem() else "",
    }
    [shown] = [content for marker, content in blocks(PAGE) if marker == "console"]
    adding, running = (part.partition("\n") for part in shown.split("$ ")[1:])
    for command, _, printed in (adding, running):
        assert same_every_time(type_in(project, command)) == same_every_time(printed)
    assert len(shown_runs(PAGE)) == 1
    assert project.read("MENU.md") == "black tea: 2\ngreen tea: 3\n"
    assert project.task(1).status is TaskStatus.DONE
