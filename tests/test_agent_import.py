"""`genba agent import`: definitions of climpt, converted, checked and run."""

import json
from collections.abc import Iterator
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
