"""The custom adapter, its reply file, and the script of the scripted adapter."""

import json
import stat
from pathlib import Path
from typing import Any

import pytest

from tests.fields.flows import STEP_MACHINE, idle, leads_to, report, work
from tests.project import Project, says

TWICE = {"type": "iterationBudget", "config": {"maxIterations": 2}}


def commanding(project: Project, command: str | list[str], adapter: dict[str, Any] | None = None, **agent: Any) -> None:
    """An agent that is a command; Genba commits what it leaves."""
    project.agent(adapter={"type": "custom", "command": command, "commit": True, **(adapter or {})}, **agent)


def replying(project: Project, reply: dict[str, Any], **agent: Any) -> None:
    """An agent whose command writes this reply file."""
    project.write(".agent/worker/reply.json", json.dumps(reply))
    commanding(project, f"cp {project.root}/.agent/worker/reply.json {{reply_file}}", **agent)


def scripted(project: Project, *turns: dict[str, Any], **more: Any) -> None:
    project.agent(script={"turns": list(turns), **more})


def test_a_shell_line_is_a_command(project: Project) -> None:
    commanding(project, "cat > prompt.txt && echo $((20 + 3)) >> prompt.txt")
    project.run("worker")
    assert project.read("prompt.txt").endswith("Done means: 1 iterations are done.\n23\n")


def test_a_list_of_words_is_a_command_that_no_shell_reads(project: Project) -> None:
    commanding(project, ["cp", "{prompt_file}", "$HOME; prompt.txt"])
    project.run("worker")
    assert "# Your task" in project.read("$HOME; prompt.txt")


def test_a_command_that_is_not_there_is_reported(project: Project) -> None:
    commanding(project, ["no-such-agent"])
    done = project.genba("run", "worker")
    assert done.code != 0
    assert "the command of the agent is not there: no-such-agent" in done.err


def test_the_prompt_comes_by_stdin_after_the_system_prompt(project: Project) -> None:
    commanding(project, "cat > prompt.txt")
    project.run("worker")
    assert project.read("prompt.txt").startswith("You are an agent of the tests.\n\n# Your task\n")


def test_the_prompt_comes_by_file_where_the_command_names_one(project: Project) -> None:
    commanding(project, "cat > stdin.txt; cp {prompt_file} prompt.txt; cp {system_prompt_file} system.txt")
    project.run("worker")
    assert project.read("stdin.txt") == ""
    assert project.read("prompt.txt").startswith("# Your task")
    assert project.read("system.txt") == "You are an agent of the tests.\n"


def test_the_command_gets_the_model_the_step_and_the_iteration(project: Project) -> None:
    commanding(
        project, 'echo {model} "$GENBA_MODEL $GENBA_STEP $GENBA_ITERATION" > told.txt', flow={"defaultModel": "m1"}
    )
    project.run("worker")
    assert project.read("told.txt") == "m1 m1 work 1\n"


def test_the_command_is_given_the_schema_of_its_answer(project: Project) -> None:
    project.write(".agent/worker/answer.json", '{"type": "object", "title": "An answer"}')
    steps = {"work": {"outputSchemaRef": "answer.json"}}
    commanding(project, "cp {schema_file} schema.txt; echo '{}'", steps=steps)
    project.run("worker")
    assert json.loads(project.read("schema.txt"))["title"] == "An answer"


def test_env_is_set_for_the_command(project: Project) -> None:
    commanding(project, 'echo "$COLOUR" > colour.txt', {"env": {"COLOUR": "red"}})
    project.run("worker")
    assert project.read("colour.txt") == "red\n"


def test_only_the_variables_of_pass_env_are_passed_on(project: Project) -> None:
    commanding(project, 'echo "$CLOCK_SETTING|$OTHER_SETTING" > seen.txt', {"passEnv": ["CLOCK_SETTING"]})
    project.run("worker", CLOCK_SETTING="quiet", OTHER_SETTING="loud")
    assert project.read("seen.txt") == "quiet|\n"


def test_commit_commits_what_the_command_left_with_the_agent_as_author(project: Project) -> None:
    commanding(project, "echo work > work.txt", {"commit": True})
    result = project.run("worker", "--no-merge")
    assert project.git("log", "-1", "--format=%an|%s", result["branch"]) == "worker|worker: work, iteration 1"


def test_without_commit_what_the_command_left_stays_uncommitted(project: Project) -> None:
    commanding(project, "echo work > work.txt", {"commit": False})
    result = project.run("worker", "--no-merge")
    assert report(project, result, "iteration_finished")[0].get("commits", []) == []
    assert report(project, result, "workspace_closed")[0]["rescued"].startswith("refs/genba/rescue/")


def test_an_adapter_that_does_not_exist_is_refused(project: Project) -> None:
    project.agent(adapter={"type": "custum", "command": "true"})
    assert 'there is no adapter "custum"' in project.genba("run", "worker", check=3).err


def test_an_option_that_the_adapter_does_not_take_is_refused(project: Project) -> None:
    project.agent(adapter={"type": "custom", "command": "true", "comit": True})
    assert "runner.adapter.comit: unknown key" in project.genba("run", "worker", check=3).err


def test_the_adapter_can_be_chosen_on_the_command_line(project: Project) -> None:
    project.agent(adapter={"type": "custom", "command": "exit 1"})
    chosen = project.run("worker", "--adapter", "scripted", "--set", "runner.adapter.script=script.yaml")
    assert chosen["outcome"] == "completed"


KEYWORD = {"type": "keywordSignal", "config": {"completionKeyword": "SHIPPED"}}


def test_the_text_of_a_reply_file_is_the_reply(project: Project) -> None:
    replying(project, {"text": '```json\n{"state": "SHIPPED"}\n```'}, completion=KEYWORD)
    assert project.run("worker")["iterations"] == 1


def test_the_structured_output_of_a_reply_file_is_judged(project: Project) -> None:
    replying(project, {"text": "prose", "structured": {"state": "SHIPPED"}}, completion=KEYWORD)
    assert project.run("worker")["iterations"] == 1


def test_the_session_id_of_a_reply_file_is_given_to_the_next_question(project: Project) -> None:
    line = """echo {session_id}"|$GENBA_SESSION_ID" >> ids.txt; echo '{"session_id": "s-7"}' > {reply_file}"""
    commanding(project, line, completion=TWICE)
    project.run("worker")
    assert project.read("ids.txt") == "|\ns-7|s-7\n"


@pytest.mark.parametrize(
    ("usage", "seen"),
    [
        ({"input_tokens": 5}, {"input_tokens": 5, "output_tokens": 0, "cost_usd": 0}),
        ({"output_tokens": 7}, {"input_tokens": 0, "output_tokens": 7, "cost_usd": 0}),
        ({"cost_usd": 0.25}, {"input_tokens": 0, "output_tokens": 0, "cost_usd": 0.25}),
    ],
)
def test_the_usage_of_a_reply_file_is_counted(project: Project, usage: dict[str, Any], seen: dict[str, Any]) -> None:
    replying(project, {"usage": usage})
    assert project.run("worker")["usage"] == seen


def test_the_tools_of_a_reply_file_are_held_against_the_boundaries(project: Project) -> None:
    replying(project, {"tools_used": ["Bash"]}, boundaries={"allowedTools": ["Read"]})
    assert '"Bash"' in project.run("worker", check=1)["reason"]


def test_retry_after_in_a_reply_file_waits_and_asks_again(project: Project) -> None:
    line = """[ -e asked ] && exit; touch asked; echo '{"retry_after": 0.05}' > {reply_file}; exit 1"""
    commanding(project, line, limits={"retries": 0})
    result = project.run("worker")
    assert [event["wait_seconds"] for event in report(project, result, "ask_retried")] == [0.05]


def test_a_reply_file_that_is_not_valid_is_a_failed_try(project: Project) -> None:
    replying(project, {"txt": "?"}, limits={"retries": 0})
    assert "the reply file of the agent is not valid" in project.run("worker", check=1)["reason"]


def test_the_script_is_read_from_its_path(project: Project) -> None:
    project.agent(adapter={"type": "scripted", "script": "plays/short.yaml"})
    project.write(".agent/worker/plays/short.yaml", "turns: [{do: [{run: 'git commit -q --allow-empty -m short'}]}]\n")
    project.run("worker")
    assert project.git("log", "-1", "--format=%s", "HEAD^2") == "short"


def test_turns_are_played_in_order(project: Project) -> None:
    project.agent(completion=TWICE, script={"turns": [work(run=f"git commit -q --allow-empty -m {n}") for n in "ab"]})
    result = project.run("worker", "--no-merge")
    assert project.git("log", "-2", "--format=%s", result["branch"]).splitlines() == ["b", "a"]


def test_turns_can_be_given_for_each_step(project: Project) -> None:
    project.agent(
        completion=STEP_MACHINE,
        steps={"first": leads_to("second"), "second": leads_to(None)},
        registry={"entryStep": "first"},
        script={"steps": {"second": [idle(says("next"))], "first": [work(says("next"))]}},
    )
    assert project.run("worker")["outcome"] == "completed"


def test_a_script_without_repeat_ends_with_its_last_turn(project: Project) -> None:
    project.agent(completion=TWICE, script={"turns": [work()], "repeat": False})
    assert project.run("worker", check=1)["reason"] == "the script has no turn 2 for the step work"


def test_repeat_plays_the_last_turn_again(project: Project) -> None:
    project.agent(completion=TWICE, script={"turns": [work()], "repeat": True})
    assert project.run("worker")["iterations"] == 2


def test_an_issue_can_have_turns_of_its_own(project: Project) -> None:
    seven, eight, again, other = (
        work(run=f"echo {name} >> {name}.txt; git add -A; git commit -qm {name}")
        for name in ("seven", "eight", "again", "other")
    )
    own = {"7": {"turns": [seven], "repeat": True}, "8": {"steps": {"work": [eight, again]}}}
    project.agent(
        completion=TWICE,
        parameters={"issue": {"type": "number", "cli": "--issue"}},
        script={"turns": [other], "repeat": True, "issues": own},
    )
    for number in (7, 8, 9):
        project.issue(number, title=f"Issue {number}")
    done = {number: project.run("worker", "--issue", str(number), "--no-merge")["branch"] for number in (7, 8, 9)}
    subjects = {number: project.git("log", "-2", "--format=%s", branch).splitlines() for number, branch in done.items()}
    assert subjects == {7: ["seven", "seven"], 8: ["again", "eight"], 9: ["other", "other"]}


@pytest.mark.parametrize("expect", ["no such words", ["# Your task", "no such words"]])
def test_a_script_can_expect_words_in_the_prompt(project: Project, expect: str | list[str]) -> None:
    scripted(project, work(expect=expect))
    assert "the prompt does not contain 'no such words'" in project.run("worker", check=1)["reason"]


def test_a_script_can_expect_a_model(project: Project) -> None:
    scripted(project, work(model="haiku"))
    assert "the model is 'opus', not 'haiku'" in project.run("worker", check=1)["reason"]


def test_a_reply_of_text_is_the_reply(project: Project) -> None:
    scripted(project, work("I moved the clock."))
    state = report(project, project.run("worker"), "iteration_finished")[0]["state"]
    assert state["previous_summary"] == "I moved the clock."


def test_a_reply_that_is_an_object_is_structured_output(project: Project) -> None:
    project.agent(completion=KEYWORD, script={"turns": [work({"state": "SHIPPED"})]})
    assert project.run("worker")["iterations"] == 1


def test_the_usage_of_turns_adds_up(project: Project) -> None:
    usage = {"input_tokens": 3, "output_tokens": 2, "cost_usd": 0.5}
    project.agent(completion=TWICE, script={"turns": [work(usage=usage)], "repeat": True})
    assert project.run("worker")["usage"] == {"input_tokens": 6, "output_tokens": 4, "cost_usd": 1.0}


def test_replies_that_do_not_fit_cost_what_they_cost(project: Project) -> None:
    script = {"turns": [work("prose", usage={"input_tokens": 10})], "repeat": True}
    project.agent(completion=STEP_MACHINE, steps={"work": leads_to(None)}, script=script, limits={"reasks": 1})
    assert project.run("worker", check=1)["usage"]["input_tokens"] == 20


def test_a_turn_reports_its_session(project: Project) -> None:
    scripted(project, work(session="s-9"))
    assert report(project, project.run("worker"), "iteration_finished")[0]["state"]["session_id"] == "s-9"


def test_write_writes_a_file(project: Project) -> None:
    scripted(project, {"do": [{"write": {"path": "deep/a.txt", "text": "one\n"}}, {"commit": "Write"}]})
    project.run("worker")
    assert project.read("deep/a.txt") == "one\n"


def test_append_appends_to_a_file(project: Project) -> None:
    scripted(project, {"do": [{"append": {"path": "README.md", "text": "more\n"}}, {"commit": "Append"}]})
    project.run("worker")
    assert project.read("README.md") == "# A project\nmore\n"


def test_replace_replaces_a_text(project: Project) -> None:
    change = {"path": "README.md", "old": "project", "new": "clock"}
    scripted(project, {"do": [{"replace": change}, {"commit": "Replace"}]})
    project.run("worker")
    assert project.read("README.md") == "# A clock\n"


def test_a_text_to_replace_must_be_there(project: Project) -> None:
    project.agent(
        script={"turns": [{"do": [{"replace": {"path": "README.md", "old": "absent", "new": ""}}]}]},
        limits={"retries": 0},
    )
    assert "does not contain 'absent'" in project.run("worker", check=1)["reason"]


def test_delete_deletes_a_file(project: Project) -> None:
    scripted(project, {"do": [{"delete": "README.md"}, {"commit": "Delete"}]})
    project.run("worker")
    assert not (project.root / "README.md").exists()


def test_commit_commits_everything_with_its_message(project: Project) -> None:
    scripted(project, {"do": [{"write": {"path": "a.txt", "text": "a"}}, {"commit": "Move the clock"}]})
    result = project.run("worker", "--no-merge")
    assert project.git("log", "-1", "--format=%s", result["branch"]) == "Move the clock"


def test_run_runs_a_shell_line(project: Project) -> None:
    scripted(project, {"do": [{"run": "echo $((40 + 2)) > answer.txt && git add -A && git commit -qm answer"}]})
    project.run("worker")
    assert project.read("answer.txt") == "42\n"


def test_print_prints_a_line_into_the_journal(project: Project) -> None:
    scripted(project, {"do": [{"print": "reading titles.py"}]})
    output = report(project, project.run("worker"), "agent_output")
    assert [(event["stream"], event["text"]) for event in output] == [("stdout", "reading titles.py")]


def test_sleep_is_silence(project: Project) -> None:
    scripted(project, {"do": [{"sleep": 0.2}]})
    assert report(project, project.run("worker"), "agent_ended")[0]["seconds"] >= 0.2


def test_crash_dies_by_a_signal(project: Project) -> None:
    project.agent(script={"turns": [{"do": [{"crash": 15}]}]}, limits={"retries": 0})
    assert project.run("worker", check=1)["reason"] == "the agent was killed by signal 15"


def test_exit_ends_at_once_with_its_code(project: Project) -> None:
    project.agent(script={"turns": [{"do": [{"exit": 5}, {"run": "touch late"}]}]}, limits={"retries": 0})
    assert "the agent ended with exit code 5" in project.run("worker", check=1)["reason"]


def test_a_deed_is_one_thing(project: Project) -> None:
    scripted(project, {"do": [{"print": "a", "sleep": 0.1}]})
    assert "each entry has exactly one key" in project.genba("run", "worker", check=3).err


def test_the_files_of_a_question_are_out_of_the_working_tree(project: Project) -> None:
    commanding(project, "cat {prompt_file} > prompt.txt; echo {prompt_file} > where.txt")
    result = project.run("worker")
    where = Path(project.read("where.txt").strip())
    assert not where.is_relative_to(result["workdir"])
    assert stat.S_ISREG(where.stat().st_mode)
