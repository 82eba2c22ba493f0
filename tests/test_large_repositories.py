"""Large repositories: a working tree is a thin layer over one template, and the user never finds it empty."""

import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from genba.connections.git.merging.merge import GitRepository
from genba.connections.git.private.sandboxed_worktrees import SandboxedWorktrees
from genba.connections.git.repository.layout import RepositoryLayout, is_folder
from genba.connections.git.worktrees.overlay_mount import overlay_problem
from genba.connections.git.worktrees.worktrees import GitWorkingTrees
from genba.connections.processes.supervisor import ProcessSupervisor
from genba.connections.sandbox.bubblewrap.bubblewrap import BubblewrapSandbox
from genba.domain.sessions.workspaces import Workspace
from tests.bubblewrap import needs_bubblewrap
from tests.git.conftest import Floor
from tests.project import Project, until

LARGE = 30
COMMIT = "git add -A && git commit -qm 'Some work'"


@pytest.fixture
async def floor(project: Project, tmp_path: Path) -> AsyncIterator[Floor]:
    """A repository that counts as large, with overlays."""
    needs_bubblewrap()
    sandbox = BubblewrapSandbox(ProcessSupervisor())
    if problem := overlay_problem(tmp_path):
        pytest.skip(f"NOT RUN: {problem}")
    for number in range(LARGE):
        project.write(f"src/{number % 5}/{number}.txt", f"file {number}\n")
    project.commit("Many files")
    made = Floor(project, SandboxedWorktrees(await RepositoryLayout.find(project.root), sandbox), sandbox, tmp_path)
    made = await made.anew(overlays=True, large=LARGE)
    yield made
    made.trees.release()


async def _again(floor: Floor) -> Floor:
    return await floor.anew(overlays=True, large=LARGE)


def _entries(folder: str | Path) -> set[str]:
    return {path.name for path in Path(folder).iterdir()}


async def test_the_instance_sees_every_file_and_writes_beside_the_template(floor: Floor) -> None:
    workspace = await floor.open()

    seen = await floor.inside(
        workspace, "cat src/2/7.txt; git status --porcelain; echo x > src/2/7.txt; rm src/1/1.txt"
    )
    facts = await floor.trees.observe(workspace)

    assert seen.stdout == "file 7\n"
    assert workspace.overlay is not None
    assert _entries(workspace.path) == {".git"}
    assert facts.dirty == ("src/1/1.txt", "src/2/7.txt")
    lower = Path(workspace.overlay.lower)
    assert (lower / "src/2/7.txt").read_text() == "file 7\n"
    assert (lower / "src/1/1.txt").exists()
    assert "src/1/1.txt" not in floor.project.git("ls-tree", "-r", "--name-only", facts.tree)


async def test_a_small_repository_has_plain_folders(project: Project, floor: Floor) -> None:
    small = await floor.anew(overlays=True, large=LARGE * 100)

    workspace = await small.open()

    assert workspace.overlay is None
    assert (Path(workspace.path) / "README.md").is_file()
    small.trees.release()


async def test_two_trees_of_one_commit_share_its_template_and_nothing_else(floor: Floor) -> None:
    one, two = await floor.open("genba/one"), await floor.open("genba/two")

    await floor.inside(one, f"echo one > README.md; rm -r src/3; {COMMIT}")

    assert (
        await floor.inside(two, "cat README.md; ls src/3 | wc -l; git status --porcelain")
    ).stdout == "# A project\n6\n"
    assert one.overlay is not None
    assert two.overlay is not None
    assert one.overlay.lower == two.overlay.lower
    assert len((await floor.trees.observe(one)).changed_files) == 7
    assert (await floor.trees.observe(two)).commits == ()


async def test_commits_uncommitted_work_and_merges_are_as_in_a_plain_tree(floor: Floor) -> None:
    workspace = await floor.open()
    await floor.inside(workspace, f"echo new > new.txt; rm -r src/4; {COMMIT}; echo loose > loose.txt")
    facts = await floor.trees.observe(workspace)
    assert (facts.dirty, len(facts.commits)) == (("loose.txt",), 1)
    floor.project.write("meanwhile.txt", "on main\n")
    floor.project.commit("Meanwhile")
    repository = GitRepository(floor.trees.layout)
    proposal = await repository.propose(workspace, "Merge it\n")

    rescued = await repository.try_out(workspace, proposal.commit, adopt=True)

    assert floor.project.git("show", f"{rescued}:loose.txt") == "loose"
    seen = await floor.inside(workspace, "cat meanwhile.txt new.txt; ls src | wc -l; git status --porcelain")
    assert seen.stdout == "on main\nnew\n4\n"
    assert (await floor.trees.observe(workspace)).dirty == ()
    assert (await floor.trees.close(workspace)).removed


async def test_a_branch_with_commits_lies_over_the_template_of_its_base(floor: Floor) -> None:
    first = await floor.open()
    await floor.inside(first, f"echo new > new.txt; rm src/1/1.txt; {COMMIT}")
    assert (await floor.trees.close(first)).removed

    again = await floor.open()

    seen = await floor.inside(
        again, "cat new.txt; test ! -e src/1/1.txt; git status --porcelain; git log --format=%s main.."
    )
    assert seen.stdout == "new\nSome work\n"
    assert again.overlay is not None


async def test_what_genba_commits_for_an_instance_is_taken_from_the_layer(floor: Floor) -> None:
    workspace = await floor.open()
    await floor.inside(workspace, "echo left > left.txt; rm src/0/0.txt")

    await floor.trees.commit(workspace, "For the agent\n", "worker <worker@agents.invalid>")

    facts = await floor.trees.observe(workspace)
    assert (facts.changed_files, facts.dirty) == (("left.txt", "src/0/0.txt"), ())


async def test_a_resumed_run_finds_its_layer_again(floor: Floor) -> None:
    workspace = await floor.open()
    await floor.inside(workspace, f"echo new > new.txt; {COMMIT}; echo loose > loose.txt")

    later = await _again(floor)
    again = await later.trees.reopen(workspace)

    assert again.overlay == workspace.overlay
    facts = await later.trees.observe(again)
    assert (len(facts.commits), facts.dirty) == (1, ("loose.txt",))
    later.trees.release()


async def test_a_tree_that_is_kept_becomes_a_plain_folder(floor: Floor) -> None:
    workspace = await floor.open()
    await floor.inside(
        workspace, f"echo new > new.txt; rm -r src/1; {COMMIT}; echo loose > loose.txt; chmod 755 loose.txt"
    )
    await floor.trees.observe(workspace)

    settled = await floor.trees.settle(workspace)

    tree = Path(workspace.path)
    assert settled.overlay is None
    assert floor.project.git("status", "--porcelain", cwd=tree) == "?? loose.txt"
    assert (tree / "src/2/7.txt").read_text() == "file 7\n"
    assert not (tree / "src/1").exists()
    assert os.access(tree / "loose.txt", os.X_OK)
    later = await _again(floor)
    again = await later.trees.reopen(workspace)
    assert again.overlay is None
    assert (await later.trees.observe(again)).dirty == ("loose.txt",)
    assert (await later.inside(again, "git status --porcelain")).stdout == "?? loose.txt\n"
    assert (await later.trees.close(again)).removed


async def test_a_run_that_ends_without_a_removal_leaves_a_folder_that_the_user_can_look_into(floor: Floor) -> None:
    workspace = await floor.open()
    await floor.inside(workspace, "echo loose > loose.txt")

    floor.trees.release()

    assert floor.project.git("status", "--porcelain", cwd=Path(workspace.path)) == "?? loose.txt"


async def test_a_repository_inside_the_layer_is_never_removed_and_can_be_found(floor: Floor) -> None:
    workspace = await floor.open()
    await floor.inside(workspace, "git init -q inner && echo x > inner/x")

    removal = await floor.trees.close(workspace)

    assert not removal.removed
    assert "inner" in removal.reason
    assert (Path(workspace.path) / "inner/x").read_text() == "x\n"


async def test_a_run_without_a_sandbox_that_takes_the_tree_over_finds_its_files(floor: Floor) -> None:
    workspace = await floor.open()
    await floor.inside(workspace, "echo loose > loose.txt")
    floor.trees.plain.release()

    plain = GitWorkingTrees(floor.trees.layout)
    taken = await plain.reopen(workspace)

    assert taken.overlay is None
    assert (Path(taken.path) / "src/2/7.txt").is_file()
    assert (await plain.observe(taken)).dirty == ("loose.txt",)
    plain.release()


async def test_a_sandbox_that_cannot_mount_a_layer_finds_a_plain_folder(floor: Floor) -> None:
    workspace = await floor.open()
    await floor.inside(workspace, f"echo new > new.txt; {COMMIT}; echo loose > loose.txt")

    later = await floor.anew(overlays=False)
    again = await later.trees.reopen(workspace)

    assert again.overlay is None
    assert (await later.inside(again, "git status --porcelain; git log --format=%s main..")).stdout == (
        "?? loose.txt\nSome work\n"
    )
    later.trees.release()


async def test_templates_that_nothing_lies_over_are_removed_but_for_the_newest(floor: Floor) -> None:
    own = floor.project.root / ".git/genba"
    kept = await floor.open("genba/kept")
    for number in range(6):
        floor.project.write("counter.txt", f"{number}\n")
        floor.project.commit(f"Number {number}")
        workspace = await floor.open(f"genba/{number}")
        assert (await floor.trees.close(workspace)).removed
    left = own / "templates" / ("f" * 40 + ".new-1")
    (left / "tree").mkdir(parents=True)

    last = await floor.open("genba/last")

    names = _entries(own / "templates")
    assert len(names) == 5
    assert {workspace_.base for workspace_ in (kept, last)} <= names
    assert not is_folder(left)
    assert (await floor.inside(kept, "git status --porcelain")).stdout == ""


async def test_removal_is_out_of_the_way_at_once_and_done_in_the_background(floor: Floor) -> None:
    workspace: Workspace = await floor.open()
    await floor.inside(
        workspace, "mkdir -p closed/deep && touch closed/deep/x && chmod 0 closed/deep && echo closed > .gitignore"
    )

    assert (await floor.trees.close(workspace)).removed

    assert not is_folder(workspace.path)
    trash = floor.project.root / ".git/genba/trash"
    until(lambda: not list(trash.iterdir()))


async def test_what_a_killed_removal_left_is_swept_by_the_next_run(floor: Floor) -> None:
    trash = floor.project.root / ".git/genba/trash"
    (trash / "dead-1/some/folder").mkdir(parents=True)
    beside = floor.project.root / ".worktrees/.dead-2.removed"
    beside.mkdir(parents=True)

    await floor.open()

    until(lambda: not list(trash.iterdir()) and not is_folder(beside))


@pytest.mark.parametrize(
    ("line", "dirty"),
    [
        ("git update-ref refs/heads/genba/work $(git commit-tree -p HEAD -m other $(git mktree </dev/null))", None),
        ("rm -r src/1 && mkdir -p src/1 && echo x > src/1/fresh.txt", 7),
        ("mv src/1 src/moved", 12),
        ("rm -r src/1 && echo file > src/1", 7),
        ("rm README.md && ln -s src/1 README.md", 1),
        ("chmod +x README.md", 1),
        ("touch -d '2001-01-01' README.md && cp -p README.md copy && mv copy README.md", 0),
        ("printf 'odd\\n' > \"$(printf 'a\\\\b\\377')\"; printf x > ':(glob)*'", 2),
        ("mkdir -p build && touch build/x && echo build > .gitignore", 1),
    ],
)
async def test_the_status_of_a_layer_equals_that_of_reading_every_file(
    floor: Floor, line: str, dirty: int | None
) -> None:
    workspace = await floor.open()
    await floor.inside(workspace, line)

    facts = await floor.trees.observe(workspace)
    settled = await floor.trees.settle(workspace)
    everything = await floor.trees.observe(settled)

    assert facts == everything
    assert dirty is None or len(facts.dirty) == dirty
