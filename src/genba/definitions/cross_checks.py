"""The checks between the parts of a definition: references, narrowing, and who supplies what."""

import re
from collections.abc import Iterator, Mapping

from genba.definitions.agent_file import AgentFile
from genba.definitions.command_words import command_problem
from genba.definitions.completion import Completion, ExternalState, StepMachine, walk
from genba.definitions.definition import AgentDefinition
from genba.definitions.parameters import check_parameters
from genba.definitions.step_graph import StepGraph
from genba.definitions.steps_file import Step, StepsRegistry
from genba.definitions.templates import output_variable, variables_in
from genba.definitions.variables import IN_RETRY, runtime_variables
from genba.domain.evidence import BUILTIN_CHECKS, Check, CommandCheck, FileExistsCheck
from genba.domain.outcomes import StepKind
from genba.domain.problems import Problem, did_you_mean
from genba.domain.tools import is_listed

BUILTIN_HANDLERS = (
    "builtin:record",
    "builtin:completion-signal",
    "builtin:closure-action",
    "builtin:blocked-signal",
)
_LONGEST_PATH, _LONGEST_NAME = 4000, 255


def check_agent_file(file: AgentFile, folder_name: str, shown: str) -> Iterator[Problem]:
    if file.name != folder_name:
        yield Problem(shown, "name", f'is "{file.name}", but the folder is named "{folder_name}"')
    yield from check_parameters(file.parameters, shown)
    if file.runner.integrations.github.enabled:
        yield from _needs_issue("runner.integrations.github", file, shown)
    if file.runner.execution.finalize.create_pr and not file.runner.execution.worktree.enabled:
        yield Problem(
            shown,
            "runner.execution.finalize.createPr",
            "a pull request needs a branch of its own, and runner.execution.worktree.enabled is false",
        )
    actions = file.runner.actions
    for kind, handler in actions.handlers.items():
        at = f"runner.actions.handlers.{kind}"
        if kind not in actions.types:
            yield Problem(shown, at, "is not one of runner.actions.types", did_you_mean(kind, actions.types))
        if handler.startswith("builtin:") and handler not in BUILTIN_HANDLERS:
            yield Problem(shown, at, f'there is no handler "{handler}"', did_you_mean(handler, BUILTIN_HANDLERS))
        elif ":" not in handler:
            yield Problem(shown, at, "expected builtin:NAME, module:function or file.py:function")
    adapter = file.runner.adapter
    if adapter is not None and not isinstance(adapter.get("type"), str):
        yield Problem(shown, "runner.adapter.type", "is required and missing")


def check_completion(completion: Completion, file: AgentFile, registry: StepsRegistry, shown: str) -> Iterator[Problem]:
    for part in walk(completion):
        if not isinstance(part, ExternalState):
            continue
        yield from _needs_issue("externalState", file, shown)
        for at, name in enumerate(part.validators):
            yield from _known_validator(name, registry, shown, f"runner.completion.config.validators[{at}]")


def _needs_issue(what: str, file: AgentFile, shown: str) -> Iterator[Problem]:
    if "issue" not in file.parameters:
        yield Problem(
            shown,
            "parameters.issue",
            f"{what} needs the parameter issue",
            '"issue": {"type": "number", "required": true, "cli": "--issue"}',
        )


def check_registry(
    registry: StepsRegistry, completion: Completion | None, file: AgentFile | None, shown: str, whole: bool = True
) -> Iterator[Problem]:
    """Every problem of the steps. Not `whole`: wrong values are left out, so paths through the graph say nothing."""
    by_steps = completion is not None and any(isinstance(part, StepMachine) for part in walk(completion))
    ends_by_steps = by_steps or any(step.step_kind is StepKind.CLOSURE for step in registry.steps.values())
    budget = file.runner.limits.max_iterations if file else 1_000_000
    yield from StepGraph(registry, shown).check(ends_by_steps, budget, whole)
    for name, pattern in registry.failure_patterns.items():
        try:
            re.compile(pattern.match or "")
        except (re.error, OverflowError) as error:
            yield Problem(shown, f"failurePatterns.{name}.match", f"not a regular expression: {error}")
        except RecursionError:
            yield Problem(shown, f"failurePatterns.{name}.match", "not a regular expression: nested too deeply")
    for name, check in registry.validators.items():
        yield from _validator_problems(check, shown, f"validators.{name}")
        if check.failure_pattern is not None and check.failure_pattern not in registry.failure_patterns:
            yield Problem(
                shown,
                f"validators.{name}.failurePattern",
                f'there is no failure pattern "{check.failure_pattern}"',
                did_you_mean(check.failure_pattern, registry.failure_patterns),
            )
    for step_id, step in registry.steps.items():
        yield from _step_references(step_id, step, registry, file, shown)


def _validator_problems(check: Check, shown: str, at: str) -> Iterator[Problem]:
    if isinstance(check, CommandCheck) and (wrong := command_problem(check.command)):
        yield Problem(shown, f"{at}.command", wrong)
    if isinstance(check, FileExistsCheck):
        parts = check.path.split("/")
        if check.path.startswith("/") or ".." in parts:
            yield Problem(shown, f"{at}.path", f'"{check.path}" leaves the working tree')
        elif len(check.path.encode()) > _LONGEST_PATH or any(len(part.encode()) > _LONGEST_NAME for part in parts):
            yield Problem(shown, f"{at}.path", "is too long for a path")


def _step_references(
    step_id: str, step: Step, registry: StepsRegistry, file: AgentFile | None, shown: str
) -> Iterator[Problem]:
    for at, condition in enumerate(step.completion_conditions):
        path = f"steps.{step_id}.completionConditions[{at}].validator"
        yield from _known_validator(condition.validator, registry, shown, path)
    tools = file.runner.boundaries.allowed_tools if file is not None else None
    for tool in step.allowed_tools or ():
        if tools is not None and not is_listed(tool, tools):
            told = f'"{tool}" is not among the agent\'s allowedTools'
            yield Problem(shown, f"steps.{step_id}.allowedTools", told, "a step may only narrow what its agent allows")
    if file is not None and step.permission_mode is not None:
        widest = file.runner.boundaries.permission_mode
        if step.permission_mode.width > widest.width:
            yield Problem(
                shown,
                f"steps.{step_id}.permissionMode",
                f'"{step.permission_mode}" is wider than the agent\'s "{widest}"',
                "a step may only narrow what its agent allows",
            )


def _known_validator(name: str, registry: StepsRegistry, file: str, path: str) -> Iterator[Problem]:
    known = {*registry.validators, *BUILTIN_CHECKS}
    if name not in known:
        yield Problem(file, path, f'there is no validator "{name}"', did_you_mean(name, known))


def check_variables(definition: AgentDefinition, registry_file: str) -> Iterator[Problem]:
    """Every {uv-…} has a supplier on every path."""
    graph = StepGraph(definition.registry, registry_file)
    always = runtime_variables(frozenset(definition.file.parameters))
    outputs = {
        output_variable(other, key.replace(".", "_")): other
        for other in definition.registry.steps
        for key in definition.outputs_of(other) or ()
    }
    for name in variables_in(definition.system_prompt.text):
        if name not in always:
            yield Problem(
                definition.system_prompt.source,
                f"{{uv-{name}}}",
                "nobody supplies it",
                did_you_mean(name, always),
            )
    for step_id, step in definition.registry.steps.items():
        supplied = set(always) | set(step.inputs)
        yield from _input_problems(definition, graph, step_id, step, registry_file)
        for name in step.uv_variables or ():
            yield from _supplier(outputs, graph, step_id, name, supplied, registry_file, f"steps.{step_id}.uvVariables")
        prompts = [(definition.prompts.get(step_id), frozenset[str]())]
        prompts += [(text, IN_RETRY) for text in definition.retry_prompts.get(step_id, {}).values()]
        for prompt, extra in prompts:
            if prompt is None:
                continue
            here, listed = supplied | extra, {*(step.uv_variables or ()), *step.inputs, *extra}
            for name in variables_in(prompt.text):
                yield from _supplier(outputs, graph, step_id, name, here, prompt.source, f"{{uv-{name}}}")
                if step.uv_variables is not None and name not in listed:
                    yield Problem(prompt.source, f"{{uv-{name}}}", f"is not in uvVariables of the step {step_id}")


def _input_problems(
    definition: AgentDefinition, graph: StepGraph, step_id: str, step: Step, file: str
) -> Iterator[Problem]:
    for name, wanted in step.inputs.items():
        at = f"steps.{step_id}.inputs.{name}.from"
        supplier = _output_supplier(definition, wanted.source)
        if supplier is None:
            yield Problem(file, at, f'no step declares the output "{wanted.source}"')
        elif wanted.required and wanted.default is None and (gap := graph.gap_between(supplier, step_id)):
            yield Problem(file, at, gap, "give a default, or required: false")


def _supplier(
    outputs: Mapping[str, str],
    graph: StepGraph,
    step_id: str,
    name: str,
    supplied: set[str],
    file: str,
    at: str,
) -> Iterator[Problem]:
    if name in supplied:
        return
    if name not in outputs:
        yield Problem(file, at, f"nobody supplies {name}", did_you_mean(name, {*supplied, *outputs}))
    elif gap := graph.gap_between(outputs[name], step_id):
        told = f"{name} comes from the step {outputs[name]}, and {gap}"
        yield Problem(file, at, told, "declare it under inputs with a default")


def _output_supplier(definition: AgentDefinition, source: str) -> str | None:
    """The step that declares the output `step.key`; step ids may contain dots themselves."""
    for step_id in definition.registry.steps:
        key = source.removeprefix(f"{step_id}.")
        if key != source and key in (definition.outputs_of(step_id) or ()):
            return step_id
    return None
