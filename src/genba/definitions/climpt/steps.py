"""steps_registry.json: the steps that a session can reach, with what each must hold."""

from collections import deque
from typing import Any

import msgspec

from genba.definitions.climpt.names import (
    COMPLETION_TYPES,
    CONDITION_LISTS,
    INTENTS,
    PATTERNS,
    STEP_KINDS,
    VALIDATION_STEPS,
)
from genba.definitions.climpt.reading import list_at, object_at, objects_at, text_at, word
from genba.definitions.climpt.report import ImportReport
from genba.domain.sessions.evidence import BUILTIN_CHECKS
from genba.domain.sessions.outcomes import ALLOWED_INTENTS, Intent, PermissionMode, StepKind

_FILE = "steps_registry.json"
_NO_EFFECT = {
    "agentId": "it is the name of the folder",
    "c1": "prompts are found in prompts/steps",
    "userPromptsBase": "prompts are found in prompts/steps",
    "schemasBase": "schemas are found in schemas",
    "pathTemplate": "paths of prompts are fixed",
    "pathTemplateNoAdaptation": "paths of prompts are fixed",
    "$schema": "it names the schema of the original: `genba schema steps_registry`",
}
_FOR_READERS = ("version", "description")
_STEP_FOR_READERS = ("name", "description")
_SECTIONS = ("entryStepMapping", "validators", *VALIDATION_STEPS, *PATTERNS, "steps")
_STEP_SECTIONS = ("structuredGate", "structuredGate.handoffFields", "transitions", "inputs", "onFailure")
_STEP_NO_EFFECT = {
    "stepId": "it is the key of the step",
    "type": "every step is a prompt",
    "fallbackKey": "a step has one prompt and no fallback",
    "usesStdin": "Genba supplies the issue as variables",
    "uvVariables": "Genba finds the variables in the prompt itself",
    "priority": "the entry step is chosen by entryStepMapping and --mode",
    "condition": "the entry step is chosen by entryStepMapping and --mode",
}
_VALIDATION_NO_EFFECT = {
    **_STEP_NO_EFFECT,
    "name": "the step has a name of its own",
    "description": "the step has a description of its own",
    "stepKind": "it is the kind of the step itself",
    "c2": "the prompts of a retry are beside those of their step",
    "c3": "the prompts of a retry are beside those of their step",
    "edition": "the failure pattern chooses the prompt",
    "adaptation": "the failure pattern chooses the prompt",
}


class ImportedStep(msgspec.Struct, kw_only=True):
    """One step on its way: its settings for Genba, and what is still to be found for it."""

    settings: dict[str, Any]
    kind: StepKind
    schema: Any = None
    """What `outputSchemaRef` of the original names."""
    prompt: tuple[str, str, str, str] | None = None
    """c2, c3, edition and adaptation of the prompt in the original; None where it has none."""
    retries: str = ""
    """The c3 below `retry` at which the original has the retry prompts of this step."""
    added: bool = False
    """Not declared in the original."""


class Registry:
    """Converts the flow of one agent."""

    def __init__(self, raw: dict[str, Any], completion_type: str, report: ImportReport) -> None:
        self.raw = raw
        self.report = report
        self.completion_type = completion_type
        self.declared = {
            name: step for name, step in objects_at(raw, "steps").items() if not name.startswith("section.")
        }  # fmt: skip
        self.validated = [
            (f"{section}.{name}", name, step)
            for section in VALIDATION_STEPS
            for name, step in objects_at(raw, section).items()
        ]
        self.patterns = {
            name: (f"{section}.{name}", each) for section in PATTERNS for name, each in objects_at(raw, section).items()
        }
        self.steps: dict[str, ImportedStep] = {}
        self.conditions: list[tuple[str, str, list[str]]] = []
        """Each condition with its key in the original, and the steps that it is of."""
        self.head = {key: raw[key] for key in _FOR_READERS if text_at(raw, key)}
        self.entry, self.modes = self._entries()

    def convert(self, before_closing: tuple[str, ...]) -> None:
        """Fill `steps` with every step that an entry step leads to."""
        self.report.sections(_FILE, *_SECTIONS)
        for key in self.head:
            self.report.mapped(_FILE, key)
        for key, why in _NO_EFFECT.items():
            if key in self.raw:
                self.report.no_effect(_FILE, key, why)
        waiting = deque(dict.fromkeys([self.entry, *self.modes.values()]))
        while waiting:
            name = waiting.popleft()
            if name in self.steps:
                continue
            self.steps[name] = self._step(name)
            waiting.extend(self._targets(self.steps[name]))
        for name in [name for name in object_at(self.raw, "steps") if name not in self.steps]:
            why = "a fragment of a prompt, not a step" if name.startswith("section.") else "no step leads to it"
            self.report.no_effect(_FILE, f"steps.{name}", why)
        self._attach_conditions(before_closing)

    def _entries(self) -> tuple[str, dict[str, str]]:
        """The step that a session begins with, and those that `--mode` chooses."""
        mapping = {key: step for key, step in object_at(self.raw, "entryStepMapping").items() if isinstance(step, str)}
        modes = {COMPLETION_TYPES.get(key, key): step for key, step in mapping.items() if step in self.declared}
        modes |= {key: step for key, step in mapping.items() if key.isidentifier() and step in self.declared}
        for key, step in mapping.items():
            if step in self.declared:
                self.report.mapped(_FILE, f"entryStepMapping.{key}", step)
            else:
                self.report.no_effect(_FILE, f"entryStepMapping.{key}", f"there is no step {step}")
        named = text_at(self.raw, "entryStep")
        entry = modes.get(self.completion_type) or (named if named in self.declared else "")
        if named and named == entry:
            self.report.mapped(_FILE, "entryStep", entry)
        elif named:
            self.report.no_effect(_FILE, "entryStep", f"entryStepMapping names {entry}" if entry else "no such step")
        if not entry:
            entry = next(iter(modes.values()), None) or next(iter(self.declared), "work")
            self.report.attention(_FILE, "entryStep", f"is not named for {self.completion_type}: {entry} is used")
        return entry, {key: step for key, step in modes.items() if step != entry}

    def _step(self, name: str) -> ImportedStep:
        raw = self.declared.get(name)
        if raw is None:  # only named as the target of a transition
            self.report.attention(_FILE, f"steps.{name}", "is named but not declared: a closing step was added")
            gate = {"allowedIntents": ["closing", "repeat"], "fallbackIntent": "repeat"}
            closing = {"stepKind": "closure", "structuredGate": gate}
            last = word(name, _FILE, "transitions").rpartition(".")[2] or name
            return ImportedStep(settings=closing, kind=StepKind.CLOSURE, prompt=("closure", last, "", ""), added=True)
        key = f"steps.{word(name, _FILE, 'steps')}"
        kind = StepKind(self._kind(raw, key))
        settings: dict[str, Any] = {"stepKind": str(kind)}
        self.report.sections(_FILE, *(f"{key}.{section}" for section in (*_STEP_SECTIONS, *CONDITION_LISTS)))
        for field in _STEP_FOR_READERS:
            if text_at(raw, field):
                settings[field] = raw[field]
                self.report.mapped(_FILE, f"{key}.{field}")
        self._gate(raw, kind, settings, key)
        if object_at(raw, "inputs"):
            settings["inputs"] = object_at(raw, "inputs")
        if text_at(raw, "model"):
            settings["model"] = raw["model"]
            self.report.mapped(_FILE, f"{key}.model", "it had no effect in the original")
        if raw.get("permissionMode") in list(PermissionMode):
            settings["permissionMode"] = raw["permissionMode"]
            self.report.mapped(_FILE, f"{key}.permissionMode")
        for field, why in _STEP_NO_EFFECT.items():
            if field in raw:
                self.report.no_effect(_FILE, f"{key}.{field}", why)
        parts = [word(raw.get(part), _FILE, f"{key}.{part}") for part in ("c2", "c3", "edition", "adaptation")]
        for part in ("c2", "c3", "edition", "adaptation"):
            if part in raw:
                self.report.mapped(_FILE, f"{key}.{part}", "the path of the prompt")
        prompt = (parts[0], parts[1], parts[2], parts[3]) if parts[0] and parts[1] else None
        return ImportedStep(settings=settings, kind=kind, schema=raw.get("outputSchemaRef"), prompt=prompt)

    def _kind(self, raw: dict[str, Any], key: str) -> str:
        kind = text_at(raw, "stepKind") or STEP_KINDS.get(text_at(raw, "c2"), "work")
        if kind not in list(StepKind):
            self.report.attention(_FILE, f"{key}.stepKind", f"{kind!r} is not known: work is used")
            return "work"
        if text_at(raw, "stepKind"):
            self.report.mapped(_FILE, f"{key}.stepKind")
        return kind

    def _gate(self, raw: dict[str, Any], kind: StepKind, settings: dict[str, Any], key: str) -> None:
        gate, transitions = object_at(raw, "structuredGate"), object_at(raw, "transitions")
        intents: list[str] = []
        ways: dict[str, Any] = {}
        words = [each for each in list_at(gate, "allowedIntents") or list(transitions) if isinstance(each, str)]
        taken: dict[str, str] = {}
        for name in words:
            intent = meant = _intent(name)
            if intent == "closing" and kind is not StepKind.CLOSURE:
                intent = "handoff" if kind is StepKind.WORK else "next"
                self.report.mapped(_FILE, f"{key}.structuredGate.allowedIntents", f"{name} is {intent} here")
            if not intent or Intent(intent) not in ALLOWED_INTENTS[kind]:
                what = f"{name!r} is no intent of a {kind} step and was left out"
                self.report.attention(_FILE, f"{key}.structuredGate.allowedIntents", what)
                if name in transitions:
                    self.report.attention(_FILE, f"{key}.transitions.{name}", what, whole=True)
                    taken[name] = ""
                continue
            if intent in intents:
                continue
            found = _named_by(transitions, name, meant, intent)
            taken |= {found: intent}
            if self._way(intent, found, transitions, ways, key):
                intents.append(intent)
        self._other_transitions(transitions, taken, key)
        if "jump" in ways and "jump" not in intents:
            intents.append("jump")
        if gate and intents:
            settings["structuredGate"] = self._kept_of_gate(gate, intents, key)
        if ways:
            settings["transitions"] = ways

    def _other_transitions(self, transitions: dict[str, Any], taken: dict[str, str], key: str) -> None:
        """Report the transitions that no allowed intent takes."""
        chosen = {intent: name for name, intent in taken.items()}
        for name in (name for name in transitions if name not in taken):
            first = chosen.get(_intent(name), "")
            at = f"{key}.transitions.{name}"
            if not first:
                self.report.no_effect(_FILE, at, "allowedIntents does not name this intent")
            elif transitions[name] == transitions.get(first):
                self.report.no_effect(_FILE, at, f"transitions.{first} is the same")
            else:
                self.report.attention(_FILE, at, f"transitions.{first} is taken instead: it was left out", whole=True)

    def _way(self, intent: str, name: str, transitions: dict[str, Any], ways: dict[str, Any], key: str) -> bool:
        """Where an intent leads; False where it leads nowhere and is left out."""
        at = f"{key}.transitions.{name}" if name in transitions else f"{key}.structuredGate.allowedIntents"
        raw, key = transitions.get(name), at
        if intent in ("repeat", "closing"):
            if name in transitions:
                self.report.no_effect(_FILE, key, f"{intent} needs no target")
            return True
        if object_at(raw, "targets"):
            targets = {value: step for value, step in object_at(raw, "targets").items() if self._is_declared(step)}
            ways[intent] = targets.get("default") or next(iter(targets.values()), None)
            choices = list(dict.fromkeys(step for value, step in targets.items() if value != "default"))
            if intent != "jump" and len(choices) > 1:
                ways["jump"] = {"targets": choices}
            what = "a transition by a value: the answer jumps to the step that it names, else the default is taken"
            self.report.attention(_FILE, key, what, whole=True)
            return True
        target = raw.get("target") if isinstance(raw, dict) else raw
        if not isinstance(target, str) and (raw is None or target is not None):
            self.report.attention(_FILE, key, f"names no step for {intent}: it was left out", whole=name in transitions)
            return False
        ways[intent] = target
        self.report.mapped(_FILE, key if not isinstance(raw, dict) else f"{key}.target", str(target or "the end"))
        if isinstance(raw, dict) and "fallback" in raw:
            self.report.no_effect(_FILE, f"{key}.fallback", "the target is a declared step")
        return True

    def _is_declared(self, step: Any) -> bool:
        return isinstance(step, str) and step in self.declared

    def _kept_of_gate(self, gate: dict[str, Any], intents: list[str], key: str) -> dict[str, Any]:
        kept: dict[str, Any] = {"allowedIntents": intents}
        self.report.mapped(_FILE, f"{key}.structuredGate.allowedIntents", ", ".join(intents))
        for field, kind in (("intentField", str), ("targetField", str), ("handoffFields", list)):
            if gate.get(field) and isinstance(gate[field], kind):
                kept[field] = gate[field]
                self.report.mapped(_FILE, f"{key}.structuredGate.{field}")
        fallback = _intent(text_at(gate, "fallbackIntent"))
        fallback = fallback if fallback in intents else ("handoff" if fallback == "closing" else "")
        if fallback in intents:
            kept["fallbackIntent"] = fallback
            self.report.mapped(_FILE, f"{key}.structuredGate.fallbackIntent", fallback)
        for field in ("intentSchemaRef", "targetMode", "failFast"):
            if field in gate:
                self.report.no_effect(_FILE, f"{key}.structuredGate.{field}", "an answer is asked for again instead")
        return kept

    def _targets(self, step: ImportedStep) -> list[str]:
        found: list[str] = []
        for way in step.settings.get("transitions", {}).values():
            found += way["targets"] if isinstance(way, dict) else [way] if isinstance(way, str) else []
        return found

    def _attach_conditions(self, before_closing: tuple[str, ...]) -> None:
        closing = [name for name, step in self.steps.items() if step.kind is StepKind.CLOSURE]
        for name in closing if before_closing else ():
            self.steps[name].settings["completionConditions"] = [{"validator": each} for each in before_closing]
        for name, step in self.declared.items():
            if name in self.steps:
                self._conditions(step, [name], f"steps.{name}")
                self.steps[name].retries = text_at(step, "c3")
        for key, name, raw in self.validated:
            at = [name] if name in self.steps else closing if name.startswith("closure.") else []
            if not at:
                self.report.no_effect(_FILE, key, "there is no such step")
                continue
            self._conditions(raw, at, key)
            self.report.sections(_FILE, key, f"{key}.onFailure", *(f"{key}.{field}" for field in CONDITION_LISTS))
            for each in at if text_at(raw, "c3") else ():
                self.steps[each].retries = text_at(raw, "c3")
            for field, why in _VALIDATION_NO_EFFECT.items():
                if field in raw:
                    self.report.no_effect(_FILE, f"{key}.{field}", why)

    def _conditions(self, raw: dict[str, Any], names: list[str], key: str) -> None:
        if raw.get("preflightConditions"):
            what = "Genba checks when a step is left, not before it: look whether the step needs it"
            self.report.attention(_FILE, f"{key}.preflightConditions", what, whole=True)
        wanted = []
        for field in CONDITION_LISTS:
            for at, each in enumerate(list_at(raw, field)):
                named = each if isinstance(each, str) else text_at(each, "validator")
                if named:
                    wanted.append(named)
                    row = f"{key}.{field}[{at}].validator" if isinstance(each, dict) else f"{key}.{field}"
                    self.conditions.append((named, row, names))
        failure = object_at(raw, "onFailure")
        for name in names:
            settings = self.steps[name].settings
            listed = settings.get("completionConditions", [])
            new = [{"validator": each} for each in wanted]
            merged = [*listed, *(each for each in new if each not in listed)]
            if merged:
                settings["completionConditions"] = merged
            if wanted and failure.get("action") in ("retry", "abort", "skip"):
                most = failure.get("maxAttempts", 3)
                settings["onFailure"] = {"action": failure["action"], "maxAttempts": most}
        for field in ("action", "maxAttempts") if wanted else ():
            if field in failure:
                self.report.mapped(_FILE, f"{key}.onFailure.{field}")

    def keep_conditions(self, validators: dict[str, Any]) -> None:
        """Leave out the conditions whose validator was left out, and report what became of each."""
        for named, key, names in self.conditions:
            if named in validators or named in BUILTIN_CHECKS:
                self.report.mapped(_FILE, key, ", ".join(f"steps.{name}.completionConditions" for name in names))
            elif named in object_at(self.raw, "validators"):
                self.report.no_effect(_FILE, key, f"validators.{named} was left out")
            else:
                self.report.attention(_FILE, key, f"there is no validator {named}: nothing is checked")
        for step in self.steps.values():
            wanted = step.settings.get("completionConditions", [])
            kept = [each for each in wanted if each["validator"] in validators or each["validator"] in BUILTIN_CHECKS]
            if kept:
                step.settings["completionConditions"] = kept
            elif wanted:
                step.settings.pop("completionConditions", None)
                step.settings.pop("onFailure", None)


def _intent(word: str) -> str:
    """The intent of Genba's that a word of the original stands for; empty for none."""
    return INTENTS.get(word.lower(), "")


def _named_by(transitions: dict[str, Any], word: str, meant: str, intent: str) -> str:
    """The key of the transition for a word of allowedIntents: either may be an alias of the other."""
    same = [name for name in transitions if _intent(name) in (meant, intent)]
    return min(same, key=lambda name: (name != meant, name != word, _intent(name) != meant), default=word)
