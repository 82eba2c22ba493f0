"""Work that comes back: the target is merged into its branch, the tree follows, and markers are seen until they go."""

import subprocess
from pathlib import Path

import pytest

from genba.connections.git.merging.merge_target import GitRework, GitTarget
from genba.connections.git.repository.layout import RepositoryLayout
from genba.connections.git.worktrees.worktrees import GitWorkingTrees
from genba.domain.errors import StateConflictError
from genba.domain.fleet.merge_queue import MergeHistory, Work
from genba.domain.sessions.workspaces import Workspace
from tests.git.conftest import Floor, request
from tests.project import Project

MESSAGE = "Merge main into genba/work\n"


class Bench:
    """A working tree whose branch and whose base have gone different ways."""

    def __init__(self, project: Project, trees: GitWorkingTrees, workspace: Workspace) -> None:
        self.project = project
        self.trees = trees
        self.workspace = workspace
        self.rework = GitRework(trees.layout)

    @classmethod
    async def make(cls, project: Project) -> "Bench":
        trees = GitWorkingTrees(await RepositoryLayout.find(project.root))
        return cls(project, trees, await trees.open(request()))

    def work(self, path: str, text: str) -> str:
        file = Path(self.workspace.path) / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        self.project.git("add", "-A", cwd=file.parent)
        self.project.git("commit", "-qm", f"Change {path}", cwd=file.parent)
        return self.project.git("rev-parse", "HEAD", cwd=file.parent)

    def read(self, path: str) -> str:
        return (Path(self.workspace.path) / path).read_text()

    def status(self) -> str:
        return self.project.git("status", "--porcelain", "--branch", cwd=Path(self.workspace.path))


@pytest.fixture
async def bench(project: Project) -> Bench:
    project.write("shared.txt", "one\ntwo\n")
    project.commit("Begin the text")
    return await Bench.make(project)


def _target(bench: Bench, path: str, text: str) -> str:
    bench.project.write(path, text)
    return bench.project.commit(f"Change {path} on main")


async def test_a_conflict_comes_back_as_a_merge_with_markers_in_the_tree_of_the_author(bench: Bench) -> None:
    mine = bench.work("shared.txt", "eins\ntwo\n")
    over = _target(bench, "shared.txt", "ONE\ntwo\n")

    adopted = await bench.rework.adopt(bench.workspace, over, MESSAGE)

    assert adopted.paths == ("shared.txt",)
    assert bench.project.git("rev-parse", "genba/work") == adopted.commit
    assert bench.project.git("log", "-1", "--format=%P", "genba/work") == f"{mine} {over}"
    assert bench.read("shared.txt") == f"<<<<<<< {mine}\neins\n=======\nONE\n>>>>>>> {over}\ntwo\n"
    assert bench.status() == "## genba/work"


async def test_markers_are_left_until_the_author_takes_them_out(bench: Bench) -> None:
    bench.work("shared.txt", "eins\ntwo\n")
    over = _target(bench, "shared.txt", "ONE\ntwo\n")
    adopted = await bench.rework.adopt(bench.workspace, over, MESSAGE)

    assert await bench.rework.markers_left(adopted.commit, adopted.paths) == ("shared.txt",)
    solved = bench.work("shared.txt", "eins, ONE\ntwo\n")
    assert await bench.rework.markers_left(solved, (*adopted.paths, "not there", "new\nline")) == ()


async def test_a_text_about_conflicts_is_none(bench: Bench) -> None:
    commit = bench.work("doc.md", "<<<<<<< HEAD\nyours\n=======\ntheirs\n>>>>>>> main\n")
    assert await bench.rework.markers_left(commit, ("doc.md",)) == ()


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
async def test_markers_are_seen_whatever_the_ends_of_lines_are(bench: Bench, ending: str) -> None:
    commit = bench.work("a.txt", f"x{ending}<<<<<<< {'a' * 40}{ending}y{ending}")
    assert await bench.rework.markers_left(commit, ("a.txt",)) == ("a.txt",)


async def test_what_merges_cleanly_comes_back_clean_with_the_files_of_the_target(bench: Bench) -> None:
    bench.work("mine.txt", "mine\n")
    over = _target(bench, "theirs.txt", "theirs\n")

    adopted = await bench.rework.adopt(bench.workspace, over, MESSAGE)

    assert (adopted.paths, adopted.rescued) == ((), "")
    assert (bench.read("mine.txt"), bench.read("theirs.txt"), bench.status()) == ("mine\n", "theirs\n", "## genba/work")


async def test_what_was_not_committed_is_kept_before_the_tree_moves(bench: Bench) -> None:
    bench.work("mine.txt", "mine\n")
    over = _target(bench, "theirs.txt", "theirs\n")
    (Path(bench.workspace.path) / "loose.txt").write_text("loose\n")

    adopted = await bench.rework.adopt(bench.workspace, over, MESSAGE)

    assert bench.project.git("show", f"{adopted.rescued}:loose.txt") == "loose"
    assert bench.status() == "## genba/work"


async def test_the_same_again_changes_nothing_and_says_the_same(bench: Bench) -> None:
    bench.work("shared.txt", "eins\ntwo\n")
    over = _target(bench, "shared.txt", "ONE\ntwo\n")
    first = await bench.rework.adopt(bench.workspace, over, MESSAGE)
    (Path(bench.workspace.path) / "loose.txt").write_text("the agent is at it\n")

    again = await bench.rework.adopt(bench.workspace, over, MESSAGE)

    assert again == first
    assert bench.read("loose.txt") == "the agent is at it\n"


@pytest.mark.parametrize("cut_off", ["before the branch", "after the branch"])
async def test_a_death_in_the_middle_is_made_good(bench: Bench, cut_off: str) -> None:
    bench.work("shared.txt", "eins\ntwo\n")
    over = _target(bench, "shared.txt", "ONE\ntwo\n")
    before = bench.project.git("rev-parse", "genba/work")
    first = await bench.rework.adopt(bench.workspace, over, MESSAGE)
    bench.project.git("checkout", "-q", "--detach", cwd=Path(bench.workspace.path))
    if cut_off == "before the branch":
        bench.project.git("update-ref", "refs/heads/genba/work", before)

    again = await bench.rework.adopt(bench.workspace, over, MESSAGE)

    assert (again.paths, bench.status()) == (first.paths, "## genba/work")
    assert bench.project.git("rev-parse", "genba/work") == again.commit
    assert bench.project.git("rev-parse", f"{again.commit}^1") == before


async def test_an_unknown_commit_is_refused_and_nothing_changes(bench: Bench) -> None:
    tip = bench.work("mine.txt", "mine\n")

    with pytest.raises(StateConflictError, match="main has no commit fffffff any more"):
        await bench.rework.adopt(bench.workspace, "f" * 40, MESSAGE)

    assert bench.project.git("rev-parse", "genba/work") == tip


async def test_in_the_sandbox_the_author_finds_the_markers_and_commits_what_it_made_of_them(floor: Floor) -> None:
    project = floor.project
    project.write("shared.txt", "one\n")
    project.commit("Begin the text")
    workspace = await floor.open()
    await floor.inside(workspace, "echo eins > shared.txt; git commit -qam 'In German'")
    await floor.trees.observe(workspace)
    mine = project.git("rev-parse", "genba/work")
    project.write("shared.txt", "ONE\n")
    over = project.commit("Loud")

    later = await floor.anew()
    again = await later.trees.reopen(workspace)
    adopted = await GitRework(later.trees.layout).adopt(again, over, MESSAGE)

    seen = await later.inside(again, "git status --porcelain; git log -1 --format=%P; cat shared.txt")
    marked = f"<<<<<<< {mine}\neins\n=======\nONE\n>>>>>>> {over}\n"
    assert seen.stdout == f"{mine} {over}\n{marked}"
    await later.inside(again, "echo 'eins, ONE' > shared.txt; git commit -qam Both")
    facts = await later.trees.observe(again)
    assert facts.dirty == ()
    rework = GitRework(later.trees.layout)
    assert await rework.markers_left(facts.head, adopted.paths) == ()
    assert project.git("merge-base", "--is-ancestor", over, "genba/work") == ""
    later.trees.release()


async def test_a_target_whose_working_tree_is_in_the_sandbox_moves_with_its_files(floor: Floor) -> None:
    """Parts of a task land on its branch, which may be checked out in a tree of its own."""
    workspace = await floor.open("genba/parent")
    floor.trees.plain.let_go("genba/parent")
    floor.project.git("switch", "-qc", "genba/part")
    floor.project.write("part.txt", "part\n")
    part = floor.project.commit("A part")
    floor.project.git("switch", "-q", "main")
    target = GitTarget(floor.trees.layout)
    base = await target.tip("genba/parent")
    assert base is not None
    stacked = (await target.stack(base, [Work(task=1, commit=part, subject="Part")], MergeHistory.MERGE))[0]

    landed = await target.land("genba/parent", base, stacked.commit)

    assert landed is not None
    assert landed.commit == stacked.commit
    later = await floor.anew()
    again = await later.trees.reopen(workspace)
    seen = await later.inside(again, "git status --porcelain; git log -1 --format=%s; cat part.txt")
    assert seen.stdout == "Merge Part\npart\n"
    later.trees.release()


def _commit_by(project: Project, author: str) -> str:

    def git(*words: str, text: str) -> str:
        done = subprocess.run(["git", *words], cwd=project.root, input=text, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    blob = project.git("hash-object", "-w", "README.md")
    tree = git("mktree", text=f"100644 blob {blob}\tnew.md\n")
    who = f"author {author} 1 +0000\ncommitter {author} 1 +0000"
    text = f"tree {tree}\nparent {project.git('rev-parse', 'main')}\n{who}\n\nWork\n"
    return git("hash-object", "-t", "commit", "-w", "--stdin", "--literally", text=text)


@pytest.mark.parametrize("author", [" <a@b>", "... <a@b>", "Zoë <>"])
async def test_whatever_an_agent_calls_itself_its_work_lands(bench: Bench, author: str) -> None:
    base = bench.project.git("rev-parse", "main")
    work = Work(task=1, commit=_commit_by(bench.project, author), subject="Said in one line")

    (stacked,) = await GitTarget(bench.trees.layout).stack(base, [work], MergeHistory.LINEAR)

    assert stacked.problem == ""
    assert bench.project.git("log", "-1", "--format=%s %P", stacked.commit) == f"Said in one line {base}"
