"""steps_registry.json: the steps, their prompts, gates, transitions and conditions."""

import json
from typing import Any

import pytest

from tests.fields.flows import CLOSED, STEP_MACHINE, closing, file_exists, idle, leads_to, report, requires, work
from tests.project import COMMIT, Project, gated, says

PROMPTS = "steps/work/move"
NAMED = {"c2": "work", "c3": "move"}
LAST = {"stepKind": "closure"}
FIX = f"touch made.txt && {COMMIT}"


def walking(project: Project, steps: dict[str, Any], script: dict[str, Any], **registry: Any) -> list[str]:
    """Run the steps from the first one to the end, and return the way."""
    project.agent(
        completion=STEP_MACHINE,
        steps=steps,
        registry={"entryStep": next(iter(steps)), **registry},
        script={"steps": script},
    )
    return project.steps_walked(project.run("worker")["run"])


def conditional(
    project: Project, *turns: dict[str, Any], validators: dict[str, Any] | None = None, **step: Any
) -> None:
    """An agent with one step that ends the flow when `made` holds: made.txt is there."""
    checks = {"made": file_exists("made.txt"), **(validators or {})}
    project.agent(
        completion=STEP_MACHINE,
        steps={"work": {**LAST, "completionConditions": requires("made"), **step}},
        registry={"validators": checks},
        script={"turns": list(turns)},
    )


def failing(project: Project, **step: Any) -> dict[str, Any]:
    """Run a step whose condition never holds though the tree changes each time."""
    project.agent(
        completion=STEP_MACHINE,
        steps={"work": {**LAST, "completionConditions": requires("made"), **step}},
        registry={"validators": {"made": file_exists("made.txt")}},
    )
    return project.run("worker", check=1)


# --- where a run begins


def test_a_run_begins_with_the_entry_step(project: Project) -> None:
    steps = {"late": leads_to(None), "early": leads_to("late")}
    turn = [work(says("next"))]
    assert walking(project, steps, {"late": turn, "early": turn}, entryStep="early") == ["early", "late"]


def test_the_entry_step_is_required_where_there_are_several(project: Project) -> None:
    project.agent(steps={"a": {"transitions": {"next": "b"}}, "b": {}})
    assert "entryStep: is required when there is more than one step" in project.genba("run", "worker", check=3).err


def test_a_mode_begins_with_the_step_that_is_mapped_to_it(project: Project) -> None:
    project.agent(
        steps={"plan": {"transitions": {"next": "build"}}, "build": {}},
        registry={"entryStep": "plan", "entryStepMapping": {"quick": "build"}},
    )
    assert project.steps_walked(project.run("worker", "--mode", "quick")["run"]) == ["build"]


def test_the_completion_type_can_map_the_entry_step(project: Project) -> None:
    project.agent(
        steps={"plan": {"transitions": {"next": "build"}}, "build": {}},
        registry={"entryStep": "plan", "entryStepMapping": {"iterationBudget": "build"}},
    )
    assert project.steps_walked(project.run("worker")["run"]) == ["build"]


def test_a_mode_that_is_not_mapped_is_refused(project: Project) -> None:
    project.agent(registry={"entryStepMapping": {"quick": "work"}})
    done = project.genba("run", "worker", "--mode", "quack", check=3)
    assert 'no entry step is mapped to "quack"' in done.err


# --- what a step is


def test_a_step_id_that_is_not_its_key_is_refused(project: Project) -> None:
    project.agent(steps={"work": {"stepId": "walk"}})
    assert 'is "walk", but the step is named "work"' in project.genba("run", "worker", check=3).err


def test_a_step_id_may_repeat_the_key(project: Project) -> None:
    project.agent(steps={"work": {"stepId": "work"}})
    assert project.run("worker")["outcome"] == "completed"


def test_a_closure_step_without_a_gate_closes_the_flow(project: Project) -> None:
    project.agent(completion=STEP_MACHINE, steps={"work": {"stepKind": "closure"}})
    result = project.run("worker")
    assert report(project, result, "iteration_finished")[0]["intent"] == "closing"


@pytest.mark.parametrize(
    ("kind", "intent"), [("work", "escalate"), ("work", "closing"), ("verification", "handoff"), ("closure", "next")]
)
def test_the_kind_of_a_step_limits_its_intents(project: Project, kind: str, intent: str) -> None:
    project.agent(steps={"work": {"stepKind": kind, "structuredGate": gated(intent), "transitions": {intent: None}}})
    assert f'intent "{intent}" is not for a {kind} step' in project.genba("run", "worker", check=3).err


def test_a_step_that_no_path_reaches_is_refused(project: Project) -> None:
    project.agent(steps={"work": {}, "island": {}}, registry={"entryStep": "work"})
    assert "steps.island: no path leads here" in project.genba("run", "worker", check=3).err


def test_a_budget_smaller_than_the_shortest_path_is_refused(project: Project) -> None:
    steps = {"a": leads_to("b"), "b": leads_to(None)}
    project.agent(completion=STEP_MACHINE, steps=steps, registry={"entryStep": "a"}, limits={"maxIterations": 1})
    assert "the shortest path to the end takes 2 iterations" in project.genba("run", "worker", check=3).err


# --- prompts


def prompted(project: Project, stderr: str, prompts: dict[str, str], **step: Any) -> dict[str, Any]:
    project.agent(
        steps={"work": {**NAMED, **step}},
        prompts={f"{PROMPTS}/{name}": text for name, text in prompts.items()},
        script={"turns": [work(expect=stderr)]},
    )
    return project.run("worker")


def test_c2_and_c3_name_the_folder_of_the_prompt(project: Project) -> None:
    prompted(project, "Move the clock.", {"f_default.md": "Move the clock."})


def test_c2_alone_is_refused(project: Project) -> None:
    project.agent(steps={"work": {"c2": "work"}})
    assert "steps.work.c3: c2 and c3 go together" in project.genba("run", "worker", check=3).err


def test_c3_alone_is_refused(project: Project) -> None:
    project.agent(steps={"work": {"c3": "move"}})
    assert "steps.work.c2: c2 and c3 go together" in project.genba("run", "worker", check=3).err


@pytest.mark.parametrize("name", ["edition", "adaptation"])
def test_a_variant_of_a_prompt_that_is_not_named_is_refused(project: Project, name: str) -> None:
    project.agent(steps={"work": {name: "strict"}})
    assert f"steps.work.{name}: needs c2 and c3" in project.genba("run", "worker", check=3).err


def test_the_edition_names_the_file_of_the_prompt(project: Project) -> None:
    prompted(project, "Second edition.", {"f_default.md": "First.", "f_second.md": "Second edition."}, edition="second")


def test_the_adaptation_names_a_variant_of_the_edition(project: Project) -> None:
    prompts = {"f_default.md": "Plain.", "f_default_strict.md": "Strict."}
    result = prompted(project, "Strict.", prompts, adaptation="strict")
    assert report(project, result, "notice") == []


def test_an_adaptation_that_is_not_there_falls_back_to_the_edition_with_a_notice(project: Project) -> None:
    result = prompted(project, "Plain.", {"f_default.md": "Plain."}, adaptation="strict")
    folder = f".agent/worker/prompts/{PROMPTS}"
    notices = [event["message"] for event in report(project, result, "notice")]
    assert notices == [f"{folder}/f_default_strict.md is not there; {folder}/f_default.md is used"]


def test_a_prompt_that_is_not_there_is_refused(project: Project) -> None:
    project.agent(steps={"work": NAMED})
    assert f"no such file: .agent/worker/prompts/{PROMPTS}/f_default.md" in project.genba("run", "worker", check=3).err


def test_a_variable_that_is_not_declared_is_refused(project: Project) -> None:
    project.agent(prompts={"work.md": "{uv-branch} {uv-run_id}"}, steps={"work": {"uvVariables": ["branch"]}})
    assert "{uv-run_id}: is not in uvVariables of the step work" in project.genba("run", "worker", check=3).err


def test_a_variable_without_a_value_is_refused(project: Project) -> None:
    project.agent(steps={"work": {"uvVariables": ["colour"]}})
    assert "steps.work.uvVariables: nothing supplies colour" in project.genba("run", "worker", check=3).err


def test_every_variable_of_a_run_can_be_used(project: Project) -> None:
    text = "{uv-agent_name}|{uv-iteration}|{uv-max_iterations}|{uv-base_branch}|{uv-completion_criteria}"
    spoken = 'worker|1|7|main|a JSON value of your answer is "SHIPPED"'
    project.agent(
        completion={"type": "keywordSignal", "config": {"completionKeyword": "SHIPPED"}},
        limits={"maxIterations": 7},
        prompts={"work.md": text},
        script={"turns": [work({"state": "SHIPPED"}, expect=spoken)]},
    )
    project.run("worker")


# --- what passes from step to step


def measuring(project: Project, stderr: str, turns: list[dict[str, Any]] | None = None, **build: Any) -> None:
    """measure.clock hands `height` and `size.width` to build."""
    handoff = gated("next", handoffFields=["height", "size.width"])
    project.agent(
        completion=STEP_MACHINE,
        steps={
            "measure.clock": {"structuredGate": handoff, "transitions": {"next": "build"}},
            "build": leads_to(None, **build),
        },
        registry={"entryStep": "measure.clock"},
        prompts={"build.md": "Height {uv-measure_clock_height}, width {uv-measure_clock_size_width}."},
        script={
            "steps": {
                "measure.clock": turns or [idle(says("next", height=3, size={"width": 4}))],
                "build": [work(says("next"), expect=stderr)],
            }
        },
    )
    project.run("worker")


def test_the_handoff_of_a_step_is_a_variable_of_the_later_ones(project: Project) -> None:
    measuring(project, "Height 3, width 4.")


def test_a_handoff_field_that_is_missing_is_asked_for(project: Project) -> None:
    turns = [
        idle(says("next", height=3)),
        idle(says("next", height=3, size={"width": 9}), expect="size.width is missing"),
    ]
    measuring(project, "Height 3, width 9.", turns)


def test_the_properties_of_the_output_schema_are_handed_over_where_no_field_is_named(project: Project) -> None:
    project.write(".agent/worker/out.json", json.dumps({"properties": {"height": {"type": "integer"}}}))
    project.agent(
        completion=STEP_MACHINE,
        steps={"measure": leads_to("build", outputSchemaRef="out.json"), "build": leads_to(None)},
        registry={"entryStep": "measure"},
        prompts={"build.md": "Height {uv-measure_height}."},
        script={"turns": [idle(says("next", height=3)), work(says("next"), expect="Height 3.")]},
    )
    project.run("worker")


def test_an_input_gives_the_output_of_a_step_a_name(project: Project) -> None:
    project.agent(
        completion=STEP_MACHINE,
        steps={
            "measure": {"structuredGate": gated("next", handoffFields=["height"]), "transitions": {"next": "build"}},
            "build": leads_to(None, inputs={"tall": {"from": "measure.height"}}),
        },
        registry={"entryStep": "measure"},
        prompts={"build.md": "It is {uv-tall} tall."},
        script={"turns": [idle(says("next", height=3)), work(says("next"), expect="It is 3 tall.")]},
    )
    project.run("worker")


def skipping(project: Project, wanted: dict[str, Any], stderr: str = "") -> None:
    """build is also reached without measure, by --mode quick."""
    project.agent(
        completion=STEP_MACHINE,
        steps={
            "measure": {"structuredGate": gated("next", handoffFields=["height"]), "transitions": {"next": "build"}},
            "build": leads_to(None, inputs={"tall": {"from": "measure.height", **wanted}}),
        },
        registry={"entryStep": "measure", "entryStepMapping": {"quick": "build"}},
        prompts={"build.md": "It is <{uv-tall}> tall."},
        script={"steps": {"build": [work(says("next"), expect=stderr)]}},
    )


def test_an_input_has_a_default_for_paths_without_its_step(project: Project) -> None:
    skipping(project, {"default": 7}, "It is <7> tall.")
    project.run("worker", "--mode", "quick")


def test_an_input_that_is_not_required_is_empty_on_paths_without_its_step(project: Project) -> None:
    skipping(project, {"required": False}, "It is <> tall.")
    project.run("worker", "--mode", "quick")


def test_a_required_input_without_a_default_must_be_on_every_path(project: Project) -> None:
    skipping(project, {"required": True})
    done = project.genba("run", "worker", check=3)
    assert "steps.build.inputs.tall.from: a path leads to build that does not pass measure" in done.err


def test_an_input_from_an_output_that_no_step_declares_is_refused(project: Project) -> None:
    project.agent(steps={"work": {"inputs": {"tall": {"from": "measure.height"}}}})
    assert 'no step declares the output "measure.height"' in project.genba("run", "worker", check=3).err


# --- gates and transitions


def test_a_reply_that_does_not_fit_the_output_schema_is_asked_again(project: Project) -> None:
    project.write(".agent/worker/all.json", json.dumps({"answers": {"plan": {"required": ["height"]}}}))
    turns = [work(says("next")), idle(says("next", height=1))]
    project.agent(
        completion=STEP_MACHINE,
        steps={"work": leads_to(None, outputSchemaRef="all.json#/answers/plan")},
        script={"turns": turns},
    )
    refused = report(project, project.run("worker"), "reply_refused")
    assert ['"height" is a required property' in event["reason"] for event in refused] == [True]


def test_an_output_schema_that_is_not_there_is_refused(project: Project) -> None:
    project.agent(steps={"work": {"outputSchemaRef": "absent.json"}})
    assert "no such file: .agent/worker/absent.json" in project.genba("run", "worker", check=3).err


def test_a_reply_without_json_is_asked_again_with_the_error(project: Project) -> None:
    turns = [work("I am done."), idle(says("next"), expect="the reply has no JSON object")]
    project.agent(completion=STEP_MACHINE, steps={"work": leads_to(None)}, script={"turns": turns})
    result = project.run("worker")
    assert (result["iterations"], len(report(project, result, "reply_refused"))) == (1, 1)


def test_an_intent_that_is_not_allowed_is_asked_again(project: Project) -> None:
    turns = [
        work(says("repeat")),
        idle(says("next"), expect='next_action.action "repeat" is not allowed; allowed: next'),
    ]
    assert walking(project, {"work": leads_to(None)}, {"work": turns}) == ["work"]


def test_the_prompt_names_the_allowed_intents(project: Project) -> None:
    turns = [work(CLOSED, expect='`next_action.action` says how to go on; one of: "closing", "repeat".')]
    walking(project, {"work": closing()}, {"work": turns})


def test_the_intent_is_read_from_its_field(project: Project) -> None:
    gate = gated("next", intentField="go.on")
    turns = [work({"go": {"on": "next"}, "next_action": {"action": "repeat"}})]
    walking(project, {"work": {"structuredGate": gate, "transitions": {"next": None}}}, {"work": turns})


def jumping(**gate: Any) -> dict[str, Any]:
    jump = {"structuredGate": gated("jump", **gate), "transitions": {"jump": {"targets": ["left", "right"]}}}
    return {"start": jump, "left": leads_to(None), "right": leads_to(None)}


def test_a_jump_goes_to_the_target_that_the_reply_names(project: Project) -> None:
    turns = {"start": [work({"next_action": {"action": "jump", "target": "right"}})], "right": [idle(says("next"))]}
    assert walking(project, jumping(), turns) == ["start", "right"]


def test_the_target_of_a_jump_is_read_from_its_field(project: Project) -> None:
    reply = {"next_action": {"action": "jump", "target": "left"}, "where": {"to": "right"}}
    turns = {"start": [work(reply)], "right": [idle(says("next"))]}
    assert walking(project, jumping(targetField="where.to"), turns) == ["start", "right"]


def test_a_jump_to_a_step_that_is_not_among_its_targets_is_asked_again(project: Project) -> None:
    wrong = work({"next_action": {"action": "jump", "target": "start"}})
    right = idle({"next_action": {"action": "jump", "target": "left"}}, expect="allowed: left, right")
    assert walking(project, jumping(), {"start": [wrong, right], "left": [idle(says("next"))]}) == ["start", "left"]


def test_a_jump_has_a_target_or_targets_and_not_both(project: Project) -> None:
    steps = jumping()
    steps["start"]["transitions"]["jump"]["target"] = "left"
    project.agent(completion=STEP_MACHINE, steps=steps, registry={"entryStep": "start"})
    assert "steps.start.transitions.jump.target: a jump has" in project.genba("run", "worker", check=3).err


def test_the_fallback_intent_is_taken_after_the_re_asks(project: Project) -> None:
    gate = gated("next", "repeat", fallbackIntent="next")
    steps = {"work": {"structuredGate": gate, "transitions": {"next": "close"}}, "close": closing()}
    turns = {"work": [work("prose"), idle("prose"), idle("prose")], "close": [idle(CLOSED)]}
    assert walking(project, steps, turns) == ["work", "close"]


def test_without_a_fallback_intent_the_run_fails_after_the_re_asks(project: Project) -> None:
    project.agent(
        completion=STEP_MACHINE, steps={"work": leads_to(None)}, script={"turns": [work("prose")], "repeat": True}
    )
    result = project.run("worker", check=1)
    assert (result["outcome"], len(report(project, result, "reply_refused"))) == ("failed", 3)


@pytest.mark.parametrize("target", ["close", {"target": "close"}])
def test_a_transition_leads_to_its_target(project: Project, target: Any) -> None:
    steps = {"work": {"structuredGate": gated("next"), "transitions": {"next": target}}, "close": closing()}
    assert walking(project, steps, {"work": [work(says("next"))], "close": [idle(CLOSED)]}) == ["work", "close"]


@pytest.mark.parametrize("target", [None, {"target": None}])
def test_a_transition_to_nothing_is_the_end(project: Project, target: Any) -> None:
    steps = {"work": {"structuredGate": gated("next"), "transitions": {"next": target}}}
    assert walking(project, steps, {"work": [work(says("next"))]}) == ["work"]


def test_repeat_stays_and_handoff_moves_on(project: Project) -> None:
    gate = gated("repeat", "handoff")
    steps = {"work": {"structuredGate": gate, "transitions": {"handoff": "close"}}, "close": closing()}
    turns = {"work": [work(says("repeat")), idle(says("handoff"))], "close": [idle(CLOSED)]}
    assert walking(project, steps, turns) == ["work", "work", "close"]


def test_escalating_without_a_target_ends_the_run_blocked(project: Project) -> None:
    gate = gated("next", "escalate")
    steps = {
        "work": {"stepKind": "verification", "structuredGate": gate, "transitions": {"next": None, "escalate": None}}
    }
    project.agent(completion=STEP_MACHINE, steps=steps, script={"turns": [work(says("escalate"))]})
    assert project.run("worker", check=1)["outcome"] == "blocked"


def test_an_intent_without_a_transition_is_refused(project: Project) -> None:
    project.agent(completion=STEP_MACHINE, steps={"work": {"structuredGate": gated("next")}})
    assert 'steps.work: intent "next" has no transition' in project.genba("run", "worker", check=3).err


# --- conditions


def test_a_claim_with_conditions_that_hold_completes(project: Project) -> None:
    conditional(project, work({"status": "completed"}, run=FIX))
    assert project.run("worker")["iterations"] == 1


def test_a_claim_with_conditions_that_do_not_hold_is_retried_with_the_gap(project: Project) -> None:
    gap = [
        "attempt 1 of 3 failed",
        'You claimed "completed". Genba checked, and `made` does not hold: there is no file made.txt',
    ]
    turns = [
        work({"status": "completed"}),
        work({"status": "completed"}, run=FIX, expect=gap),
    ]
    conditional(project, *turns)
    result = project.run("worker")
    assert (result["outcome"], result["iterations"]) == ("completed", 2)
    assert [event["verdict"] for event in report(project, result, "iteration_finished")] == ["retry", "complete"]


def test_conditions_that_hold_complete_without_structured_output(project: Project) -> None:
    conditional(project, work("no JSON here", run=FIX))
    assert project.run("worker")["iterations"] == 1


def test_conditions_run_in_order_and_stop_at_the_first_failure(project: Project) -> None:
    conditional(
        project,
        idle(),
        validators={"first": file_exists("first.txt")},
        completionConditions=requires("commits-exist", "first", "made"),
        onFailure={"maxAttempts": 1},
    )
    result = project.run("worker", check=1)
    assert [event["result"]["name"] for event in report(project, result, "check_finished")] == ["commits-exist"]


def test_the_same_failure_on_the_same_tree_stops_the_retries(project: Project) -> None:
    conditional(project, idle(), idle(), work())
    result = project.run("worker", check=1)
    assert (result["outcome"], result["iterations"]) == ("incomplete", 2)
    assert result["reason"].startswith("no progress: made: there is no file made.txt")


def test_the_attempts_of_a_step_are_bounded(project: Project) -> None:
    result = failing(project, onFailure={"maxAttempts": 2})
    assert (result["outcome"], result["iterations"]) == ("incomplete", 2)
    assert result["reason"] == "made: there is no file made.txt (2 of 2 attempts)"


def test_a_step_is_tried_three_times_by_default(project: Project) -> None:
    assert failing(project)["iterations"] == 3


def test_on_failure_abort_ends_the_run(project: Project) -> None:
    result = failing(project, onFailure={"action": "abort"})
    assert (result["outcome"], result["iterations"]) == ("aborted", 1)


def test_on_failure_skip_goes_on_with_a_notice(project: Project) -> None:
    conditional(project, work(), onFailure={"action": "skip"})
    result = project.run("worker")
    assert (result["outcome"], result["iterations"]) == ("completed", 1)
    assert [event["message"] for event in report(project, result, "notice")] == ["made failed and is skipped"]


def test_an_unknown_validator_is_refused(project: Project) -> None:
    project.agent(steps={"work": {"completionConditions": requires("git-cleen")}})
    done = project.genba("run", "worker", check=3)
    assert 'steps.work.completionConditions[0].validator: there is no validator "git-cleen"' in done.err


# --- validators


def checked(project: Project, check: dict[str, Any], *turns: dict[str, Any]) -> list[str]:
    project.agent(
        completion=STEP_MACHINE,
        steps={"work": {**LAST, "completionConditions": requires("check"), "onFailure": {"maxAttempts": 9}}},
        registry={"validators": {"check": check}},
        script={"turns": list(turns)},
    )
    result = project.run("worker", check=None)
    return [event["result"].get("detail", "") for event in report(project, result, "check_finished")]


def test_a_command_check_holds_when_its_shell_line_succeeds(project: Project) -> None:
    check = {"type": "command", "command": "test -e made.txt || { echo 'error: not made'; exit 3; }"}
    output = checked(project, check, work(), work(run=FIX))
    assert output == ["error: not made (exit code 3)", ""]


def test_a_command_check_can_be_a_list_of_words(project: Project) -> None:
    output = checked(
        project, {"type": "command", "command": ["test", "-e", "a b"]}, work(), work(run=f"touch 'a b' && {COMMIT}")
    )
    assert output == ["exit code 1", ""]


def test_a_command_check_can_want_empty_output(project: Project) -> None:
    check = {"type": "command", "command": "cat complaints.txt 2>/dev/null || true", "successWhen": "emptyOutput"}
    output = checked(project, check, work(run="echo too loud > complaints.txt"), work(run="rm complaints.txt"))
    assert output == ["printed something: too loud", ""]


def test_a_command_check_that_takes_too_long_fails(project: Project) -> None:
    check = {"type": "command", "command": "test -e made.txt || sleep 30", "timeoutSeconds": 3}
    assert checked(project, check, work(), work(run=FIX)) == ["took longer than 3 s", ""]


def test_a_command_that_cannot_be_run_is_neither_a_pass_nor_a_fail(project: Project) -> None:
    project.agent(
        steps={"work": {"completionConditions": requires("check")}},
        registry={"validators": {"check": {"type": "command", "command": ["no-such-command"]}}},
    )
    result = project.run("worker", check=1)
    assert (result["outcome"], result["iterations"]) == ("failed", 0)
    assert "the check check could not be run" in result["reason"]


def test_git_clean_holds_when_nothing_is_uncommitted(project: Project) -> None:
    output = checked(project, {"type": "git-clean"}, work(run="touch a.txt"), work(run="rm a.txt"))
    assert output == ["1 file not committed: a.txt", ""]


def test_commits_exist_holds_when_the_branch_has_a_commit(project: Project) -> None:
    output = checked(project, {"type": "commits-exist"}, work(run="touch a.txt"), work())
    assert output == ["the branch has no commit over its base", ""]


def test_tests_pass_runs_the_tests_of_the_project(project: Project) -> None:
    project.write("Makefile", "test:\n\t@test -e made.txt\n")
    output = checked(project, {"type": "tests-pass"}, work(), work(run=FIX))
    assert ["exit code 2" in line for line in output] == [True, False]


def test_tests_that_take_too_long_fail(project: Project) -> None:
    project.write("Makefile", "test:\n\t@test -e made.txt || sleep 30\n")
    check = {"type": "tests-pass", "timeoutSeconds": 3}
    first, second = checked(project, check, work(), work(run=FIX))
    assert first == "took longer than 3 s"
    assert "exit code only" in second


def test_file_exists_holds_when_its_path_is_a_file(project: Project) -> None:
    output = checked(
        project, file_exists("deep/a.txt"), work(), work(run=f"mkdir deep && touch deep/a.txt && {COMMIT}")
    )
    assert output == ["there is no file deep/a.txt", ""]


def test_files_changed_holds_when_a_commit_changed_a_file_that_fits(project: Project) -> None:
    commit = "git add -A && git commit -qm more"
    turns = [work(), work(run=f"mkdir -p src/a && touch src/a/b.py && {commit}")]
    output = checked(project, {"type": "files-changed", "pattern": "src/**/*.py"}, *turns)
    assert output == ["no commit changed a file that fits src/**/*.py", ""]


def test_a_validator_of_the_registry_hides_the_built_in_one(project: Project) -> None:
    project.agent(
        steps={"work": {"completionConditions": requires("tests-pass")}},
        registry={"validators": {"tests-pass": {"type": "command", "command": "true"}}},
    )
    assert project.run("worker")["outcome"] == "completed"


# --- failure patterns


def patterned(project: Project, stderr: str, patterns: dict[str, Any], prompts: dict[str, str], **check: Any) -> None:
    """A check fails once, saying `error: E42`; the retry is asked with the prompt that a pattern picks."""
    command = "test -e made.txt || { echo 'error: E42'; exit 1; }"
    project.agent(
        completion=STEP_MACHINE,
        steps={"work": {**NAMED, **LAST, "completionConditions": requires("check")}},
        registry={
            "validators": {"check": {"type": "command", "command": command, **check}},
            "failurePatterns": patterns,
        },
        prompts={f"{PROMPTS}/{name}": text for name, text in {"f_default.md": "Move it.", **prompts}.items()},
        script={"turns": [work(expect="Move it."), work(run=FIX, expect=stderr)]},
    )
    project.run("worker")


def test_a_failure_pattern_that_matches_picks_the_retry_prompt(project: Project) -> None:
    patterns = {"other": {"match": "E41", "edition": "other"}, "known": {"match": "E4[2-9]"}}
    text = "{uv-failure_name}|{uv-failure_detail}|{uv-failure_output}|{uv-attempt}|{uv-max_attempts}"
    output = "check|error: E42 (exit code 1)|error: E42|1|3"
    patterned(project, output, patterns, {"f_failed.md": text, "f_other.md": "Wrong."})


def test_the_edition_of_a_failure_pattern_names_its_prompt(project: Project) -> None:
    patterned(project, "Again.", {"known": {"match": "E42", "edition": "again"}}, {"f_again.md": "Again."})


def test_the_adaptation_of_a_failure_pattern_names_its_prompt(project: Project) -> None:
    prompts = {"f_failed.md": "Plain.", "f_failed_loud.md": "Loud."}
    patterned(project, "Loud.", {"known": {"match": "E42", "adaptation": "loud"}}, prompts)


def test_a_check_can_name_its_failure_pattern(project: Project) -> None:
    patterns = {"first": {"match": "E42", "edition": "first"}, "mine": {"edition": "mine"}}
    patterned(project, "Mine.", patterns, {"f_first.md": "First.", "f_mine.md": "Mine."}, failurePattern="mine")


def test_a_retry_prompt_that_does_not_tell_the_failure_gets_the_gap(project: Project) -> None:
    patterned(project, "`check` does not hold", {"known": {"match": "E42"}}, {"f_failed.md": "Try again."})


def test_a_failure_pattern_that_does_not_exist_is_refused(project: Project) -> None:
    check = {"type": "git-clean", "failurePattern": "absent"}
    project.agent(registry={"validators": {"check": check}})
    done = project.genba("run", "worker", check=3)
    assert 'validators.check.failurePattern: there is no failure pattern "absent"' in done.err


@pytest.mark.parametrize(
    ("check", "spoil", "fix"),
    [
        ({"type": "git-clean"}, "touch a.txt", "rm a.txt"),
        ({"type": "commits-exist"}, "touch a.txt", COMMIT),
        ({"type": "tests-pass"}, "touch a.txt", FIX),
        ({"type": "file-exists", "path": "made.txt"}, "touch a.txt", FIX),
        ({"type": "files-changed", "pattern": "work.txt"}, "touch a.txt", COMMIT),
    ],
)
def test_every_kind_of_check_can_name_its_failure_pattern(
    project: Project, check: dict[str, Any], spoil: str, fix: str
) -> None:
    project.write("Makefile", "test:\n\t@test -e made.txt\n")
    project.agent(
        completion=STEP_MACHINE,
        steps={"work": {**NAMED, **LAST, "completionConditions": requires("check")}},
        registry={"validators": {"check": {**check, "failurePattern": "mine"}}, "failurePatterns": {"mine": {}}},
        prompts={f"{PROMPTS}/f_default.md": "Move it.", f"{PROMPTS}/f_failed.md": "Mine."},
        script={"turns": [work(run=spoil), work(run=fix, expect="Mine.")]},
    )
    project.run("worker")


def test_texts_for_readers_are_accepted_and_shown(project: Project) -> None:
    readers = {"$schema": "steps.schema.json", "version": "1.0.0", "description": "One step."}
    pattern = {"late": {"description": "it was late", "edition": "default"}}
    steps = {"work": {"name": "The work", "description": "Do it.", "c2": "work", "c3": "it"}}
    prompts = {"steps/work/it/f_default.md": "Do it.\n"}
    project.agent(steps=steps, registry={**readers, "failurePatterns": pattern}, prompts=prompts)

    project.genba("agent", "check", "worker", check=0)
    assert "Do it." in project.genba("agent", "show", "worker", check=0).out
