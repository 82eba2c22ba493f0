"""The shape of `.genba/config.yaml`."""

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from genba.definitions.project.sandbox_section import CeilingSection, MaximumLimits, SandboxSettings, WorktreeSection
from genba.definitions.project.telemetry_section import TelemetrySettings
from genba.definitions.project.tracker_section import TrackerSection


class _Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pass


class ProjectSection(_Section, frozen=True):
    name: Annotated[str, Meta(min_length=1, description="The project's name, shown on screens.")]


class AgentSettings(_Section, frozen=True):
    """What the project sets for an agent; `default` is for all that are not named."""

    adapter: Annotated[
        str | dict[str, Any] | None,
        Meta(description="Which kind of agent answers: a type, or a type with options."),
    ] = None
    model: Annotated[str | None, Meta(description="The model, where the agent's own files name none.")] = None
    timeout: Annotated[int, Meta(gt=0, description="Milliseconds for one answer.")] | None = None
    tools: Annotated[tuple[str, ...] | None, Meta(description="The tools that the agent may use.")] = None

    def as_layer(self) -> dict[str, Any]:
        """The same settings in the shape of agent.json."""
        runner = {key: value for _, layer in self.keys_as_layers() for key, value in layer["runner"].items()}
        return {"runner": runner} if runner else {}

    def keys_as_layers(self) -> tuple[tuple[str, dict[str, Any]], ...]:
        """Each key that is set, with what it sets in the shape of agent.json."""
        adapter = {"type": self.adapter} if isinstance(self.adapter, str) else self.adapter
        found: tuple[tuple[str, str, Any], ...] = (
            ("adapter", "adapter", adapter),
            ("model", "flow", {"defaultModel": self.model}),
            ("timeout", "limits", {"askTimeoutSeconds": (self.timeout or 0) / 1000}),
            ("tools", "boundaries", {"allowedTools": list(self.tools or ())}),
        )
        return tuple((key, {"runner": {at: value}}) for key, at, value in found if getattr(self, key) is not None)


class ProjectLimits(_Section, frozen=True):
    """Budgets and patience for every agent of the project; an agent's own files may set others."""

    max_iterations: Annotated[int, Meta(ge=1)] | None = None
    wall_time_seconds: Annotated[float, Meta(gt=0)] | None = None
    tokens: Annotated[int, Meta(ge=1)] | None = None
    cost_usd: Annotated[float, Meta(gt=0)] | None = None
    ask_timeout_seconds: Annotated[float, Meta(gt=0)] | None = None
    idle_timeout_seconds: Annotated[float, Meta(gt=0)] | None = None
    retries: Annotated[int, Meta(ge=0)] | None = None
    retry_delay_seconds: Annotated[float, Meta(ge=0)] | None = None
    retry_max_delay_seconds: Annotated[float, Meta(ge=0)] | None = None
    reasks: Annotated[int, Meta(ge=0)] | None = None

    def as_layer(self) -> dict[str, Any]:
        set_here = {_camel(name): value for name, value in msgspec.structs.asdict(self).items() if value is not None}
        return {"runner": {"limits": set_here}} if set_here else {}


class ForgeSettings(_Section, frozen=True):
    """How a pull request is opened: by a command such as gh or glab."""

    open: Annotated[
        tuple[str, ...],
        Meta(
            min_length=1,
            description="Words of the command; {branch}, {target}, {title}, {body_file} are filled in. "
            "Its last line of output is the address.",
        ),
    ]
    find: Annotated[
        tuple[str, ...],
        Meta(description="A command that prints the address of an open pull request of {branch}, or nothing."),
    ] = ()
    timeout_seconds: Annotated[float, Meta(gt=0)] = 120


class DatabaseSettings(_Section, frozen=True):
    """Where the blackboard is. The variable GENBA_DATABASE_URL comes before it."""

    url: Annotated[
        str, Meta(min_length=1, description="postgresql://…, or the path of an SQLite file in the repository.")
    ] = ".genba/genba.db"
    busy_seconds: Annotated[float, Meta(gt=0, description="How long to wait while others write.")] = 30


class RunSection(_Section, frozen=True):
    """What holds for every `genba run` of the project."""

    strict_options: Annotated[
        bool, Meta(description="Refuse every option of genba run that the agent does not declare.")
    ] = False


class ProjectFile(_Section, frozen=True):
    """The settings of a project, without those that say what is done: see RulesFile."""

    schema: Annotated[str, Meta(description="The JSON Schema that editors use; Genba does not read it.")] = (
        msgspec.field(name="$schema", default="")
    )
    version: Annotated[str | int | float, Meta(description="The version of the settings, for readers.")] = ""
    description: Annotated[str, Meta(description="What the settings are for, for readers.")] = ""
    project: ProjectSection | None = None
    agent_discovery_path: Annotated[
        str, Meta(min_length=1, description="Where agents are declared, relative to the repository.")
    ] = ".agent/"
    agents: dict[str, AgentSettings] = {}
    run: RunSection = RunSection()
    limits: ProjectLimits = ProjectLimits()
    tracker: TrackerSection = TrackerSection()
    forge: ForgeSettings | None = None
    database: DatabaseSettings = DatabaseSettings()
    sandbox: SandboxSettings = SandboxSettings()
    worktree: WorktreeSection = WorktreeSection()
    boundaries: CeilingSection = CeilingSection()
    telemetry: TelemetrySettings = TelemetrySettings()
    models: Annotated[
        dict[str, dict[str, str]],
        Meta(description="By adapter, what a name such as opus or haiku means: the tool's own name of the model."),
    ] = {}

    def ceiling(self, source: str) -> MaximumLimits:
        """What no agent of the project may exceed."""
        return MaximumLimits(
            source=source,
            sandbox=self.sandbox,
            worktree=self.worktree,
            boundaries=self.boundaries,
            models=self.models,
        )

    def layers_for(self, agent: str) -> list[dict[str, Any]]:
        """What the project sets for this agent, the more general first."""
        named = [self.agents[name].as_layer() for name in ("default", agent) if name in self.agents]
        return [layer for layer in (self.limits.as_layer(), *named) if layer]


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)
