"""Input that wants to break something: each is answered with a message and an exit code, never with a traceback."""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.project import COMMIT, GENBA, Finished, Project, gated

LONG = "a" * 300
DEEP = 100_000
DIGITS = "9" * 5000
AGENT = ".agent/worker/agent.json"


def refused(project: Project, *words: str, code: int = 3) -> str:
    before = everything(project)
    done = project.genba(*(words or ("run", "worker")))
    assert done.code == code, f"exit {done.code}\n{done.out}\n{done.err}"
    assert "Traceback" not in done.err
    assert "error: " in done.err
    assert everything(project) == before
    return done.err


def everything(project: Project) -> tuple[str, str, list[str]]:
    files = sorted(str(path) for path in project.root.rglob("*") if ".git/" not in f"{path}/")
    return project.git("for-each-ref"), project.git("status", "--porcelain"), files


def change(project: Project, path: str, where: str, value: Any) -> None:
    """Set one value of a JSON file of the agent, as text that is put there word by word when it is a `Raw`."""
    data = json.loads(project.read(path))
    node = data
    *above, last = where.split(".")
    for key in above:
        node = node.setdefault(key, {})
    node[last] = "RAW" if isinstance(value, Raw) else value
    text = json.dumps(data)
    project.write(path, text.replace('"RAW"', value.text) if isinstance(value, Raw) else text)
    project.commit("With a surprise")


class Raw:
    """JSON as it stands, also what no JSON writer would write."""

    def __init__(self, text: str) -> None:
        self.text = text


# ── files that are no plain data ─────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("path", [AGENT, ".agent/worker/steps_registry.json", ".agent/worker/config.json"])
@pytest.mark.parametrize(
    ("text", "reported"),
    [
        ("[" * DEEP + "]" * DEEP, "nested too deeply"),
        ('{"runner": ' + "[" * 200 + "]" * 200 + "}", "nested too deeply"),
        (f'{{"runner": {{"limits": {{"maxIterations": {DIGITS}}}}}}}', "4300 digits"),
        ('{"runner": {"limits": {"maxIterations": 99999999999999999999}}}', "too many digits"),
        ('{"runner": {"limits": {"wallTimeSeconds": NaN}}}', "is not a number"),
        ('{"runner": {"limits": {"wallTimeSeconds": 1e999}}}', "is not a number"),
        ('{"\\ud800": 1}', "U+D800"),
    ],
    ids=["bottomless", "deep", "long number", "large number", "nan", "infinite", "surrogate key"],
)
def test_unusable_json_is_refused(project: Project, path: str, text: str, reported: str) -> None:
    project.agent()
    project.write(path, text)
    project.commit()
    output = refused(project)
    assert path in output
    assert reported in output


YAML = {
    "bottomless": ("turns: " + "[" * 5000 + "]" * 5000, "nested too deeply"),
    "circle": ("turns: &a [*a]", "nested too deeply"),
    "bomb": ("a: &a [1,1,1,1,1,1,1,1,1]\n" + "".join(
        f"{new}: &{new} [{','.join([f'*{old}'] * 9)}]\n" for old, new in zip("abcdefgh", "bcdefghi", strict=True)
    ), "too many values"),
    "long number": (f"turns: {DIGITS}", "4300 digits"),
    "hexadecimal": (f"turns: 0x{'f' * 5000}", "too many digits"),
    "number as key": ("1: 2", "the key 1 is not a text"),
    "date as key": ("2024-01-01: 2", "the key 2024-01-01 is not a text"),
    "truth as key": ("on: 2", "the key True is not a text"),
    "date": ("turns: 2024-01-01", "is a date"),
    "no date": ("turns: 2024-99-99", "month must be in 1..12"),
    "bytes": ("turns: !!binary aGVsbG8=", "is a bytes"),
    "infinite": ("turns: .inf", "is not a number"),
}  # fmt: skip


@pytest.mark.parametrize("path", [".agent/worker/script.yaml", ".genba/config.yaml"])
@pytest.mark.parametrize("name", YAML)
def test_unusable_yaml_is_refused(project: Project, path: str, name: str) -> None:
    text, result = YAML[name]
    project.agent()
    project.write(path, text)
    project.commit()
    output = refused(project)
    assert path.removeprefix(".agent/") in output
    assert result in output


def test_a_blackboard_that_cannot_be_read_is_refused(project: Project) -> None:
    project.agent(parameters={"issue": {"type": "number"}}, completion={"type": "externalState"})
    (project.root / ".git/info/exclude").write_text("/.genba/\n")
    project.write(".genba/genba.db", "this is no database, " * 100)
    assert ".genba/genba.db" in refused(project, "run", "worker", "--issue", "1", code=5)


@pytest.mark.parametrize("path", [AGENT, ".agent/worker/script.yaml", ".genba/config.yaml"])
def test_a_file_that_is_not_utf_8_is_refused(project: Project, path: str) -> None:
    project.agent()
    project.write(path, "").write_bytes(b'{"name": "\xff\xfe"}')
    project.commit()
    assert "not UTF-8" in refused(project)


@pytest.mark.parametrize("where", ["displayName", "description", "name", "runner.flow.defaultModel"])
@pytest.mark.parametrize("text", ["\ud800", "a\0b"], ids=["surrogate", "nul"])
def test_what_is_not_text_is_refused_wherever_it_stands(project: Project, where: str, text: str) -> None:
    project.agent()
    change(project, AGENT, where, text)
    assert f"{where}: has a character that is not text" in refused(project)


# ── paths ────────────────────────────────────────────────────────────────────────────────────────────────────────────

PATHS = ("runner.flow.systemPromptPath", "runner.flow.prompts.registry", "runner.flow.prompts.fallbackDir")


@pytest.mark.parametrize("where", [*PATHS, "runner.adapter.script"])
@pytest.mark.parametrize("path", [LONG, "a\0b", "loop", "a/" * 3000], ids=["long", "nul", "loop", "many"])
def test_a_path_that_leads_nowhere_is_refused(project: Project, where: str, path: str) -> None:
    project.agent(commit=False)
    (project.root / ".agent/worker/loop").symlink_to("loop")
    change(project, AGENT, where, path)
    refused(project)


@pytest.mark.parametrize("path", [LONG, "a\0b", "loop", f"{LONG}#/x"], ids=["long", "nul", "loop", "pointer"])
def test_a_schema_that_leads_nowhere_is_refused(project: Project, path: str) -> None:
    project.agent(commit=False, steps={"work": {"outputSchemaRef": path}})
    (project.root / ".agent/worker/loop").symlink_to("loop")
    project.commit()
    assert "steps.work.outputSchemaRef" in refused(project)
    project.agent(completion={"type": "structuredSignal", "config": {"outputSchema": path}})
    assert "outputSchema" in refused(project)


@pytest.mark.parametrize("path", [LONG, "loop", "README.md", "a/" * 3000], ids=["long", "loop", "file", "many"])
def test_a_discovery_path_that_is_no_folder_is_refused(project: Project, path: str) -> None:
    (project.root / "loop").symlink_to("loop")
    project.write(".genba/config.yaml", json.dumps({"agent_discovery_path": path}))
    assert "agent_discovery_path" in refused(project, "agent", "list")


@pytest.mark.parametrize("name", ["", ".hidden", "a/b", "../up", "a b", LONG, "a\u001b[31m"])
def test_a_step_has_a_plain_name(project: Project, name: str) -> None:
    project.agent(steps={name: {}})
    assert "a step's name has letters" in refused(project)


@pytest.mark.parametrize(("path", "reported"), [(LONG, "too long"), ("/etc/passwd", "leaves"), ("../x", "leaves")])
def test_a_file_that_a_check_waits_for_has_a_path_in_the_tree(project: Project, path: str, reported: str) -> None:
    project.agent(registry={"validators": {"there": {"type": "file-exists", "path": path}}})
    assert f"validators.there.path: {'is ' if reported == 'too long' else ''}" in refused(project)


ROOT, LOGS = "runner.execution.worktree.root", "runner.logging.directory"


@pytest.mark.parametrize("where", [ROOT, LOGS])
@pytest.mark.parametrize(
    "path",
    [".", "./", "", ".git", ".git/trees", "./.git", "../out", "src", "README.md", "README.md/x", LONG, "a\0b", "loop"],
)
def test_a_folder_of_genbas_own_never_hides_a_file_of_the_user(project: Project, where: str, path: str) -> None:
    project.write("src/main.py", "print('mine')\n")
    (project.root / "loop").symlink_to("loop")
    project.agent()
    change(project, AGENT, where, path)
    assert where in refused(project)


def test_working_trees_are_never_outside_and_journals_may_be(project: Project, tmp_path: Path) -> None:
    project.agent()
    change(project, AGENT, ROOT, "/tmp/trees")
    assert "leaves the repository" in refused(project)
    change(project, AGENT, ROOT, "made/trees")
    change(project, AGENT, LOGS, str(tmp_path / "journals"))
    for _ in range(2):
        result = project.run("worker")
        assert result["outcome"] == "completed"
        assert (tmp_path / f"journals/{result['run']}.jsonl").is_file()


# ── commands ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("adapter", "reported"),
    [
        ({"command": []}, "got nothing"),
        ({"command": ""}, "got nothing"),
        ({"command": [""]}, "got nothing"),
        ({"command": ["a\0b"]}, "U+0000"),
        ({"command": "true", "env": {"A": "\0"}}, "U+0000"),
        ({"command": "true", "env": {"A=B": "x"}}, "env.A=B"),
        ({"command": "true", "env": {"": "x"}}, "runner.adapter.env"),
        ({"command": "true", "passEnv": ["A=B"]}, "passEnv[0]"),
        ({"command": ["true", "x" * 200_000]}, "longer than"),
        ({"command": ["no-such-agent"]}, "the command of the agent is not there: no-such-agent"),
        ({"command": ["/no/such/agent"]}, "the command of the agent is not there: /no/such/agent"),
        ({"command": ["/etc"]}, "the command of the agent is not there: /etc"),
    ],
)
def test_a_command_that_cannot_be_started_is_refused_before_anything_is_touched(
    project: Project, adapter: dict[str, Any], reported: str
) -> None:
    project.agent(adapter={"type": "custom", **adapter})
    assert reported in refused(project)
    assert reported in refused(project, "agent", "check", "worker")


@pytest.mark.parametrize("command", [[], "", [""], ["x" * 200_000]])
def test_a_validator_has_a_command(project: Project, command: Any) -> None:
    project.agent(registry={"validators": {"mine": {"type": "command", "command": command}}})
    assert "validators.mine.command" in refused(project)


@pytest.mark.parametrize("command", [[], [""], ["a\0b"]])
def test_a_forge_has_a_command(project: Project, command: Any) -> None:
    project.agent()
    project.write(".genba/config.yaml", json.dumps({"forge": {"open": command}}))
    assert "forge.open" in refused(project)


def test_a_shell_line_is_filled_with_words_that_the_shell_does_not_read(tmp_path: Path) -> None:
    root = tmp_path / 'it\'s $(touch pwned); `touch pwned` "x" a'
    root.mkdir()
    subprocess.run(["git", "init", "-q", "-b", "main", str(root)], check=True)
    project = Project(root, {"HOME": str(tmp_path), "GIT_CONFIG_NOSYSTEM": "1"})
    project.git("config", "user.name", "Test User")
    project.git("config", "user.email", "user@localhost")
    reply = """printf '{"text": "hello", "session_id": "a b; touch pwned"}'"""
    line = f"""cat {{prompt_file}} "{{prompt_file}}" '{{prompt_file}}' > seen.txt; {reply} > {{reply_file}}
        echo {{session_id}} >> sessions.txt; echo "{{session_id}}" >> sessions.txt; echo {{unknown}} >> sessions.txt"""
    project.agent(
        adapter={"type": "custom", "command": line, "commit": True},
        completion={"type": "iterationBudget", "config": {"maxIterations": 2}},
    )
    assert project.run("worker")["outcome"] == "completed"
    assert project.read("seen.txt").count("# Go on") == 3
    assert project.read("sessions.txt").splitlines() == ["", "", "{unknown}", *["a b; touch pwned"] * 2, "{unknown}"]
    assert not list(tmp_path.rglob("pwned"))


@pytest.mark.parametrize(
    "reply",
    [
        {"retry_after": 0},
        {"retry_after": -5},
        {"usage": {"input_tokens": -1}},
        {"usage": {"cost_usd": -0.5}},
        {"session_id": "a\0b"},
        {"session_id": "x" * 5000},
    ],
)
def test_a_reply_file_that_makes_no_sense_is_a_failed_try(project: Project, reply: dict[str, Any]) -> None:
    project.agent(
        adapter={"type": "custom", "command": f"cp {project.root}/reply.json {{reply_file}}"},
        limits={"retries": 1, "retryDelaySeconds": 0},
        commit=False,
    )
    project.write("reply.json", json.dumps(reply))
    project.commit()
    result = project.run("worker", check=1)
    assert result["outcome"] == "failed"
    assert sum(event["event"] == "ask_retried" for event in project.events()) == 1


@pytest.mark.parametrize("usage", ['{"input_tokens": 99999999999999999999999999}', '{"cost_usd": 1e308}'])
def test_a_usage_that_no_reply_can_have_is_not_counted(project: Project, usage: str) -> None:
    project.issue(1, "One")
    line = f'echo work > work.txt; echo \'{{"structured": {{"status": "DONE"}}, "usage": {usage}}}\' > {{reply_file}}'
    project.agent(
        adapter={"type": "custom", "command": line, "commit": True},
        completion={"type": "iterationBudget", "config": {"maxIterations": 1}},
    )

    result = project.run("worker", "--issue", "1")

    assert (result["usage"]["input_tokens"], result["usage"]["cost_usd"]) == (0, 0.0)
    assert any("a usage that no reply can have" in event.get("message", "") for event in project.events())


def test_a_reply_file_without_bottom_is_a_failed_try(project: Project) -> None:
    line = """python3 -c 'print("{\\"structured\\": {\\"a\\": " + "["*9999 + "]"*9999 + "}}")' > {reply_file}"""
    project.agent(adapter={"type": "custom", "command": line}, limits={"retries": 0})
    assert "the reply file of the agent is not valid" in project.run("worker", check=1)["reason"]


def test_an_agent_that_dies_silently_is_reported_without_a_colon(project: Project) -> None:
    project.agent(adapter={"type": "custom", "command": "exit 3"}, limits={"retries": 0})
    assert project.run("worker", check=1)["reason"].endswith("the agent ended with exit code 3")


# ── code of users ────────────────────────────────────────────────────────────────────────────────────────────────────

HANDLERS = {
    "raises": "def factory(options): raise RuntimeError('broken')",
    "nothing": "def factory(options): return None",
    "no judge": "def factory(options): return object()",
    "leaves": "import sys\nsys.exit(0)",
    "leaves later": "import sys\ndef factory(options): sys.exit(0)",
}


@pytest.mark.parametrize("name", HANDLERS)
def test_a_completion_handler_that_does_not_work_is_refused(project: Project, name: str) -> None:
    project.agent(completion={"type": "custom", "config": {"completionHandler": "done.py:factory"}}, commit=False)
    project.write(".agent/worker/done.py", f"{HANDLERS[name]}\n")
    project.commit()
    assert "the handler cannot be loaded" in refused(project)
    assert "the handler cannot be loaded" in refused(project, "agent", "check", "worker")


def test_a_completion_handler_that_ends_the_program_ends_the_run_as_failed(project: Project) -> None:
    project.agent(completion={"type": "custom", "config": {"completionHandler": "done.py:Leaving"}}, commit=False)
    code = "import sys\nclass Leaving:\n    def __init__(self, options): pass\n    def judge(self, seen): sys.exit(0)\n"
    project.write(".agent/worker/done.py", code)
    project.commit()
    assert "it calls sys.exit(0)" in project.run("worker", check=1)["reason"]


@pytest.mark.parametrize(
    ("code", "exit_code"), [("import sys; sys.exit(0)", 3), ("def handle(x): raise SystemExit", 1)]
)
def test_an_action_handler_that_ends_the_program_ends_no_program(project: Project, code: str, exit_code: int) -> None:
    block = '```json\n{"type": "note"}\n```'
    actions = {"enabled": True, "types": ["note"], "handlers": {"note": "act.py:handle"}}
    project.agent(actions=actions, script={"turns": [{"do": [{"run": COMMIT}], "reply": block}]}, commit=False)
    project.write(".agent/worker/act.py", f"{code}\n")
    project.commit()
    assert "it calls sys.exit" in project.genba("run", "worker", check=exit_code).err


# ── schemas and completions ──────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("key", ["$ref", "$schema"])
@pytest.mark.parametrize("address", ["file:///etc/hostname", "http://127.0.0.1:9/schema.json"])
def test_a_schema_reads_no_other_file_and_no_network(project: Project, key: str, address: str) -> None:
    project.agent(completion={"type": "structuredSignal", "config": {"outputSchema": {key: address}}})
    output = refused(project)
    assert "not a JSON Schema" in output
    assert address in output


def test_a_composite_that_doubles_with_every_name_is_refused(project: Project) -> None:
    one = {"type": "iterationBudget", "config": {"maxIterations": 1}}
    named: dict[str, Any] = {"n0": one}
    for number in range(1, 25):
        twice = [{"ref": f"n{number - 1}"}, {"ref": f"n{number - 1}"}]
        named[f"n{number}"] = {"type": "composite", "config": {"mode": "any", "completionConditions": twice}}
    config = {"mode": "any", "completionConditions": [{"ref": "n24"}], "definitions": named}
    project.agent(completion={"type": "composite", "config": config})
    assert "runner.completion: has more than 100 conditions" in refused(project)


# ── parameters and the command line ──────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("name", "kind", "reported"),
    [
        ("merge", "boolean", "--no-merge is an option of genba run itself"),
        ("push", "string", "--push is an option of genba run itself"),
        ("iteration", "number", "is a variable of Genba's own"),
        ("agent_name", "string", "is a variable of Genba's own"),
        ("issue", "string", "it is the number of an issue"),
    ],
)
def test_a_parameter_that_would_hide_something_is_refused(
    project: Project, name: str, kind: str, reported: str
) -> None:
    project.agent(parameters={name: {"type": kind}})
    assert reported in refused(project)


@pytest.mark.parametrize("value", ["1.5", "0", "-3", "inf", "nan", "1e400", "9" * 400, "9" * 5000, "abc", ""])
@pytest.mark.parametrize("kind", ["number", "integer"])
def test_an_issue_is_a_whole_number(project: Project, kind: str, value: str) -> None:
    project.agent(parameters={"issue": {"type": kind}})
    output = refused(project, "run", "worker", f"--issue={value}", code=2)
    assert "is not the number of an issue" in output
    assert "hint: genba run worker --help" in output


@pytest.mark.parametrize("value", ["inf", "nan", "-inf", "1e400", "9" * 400, "9" * 5000, "x"])
@pytest.mark.parametrize("kind", ["number", "integer"])
def test_a_number_is_one_that_can_be_held(project: Project, kind: str, value: str) -> None:
    project.agent(parameters={"count": {"type": kind}})
    refused(project, "run", "worker", f"--count={value}", code=2)


def test_numbers_arrive_as_they_were_given(project: Project) -> None:
    project.agent(
        parameters={"count": {"type": "number"}, "whole": {"type": "integer"}},
        prompts={"work.md": "{uv-count} {uv-whole}\n"},
    )
    project.run("worker", "--count", "2.50", "--whole", "9007199254740993")
    assert project.prompts()[0].startswith("2.5 9007199254740993")
    assert "is not a whole number" in project.genba("run", "worker", "--whole", "2.5", check=2).err


@pytest.mark.parametrize("words", [("--model",), ("--topic",), ("--set", "name=")])
def test_words_that_are_not_utf_8_are_refused(project: Project, words: tuple[str, ...]) -> None:
    project.agent(parameters={"topic": {"type": "string"}})
    *options, last = words
    bad = f"{last}\udcff" if last.endswith("=") else "\udcff"
    given = [*options, bad] if last.endswith("=") else [last, bad]
    assert "is not UTF-8" in refused(project, "run", "worker", *given, code=2)


@pytest.mark.parametrize("text", ["a." * 3000 + "b=1", "runner.limits=" + "[" * 200 + "]" * 200, "=1", "x"])
def test_a_setting_that_cannot_be_is_a_usage_error(project: Project, text: str) -> None:
    project.agent()
    refused(project, "run", "worker", "--set", text, code=2)


def test_options_of_a_run_may_stand_before_the_agent(project: Project) -> None:
    project.agent(script={"turns": [{"do": [{"run": COMMIT}], "reply": "done"}], "repeat": True})
    setting = "runner.completion.config.maxIterations=2"
    early = project.genba("run", "--json", "--quiet", "--set", setting, "worker", check=0)
    assert early.json["iterations"] == 2
    assert "iteration" not in early.err
    assert (
        project.genba("run", "--json", "--set", setting, "worker", "--set", setting[:-1] + "3").json["iterations"] == 3
    )


def test_nonsense_gets_no_suggestion_and_a_slip_does(project: Project) -> None:
    project.agent()
    done = project.genba("run", "worker", "--nosuch", "--brnach=x", "--quiet", check=2)
    assert "--nosuch is not declared by worker and is ignored\n" in done.err
    assert 'did you mean "--branch"?' in done.err


# ── errors for programs ──────────────────────────────────────────────────────────────────────────────────────────────


def _outside(project: Project) -> Finished:
    return project.genba("run", "worker", "--json", cwd=project.root.parent)


ERRORS: dict[str, tuple[Callable[[Project], Finished], int]] = {
    "usage": (lambda project: project.genba("run", "worker", "--count=x", "--json"), 2),
    "configuration": (lambda project: project.genba("run", "--json", "worker", "--set", "runner.flow=1"), 3),
    "not_found": (lambda project: project.genba("agent", "show", "nobody", "--json"), 4),
    "state_conflict": (lambda project: project.genba("run", "worker", "--json", "--branch", "main"), 5),
    "git": (_outside, 1),
    "failure": (lambda project: project.genba("demo", "--json", "--folder", "README.md"), 1),
}


@pytest.mark.parametrize("kind", ERRORS)
def test_with_json_an_error_is_json_on_stdout_and_words_on_stderr(project: Project, kind: str) -> None:
    project.agent(parameters={"count": {"type": "number"}})
    provoke, code = ERRORS[kind]
    done = provoke(project)
    error = done.json["error"]
    assert (done.code, error["exit_code"], error["kind"]) == (code, code, kind)
    assert set(error) == {"kind", "message", "problems", "unchanged", "hint", "exit_code"}
    assert error["message"] in done.err
    assert bool(error["problems"]) == (kind == "configuration")


@pytest.mark.parametrize("words", [("logs", "nobody"), ("agent", "check", "nobody"), ("run", "nobody"), ("run",)])
def test_every_command_with_json_tells_its_errors_as_json(project: Project, words: tuple[str, ...]) -> None:
    assert project.genba(*words, "--json").json["error"]["message"]


def test_the_problem_of_an_agent_without_adapter_names_its_file(project: Project) -> None:
    project.agent(adapter=None)
    assert f'error: {AGENT}: runner.adapter: agent "worker" has no adapter' in refused(project)


# ── screens and the edges of the machine ─────────────────────────────────────────────────────────────────────────────

ESCAPE = "\x1b]0;owned\x07\x1b[31mred\x1b[0m\x9b2J\u202etxt\x08\r"


def test_nothing_of_an_agent_is_obeyed_by_the_terminal(project: Project) -> None:
    turn = {"do": [{"print": ESCAPE}, {"run": COMMIT}], "reply": {"status": "blocked", "reason": ESCAPE}}
    project.agent(
        script={"turns": [turn]},
        steps={"work": {"structuredGate": gated("next", "repeat"), "transitions": {"next": None}}},
        prompts={"work.md": f"{ESCAPE}\n"},
    )
    change(project, AGENT, "description", ESCAPE)
    ran = project.genba("run", "worker")
    shown = [
        ran.out + ran.err,
        project.genba("logs").out,
        project.genba("logs", project.events()[0]["run"], "--prompts", "--output", check=0).out,
        project.genba("agent", "list", check=0).out,
        project.genba("agent", "show", "worker", check=0).out,
        project.genba("run", "worker", "--help", check=0).out,
        project.genba("run", "--help", check=0).out,
        project.genba("run", ESCAPE, check=4).err,
    ]
    for text in shown:
        assert not {letter for letter in text if letter in "\x1b\x9b\u202e\x08\x07\r"}, text
    assert "red" in shown[2]


@pytest.mark.parametrize(("environment", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False)])
def test_colour_is_for_terminals_and_can_be_turned_off(
    project: Project, environment: dict[str, str], coloured: bool
) -> None:
    inherited = {name: value for name, value in os.environ.items() if name != "NO_COLOR"}
    done = subprocess.run(
        ["script", "-qec", f"{GENBA} run nobody", "/dev/null"],
        cwd=project.root,
        env={**inherited, **project.environment, "TERM": "xterm", **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert "there is no agent" in done.stdout
    assert ("\x1b[" in done.stdout) == coloured


@pytest.mark.parametrize("folder", ["README.md", "README.md/x", "/proc/x", "/proc/1/x", LONG])
def test_a_demo_that_cannot_be_made_says_so(project: Project, folder: str) -> None:
    assert "the demo cannot be made in" in refused(project, "demo", "--folder", folder, code=1)


def _shell(project: Project, line: str) -> Finished:
    done = subprocess.run(
        ["sh", "-c", line],
        cwd=project.root,
        env={**os.environ, **project.environment, "GENBA": str(GENBA)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    return Finished(done.returncode, done.stdout, done.stderr)


@pytest.mark.parametrize("words", ["agent list", "agent show iterator --json", "schema agent", "--version", "--help"])
def test_a_full_disk_behind_stdout_is_reported(project: Project, words: str) -> None:
    done = _shell(project, f'"$GENBA" {words} > /dev/full')
    assert done.code == 1
    assert "Traceback" not in done.err
    assert "Exception ignored" not in done.err


def test_a_full_disk_behind_stderr_keeps_the_exit_code(project: Project) -> None:
    assert _shell(project, '"$GENBA" run nobody 2> /dev/full').code == 4


def test_a_folder_that_is_gone_is_reported(project: Project) -> None:
    done = _shell(project, 'mkdir gone && cd gone && rmdir ../gone && "$GENBA" agent list')
    assert done.code == 1
    assert "error: the current folder is gone" in done.err


def test_an_unexpected_error_is_a_message_and_on_demand_a_traceback(project: Project) -> None:
    project.write(".agent", "a file where the folder of agents would be\n")
    done = project.genba("agent", "new", "writer", check=1)
    assert "error: " in done.err
    assert "hint: run it again with GENBA_DEBUG=1" in done.err
    assert "Traceback" not in done.err
    assert "Traceback" in project.genba("agent", "new", "writer", check=1, GENBA_DEBUG="1").err
    assert project.read(".agent").startswith("a file")
