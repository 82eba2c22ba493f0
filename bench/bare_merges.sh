#!/bin/sh
# Branches onto main one after the other, with three commands of git for each and nothing verified.
# usage: bare_merges.sh REPOSITORY BRANCHES
set -e
cd "$1"
base=$(git rev-parse main)
for task in $(seq "$2"); do
    merged=$(git merge-tree --write-tree "$base" "genba/$task")
    commit=$(git commit-tree "$merged" -p "$base" -p "genba/$task" -m "Merge task $task")
    git update-ref refs/heads/main "$commit" "$base"
    base=$commit
done
