#!/bin/sh
# What one `genba run` asks of git, as a shell script: the same commands, in the same order.
# usage: same_commands.sh REPOSITORY AGENT_COMMAND
set -e
cd "$1"
name=genba/script-$$
tree=$1/.worktrees/script-$$
hard="-c core.fsmonitor=false -c core.hooksPath=/dev/null -c protocol.ext.allow=never"
repo="git $hard --git-dir $1/.git"

git $hard rev-parse --path-format=absolute --show-toplevel --absolute-git-dir --git-common-dir >/dev/null
$repo symbolic-ref --quiet HEAD >/dev/null
base=$($repo rev-parse --verify --quiet 'refs/heads/main^{commit}')
$repo check-ref-format --branch "$name" >/dev/null
$repo worktree list --porcelain >/dev/null
$repo rev-parse --verify --quiet "refs/heads/$name^{commit}" >/dev/null || true
$repo worktree add --quiet --no-checkout -b "$name" "$tree" "$base"
own="git $hard --git-dir $1/.git/worktrees/script-$$ --work-tree $tree -C $tree"
$own reset --hard --quiet

(cd "$tree" && sh -c "$2")

$own status --porcelain=v2 --branch -z --untracked-files=all --ignore-submodules=all --no-renames >/dev/null
$repo log -z --format=%H%x00%T%x00%s "$base..refs/heads/$name" >/dev/null
$repo log -z --name-only --format= "$base..refs/heads/$name" >/dev/null
base=$($repo rev-parse --verify --quiet 'refs/heads/main^{commit}')
tip=$($repo rev-parse --verify --quiet "refs/heads/$name^{commit}")
$repo merge-base --is-ancestor "$tip" "$base" || true
merged=$($repo merge-tree --write-tree --name-only "$base" "$tip" | head -n 1)
commit=$(echo merge | $repo commit-tree "$merged" -p "$base" -p "$tip" -F -)
$repo worktree list --porcelain >/dev/null
git $hard --git-dir "$1/.git" --work-tree "$1" status --porcelain -z --no-renames --untracked-files=no >/dev/null
$repo rev-parse --verify --quiet 'refs/heads/main^{commit}' >/dev/null
$repo diff-tree -r -z --name-status --no-renames "$base" "$commit" >/dev/null
git $hard --git-dir "$1/.git" --work-tree "$1" update-index -q --refresh
git $hard --git-dir "$1/.git" --work-tree "$1" read-tree -m -u "$base" "$commit"
$repo update-ref -m merge refs/heads/main "$commit" "$base"
$own status --porcelain=v2 --branch -z --untracked-files=all --ignore-submodules=all --no-renames >/dev/null
rm -rf "$tree" "$1/.git/worktrees/script-$$"
$repo rev-parse --verify --quiet "refs/heads/$name^{commit}" >/dev/null
$repo rev-parse --verify --quiet 'refs/heads/main^{commit}' >/dev/null
$repo merge-base --is-ancestor "$tip" refs/heads/main
$repo update-ref -d "refs/heads/$name" "$tip"
