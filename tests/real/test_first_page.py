"""The path of a newcomer: the five commands of the first page, typed as they stand, end with a merged task."""

from pathlib import Path

from genba.domain.tasks.task import TaskStatus
from tests.bubblewrap import bubblewrap_problem
from tests.clis import path_with_clis
from tests.project import Project
from tests.real.test_page_of_real_agents import MODEL
from tests.standins.model_server import ModelServer
from tests.test_docs import ROOT, blocks
from tests.test_stories import type_in

TEST = """\
import pathlib
import unittest


class Menu(unittest.TestCase):
    def test_every_line_has_a_price(self):
        for line in pathlib.Path("MENU.md").read_text().splitlines():
            self.assertRegex(line, ": [0-9]+$")
"""


def five_commands() -> list[str]:
    """The block that begins with `genba init`: of the first page, and the same in the quickstart."""
    pages = (ROOT / "README.md", ROOT / "docs" / "quickstart.md")
    shown = {text for page in pages for _, text in blocks(page) if text.startswith("genba init")}
    [commands] = shown
    return commands.splitlines()


def test_the_five_commands_of_the_first_page_end_with_a_merged_task(
    project: Project, claude: Path, model: ModelServer
) -> None:
    assert claude.is_file()
    project.write("MENU.md", "black tea: 2\n")
    project.write("tests/__init__.py", "")
    project.write("tests/test_menu.py", TEST)
    project.write("pyproject.toml", '[project]\nname = "menu"\nversion = "1"\n')
    project.commit("A menu")
    project.environment |= {
        "PATH": path_with_clis(),
        "ANTHROPIC_API_KEY": "sk-ant-only-the-host-holds-this",
        "ANTHROPIC_BASE_URL": model.answers("menu", MODEL),
        "GENBA_SANDBOX": "worktree" if bubblewrap_problem() else "",
    }
    commands = five_commands()
    assert len(commands) == 5
    printed = [type_in(project, command) for command in commands]

    assert project.task(1).status is TaskStatus.DONE, "\n".join(printed)
    assert project.git("show", "main:MENU.md") == "black tea: 2\ngreen tea: 3"
    assert "main done" in printed[2]
