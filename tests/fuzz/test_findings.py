"""What fuzzing found: each as the smallest input that shows it."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from genba.connections.agents.cli_tools.claude_events import ClaudeReading
from genba.connections.agents.cli_tools.codex_events import CodexReading
from genba.connections.agents.cli_tools.opencode_events import OpenCodeReading
from genba.connections.agents.command_line import Reading, Totals
from genba.connections.git.repository.layout import RepositoryLayout
from genba.connections.journal.jsonl import JsonlJournal, read_journal
from genba.definitions.agent.layers import Layer, merge
from genba.definitions.agent.loading import load_definition
from genba.definitions.agent.scaffold import scaffold
from genba.definitions.project.project import load_project, rules_from
from genba.domain.convert import LARGEST_FILE, LARGEST_YAML
from genba.domain.errors import LONGEST_WAIT, AgentUnavailable, ConfigurationError, RateLimited, RecoverableError
from genba.domain.events import Notice
from genba.domain.problems import MAX_SHOWN
from genba.domain.processes import Ending, Exit
from genba.domain.redaction import Redactor
from genba.domain.sessions.replies import Reply
from genba.judgement.loop.structured_output import last_block
from tests.fuzz.budget import within
from tests.fuzz.histories import BASE, CommitPlan, HistoryPlan, Repository
from tests.project import Project

# ── YAML ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

MISFITS = {
    "no number": 'a: !!int ""',
    "no fraction": "a: !!float ''",
    "no truth": "a: !!bool perhaps",
    "no moment": "a: !!timestamp soon",
    "a time without end": f"a: {':'.join(['1'] * 400)}.5",
    "no character": 'a: "\\UFFFFFFFF"',
}


@pytest.mark.parametrize("name", MISFITS)
@pytest.mark.parametrize("path", [".genba/config.yaml", ".agent/worker/script.yaml"])
def test_a_value_that_does_not_fit_its_tag_is_refused(project: Project, name: str, path: str) -> None:
    project.agent(commit=False)
    project.write(path, MISFITS[name])
    project.commit()
    done = project.genba("run", "worker", check=3)
    assert "not YAML: a " in done.err
    assert "Traceback" not in done.err


def _merge_bomb(each: int, levels: int) -> str:
    text = "m0: &m0 {x: 1}\n"
    return text + "".join(f"m{n}: &m{n} {{<<: [{','.join([f'*m{n - 1}'] * each)}]}}\n" for n in range(1, levels))


@pytest.mark.parametrize(
    "text",
    [
        _merge_bomb(9, 12),
        "a: &a {" + ",".join(f"k{n}: 1" for n in range(9000)) + "}\nb: {<<: [" + ",".join(["*a"] * 40_000) + "]}",
    ],
    ids=["many levels", "one level"],
)
def test_merge_keys_that_stand_for_billions_are_refused_at_once(text: str) -> None:
    with within(10), pytest.raises(ConfigurationError, match="<< merges too many values"):
        rules_from(text, "config.yaml")


def test_merge_keys_of_a_person_are_read() -> None:
    text = "x: &x {max_iterations: 3, retries: 1}\nlimits: {<<: *x, retries: 2}\n"
    with pytest.raises(ConfigurationError) as refused:
        rules_from(text, "config.yaml")
    assert [problem.path for problem in refused.value.problems] == ["x"]


def test_a_script_in_which_a_key_stands_twice_is_refused(project: Project) -> None:
    project.agent(commit=False)
    project.write(".agent/worker/script.yaml", "repeat: true\nturns: []\nturns: [{reply: x}]\n")
    project.commit()
    assert 'the key "turns" stands there twice' in project.genba("run", "worker", check=3).err


# ── JSON ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("path", ["agent.json", "steps_registry.json", "config.json", "config.local.json"])
def test_json_in_which_a_key_stands_twice_is_refused(project: Project, path: str) -> None:
    project.agent(commit=False)
    project.write(f".agent/worker/{path}", '{"name": "worker", "description": "one", "description": "two"}')
    project.commit()
    output = project.genba("agent", "check", "worker", check=3).err
    assert f'.agent/worker/{path}: not JSON: the key "description" stands there twice' in output


@pytest.mark.parametrize(
    ("path", "content"),
    [
        (".agent/worker/agent.json", b" " * LARGEST_FILE + b"{}"),
        (".agent/worker/prompts/system.md", b"x" * (LARGEST_FILE + 1)),
        (".agent/worker/script.yaml", b"#" * (LARGEST_YAML + 1)),
        (".genba/config.yaml", b"#" * (LARGEST_YAML + 1)),
    ],
)
def test_a_missing_file_is_not_read(project: Project, path: str, content: bytes) -> None:
    project.agent(commit=False)
    project.write(path, "").write_bytes(content)
    project.commit()
    assert "it is larger than" in project.genba("run", "worker", check=3).err


def test_a_sparse_file_without_end_is_not_read(project: Project) -> None:
    project.agent()
    with (project.root / ".agent/worker/prompts/system.md").open("r+b") as file:
        file.truncate(2**40)
    assert "it is larger than" in project.genba("agent", "check", "worker", check=3).err


def _agent(folder: Path, registry: dict[str, Any], **more: Any) -> Path:
    home = folder / "worker"
    (home / "prompts").mkdir(parents=True)
    runner = {"completion": {"type": "stepMachine"}, "limits": {"maxIterations": 5000}}
    file = {"name": "worker", "description": "x", "runner": runner, **more}
    (home / "agent.json").write_text(json.dumps(file))
    (home / "steps_registry.json").write_text(json.dumps(registry))
    (home / "prompts/system.md").write_text("x")
    return home


def test_two_wide_layers_are_merged_in_no_time() -> None:
    wide = {f"k{n}": {"a": 1} for n in range(30_000)}
    with within(5):
        merged = merge([Layer("low", wide), Layer("high", dict.fromkeys(wide, 2))])
    assert set(merged.sources.values()) == {"high"}


def test_a_thousand_mistakes_are_reported_in_part_and_at_once(tmp_path: Path) -> None:
    jump = {"targets": [f"nowhere{n}" for n in range(20)]}
    gate = {"allowedIntents": ["next", "jump"]}
    steps = {f"s{n}": {"structuredGate": gate, "transitions": {"next": f"t{n}", "jump": jump}} for n in range(1000)}
    with within(10), pytest.raises(ConfigurationError) as refused:
        load_definition(_agent(tmp_path, {"entryStep": "s0", "steps": steps}), "worker", [], [])
    assert len(refused.value.problems) == MAX_SHOWN + 1
    assert refused.value.problems[-1].message == "and more problems of this kind"


def test_a_long_chain_of_steps_is_checked_in_no_time(tmp_path: Path) -> None:
    gate = {"allowedIntents": ["next"]}
    steps: dict[str, Any] = {
        f"s{n}": {"structuredGate": gate, "transitions": {"next": f"s{n + 1}"}} for n in range(999)
    }
    steps["s999"] = {"stepKind": "closure"}
    with within(10):
        definition = load_definition(_agent(tmp_path, {"entryStep": "s0", "steps": steps}), "worker", [], [])
    assert len(definition.registry.steps) == 1000


@pytest.mark.parametrize("pattern", ["a{99999999999}", "(" * 3000 + ")" * 3000])
def test_a_regular_expression_that_cannot_be_is_refused(tmp_path: Path, pattern: str) -> None:
    registry = {"steps": {"a": {"stepKind": "closure"}}, "failurePatterns": {"x": {"match": pattern}}}
    with pytest.raises(ConfigurationError) as refused:
        load_definition(_agent(tmp_path, registry), "worker", [], [])
    assert any("not a regular expression" in problem.message for problem in refused.value.problems)


def test_wrong_instructions_do_not_stop_read_only_commands(project: Project) -> None:
    project.issue(1, "One")
    project.write(".genba/instructions/nonsense.md", "x")
    assert '"nonsense" is no action' in project.genba("status", check=0).err


# ── what agents say ──────────────────────────────────────────────────────────────────────────────────────────────────


def _read(reading: Reading, *events: Any) -> Reply:
    for event in events:
        reading.line(json.dumps(event).encode())
    return reading.reply(Exit(ending=Ending.EXITED, code=0, stdout="", stderr="", seconds=1.0))


def _received(_stream: str, _line: str) -> None:
    return


def _claude(folder: Path) -> Reading:
    return ClaudeReading(_received, totals=Totals(str(folder)), resumed=False)


def _codex(folder: Path) -> Reading:
    return CodexReading(_received, totals=Totals(str(folder)), schema={"type": "object"})


def _opencode(_folder: Path) -> Reading:
    return OpenCodeReading(_received)


def test_errors_that_are_no_list_are_no_errors(tmp_path: Path) -> None:
    with pytest.raises(AgentUnavailable):
        _read(_claude(tmp_path), {"type": "result", "is_error": True, "errors": 5})


def test_a_retry_without_end_is_counted_no_further() -> None:
    reading = _opencode(Path())
    reading.line(b'{"type": "genba", "retry": 5000, "seconds": 3, "message": "rate limit"}')
    with pytest.raises(RateLimited):
        reading.reply(Exit(ending=Ending.EXITED, code=1, stdout="", stderr="", seconds=1.0))


@pytest.mark.parametrize("reported", ["nan", "-5", "inf", "1e400", 10**400, [1], None, "soon"])
def test_a_wait_that_no_calendar_has_is_a_month_or_none(reported: Any) -> None:
    headers = {"retry-after": reported}
    error = {"name": "APIError", "data": {"message": "too many", "statusCode": 429, "responseHeaders": headers}}
    with pytest.raises(RateLimited) as limited:
        _read(_opencode(Path()), {"type": "error", "error": error})
    assert limited.value.retry_after in (None, LONGEST_WAIT)


@pytest.mark.parametrize("seconds", [float("inf"), 1e15, LONGEST_WAIT + 1])
def test_no_wait_is_longer_than_a_month(seconds: float) -> None:
    assert RecoverableError("x", retry_after=seconds).retry_after == LONGEST_WAIT
    assert RecoverableError("x", retry_after=float("nan")).retry_after is None
    assert RecoverableError("x", retry_after=0.0).retry_after == 0.0


@pytest.mark.parametrize("session", ["--dangerously", "a\0b", "a b", "x" * 5000, "", "a\n"])
def test_the_name_of_a_conversation_can_stand_in_a_command_line(tmp_path: Path, session: str) -> None:
    replies = (
        _read(_claude(tmp_path), {"type": "result", "subtype": "success", "result": "x", "session_id": session}),
        _read(_codex(tmp_path), {"type": "thread.started", "thread_id": session}, {"type": "turn.completed"}),
        _read(_opencode(tmp_path), {"type": "step_finish", "sessionID": session, "part": {"reason": "stop"}}),
    )
    assert [reply.session_id for reply in replies] == [None, None, None]


def _deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = {"a": value}
    return value


def test_structured_output_without_bottom_is_none(tmp_path: Path) -> None:
    event = {"type": "result", "subtype": "success", "result": "x", "structured_output": _deep(500)}
    assert _read(_claude(tmp_path), event).structured is None
    values = {"type": "item.completed", "item": {"type": "agent_message", "text": json.dumps(_deep(500))}}
    assert _read(_codex(tmp_path), values, {"type": "turn.completed"}).structured is None
    assert last_block(json.dumps(_deep(500))) is None
    assert last_block(json.dumps(_deep(50))) == _deep(50)


def test_a_reply_file_that_is_nested_too_deeply_is_a_failed_try(project: Project) -> None:
    (project.root.parent / "reply.json").write_text(json.dumps({"structured": _deep(500)}))
    line = f"cp {project.root.parent}/reply.json {{reply_file}}"
    project.agent(adapter={"type": "custom", "command": line}, limits={"retries": 0})
    assert "structured is nested too deeply" in project.run("worker", check=1)["reason"]


# ── journals ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("line", [b'{"event":"\x80"}', b'{"event":' + b"[" * 5000, b"\0" * 100, b'"x"'])
def test_a_line_of_a_journal_that_is_no_event_is_passed_over(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "r.jsonl"
    whole = msgspec.json.encode(Notice(message="whole"))
    path.write_bytes(line + b"\n" + whole + b"\n" + line)
    assert [event.message for event in read_journal(path) if isinstance(event, Notice)] == ["whole"]


def test_after_a_line_that_a_full_disk_cut_off_the_next_one_is_whole(tmp_path: Path) -> None:
    journal = JsonlJournal(tmp_path / "r.jsonl", "r", "a", None, Redactor({}), ())
    journal.emit(Notice(message="before"))
    script = (
        "import resource, sys\nfrom pathlib import Path\n"
        "from genba.connections.journal.jsonl import JsonlJournal\n"
        "from genba.domain.redaction import Redactor\n"
        "from genba.domain.errors import DiskFullError\nfrom genba.domain.events import Notice\n"
        "import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "path = Path(sys.argv[1])\n"
        "journal = JsonlJournal(path, 'r', 'a', None, Redactor({}), ())\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 20, resource.RLIM_INFINITY))\n"
        "try: journal.emit(Notice(message='cut')); sys.exit('not cut')\n"
        "except DiskFullError: pass\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))\n"
        "journal.emit(Notice(message='after'))\n"
    )
    subprocess.run([sys.executable, "-c", script, str(journal.path)], check=True)
    journal.close()
    lines = [event.message for event in read_journal(journal.path) if isinstance(event, Notice)]
    assert lines == ["before", "after"]


# ── git ──────────────────────────────────────────────────────────────────────────────────────────────────────────────

USUAL = b"A U Thor <a@example.org> 1700000000 +0000"


@pytest.mark.parametrize("who", [b"A <a> -1 +0000", b"A <a>", b"", b"A <a> 99999999999999999999 +0000"])
def test_commits_without_a_time_do_not_stop_the_report(tmp_path: Path, who: bytes) -> None:
    work = CommitPlan([], {b"a": ("100644", b"x")}, USUAL, who, b"", b"Work\n\nIssue: 3\n")
    back = CommitPlan([0], {}, who, who, b"", b'Revert "Work" (#3)\n\nThis reverts commit abcdef1.\n')
    plan = HistoryPlan("sha1", [work, back], {BASE: 1, "3-x": 1}, [("shallow", 0)])
    (tmp_path / "repository").mkdir()
    Repository(tmp_path / "repository", plan)
    project = Project(tmp_path / "repository", {"HOME": str(tmp_path), "GIT_CONFIG_NOSYSTEM": "1"})
    project.issue(3, "Three")
    assert project.genba("facilitate", "--json").json["assessments"]
    project.genba("gc", "--dry-run", check=0)
    assert "Traceback" not in project.genba("verify", "3-x", "--base", BASE).err


def test_a_branch_that_changes_a_file_in_another_encoding_is_looked_at(project: Project) -> None:
    project.git("switch", "-qc", "3-menu")
    (project.root / "menu.txt").write_bytes(b"caf\xe9\n")
    project.commit("Add the menu")
    project.git("switch", "-q", "main")
    project.write("other.txt", "x\n")
    project.commit("Go on")
    project.issue(3, "The menu")
    assert project.genba("facilitate", "--json").json["assessments"]


def test_a_repository_of_sha256_is_worked_in(tmp_path: Path) -> None:
    root = tmp_path / "repository"
    subprocess.run(["git", "init", "-q", "-b", "main", "--object-format=sha256", str(root)], check=True)
    project = Project(root, {"HOME": str(tmp_path), "GIT_CONFIG_NOSYSTEM": "1"})
    project.git("config", "user.name", "Test User")
    project.git("config", "user.email", "user@localhost")
    project.agent()
    result = project.run("worker")
    assert result["outcome"] == "completed"
    assert len(project.git("rev-parse", "main")) == 64
    assert project.read("work.txt") == "work\n"
    project.issue(3, "Three")
    assert project.genba("facilitate", "--json").json["assessments"]


def test_a_list_of_what_git_ignores_that_is_not_utf_8_is_kept(project: Project) -> None:
    exclude = project.root / ".git/info/exclude"
    exclude.parent.mkdir(exist_ok=True)
    exclude.write_bytes(b"caf\xe9/\n")
    layout = RepositoryLayout(project.root, project.root / ".git", project.root / ".git")
    layout.exclude("/.genba/")
    assert exclude.read_bytes() == b"caf\xe9/\n/.genba/\n"


# ── files that are written ───────────────────────────────────────────────────────────────────────────────────────────


def test_an_agent_that_is_being_made_is_no_agent_yet(project: Project) -> None:
    project.write(".agent/.writer.abc/agent.json", "{")
    assert "writer" not in project.genba("agent", "list", check=0).out
    scaffold(project.root / ".agent", "writer", "steps")
    assert "writer" in project.genba("agent", "check", "writer", check=0).out
    assert load_project(project.root).agents_folder.is_dir()
