"""Output of any kind and length: the journal stays short, says what it left out, and has the last words."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from genba.connections.processes.supervisor import ProcessSupervisor
from genba.domain.processes import AWAITED, Command
from genba.domain.sessions.loop_state import Feedback
from genba.execution.loop.prompts import gap_section
from tests.bubblewrap import needs_bubblewrap
from tests.fleet.conftest import small_yard  # noqa: F401  (a fixture)
from tests.fleet.yard import Yard
from tests.project import Project

MEGABYTE = 1_000_000
JOURNAL = 16 * MEGABYTE
EVENTS = 4000
SHORT = "yes 'hello 12' | head -c 3000000"
LOUD = "yes 0123456789012345678901234567890123456789 | head -n 300000"
LOUD_BYTES = 300_000 * 41
SECRET = "the-users-own-value"
FAKE_CLAUDE = """#!{python}
import json, sys
def say(**event): sys.stdout.write(json.dumps(event, separators=(",", ":")) + "\\n")
say(type="system", subtype="init", session_id="one", tools=["Write"], mcp_servers=[])
text = [{{"type": "text", "text": "some words"}}]
for number in range(60000): say(type="assistant", message={{"content": text}}, session_id="one")
call = [{{"type": "tool_use", "id": "last", "name": "Write", "input": {{"file_path": "late.txt"}}}}]
say(type="assistant", message={{"content": call}}, session_id="one")
sys.stdout.write("noise\\n" * 1000000)
sys.stderr.write("more noise\\n" * 100000)
usage = {{"input_tokens": 40, "output_tokens": 2}}
more = {{"usage": usage, "total_cost_usd": 0.5, "session_id": "one"}}
say(type="result", subtype="success", is_error=False, result="the answer", **more)
"""


def journal_of(project: Project, agent: str = "worker") -> Path:
    return next((project.root / "tmp/logs/agents" / agent).glob("*.jsonl"))


def kinds(events: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [event for event in events if event["event"] == kind]


def printed(events: list[dict[str, Any]]) -> list[str]:
    return [line for event in kinds(events, "agent_output") for line in event["text"].split("\n")]


def custom(project: Project, command: str, iterations: int = 1, **more: Any) -> None:
    completion = {"type": "iterationBudget", "config": {"maxIterations": iterations}}
    project.agent(adapter={"type": "custom", "command": command, **more}, completion=completion)


@pytest.mark.parametrize(
    "line",
    [
        SHORT,
        "yes '' | head -c 1000000",
        "yes | tr '\\n' '\\r' | head -c 3000000",
        "head -c 3000000 /dev/zero | tr '\\0' '\\n' >&2",
        "head -c 12000000 /dev/urandom",
        "head -c 12000000 /dev/zero",
    ],
    ids=["short lines", "empty lines", "carriage returns", "stderr", "garbage", "zeros"],
)
def test_the_journal_is_bounded_in_bytes_and_events(project: Project, line: str) -> None:
    custom(project, f"{line}; echo; echo the end")

    project.run("worker")

    assert journal_of(project).stat().st_size < JOURNAL
    events = project.events()
    assert len(events) < EVENTS
    assert printed(events)[-1] == "the end" or "the end" in printed(events)
    assert kinds(events, "reply_received")[0]["text"].endswith("the end\n")


def test_short_output_is_there_whole(project: Project) -> None:
    custom(project, "seq 1 200000; seq 1 1000 >&2")

    project.run("worker")

    events = project.events()
    assert not kinds(events, "output_left_out")
    out = [
        line for event in kinds(events, "agent_output") if event["stream"] == "stdout" for line in event["text"].split()
    ]
    assert out == [str(number) for number in range(1, 200001)]
    assert len(printed(events)) == 201000


def test_what_is_left_out_is_counted_and_shown(project: Project) -> None:
    custom(project, f"{LOUD}; echo the end")

    project.run("worker")

    events = project.events()
    [left_out] = kinds(events, "output_left_out")
    there = "\n".join(event["text"] for event in kinds(events, "agent_output"))
    assert left_out["stream"] == "stdout"
    assert left_out["bytes"] + len(there) + 1 == LOUD_BYTES + len("the end\n")
    assert left_out["lines"] + there.count("\n") + 1 == 300_001
    after = events[events.index(left_out) + 1 :]
    assert printed(after)[-1] == "the end"
    assert printed(events)[0] == "0123456789012345678901234567890123456789"
    shown = project.genba("logs", left_out["run"], check=0).out
    assert f"… {left_out['bytes']:,} bytes of output left out" in shown


def test_the_middle_of_an_endless_line_is_left_out(project: Project) -> None:
    custom(project, "printf 'the begin '; head -c 12000000 /dev/zero | tr '\\0' x; printf ' the end'")

    project.run("worker")

    [line] = ["\n".join(printed(project.events()))]
    assert line.startswith("the begin xxx")
    assert line.endswith("xxx the end")
    assert "bytes of output left out" in line
    assert len(line) < 70_000


def test_a_session_of_many_loud_iterations_keeps_every_event_of_its_own(project: Project) -> None:
    custom(project, f"{LOUD}; echo end of $GENBA_ITERATION", iterations=12)

    project.run("worker")

    assert journal_of(project).stat().st_size < JOURNAL
    events = project.events()
    for kind in ("iteration_started", "agent_started", "agent_ended", "reply_received", "iteration_finished"):
        assert [event["iteration"] for event in kinds(events, kind)] == list(range(1, 13)), kind
    assert [event["iteration"] for event in kinds(events, "output_left_out")] == list(range(1, 13))
    assert [f"end of {number}" in printed(events) for number in range(1, 13)] == [True] * 12


def test_a_result_is_recognised_after_a_flood_of_messages_and_noise(project: Project) -> None:
    claude = project.root.parent / "claude"
    claude.write_text(FAKE_CLAUDE.format(python=sys.executable))
    claude.chmod(0o755)
    project.agent(adapter={"type": "claude-code", "command": str(claude)})

    result = project.run("worker", ANTHROPIC_API_KEY="a-key-for-nothing")

    assert result["outcome"] == "completed"
    events = project.events()
    [reply] = kinds(events, "reply_received")
    assert (reply["text"], reply["usage"]["input_tokens"], reply["usage"]["cost_usd"]) == ("the answer", 40, 0.5)
    assert [(event["tool"], event["target"]) for event in kinds(events, "tool_used")] == [("Write", "late.txt")]
    assert '"the answer"' in printed(events)[-1] or any('"the answer"' in line for line in printed(events))
    assert journal_of(project).stat().st_size < JOURNAL
    assert len(events) < EVENTS


def test_a_detached_agent_is_bounded_too(small_yard: Yard) -> None:  # noqa: F811  (the fixture)
    yard, line = small_yard, f"{SHORT}; echo; {LOUD}; echo the end; echo >> task-$GENBA_ISSUE.txt"
    issue = {"issue": {"type": "number"}}
    yard.project.agent("worker", adapter={"type": "custom", "command": line, "commit": True}, parameters=issue)
    yard.set()
    yard.task(1)

    yard.work()

    assert journal_of(yard.project).stat().st_size < JOURNAL
    events = yard.project.events(journal_of(yard.project).stem)
    assert len(events) < EVENTS
    assert kinds(events, "output_left_out")
    assert printed(events)[-1] == "the end"


def test_the_end_of_a_goals_output_counts_however_long_it_is(project: Project) -> None:
    line = f"{LOUD}; {LOUD}; {LOUD}; echo FAILED test_last; exit 1"
    project.write(".genba/config.yaml", json.dumps({"dod": [{"lint_passes": f"sh -c '{line}'"}]}))
    project.commit("Begin")
    project.git("switch", "-qc", "work")
    project.write("new.txt", "new\n")
    project.commit("Work")

    found = project.genba("verify", "work", "--json", check=1).json["verification"]

    [result] = [each["result"] for each in found["results"] if "FAILED" in json.dumps(each["result"])]
    assert result["detail"] == "FAILED test_last (exit code 1)"
    assert result["output"].endswith("FAILED test_last")
    assert len(result["output"]) < 300_000


def test_output_in_a_sandbox_is_bounded(project: Project) -> None:
    needs_bubblewrap()
    custom(project, f"{SHORT}; echo; {LOUD}; echo the end")

    project.run("worker", "--sandbox", "bubblewrap")

    assert journal_of(project).stat().st_size < JOURNAL
    events = project.events()
    assert len(events) < EVENTS
    assert printed(events)[-1] == "the end"


@pytest.mark.parametrize("before", range(490, 516, 5))
def test_a_secret_is_hidden_wherever_a_long_line_is_cut(project: Project, before: int) -> None:
    python = f"import os; os.write(1, b'x' * 20000 + os.environb[b'MY_API_KEY'] + b'y' * {before})"
    command = [sys.executable, "-c", f"{python}; import time; time.sleep(0.2); print()"]
    project.agent(adapter={"type": "custom", "command": command, "passEnv": ["MY_API_KEY"]})

    project.run("worker", MY_API_KEY=SECRET)

    text = journal_of(project).read_text()
    assert not [part for part in (SECRET[:9], SECRET[5:14], SECRET[-9:]) if part in text]
    assert "[redacted]" in text


def test_a_secret_that_is_printed_in_two_parts_is_hidden(project: Project) -> None:
    custom(project, "printf 'key the-users-'; sleep 0.2; echo own-value; sleep 0.1; echo more", passEnv=["MY_API_KEY"])

    project.run("worker", MY_API_KEY=SECRET)

    assert printed(project.events()) == ["key [redacted]", "more"]


def test_a_private_key_is_hidden_whose_lines_are_printed_one_by_one(project: Project) -> None:
    body = ["MIIEowIBAAKCAQEAu1SU1LfVLPHCozMxH2Mo4lgOEePzNm0tRgeLezV6ffAt0gun", "VTLw7onLRnrq0", "AAAA=="]
    lines = ["before", "-----BEGIN RSA PRIVATE KEY-----", *body, "-----END RSA PRIVATE KEY-----", "after"]
    custom(project, "; sleep 0.05; ".join(f"echo {line}" for line in lines))

    project.run("worker")

    message = "\n".join(printed(project.events()))
    assert message.startswith("before\n[redacted]")
    assert message.endswith("after")
    assert not [line for line in body if line in message]


def test_the_lines_of_a_secret_with_many_lines_are_hidden_one_by_one(project: Project) -> None:
    custom(
        project, 'echo "$MY_API_KEY" | while read -r line; do echo "$line"; sleep 0.05; done', passEnv=["MY_API_KEY"]
    )

    project.run("worker", MY_API_KEY="first-line-of-it\nsecond-line-of-it")

    assert set(printed(project.events())) == {"[redacted]"}


async def test_a_text_that_is_waited_for_is_found_after_any_noise(tmp_path: Path) -> None:
    line = "head -c 9000000 /dev/zero | tr '\\0' '\\n' >&2; printf 'it is rea' >&2; sleep 0.1; echo dy >&2"
    received: list[tuple[str, str]] = []
    command = Command(
        argv=("sh", "-c", line),
        workdir=str(tmp_path),
        environment={"PATH": "/usr/bin:/bin"},
        timeout_seconds=60,
        idle_seconds=60,
        mark="awaited",
        awaits="it is ready",
    )

    done = await ProcessSupervisor().run(command, lambda stream, text: received.append((stream, text)))

    assert done.stderr.endswith("\nit is ready\n")
    assert received.count((AWAITED, "it is ready")) == 1
    assert len(received) < EVENTS


def test_a_huge_structured_reply_is_refused_and_the_journal_stays_short(project: Project) -> None:
    reply = "import json, sys; json.dump({'structured': {'all': ['x' * 100] * 100_000}}, open(sys.argv[1], 'w'))"
    command = [sys.executable, "-c", reply, "{reply_file}"]
    project.agent(adapter={"type": "custom", "command": command}, limits={"reasks": 2})

    result = project.run("worker", check=1)

    assert "put it into a file" in result["reason"]
    assert journal_of(project).stat().st_size < MEGABYTE


def test_a_prompt_after_a_failure_is_bounded_whatever_was_printed_or_claimed() -> None:
    loud = "first words " + "x" * 10_000_000 + " last words"
    gap = Feedback(check="tests", detail=loud, output=loud, claim=loud, attempt=1, max_attempts=3)

    text = gap_section(gap)

    assert len(text) < 70_000
    assert text.count("first words") == text.count("last words") == 3
