"""The eight completion types, and every field that they take."""

import json
import os
import subprocess
from typing import Any

import jsonschema_rs
import pytest

from tests.fields.flows import (
    CLOSED,
    EXTERNAL_STATE,
    ISSUE,
    STEP_MACHINE,
    closing,
    file_exists,
    idle,
    leads_to,
    report,
    requires,
    work,
)
from tests.project import COMMIT, GENBA, Project, gated, says
from tests.python_tools import linked_genba

SIGNAL_SCHEMA = {"type": "object", "required": ["status", "files"], "properties": {"files": {"type": "integer"}}}
KEYWORD = {"type": "keywordSignal", "config": {"completionKeyword": "SHIPPED"}}


def budget(count: int) -> dict[str, Any]:
    return {"type": "iterationBudget", "config": {"maxIterations": count}}


def composite(mode: str, *conditions: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "composite", "config": {"mode": mode, "completionConditions": list(conditions), **more}}


def signal(**config: Any) -> dict[str, Any]:
    return {"type": "structuredSignal", "config": {"outputSchema": SIGNAL_SCHEMA, **config}}


def test_iteration_budget_completes_after_so_many_iterations(project: Project) -> None:
    project.agent(completion=budget(3))
    result = project.run("worker")
    assert (result["outcome"], result["iterations"]) == ("completed", 3)


def test_iteration_budget_is_incomplete_when_the_conditions_of_its_last_iteration_fail(project: Project) -> None:
    project.agent(
        completion=budget(2),
        steps={"work": {"completionConditions": requires("git-clean")}},
        script={"turns": [idle(), idle(do=[{"write": {"path": "left.txt", "text": "x"}}])]},
    )
    result = project.run("worker", check=1)
    assert (result["outcome"], result["iterations"]) == ("incomplete", 2)


def test_check_budget_counts_only_status_checks(project: Project) -> None:
    project.agent(
        completion={"type": "checkBudget", "config": {"maxChecks": 2}},
        steps={"work": leads_to("watch"), "watch": leads_to("work", stepKind="verification")},
        registry={"entryStep": "work"},
        script={"turns": [idle(says("next"))], "repeat": True},
    )
    result = project.run("worker")
    assert (result["outcome"], result["iterations"]) == ("completed", 4)
    assert project.steps_walked(result["run"]) == ["work", "watch", "work", "watch"]


def test_check_budget_counts_every_iteration_where_no_step_checks(project: Project) -> None:
    project.agent(completion={"type": "checkBudget", "config": {"maxChecks": 3}})
    assert project.run("worker")["iterations"] == 3


def test_keyword_signal_completes_when_the_structured_output_carries_the_keyword(project: Project) -> None:
    project.agent(
        completion=KEYWORD,
        script={"turns": [work({"state": "OTHER"}), work({"deep": {"state": ["SHIPPED"]}})]},
    )
    result = project.run("worker")
    assert (result["outcome"], result["iterations"]) == ("completed", 2)


def test_a_keyword_in_prose_does_not_count(project: Project) -> None:
    project.agent(
        completion=KEYWORD,
        script={"turns": [work("It is SHIPPED. {SHIPPED}")], "repeat": True},
        limits={"maxIterations": 2},
    )
    result = project.run("worker", check=6)
    assert (result["outcome"], result["merged"]) == ("budget_exhausted", "")


def test_a_keyword_is_a_whole_value_and_no_part_of_one(project: Project) -> None:
    project.agent(
        completion=KEYWORD,
        script={"turns": [work({"state": "not SHIPPED yet", "SHIPPED": False})], "repeat": True},
        limits={"maxIterations": 1},
    )
    assert project.run("worker", check=6)["outcome"] == "budget_exhausted"


def test_the_prompt_names_the_keyword(project: Project) -> None:
    project.agent(completion=KEYWORD, script={"turns": [work({"state": "SHIPPED"}, expect='answer is "SHIPPED"')]})
    project.run("worker")


FIX = f"touch made.txt && {COMMIT}"
NEVER = """
class Never:
    def judge(self, seen):
        return False


def factory(options):
    return Never()
"""


@pytest.mark.parametrize("kind", ["keywordSignal", "structuredSignal", "stepMachine", "checkBudget", "custom"])
def test_reaching_the_cap_of_iterations_is_never_success(project: Project, kind: str) -> None:
    config = {
        "keywordSignal": {"completionKeyword": "SHIPPED"},
        "structuredSignal": {"outputSchema": {"type": "object"}},
        "checkBudget": {"maxChecks": 9},
        "custom": {"completionHandler": "never.py:factory"},
        "stepMachine": {},
    }[kind]
    project.write(".agent/worker/never.py", NEVER)
    project.agent(
        completion={"type": kind, "config": config},
        steps={"work": {"structuredGate": gated("next", "repeat"), "transitions": {"next": None}}},
        script={"turns": [work(says("repeat", status="in_progress"))], "repeat": True},
        limits={"maxIterations": 2},
    )
    result = project.run("worker", check=6)
    assert (result["outcome"], result["iterations"], result["merged"]) == ("budget_exhausted", 2, "")
    assert result["hint"].startswith(f"genba run --resume {result['run']}")


def test_structured_signal_completes_when_a_reply_fits_and_says_complete(project: Project) -> None:
    turns = [work({"status": "in_progress", "files": 1}), work({"status": "completed", "files": 2})]
    project.agent(completion=signal(), script={"turns": turns})
    result = project.run("worker")
    assert (result["outcome"], result["iterations"]) == ("completed", 2)


def test_structured_signal_asks_again_for_a_reply_that_does_not_fit_its_schema(project: Project) -> None:
    turns = [work({"status": "completed", "files": "two"}), idle({"status": "completed", "files": 2}, expect="files:")]
    project.agent(completion=signal(), script={"turns": turns})
    result = project.run("worker")
    assert result["iterations"] == 1
    assert "does not fit its schema" in report(project, result, "reply_refused")[0]["reason"]


def test_structured_signal_reads_its_schema_from_a_file(project: Project) -> None:
    project.write(".agent/worker/schemas/signal.json", '{"type": "object", "required": ["verdict"]}')
    turns = [work({"status": "completed"}), idle({"status": "completed", "verdict": "ok"}, expect='"verdict"')]
    project.agent(completion=signal(outputSchema="schemas/signal.json"), script={"turns": turns})
    assert len(report(project, project.run("worker"), "reply_refused")) == 1


def test_response_format_json_refuses_a_block_in_prose(project: Project) -> None:
    block = 'Here it is:\n\n```json\n{"status": "completed", "files": 1}\n```\n'
    turns = [work(block), idle('{"status": "completed", "files": 1}')]
    project.agent(completion=signal(responseFormat="json"), script={"turns": turns})
    assert len(report(project, project.run("worker"), "reply_refused")) == 1


def test_response_format_json_block_takes_the_last_block_of_a_reply(project: Project) -> None:
    block = (
        '```json\n{"status": "in_progress", "files": 0}\n```\nand\n```json\n{"status": "completed", "files": 1}\n```'
    )
    project.agent(completion=signal(responseFormat="json-block"), script={"turns": [work(block)]})
    result = project.run("worker")
    assert (result["iterations"], report(project, result, "reply_refused")) == (1, [])


def test_step_machine_completes_at_the_end_of_the_graph(project: Project) -> None:
    project.agent(
        completion=STEP_MACHINE,
        steps={"plan": leads_to("build"), "build": leads_to("close"), "close": closing()},
        registry={"entryStep": "plan"},
        script={"steps": {"plan": [idle(says("next"))], "build": [work(says("next"))], "close": [idle(CLOSED)]}},
    )
    result = project.run("worker")
    assert result["outcome"] == "completed"
    assert project.steps_walked(result["run"]) == ["plan", "build", "close"]


def test_composite_any_completes_with_its_first_condition(project: Project) -> None:
    project.agent(completion=composite("any", budget(4), KEYWORD), script={"turns": [work({"state": "SHIPPED"})]})
    assert project.run("worker")["iterations"] == 1


def test_composite_all_waits_for_every_condition(project: Project) -> None:
    script = {"turns": [work({"state": "SHIPPED"})], "repeat": True}
    project.agent(completion=composite("all", budget(2), KEYWORD), script=script)
    assert project.run("worker")["iterations"] == 2


def test_composites_nest(project: Project) -> None:
    inner = composite("all", budget(2), KEYWORD)
    script = {"turns": [work({"state": "SHIPPED"})], "repeat": True}
    project.agent(completion=composite("any", budget(5), inner), script=script)
    assert project.run("worker")["iterations"] == 2


def test_a_composite_names_conditions_once_and_refers_to_them(project: Project) -> None:
    project.agent(completion=composite("any", {"ref": "twice"}, definitions={"twice": budget(2)}))
    assert project.run("worker")["iterations"] == 2


def test_a_composite_that_contains_itself_is_refused(project: Project) -> None:
    loop = composite("any", {"ref": "loop"})
    project.agent(completion=composite("any", {"ref": "loop"}, definitions={"loop": loop}))
    assert "contains itself: loop → loop" in project.genba("run", "worker", check=3).err


def test_a_structured_signal_inside_a_composite_is_shown_in_the_prompt(project: Project) -> None:
    turns = [work({"status": "completed", "files": 1}, expect="JSON Schema")]
    project.agent(completion=composite("any", budget(3), signal()), script={"turns": turns})
    assert project.run("worker")["iterations"] == 1


def test_response_format_json_holds_inside_a_composite(project: Project) -> None:
    block = '```json\n{"status": "completed", "files": 1}\n```'
    completion = composite("any", budget(3), signal(responseFormat="json"))
    project.agent(completion=completion, script={"turns": [work(block), work({"status": "completed", "files": 1})]})
    assert project.run("worker")["iterations"] == 2


def test_external_state_inside_a_composite_sets_its_worktree_too(project: Project) -> None:
    project.issue(1, "Add a file")
    external = {**EXTERNAL_STATE, "config": {"worktree": {"root": ".trees"}, "github": {"enabled": True}}}
    project.agent(completion=composite("all", external), parameters=ISSUE)
    assert "/.trees/" in project.run("worker", "--issue", "1")["workdir"]
    assert project.issue_front(1)["state"] == "closed"


HANDLER = """
class AfterReplies:
    def __init__(self, options):
        self.wanted = options.get("replies", 1)

    def judge(self, seen):
        return seen.iterations >= self.wanted and seen.text == "done"


def factory(options):
    return AfterReplies(options)
"""


def test_custom_asks_the_handler_of_a_file(project: Project) -> None:
    project.write(".agent/worker/judging.py", HANDLER)
    completion = {"type": "custom", "config": {"completionHandler": "judging.py:factory"}}
    project.agent(completion=completion, script={"turns": [work("not yet"), work("done")]})
    result = project.run("worker")
    assert (result["iterations"], result["reason"]) == (2, "judging.py:factory says complete")


def test_custom_asks_the_handler_of_a_module(project: Project) -> None:
    project.write("lib/judging_by_module.py", HANDLER)
    completion = {"type": "custom", "config": {"completionHandler": "judging_by_module:factory"}}
    project.agent(completion=completion)
    assert project.run("worker", PYTHONPATH=str(project.root / "lib"))["reason"].startswith("judging_by_module:factory")


def test_custom_hands_its_options_to_the_factory(project: Project) -> None:
    project.write(".agent/worker/judging.py", HANDLER)
    config = {"completionHandler": "judging.py:factory", "options": {"replies": 3}}
    project.agent(completion={"type": "custom", "config": config})
    assert project.run("worker")["iterations"] == 3


def test_each_custom_condition_of_a_composite_has_options_of_its_own(project: Project) -> None:
    project.write(".agent/worker/judging.py", HANDLER)
    asks = [{"completionHandler": "judging.py:factory", "options": {"replies": count}} for count in (2, 4)]
    conditions = [{"type": "custom", "config": config} for config in asks]
    project.agent(completion=composite("any", *conditions))
    assert project.run("worker")["iterations"] == 2


def test_a_factory_that_fails_is_refused_before_anything_starts(project: Project) -> None:
    project.write(".agent/worker/judging.py", "def factory(options):\n    raise ValueError('replies is missing')\n")
    project.agent(completion={"type": "custom", "config": {"completionHandler": "judging.py:factory"}})
    assert "ValueError: replies is missing" in project.genba("run", "worker", check=3).err
    assert project.branches() == ["main"]


def test_a_factory_that_makes_no_handler_is_refused(project: Project) -> None:
    project.write(".agent/worker/judging.py", "def factory(options):\n    return True\n")
    project.agent(completion={"type": "custom", "config": {"completionHandler": "judging.py:factory"}})
    assert "what the factory returns has no judge()" in project.genba("run", "worker", check=3).err


def test_a_custom_handler_that_fails_fails_the_run(project: Project) -> None:
    broken = HANDLER.replace("return seen.iterations", "return seen.iterationz")
    project.write(".agent/worker/judging.py", broken)
    project.agent(completion={"type": "custom", "config": {"completionHandler": "judging.py:factory"}})
    result = project.run("worker", check=1)
    assert result["outcome"] == "failed"
    assert "the handler judging.py:factory failed: AttributeError" in result["reason"]


def test_a_custom_handler_that_cannot_be_loaded_is_refused_before_anything_starts(project: Project) -> None:
    project.agent(completion={"type": "custom", "config": {"completionHandler": "absent.py:factory"}})
    assert "absent.py" in project.genba("run", "worker", check=3).err
    assert project.branches() == ["main"]


def test_external_state_completes_when_its_validators_hold(project: Project) -> None:
    project.issue(1, "Add a file")
    project.agent(
        completion={**EXTERNAL_STATE, "config": {"validators": ["made"]}},
        parameters=ISSUE,
        registry={"validators": {"made": file_exists("made.txt")}},
        script={
            "turns": [
                idle(),
                work(run=FIX, expect="`made` does not hold: there is no file made.txt"),
            ]
        },
    )
    result = project.run("worker", "--issue", "1")
    assert (result["outcome"], result["iterations"]) == ("completed", 2)


def test_external_state_wants_a_clean_tree_and_a_commit_by_default(project: Project) -> None:
    project.issue(1, "Add a file")
    turns = [
        idle(do=[{"write": {"path": "a.txt", "text": "a"}}]),
        idle(do=[{"delete": "a.txt"}], expect="`git-clean` does not hold: 1 file not committed: a.txt"),
        work(expect="`commits-exist` does not hold"),
    ]
    project.agent(completion=EXTERNAL_STATE, parameters=ISSUE, script={"turns": turns})
    assert project.run("worker", "--issue", "1")["iterations"] == 3


def test_external_state_goes_on_while_the_agent_says_that_it_is_working(project: Project) -> None:
    project.issue(1, "Add a file")
    turns = [work({"status": "in_progress"}), work({"status": "completed"})]
    project.agent(completion=EXTERNAL_STATE, parameters=ISSUE, script={"turns": turns})
    assert project.run("worker", "--issue", "1")["iterations"] == 2


def test_external_state_lands_nothing_when_the_task_was_given_up_meanwhile(project: Project) -> None:
    project.issue(1, "Add a file")
    close = f"env -u GENBA_RUN genba task cancel 1 && {COMMIT}"
    turns = [work({"status": "in_progress"}, run=close)]
    project.agent(completion=EXTERNAL_STATE, parameters=ISSUE, script={"turns": turns})
    before = project.git("rev-parse", "main")
    result = project.run("worker", "--issue", "1", check=1, PATH=f"{linked_genba()}:{os.environ['PATH']}")
    assert "task #1 is cancelled by now: its work stays on its branch" in result["reason"]
    assert project.git("rev-parse", "main") == before


def test_external_state_needs_the_parameter_issue(project: Project) -> None:
    project.agent(completion=EXTERNAL_STATE)
    assert "externalState needs the parameter issue" in project.genba("run", "worker", check=3).err


def test_external_state_lays_its_github_settings_over_the_integration(project: Project) -> None:
    project.issue(1, "Add a file", labels=("in-progress",))
    github = {"enabled": True, "defaultClosureAction": "label-only", "labels": {"completion": {"add": ["phase-done"]}}}
    project.agent(completion={**EXTERNAL_STATE, "config": {"github": github}}, parameters=ISSUE)
    project.run("worker", "--issue", "1")
    assert project.issue_front(1) == {"title": "Add a file", "state": "open", "labels": ["in-progress", "phase-done"]}


def test_external_state_lays_its_worktree_settings_over_the_execution(project: Project) -> None:
    project.issue(1, "Add a file")
    config = {"worktree": {"root": ".trees"}}
    project.agent(completion={**EXTERNAL_STATE, "config": config}, parameters=ISSUE)
    assert "/.trees/" in project.run("worker", "--issue", "1")["workdir"]


def test_an_unknown_completion_type_is_refused_with_the_nearest_known_one(project: Project) -> None:
    project.agent(completion={"type": "stepMachina"})
    done = project.genba("run", "worker", check=3)
    assert '"stepMachina" is not a completion type' in done.err
    assert "stepMachine" in done.err


def test_a_config_that_the_completion_type_does_not_take_is_refused(project: Project) -> None:
    project.agent(completion={"type": "iterationBudget", "config": {"maxIterations": 1, "maxChecks": 2}})
    assert "runner.completion.config.maxChecks" in project.genba("run", "worker", check=3).err


@pytest.fixture(scope="module")
def printed_schema() -> Any:
    """What `genba schema completion` prints, as a validator."""
    printed = subprocess.run([str(GENBA), "schema", "completion"], check=True, capture_output=True, text=True)
    return jsonschema_rs.validator_for(json.loads(printed.stdout))


@pytest.mark.parametrize(
    "completion",
    [
        EXTERNAL_STATE,
        {**EXTERNAL_STATE, "config": {"validators": ["made"], "github": {}, "worktree": {}}},
        STEP_MACHINE,
        KEYWORD,
        budget(2),
        signal(responseFormat="json"),
        composite("any", {"ref": "twice"}, composite("all", KEYWORD), definitions={"twice": budget(2)}),
        {"type": "custom", "config": {"completionHandler": "judging.py:factory", "options": {}}},
    ],
)
def test_the_printed_schema_takes_what_is_taken(printed_schema: Any, completion: dict[str, Any]) -> None:
    assert printed_schema.is_valid(completion)


@pytest.mark.parametrize(
    "completion",
    [
        {"type": "stepMachina"},
        {"type": "iterationBudget"},
        {"type": "iterationBudget", "config": {"maxIterations": 0}},
        {"type": "iterationBudget", "maxIterations": 1},
        composite("some", KEYWORD),
        composite("any"),
        composite("any", {"ref": "twice", "type": "stepMachine"}),
        {"ref": "twice"},
    ],
)
def test_the_printed_schema_refuses_what_is_refused(
    project: Project, printed_schema: Any, completion: dict[str, Any]
) -> None:
    project.agent(completion=completion)
    project.genba("run", "worker", check=3)
    assert not printed_schema.is_valid(completion)
