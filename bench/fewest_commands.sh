#!/bin/sh
# The least that git must be asked for a worktree, a commit, a merge and a clean-up, with none of the looking.
# usage: fewest_commands.sh REPOSITORY AGENT_COMMAND
set -e
cd "$1"
name=genba/fewest-$$
tree=$1/.worktrees/fewest-$$

git worktree add --quiet -b "$name" "$tree" main
(cd "$tree" && sh -c "$2")
merged=$(git merge-tree --write-tree main "$name")
commit=$(git commit-tree "$merged" -p main -p "$name" -m merge)
git merge --quiet --ff-only "$commit"
git worktree remove "$tree"
git branch --quiet -D "$name"
