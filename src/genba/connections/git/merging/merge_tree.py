"""Merging two commits into a tree, without a checkout."""

import msgspec

from genba.connections.git.repository.commands import Git


class MergedTree(msgspec.Struct, frozen=True):
    tree: str
    in_conflict: bool
    paths: tuple[str, ...]
    """The paths in conflict."""


async def merge_tree(git: Git, ours: str, theirs: str) -> MergedTree:
    """The merge of two commits; with conflict markers in its files where they are in conflict."""
    done = await git.run("merge-tree", "--write-tree", "--name-only", "-z", ours, theirs, allow=(0, 1))
    tree, *rest = done.stdout.split("\0")
    if done.returncode == 0:
        return MergedTree(tree, in_conflict=False, paths=())
    named = rest[: rest.index("")] if "" in rest else rest
    return MergedTree(tree, in_conflict=True, paths=tuple(dict.fromkeys(named)))
