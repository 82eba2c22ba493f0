"""The private repository: the instance has a whole git, and nothing of the user's."""

from pathlib import Path

import msgspec
import pytest

from genba.connections.git.merging.merge import GitRepository
from genba.connections.git.repository.layout import is_folder
from genba.domain.errors import StateConflictError
from tests.git.conftest import Floor, request
from tests.project import Project

COMMIT = "echo work > work.txt && git add -A && git commit -qm 'Some work'"


async def test_commits_made_inside_arrive_on_the_branch_outside(floor: Floor) -> None:
    workspace = await floor.open()

    await floor.inside(workspace, COMMIT)
    facts = await floor.trees.observe(workspace)

    assert [commit.subject for commit in facts.commits] == ["Some work"]
    assert (facts.dirty, facts.strayed, facts.changed_files) == ((), "", ("work.txt",))
    assert floor.project.git("show", "genba/work:work.txt") == "work"
    assert floor.project.git("rev-parse", "genba/work") == facts.head
    assert floor.project.git("fsck", "--no-dangling") == ""


async def test_commits_arrive_while_another_process_creates_a_worktree(floor: Floor) -> None:
    workspace = await floor.open()
    await floor.inside(workspace, COMMIT)
    begun = Path(workspace.git_dir).with_name("begun")  # as git leaves it until it knows the commit
    begun.mkdir()
    begun.joinpath("HEAD").write_text(f"{'0' * 40}\n")
    begun.joinpath("commondir").write_text("../..\n")
    begun.joinpath("gitdir").write_text(f"{floor.project.root}/begun/.git\n")

    facts = await floor.trees.observe(workspace)

    assert [commit.subject for commit in facts.commits] == ["Some work"]


async def test_a_new_tree_is_clean_on_both_sides(floor: Floor) -> None:
    workspace = await floor.open()

    assert (await floor.trees.observe(workspace)).dirty == ()
    assert (await floor.inside(workspace, "git status --porcelain")).stdout == ""
    assert (await floor.inside(workspace, "git log --format=%s main..HEAD")).stdout == ""
    assert (await floor.inside(workspace, "git branch --show-current")).stdout.strip() == "genba/work"


async def test_the_instance_sees_neither_branches_nor_settings_nor_hooks_of_the_user(floor: Floor) -> None:
    project = floor.project
    project.git("branch", "secret-plan")
    project.git("tag", "v1")
    project.git("config", "remote.origin.url", "https://user:token@example.invalid/x")
    hook = project.root / ".git/hooks/post-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\ntouch hooked\n")
    hook.chmod(0o755)
    other = await floor.open("genba/other")
    workspace = await floor.open()

    seen = await floor.inside(workspace, f"git for-each-ref; git config --list; {COMMIT}; ls")
    around = await floor.inside(workspace, f"ls {project.root}/.git {project.root}/.git/worktrees {project.root}")

    assert "secret-plan" not in seen.stdout
    assert "v1" not in seen.stdout
    assert "token" not in seen.stdout
    assert "hooked" not in seen.stdout
    assert Path(other.path).name not in around.stdout
    assert "hooks" not in around.stdout
    assert "genba\n" not in around.stdout


async def test_nothing_that_is_shared_can_be_written(floor: Floor) -> None:
    workspace = await floor.open()
    before = floor.refs()

    lines = (
        f"echo x > {floor.project.root}/.git/objects/x",
        f"rm -rf {floor.project.root}/.git/objects/*",
        "rm .git",
        "mv .git elsewhere",
        "echo 'gitdir: /tmp' > .git",
    )
    for line in lines:
        assert (await floor.inside(workspace, f"({line}) 2>/dev/null", expect=None)).code != 0, line
    await floor.inside(workspace, "mkdir -p hooks && git config core.hooksPath hooks")

    assert floor.refs() == before
    assert floor.project.git("fsck", "--no-dangling") == ""
    assert "hooksPath" not in (floor.project.root / ".git/config").read_text()


@pytest.mark.parametrize(
    "line",
    [
        "git commit -q --amend -m 'Said better'",
        "git stash -q 2>/dev/null; git switch -qc aside && git switch -q genba/work && git commit -q --amend -m "
        "'Said better'",
        "git gc -q --prune=now && git commit -q --amend -m 'Said better'",
        "git pack-refs --all && git commit -q --amend -m 'Said better'",
        "echo more > more && git add -A && git commit -qm more && git reset -q --soft HEAD~2 && git commit -qm "
        "'Said better'",
    ],
)
async def test_a_branch_that_was_rewritten_inside_is_rewritten_outside(floor: Floor, line: str) -> None:
    workspace = await floor.open()
    await floor.inside(workspace, COMMIT)
    await floor.trees.observe(workspace)

    await floor.inside(workspace, line)
    facts = await floor.trees.observe(workspace)

    assert [commit.subject for commit in facts.commits] == ["Said better"]
    assert facts.strayed == ""


async def test_a_branch_that_was_put_back_to_its_base_is_put_back_outside(floor: Floor) -> None:
    workspace = await floor.open()
    await floor.inside(workspace, COMMIT)
    await floor.trees.observe(workspace)

    await floor.inside(workspace, "git reset -q --hard main")
    facts = await floor.trees.observe(workspace)

    assert facts.commits == ()
    assert facts.dirty == ()
    assert floor.project.git("rev-parse", "genba/work") == workspace.base


async def test_uncommitted_files_are_seen_from_outside(floor: Floor) -> None:
    workspace = await floor.open()

    await floor.inside(workspace, f"{COMMIT} && echo two > work.txt && echo new > new.txt && git add new.txt")
    facts = await floor.trees.observe(workspace)

    assert facts.dirty == ("new.txt", "work.txt")
    assert floor.project.git("show", f"{facts.tree}:new.txt") == "new"


async def test_an_instance_on_another_branch_has_strayed_and_its_commits_are_kept(floor: Floor) -> None:
    workspace = await floor.open()
    await floor.inside(workspace, "git switch -qc elsewhere/deep && " + COMMIT)

    facts = await floor.trees.observe(workspace)
    left = await GitRepository(floor.trees.layout).left_elsewhere("worker@agents.invalid", workspace)

    assert facts.strayed == "elsewhere/deep"
    assert facts.commits == ()
    assert facts.dirty == ()
    assert left == ("elsewhere/deep",)
    assert floor.project.branches() == ["genba/work", "main"]
    kept = floor.project.git("for-each-ref", "--format=%(refname)", "refs/genba/private")
    assert floor.project.git("show", f"{kept}:work.txt") == "work"

    await floor.inside(
        workspace, "git switch -q genba/work && git merge -q elsewhere/deep && git branch -qd elsewhere/deep"
    )
    back = await floor.trees.observe(workspace)

    assert (back.strayed, len(back.commits), back.dirty) == ("", 1, ())
    assert await GitRepository(floor.trees.layout).left_elsewhere("worker@agents.invalid", workspace) == ()


async def test_work_on_no_branch_survives_the_removal_of_the_tree(floor: Floor) -> None:
    workspace = await floor.open()
    await floor.inside(workspace, "git switch -q --detach && " + COMMIT)

    assert (await floor.trees.observe(workspace)).strayed == "no branch"
    removal = await floor.trees.close(workspace)

    assert removal.removed
    assert floor.project.git("show", f"{removal.rescued}:work.txt") == "work"


async def test_a_stash_is_kept_when_the_tree_is_removed(floor: Floor) -> None:
    workspace = await floor.open()
    await floor.inside(workspace, "echo put aside > README.md && git stash -q")

    assert (await floor.trees.close(workspace)).removed

    ref = f"refs/genba/private/{workspace.run}/other/refs%2Fstash"
    assert floor.project.git("show", f"{ref}:README.md") == "put aside"


async def test_a_deleted_branch_stays_outside_as_it_was(floor: Floor) -> None:
    workspace = await floor.open()
    await floor.inside(workspace, COMMIT)
    await floor.trees.observe(workspace)

    await floor.inside(workspace, "git update-ref -d refs/heads/genba/work")
    facts = await floor.trees.observe(workspace)

    assert facts.strayed == "no branch"
    assert [commit.subject for commit in facts.commits] == ["Some work"]


async def test_what_genba_commits_for_an_instance_is_what_the_instance_goes_on_from(floor: Floor) -> None:
    workspace = await floor.open()
    await floor.inside(workspace, "echo left > left.txt")

    await floor.trees.commit(workspace, "For the agent\n", "worker <worker@agents.invalid>")

    seen = await floor.inside(workspace, "git status --porcelain; git log -1 --format='%s by %an'")
    assert seen.stdout == "For the agent by worker\n"
    facts = await floor.trees.observe(workspace)
    assert ([commit.subject for commit in facts.commits], facts.dirty) == (["For the agent"], ())


@pytest.mark.parametrize("adopt", [True, False])
async def test_a_merge_that_is_tried_out_is_what_the_instance_finds(floor: Floor, adopt: bool) -> None:
    workspace = await floor.open()
    await floor.inside(workspace, COMMIT)
    await floor.trees.observe(workspace)
    floor.project.write("meanwhile.txt", "on main\n")
    floor.project.commit("Meanwhile")
    repository = GitRepository(floor.trees.layout)
    proposal = await repository.propose(workspace, "Merge it\n")

    assert await repository.try_out(workspace, proposal.commit, adopt=adopt) == ""

    seen = await floor.inside(workspace, "git status --porcelain; git rev-parse HEAD; cat meanwhile.txt work.txt")
    assert seen.stdout == f"{proposal.commit}\non main\nwork\n"
    facts = await floor.trees.observe(workspace)
    assert facts.strayed == ("" if adopt else "no branch")
    if adopt:
        await floor.inside(workspace, "echo on > on.txt && git add -A && git commit -qm 'Go on'")
        assert (await floor.trees.observe(workspace)).commits[0].subject == "Go on"


async def test_many_commits_and_many_files_arrive_as_they_are(floor: Floor) -> None:
    workspace = await floor.open()
    line = (
        "for i in $(seq 1 40); do for j in 1 2 3 4; do echo $i.$j > f$i.$j; done; git add -A; git commit -qm $i; done"
    )
    await floor.inside(workspace, line)

    facts = await floor.trees.observe(workspace)

    assert (len(facts.commits), len(facts.changed_files)) == (40, 160)
    assert floor.project.git("fsck", "--no-dangling") == ""


async def test_a_closed_tree_leaves_nothing_but_what_is_kept(floor: Floor) -> None:
    workspace = await floor.open()
    await floor.inside(workspace, COMMIT + " && echo loose > loose.txt")
    await floor.trees.observe(workspace)

    removal = await floor.trees.close(workspace)

    own = floor.project.root / ".git"
    assert removal.removed
    assert floor.project.git("show", f"{removal.rescued}:loose.txt") == "loose"
    assert not is_folder(workspace.path)
    assert not is_folder(workspace.git_dir)
    assert list((own / "genba/private").iterdir()) == []
    assert not [name for name in floor.refs() if name.startswith(("refs/genba/base", "refs/genba/private"))]
    assert floor.project.git("show", "genba/work:work.txt") == "work"


async def test_garbage_collection_outside_leaves_the_private_repository_whole(floor: Floor) -> None:
    floor.project.git("switch", "-qc", "short-lived")
    floor.project.write("early.txt", "early\n")
    base = floor.project.commit("Soon gone")
    asked = request()
    workspace = await floor.trees.open(msgspec.structs.replace(asked, base_branch="short-lived"))
    assert workspace.base == base
    floor.project.git("switch", "-q", "main")
    floor.project.git("branch", "-qD", "short-lived")
    floor.project.git("reflog", "expire", "--expire=now", "--all")
    floor.project.git("gc", "-q", "--prune=now")

    await floor.inside(workspace, f"{COMMIT} && git fsck --no-dangling && git log --format=%s HEAD~2..")

    assert [commit.subject for commit in (await floor.trees.observe(workspace)).commits] == ["Some work"]


async def test_a_sandbox_is_refused_in_the_checkout_of_the_user(floor: Floor) -> None:
    asked = request(branch=None)
    with pytest.raises(StateConflictError, match="worktree of its own"):
        await floor.trees.open(msgspec.structs.replace(asked, isolated=False))


async def test_ends_of_lines_and_ignored_files_are_the_same_on_both_sides(floor: Floor) -> None:
    project: Project = floor.project
    project.git("config", "core.autocrlf", "true")
    project.write("text.txt", "one\r\ntwo\r\n")
    project.commit("Text")
    (project.root / ".git/info/exclude").write_text("*.secret\n")
    workspace = await floor.open()

    seen = await floor.inside(
        workspace, "touch a.secret; git status --porcelain; touch text.txt; git status --porcelain"
    )

    assert seen.stdout == ""
    assert (await floor.trees.observe(workspace)).dirty == ()
