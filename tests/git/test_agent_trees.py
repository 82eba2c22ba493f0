"""The host never starts git in a worktree that an agent can write, and sees in it all that git would see."""

import contextlib
import os
import subprocess
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from genba.connections.git.agent_trees.checkout_files import lay_out
from genba.connections.git.agent_trees.staging import stage
from genba.connections.git.merging.merge import GitRepository
from genba.connections.git.repository.commands import Git
from genba.connections.git.repository.layout import RepositoryLayout
from genba.connections.git.worktrees.worktrees import GitWorkingTrees
from genba.domain.errors import BoundaryViolationError, GitError, StateConflictError
from genba.domain.sessions.workspaces import Workspace
from tests.git.conftest import Floor, request
from tests.project import Project

AUTHOR = "worker <worker@agents.invalid>"
GITLINK = """
git init -q sub && echo one > sub/f && echo '* filter=x' > sub/.gitattributes
git -C sub add -A && git -C sub commit -qm sub
git add sub 2>/dev/null && git commit -qm 'Add a gitlink'
"""
AFTER = "echo more >> sub/f; echo left > uncommitted.txt"
PLANTED = {
    "a filter in a gitlink": f"{GITLINK} git -C sub config filter.x.clean 'SPRING'\n{AFTER}",
    "a filter with a process in a gitlink": f"{GITLINK} git -C sub config filter.x.process 'SPRING'\n{AFTER}",
    "fsmonitor in a gitlink": f"{GITLINK} git -C sub config core.fsmonitor 'SPRING'\n{AFTER}",
    "an included file in a gitlink": f"""{GITLINK}
        printf '[filter "x"]\\n\\tclean = "SPRING"\\n' > evil.cfg
        git -C sub config include.path "$PWD/evil.cfg"\n{AFTER}""",
    "a gitlink whose repository lies elsewhere": f"""{GITLINK}
        git -C sub config filter.x.clean 'SPRING'; mv sub/.git elsewhere; echo "gitdir: $PWD/elsewhere" > sub/.git
        git -C sub config core.worktree "$PWD/sub"\n{AFTER}""",
    "a hook in a gitlink": f"""{GITLINK}
        for hook in post-index-change pre-commit post-checkout reference-transaction; do
            printf '#!/bin/sh\\nSPRING\\n' > sub/.git/hooks/$hook; chmod +x sub/.git/hooks/$hook
        done\n{AFTER}""",
    "a repository that is not committed": """
        git init -q sub && echo one > sub/f && echo '* filter=x' > sub/.gitattributes
        git -C sub add -A && git -C sub commit -qm sub && git -C sub config filter.x.clean 'SPRING'
        git -C sub config core.fsmonitor 'SPRING'\necho more >> sub/f; echo left > uncommitted.txt""",
    "a repository in a folder that is tracked": """
        mkdir src && echo one > src/f && git add -A && git commit -qm src
        git init -q src && git -C src config core.fsmonitor 'SPRING' && git -C src config filter.x.clean 'SPRING'
        echo 'f filter=x' > src/.gitattributes; echo two > src/f; echo left > uncommitted.txt""",
    "attributes": "echo '* filter=x diff=x merge=x text=auto' > .gitattributes; echo left > uncommitted.txt",
}
"""What an agent leaves in its worktree; SPRING is the command that must not run."""
IN_SHARED_SETTINGS = """
git config filter.x.clean 'SPRING'; git config filter.x.smudge 'SPRING'; git config filter.x.process 'SPRING'
git config filter.x.required true
git config core.fsmonitor 'SPRING'; git config diff.external 'SPRING'; git config diff.x.textconv 'SPRING'
git config merge.x.driver 'SPRING'; git config core.hooksPath "$PWD/hooks"; mkdir -p hooks
for hook in post-index-change reference-transaction post-checkout post-commit pre-commit; do
    printf '#!/bin/sh\\nSPRING\\n' > hooks/$hook; chmod +x hooks/$hook
done
echo '* filter=x diff=x merge=x' > .gitattributes; echo left > uncommitted.txt
"""


@pytest.fixture
def trap(tmp_path: Path) -> Path:
    """What only a process of the host can make: the folder is made when the agent is done."""
    return tmp_path / "trap" / "sprung"


def _planted(lines: str, trap: Path) -> str:
    return lines.replace("SPRING", f"touch {trap}; cat")


def _was_made(path: Path) -> bool:
    return path.exists()


async def _everything(trees: object, layout: RepositoryLayout, workspace: Workspace) -> None:
    """All that the host does with the worktree of a session."""
    assert isinstance(trees, GitWorkingTrees) or hasattr(trees, "plain")
    seen = await trees.observe(workspace)  # type: ignore[attr-defined]
    assert "uncommitted.txt" in seen.dirty
    assert "uncommitted.txt" in await trees.uncommitted(Path(workspace.path))  # type: ignore[attr-defined]
    await trees.commit(workspace, "For it\n", AUTHOR)  # type: ignore[attr-defined]
    assert (await trees.observe(workspace)).dirty == ()  # type: ignore[attr-defined]
    await layout.git.run("cat-file", "-e", f"{workspace.branch}:uncommitted.txt")
    with contextlib.suppress(StateConflictError):  # a repository in there, which no ref keeps
        await GitRepository(layout).try_out(workspace, workspace.base)
    await trees.close(workspace)  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", PLANTED)
async def test_nothing_that_an_agent_plants_runs_on_the_host_with_bubblewrap(
    floor: Floor, trap: Path, name: str
) -> None:
    workspace = await floor.open()
    await floor.inside(workspace, _planted(PLANTED[name], trap))
    trap.parent.mkdir()

    await _everything(floor.trees, floor.trees.layout, workspace)

    assert not _was_made(trap)


@pytest.mark.parametrize("name", [*PLANTED, "the settings of the repository"])
async def test_nothing_that_an_agent_plants_runs_on_the_host_without_a_sandbox(
    project: Project, trap: Path, name: str
) -> None:
    layout = await RepositoryLayout.find(project.root)
    trees = GitWorkingTrees(layout)
    workspace = await trees.open(request())
    _as_agent(workspace, _planted(PLANTED.get(name, IN_SHARED_SETTINGS), trap))
    trap.parent.mkdir()

    await _everything(trees, layout, workspace)

    assert not _was_made(trap)
    trees.release()


def _as_agent(workspace: Workspace, lines: str) -> None:
    who = {
        f"GIT_{role}_{what}": "worker@agents.invalid" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
    }
    subprocess.run(["sh", "-c", lines], cwd=workspace.path, env={**os.environ, **who}, check=True, capture_output=True)


@pytest.fixture
async def plain(project: Project) -> AsyncIterator[tuple[RepositoryLayout, Workspace]]:
    """A worktree without a sandbox, with a few files in it."""
    project.write("kept.txt", "kept\n")
    project.write("changed.txt", "before\n")
    project.write("gone.txt", "gone\n")
    project.write("folder/inner.txt", "inner\n")
    project.write("becomes-folder", "a file\n")
    project.write("becomes-file/inner.txt", "inner\n")
    project.write("script.sh", "#!/bin/sh\n")
    project.write(".gitignore", "*.log\n/build/\n!keep.log\n")
    project.write("folder/.gitignore", "local\n")
    project.write("tracked.log", "tracked though it is ignored\n")
    project.write("ends.dat", "one\r\ntwo\r\n")
    project.git("add", "-Af", ".")
    project.git("commit", "-qm", "files")
    layout = await RepositoryLayout.find(project.root)
    trees = GitWorkingTrees(layout)
    yield layout, await trees.open(request())
    trees.release()


def _exchange(tree: Path) -> None:
    (tree / "changed.txt").write_text("after!\n")
    (tree / "gone.txt").unlink()
    (tree / "becomes-folder").unlink()
    (tree / "becomes-folder").mkdir()
    (tree / "becomes-folder" / "new.txt").write_text("new\n")
    (tree / "becomes-file" / "inner.txt").unlink()
    (tree / "becomes-file").rmdir()
    (tree / "becomes-file").write_text("a file now\n")
    (tree / "script.sh").chmod(0o755)
    (tree / "link").symlink_to("/etc/passwd")
    (tree / "ignored.log").write_text("ignored\n")
    (tree / "keep.log").write_text("not ignored\n")
    (tree / "tracked.log").write_text("changed though it is ignored\n")
    (tree / "build").mkdir()
    (tree / "build" / "result").write_text("ignored\n")
    (tree / "folder" / "local").write_text("ignored\n")
    (tree / "new" / "deeper" / "still").mkdir(parents=True)
    (tree / "new" / "deeper" / "still" / "file").write_text("new\n")
    (tree / "new" / ".gitignore").write_text("deeper/other\n")
    (tree / "new" / "deeper" / "other").write_text("ignored\n")
    (tree / ":(glob)*.txt").write_text("a name like a pattern\n")
    (tree / "line\nbreak").write_text("a name of two lines\n")
    (tree / ' "quoted" \\ ').write_text("a name with quotes\n")
    Path(os.fsdecode(os.fsencode(tree) + b"/no-text-\xff")).write_text("a name that is no text\n")
    (tree / "empty").mkdir()
    os.mkfifo(tree / "pipe")


def _attributes(tree: Path) -> None:
    (tree / ".gitattributes").write_text("*.txt text eol=crlf\n")
    (tree / "changed.txt").write_text("one\r\ntwo\r\n")
    (tree / "new.txt").write_text("one\r\ntwo\r\n")


def _touch(tree: Path) -> None:
    for path in tree.rglob("*.txt"):
        path.write_bytes(path.read_bytes())


def _nothing(tree: Path) -> None:
    assert tree.is_dir()


@pytest.mark.parametrize("change", [_exchange, _attributes, _touch, _nothing])
async def test_what_the_host_sees_is_what_git_would_see(
    plain: tuple[RepositoryLayout, Workspace], change: Callable[[Path], None]
) -> None:
    layout, workspace = plain
    tree = Path(workspace.path)
    change(tree)

    seen = await stage(layout.git, tree, Path(workspace.git_dir))

    result = _git(tree, "status", "--porcelain", "-z", "--untracked-files=all", "--no-renames")
    expected = sorted(entry[3:].decode("utf-8", "backslashreplace") for entry in result.split(b"\0") if entry)
    assert sorted(seen.dirty) == expected
    _git(tree, "add", "-A")
    assert (seen.tree or _git(tree, "rev-parse", "HEAD^{tree}").decode().strip()) == _git(
        tree, "write-tree"
    ).decode().strip()


def _git(tree: Path, *words: str) -> bytes:
    return subprocess.run(["git", *words], cwd=tree, check=True, capture_output=True).stdout


async def test_a_folder_that_became_a_link_is_not_followed(
    plain: tuple[RepositoryLayout, Workspace], tmp_path: Path
) -> None:
    layout, workspace = plain
    tree, secret = Path(workspace.path), tmp_path / "secret"
    secret.mkdir()
    (secret / "inner.txt").write_text("SECRET\n")
    (tree / "folder" / "inner.txt").unlink()
    (tree / "folder" / ".gitignore").unlink()
    (tree / "folder").rmdir()
    (tree / "folder").symlink_to(secret)

    seen = await stage(layout.git, tree, Path(workspace.git_dir))
    listed = (await layout.git.run("ls-tree", "-r", seen.tree)).stdout
    assert "120000" in next(line for line in listed.splitlines() if line.endswith("\tfolder"))

    await lay_out(layout.git, tree, Path(workspace.git_dir), workspace.base)
    assert (tree / "folder" / "inner.txt").read_text() == "inner\n"
    assert not (tree / "folder").is_symlink()
    assert (secret / "inner.txt").read_text() == "SECRET\n"


async def test_a_worktree_is_brought_to_a_commit_and_ignored_files_stay(
    plain: tuple[RepositoryLayout, Workspace],
) -> None:
    layout, workspace = plain
    tree, git_dir = Path(workspace.path), Path(workspace.git_dir)
    _exchange(tree)

    await lay_out(layout.git, tree, git_dir, workspace.base)

    left = "new/deeper/other"  # what ignored it was no file of the commit
    assert (await stage(layout.git, tree, git_dir)).dirty == (left,)
    assert (tree / "ignored.log").read_text() == "ignored\n"
    assert (tree / "build" / "result").read_text() == "ignored\n"
    assert not (tree / "new" / "deeper" / "still").exists()
    assert not (tree / "link").is_symlink()
    assert _git(tree, "status", "--porcelain") == b"?? new/\n"


async def test_git_is_refused_in_a_worktree_of_a_sandboxed_session(floor: Floor) -> None:
    workspace = await floor.open()

    with pytest.raises(BoundaryViolationError, match="an agent can write there"):
        await floor.trees.git.run("status", tree=Path(workspace.path), git_dir=Path(workspace.git_dir))


def test_a_git_process_on_the_host_has_no_keys_in_its_environment(project: Project, tmp_path: Path) -> None:
    """A filter of the user's own, in a fresh checkout, shows what git was started with."""
    shown = tmp_path / "environment"
    project.git("config", "filter.show.smudge", f"env > {shown}; cat")
    project.write(".gitattributes", "shown.txt filter=show\n")
    project.write("shown.txt", "shown\n")
    project.commit("shown")
    secrets = ("ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GENBA_FORGE_TOKEN", "GITHUB_TOKEN", "GH_TOKEN",
               "AWS_SECRET_ACCESS_KEY", "SSH_AUTH_SOCK", "GIT_SSH_COMMAND")  # fmt: skip
    project.agent()
    project.environment |= dict.fromkeys(secrets, "secret")

    project.genba("run", "worker", check=0)

    values = dict(line.split("=", 1) for line in shown.read_text().splitlines() if "=" in line)
    assert not set(secrets) & set(values)
    assert "PATH" in values


async def test_a_git_that_takes_too_long_is_stopped_and_named(project: Project, tmp_path: Path) -> None:
    project.git("config", "filter.slow.smudge", "sleep 600; cat")
    project.write(".gitattributes", "slow.txt filter=slow\n")
    project.write("slow.txt", "slow\n")
    project.commit("slow")
    git = Git(project.root / ".git")
    tree = tmp_path / "fresh"
    tree.mkdir()

    with pytest.raises(GitError, match=r"git checkout-index: it took longer than 0\.5 seconds and was stopped"):
        await git.run("checkout-index", "-a", "-f", tree=tree, seconds=0.5)
