"""A small field that was really worked on: one task of every kind, ended as the plan says.

This is what the checker is tried on. The checker itself does not know this module.
"""

import json
from pathlib import Path

from tests.chaos.plan import Kind, Part, Plan
from tests.fleet.yard import Yard

ASKER = Path(__file__).parents[2] / "fleet" / "asker.py"
CHECK = """\
for file in task-*.txt; do
  test -f "$file" || continue
  number=${file#task-}
  test "$(cat "$file")" = "${number%.txt}" || exit 1
done
! grep -q '<<<<<<<' shared-*.txt 2>/dev/null
"""
AGENT = r"""n=$GENBA_ISSUE home=$1
kind=$(cat "$home/kinds/$n")
echo "$n" >> "$home/starts.txt"
keep() { git add -A && git commit -qm "$1" && git rev-parse HEAD >> "$home/commits.txt"; }
first() { mkdir "$home/kinds/$n.$1" 2>/dev/null; }
case $kind in
  slow) echo "$n" > "task-$n.txt"; keep one; echo more > "notes-$n.txt"; keep two ;;
  crashing)
    if first died; then echo half > "half-$n.txt"; keep half; kill -9 $$; fi
    echo "$n" > "task-$n.txt"; keep work ;;
  doomed) echo half > "half-$n.txt"; keep half || true; kill -9 $$ ;;
  lying) echo wrong > "task-$n.txt"; echo 'exit 0' > check.sh; keep lie || true ;;
  sorry) if first lied; then echo wrong > "task-$n.txt"; else echo "$n" > "task-$n.txt"; fi; keep work ;;
  conflicting)
    if grep -q '<<<<<<<' shared-1-2.txt; then printf 'by-1\nby-2\n' > shared-1-2.txt; keep settled
    else
      first came || true
      i=0; until [ "$(ls -d "$home"/kinds/*.came | wc -l)" -ge 2 ] || [ $i -ge 3000 ]; do sleep 0.02; i=$((i+1)); done
      echo "$n" > "task-$n.txt"; echo "by-$n" > shared-1-2.txt; keep work
    fi ;;
  *) echo "$n" > "task-$n.txt"; keep work ;;
esac
echo done
"""
KINDS = (
    Kind.CONFLICTING,
    Kind.CONFLICTING,
    Kind.HONEST,
    Kind.SLOW,
    Kind.CRASHING,
    Kind.DOOMED,
    Kind.LYING,
    Kind.SORRY,
    Kind.ASKING,
)


def small_plan() -> Plan:
    """Task 4 waits for task 3."""
    partners = {1: 2, 2: 1}
    return Plan(
        seed=0,
        parts=tuple(
            Part(number, kind, 0, (3,) if number == 4 else (), partners.get(number, 0))
            for number, kind in enumerate(KINDS, 1)
        ),
    )


def work(yard: Yard, plan: Plan) -> Path:
    """Have a fleet work on it to the end; says where the agents have left their witnesses."""
    home = yard.project.root.parent
    (home / "kinds").mkdir()
    for part in plan.parts:
        (home / "kinds" / str(part.number)).write_text(part.kind, "utf-8")
    (home / "agent.sh").write_text(AGENT, "utf-8")
    yard.project.write("check.sh", CHECK)
    yard.project.write("shared-1-2.txt", "begin\n")
    yard.settings["dod"] = [{"custom_script": "sh check.sh"}]
    yard.settings["work"]["workers"] = 4
    yard.settings["attempts"] = {"max": 2, "per_agent": 2, "backoff_seconds": 0}
    _asker(yard, home)
    command = f"exec sh {home}/agent.sh {home}"
    limits = {"retryDelaySeconds": 0.01, "retries": 1, "maxIterations": 2}
    yard.agent(adapter={"type": "custom", "command": command}, limits=limits)
    yard.set()
    for part in plan.parts:
        yard.task(part.number, assignee="asker" if part.kind is Kind.ASKING else "", dependencies=part.after)
    yard.work(check=1)
    return home


def _asker(yard: Yard, home: Path) -> None:
    number = KINDS.index(Kind.ASKING) + 1
    conduct = {"plan": [{"title": f"task-{number}"}], "home": str(home)}
    file = {
        "name": "asker",
        "description": "An agent that asks what is next",
        "parameters": {"issue": {"type": "number"}},
        "runner": {
            "flow": {"mode": "stateDriven", "hierarchy": "worker"},
            "adapter": {
                "type": "custom",
                "command": f"echo $GENBA_ISSUE >> {home}/starts.txt; /usr/bin/python3 {home}/asker.py"
                f" && git rev-parse HEAD >> {home}/commits.txt",
                "env": {"CONDUCT": json.dumps(conduct)},
            },
            "limits": {"maxIterations": 3, "retries": 0},
            "sandbox": {"kind": "worktree"},
        },
    }
    yard.project.write(".agent/asker/agent.json", json.dumps(file))
    yard.project.write(".agent/asker/prompts/system.md", "You write files, one after the other.\n")
    right = 'return "wrong" if self.conduct.get("wrong") else "right"'
    (home / "asker.py").write_text(ASKER.read_text("utf-8").replace(right, f'return "{number}"'), "utf-8")
