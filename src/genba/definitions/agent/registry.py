"""The registry finds agents: in the project's folder, and those that ship with Genba."""

from pathlib import Path

import msgspec

from genba.definitions.agent.agent_json import Parameter
from genba.definitions.agent.definition import AgentDefinition
from genba.definitions.agent.layers import Layer, leaves
from genba.definitions.agent.loading import load_definition
from genba.definitions.project.config_file import ProjectFile
from genba.definitions.project.project import Project
from genba.domain.errors import ConfigurationError, NotFoundError
from genba.domain.problems import Problem, did_you_mean

BUILTIN_FOLDER = Path(__file__).parents[1] / "builtin"


class AgentInfo(msgspec.Struct, frozen=True, rename="camel"):
    """What others need to know of an agent to recommend or start it."""

    name: str
    display_name: str
    description: str
    parameters: dict[str, Parameter]
    capabilities: tuple[str, ...]
    source: str
    answers: bool = True
    """Whether an adapter is chosen for it."""
    asks: bool = False
    """Whether it asks for its next action, so that only a fleet can start it."""


def with_agents(root: Path, error: ConfigurationError) -> ConfigurationError:
    """What is wrong with the settings of a project, and with all of its agents besides: one look tells everything."""
    from genba.definitions.project.config_recovery import agents_folder  # noqa: PLC0415  (only for settings that cannot be used)

    file = ProjectFile(agent_discovery_path=agents_folder(root))
    broken = AgentRegistry(Project(root, file, "defaults")).agents()[1]
    problems = tuple(problem for each in broken.values() for problem in each)
    return ConfigurationError((*error.problems, *problems), hint=error.hint)


class AgentRegistry:
    """Agents by name and by capability. A project's agent hides a built-in one of the same name."""

    def __init__(self, project: Project) -> None:
        self.project = project

    def folders(self) -> dict[str, tuple[Path, str]]:
        """Each agent's folder, and how it is shown."""
        found = {path.parent.name: (path.parent, f"built-in:{path.parent.name}") for path in _agents_in(BUILTIN_FOLDER)}
        for path in _agents_in(self.project.agents_folder):
            folder = path.parent
            found[_text(folder.name)] = (folder, _text(folder.relative_to(self.project.root).as_posix()))
        return dict(sorted(found.items()))

    def load(self, name: str, overrides: list[Layer] | None = None) -> AgentDefinition:
        folders = self.folders()
        if name not in folders:
            raise NotFoundError(
                f'there is no agent "{name}"',
                hint=f"{did_you_mean(name, folders)}  genba agent list · genba agent new {name}".strip(),
            )
        path, shown = folders[name]
        below, repository = self.project.layers_for(name), self.project.root
        ceiling = self.project.file.ceiling(self.project.source)
        return load_definition(path, shown, below, overrides or [], repository, ceiling, self.project.language)

    def unknown_sections(self) -> tuple[Problem, ...]:
        """Each `agents.NAME` of the project's settings that names no agent."""
        known = self.folders()
        return tuple(
            Problem(
                self.project.source,
                f"agents.{name}",
                f'has no effect: there is no agent "{name}"',
                f"{did_you_mean(name, known)}  genba agent new {name}".strip(),
            )
            for name in self.project.file.agents
            if name not in known and name != "default"
        )

    def overruled(self, definition: AgentDefinition) -> tuple[Problem, ...]:
        """Each setting of the project for this agent that the agent's own files set otherwise."""
        effective = dict(leaves(msgspec.json.decode(msgspec.json.encode(definition.file))))
        found: list[Problem] = []
        for name in ("default", definition.name):
            section = self.project.file.agents.get(name)
            for key, layer in section.keys_as_layers() if section is not None else ():
                for path, value in leaves(layer):
                    source = definition.sources.get(path, self.project.source)
                    if source != self.project.source and effective.get(path, value) != value:
                        message = f"has no effect on {definition.name}: {source} sets {path}"
                        found.append(Problem(self.project.source, f"agents.{name}.{key}", message))
        return tuple(dict.fromkeys(found))

    def agents(self) -> tuple[tuple[AgentInfo, ...], dict[str, tuple[Problem, ...]]]:
        """Every agent that can be read, and by name the problems of those that cannot."""
        infos: list[AgentInfo] = []
        broken: dict[str, tuple[Problem, ...]] = {}
        for name, (_, shown) in self.folders().items():
            try:
                infos.append(_info(self.load(name), shown))
            except ConfigurationError as error:
                broken[name] = error.problems
        return tuple(infos), broken

    def by_capability(self, capability: str) -> tuple[AgentInfo, ...]:
        return tuple(info for info in self.agents()[0] if capability in info.capabilities)


def _info(definition: AgentDefinition, shown: str) -> AgentInfo:
    return AgentInfo(
        name=definition.name,
        display_name=definition.file.title,
        description=definition.file.description,
        parameters=definition.file.parameters,
        capabilities=definition.capabilities,
        source=shown,
        answers=bool(definition.adapter_type),
        asks=definition.state_driven,
    )


def _text(name: str) -> str:
    """A name of the file system as text; what is not UTF-8 in it is shown as such."""
    return name.encode("utf-8", "backslashreplace").decode()


def _agents_in(folder: Path) -> list[Path]:
    """What begins with a dot is no agent: it may be one that is being made."""
    found = folder.glob("*/agent.json") if folder.is_dir() else ()
    return sorted(path for path in found if not path.parent.name.startswith("."))
