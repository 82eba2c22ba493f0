"""The documents stay true: what they link to exists, what they type works, and what the code accepts is described."""

import fnmatch
import json
import re
import shlex
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args, get_origin

import click
import msgspec
import pytest
import yaml

from genba.blackboard.database.schema import metadata
from genba.connections.agents.acp.adapter import AcpSettings
from genba.connections.agents.acp.known_agents import KNOWN
from genba.connections.agents.catalogue import ADAPTERS, adapter_class
from genba.connections.agents.cli_tools.claude_code import ClaudeCodeSettings
from genba.connections.agents.cli_tools.codex import CodexSettings
from genba.connections.agents.cli_tools.opencode import OpenCodeSettings
from genba.connections.agents.command_line import CommandLineAdapter
from genba.connections.agents.custom import CustomSettings, ReplyFile
from genba.connections.agents.scripted import Script
from genba.definitions.agent.agent_json import AgentFile, Parameter
from genba.definitions.agent.completion import COMPLETION_TYPES
from genba.definitions.agent.cross_checks import BUILTIN_HANDLERS
from genba.definitions.agent.loading import load_definition
from genba.definitions.agent.parameters import RUN_OPTIONS, option_name
from genba.definitions.agent.registry import BUILTIN_FOLDER
from genba.definitions.agent.scaffold import TEMPLATES
from genba.definitions.project.config_file import ProjectFile
from genba.definitions.project.goal_sections import RulesFile
from genba.definitions.project.goal_text import rules_written
from genba.definitions.project.work_sections import FleetSettings
from genba.definitions.schemas import FILES, ConfigFile
from genba.definitions.steps.steps_registry import StepsRegistry
from genba.definitions.steps.variables import ALWAYS, IN_RETRY, WITH_ISSUE
from genba.domain.convert import shape
from genba.domain.errors import ConfigurationError, GenbaError
from genba.domain.events import Event
from genba.domain.goals.goal import GOAL_TYPES, Goal, GoalLevel, goal_type
from genba.domain.goals.verification import ArtifactType, RejectionReason, VerdictStatus
from genba.domain.sessions.evidence import BUILTIN_CHECKS, Check, CheckStatus
from genba.domain.sessions.outcomes import Intent, Outcome, StepKind
from genba.domain.sessions.replies import Usage
from genba.domain.sessions.workspaces import MergeStatus
from genba.domain.tasks.statuses import RULES
from genba.domain.tasks.task import ActorKind, BlockerKind, Priority, TaskStatus
from genba.entrypoints.cli.commands import COMMANDS, cli
from genba.entrypoints.cli.work.run_command import exit_code
from genba.execution.run_values import RunResult
from genba.execution.verification.policy import EXPECTED, MAY_CHANGE, TYPE_RULES
from genba.judgement.verification.paths import PROTECTED
from genba.wiring import adapter_files

ROOT = Path(__file__).parent.parent
REFERENCE = ROOT / "docs" / "reference"
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])

_FENCE = re.compile(r"^( *)```([^\n]*)\n(.*?)^\1```[ ]*$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)|\b(?:src|srcset)=\"([^\"\s]+)\"")
_INLINE = re.compile(r"`([^`\n]+)`")
_ENDS_A_COMMAND = ("|", "&&", ";", ">", "||")


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def text_of(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def blocks(page: Path) -> Iterator[tuple[str, str]]:
    """Each fenced block of a page: its marker with the label, and its content."""
    for found in _FENCE.finditer(text_of(page)):
        yield found.group(2).strip(), found.group(3)


def prose(page: Path) -> str:
    return _FENCE.sub("", text_of(page))


def words_in_code(page: Path) -> set[str]:
    """Every word that a page writes as code, in its prose and in its tables, or has in a title."""
    text = prose(page)
    spans = [*_INLINE.findall(text), *re.findall(r"^#+ (.+)$", text, re.MULTILINE)]
    return {word for span in spans for word in re.findall(r"[$\w-]+", span)}


every_page = pytest.mark.parametrize("page", PAGES, ids=name_of)


# ── links ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def links_of(page: Path) -> list[str]:
    """What a page leads to, and the pictures that it shows."""
    return [found[1] or found[2] for found in _LINK.finditer(prose(page))]


def anchors(page: Path) -> set[str]:
    titles = re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)
    plain = (re.sub(r"[^\w\- ]", "", title.lower()) for title in titles)
    return {title.strip().replace(" ", "-") for title in plain}


@every_page
def test_every_relative_link_leads_somewhere(page: Path) -> None:
    broken = []
    for target in links_of(page):
        if target.startswith(("https://", "http://", "mailto:")):
            continue
        path, _, anchor = target.partition("#")
        there = (page.parent / path).resolve() if path else page
        if not there.exists() or (anchor and anchor not in anchors(there)):
            broken.append(target)
    assert broken == []


def test_every_page_can_be_reached_from_the_first_one() -> None:
    seen: set[Path] = set()
    waiting = [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page in seen or page.suffix != ".md" or not page.is_file():
            continue
        seen.add(page)
        links = [link.partition("#")[0] for link in links_of(page) if "://" not in link]
        waiting += [(page.parent / link).resolve() for link in links if link]
    assert [name_of(page) for page in PAGES if page not in seen] == []


# ── commands ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def typed_commands(page: Path) -> Iterator[str]:
    """Every `genba …` that a page shows: in its blocks, and as code in its prose."""
    for marker, content in blocks(page):
        lines = [line.strip() for line in content.splitlines()]
        if marker == "console":
            yield from (line[2:] for line in lines if line.startswith("$ genba"))
        elif marker == "sh":
            yield from (line for line in lines if line.startswith("genba"))
    yield from (span for span in _INLINE.findall(prose(page)) if span.startswith("genba "))


def options_of(command: click.Command) -> set[str]:
    listed = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
    return {option for option in listed if option.startswith("-")} | {"-h", "--help"}


def agent_options() -> set[str]:
    """The options that `genba run NAME` may have: those of every run, of built-in agents and of new ones."""
    files = [json.loads(path.read_text("utf-8")) for path in BUILTIN_FOLDER.glob("*/agent.json")]
    files += [json.loads(template("any")["agent.json"]) for template in TEMPLATES.values()]
    declared = {
        option_name(name, msgspec.convert(raw, Parameter)) for file in files for name, raw in file["parameters"].items()
    }
    return declared | set(RUN_OPTIONS) | {"-h"}


def complaint_about(line: str) -> str:
    """What is wrong with a typed command, or an empty string."""
    words = shlex.split(line, comments=True)[1:]
    command: click.Command = cli
    known = options_of(cli)
    arguments = 0
    for word in words:
        if word in _ENDS_A_COMMAND:
            break
        if word.startswith("-") and word != "-":
            if word.partition("=")[0] not in known:
                return f"{line}: no option {word}"
        elif command.name == "run":
            known = agent_options() if arguments == 0 and "--resume" not in words else known
            arguments += 1
        elif isinstance(command, click.Group):
            if command is cli and word not in COMMANDS:
                return f"{line}: no command {word}"
            found = command.get_command(click.Context(command), word)
            if found is None:
                return f"{line}: no command {word}"
            command, known = found, options_of(found)
    return ""


@every_page
def test_every_command_that_is_shown_exists_with_its_options(page: Path) -> None:
    assert [wrong for line in typed_commands(page) if (wrong := complaint_about(line))] == []


def test_a_command_that_does_not_exist_would_be_found() -> None:
    assert complaint_about("genba facilitat") == "genba facilitat: no command facilitat"
    assert complaint_about("genba agent lst").endswith("no command lst")
    assert complaint_about("genba logs --promts").endswith("no option --promts")
    assert complaint_about("genba run iterator --isue 1").endswith("no option --isue")


@every_page
def test_every_make_target_that_is_shown_exists(page: Path) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    lines = [line for marker, content in blocks(page) if marker == "sh" for line in content.splitlines()]
    spans = _INLINE.findall(prose(page))
    typed = {word for line in [*lines, *spans] for word in re.findall(r"^\s*make ([a-z-]+)", line)}
    assert typed - targets == set()


# ── examples of files ────────────────────────────────────────────────────────────────────────────────────────────────

MINIMAL: dict[str, Any] = {
    "name": "example",
    "description": "An example",
    "runner": {"completion": {"type": "stepMachine"}},
}
ONE_STEP: dict[str, Any] = {"steps": {"work": {"stepKind": "closure"}}}


def labelled(page: Path, label: str) -> list[Any]:
    return [json.loads(content) for marker, content in blocks(page) if marker == f"json {label}"]


def write_agent(root: Path, agent: dict[str, Any], registry: dict[str, Any], page: Path) -> Path:
    """A folder with this agent, and a stub for every prompt that it names."""
    folder = root / str(agent["name"])
    (folder / "prompts").mkdir(parents=True)
    (folder / "prompts" / "system.md").write_text("You are an example.\n", encoding="utf-8")
    (folder / "agent.json").write_text(json.dumps(agent), encoding="utf-8")
    (folder / "steps_registry.json").write_text(json.dumps(registry), encoding="utf-8")
    for step in registry["steps"].values():
        if "c2" in step:
            prompt = folder / "prompts" / "steps" / step["c2"] / step["c3"] / "f_default.md"
            prompt.parent.mkdir(parents=True, exist_ok=True)
            prompt.write_text("Do it.\n", encoding="utf-8")
            for pattern in registry.get("failurePatterns", {}).values():
                parts = ["f", pattern.get("edition", "failed"), *filter(None, [pattern.get("adaptation")])]
                prompt.with_name("_".join(parts) + ".md").write_text("Fix it.\n", encoding="utf-8")
    for marker, content in blocks(page):
        if marker.startswith("python "):
            (folder / marker.removeprefix("python ")).write_text(content, encoding="utf-8")
    return folder


def problems_of(folder: Path) -> list[str]:
    try:
        definition = load_definition(folder, folder.name, [], [])
    except ConfigurationError as error:
        return [str(problem) for problem in error.problems]
    return problems_of_adapter(definition.file.runner.adapter)


def problems_of_adapter(adapter: Any) -> list[str]:
    if not isinstance(adapter, dict):
        return []
    _, problems = shape(adapter, adapter_class(adapter["type"]).settings_type, "adapter")
    return [str(problem) for problem in problems]


@every_page
def test_every_json_block_is_json(page: Path) -> None:
    for marker, content in blocks(page):
        if marker.split(" ")[0] == "json":
            json.loads(content)


@every_page
def test_every_agent_that_is_shown_whole_passes_the_loader(page: Path, tmp_path: Path) -> None:
    registries = labelled(page, "steps_registry.json")
    for number, agent in enumerate(labelled(page, "agent.json")):
        registry = registries[-1] if registries else ONE_STEP
        assert problems_of(write_agent(tmp_path / str(number), agent, registry, page)) == []


@every_page
def test_every_part_of_an_agent_that_is_shown_fits_over_an_agent(page: Path, tmp_path: Path) -> None:
    for number, part in enumerate(labelled(page, "agent.json part")):
        folder = write_agent(tmp_path / str(number), MINIMAL, ONE_STEP, page)
        (folder / "config.json").write_text(json.dumps(part), encoding="utf-8")
        assert problems_of(folder) == []


@every_page
def test_every_flow_that_is_shown_passes_the_loader(page: Path, tmp_path: Path) -> None:
    for number, registry in enumerate(labelled(page, "steps_registry.json")):
        ends = any(step.get("stepKind") == "closure" for step in registry["steps"].values())
        completion = {"type": "stepMachine"} if ends else {"type": "iterationBudget", "config": {"maxIterations": 1}}
        agent = {**MINIMAL, "runner": {"completion": completion}}
        assert problems_of(write_agent(tmp_path / str(number), agent, registry, page)) == []


@every_page
def test_every_yaml_block_is_a_project_file_or_a_script(page: Path) -> None:
    for marker, content in blocks(page):
        if marker != "yaml":
            continue
        raw = yaml.safe_load(content)
        is_script = {"steps", "turns"} & set(raw)
        _, problems = shape(
            raw if is_script else rules_written(raw), Script if is_script else ConfigFile, name_of(page)
        )
        assert [str(problem) for problem in problems] == []
        for settings in raw.get("agents", {}).values():
            assert problems_of_adapter(settings.get("adapter")) == []


# ── the reference is complete ────────────────────────────────────────────────────────────────────────────────────────


def fields_of(kind: Any, seen: set[Any] | None = None) -> set[str]:
    """The name of every field of a struct and of all that is inside it."""
    seen = set() if seen is None else seen
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        if kind in seen:
            return set()
        seen.add(kind)
        fields = msgspec.structs.fields(kind)
        return {field.encode_name for field in fields}.union(*(fields_of(field.type, seen) for field in fields))
    return set().union(*(fields_of(inner, seen) for inner in get_args(kind)))


DESCRIBED: dict[str, tuple[Any, ...]] = {
    "reference/agent-json.md": (AgentFile,),
    "reference/steps-registry.md": (StepsRegistry,),
    "reference/config-yaml.md": (ProjectFile, RulesFile, FleetSettings),
    "reference/goals.md": get_args(Goal),
    "reference/scripted-agent.md": (Script,),
    "reference/adapters.md": (ClaudeCodeSettings, CodexSettings, OpenCodeSettings, AcpSettings),
    "how-to/any-command.md": (CustomSettings, ReplyFile),
    "reference/completion-types.md": tuple(COMPLETION_TYPES.values()),
}


@pytest.mark.parametrize("page", DESCRIBED)
def test_every_field_is_described(page: str) -> None:
    elsewhere = set() if page == "reference/goals.md" else set(get_args(Goal))
    wanted = set().union(*(fields_of(kind, elsewhere) for kind in DESCRIBED[page]))
    assert wanted - words_in_code(ROOT / "docs" / page) == set()


def settings_of(kind: Any, seen: tuple[Any, ...] = ()) -> set[str]:
    """The dotted path of every setting below a struct; `*` stands for a key that the user chooses."""
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        fields = () if kind in seen else msgspec.structs.fields(kind)
        inner = {field.encode_name: settings_of(field.type, (*seen, kind)) for field in fields}
        return set(inner) | {f"{name}.{path}" for name, paths in inner.items() for path in paths}
    parts = [settings_of(part, seen) for part in get_args(kind)]
    paths = set().union(*parts)
    return {"*"} | {f"*.{path}" for path in paths} if get_origin(kind) is dict else paths


def test_every_setting_that_a_guide_names_exists() -> None:
    known = settings_of(ConfigFile) | settings_of(AgentFile)
    sections = {path.partition(".")[0] for path in known}
    guides = [page for page in PAGES if "reference" not in page.parts and page.name != "CHANGELOG.md"]
    named = {
        (name_of(page), span)
        for page in guides
        for span in _INLINE.findall(prose(page))
        if re.fullmatch(r"[a-z]\w*(\.\w+)+", span) and span.partition(".")[0] in sections
    }
    assert len(named) > 60
    unknown = {each for each in named if not any(fnmatch.fnmatchcase(each[1], path) for path in known)}
    assert {each for each in unknown if not re.search(r"\.(md|json|yaml|py)$", each[1])} == set()


def test_every_field_of_an_event_is_described() -> None:
    wanted = {field.encode_name for kind in get_args(Event) for field in msgspec.structs.fields(kind)}
    assert wanted - words_in_code(REFERENCE / "journal.md") == set()


def test_every_exit_code_is_in_the_reference() -> None:
    codes = {0} | {kind.exit_code for kind in every_error(GenbaError)} | set(codes_of_runs())
    shown = text_of(REFERENCE / "exit-codes.md")
    assert {int(number) for number in re.findall(r"^\| (\d+) \|", shown, re.MULTILINE)} == codes


def every_error(kind: type[GenbaError]) -> Iterator[type[GenbaError]]:
    yield kind
    for inner in kind.__subclasses__():
        yield from every_error(inner)


def codes_of_runs() -> Iterator[int]:
    for outcome in Outcome:
        for merge in (None, *MergeStatus):
            yield exit_code(
                RunResult(
                    run="", agent="", outcome=outcome, reason="", iterations=0, seconds=0, usage=Usage(), branch="",
                    workdir="", merge=merge,
                )
            )  # fmt: skip


@pytest.mark.parametrize(
    ("page", "words"),
    [
        ("reference/completion-types.md", set(COMPLETION_TYPES)),
        ("concepts.md", set(COMPLETION_TYPES) | {str(outcome) for outcome in Outcome}),
        ("reference/exit-codes.md", {str(outcome) for outcome in Outcome}),
        ("reference/variables.md", {f"uv-{name}" for name in ALWAYS | WITH_ISSUE | IN_RETRY}),
        ("reference/steps-registry.md", {str(intent) for intent in Intent} | {str(kind) for kind in StepKind}),
        ("reference/steps-registry.md", set(BUILTIN_CHECKS)),
        ("reference/steps-registry.md", {str(kind.__struct_config__.tag) for kind in get_args(Check)}),
        ("reference/agent-json.md", {handler.removeprefix("builtin:") for handler in BUILTIN_HANDLERS}),
        ("reference/journal.md", {str(kind.__struct_config__.tag) for kind in get_args(Event)}),
        ("reference/cli.md", {*FILES, *adapter_files()}),
        ("reference/cli.md", {str(priority) for priority in Priority}),
        ("reference/goals.md", set(GOAL_TYPES) | set(EXPECTED) | {str(level) for level in GoalLevel}),
        ("reference/goals.md", {str(word) for word in (*VerdictStatus, *RejectionReason, *ArtifactType)}),
        ("reference/statuses.md", {str(word) for word in (*TaskStatus, *ActorKind, *BlockerKind)}),
        ("reference/journal.md", {str(status) for status in CheckStatus}),
        ("reference/cli.md", {*COMMANDS, *TEMPLATES}),
    ],
)
def test_everything_that_the_code_names_is_in_its_reference(page: str, words: set[str]) -> None:
    assert words - words_in_code(ROOT / "docs" / page) == set()


def test_every_option_is_in_the_reference_of_the_command_line() -> None:
    commands: list[click.Command] = [cli]
    options = set(RUN_OPTIONS)
    while commands:
        command = commands.pop()
        options |= options_of(command)
        if isinstance(command, click.Group) and command.name != "run":
            context = click.Context(command)
            inner = (command.get_command(context, name) for name in command.list_commands(context))
            commands += [found for found in inner if found is not None]
    described = text_of(REFERENCE / "cli.md")
    assert [
        option for option in sorted(options) if f"`{option}" not in described and f"{option}`" not in described
    ] == []


INTERNAL_VARIABLES = {"GENBA_OWN_PROCESS", "GENBA_PROCESS_MARK", "GENBA_INSIDE_"}


def test_every_environment_variable_is_in_the_reference() -> None:
    sources = (ROOT / "src" / "genba").rglob("*.py")
    read = {
        name
        for path in sources
        for name in re.findall(r'"(GENBA_[A-Z_]+)"', text_of(path))
        if "testing" not in path.parts
    }
    assert len(read) > 20
    assert read - INTERNAL_VARIABLES - words_in_code(REFERENCE / "environment.md") == set()


def test_the_result_of_a_run_is_shown_with_every_field() -> None:
    shown = next(
        content for marker, content in blocks(REFERENCE / "cli.md") if content.startswith("$ genba run writer")
    )
    keys = re.findall(r'^  "(\w+)":', shown, re.MULTILINE)
    assert keys == [field.encode_name for field in msgspec.structs.fields(RunResult)]


# ── what is copied out of the code ───────────────────────────────────────────────────────────────────────────────────


def copied(page: Path, name: str) -> str:
    """What a page has between two marks."""
    return text_of(page).partition(f"<!-- {name} -->\n")[2].partition(f"<!-- /{name} -->")[0].strip("\n")


def rules_as_table() -> str:
    rows = ["| from | to | who may | only if |", "|---|---|---|---|"]
    for rule in RULES:
        who = ", ".join(f"`{actor}`" for actor in ActorKind if actor in rule.by)
        rows.append(f"| `{rule.start}` | `{rule.to}` | {who} | {rule.only_if} |")
    return "\n".join(rows)


def protected_as_block() -> str:
    lines = textwrap.wrap("  ".join(PROTECTED), width=118, break_long_words=False, break_on_hyphens=False)
    return "\n".join(["```", *lines, "```"])


def test_the_table_of_statuses_is_the_one_that_the_gateway_uses() -> None:
    assert copied(REFERENCE / "statuses.md", "rules") == rules_as_table()


def test_the_list_of_protected_paths_is_the_one_that_is_used() -> None:
    assert copied(REFERENCE / "goals.md", "protected") == protected_as_block()


MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "`claude-code`": ("claude-code", {}),
    "`codex`": ("codex", {}),
    "`opencode`, `anthropic`": ("opencode", {"provider": {"name": "anthropic"}}),
    "`opencode`, `openai`": ("opencode", {"provider": {"name": "openai"}}),
    "`acp`, `gemini`": ("acp", {"command": "gemini"}),
}
"""The columns of the table of models, and the adapter of each."""


def models_as_table() -> str:
    adapters = []
    for name, more in MODELS.values():
        kind = adapter_class(name)
        assert issubclass(kind, CommandLineAdapter)
        adapters.append(kind(msgspec.convert({"type": name, **more}, kind.settings_type), ROOT))
    rows = [f"| name | {' | '.join(MODELS)} |", "|---" * (len(MODELS) + 1) + "|"]
    for model in ("opus", "sonnet", "haiku"):
        rows.append(f"| `{model}` | {' | '.join(f'`{adapter.model(model)}`' for adapter in adapters)} |")
    return "\n".join(rows)


def test_the_table_of_models_is_the_one_that_is_used() -> None:
    assert copied(REFERENCE / "adapters.md", "models") == models_as_table()


def test_every_adapter_is_described_with_its_install_command() -> None:
    result = text_of(REFERENCE / "adapters.md")
    for name in ADAPTERS:
        assert f"| `{name}` |" in result
    for kind in (adapter_class(name) for name in ("claude-code", "codex", "opencode")):
        assert issubclass(kind, CommandLineAdapter)
        assert f"| `{kind.binary}` | `{kind.install}` |" in result
    assert all(f"`{name}`" in result for name in KNOWN)


def test_every_table_of_the_blackboard_is_described() -> None:
    result = re.findall(r"^\| `(\w+)` \|", copied(REFERENCE / "blackboard.md", "tables"), re.MULTILINE)
    assert sorted(result) == sorted(metadata.tables)


def test_the_built_in_task_type_goals_are_described() -> None:
    rows = re.findall(r"^\| `(\w+)` \| ([\w, ]+) \| (.+?) \| (.*?)\|$", text_of(REFERENCE / "goals.md"), re.MULTILINE)
    values = {kind: (artifacts, goals, may.strip()) for kind, artifacts, goals, may in rows if kind in EXPECTED}
    assert list(values) == list(EXPECTED)
    for kind, (artifacts, goals, may) in values.items():
        assert artifacts.split(", ") == [str(each) for each in EXPECTED[kind]]
        assert (goals == "none") == (kind not in TYPE_RULES)
        assert all(goal_type(goal) in goals for goal in TYPE_RULES.get(kind, ()))
        assert tuple(_INLINE.findall(may)) == MAY_CHANGE.get(kind, ())


# ── nothing that does not belong there ───────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("page", sorted([*PAGES, *ROOT.glob("docs/**/*.svg"), *ROOT.glob("docs/**/*.py")]), ids=name_of)
def test_no_document_names_a_machine_or_a_package_index(page: Path) -> None:
    text = text_of(page)
    assert re.findall(r"(?<![\w.{}])/(?:work|root|Users|home)/\S*", text) == []
    assert re.findall(r"\S*(?:pypi\.|pythonhosted|index-url|npmjs)\S*", text) == []
