"""The eight completion types as values, and how they are read."""

from typing import Annotated, Any, Literal, cast

import msgspec
from msgspec import Meta

from genba.definitions.steps.partial_data import shape_sound_part
from genba.domain.convert import shape
from genba.domain.problems import Problem, did_you_mean


class _Completion(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel", tag_field="type"
):
    pass


class ExternalState(_Completion, frozen=True, tag="externalState"):
    """Complete when the issue's checks hold and its closure action has been carried out."""

    validators: Annotated[tuple[str, ...], Meta(min_length=1, description="The checks that must hold.")] = (
        "git-clean",
        "commits-exist",
    )
    github: Annotated[dict[str, Any], Meta(description="Merged over runner.integrations.github for this agent.")] = {}
    worktree: Annotated[dict[str, Any], Meta(description="Merged over runner.execution.worktree.")] = {}


class IterationBudget(_Completion, frozen=True, tag="iterationBudget"):
    """Complete when so many iterations are done."""

    max_iterations: Annotated[int, Meta(ge=1, description="The number of iterations.")]


class CheckBudget(_Completion, frozen=True, tag="checkBudget"):
    """Complete when so many status checks are done."""

    max_checks: Annotated[int, Meta(ge=1, description="The number of status checks.")]


class KeywordSignal(_Completion, frozen=True, tag="keywordSignal"):
    """Complete when a value of the structured output is the keyword."""

    completion_keyword: Annotated[str, Meta(min_length=1, description="The keyword.")]


class StructuredSignal(_Completion, frozen=True, kw_only=True, tag="structuredSignal"):
    """Complete when a reply fits the schema and says that it is complete."""

    response_format: Annotated[
        Literal["json", "json-block"],
        Meta(
            description="json: the whole reply is one JSON object. json-block: the last code block of the reply is.",
        ),
    ] = "json-block"
    output_schema: Annotated[
        dict[str, Any] | str, Meta(description="A JSON Schema, or a file with one, relative to agent.json.")
    ]


class StepMachine(_Completion, frozen=True, tag="stepMachine"):
    """Complete when the step graph reached its end."""


class Composite(_Completion, frozen=True, tag="composite"):
    """Complete when any or all of its conditions are."""

    mode: Annotated[Literal["any", "all"], Meta(description="any or all")]
    completion_conditions: Annotated[
        tuple["Completion", ...], Meta(description="Each is a type with its config, or {ref: name}.")
    ]


class Custom(_Completion, frozen=True, tag="custom"):
    """Complete when the handler says so."""

    completion_handler: Annotated[
        str, Meta(min_length=1, description="module:factory, or file.py:factory beside agent.json.")
    ]
    options: Annotated[dict[str, Any], Meta(description="Handed to the factory.")] = {}

    @property
    def key(self) -> str:
        """Two conditions may ask the same handler with options of their own."""
        return f"{self.completion_handler} {msgspec.json.encode(self.options, order='sorted').decode()}"


Completion = (
    ExternalState | IterationBudget | CheckBudget | KeywordSignal | StructuredSignal | StepMachine | Composite | Custom
)

COMPLETION_TYPES: dict[str, type[msgspec.Struct]] = {
    "externalState": ExternalState,
    "iterationBudget": IterationBudget,
    "checkBudget": CheckBudget,
    "keywordSignal": KeywordSignal,
    "structuredSignal": StructuredSignal,
    "stepMachine": StepMachine,
    "composite": Composite,
    "custom": Custom,
}

MOST_CONDITIONS = 100
"""Conditions of one completion, counted each time that one is referred to."""

_COMPOSITE_KEYS = ("mode", "completionConditions", "definitions")


class CompletionReader:
    """Reads a completion section, following the references of composites and refusing their cycles."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.problems: list[Problem] = []
        self.left: list[str] = []
        """The paths of wrong values that what was read does without."""
        self.conditions = 0

    def read(self, raw: Any, path: str) -> Completion | None:
        """The completion, or what of it can be read where `problems` has some."""
        return self._condition(raw, path, {}, ())

    def _condition(
        self, raw: Any, path: str, named: dict[str, tuple[Any, str]], inside: tuple[str, ...]
    ) -> Completion | None:
        self.conditions += 1
        if self.conditions > MOST_CONDITIONS:
            return self._too_many()
        if not isinstance(raw, dict):
            return self._refused(path, "expected an object with a type")
        if "ref" in raw:
            return self._reference(raw, path, named, inside)
        kind = raw.get("type")
        config = raw.get("config", {})
        for key in raw:
            if key not in ("type", "config"):
                self._refuse(f"{path}.{key}", "unknown key", did_you_mean(key, ("type", "config", "ref")))
        if not isinstance(kind, str) or kind not in COMPLETION_TYPES:
            hint = did_you_mean(str(kind), COMPLETION_TYPES)
            message = "(8 types: genba schema completion)"
            return self._refused(f"{path}.type", f'"{kind}" is not a completion type', f"{hint}  {message}".strip())
        if not isinstance(config, dict):
            self._refuse(f"{path}.config", "expected an object")
            return cast("Completion | None", shape_sound_part({}, COMPLETION_TYPES[kind])[0])
        if kind == "composite":
            return self._composite(config, f"{path}.config", named, inside)
        value, problems = shape(config, COMPLETION_TYPES[kind], self.file, f"{path}.config")
        if problems:
            self.problems += problems
            value, left = shape_sound_part(config, COMPLETION_TYPES[kind])
            self.left += [f"{path}.config.{each}" for each in left.paths]
        return cast("Completion | None", value)

    def _reference(
        self, raw: dict[str, Any], path: str, named: dict[str, tuple[Any, str]], inside: tuple[str, ...]
    ) -> Completion | None:
        name = str(raw["ref"])
        if set(raw) != {"ref"}:
            return self._refused(path, "a reference takes no other key")
        if name not in named:
            return self._refused(f"{path}.ref", f'no condition is named "{name}"', did_you_mean(name, named))
        if name in inside:
            chain = " → ".join((*inside[inside.index(name) :], name))
            return self._refused(f"{path}.ref", f"the composite contains itself: {chain}")
        target, at = named[name]
        return self._condition(target, at, named, (*inside, name))

    def _composite(
        self, config: dict[str, Any], path: str, named: dict[str, tuple[Any, str]], inside: tuple[str, ...]
    ) -> Completion | None:
        for key in config:
            if key not in _COMPOSITE_KEYS:
                self._refuse(f"{path}.{key}", "unknown key", did_you_mean(key, _COMPOSITE_KEYS))
        mode = config.get("mode")
        if mode not in ("any", "all"):
            self._refuse(f"{path}.mode", f'"{mode}" is not one of: any, all' if mode else "is required and missing")
        own = config.get("definitions", {})
        if not isinstance(own, dict):
            return self._refused(f"{path}.definitions", "expected an object")
        scope = {**named, **{name: (raw, f"{path}.definitions.{name}") for name, raw in own.items()}}
        conditions = config.get("completionConditions")
        if not isinstance(conditions, list) or not conditions:
            return self._refused(f"{path}.completionConditions", "expected a list with at least one condition")
        read = [
            self._condition(raw, f"{path}.completionConditions[{at}]", scope, inside)
            for at, raw in enumerate(conditions)
        ]
        return Composite(
            mode="all" if mode == "all" else "any", completion_conditions=tuple(c for c in read if c is not None)
        )

    def _too_many(self) -> Completion | None:
        """Each name counts once: two references per name would make twenty names a million conditions."""
        if self.conditions == MOST_CONDITIONS + 1:
            hint = "each reference counts again, with all that it stands for"
            self._refuse("runner.completion", f"has more than {MOST_CONDITIONS} conditions", hint)
        return None

    def _refuse(self, path: str, message: str, hint: str = "") -> None:
        self.problems.append(Problem(self.file, path, message, hint))

    def _refused(self, path: str, message: str, hint: str = "") -> Completion | None:
        self._refuse(path, message, hint)
        return None


def walk(completion: Completion) -> tuple[Completion, ...]:
    """The completion and everything inside it."""
    if isinstance(completion, Composite):
        return (completion, *(inner for part in completion.completion_conditions for inner in walk(part)))
    return (completion,)


def structured_signal(completion: Completion) -> StructuredSignal | None:
    """The structuredSignal anywhere in the completion."""
    return next((part for part in walk(completion) if isinstance(part, StructuredSignal)), None)
