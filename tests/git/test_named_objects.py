"""An instance that knows the name of an object which it was not given can name it, and gets nothing by that."""

import pytest

from genba.domain.errors import BoundaryViolationError, GitError
from tests.git.conftest import Floor

MISSING = "git mktree --missing); c=$(git commit-tree -m S -p HEAD $t)"
RAW = "git hash-object -w --stdin --literally"
BY = "w <w@x> 1 +0000"
TAKE = {
    "a blob": f"t=$(printf '100644 blob {{blob}}\\tstolen\\n' | {MISSING}",
    "a tree": f"t=$(printf '040000 tree {{tree}}\\tstolen\\n' | {MISSING}",
    "a commit as parent": (
        f"c=$(printf 'tree %s\\nparent %s\\nparent {{commit}}\\nauthor {BY}\\ncommitter {BY}\\n\\nS\\n' "
        f"$(git rev-parse HEAD^{{{{tree}}}} HEAD) | {RAW} -t commit)"
    ),
    "a commit as its branch": "c={commit}",
    "a commit by a tag": (
        f"t=$(printf 'object {{commit}}\\ntype commit\\ntag s\\ntagger {BY}\\n\\ns\\n' | {RAW} -t tag);"
        " git update-ref refs/tags/stolen $t; c=$(git commit-tree -m S -p HEAD HEAD^{{tree}})"
    ),
}
MOVE = "; ref=$(git rev-parse --git-path refs/heads/genba/work); mkdir -p $(dirname $ref); echo $c > $ref"


@pytest.mark.parametrize("bundle", [False, True], ids=["read as files", "in a bundle"])
@pytest.mark.parametrize("later", [False, True], ids=["at first", "after other work"])
@pytest.mark.parametrize("how", TAKE)
async def test_an_object_that_was_not_given_does_not_come_in_by_its_name(
    floor: Floor, how: str, later: bool, bundle: bool
) -> None:
    project = floor.project
    project.git("switch", "-qc", "gone")
    project.write("folder/secret.txt", "a secret on a deleted branch\n")
    commit = project.commit("A secret")
    names = {"commit": commit} | {
        kind: project.git("rev-parse", f"{commit}:{path}")
        for kind, path in (("blob", "folder/secret.txt"), ("tree", "folder"))
    }
    project.git("switch", "-q", "main")
    project.git("branch", "-qD", "gone")
    workspace = await floor.open()
    before = ""
    if later:
        await floor.inside(workspace, "echo one > one.txt && git add -A && git commit -qm One")
        before = (await floor.trees.observe(workspace)).head
    setting = "git config x.y z; " if bundle else ""  # with a setting of its own it takes git to read the work
    await floor.inside(workspace, setting + TAKE[how].format(**names) + MOVE)

    with pytest.raises((BoundaryViolationError, GitError), match=f"what {workspace.run} |the work of {workspace.run} "):
        await floor.trees.observe(workspace)

    assert project.git("rev-parse", workspace.branch) == (before or workspace.base)
    assert not any(commit in line for line in floor.refs().values())


async def test_what_was_given_may_come_back_in_any_form(floor: Floor) -> None:
    """Old files of the base, own work that was undone, and a repository that was packed."""
    project = floor.project
    project.write("README.md", "two\n")
    project.commit("Two")
    workspace = await floor.open()
    work = (
        "git checkout -q HEAD~1 -- README.md && git commit -qm 'Back to one'",
        "echo a > a.txt && git add -A && git commit -qm A && git gc -q",
        "git rm -q a.txt && git commit -qm 'Without a' && git gc -q --prune=now",
        "git checkout -q HEAD~1 -- a.txt && git commit -qm 'With a'",
        "git switch -qc aside && git commit -q --allow-empty -m B",
        "git switch -q - && git reset -q --hard HEAD~2 && git merge -q --no-ff aside -m M && git repack -qad",
    )
    for line in work:
        await floor.inside(workspace, line)
        facts = await floor.trees.observe(workspace)
        assert facts.strayed == ("aside" if "-qc aside" in line else "")

    assert project.git("show", f"{workspace.branch}:a.txt") == "a"
    assert project.git("fsck", "--no-dangling") == ""
