"""What users see, word by word. A change of a screen is a change of this file."""

import re

from inline_snapshot import snapshot

from tests.project import Project, gated, says


def _settled(text: str, project: Project) -> str:
    """The screen without what differs from run to run."""
    text = text.replace(str(project.root), "REPOSITORY")
    text = re.sub(r"worker-\d{8}-\d{6}-[0-9a-f]+", "RUN", text)
    text = re.sub(r"\b[0-9a-f]{7}\b", "COMMIT", text)
    return re.sub(r" +\d+\.\d s", " N s", text)


def test_a_run_that_is_caught_once(project: Project) -> None:
    steps = {
        "implement": {
            "structuredGate": gated("next"),
            "transitions": {"next": "close"},
            "completionConditions": [{"validator": "good"}],
        },
        "close": {"stepKind": "closure", "structuredGate": gated("closing")},
    }
    turns = [
        {
            "do": [{"write": {"path": "a.txt", "text": "BAD"}}, {"commit": "One"}],
            "reply": says("next", status="completed"),
        },
        {
            "do": [{"write": {"path": "a.txt", "text": "ok"}}, {"commit": "Two"}],
            "reply": says("next", status="completed"),
        },
    ]
    project.agent(
        completion={"type": "stepMachine"},
        registry={
            "entryStep": "implement",
            "validators": {
                "good": {"type": "command", "command": "grep BAD a.txt && echo error: it is BAD && exit 1 || true"}
            },
        },
        steps=steps,
        script={"steps": {"implement": turns, "close": [{"reply": says("closing")}]}},
        parameters={"issue": {"type": "number"}},
    )
    project.issue(7, "Make it good", body="It is bad.")

    done = project.genba("run", "worker", "--issue", "7", check=0)

    assert _settled(done.err, project) == snapshot("""\
worker · #7 "Make it good" · scripted · worktree · genba/7-make-it-good

 ✗ implement      1  repeat N s                good: error: it is BAD (exit code 1)
 ✓ implement      2  next N s                1 file, 1 commit
 ✓ close          3  closing N s
   verified COMMIT

   merged   COMMIT into main
   note     task #7 is done
 ● completed · 3 iterations · N s · merged COMMIT
""")
    assert project.prompts()[1] == snapshot("""\
# Go on

This is iteration 2. Your last reply:

{"next_action":{"action":"next"},"status":"completed"}

## Issue #7: Make it good

It is bad.

Done means: the last step of the flow is closed.

Genba checks on your last commit, in a clean checkout:

- protected_paths: The branch leaves alone what judges it: configuration, CI, lint settings, and what the goals run.
- tests_kept: No test of the base is removed, skipped, emptied or changed.
- links_inside: Nothing in the branch points out of the repository.

Genba takes care of the issue: close it when done.

## What is still missing (attempt 1 of 3 failed)

You claimed "completed". Genba checked, and `good` does not hold: error: it is BAD (exit code 1)

```
BAD
error: it is BAD
```

## Your answer

End your answer with one JSON object in a ```json block.

`next_action.action` says how to go on; one of: "next".
""")


def test_every_problem_of_a_definition(project: Project) -> None:
    project.agent(
        completion={"type": "externlState"},
        steps={"implement": {"structuredGate": gated("next", "jump"), "transitions": {"next": "implement"}}},
    )

    done = project.genba("run", "worker", check=3)

    assert done.err == snapshot("""\
error: .agent/worker/agent.json: runner.completion.type: "externlState" is not a completion type
       did you mean "externalState"?  (8 types: genba schema completion)
error: .agent/worker/steps_registry.json: steps.implement: intent "jump" has no transition
       genba schema steps_registry
nothing was started, nothing was changed.
hint: genba agent check worker
""")


def test_where_each_value_came_from(project: Project) -> None:
    project.agent(flow={"defaultModel": "sonnet"})
    project.write(".agent/worker/config.local.json", '{"runner": {"limits": {"reasks": 5}}}')
    project.write(".genba/config.yaml", "limits: {retries: 1}\n")

    rows = project.genba("agent", "show", "worker", "--explain", check=0).out.splitlines()
    wanted = ("runner.flow.defaultModel", "runner.limits.reasks", "runner.limits.retries", "runner.limits.tokens")
    shown = [re.sub(r" +", " ", row) for row in rows if row.startswith(wanted)]

    assert "\n".join(shown) == snapshot("""\
runner.flow.defaultModel "sonnet" .agent/worker/agent.json
runner.limits.tokens null default
runner.limits.retries 1 .genba/config.yaml
runner.limits.reasks 5 .agent/worker/config.local.json\
""")


def test_one_agent_at_a_glance(project: Project) -> None:
    project.agent(parameters={"topic": {"type": "string", "required": True, "description": "What to write on"}})

    shown = project.genba("agent", "show", "worker", check=0).out

    assert re.sub(r"definition  \w+", "definition  HASH", shown) == snapshot("""\
worker · worker
An agent of the tests

completes   iterationBudget
adapter     scripted
model       opus
can do      -
definition  HASH

parameters
  --topic  string  required  What to write on

steps
  work  work  -  → stays
""")
