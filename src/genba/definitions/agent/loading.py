"""load → parse → validate → a frozen definition, or every problem at once."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from genba.definitions.agent.agent_json import AgentFile, Flow
from genba.definitions.agent.completion import (
    Completion,
    CompletionReader,
    Composite,
    Custom,
    StepMachine,
    StructuredSignal,
    walk,
)
from genba.definitions.agent.cross_checks import (
    check_agent_file,
    check_commits,
    check_completion,
    check_registry,
    check_variables,
)
from genba.definitions.agent.definition import AgentDefinition, PromptText
from genba.definitions.agent.folder import AgentFolder
from genba.definitions.agent.layers import Layer, Layered, merge
from genba.definitions.agent.maximum_limits import under_ceiling
from genba.definitions.agent.parameters import settings_from
from genba.definitions.agent.prompt_files import retry_prompts, step_prompt
from genba.definitions.agent.state_driven import REGISTRY, is_state_driven, with_completion, without_effect
from genba.definitions.project.folders import check_places
from genba.definitions.project.sandbox_section import MaximumLimits, agent_environment, wider
from genba.definitions.steps.partial_data import MISSING, WHOLE, LeftOut, shape_sound_part
from genba.definitions.steps.steps_registry import Step, StepsRegistry
from genba.domain.convert import shape
from genba.domain.errors import ConfigurationError
from genba.domain.problems import Problem, did_you_mean, limited, with_hints

CONFIG_LAYERS = ("agent.json", "config.json", "config.local.json")


def load_definition(
    path: Path,
    shown: str,
    below: list[Layer],
    above: list[Layer],
    repository: Path | None = None,
    ceiling: MaximumLimits | None = None,
    language: str = "en",
) -> AgentDefinition:
    """Read the agent at `path`. `below` is what the project sets, `above` what the command line sets.

    The ceiling is what the project allows at most; nothing in the agent's files or on the command line exceeds it.
    """
    reader = _Reader(path, shown, repository, ceiling or MaximumLimits(), language)
    definition = reader.read(below, above)
    if reader.problems or definition is None:
        raise ConfigurationError(with_hints(reader.problems), hint=f"genba agent check {path.name}")
    return definition


class _Reader:
    """One reading of one agent's folder."""

    def __init__(self, path: Path, shown: str, repository: Path | None, ceiling: MaximumLimits, language: str) -> None:
        self.ceiling = ceiling
        self.folder = AgentFolder(path, shown, language)
        self.repository = repository
        self.agent_json = self.folder.shown("agent.json")
        self.readable = True
        """Whether each file of settings could be parsed: values that one of them lacks may stand in another."""
        self.left = WHOLE
        """The wrong values, which later checks do without."""

    @property
    def unknown(self) -> LeftOut:
        """What is not known of the agent: a file of settings that cannot be parsed may say anything."""
        return self.left if self.readable else self.left.with_paths(("parameters", "runner"))

    @property
    def problems(self) -> list[Problem]:
        return self.folder.problems

    def read(self, below: list[Layer], above: list[Layer]) -> AgentDefinition | None:
        layered = self._layers(below, above)
        registry_name = self._registry_name(layered)
        registry_shown, has_registry = self.folder.shown(registry_name), self.folder.has(registry_name)
        found = tuple(without_effect(layered.values, self.agent_json, registry_shown, has_registry))
        self.problems.extend(layered.attribute(found))
        asks = is_state_driven(layered.values)
        layered = msgspec.structs.replace(layered, values=with_completion(layered.values))
        file = self._agent_file(layered)
        completion = self._completion(layered, file)
        registry = REGISTRY if asks else self._registry(registry_name)
        system = self._system_prompt(layered)
        self._add(limited(check_registry(registry, completion, file, registry_shown, self.unknown)))
        schemas = self._step_schemas(registry, registry_shown)
        texts = self._prompts(registry, registry_shown, file)
        if file is None:
            return None
        self.folder.inside(file.runner.flow.prompts.fallback_dir, self.agent_json, "runner.flow.prompts.fallbackDir")
        self._check_handlers(completion, file)
        if completion is not None:
            found = limited(check_completion(completion, file, registry, self.agent_json, self.unknown))
            self._add(layered.attribute(found))
            completion = self._resolve_schemas(completion, "runner.completion.config.outputSchema")
        definition = AgentDefinition(
            file=file,
            completion=completion or StepMachine(),
            registry=registry,
            system_prompt=system or PromptText(self.agent_json, ""),
            **texts,
            schemas=schemas,
            folder=str(self.folder.path),
            language=self.folder.language,
            environment=agent_environment(self.ceiling, file.runner.sandbox),
            sources=layered.sources,
        )
        self._add(layered.attribute(tuple(check_commits(definition, self.agent_json))))
        self._add(limited(check_variables(definition, registry_shown, self.unknown)))
        return definition if completion is not None and system is not None else None

    def _add(self, found: tuple[Problem, ...]) -> None:
        """Note problems, but for those of a wrong value that is left out and has a problem already."""
        self.problems.extend(problem for problem in found if not self.left.lost(problem.path))

    def _layers(self, below: list[Layer], above: list[Layer]) -> Layered:
        layers = list(below)
        for name in CONFIG_LAYERS:
            if name == "agent.json" or self.folder.has(name):
                values = self.folder.json(name)
                if values is not None:
                    layers.append(Layer(self.folder.shown(name), values))
                self.readable = self.readable and values is not None
        defaults = _parameter_defaults(merge(layers[len(below) :]).values)
        return _with_external_state(merge([*below, *defaults, *layers[len(below) :], *above]))

    def _agent_file(self, layered: Layered) -> AgentFile | None:
        file, problems = shape(layered.values, AgentFile, self.agent_json)
        certain = (problem for problem in problems if self.readable or problem.message != MISSING)
        self.problems.extend(layered.attribute(tuple(certain)))
        if file is None:
            least = _least_agent(self.folder.path.name)
            file, left = shape_sound_part(layered.values, AgentFile, least, _REQUIRED_OF_AGENT)
            self.left = self.left.with_paths(left.paths)
        if file is not None:
            found = limited(check_agent_file(file, self.folder.path.name, self.agent_json, self.unknown))
            found += tuple(check_places(file, self.agent_json, self.repository))
            found += tuple(wider(self.ceiling, file.runner.sandbox, self.agent_json))
            file, exceeded = under_ceiling(file, self.ceiling, layered.sources, self.agent_json)
            self._add(layered.attribute((*found, *exceeded)))
        return file

    def _completion(self, layered: Layered, file: AgentFile | None) -> Completion | None:
        runner = layered.values.get("runner")
        raw = runner.get("completion") if isinstance(runner, dict) else None
        if not isinstance(raw, dict) or (file is None and not isinstance(raw.get("type"), str)):
            return None
        reader = CompletionReader(self.agent_json)
        completion = reader.read(raw, "runner.completion")
        self.problems.extend(layered.attribute(tuple(reader.problems)))
        self.left = self.left.with_paths(reader.left)
        return completion

    def _registry_name(self, layered: Layered) -> str:
        node: Any = layered.values
        for key in ("runner", "flow", "prompts", "registry"):
            node = node.get(key) if isinstance(node, dict) else None
        return node if isinstance(node, str) else "steps_registry.json"

    def _registry(self, name: str) -> StepsRegistry:
        """The steps, or what can be read of them."""
        at = "runner.flow.prompts.registry"
        is_named = not self.unknown.lost(at) or self.folder.has(name)
        inside = is_named and self.folder.inside(name, self.agent_json, at) is not None
        raw = self.folder.json(name) if inside else None
        if raw is None:
            self.left = self.left.with_paths(_OF_REGISTRY)
            return _NO_REGISTRY
        registry, problems = shape(raw, StepsRegistry, self.folder.shown(name))
        self.problems.extend(problems)
        if registry is not None:
            return registry
        registry, left = shape_sound_part(raw, StepsRegistry, stand_ins=_REQUIRED_OF_STEPS)
        if registry is None:
            without_steps = {**raw, "steps": {_NO_STEP: {}}}
            registry, left = shape_sound_part(without_steps, StepsRegistry, stand_ins=_REQUIRED_OF_STEPS)
            left = left.with_paths(("steps",))
        self.left = self.left.with_paths(left.paths if registry is not None else _OF_REGISTRY)
        return registry or _NO_REGISTRY

    def _system_prompt(self, layered: Layered) -> PromptText | None:
        node: Any = layered.values
        for key in ("runner", "flow", "systemPromptPath"):
            node = node.get(key) if isinstance(node, dict) else None
        at = "runner.flow.systemPromptPath"
        if not isinstance(node, str) and self.unknown.lost(at):
            return None
        relative = node if isinstance(node, str) else "prompts/system.md"
        text = self.folder.text(relative, self.agent_json, at)
        return PromptText(self.folder.shown(self.folder.in_language(relative)), text) if text is not None else None

    def _prompts(self, registry: StepsRegistry, shown: str, file: AgentFile | None) -> dict[str, Any]:
        fallback = (file.runner.flow if file is not None else Flow()).prompts.fallback_dir
        prompts, retries = {}, {}
        inside = tuple(f"steps.{step_id}." for step_id in registry.steps)
        known = all(path.startswith(inside) for path in self.left.paths if path.startswith("steps"))
        for step_id, step in registry.steps.items():
            parts = [f"steps.{step_id}.{part}" for part in ("c2", "c3", "edition", "adaptation")]
            if any(self.left.lost(part) for part in parts):
                known = False
                continue
            prompt = step_prompt(self.folder, shown, step_id, step, fallback)
            if prompt is not None:
                prompts[step_id] = prompt
            retries[step_id] = retry_prompts(self.folder, shown, step, registry)
        for name, pattern in registry.failure_patterns.items():
            parts = [f"failurePatterns.{name}.{part}" for part in ("edition", "adaptation")]
            known = known and not any(self.left.lost(part) for part in parts)
            if known and not any(name in found for found in retries.values()):
                wanted = "_".join(["f", pattern.edition, *([pattern.adaptation] if pattern.adaptation else [])])
                why = "chooses no prompt: no step has one for it"
                hint = f"{wanted}.md beside the f_default.md of a step"
                self.problems.append(Problem(shown, f"failurePatterns.{name}", why, hint))
        return {"prompts": prompts, "retry_prompts": retries}

    def _step_schemas(self, registry: StepsRegistry, shown: str) -> dict[str, dict[str, Any]]:
        found = {}
        for step_id, step in registry.steps.items():
            if step.output_schema_ref is not None:
                schema = self._schema_at(step.output_schema_ref, shown, f"steps.{step_id}.outputSchemaRef")
                if schema is not None:
                    found[step_id] = schema
        return found

    def _resolve_schemas(self, completion: Completion, at: str) -> Completion:
        """The same completion with every schema file read into it."""
        if isinstance(completion, Composite):
            parts = tuple(self._resolve_schemas(part, at) for part in completion.completion_conditions)
            return msgspec.structs.replace(completion, completion_conditions=parts)
        if isinstance(completion, StructuredSignal):
            wanted = completion.output_schema
            schema = self._schema_at(wanted, self.agent_json, at) if isinstance(wanted, str) else wanted
            if schema is not None and isinstance(wanted, dict):
                self._check_schema(schema, self.agent_json, at)
            return msgspec.structs.replace(completion, output_schema=schema or {})
        return completion

    def _schema_at(self, reference: str, file: str, at: str) -> dict[str, Any] | None:
        name, _, pointer = reference.partition("#")
        if self.folder.inside(name, file, at) is None:
            return None
        if not self.folder.has(name):
            self.problems.append(Problem(file, at, f"no such file: {self.folder.shown(name)}"))
            return None
        node: Any = self.folder.json(name)
        for part in [part for part in pointer.split("/") if part]:
            key = part.replace("~1", "/").replace("~0", "~")
            if not isinstance(node, dict) or key not in node:
                hint = did_you_mean(key, node) if isinstance(node, dict) else ""
                self.problems.append(Problem(file, at, f"{self.folder.shown(name)} has nothing at #{pointer}", hint))
                return None
            node = node[key]
        if not isinstance(node, dict):
            return None
        self._check_schema(node, file, at)
        return node

    def _check_schema(self, schema: dict[str, Any], file: str, at: str) -> None:
        from genba.definitions.agent.json_schema import problem_in_schema  # noqa: PLC0415  (only agents with schemas pay)

        wrong = problem_in_schema(schema)
        if wrong:
            self.problems.append(Problem(file, at, f"not a JSON Schema: {wrong}"))

    def _check_handlers(self, completion: Completion | None, file: AgentFile) -> None:
        named = [
            (part.completion_handler, "runner.completion.config.completionHandler")
            for part in (walk(completion) if completion is not None else ())
            if isinstance(part, Custom)
        ]
        named += [(ref, f"runner.actions.handlers.{kind}") for kind, ref in file.runner.actions.handlers.items()]
        for reference, at in named:
            where = reference.partition(":")[0]
            if where.endswith(".py"):
                self.folder.text(where, self.agent_json, at)


_REQUIRED_OF_AGENT = {"type": "string"}
_REQUIRED_OF_STEPS = {
    "allowedIntents": ["repeat"],
    "command": "true",
    "from": "step.output",
    "path": "file",
    "pattern": "*",
    "type": "git-clean",
    "validator": "git-clean",
}
"""What stands in for a required value that is wrong, by its key, so that what is beside it is checked."""
_NO_STEP = "?"
_NO_REGISTRY = StepsRegistry(steps={_NO_STEP: Step()})
"""What takes the place of a registry that cannot be read. All of it counts as left out."""
_OF_REGISTRY = ("steps", "validators", "failurePatterns", "entryStep", "entryStepMapping")


def _least_agent(name: str) -> dict[str, Any]:
    """What every agent.json must have; it takes the place of what one lacks, so that the rest of it is checked."""
    return {"name": name, "description": name, "runner": {"completion": {"type": "stepMachine"}}}


def _parameter_defaults(values: dict[str, Any]) -> list[Layer]:
    """What the defaults of parameters with a known meaning set, below everything that is set outright."""
    parameters, runner = values.get("parameters"), values.get("runner")
    completion = runner.get("completion") if isinstance(runner, dict) else None
    kind = completion.get("type") if isinstance(completion, dict) else None
    if not isinstance(parameters, dict) or not isinstance(kind, str):
        return []
    found = [
        settings_from(name, declared.get("default"), kind)
        for name, declared in parameters.items()
        if isinstance(declared, dict)
    ]
    return [Layer("default of a parameter", settings) for settings in found if settings]


def _with_external_state(layered: Layered) -> Layered:
    """What externalState says about github and worktree lies over the sections of those names."""
    runner = layered.values.get("runner")
    completion = runner.get("completion") if isinstance(runner, dict) else None
    over: list[Layer] = []
    for config in _external_states(completion):
        if isinstance(config.get("github"), dict):
            over.append(Layer("runner.completion.config", {"runner": {"integrations": {"github": config["github"]}}}))
        if isinstance(config.get("worktree"), dict):
            over.append(Layer("runner.completion.config", {"runner": {"execution": {"worktree": config["worktree"]}}}))
    if not over:
        return layered
    base = merge([Layer("", layered.values), *over])
    return Layered(base.values, {**layered.sources, **merge(over).sources})


def _external_states(raw: Any) -> Iterator[dict[str, Any]]:
    """The config of each externalState, also of those inside a composite."""
    config = raw.get("config") if isinstance(raw, dict) else None
    if not isinstance(config, dict):
        return
    if raw.get("type") == "externalState":
        yield config
    parts, named = config.get("completionConditions"), config.get("definitions")
    for inner in [*(parts if isinstance(parts, list) else ()), *(named.values() if isinstance(named, dict) else ())]:
        yield from _external_states(inner)
