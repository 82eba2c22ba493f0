"""One agent of climpt's as the files of one of Genba's, with a row for each key."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from genba.definitions.climpt.agent_keys import AgentKeys
from genba.definitions.climpt.prompts import KnownVariables, retry_prompt, step_prompt
from genba.definitions.climpt.reading import ClimptAgent, list_at, object_at, objects_at, text_at, value_at, word
from genba.definitions.climpt.report import ImportedKey, ImportReport
from genba.definitions.climpt.schemas import StepSchemas, set_intents
from genba.definitions.climpt.steps import ImportedStep, Registry
from genba.definitions.climpt.validators import convert_validators
from genba.definitions.steps.templates import output_variable, variables_in
from genba.definitions.steps.variables import IN_RETRY, runtime_variables
from genba.domain.sessions.outcomes import ClosureAction, StepKind

_REGISTRY = "steps_registry.json"
_INTENT_FIELD = "next_action.action"
_CLOSING_PROMPT = """\
Look at your work once more. When everything that was asked for is committed, answer with the intent `closing`;
otherwise finish it and answer with `repeat`.
"""
_WORK = "Go on with the work. Commit what you change.\n"
_RETRIES = "/retry/"
_LEFT_BEHIND = "no file of Genba's refers to it"


class ConvertedAgent(msgspec.Struct, frozen=True, kw_only=True):
    """The files of the new agent by their path in its folder, and what became of each key."""

    name: str
    files: dict[str, str]
    report: tuple[ImportedKey, ...]


def convert_agent(path: Path, name: str) -> ConvertedAgent:
    """Convert the agent in a folder. The folder is only read."""
    return _Conversion(ClimptAgent(path), name).convert()


class _Conversion:
    def __init__(self, agent: ClimptAgent, name: str) -> None:
        self.agent = agent
        self.name = name
        self.report = ImportReport()
        self.files: dict[str, str] = {}

    def convert(self) -> ConvertedAgent:
        raw, config = self.agent.json("agent.json"), self.agent.json("config.json")
        prompts = value_at(raw, "runner.flow.prompts") or raw.get("prompts")
        raw_registry = self.agent.json(text_at(prompts, "registry") or _REGISTRY)
        kinds = [
            text_at(each, "stepKind") or text_at(each, "c2") for each in objects_at(raw_registry, "steps").values()
        ]
        keys = AgentKeys(raw, config, "closure" in kinds, self.report)
        file = keys.convert(self.name)
        registry = Registry(raw_registry, file["runner"]["completion"]["type"], self.report)
        registry.convert(keys.before_closing)
        supplied = runtime_variables(frozenset(file["parameters"]))
        patterns = self._retry_prompts(registry, raw_registry, supplied | IN_RETRY)
        validators = convert_validators(raw_registry, set(patterns), self.report)
        registry.keep_conditions(validators)
        schemas = self._schemas(registry, text_at(raw_registry, "schemasBase") or "schemas")
        self._inputs(registry, schemas)
        action = value_at(file, "runner.integrations.github.defaultClosureAction") or str(ClosureAction.CLOSE)
        variables = _Variables(registry, schemas, supplied, _label_texts(raw))
        for name, step in registry.steps.items():
            self._prompt(name, step, self._prompts_base(raw_registry), action, variables)
        self._system_prompt(raw, supplied)
        steps = {name: step.settings for name, step in registry.steps.items()}
        flow_file: dict[str, Any] = {
            **registry.head,
            "entryStep": registry.entry,
            "entryStepMapping": registry.modes,
            "steps": steps,
        }
        flow_file |= {"validators": validators, "failurePatterns": patterns}
        self.files["agent.json"] = _text(file)
        self.files[_REGISTRY] = _text({key: value for key, value in flow_file.items() if value})
        for source, value in (("agent.json", raw), ("config.json", config), (_REGISTRY, raw_registry)):
            self.report.complete(source, value)
        for left in sorted(set(self.agent.files) - self.agent.read):
            if _RETRIES in left:
                self.report.attention(left, "", "no step that checks something has a failure pattern for it")
            else:
                self.report.no_effect(left, "", _LEFT_BEHIND)
        return ConvertedAgent(name=self.name, files=self.files, report=self.report.rows)

    def _read(self, source: str, target: str) -> str | None:
        """The text of a prompt, which becomes another file; None where there is none."""
        found = self.agent.text(source)
        if found is None:
            return None
        text, had_front_matter = found
        self.report.mapped(source, "", target)
        if had_front_matter:
            self.report.no_effect(source, "front matter", "a prompt has none here: the registry has its content")
        return text

    def _prompts_base(self, raw: dict[str, Any]) -> str:
        base = self.agent.inside(text_at(raw, "userPromptsBase") or "prompts") or "prompts"
        return f"{base}/{word(raw.get('c1'), _REGISTRY, 'c1') or 'steps'}"

    def _prompt(self, name: str, step: ImportedStep, base: str, action: str, variables: "_Variables") -> None:
        """Write the prompt of a step: of a closing one, the variant for what the agent does with its issue."""
        if step.prompt is None:
            return
        c2, c3, edition, adaptation = step.prompt
        edition = edition or "default"
        folder, own = f"{base}/{c2}/{c3}", f"prompts/steps/{c2}/{c3}"
        if not adaptation and step.kind is StepKind.CLOSURE and f"{folder}/f_{edition}_{action}.md" in self.agent.files:
            adaptation = action
        target = f"{own}/{_file_name(edition, adaptation)}"
        text = self._read(f"{folder}/{_file_name(edition, adaptation)}", target) if adaptation else None
        if text is None:
            adaptation, target = "", f"{own}/{_file_name(edition, '')}"
            text = self._read(f"{folder}/f_{edition}.md", target)
        if text is None and not step.added:
            self.report.attention(_REGISTRY, f"steps.{name}", f"{folder}/f_{edition}.md is not there")
        text = text or (_CLOSING_PROMPT if step.kind is StepKind.CLOSURE else _WORK)
        known = variables.known(frozenset(step.settings.get("inputs", {})))
        text = step_prompt(text, known, self._missing(f"{folder}/{_file_name(edition, adaptation)}"))
        inputs = variables.handed_over(text)
        if inputs:
            step.settings["inputs"] = {**inputs, **step.settings.get("inputs", {})}
        step.settings |= {"c2": c2, "c3": c3, "edition": edition}
        step.settings |= {"adaptation": adaptation} if adaptation else {}
        self.files[target] = text

    def _missing(self, source: str) -> Callable[[str], None]:
        def missing(name: str) -> None:
            self.report.attention(source, f"{{uv-{name}}}", f"nothing supplies it: the prompt shows [{name}]")

        return missing

    def _retry_prompts(
        self, registry: Registry, raw: dict[str, Any], supplied: frozenset[str]
    ) -> dict[str, dict[str, Any]]:
        """The failure patterns that have a prompt, whose files are put beside the prompts of their steps."""
        base, kept = self._prompts_base(raw), {}
        for name, (key, pattern) in registry.patterns.items():
            edition = word(pattern.get("edition"), _REGISTRY, f"{key}.edition") or "failed"
            adaptation = word(pattern.get("adaptation"), _REGISTRY, f"{key}.adaptation")
            file, plain = _file_name(edition, adaptation), _file_name(edition, "")
            steps = [step for step in registry.steps.values() if step.settings.get("completionConditions")]
            adapted = [step for step in steps if self._retry(base, step, file, supplied)]
            others = [step for step in steps if step not in adapted and self._retry(base, step, plain, supplied)]
            if not adapted and not others:
                self._no_retry_prompt(key, f"{base}/retry/", file)
                continue
            if not adapted and adaptation:
                self.report.no_effect(_REGISTRY, f"{key}.adaptation", f"there is no {file}: {plain} is used")
                adaptation = ""
            kept[name] = {"edition": edition, **({"adaptation": adaptation} if adaptation else {})}
            kept[name] |= {"description": pattern["description"]} if text_at(pattern, "description") else {}
            for field in sorted(kept[name].keys() & pattern.keys()):
                self.report.mapped(_REGISTRY, f"{key}.{field}")
            if "params" in pattern:
                why = "a retry prompt gets the output of the failed check"
                self.report.no_effect(_REGISTRY, f"{key}.params", why)
        return kept

    def _no_retry_prompt(self, key: str, base: str, file: str) -> None:
        """Say why a failure pattern is left out: it has no prompt, or one that belongs to no step."""
        there = [path for path in self.agent.files if _RETRIES in path and path.endswith(f"/{file}")]
        if there:
            what = f"{there[0]} is not at the c3 of a step that checks something: it was left out"
            self.report.attention(_REGISTRY, key, what, whole=True)
        else:
            self.report.no_effect(_REGISTRY, key, f"{base} has no {file} for it: Genba's own text is used")

    def _retry(self, base: str, step: ImportedStep, file: str, supplied: frozenset[str]) -> bool:
        """Put a retry prompt beside the prompt of its step; False where there is none."""
        if not step.retries or step.prompt is None:
            return False
        source = f"{base}/retry/{step.retries}/{file}"
        target = f"prompts/steps/{step.prompt[0]}/{step.prompt[1]}/{file}"
        text = self._read(source, target)
        if text is None:
            return False
        known = KnownVariables(supplied=supplied)
        self.files[target] = step_prompt(retry_prompt(text), known, self._missing(source))
        return True

    def _schemas(self, registry: Registry, base: str) -> dict[str, dict[str, Any]]:
        finder, found = StepSchemas(self.agent, base), {}
        for name, step in registry.steps.items():
            if step.schema is None:
                continue
            schema, key = finder.find(step.schema), f"steps.{name}.outputSchemaRef"
            if schema is None:
                what = f"{step.schema} is not there: the answer is not checked"
                self.report.attention(_REGISTRY, key, what, whole=True)
                continue
            gate = step.settings.get("structuredGate")
            if gate:
                set_intents(schema, gate.get("intentField", _INTENT_FIELD), gate["allowedIntents"])
            step.settings["outputSchemaRef"] = f"schemas/{name}.json"
            self.files[f"schemas/{name}.json"] = _text(schema)
            self.report.mapped(_REGISTRY, key, f"schemas/{name}.json", whole=True)
            found[name] = schema
        for file in sorted(finder.files):
            self.report.mapped(file, "", "the schemas of the steps that name it")
        return found

    def _inputs(self, registry: Registry, schemas: dict[str, dict[str, Any]]) -> None:
        """`from` names the last part of a handed-over field in the original, and the whole field here."""
        for name, step in registry.steps.items():
            kept: dict[str, Any] = {}
            for key, wanted in step.settings.get("inputs", {}).items():
                row = f"steps.{name}.inputs.{key}"
                source = _source(text_at(wanted, "from"), registry, schemas)
                if not source:
                    what = "no step that is left hands it over: it was left out"
                    self.report.attention(_REGISTRY, row, what, whole=True)
                    continue
                kept[key] = {"from": source, "required": False, "default": wanted.get("default", "")}
                for field in sorted(set(wanted) & {"from", "default"}):
                    self.report.mapped(_REGISTRY, f"{row}.{field}", whole=True)
                if "required" in wanted:  # a fallback intent may leave any step without a reply
                    why = "a step without a reply hands over nothing: the default is shown"
                    self.report.no_effect(_REGISTRY, f"{row}.required", why)
            step.settings.pop("inputs", None)
            if kept:
                step.settings["inputs"] = kept

    def _system_prompt(self, raw: dict[str, Any], supplied: frozenset[str]) -> None:
        keys = ("runner.flow.systemPromptPath", "behavior.systemPromptPath")
        key = next((key for key in keys if isinstance(value_at(raw, key), str)), "")
        source = value_at(raw, key) if key else "prompts/system.md"
        text = self._read(source, "prompts/system.md")
        if text is None:
            self.report.attention("agent.json", key or keys[0], f"{source} is not there")
            text = f"You are {self.name}. You work alone, on a branch of your own.\n"
        elif key:
            self.report.mapped("agent.json", key, "prompts/system.md")
        self.files["prompts/system.md"] = step_prompt(text, KnownVariables(supplied=supplied), self._missing(source))


class _Variables:
    """Who supplies the variables of a step's prompt: Genba, a parameter, or a step before it."""

    def __init__(
        self,
        registry: Registry,
        schemas: dict[str, dict[str, Any]],
        supplied: frozenset[str],
        texts: dict[str, str],
    ) -> None:
        self.supplied = supplied
        self.texts = texts
        self.outputs: dict[str, str] = {}
        self.renamed: dict[str, str] = {}
        for step in registry.steps:
            for field in _fields(step, registry, schemas):
                variable = output_variable(step, field.replace(".", "_"))
                self.outputs[variable] = f"{step}.{field}"
                self.renamed.setdefault(output_variable(step, field.rpartition(".")[2]), variable)

    def known(self, inputs: frozenset[str]) -> KnownVariables:
        supplied = self.supplied | frozenset(self.outputs) | inputs
        return KnownVariables(supplied=supplied, renamed=self.renamed, texts=self.texts)

    def handed_over(self, text: str) -> dict[str, dict[str, Any]]:
        """The inputs for what a prompt uses of other steps. A step that was not on the way has handed over nothing."""
        used = [name for name in variables_in(text) if name in self.outputs and name not in self.supplied]
        return {name: {"from": self.outputs[name], "required": False, "default": ""} for name in used}


def _label_texts(raw: dict[str, Any]) -> dict[str, str]:
    """Variables such as `requirements_label`, whose values are settings."""
    labels = value_at(raw, "runner.integrations.github.labels") or value_at(raw, "github.labels")
    labels = labels if isinstance(labels, dict) else {}
    return {f"{name}_label": label for name, label in labels.items() if isinstance(label, str)}


def _fields(step: str, registry: Registry, schemas: dict[str, dict[str, Any]]) -> list[str]:
    gate = registry.steps[step].settings.get("structuredGate")
    named = list_at(gate, "handoffFields") or list(object_at(schemas.get(step), "properties"))
    return [field for field in named if isinstance(field, str)]


def _source(wanted: str, registry: Registry, schemas: dict[str, dict[str, Any]]) -> str:
    for step in registry.steps:
        key = wanted.removeprefix(f"{step}.")
        if key == wanted:
            continue
        for field in _fields(step, registry, schemas):
            if key in (field, field.rpartition(".")[2]):
                return f"{step}.{field}"
    return ""


def _file_name(edition: str, adaptation: str) -> str:
    return f"f_{edition}_{adaptation}.md" if adaptation else f"f_{edition}.md"


def _text(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"
