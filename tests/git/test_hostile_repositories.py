"""What an instance plants in its repository is never run by the host, never let in, and named when it is seen."""

import contextlib
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from genba.connections.git.private.bundles import BundleLimits
from genba.connections.git.private.sandboxed_worktrees import SandboxedWorktrees
from genba.connections.git.repository.layout import RepositoryLayout
from genba.domain.errors import BoundaryViolationError, GenbaError, GitError
from genba.domain.processes import Command, Ending, Exit, OutputListener
from genba.domain.sessions.sandbox import SandboxSpec
from genba.domain.sessions.workspaces import Workspace
from tests.git.conftest import Floor, request
from tests.project import Project

COMMIT = "echo work > work.txt && git add -A && git commit -qm 'Some work'"


async def _is_rescued(floor: Floor, workspace: Workspace) -> None:
    removal = await floor.trees.close(workspace)
    assert not removal.removed
    assert workspace.run in removal.reason
    assert floor.project.git("show", f"{removal.rescued}:work.txt") == "work"
    assert floor.project.git("fsck", "--no-dangling") == ""


def _was_made(path: Path) -> bool:
    return path.exists()


@pytest.fixture
def trap(tmp_path: Path) -> Path:
    return tmp_path / "trap" / "sprung"


async def test_planted_settings_hooks_and_filters_are_never_run_outside(floor: Floor, trap: Path) -> None:
    trap.parent.mkdir()
    workspace = await floor.open()
    spring = f"sh -c 'touch {trap}; cat'"
    planted = " && ".join(
        f'git config {name} "{spring}"'
        for name in ("core.fsmonitor", "diff.external", "filter.x.clean", "filter.x.smudge", "core.sshCommand",
                     "core.alternateRefsCommand", "uploadpack.packObjectsHook", "core.pager", "gpg.program")
    )  # fmt: skip
    hooks = "mkdir -p .hooks && git config core.hooksPath $PWD/.hooks"
    for name in ("post-commit", "post-index-change", "reference-transaction", "post-checkout"):
        hooks += f" && printf '#!/bin/sh\\ntouch {trap}\\n' > .hooks/{name} && chmod +x .hooks/{name}"
    nested = (
        f'git init -q sub && git -C sub config core.fsmonitor "{spring}" && git -C sub commit -q --allow-empty -m sub'
    )
    await floor.inside(workspace, f"{COMMIT}; {planted}; {hooks}; echo '* filter=x' > .gitattributes; {nested}")
    await floor.inside(workspace, "git add -A; git commit -qm planted; echo more >> work.txt", expect=None)

    await floor.trees.observe(workspace)
    await floor.trees.commit(workspace, "For it\n", "worker <worker@agents.invalid>")
    await floor.trees.close(workspace)

    assert not _was_made(trap)


async def test_a_repository_that_fetches_what_it_lacks_runs_nothing(floor: Floor, trap: Path) -> None:
    trap.parent.mkdir()
    workspace = await floor.open()
    lines = (
        COMMIT, "git config extensions.partialClone evil", "git config core.repositoryformatversion 1",
        "git config remote.evil.promisor true", "git config protocol.ext.allow always",
        f"git config remote.evil.url 'ext::sh -c \"touch {trap} $PWD/ran\"'",
        "rm -f $(git rev-parse --git-dir)/objects/$(git rev-parse HEAD^{tree} | sed 's,^..,&/,')",
    )  # fmt: skip
    await floor.inside(workspace, " && ".join(lines))

    with pytest.raises(GenbaError):
        await floor.trees.observe(workspace)

    assert not _was_made(trap)
    assert not _was_made(Path(workspace.path) / "ran")
    await _is_rescued(floor, workspace)


EVIL_TREE = """
blob=$(echo evil | git hash-object -w --stdin)
inner=$(printf "100644 blob $blob\\tconfig\\n" | git mktree)
tree=$(printf "040000 tree $inner\\t.GIT\\n100644 blob $blob\\twork.txt\\n" | git mktree)
git update-ref refs/heads/genba/work $(git commit-tree $tree -p HEAD -m evil)
echo work > work.txt
"""


@pytest.mark.parametrize("padding", [0, 200])
async def test_a_tree_that_would_write_into_a_git_folder_is_refused(floor: Floor, padding: int) -> None:
    workspace = await floor.open()
    many = f"for i in $(seq 1 {padding}); do echo $i > f$i; done; git add -A; git commit -q --allow-empty -m many;"

    await floor.inside(workspace, many + EVIL_TREE)

    with pytest.raises(BoundaryViolationError, match=r"refused: .*\.git"):
        await floor.trees.observe(workspace)
    assert floor.project.git("rev-parse", "genba/work") == workspace.base
    await _is_rescued(floor, workspace)


@pytest.mark.parametrize(
    "line",
    [
        "rm -f $G/objects/??/*",
        "echo /nowhere > $G/objects/info/alternates",
        "printf 'garbage' > $G/refs/heads/genba/work",
        "echo 0123456789012345678901234567890123456789 > $G/refs/heads/genba/work",
        "rm -rf $G/objects && ln -s /etc $G/objects",
        "echo 'broken [' > $G/config",
        "rm -rf $G/*",
    ],
)
async def test_a_repository_that_was_broken_is_reported_and_its_files_are_rescued(floor: Floor, line: str) -> None:
    workspace = await floor.open()
    await floor.inside(workspace, f"G=$(git rev-parse --git-dir); {COMMIT}; {line}", expect=None)

    with pytest.raises((GitError, BoundaryViolationError), match=workspace.run):
        await floor.trees.observe(workspace)

    await _is_rescued(floor, workspace)


@pytest.mark.parametrize("name", ["HEAD", "packed-refs", "refs", "index", "info", "logs"])
async def test_links_in_the_place_of_what_git_keeps_lead_the_host_nowhere(
    floor: Floor, tmp_path: Path, name: str
) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "HEAD").write_text("ref: refs/heads/stolen\n")
    workspace = await floor.open()
    target = secret / "HEAD" if name in ("HEAD", "packed-refs", "index") else secret
    line = f"G=$(git rev-parse --git-dir); {COMMIT}; rm -rf $G/{name}; ln -s {target} $G/{name}"
    await floor.inside(workspace, line, expect=None)
    before = {path: path.read_bytes() for path in secret.iterdir()}

    with contextlib.suppress(GitError, BoundaryViolationError):
        assert (await floor.trees.observe(workspace)).strayed in ("", "no branch")
        await floor.trees.commit(workspace, "For it\n", "worker <worker@agents.invalid>")

    assert {path: path.read_bytes() for path in secret.iterdir()} == before


async def test_names_with_a_meaning_elsewhere_stay_names(floor: Floor) -> None:
    workspace = await floor.open()
    names = ("--upload-pack=x", "x%2Fy", "ünï/cödé", "a.lock.b", "refs/heads/main", "x/@", "a" * 180, "$HOME`x`")
    lines = " ; ".join(f"git update-ref 'refs/heads/{name}' HEAD" for name in names)

    await floor.inside(
        workspace, f"{COMMIT} && git switch -q --detach && git commit -q --allow-empty -m aside; {lines}; true"
    )
    facts = await floor.trees.observe(workspace)

    assert facts.strayed == "no branch"
    assert floor.project.branches() == ["genba/work", "main"]
    kept = floor.project.git("for-each-ref", "--format=%(refname)", f"refs/genba/private/{workspace.run}").splitlines()
    assert len(kept) > len(names) / 2
    assert (await floor.trees.close(workspace)).removed


async def test_more_than_may_come_back_is_named_and_kept(floor: Floor) -> None:
    small = await floor.anew(limits=BundleLimits(bytes=256 * 1024))
    workspace = await small.open()
    await small.inside(workspace, f"head -c 1000000 /dev/urandom > big; {COMMIT}")

    with pytest.raises(GenbaError, match=workspace.run):
        await small.trees.observe(workspace)

    await _is_rescued(small, workspace)


async def test_more_refs_than_anybody_needs_are_named(floor: Floor) -> None:
    few = await floor.anew(limits=BundleLimits(refs=50))
    workspace = await few.open()
    await few.inside(
        workspace, COMMIT + "; for i in $(seq 1 100); do echo create refs/heads/b$i HEAD; done | git update-ref --stdin"
    )

    with pytest.raises(BoundaryViolationError, match="102 refs"):
        await few.trees.observe(workspace)

    await _is_rescued(few, workspace)


async def test_a_repository_that_keeps_git_waiting_is_left_when_its_time_is_up(floor: Floor) -> None:
    short = await floor.anew(limits=BundleLimits(seconds=3))
    workspace = await short.open()
    await short.inside(workspace, f"{COMMIT}; cd $(git rev-parse --git-dir) && rm -f packed-refs && mkfifo packed-refs")

    began = time.monotonic()
    with pytest.raises(GitError, match=rf"{workspace.run} could not .*git (timed out|went silent) after"):
        await short.trees.observe(workspace)

    assert time.monotonic() - began < 60
    await _is_rescued(short, workspace)


async def test_a_folder_that_was_closed_to_everybody_is_opened_again(floor: Floor) -> None:
    workspace = await floor.open()
    await floor.inside(workspace, f"G=$(git rev-parse --git-dir); {COMMIT}; chmod 0 $G/refs $G")

    with contextlib.suppress(GitError):  # an ordinary user cannot read it inside either
        await floor.trees.observe(workspace)
    removal = await floor.trees.close(workspace)

    assert removal.removed or workspace.run in removal.reason


class LyingSandbox:
    def __init__(self, result: Callable[[Path], None]) -> None:
        self.told = result
        self.outbox = Path()
        self.ports: Mapping[str, int] = {}

    def problem(self) -> str:
        return ""

    async def open(self, spec: SandboxSpec) -> "LyingSandbox":
        self.outbox = Path(spec.tree)
        return self

    async def run(self, command: Command, received: OutputListener) -> Exit:  # noqa: ARG002
        self.told(self.outbox)
        return Exit(ending=Ending.EXITED, code=0, stdout="", stderr="", seconds=0.0)

    async def sweep(self, mark: str) -> int:  # noqa: ARG002
        return 0

    async def close(self) -> None:
        return


def _list(outbox: Path, text: str) -> None:
    (outbox / "refs").write_text(text)


def _bundle(content: bytes) -> Callable[[Path], None]:
    def tell(outbox: Path) -> None:
        _list(outbox, "")
        (outbox / "bundle").write_bytes(content)

    return tell


def _fifo(outbox: Path) -> None:
    _list(outbox, "")
    os.mkfifo(outbox / "bundle")


def _link(outbox: Path) -> None:
    _list(outbox, "")
    (outbox / "bundle").symlink_to("/etc/passwd")


@pytest.mark.parametrize(
    "result",
    [
        lambda _outbox: None,
        lambda outbox: os.mkfifo(outbox / "refs"),
        lambda outbox: (outbox / "refs").symlink_to("/etc/passwd"),
        lambda outbox: _list(outbox, "not a list\n"),
        lambda outbox: _list(outbox, f"{'0' * 40} refs/heads/x\n"),
        lambda outbox: _list(outbox, f"{'1' * 40} --output=/tmp/x\n"),
        lambda outbox: _list(outbox, "x" * (5 * 1024 * 1024)),
        _fifo,
        _link,
        _bundle(b""),
        _bundle(b"# v2 git bundle\n"),
        _bundle(b"# v2 git bundle\n\nPACK garbage"),
        _bundle(b"# v2 git bundle\n\nPACK\0\0\0\2\0\0\0\1"),
        _bundle(b"# v2 git bundle\n\nPACK\0\0\0\2\xff\xff\xff\xff"),
        _bundle(b"-" * 5_000_000),
    ],
)
async def test_output_of_the_sandbox_is_only_read(project: Project, result: Callable[[Path], None]) -> None:
    trees = SandboxedWorktrees(await RepositoryLayout.find(project.root), LyingSandbox(result))
    workspace = await trees.open(request())
    inside = Path(workspace.git_dir).parent.parent / "genba/private" / Path(workspace.git_dir).name / "repository"
    (inside / "HEAD").write_text("ref: refs/heads/elsewhere\n")
    (inside / "config").write_text("[core]\n\tbare = false\n")  # not as it was made: it takes git to read the rest

    with pytest.raises(BoundaryViolationError, match=workspace.run):
        await trees.observe(workspace)

    assert project.git("rev-parse", "genba/work") == workspace.base
    assert project.git("fsck", "--no-dangling") == ""
    trees.release()
