"""A little work is read from the files of the private repository: nothing is started for it, and nothing believed."""

import os
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from genba.connections.git.private.sandboxed_worktrees import SandboxedWorktrees
from genba.connections.git.repository.layout import RepositoryLayout
from genba.domain.errors import BoundaryViolationError
from genba.domain.sessions.sandbox import SandboxSpec
from genba.domain.sessions.workspaces import Workspace
from tests.git.conftest import Floor
from tests.project import Project

COMMIT = "echo work > work.txt && git add -A && git commit -qm 'Some work'"
NEEDED = "somebody wanted walls"


class NoSandbox:
    """Where these are wanted, something would have been started."""

    def problem(self) -> str:
        return ""

    async def open(self, spec: SandboxSpec) -> "NoSandbox":  # noqa: ARG002
        raise BoundaryViolationError(NEEDED)

    async def run(self, *_: object) -> None:
        raise NotImplementedError

    async def sweep(self, *_: object) -> None:
        raise NotImplementedError


async def _without_sandbox(project: Project) -> SandboxedWorktrees:
    return SandboxedWorktrees(await RepositoryLayout.find(project.root), NoSandbox())  # type: ignore[arg-type]


def _private(workspace: Workspace) -> Path:
    own = Path(workspace.git_dir)
    return own.parent.parent / "genba" / "private" / own.name / "repository"


@pytest.mark.parametrize(
    "line",
    [
        COMMIT,
        f"mkdir -p a/b && echo deep > a/b/deep.txt && {COMMIT} && git rm -q -r a && git commit -qm 'Fewer files'",
        f"{COMMIT} && git tag -a -m noted v1 && git branch other && git commit -q --allow-empty -m more",
        f"{COMMIT} && git pack-refs --all && git commit -q --allow-empty -m 'Past the list'",
        f"{COMMIT} && git switch -q -c side && echo s > side.txt && git add -A && git commit -qm Side"
        " && git switch -q - && git merge -q --no-ff -m Joined side",
        f"{COMMIT} && git update-index --add --cacheinfo 160000,{'12' * 20},sub && git commit -qm Borrowed"
        " && git rm -q --cached sub && git commit -qm Returned",
    ],
)
async def test_a_little_work_arrives_and_nothing_is_started_for_it(floor: Floor, line: str) -> None:
    workspace = await floor.open()
    done = await floor.inside(workspace, f"{line} >/dev/null; git rev-parse HEAD")

    facts = await (await _without_sandbox(floor.project)).observe(workspace)

    assert facts.head == done.stdout.strip() == floor.project.git("rev-parse", "genba/work")
    assert "work.txt" in facts.changed_files
    assert not facts.dirty
    assert floor.project.git("fsck", "--strict", "--no-dangling") == ""


async def test_what_was_never_committed_does_not_come_along(floor: Floor) -> None:
    workspace = await floor.open()
    line = "echo secret > x && git add x && git rev-parse :x && git rm -q -f --cached x && rm x"
    secret = (await floor.inside(workspace, f"{line} && {COMMIT}")).stdout.strip()

    await (await _without_sandbox(floor.project)).observe(workspace)

    assert floor.project.git("rev-parse", "genba/work") != workspace.base
    assert len(secret) in (40, 64)
    assert not (floor.project.root / ".git" / "objects" / secret[:2] / secret[2:]).exists()


@pytest.mark.parametrize(
    "line",
    [
        f"head -c 5000000 /dev/urandom > large; {COMMIT}",
        f"head -c 5000000 /dev/zero > large; {COMMIT}",
        f"for i in $(seq 1 120); do echo $i > f$i; done; {COMMIT}",
        f"{COMMIT} && git repack -q -a -d",
        f"{COMMIT} && git config user.nickname Somebody",
        f"{COMMIT} && git symbolic-ref refs/heads/pointer HEAD",
        f"{COMMIT} && git branch 'ünï'",
        f"{COMMIT} && for i in $(seq 1 60); do echo create refs/heads/b$i HEAD; done | git update-ref --stdin",
    ],
)
async def test_what_is_large_or_out_of_the_ordinary_is_left_to_git(floor: Floor, line: str) -> None:
    workspace = await floor.open()
    await floor.inside(workspace, line)

    with pytest.raises(BoundaryViolationError, match=NEEDED):
        await (await _without_sandbox(floor.project)).observe(workspace)
    assert floor.project.git("rev-parse", "genba/work") == workspace.base

    assert "work.txt" in (await floor.trees.observe(workspace)).changed_files


def _other_content(file: Path) -> None:
    file.write_bytes(zlib.compress(b"blob 6\0forged"))


def _bomb(file: Path) -> None:
    file.write_bytes(zlib.compress(b"blob 50000000\0" + bytes(50_000_000), 1))


def _cut_off(file: Path) -> None:
    file.write_bytes(zlib.compress(b"blob 5\0work\n")[:-6])


def _wrong_size(file: Path) -> None:
    file.write_bytes(zlib.compress(b"blob 4\0work\n"))


def _gone(_file: Path) -> None:
    return


def _link(file: Path) -> None:
    stored = file.parent.parent.parent.parent / "elsewhere"
    stored.write_bytes(zlib.compress(b"blob 5\0work\n"))
    file.symlink_to(stored)


def _link_in_the_place_of_its_folder(file: Path) -> None:
    moved = file.parent.parent.parent.parent / "moved"
    file.parent.rename(moved)
    (moved / file.name).write_bytes(zlib.compress(b"blob 5\0work\n"))
    file.parent.symlink_to(moved)


@pytest.mark.parametrize(
    "forge",
    [_other_content, _bomb, _cut_off, _wrong_size, _gone, _link, _link_in_the_place_of_its_folder, os.mkfifo],
)
async def test_an_object_that_is_not_what_it_says_is_not_let_in(floor: Floor, forge: Callable[[Path], None]) -> None:
    workspace = await floor.open()
    name = (await floor.inside(workspace, f"{COMMIT} && git rev-parse HEAD:work.txt")).stdout.strip()
    before = floor.project.git("count-objects")
    file = _private(workspace) / "objects" / name[:2] / name[2:]
    file.unlink()
    forge(file)

    with pytest.raises(BoundaryViolationError, match=NEEDED):
        await (await _without_sandbox(floor.project)).observe(workspace)

    assert floor.project.git("rev-parse", "genba/work") == workspace.base
    assert floor.project.git("count-objects") == before
    assert floor.project.git("fsck", "--no-dangling") == ""


@pytest.mark.parametrize("name", ["objects", "refs", "packed-refs", "config", "objects/info"])
async def test_no_link_is_followed_on_the_way_to_the_work(floor: Floor, tmp_path: Path, name: str) -> None:
    workspace = await floor.open()
    await floor.inside(workspace, COMMIT)
    place = _private(workspace) / name
    place.rename(tmp_path / "moved")
    place.symlink_to(tmp_path / "moved")

    with pytest.raises(BoundaryViolationError, match=NEEDED):
        await (await _without_sandbox(floor.project)).observe(workspace)

    assert floor.project.git("rev-parse", "genba/work") == workspace.base


async def test_a_broken_tree_in_a_commit_is_refused_as_it_is_from_a_bundle(floor: Floor) -> None:
    workspace = await floor.open()
    done = await floor.inside(workspace, f"{COMMIT} && git rev-parse HEAD:work.txt")
    (Path(workspace.path) / "tree").write_bytes(b"100644 .git\0" + bytes.fromhex(done.stdout.strip()))
    tree = "$(git hash-object --literally -t tree -w tree)"
    await floor.inside(workspace, f"git update-ref HEAD $(git commit-tree -m bad -p HEAD {tree}) && rm tree")

    with pytest.raises(BoundaryViolationError, match=NEEDED):
        await (await _without_sandbox(floor.project)).observe(workspace)
    with pytest.raises(BoundaryViolationError, match="refused"):
        await floor.trees.observe(workspace)

    assert floor.project.git("rev-parse", "genba/work") == workspace.base
