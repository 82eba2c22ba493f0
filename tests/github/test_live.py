"""The story for a repository of the user's own, tried on the GitHub of the tests."""

import subprocess
import sys
from pathlib import Path

from tests.github.shops import SHOP, TOKEN, settled
from tests.project import Project, ordinary_environment
from tests.standins.github.server import GitHub

ROOT = Path(__file__).parents[2]


def walk(hub: GitHub, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tests.github.live", SHOP],
        cwd=ROOT,
        env={**ordinary_environment(), "GENBA_SANDBOX": "worktree", "GENBA_LIVE_URL": hub.url, **environment},
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_the_whole_story_holds_and_leaves_no_branch(project: Project, hub: GitHub) -> None:
    shop = settled(project, hub)
    shop.publish()
    before = shop.tip("main")
    done = walk(hub, GENBA_GITHUB_TOKEN=TOKEN)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "the whole story holds" in done.stdout
    assert TOKEN not in done.stdout + done.stderr
    branches = project.git("--git-dir", str(hub.git_dir(SHOP)), "for-each-ref", "--format=%(refname)", "refs/heads")
    assert branches.splitlines() == ["refs/heads/main"]
    assert shop.tip("main") == before
    [pull] = shop.pulls()
    assert pull.merged
    assert hub.issue(SHOP, 1).state == "closed"


def test_without_a_token_it_says_how_to_give_one(hub: GitHub) -> None:
    done = walk(hub, GENBA_GITHUB_TOKEN="", GITHUB_TOKEN="", GH_TOKEN="", PATH="/usr/bin:/bin")
    assert done.returncode == 1
    assert "GENBA_GITHUB_TOKEN" in done.stderr
