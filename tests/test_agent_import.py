"""`genba agent import`: definitions of climpt, converted, checked and run."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests import climpt_definitions
from tests.project import COMMIT, Project

_SCRIPT = {
    "steps": {
        "initial.build": [
            {
                "expect": ["Issue 1", "Build it"],
                "reply": {"summary": "s", "analysis": {"approach": "small"}, "next_action": {"action": "next"}},
            }
        ],
        "continuation.build": [
            {
                "expect": ["After 1 iterations", "The plan: small, small"],
                "do": [{"run": COMMIT}, {"write": {"path": "left.txt", "text": "not committed\n"}}],
                "reply": {"next_action": {"action": "handoff"}},
            }
        ],
        "closure.build": [
            {"expect": "Close it.", "reply": {"next_action": {"action": "closing"}}},
            {
                "expect": ["Not committed for issue 1:", "left.txt"],
                "do": [{"commit": "the rest"}],
                "reply": {"next_action": {"action": "closing"}},
            },
        ],
    }
}


@pytest.fixture(params=climpt_definitions.VERSIONS)
def original(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return climpt_definitions.write(tmp_path / "original", str(request.param))


def _keys(value: Any, path: str = "") -> Iterator[str]:
    """The keys of a file, of which each is the name of a value that is no object and no list of objects."""
    inner = list(value.items()) if isinstance(value, dict) else []
    if isinstance(value, list) and any(isinstance(each, dict) for each in value):
        inner = [(f"[{at}]", each) for at, each in enumerate(value)]
    for key, each in inner:
        yield from _keys(each, f"{path}{key}" if key.startswith("[") or not path else f"{path}.{key}")
    if path and not inner:
        yield path


def _with_a_surprise(value: Any) -> Any:
    """The same data with an unknown key in every object."""
    if isinstance(value, list):
        return [_with_a_surprise(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {**{key: _with_a_surprise(each) for key, each in value.items()}, "surprise": 1}


def _inputs(original: Path) -> dict[str, Any]:
    names = ("agent.json", "config.json", "steps_registry.json")
    return {name: json.loads((original / name).read_text()) for name in names}


def _dropped(rows: dict[tuple[str, str], tuple[str, str]], file: str, key: str) -> bool:
    """Whether a key, or an object that it is in, is reported as one that is not taken over."""
    reported = [name for (source, name), (outcome, _) in rows.items() if source == file and outcome != "mapped"]
    return any(key == name or key.startswith((f"{name}.", f"{name}[")) for name in reported)


def _rows(project: Project, original: Path, *words: str) -> dict[tuple[str, str], tuple[str, str]]:
    done = project.genba("agent", "import", str(original), "--from", "climpt", "--json", *words, check=0)
    return {(row["file"], row["key"]): (row["outcome"], row["detail"]) for row in done.json[0]["keys"]}


def _only(rows: dict[tuple[str, str], tuple[str, str]], file: str, end: str) -> tuple[str, str]:
    (found,) = (each for each in rows if each[0] == file and each[1].endswith(end))
    return found


def test_an_imported_agent_passes_its_check_and_its_work_is_merged(project: Project, original: Path) -> None:
    project.genba("agent", "import", str(original), "--from", "climpt", check=0)
    project.genba("agent", "check", "builder", check=0)
    adapter = {"runner": {"adapter": {"type": "scripted", "script": "script.yaml"}}}
    project.write(".agent/builder/config.json", json.dumps(adapter))
    project.write(".agent/builder/script.yaml", yaml.safe_dump(_SCRIPT))
    project.commit("Import an agent")
    project.genba("task", "add", "Build it", check=0)

    result = project.run("builder", "--issue", "1")

    assert result["outcome"] == "completed"
    assert project.read("work.txt") == "work\n"
    assert project.read("left.txt") == "not committed\n"


def test_what_a_key_becomes_is_reported(project: Project, original: Path) -> None:
    rows = _rows(project, original)
    needs_attention = {key for key, (outcome, _) in rows.items() if outcome == "needs_attention"}
    assert needs_attention - {("steps_registry.json", "validationSteps.closure.build.preflightConditions")} == {
        ("agent.json", "team"),
        ("config.json", "telemetry.enabled"),
        _only(rows, "agent.json", "actions.handlers.issue-action"),
        ("steps_registry.json", "validators.type-check.command"),
        ("steps_registry.json", "validators.good-enough"),
        _only(rows, "steps_registry.json", "[3].validator"),
        ("prompts/steps/initial/build/f_default.md", "{uv-label_info}"),
    }
    for key in ("steps.initial.forgotten", "steps.section.context", "validators.branch-pushed", "agentId"):
        assert rows["steps_registry.json", key][0] == "no_effect"
    assert rows["agent.json", "parameters.branch"][0] == "no_effect"
    assert rows["config.json", "worktree.worktreeRoot"][0] == "no_effect"
    assert rows["config.json", "overrides.runner.logging.maxFiles"][0] == "no_effect"
    assert rows["README.md", ""][0] == "no_effect"
    assert rows["prompts/steps/initial/build/f_default.md", "front matter"][0] == "no_effect"


def test_no_key_of_the_original_is_lost_without_a_row(project: Project, original: Path) -> None:
    rows = _rows(project, original, "--dry-run")
    keys = {(file, key) for file, value in _inputs(original).items() for key in _keys(value)}
    whole = ("parameters.", "labels.completion", "outputSchemaRef", ".inputs.")

    silent = {each for each in keys if each not in rows and not _dropped(rows, *each)}
    assert [each for each in silent if not any(part in each[1] for part in whole)] == []
    invented = {each for each in rows if each[0].endswith(".json") and each not in keys and rows[each][0] == "mapped"}
    assert invented <= {("agent.json", "parameters.issue"), ("agent.json", "parameters.iterateMax")} | {
        each for each in rows if each[0].startswith("schemas/") or "outputSchemaRef" in each[1]
    }


def test_a_key_that_the_importer_does_not_know_needs_attention(project: Project, original: Path) -> None:
    surprised = {file: _with_a_surprise(value) for file, value in _inputs(original).items()}
    for file, value in surprised.items():
        (original / file).write_text(json.dumps(value))
    rows = _rows(project, original)
    project.genba("agent", "check", "builder", check=0)

    added = [(file, key) for file, value in surprised.items() for key in _keys(value) if key.endswith("surprise")]
    assert len(added) > 40
    lost = [each for each in added if not _dropped(rows, *each)]
    assert all("outputSchemaRef" in key for _, key in lost), lost


def test_all_versions_become_the_same_agent(project: Project, tmp_path: Path) -> None:
    made: list[dict[str, Any]] = []
    for version in climpt_definitions.VERSIONS:
        original = climpt_definitions.write(tmp_path / version, version)
        project.genba("agent", "import", str(original), "--from", "climpt", "--replace", check=0)
        files = (project.root / ".agent/builder").rglob("*")
        made.append({str(path.relative_to(project.root)): path.read_text() for path in files if path.is_file()})

    assert made[0] == made[1] == made[2] == made[3]
    registry = json.loads(made[0][".agent/builder/steps_registry.json"])
    assert list(registry["steps"]) == ["initial.build", "continuation.build", "closure.build"]
    assert [each["validator"] for each in registry["steps"]["closure.build"]["completionConditions"]] == [
        "git-clean",
        "says-ok",
    ]


def _changed(original: Path, change: Callable[[dict[str, Any]], None], name: str = "steps_registry.json") -> None:
    value = json.loads((original / name).read_text())
    change(value)
    (original / name).write_text(json.dumps(value))


def _imported(project: Project, name: str = "steps_registry.json") -> Any:
    return json.loads(project.read(f".agent/builder/{name}"))


def _without_place(registry: dict[str, Any]) -> None:
    """The retry prompts of the conditions are at the c3 of the step: the entry itself names none."""
    for section in ("completionSteps", "validationSteps"):
        for entry in registry.get(section, {}).values():
            del entry["c2"], entry["c3"]


def test_a_retry_prompt_is_found_at_the_c3_of_its_step(project: Project, original: Path) -> None:
    _changed(original, _without_place)
    rows = _rows(project, original)
    source, target = ".agent/builder/prompts/steps/retry", "prompts/steps/closure/build/f_failed_git-dirty.md"
    assert rows["prompts/steps/retry/build/f_failed_git-dirty.md", ""] == ("mapped", target)
    assert "{uv-failure_output}" in project.read(f".agent/builder/{target}")
    assert not (project.root / source).exists()
    assert _imported(project)["failurePatterns"]["git-dirty"]["adaptation"] == "git-dirty"
    assert _imported(project)["validators"]["git-clean"]["failurePattern"] == "git-dirty"
    _, why = rows["steps_registry.json", _only(rows, "steps_registry.json", "test-failed")[1]]
    assert why == "prompts/steps/retry/ has no f_failed_test-failed.md for it: Genba's own text is used"


def test_the_plain_retry_prompt_takes_the_place_of_one_that_is_missing(project: Project, original: Path) -> None:
    prompts = original / "prompts/steps/retry/build"
    (prompts / "f_failed_git-dirty.md").rename(prompts / "f_failed.md")
    rows = _rows(project, original)
    target = "prompts/steps/closure/build/f_failed.md"
    assert rows["prompts/steps/retry/build/f_failed.md", ""] == ("mapped", target)
    pattern = {"edition": "failed", "description": "not committed"}
    assert _imported(project)["failurePatterns"]["git-dirty"] == pattern
    assert not [key for key, row in rows.items() if row[0] == "mapped" and key[1].endswith("git-dirty.adaptation")]


def test_a_retry_prompt_that_fits_no_step_needs_attention(project: Project, original: Path) -> None:
    (original / "prompts/steps/retry/build").rename(original / "prompts/steps/retry/elsewhere")
    rows = _rows(project, original)
    file = "prompts/steps/retry/elsewhere/f_failed_git-dirty.md"
    outcome, why = rows["steps_registry.json", _only(rows, "steps_registry.json", "Patterns.git-dirty")[1]]
    assert (outcome, why) == (
        "needs_attention",
        f"{file} is not at the c3 of a step that checks something: it was left out",
    )
    assert rows[file, ""][0] == "needs_attention"


@pytest.mark.parametrize(
    ("allowed", "transition"),
    [
        (["continue", "handoff", "repeat"], "next"),
        (["next", "handoff", "repeat"], "continue"),
        (["Pass", "handoff", "retry"], "NEXT"),
        (["pass", "continue", "handoff", "repeat"], "next"),
    ],
)
def test_an_intent_and_its_transition_may_have_different_aliases(
    project: Project, original: Path, allowed: list[str], transition: str
) -> None:
    def change(registry: dict[str, Any]) -> None:
        step = registry["steps"]["continuation.build"]
        step["structuredGate"]["allowedIntents"] = allowed
        step["transitions"] = {transition: {"target": "closure.build"}, "handoff": {"target": "closure.build"}}

    _changed(original, change)
    rows = _rows(project, original)
    step = _imported(project)["steps"]["continuation.build"]
    assert step["transitions"] == {"next": "closure.build", "handoff": "closure.build"}
    assert step["structuredGate"]["allowedIntents"] == ["next", "handoff", "repeat"]
    at = f"steps.continuation.build.transitions.{transition}.target"
    assert rows["steps_registry.json", at] == ("mapped", "closure.build")
    assert not [key for key, row in rows.items() if "build.transitions" in key[1] and row[0] == "needs_attention"]


def test_of_two_transitions_of_one_intent_the_other_is_reported(project: Project, original: Path) -> None:
    def change(registry: dict[str, Any]) -> None:
        step = registry["steps"]["continuation.build"]
        step["structuredGate"]["allowedIntents"] = ["continue", "handoff"]
        step["transitions"] |= {"next": "closure.build", "handoff": "closure.build", "pass": "closure.build"}

    _changed(original, change)
    rows = _rows(project, original)
    assert _imported(project)["steps"]["continuation.build"]["transitions"]["next"] == "closure.build"
    at = "steps.continuation.build.transitions"
    assert rows["steps_registry.json", f"{at}.next"] == ("mapped", "closure.build")
    assert rows["steps_registry.json", f"{at}.continue"][0] == "needs_attention"
    assert rows["steps_registry.json", f"{at}.pass"] == ("no_effect", "transitions.next is the same")


def test_texts_for_readers_are_kept(project: Project, original: Path) -> None:
    def change(registry: dict[str, Any]) -> None:
        registry |= {"description": "How it builds"}
        registry["steps"]["initial.build"] |= {"name": "Begin", "description": "Reads the issue"}

    _changed(original, change)
    rows = _rows(project, original)
    registry, agent = _imported(project), _imported(project, "agent.json")
    assert (registry["version"], registry["description"], agent["version"]) == ("1.0.0", "How it builds", "1.0.0")
    assert registry["steps"]["initial.build"]["name"] == "Begin"
    assert registry["steps"]["initial.build"]["description"] == "Reads the issue"
    assert registry["failurePatterns"]["git-dirty"]["description"] == "not committed"
    for key in ("version", "description", "steps.initial.build.name", "steps.initial.build.description"):
        assert rows["steps_registry.json", key][0] == "mapped"
    assert rows["agent.json", "version"][0] == "mapped"
    assert rows[_only(rows, "steps_registry.json", "git-dirty.description")][0] == "mapped"


def test_an_empty_object_is_no_unknown_key(project: Project, original: Path) -> None:
    def agent(value: dict[str, Any]) -> None:
        (value.get("behavior") or {})["completionConfig"] = {}
        for section in ("completion", "verdict"):
            if section in value.get("runner", {}):
                value["runner"][section]["config"] = {}
        value["mystery"] = {}

    _changed(original, agent, "agent.json")
    _changed(original, lambda value: value["steps"]["closure.build"].update({"inputs": {}, "odd": {}}))
    _changed(original, lambda value: value.update({"overrides": {}, "odd": []}), "config.json")
    rows = _rows(project, original)
    (config,) = (key for key in rows if key[1].lower().endswith("config") and key[0] == "agent.json")
    assert rows[config] == ("no_effect", "it is empty")
    assert rows["steps_registry.json", "steps.closure.build.inputs"] == ("no_effect", "it is empty")
    assert rows["config.json", "overrides"] == ("no_effect", "it is empty")
    for key in (
        ("agent.json", "mystery"),
        ("steps_registry.json", "steps.closure.build.odd"),
        ("config.json", "odd"),
    ):
        assert rows[key][0] == "needs_attention"


def test_limits_and_unknown_keys_of_config_json(project: Project, original: Path) -> None:
    overrides = {"runner.limits.maxIterations": 5, "runner.limits.tokens": "many"}
    _changed(original, lambda value: value.update({"overrides": overrides}), "config.json")
    rows = _rows(project, original)
    assert _imported(project, "agent.json")["runner"]["limits"] == {"maxIterations": 5}
    assert rows["config.json", "overrides.runner.limits.maxIterations"][0] == "mapped"
    assert rows["config.json", "overrides.runner.limits.tokens"][0] == "needs_attention"
    assert rows["config.json", "telemetry.enabled"][0] == "needs_attention"


def test_a_condition_whose_validator_is_left_out_is_not_reported_as_kept(project: Project, original: Path) -> None:
    rows = _rows(project, original)
    (key,) = (each for each in rows if each[1].endswith("[1].validator"))
    assert rows[key] == ("no_effect", "validators.branch-pushed was left out")


def test_an_agent_that_is_there_is_kept(project: Project, original: Path) -> None:
    project.agent("builder")
    before = project.read(".agent/builder/agent.json")

    refused = project.genba("agent", "import", str(original), "--from", "climpt", check=5)
    assert "--replace" in refused.err
    assert project.read(".agent/builder/agent.json") == before

    project.genba("agent", "import", str(original), "--from", "climpt", "--replace", check=0)
    assert project.read(".agent/.builder.before-import/agent.json") == before


def test_a_dry_run_writes_nothing(project: Project, original: Path) -> None:
    shown = project.genba("agent", "import", str(original), "--from", "climpt", "--dry-run", "--all", check=0)
    assert "mapped" in shown.out
    assert not (project.root / ".agent" / "builder").exists()


def test_a_definition_can_be_imported_in_its_own_place(project: Project) -> None:
    climpt_definitions.write(project.root, "1.13")
    project.genba("agent", "check", "builder", check=3)
    project.genba("agent", "import", ".agent", "--from", "climpt", "--replace", check=0)
    project.genba("agent", "check", "builder", check=0)


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        ({"agent.json": "{"}, "agent.json"),
        ({"steps_registry.json": "[]"}, "expected a JSON object"),
        ({"agent.json": json.dumps({"runner": {"flow": {"systemPromptPath": "../../../../etc/passwd"}}})}, ""),
    ],
)
def test_a_broken_definition_writes_nothing_that_is_broken(
    project: Project, tmp_path: Path, broken: dict[str, str], message: str
) -> None:
    original = climpt_definitions.write(tmp_path, "1.12")
    for path, text in broken.items():
        (original / path).write_text(text)
    done = project.genba("agent", "import", str(original), "--from", "climpt")
    assert message in done.err
    assert "root:" not in "".join(path.read_text() for path in project.root.rglob(".agent/builder/**/*.md"))
    if done.code == 0:
        project.genba("agent", "check", "builder", check=0)
    else:
        assert not (project.root / ".agent" / "builder").exists()


def test_a_folder_without_agents_is_refused(project: Project, tmp_path: Path) -> None:
    done = project.genba("agent", "import", str(tmp_path), "--from", "climpt", check=4)
    assert "agent.json" in done.err
