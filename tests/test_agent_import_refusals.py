"""`genba agent import`: originals that are hostile, broken or in the way."""

import json
import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from genba.definitions.climpt.conversion import convert_agent
from genba.domain.errors import GenbaError
from tests import climpt_definitions
from tests.project import GENBA, Project, ordinary_environment, until


def _changed(original: Path, file: str, change: Callable[[Any], None]) -> None:
    value = json.loads((original / file).read_text())
    change(value)
    (original / file).write_text(json.dumps(value))


def _in_steps(change: Callable[[Any], None]) -> Callable[[Path], None]:
    return lambda original: _changed(original, "steps_registry.json", change)


def _renamed(steps: dict[str, Any], name: str) -> None:
    steps["steps"][name] = steps["steps"].pop("initial.build")
    steps["entryStepMapping"] = dict.fromkeys(steps["entryStepMapping"], name)


def _linked(original: Path) -> None:
    outside = original.parents[1] / "outside.md"
    outside.write_text("a secret")
    (original / "prompts/system.md").unlink()
    (original / "prompts/system.md").symlink_to(outside)


def _linked_folder(original: Path) -> None:
    (original / "schemas/more").symlink_to("/")


def _many_files(original: Path) -> None:
    for number in range(2001):
        (original / f"{number}.md").touch()


def _many_references(original: Path) -> None:
    schema = {f"s{at}": {"properties": {name: {"$ref": f"#/s{at + 1}"} for name in "abcd"}} for at in range(30)}
    (original / "schemas/build.schema.json").write_text(json.dumps({**schema, "initial.build": {"$ref": "#/s0"}}))


_HOSTILE: dict[str, tuple[Callable[[Path], object], str]] = {
    "a step": (_in_steps(lambda steps: _renamed(steps, "../../../escaped")), "is no name of a file"),
    "c2": (_in_steps(lambda steps: steps["steps"]["initial.build"].update(c2="../../..")), "is no name of a file"),
    "c3": (_in_steps(lambda steps: steps["steps"]["initial.build"].update(c3="/tmp")), "is no name of a file"),
    "an edition": (
        _in_steps(lambda steps: steps["steps"]["initial.build"].update(edition="../../../../escaped")),
        "is no name of a file",
    ),
    "prompts": (_in_steps(lambda steps: steps.update(userPromptsBase="../../..")), "leaves the agent's folder"),
    "a registry": (
        lambda original: _changed(
            original, "agent.json", lambda agent: agent["runner"]["flow"]["prompts"].update(registry="../../x.json")
        ),
        "leaves the agent's folder",
    ),
    "a link": (_linked, "is a link out of the agent's folder"),
    "a linked folder": (_linked_folder, "is a link out of the agent's folder"),
    "a large file": (lambda original: (original / "agent.json").write_text(" " * 5_000_000), "larger than"),
    "a deep file": (lambda original: (original / "agent.json").write_text('{"a":' * 9000 + "1" + "}" * 9000), "nested"),
    "many files": (_many_files, "more than 2000 files"),
    "many references": (_many_references, "its references make more than"),
}


@pytest.mark.parametrize("name", _HOSTILE)
def test_a_hostile_original_is_refused_and_nothing_is_written(project: Project, tmp_path: Path, name: str) -> None:
    original = climpt_definitions.write(tmp_path / "original", "1.13")
    spoil, message = _HOSTILE[name]
    spoil(original)
    before = _files(tmp_path)

    done = project.genba("agent", "import", str(original), "--from", "climpt", check=3)

    assert message in done.err
    assert "a secret" not in done.out + done.err
    assert _files(tmp_path) == before


def test_a_link_to_an_agent_elsewhere_is_refused(project: Project, tmp_path: Path) -> None:
    climpt_definitions.write(tmp_path / "elsewhere", "1.13")
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents/builder").symlink_to(tmp_path / "elsewhere/.agent/builder")

    done = project.genba("agent", "import", str(tmp_path / "agents"), "--from", "climpt", check=2)

    assert "is a link out of" in done.err


def test_of_several_agents_all_are_written_or_none(project: Project, tmp_path: Path) -> None:
    climpt_definitions.write(tmp_path, "1.13", "architect")
    climpt_definitions.write(tmp_path, "1.12", "builder")
    project.agent("builder")

    project.genba("agent", "import", str(tmp_path / ".agent"), "--from", "climpt", check=5)
    assert not (project.root / ".agent/architect").exists()

    (tmp_path / ".agent/builder/agent.json").write_text("{")
    project.genba("agent", "import", str(tmp_path / ".agent"), "--from", "climpt", "--replace", check=3)
    assert not (project.root / ".agent/architect").exists()
    assert not (project.root / ".agent/.builder.before-import").exists()


def test_an_import_that_is_killed_leaves_a_whole_agent(project: Project, tmp_path: Path) -> None:
    original = climpt_definitions.write(tmp_path, "1.13")
    project.agent("builder")
    old = project.read(".agent/builder/agent.json")
    words = [str(GENBA), "agent", "import", str(original), "--from", "climpt", "--replace"]
    process = subprocess.Popen(words, cwd=project.root, env=ordinary_environment(), stdout=subprocess.DEVNULL)
    until(lambda: process.poll() is not None or any((project.root / ".agent").glob(".builder.*")))
    process.kill()
    process.wait()

    kept = [path for path in (project.root / ".agent").glob("*/agent.json") if path.read_text() == old]
    assert len(kept) == 1
    project.genba("agent", "import", str(original), "--from", "climpt", "--replace", check=0)
    project.genba("agent", "check", "builder", check=0)


def test_two_agents_of_one_name_are_refused(project: Project, tmp_path: Path) -> None:
    climpt_definitions.write(tmp_path, "1.13", "my_agent")
    climpt_definitions.write(tmp_path, "1.13", "my-agent")

    done = project.genba("agent", "import", str(tmp_path / ".agent"), "--from", "climpt", check=2)

    assert "my-agent" in done.err
    assert not (project.root / ".agent").exists()


@pytest.mark.parametrize("version", climpt_definitions.VERSIONS)
def test_a_value_of_any_type_is_converted_reported_or_refused(tmp_path: Path, version: str) -> None:
    original = climpt_definitions.write(tmp_path, version)
    for file in ("agent.json", "config.json", "steps_registry.json"):
        value = json.loads((original / file).read_text())
        for holder, key in list(_places(value)):
            kept = holder[key]
            for other in (5, "x", [[1]], {"a": {"b": 1}}, None):
                holder[key] = other
                (original / file).write_text(json.dumps(value))
                with suppress(GenbaError):
                    convert_agent(original, "builder")
            holder[key] = kept
        (original / file).write_text(json.dumps(value))


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every object and list with each of its keys."""
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in inner:
        yield value, key
        yield from _places(each)


def _files(folder: Path) -> set[str]:
    found: set[str] = set()
    for above, _, names in os.walk(folder):
        if ".git" not in Path(above).parts:
            found |= {str(Path(above, name)) for name in names}
    return found
