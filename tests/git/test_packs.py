"""A private repository has what its base leads to, and nothing else of the user's objects."""

import os
import stat
import subprocess
import time
from pathlib import Path

import pytest

from genba.connections.git.private.packs import Packs
from genba.connections.git.repository.layout import RepositoryLayout
from tests.git.conftest import Floor
from tests.project import Project

COMMIT = "echo work > work.txt && git add -A && git commit -qm 'Some work'"
SHOW = "git cat-file -p {} 2>/dev/null"


async def test_an_agent_reads_neither_a_stash_nor_a_deleted_branch_nor_the_work_of_another_session(
    floor: Floor,
) -> None:
    project = floor.project
    project.write("README.md", "a secret in a stash\n")
    project.git("stash", "-q")
    stashed = project.git("rev-parse", "stash@{0}:README.md")
    project.git("switch", "-qc", "gone")
    project.write("secret.txt", "a secret on a deleted branch\n")
    deleted = project.commit("A secret")
    project.git("switch", "-q", "main")
    project.git("branch", "-qD", "gone")
    project.git("branch", "beside", deleted)
    other = await floor.open("genba/other")
    await floor.inside(other, COMMIT)
    theirs = (await floor.trees.observe(other)).head
    workspace = await floor.open()

    for name in (stashed, deleted, f"{deleted}:secret.txt", theirs, f"{theirs}:work.txt"):
        project.git("cat-file", "-e", name)
        assert (await floor.inside(workspace, SHOW.format(name), expect=None)).code != 0, name
    everything = "git cat-file --batch-all-objects --batch-check | cut -d' ' -f1"
    seen = set((await floor.inside(workspace, everything)).stdout.split())
    assert seen == set(project.git("rev-list", "--objects", "--no-object-names", "main").split())
    assert (await floor.inside(workspace, "git reflog; git log --format=%s")).stdout == "Begin\n"


async def test_the_history_of_the_base_is_whole_inside(floor: Floor) -> None:
    for number in range(5):
        floor.project.write("README.md", f"{number}\n")
        floor.project.commit(f"change {number}")
    workspace = await floor.open()

    await floor.inside(
        workspace, f"git fsck --full --strict && git log -p && git blame README.md && {COMMIT} && git gc -q"
    )
    facts = await floor.trees.observe(workspace)

    assert [commit.subject for commit in facts.commits] == ["Some work"]
    assert floor.project.git("fsck", "--no-dangling") == ""


async def test_what_was_committed_for_an_agent_is_in_its_private_repository(floor: Floor) -> None:
    workspace = await floor.open()
    Path(workspace.path, "left.txt").write_text("left\n")  # noqa: ASYNC240
    await floor.trees.commit(workspace, "For it\n", "worker <worker@agents.invalid>")

    seen = await floor.inside(workspace, "git fsck --full && git show HEAD:left.txt && git log --format=%s")

    assert seen.stdout.endswith("left\nFor it\nBegin\n")


async def test_the_pack_of_an_earlier_commit_is_taken_over(project: Project) -> None:
    packs = Packs(await RepositoryLayout.find(project.root))
    (project.root / "large").write_bytes(os.urandom(2 * 1024 * 1024))
    first = project.commit("large")
    before = await packs.ensure(first)
    project.write("more.txt", "more\n")
    second = project.commit("more")
    aside = project.git("commit-tree", "-m", "aside", "HEAD^{tree}")

    after, beside = await packs.ensure(second), await packs.ensure(aside)

    names = {path.name for path in (before / "pack").iterdir()}
    assert names < {path.name for path in (after / "pack").iterdir()}
    assert not names & {path.name for path in (beside / "pack").iterdir()}
    assert _objects(beside) == set(project.git("rev-list", "--objects", "--no-object-names", aside).split())
    assert _objects(after) == set(project.git("rev-list", "--objects", "--no-object-names", second).split())


def _objects(folder: Path) -> set[str]:
    found: set[str] = set()
    for index in (folder / "pack").glob("*.idx"):
        with index.open("rb") as file:
            listed = subprocess.run(["git", "show-index"], stdin=file, capture_output=True, text=True, check=True)
        found |= {line.split()[1] for line in listed.stdout.splitlines()}
    return found


async def test_packs_that_no_session_uses_are_cleared_away(floor: Floor) -> None:
    """And so is what a process had begun to make that was killed."""
    project, packs = floor.project, Packs(floor.trees.layout)
    workspace = await floor.open()
    made = []
    for number in range(6):
        project.write("README.md", f"{number}\n")
        made.append(project.commit(f"change {number}"))
        await packs.ensure(made[-1])
        os.utime(packs.root / made[-1], (number, number))
    os.utime(packs.root / workspace.base, (0, 0))
    (packs.root / f"{made[0]}.new-999999" / "objects").mkdir(parents=True)
    project.write("README.md", "last\n")

    await packs.ensure(project.commit("last"))

    left = {path.name for path in packs.root.iterdir()}
    assert workspace.base in left
    assert not [name for name in left if ".new-" in name]
    assert set(made) & left == set(made[-3:])
    assert packs.unused(time.time() - 3600)


FIRST = (
    ("init",),
    ("task", "add", "A task"),
    ("run", "worker"),
    ("verify", "main"),
    ("doctor",),
    ("gc",),
    ("status",),
    ("agent", "register", "me"),
)


@pytest.mark.parametrize("words", FIRST, ids=" ".join)
def test_whichever_command_is_the_first_makes_a_folder_that_is_closed(project: Project, words: tuple[str, ...]) -> None:
    project.agent()
    assert not (project.root / ".git/genba").exists()

    mask = os.umask(0)
    try:
        project.genba(*words, check=None)
    finally:
        os.umask(mask)

    own = project.root / ".git/genba"
    assert not own.exists() or stat.S_IMODE(own.stat().st_mode) == 0o700


def test_a_look_closes_a_folder_that_an_older_version_left_open(project: Project) -> None:
    (project.root / ".git/genba").mkdir(mode=0o755)

    project.genba("agent", "list", check=0)

    assert stat.S_IMODE((project.root / ".git/genba").stat().st_mode) == 0o700


def test_no_other_user_enters_the_folder_of_the_worktrees(project: Project) -> None:
    """A program with a setuid bit, or a socket, that an agent leaves there would serve others of the machine."""
    project.agent(script={"turns": [{"do": [{"run": "cp /bin/true own && chmod 4755 own"}], "reply": "done"}]})
    (project.root / ".worktrees").mkdir(mode=0o755)

    project.genba("run", "worker", "--no-merge", check=0)

    assert stat.S_IMODE((project.root / ".worktrees").stat().st_mode) == 0o700


def test_the_folders_of_genba_are_closed_to_other_users(project: Project) -> None:
    project.agent()
    (project.root / ".git/genba/runs").mkdir(parents=True)
    (project.root / ".git/genba").chmod(0o755)

    project.genba("run", "worker", check=0)

    own = project.root / ".git/genba"
    folders = [own, *(path for path in own.iterdir() if path.is_dir())]
    assert {str(path.relative_to(own)): stat.S_IMODE(path.stat().st_mode) for path in folders} == {
        str(path.relative_to(own)): 0o700 for path in folders
    }
