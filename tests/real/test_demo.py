"""`genba demo --agent claude-code`: the same repository, with a real agent and a scripted model."""

from pathlib import Path

from tests.bubblewrap import needs_bubblewrap
from tests.clis import path_with_clis
from tests.project import Project
from tests.standins.model_server import ModelServer, Run, Say, Write

SLUGS = '''"""Addresses."""

import re


def slugify(title: str) -> str:
    """Small letters and digits, joined by single dashes."""
    return "-".join(re.findall("[a-z0-9]+", title.lower()))
'''


def test_a_real_agent_works_on_the_first_issue_of_the_demo(
    project: Project, model: ModelServer, claude: Path, tmp_path: Path
) -> None:
    needs_bubblewrap()
    work = (
        Write("slugs.py", SLUGS),
        Run("git add slugs.py; git commit -qm 'Add slugify()'; true"),
        Say("slugify() is there, and all tests pass."),
    )
    url = model.rounds("run", work)
    project.environment |= {
        "PATH": path_with_clis(),
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": "sk-only-the-host-holds-this",
        "GENBA_SANDBOX": "bubblewrap",
    }
    home = tmp_path / "demo"

    done = project.genba("demo", "--folder", str(home), "--agent", "claude-code", check=0)

    assert claude.exists()
    assert "● done      builder  1 iteration" in done.out
    assert "1 session · 0 false done · 0 commits lost · main is green at every commit" in done.out
    assert Project(home).git("show", "main:slugs.py") == SLUGS.strip()
