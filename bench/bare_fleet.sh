#!/bin/sh
# The minimum for a number of tasks: a worktree, the process of the agent and its commit,
# some of them at one time; then, one after the other, a merge without a checkout, the checkout of the user, a clean-up.
# usage: bare_fleet.sh REPOSITORY TASKS AT_ONE_TIME TURN PYTHON
set -e
cd "$1"
export PLAYED="$4" PYTHON="$5"

# Two `git worktree add` at one time can trip over each other, hence the lock.
seq "$2" | xargs -P "$3" -n 1 sh -ec '
    flock .git/bench.lock git worktree add --quiet -b "genba/$0" ".worktrees/$0" main
    cd ".worktrees/$0"
    GENBA_ISSUE=$0 "$PYTHON" -P -m genba.connections.agents.player <"$PLAYED"
'
for task in $(seq "$2"); do
    base=$(git rev-parse main)
    merged=$(git merge-tree --write-tree "$base" "genba/$task")
    commit=$(git commit-tree "$merged" -p "$base" -p "genba/$task" -m "Merge task $task")
    git read-tree -m -u "$base" "$commit"
    git update-ref refs/heads/main "$commit" "$base"
    git worktree remove ".worktrees/$task"
    git branch --quiet -D "genba/$task"
done
