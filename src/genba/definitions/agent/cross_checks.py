"""The checks between the parts of a definition: references, narrowing, and who supplies what."""

import re
from collections.abc import Iterator

from genba.definitions.agent.agent_json import AgentFile
from genba.definitions.agent.completion import Completion, ExternalState, StepMachine, walk
from genba.definitions.agent.definition import AgentDefinition
from genba.definitions.agent.parameters import check_parameters
from genba.definitions.project.command_syntax import command_problem
from genba.definitions.steps.partial_data import LeftOut
from genba.definitions.steps.step_graph import MOST_STEPS, StepGraph
from genba.definitions.steps.steps_registry import Step, StepsRegistry
from genba.definitions.steps.templates import output_variable, variables_in
from genba.definitions.steps.variables import IN_RETRY, runtime_variables
from genba.domain.problems import Problem, did_you_mean
from genba.domain.sessions.evidence import BUILTIN_CHECKS, Check, CommandCheck, FileExistsCheck
from genba.domain.sessions.outcomes import StepKind
from genba.domain.tool_names import is_listed

BUILTIN_HANDLERS = (
    "builtin:record",
    "builtin:completion-signal",
    "builtin:closure-action",
    "builtin:blocked-signal",
)
_LONGEST_PATH, _LONGEST_NAME = 4000, 255
_UNKNOWN_BUDGET = 1_000_000
"""Iterations that may be allowed where the limit is not known."""


def check_agent_file(file: AgentFile, folder_name: str, shown: str, left: LeftOut) -> Iterator[Problem]:
    if file.name != folder_name:
        yield Problem(shown, "name", f'is "{file.name}", but the folder is named "{folder_name}"')
    yield from check_parameters(file.parameters, shown, left)
    if file.runner.integrations.github.enabled:
        yield from _needs_issue("runner.integrations.github", file, shown, left)
    if file.runner.execution.finalize.create_pr and not file.runner.execution.worktree.enabled:
        yield Problem(
            shown,
            "runner.execution.finalize.createPr",
            "a pull request needs a branch of its own, and runner.execution.worktree.enabled is false",
        )
    actions = file.runner.actions
    for kind, handler in actions.handlers.items():
        at = f"runner.actions.handlers.{kind}"
        if kind not in actions.types and not left.touched("runner.actions.types"):
            yield Problem(shown, at, "is not one of runner.actions.types", did_you_mean(kind, actions.types))
        if handler.startswith("builtin:") and handler not in BUILTIN_HANDLERS:
            yield Problem(shown, at, f'there is no handler "{handler}"', did_you_mean(handler, BUILTIN_HANDLERS))
        elif ":" not in handler:
            yield Problem(shown, at, "expected builtin:NAME, module:function or file.py:function")
    adapter = file.runner.adapter
    if adapter is not None and not isinstance(adapter.get("type"), str):
        yield Problem(shown, "runner.adapter.type", "is required and missing")


def check_commits(definition: AgentDefinition, shown: str) -> Iterator[Problem]:
    """Whether Genba is asked to commit in the user's own checkout, where it cannot know whose a change is."""
    runner = definition.file.runner
    asks = runner.adapter is not None and runner.adapter.get("commit") is True
    if asks and not runner.execution.worktree.enabled and not definition.only_reads:
        yield Problem(
            shown,
            "runner.adapter.commit",
            "needs a working tree of its own, and runner.execution.worktree.enabled is false: "
            "in your checkout Genba cannot know which changes are yours, and commits none",
            "runner.execution.worktree.enabled: true, or commit: false and a command that commits its own changes",
        )


def check_completion(
    completion: Completion, file: AgentFile, registry: StepsRegistry, shown: str, left: LeftOut
) -> Iterator[Problem]:
    for part in walk(completion):
        if not isinstance(part, ExternalState):
            continue
        yield from _needs_issue("externalState", file, shown, left)
        for at, name in enumerate(part.validators):
            listed = "runner.completion.config.validators"
            path = f"{listed}[{left.position(listed, at)}]"
            yield from _known_validator(name, registry, shown, path, left)


def _needs_issue(what: str, file: AgentFile, shown: str, left: LeftOut) -> Iterator[Problem]:
    if "issue" not in file.parameters and not left.lost("parameters.issue"):
        yield Problem(
            shown,
            "parameters.issue",
            f"{what} needs the parameter issue",
            '"issue": {"type": "number", "required": true, "cli": "--issue"}',
        )


def check_registry(
    registry: StepsRegistry, completion: Completion | None, file: AgentFile | None, shown: str, left: LeftOut
) -> Iterator[Problem]:
    """Every problem of the steps that is one whatever the wrong values that were left out become."""
    by_steps = completion is not None and any(isinstance(part, StepMachine) for part in walk(completion))
    ends_by_steps = by_steps or any(step.step_kind is StepKind.CLOSURE for step in registry.steps.values())
    known = file is not None and not left.lost("runner.limits.maxIterations")
    budget = file.runner.limits.max_iterations if file is not None and known else _UNKNOWN_BUDGET
    yield from StepGraph(registry, shown, left).check(ends_by_steps, budget)
    for name, pattern in registry.failure_patterns.items():
        try:
            re.compile(pattern.match or "")
        except (re.error, OverflowError) as error:
            yield Problem(shown, f"failurePatterns.{name}.match", f"not a regular expression: {error}")
        except RecursionError:
            yield Problem(shown, f"failurePatterns.{name}.match", "not a regular expression: nested too deeply")
    for name, check in registry.validators.items():
        yield from _validator_problems(check, shown, f"validators.{name}")
        chosen = check.failure_pattern
        known = chosen is None or chosen in registry.failure_patterns
        if chosen is not None and not known and not left.lost(f"failurePatterns.{chosen}"):
            yield Problem(
                shown,
                f"validators.{name}.failurePattern",
                f'there is no failure pattern "{chosen}"',
                did_you_mean(chosen, registry.failure_patterns),
            )
    for step_id, step in registry.steps.items():
        yield from _step_references(step_id, step, registry, file, shown, left)


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
    step_id: str, step: Step, registry: StepsRegistry, file: AgentFile | None, shown: str, left: LeftOut
) -> Iterator[Problem]:
    for at, condition in enumerate(step.completion_conditions):
        listed = f"steps.{step_id}.completionConditions"
        path = f"{listed}[{left.position(listed, at)}].validator"
        yield from _known_validator(condition.validator, registry, shown, path, left)
    boundaries = file.runner.boundaries if file is not None else None
    knows_tools = boundaries is not None and not left.touched("runner.boundaries.allowedTools")
    tools = boundaries.allowed_tools if boundaries is not None and knows_tools else None
    for tool in step.allowed_tools or ():
        if tools is not None and not is_listed(tool, tools):
            message = f'"{tool}" is not among the agent\'s allowedTools'
            yield Problem(
                shown, f"steps.{step_id}.allowedTools", message, "a step may only narrow what its agent allows"
            )
    knows_mode = not left.lost("runner.boundaries.permissionMode")
    if boundaries is not None and knows_mode and step.permission_mode is not None:
        widest = boundaries.permission_mode
        if step.permission_mode.width > widest.width:
            yield Problem(
                shown,
                f"steps.{step_id}.permissionMode",
                f'"{step.permission_mode}" is wider than the agent\'s "{widest}"',
                "a step may only narrow what its agent allows",
            )


def _known_validator(name: str, registry: StepsRegistry, file: str, path: str, left: LeftOut) -> Iterator[Problem]:
    known = {*registry.validators, *BUILTIN_CHECKS}
    if name not in known and not left.lost(f"validators.{name}"):
        yield Problem(file, path, f'there is no validator "{name}"', did_you_mean(name, known))


def check_variables(definition: AgentDefinition, registry_file: str, left: LeftOut) -> Iterator[Problem]:
    """Every {uv-…} has a supplier on every path."""
    yield from _Supply(definition, registry_file, left).problems()


class _Supply:
    """Who supplies which variable, as far as the values that were left out let it be known."""

    def __init__(self, definition: AgentDefinition, registry_file: str, left: LeftOut) -> None:
        self.definition = definition
        self.steps = definition.registry.steps
        self.file = registry_file
        self.left = left
        self.graph = StepGraph(definition.registry, registry_file, left)
        may_have = {"issue"} if left.lost("parameters.issue") else set[str]()
        self.always = runtime_variables(frozenset({*definition.file.parameters, *may_have}))
        self.outputs = {
            output_variable(other, key.replace(".", "_")): other
            for other in self.steps
            for key in definition.outputs_of(other) or ()
        }
        broken = (path.removeprefix("steps.") for path in left.paths if path.startswith("steps."))
        self.unknown = (*(step_id for step_id in self.steps if not self._knows_outputs(step_id)), *broken)
        """Steps that may hand over more than is known."""
        self.prefixes = tuple(output_variable(step_id, "") for step_id in self.unknown)

    def _knows_outputs(self, step_id: str) -> bool:
        at, step = f"steps.{step_id}", self.steps[step_id]
        if self.left.touched(f"{at}.structuredGate.handoffFields", f"{at}.outputSchemaRef"):
            return False
        named = step.structured_gate is not None and step.structured_gate.handoff_fields
        return bool(named) or step.output_schema_ref is None or step_id in self.definition.schemas

    def problems(self) -> Iterator[Problem]:
        system = self.definition.system_prompt
        for name in variables_in(system.text):
            if name not in self.always and not self.left.lost(f"parameters.{name}"):
                hint = did_you_mean(name, self.always)
                yield Problem(system.source, f"{{uv-{name}}}", "nothing supplies it", hint)
        few = len(self.steps) <= MOST_STEPS
        for step_id, step in self.steps.items() if few else ():
            if not self.left.lost(f"steps.{step_id}"):
                yield from self._of_step(step_id, step)

    def _of_step(self, step_id: str, step: Step) -> Iterator[Problem]:
        at = f"steps.{step_id}"
        supplied = set(self.always) | set(step.inputs)
        yield from self._of_inputs(step_id, step)
        for name in step.uv_variables or ():
            yield from self._supplier(step_id, name, supplied, self.file, f"{at}.uvVariables")
        prompts = [(self.definition.prompts.get(step_id), frozenset[str]())]
        prompts += [(text, IN_RETRY) for text in self.definition.retry_prompts.get(step_id, {}).values()]
        knows_listed = step.uv_variables is not None and not self.left.touched(f"{at}.uvVariables")
        for prompt, extra in prompts:
            if prompt is None:
                continue
            here, listed = supplied | extra, {*(step.uv_variables or ()), *step.inputs, *extra}
            for name in variables_in(prompt.text):
                yield from self._supplier(step_id, name, here, prompt.source, f"{{uv-{name}}}")
                if knows_listed and name not in listed and not self.left.lost(f"{at}.inputs.{name}"):
                    yield Problem(prompt.source, f"{{uv-{name}}}", f"is not in uvVariables of the step {step_id}")

    def _of_inputs(self, step_id: str, step: Step) -> Iterator[Problem]:
        for name, wanted in step.inputs.items():
            at = f"steps.{step_id}.inputs.{name}"
            supplier = _output_supplier(self.definition, wanted.source)
            if supplier is None:
                if not any(wanted.source.startswith(f"{other}.") for other in self.unknown):
                    yield Problem(self.file, f"{at}.from", f'no step declares the output "{wanted.source}"')
                continue
            needed = wanted.required and wanted.default is None and not self.left.touched(at)
            if needed and (gap := self.graph.gap_between(supplier, step_id)):
                yield Problem(self.file, f"{at}.from", gap, "give a default, or required: false")

    def _supplier(self, step_id: str, name: str, supplied: set[str], file: str, at: str) -> Iterator[Problem]:
        if name in supplied or self.left.lost(f"steps.{step_id}.inputs.{name}"):
            return
        if name in self.outputs:
            if gap := self.graph.gap_between(self.outputs[name], step_id):
                message = f"{name} comes from the step {self.outputs[name]}, and {gap}"
                yield Problem(file, at, message, "declare it under inputs with a default")
        elif not self.left.lost(f"parameters.{name}") and not name.startswith(self.prefixes):
            yield Problem(file, at, f"nothing supplies {name}", did_you_mean(name, {*supplied, *self.outputs}))


def _output_supplier(definition: AgentDefinition, source: str) -> str | None:
    """The step that declares the output `step.key`; step ids may contain dots themselves."""
    for step_id in definition.registry.steps:
        key = source.removeprefix(f"{step_id}.")
        if key != source and key in (definition.outputs_of(step_id) or ()):
            return step_id
    return None
