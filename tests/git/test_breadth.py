import hashlib
from pathlib import Path

import pytest

from genba.connections.git.private.size_limits import MOST_COMMITS
from genba.connections.git.private.tree_size import Breadth, Objects, whole, widest
from genba.domain.errors import BoundaryViolationError
from tests.git.conftest import Floor

TREES = """
tree=$(printf "100644 blob $(echo boom | git hash-object -w --stdin)\\tf\\n" | git mktree)
for level in 1 2 3 4 5 6 7 8; do
  tree=$(for i in 0 1 2 3 4 5 6 7 8 9; do printf "040000 tree $tree\\td$i\\n"; done | git mktree)
done
"""
OF_THE_BASE = """
tree=$(git rev-parse HEAD^{tree})
for level in 1 2 3 4 5 6 7 8; do
  tree=$(for i in 0 1 2 3 4 5 6 7 8 9; do printf "040000 tree $tree\\td$i\\n"; done | git mktree)
done
"""
LARGE_FILE = """
blob=$(head -c 18000000 /dev/zero | git hash-object -w --stdin)
tree=$(for i in $(seq 1000); do printf "100644 blob $blob\\tf$i\\n"; done | git mktree)
"""
DEEP = """
tree=$(printf "100644 blob $(echo deep | git hash-object -w --stdin)\\tf\\n" | git mktree)
name=$(head -c 250 /dev/zero | tr '\\0' d)
for level in $(seq 20); do tree=$(printf "040000 tree $tree\\t$name\\n" | git mktree); done
"""
LONG_NAME = """
name=$(head -c 300 /dev/zero | tr '\\0' n)
tree=$(printf "100644 blob $(echo long | git hash-object -w --stdin)\\t$name\\n" | git mktree)
"""
COMMIT = "git update-ref HEAD $(git commit-tree $tree -p HEAD -m bomb); git reset -q; echo work > work.txt"
MANY = "for i in $(seq 150); do echo $i > many$i; done; git add -A; git commit -qm many;"
AND_BACK = """
git update-ref HEAD $(git commit-tree $tree -p HEAD -m bomb)
git update-ref HEAD $(git commit-tree HEAD~1^{tree} -p HEAD -m 'and back'); echo work > work.txt
"""
MISNAMED = """
old=$(git rev-parse HEAD^{tree})
G=$(git rev-parse --git-dir)
empty=$(git mktree </dev/null)
mkdir -p $G/objects/$(echo $old | cut -c1-2)
cp -f $G/objects/$(echo $empty | sed 's,^..,&/,') $G/objects/$(echo $old | sed 's,^..,&/,')
"""


@pytest.mark.parametrize(
    "line",
    [TREES + COMMIT, MANY + TREES + COMMIT, OF_THE_BASE + COMMIT, LARGE_FILE + COMMIT, TREES + AND_BACK,
     OF_THE_BASE + MISNAMED + COMMIT, DEEP + COMMIT, LONG_NAME + COMMIT],
    ids=["few objects", "many objects", "of what was there", "large files", "hidden in between", "under a wrong name",
         "deep", "long name"],
)  # fmt: skip
async def test_a_commit_that_no_disk_could_hold_is_refused_before_it_is_looked_at(floor: Floor, line: str) -> None:
    workspace = await floor.open()
    await floor.inside(workspace, line.replace("git reset -q;", ""), expect=None)

    with pytest.raises(BoundaryViolationError, match=f"{workspace.run} (brought back was refused|committed)"):
        await floor.trees.observe(workspace)

    assert floor.project.git("rev-parse", "genba/work") == workspace.base
    removal = await floor.trees.close(workspace)
    assert not removal.removed
    assert floor.project.git("show", f"{removal.rescued}:work.txt") == "work", "and the files that are there are kept"


@pytest.mark.parametrize(("number", "comes_in"), [(MOST_COMMITS + 1, False), (3000, True)])
async def test_more_commits_than_can_be_looked_at_are_refused(floor: Floor, number: int, comes_in: bool) -> None:
    """Each of them is written again under the name of the agent, without a process of its own."""
    workspace = await floor.open()
    script = (
        "import sys\n"
        f"for n in range({number}):\n"
        "  begin = 'from HEAD^0\\n' if n == 0 else ''\n"
        "  print(f'commit refs/heads/flood\\ncommitter x <x@y> {n} +0000\\ndata 1\\nx')\n"
        "  print(f'{begin}M 644 inline f\\ndata 6')\n"
        "  print(f'{n:6}')\n"
    )
    Path(workspace.path, "flood.py").write_text(script, "utf-8")  # noqa: ASYNC240
    await floor.inside(workspace, "python3 flood.py | git fast-import --quiet && git reset -q --hard flood")

    if not comes_in:
        with pytest.raises(BoundaryViolationError, match=f"{number} commits"):
            await floor.trees.observe(workspace)
        return
    facts = await floor.trees.observe(workspace)
    assert len(facts.commits) == number


@pytest.mark.parametrize("more", ["", MANY])
async def test_folders_that_are_copied_are_nothing_strange(floor: Floor, more: str) -> None:
    workspace = await floor.open()
    copies = "mkdir a && for i in $(seq 30); do echo $i > a/f$i; done; for i in b c d; do cp -r a $i; done"
    await floor.inside(workspace, f"{more} {copies}; git add -A; git commit -qm copies; cp -r a e; git add -A;"
                                  " git commit -qm another")  # fmt: skip

    facts = await floor.trees.observe(workspace)

    assert len(facts.changed_files) == 5 * 30 + (150 if more else 0)
    assert (await floor.trees.close(workspace)).removed


def named(text: str) -> str:
    return hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()


def tree(*folders: str, files: tuple[str, ...] = ()) -> tuple[bytes, bytes]:
    lines = [b"40000 d%d\0" % number + bytes.fromhex(name) for number, name in enumerate(folders)]
    lines += [b"100644 f%d\0" % number + bytes.fromhex(name) for number, name in enumerate(files)]
    return b"tree", b"".join(lines)


def nothing(names: list[str]) -> Objects:
    raise AssertionError(names)


def test_each_place_of_a_tree_counts_and_each_tree_is_read_once() -> None:
    new: dict[str, tuple[bytes, bytes | int]] = {named("0"): tree(files=(named("f"),)), named("f"): (b"blob", b"abc")}
    for level in range(1, 3000):
        new[named(str(level))] = tree(*[named(str(level - 1))] * 2)

    found = widest([named("2999")], new, nothing)

    assert found == Breadth(2**2999, 3 * 2**2999, 2999 * 3 + 3)


def test_what_was_there_is_asked_for_only_where_it_stands_in_more_than_one_place() -> None:
    old: dict[str, tuple[bytes, bytes | int]] = {
        named("old"): tree(files=(named("a"), named("b"))),
        named("a"): (b"blob", 10),
        named("b"): (b"blob", 5),
    }

    def read(names: list[str]) -> Objects:
        return {name: old[name] for name in names}

    assert widest([named("r")], {named("r"): tree(named("old"), files=(named("x"),))}, nothing) == Breadth(2, 0, 3)
    assert widest([named("r")], {named("r"): tree(named("old"), named("old"))}, read) == Breadth(4, 30, 3)
    assert whole(named("old"), read) == Breadth(2, 15)
