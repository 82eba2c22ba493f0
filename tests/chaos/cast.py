"""The agents of a round: real definitions, with small scripts that do what their kind does.

Each says in files outside of the repository that it was started (`starts.txt`) and that another one was at work on the
same task (`doubled.txt`), each with one write to the end of the file, so that a reader need not ask
Genba. Which commits were made is written there by git itself (`commits.txt`), at the moment at which a branch has them:
an agent may be killed before it could say so.
"""

import json
import shutil
from pathlib import Path
from typing import Any

from tests.chaos.plan import Kind, Part, Plan

HERE = Path(__file__).parent
CHECK = "check.sh"
"""What the project calls green: a script that is committed, and that reads nothing but the tree."""
CHECK_SCRIPT = """\
for file in task-*.txt; do
    [ -e "$file" ] || continue
    number=${file#task-}
    read -r found < "$file" || exit 1
    [ "$found" = "${number%.txt}" ] || exit 1
done
for file in shared-*.txt; do
    [ -e "$file" ] || continue
    while read -r line; do
        case "$line" in '<<<<<<<'* | '======='* | '>>>>>>>'*) exit 1 ;; esac
    done < "$file"
done
alone=
for file in clash-*.txt; do
    [ -e "$file" ] || continue
    read -r found < "$file" || exit 1
    [ "$found" = alone ] || continue
    case " $alone " in *" ${file%-*} "*) exit 1 ;; esac
    alone="$alone ${file%-*}"
done
exit 0
"""
HOOK = """\
#!/bin/sh
[ "$1" = committed ] || exit 0
while read -r old new ref; do
    case "$new $ref" in *[!0]*" refs/heads/genba/"*) echo "$new" >> {home}/commits.txt ;; esac
done
"""
"""Of git, for every move of a ref. Genba's own git runs no hooks, so that it hears of the agents alone."""
ABSENT = "nobody"
"""The one line of a file that two of them will write."""

_BEGIN = """\
home={home} n=$GENBA_ISSUE reply=$1
. "$home/parts/$n"
lives=0
[ ! -e "$home/lives/$n" ] || read -r lives < "$home/lives/$n"
lives=$((lives + 1))
echo "$lives" > "$home/lives/$n"
echo "$n $GENBA_RUN" >> "$home/starts.txt"
exec 9> "$home/lives/$n.lock"
flock -n 9 || echo "$n $GENBA_RUN" >> "$home/doubled.txt"
commit() {{ git add -A && git commit -q "$@" >&2; }}
die() {{ kill -9 $$; }}
work() {{ echo "$n" > "task-$n.txt"; commit -m "Do task $n"; }}
"""
_END = """\
echo '{"structured": {"status": "DONE"}}' > "$reply"
"""
_SCRIPTS = {
    Kind.HONEST: "work",
    Kind.SLOW: """\
step=0
while [ $step -lt $((2 + variant % 2)) ]; do
    step=$((step + 1))
    grep -qsx "$step" "slow-$n.txt" || { echo "$step" >> "slow-$n.txt"; commit -m "Step $step of task $n"; }
    sleep 0.1
done
work""",
    Kind.CRASHING: """\
if [ "$lives" -le $((1 + variant % 3)) ]; then
    [ $((variant / 3 % 2)) = 0 ] || { echo "$lives" > "half-$n.txt"; commit -m "Half of task $n"; }
    die
fi
work""",
    Kind.DOOMED: """\
[ $((variant % 2)) = 0 ] || { echo "$lives" > "half-$n.txt"; commit -m "Half of task $n"; }
die""",
    Kind.LYING: """\
case $((variant % 6)) in
    0) ;;
    1) echo wrong > "task-$n.txt"; commit -m "Do task $n" ;;
    2) echo wrong > "task-$n.txt"; echo "exit 0" > check.sh; commit -m "Do task $n" ;;
    3) commit --allow-empty -m "Do task $n" ;;
    4) echo wrong > "task-$n.txt"; echo "dod: []" > .genba/config.yaml; commit -m "Do task $n" ;;
    5) echo "$n" > "task-$n.txt" ; git add -A ;;
esac""",
    Kind.SORRY: """\
if [ -e "task-$n.txt" ]; then work; else echo wrong > "task-$n.txt"; commit -m "Do task $n"; fi""",
    Kind.CONFLICTING: """\
{ grep -v -e '^<<<<<<<' -e '^|||||||' -e '^=======' -e '^>>>>>>>' -e '^nobody$' "$shared"; echo "by-$n"; } |
    sort -u > "$home/lives/$n.shared"
cat "$home/lives/$n.shared" > "$shared"
work""",
    Kind.CLASHING: """\
how=alone
[ ! -e "clash-$pair-$partner.txt" ] || how=settled
echo "$how" > "clash-$pair-$n.txt"
work""",
}  # fmt: skip
_RETRIES = {Kind.CRASHING: 2, Kind.DOOMED: 1}
"""How often a question is put again. Who does its work may be killed some times by others."""
_MANY = 8
_ITERATIONS = {Kind.LYING: 2, Kind.SORRY: 4}


def furnish(root: Path, home: Path, plan: Plan) -> None:
    """Write the agents into a repository, and what they know of their tasks beside it."""
    for name in ("parts", "lives", "cast"):
        (home / name).mkdir(exist_ok=True)
    for part in plan.parts:
        (home / "parts" / str(part.number)).write_text(
            f"variant={part.variant} shared={shared(part)} pair={pair(part)} partner={part.partner}\n", encoding="utf-8"
        )
        if part.kind is Kind.CONFLICTING:
            (root / shared(part)).write_text(f"{ABSENT}\n", encoding="utf-8")
    hook = root / ".git" / "hooks" / "reference-transaction"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(HOOK.format(home=home), encoding="utf-8")
    hook.chmod(0o755)
    (root / CHECK).write_text(CHECK_SCRIPT, encoding="utf-8")
    for kind, script in _SCRIPTS.items():
        written = home / "cast" / f"{kind}.sh"
        written.write_text(_BEGIN.format(home=home) + script + "\n" + _END, encoding="utf-8")
        limits = {"retries": _RETRIES.get(kind, _MANY), "maxIterations": _ITERATIONS.get(kind, _MANY)}
        _declare(root, kind, ["sh", str(written), "{reply_file}"], limits)
    _ask(root, home)


def shared(part: Part) -> str:
    """The file that two tasks write, of one that has a partner."""
    return f"shared-{pair(part)}.txt"


def pair(part: Part) -> str:
    first, second = sorted((part.number, part.partner))
    return f"{first}-{second}"


def _declare(root: Path, kind: Kind, command: list[str], limits: dict[str, Any], **runner: Any) -> None:
    folder = root / ".agent" / kind
    (folder / "prompts").mkdir(parents=True)
    file = {
        "name": kind,
        "description": f"An agent that is {kind}",
        "parameters": {"issue": {"type": "number"}},
        "runner": {
            "completion": {"type": "keywordSignal", "config": {"completionKeyword": "DONE"}},
            "adapter": {"type": "custom", "command": command},
            "limits": {"retryDelaySeconds": 0.01, **limits},
            "sandbox": {"kind": "worktree"},
            **runner,
        },
    }
    if "flow" in runner:
        del file["runner"]["completion"]  # type: ignore[attr-defined]
    else:
        (folder / "steps_registry.json").write_text(json.dumps({"steps": {"work": {}}}), encoding="utf-8")
    (folder / "agent.json").write_text(json.dumps(file), encoding="utf-8")
    (folder / "prompts" / "system.md").write_text("You are an agent of the tests.\n", encoding="utf-8")


def _ask(root: Path, home: Path) -> None:
    """One that asks what is next: with nothing but what every Python has, and with no other start than that."""
    for path in ("tests/fleet/asker.py", "tests/chaos/asking.py"):
        copied = home / "cast" / path
        copied.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(HERE.parent.parent / path, copied)
    begin = f'cd "$PWD" && PYTHONPATH={home}/cast exec /usr/bin/python3 -B -S -m tests.chaos.asking {home}'
    flow = {"mode": "stateDriven", "hierarchy": "worker"}
    _declare(root, Kind.ASKING, ["sh", "-c", begin], {"retries": _MANY, "maxIterations": _MANY}, flow=flow)
