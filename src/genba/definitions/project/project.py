"""A project: its repository root, its settings, and where its agents are declared."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache, partial
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from genba.definitions.agent.layers import Layer
from genba.definitions.project.command_syntax import command_problem
from genba.definitions.project.config_file import ProjectFile
from genba.definitions.steps.partial_data import shape_sound_part
from genba.domain.convert import LARGEST_YAML, file_text, read_plain, shape
from genba.domain.errors import ConfigurationError
from genba.domain.problems import Problem, did_you_mean, with_hints

if TYPE_CHECKING:
    from genba.definitions.project.goal_sections import RulesFile
    from genba.definitions.project.work_sections import FleetSettings

CONFIG_FILES = (".genba/config.yaml", ".agentmine/config.yaml")
"""Where a project's settings are looked for, the first that exists."""

_OF_AGENTMINE = ("database", "git", "execution", "sessionLog")
"""What agentmine's own settings say to agentmine alone. Its database is not Genba's."""


class Project:
    """Read once when a command starts."""

    def __init__(
        self,
        root: Path,
        file: ProjectFile,
        source: str,
        rules: RulesFile | None = None,
        fleet: FleetSettings | None = None,
        instructions: Mapping[str, str] = MappingProxyType({}),
        ignored: tuple[str, ...] = (),
    ) -> None:
        self.root = root
        self.file = file
        self.source = source
        self.rules = rules
        """What the project calls done; None when its settings do not say."""
        self._fleet = fleet
        self.instructions = instructions
        """The texts of actions that the project writes itself, by name: see `definitions.project.instructions`."""
        self.ignored = ignored
        """The sections of agentmine's settings that have no effect."""

    @property
    def name(self) -> str:
        """The name for people; a project without one is not named."""
        return self.file.project.name if self.file.project is not None else ""

    @property
    def fleet(self) -> FleetSettings:
        """How the project wants its tasks worked off."""
        if self._fleet is None:
            from genba.definitions.project.work_sections import FleetSettings  # noqa: PLC0415  (a run of one agent needs none)

            self._fleet = FleetSettings()
        return self._fleet

    @property
    def language(self) -> str:
        """The language in which Genba speaks to agents and people of the project."""
        return self._fleet.workflow.language if self._fleet is not None else "en"

    @property
    def stages(self) -> dict[str, tuple[str, ...]]:
        """By type of task: the agents that work on it one after the other. A type without stages is left out."""
        types = self.rules.task_types if self.rules is not None else {}
        return {name: settings.stages for name, settings in types.items() if settings.stages}

    @property
    def agents_folder(self) -> Path:
        return self.root / self.file.agent_discovery_path

    def layers_for(self, agent: str) -> list[Layer]:
        return [Layer(self.source, values) for values in self.file.layers_for(agent)]


def load_project(root: Path) -> Project:
    """The settings of the repository at `root`; a project without a file has the defaults."""
    instructions, wrong = _instructions(root)
    for name in CONFIG_FILES:
        path = root / name
        if path.is_file():
            raw = _yaml(partial(_text, path), name)
            kept = _of_genba(raw, name)
            file, rules, fleet = _shaped(kept, name, root, wrong)
            ignored = tuple(key for key in raw if key not in kept) if kept is not raw else ()
            return Project(root, file, name, rules, fleet, instructions, ignored)
    if wrong:
        raise ConfigurationError(wrong)
    return Project(root, ProjectFile(), "defaults", instructions=instructions)


def _instructions(root: Path) -> tuple[Mapping[str, str], tuple[Problem, ...]]:
    if not (root / ".genba/instructions").is_dir():
        return MappingProxyType({}), ()
    from genba.definitions.project.instructions import read_instructions  # noqa: PLC0415  (most projects have none)

    return read_instructions(root)


@lru_cache(maxsize=16)
def rules_from(text: str, shown: str) -> RulesFile | None:
    """What the settings in a text call done, such as those of another commit."""
    raw = _yaml(lambda: file_text(text.encode("utf-8", "surrogatepass"), LARGEST_YAML), shown)
    return _shaped(_of_genba(raw, shown), shown, None)[1]


def _of_genba(raw: Any, shown: str) -> Any:
    """The settings without what agentmine's own file says to agentmine alone."""
    if not shown.startswith(".agentmine/") or not isinstance(raw, dict) or not raw.keys() & set(_OF_AGENTMINE):
        return raw
    return {key: value for key, value in raw.items() if key not in _OF_AGENTMINE}


def _shaped(
    raw: Any, shown: str, root: Path | None, beside: tuple[Problem, ...] = ()
) -> tuple[ProjectFile, RulesFile | None, FleetSettings | None]:
    """All parts of the settings, or every problem of all of them, and of what lies beside them, at once."""
    done, fleet_written = _sections(raw, _RULES), _sections(raw, _FLEET)
    apart = done.keys() | fleet_written.keys()
    rest = {key: value for key, value in raw.items() if key not in apart} if apart else raw
    file, problems = shape(rest, ProjectFile, shown)
    sound = file if file is not None else shape_sound_part(rest, ProjectFile)[0]
    problems = tuple(_nearer(problem) for problem in problems)
    if sound is not None and root is not None:
        problems += tuple(_place_problems(root, sound.agent_discovery_path, shown))
    if sound is not None:
        problems += tuple(_forge_problems(sound, shown))
    rules, wrong = _rules(done, shown) if done else (None, ())
    fleet, more = _fleet(fleet_written, shown) if fleet_written else (None, ())
    if file is None or problems or wrong or more or beside:
        hint = "genba schema config" if problems or wrong or more else ""
        raise ConfigurationError(with_hints((*problems, *wrong, *more, *beside)), hint=hint)
    return file, rules, fleet


_RULES = ("dod", "task_types", "verification")
"""The sections that say what is done. They are read by types of their own, which most runs do not need."""

_FLEET = ("work", "attempts", "merge", "review", "decompose", "budget", "gc", "workflow", "facilitator", "notify")
"""The sections that say how tasks are worked off. A run of one agent does not need their types."""


def _sections(raw: Any, names: tuple[str, ...]) -> dict[str, Any]:
    """The part of the settings that has these names."""
    return {key: value for key, value in raw.items() if key in names} if isinstance(raw, dict) else {}


def _fleet(sections: dict[str, Any], shown: str) -> tuple[FleetSettings | None, tuple[Problem, ...]]:
    from genba.definitions.project.work_sections import FleetSettings  # noqa: PLC0415  (most projects do not say)

    return shape(sections, FleetSettings, shown)


def _rules(sections: dict[str, Any], shown: str) -> tuple[RulesFile | None, tuple[Problem, ...]]:
    from genba.definitions.project.goal_sections import RulesFile  # noqa: PLC0415
    from genba.definitions.project.goal_text import goal_problems, rules_written  # noqa: PLC0415  (most runs have no goals)

    written = rules_written(sections)
    rules, problems = shape(written, RulesFile, shown)
    problems += goal_problems(written.get("dod"), shown, "dod")
    types = written.get("task_types")
    for name, message in types.items() if isinstance(types, dict) else ():
        goals = message.get("goals") if isinstance(message, dict) else None
        problems += goal_problems(goals, shown, f"task_types.{name}.goals")
    for name, message in rules.task_types.items() if rules is not None else ():
        twice = next((agent for agent in message.stages if message.stages.count(agent) > 1), None)
        if twice is not None:
            why = f'"{twice}" is named twice: each agent has one stage'
            problems += (Problem(shown, f"task_types.{name}.stages", why),)
    return rules, problems


def _nearer(problem: Problem) -> Problem:
    """The hint for an unknown section, with all sections in mind."""
    if problem.message != "unknown key" or "." in problem.path:
        return problem
    known = (*ProjectFile.__struct_encode_fields__, *_RULES, *_FLEET)
    return Problem(problem.file, problem.path, problem.message, did_you_mean(problem.path, known))


def _place_problems(root: Path, relative: str, shown: str) -> Iterator[Problem]:
    at = "agent_discovery_path"
    try:
        target = (root / relative).resolve()
        there = target.exists()
    except (OSError, ValueError, RuntimeError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        yield Problem(shown, at, f'"{relative[:80]}" is not a path: {why}')
        return
    if not target.is_relative_to(root.resolve()):
        yield Problem(shown, at, f'"{relative}" leaves the repository')
    elif there and not target.is_dir():
        yield Problem(shown, at, f'"{relative}" is not a folder')


def _forge_problems(file: ProjectFile, shown: str) -> Iterator[Problem]:
    if file.forge is None:
        return
    for name, words in (("open", file.forge.open), ("find", file.forge.find)):
        if words and (wrong := command_problem(words)):
            yield Problem(shown, f"forge.{name}", wrong)


def _text(path: Path) -> str:
    with path.open("rb") as opened:
        return file_text(opened.read(LARGEST_YAML + 1), LARGEST_YAML)


def _yaml(read: Callable[[], str], shown: str) -> Any:
    import yaml  # noqa: PLC0415  (most runs have no YAML to read, and its import is a fifth of their time)

    from genba.domain.safe_yaml import load_yaml  # noqa: PLC0415

    try:
        value, problems = read_plain(lambda: load_yaml(read()), shown, "YAML")
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        at = f"line {mark.line + 1}, column {mark.column + 1}" if mark else ""
        problem = getattr(error, "problem", None) or str(error)
        result = with_hints((Problem(shown, at, f"not YAML: {problem}"),))
        raise ConfigurationError(result, hint="genba schema config") from error
    except OSError as error:
        raise ConfigurationError((Problem(shown, "", f"cannot be read: {error.strerror}"),)) from error
    if problems:
        raise ConfigurationError(with_hints(problems), hint="genba schema config")
    return {} if value is None else value
