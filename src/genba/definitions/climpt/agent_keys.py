"""agent.json: the layout of 1.12 out of every version, then each key as Genba has it."""

import re
from typing import Any

from genba.definitions.agent.agent_json import Limits
from genba.definitions.agent.cross_checks import BUILTIN_HANDLERS
from genba.definitions.agent.parameters import ISSUE, RUN_OPTIONS, fits
from genba.definitions.climpt.layout import in_layout_of_1_12
from genba.definitions.climpt.names import COMPLETION_TYPES
from genba.definitions.climpt.reading import list_at, object_at, text_at
from genba.definitions.climpt.report import ImportReport
from genba.definitions.steps.variables import RESERVED
from genba.domain.convert import shape
from genba.domain.sessions.outcomes import ClosureAction, PermissionMode

_FILE = "agent.json"
_PARAMETER_KEYS = ("type", "description", "required", "default", "cli")
_TYPES = ("string", "number", "integer", "boolean", "array")
_LABELS = ("requirements", "inProgress", "blocked", "completion")
_FINALIZE = {"autoMerge": bool, "push": bool, "remote": str, "createPr": bool, "prTarget": str}
_CLI = re.compile(r"--[a-z][a-z0-9-]*")
_ISSUE = {"type": "number", "description": "Number of the issue", "cli": "--issue"}
_KEYWORD = "TASK_COMPLETE"
_MAX_CHECKS = 10
_OPERATORS = {"and": "all", "all": "all", "or": "any", "first": "any", "any": "any"}


class AgentKeys:
    """Converts one agent.json, with its config.json over it."""

    def __init__(self, raw: dict[str, Any], config: dict[str, Any], has_closure: bool, report: ImportReport) -> None:
        self.report = report
        self.has_closure = has_closure
        self.before_closing = _before_closing(raw, report)
        """Checks that must hold before the issue is closed, in version 1.10."""
        self.raw = in_layout_of_1_12(raw, config, report)
        self.runner: dict[str, Any] = {}
        self.parameters: dict[str, Any] = {}

    def convert(self, name: str) -> dict[str, Any]:
        raw = self.raw
        self.report.sections(_FILE, *_SECTIONS)
        if "$schema" in raw:
            self.report.no_effect(_FILE, "$schema", "it names the schema of the original: `genba schema agent`")
        self.report.mapped(_FILE, "name", name)
        self.parameters = self._parameters(object_at(raw, "parameters"))
        runner = object_at(raw, "runner")
        self._flow(object_at(runner, "flow"))
        self._limits(object_at(runner, "limits"))
        self._completion(object_at(runner, "completion"))
        self._boundaries(object_at(runner, "boundaries"))
        self._github(object_at(object_at(runner, "integrations"), "github"))
        self._actions(object_at(runner, "actions"))
        self._execution(object_at(runner, "execution"))
        self._logging(object_at(runner, "logging"))
        shown = {key: text_at(raw, key).strip() for key in ("displayName", "description", "version")}
        shown = {key: text for key, text in shown.items() if text}
        for key in shown:
            self.report.mapped(_FILE, key)
        described = {"description": f"Imported agent {name}", **shown}
        return {"name": name, **described, "parameters": self.parameters, "runner": self.runner}

    def _parameters(self, raw: dict[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, declared in raw.items():
            key = f"parameters.{name}"
            if not isinstance(declared, dict):
                self.report.attention(_FILE, key, "is not an object and was left out", whole=True)
                continue
            option = text_at(declared, "cli")
            if option in RUN_OPTIONS and name != ISSUE:
                self.report.no_effect(_FILE, key, f"genba run has {option} for every agent")
                continue
            if name in RESERVED:
                self.report.no_effect(_FILE, key, f"Genba supplies {{uv-{name}}} itself")
                continue
            found[name] = self._parameter(key, declared)
            self.report.mapped(_FILE, key, whole=True)
        return found

    def _parameter(self, key: str, declared: dict[str, Any]) -> dict[str, Any]:
        kept = {name: value for name, value in declared.items() if name in _PARAMETER_KEYS and value is not None}
        if kept.get("type") not in _TYPES:
            self.report.attention(_FILE, f"{key}.type", f"{kept.get('type')!r} is no type of Genba's: string is used")
            kept["type"] = "string"
        if not _CLI.fullmatch(str(kept.get("cli", "--option"))):
            self.report.attention(_FILE, f"{key}.cli", f"{kept.pop('cli')!r} is no long option: the name is used")
        if "default" in kept and not fits(kept["default"], kept["type"]):
            self.report.attention(_FILE, f"{key}.default", f"{kept.pop('default')!r} is not of the type {kept['type']}")
        for extra in sorted(set(declared) - set(_PARAMETER_KEYS)):
            self.report.no_effect(_FILE, f"{key}.{extra}", "values are checked by their type alone")
        return kept

    def _flow(self, flow: dict[str, Any]) -> None:
        kept: dict[str, Any] = {}
        if isinstance(flow.get("defaultModel"), str):
            kept["defaultModel"] = flow["defaultModel"]
            self.report.mapped(_FILE, "runner.flow.defaultModel", "it had no effect in the original")
        prompts = object_at(flow, "prompts")
        if "registry" in prompts:
            self.report.mapped(_FILE, "runner.flow.prompts.registry", "steps_registry.json")
        if "fallbackDir" in prompts:
            why = "every step has a prompt file of its own"
            self.report.no_effect(_FILE, "runner.flow.prompts.fallbackDir", why)
        if kept:
            self.runner["flow"] = kept

    def _completion(self, raw: dict[str, Any]) -> None:
        most = _count(object_at(raw, "config"), "maxIterations")
        completion = self._condition(raw, "runner.completion")
        self.runner["completion"] = completion
        limits = self.runner.get("limits", {})
        if "maxIterations" in limits and most and completion["type"] != "iterationBudget":
            why = "runner.limits.maxIterations is set"
            self.report.no_effect(_FILE, "runner.completion.config.maxIterations", why)
        elif most and completion["type"] != "iterationBudget":
            self.runner["limits"] = {**limits, "maxIterations": most}
            self.report.mapped(_FILE, "runner.completion.config.maxIterations", "runner.limits.maxIterations")

    def _condition(self, raw: dict[str, Any], key: str) -> dict[str, Any]:
        kind = COMPLETION_TYPES.get(str(raw.get("type")), "")
        if not kind:
            kind = "stepMachine" if self.has_closure else "iterationBudget"
            self.report.attention(_FILE, f"{key}.type", f"{raw.get('type')!r} is not known: {kind} is used")
        else:
            self.report.mapped(_FILE, f"{key}.type", kind)
        config = object_at(raw, "config")
        self.report.sections(_FILE, f"{key}.config")
        converted = getattr(self, f"_{_SNAKE[kind]}")(config, f"{key}.config")
        for extra in sorted(set(config) - _CONFIG_KEYS[kind] - {"maxIterations"}):
            self.report.no_effect(_FILE, f"{key}.config.{extra}", f"{kind} reads no such key")
        return converted if "type" in converted else {"type": kind, "config": converted}

    def _limits(self, raw: dict[str, Any]) -> None:
        kept = {key: value for key, value in raw.items() if not shape({key: value}, Limits, _FILE)[1]}
        for key in kept:
            self.report.mapped(_FILE, f"runner.limits.{key}")
        if kept:
            self.runner["limits"] = kept

    def _external_state(self, config: dict[str, Any], key: str) -> dict[str, Any]:  # noqa: ARG002
        self._need_issue()
        return {}

    def _iteration_budget(self, config: dict[str, Any], key: str) -> dict[str, Any]:
        most = _count(config, "maxIterations")
        if most:
            self.report.mapped(_FILE, f"{key}.maxIterations")
        else:
            self.report.attention(_FILE, f"{key}.maxIterations", "is no number of iterations: 1 is used", whole=True)
        return {"maxIterations": most or 1}

    def _check_budget(self, config: dict[str, Any], key: str) -> dict[str, Any]:
        most = _count(config, "maxChecks")
        if most:
            self.report.mapped(_FILE, f"{key}.maxChecks")
        return {"maxChecks": most or _MAX_CHECKS}

    def _keyword_signal(self, config: dict[str, Any], key: str) -> dict[str, Any]:
        word = _KEYWORD
        for name in ("completionKeyword", "verdictKeyword"):
            if text_at(config, name):
                word = config[name]
                self.report.mapped(_FILE, f"{key}.{name}", "must stand in the structured output; prose does not count")
        return {"completionKeyword": word}

    def _structured_signal(self, config: dict[str, Any], key: str) -> dict[str, Any]:
        schema, fields = config.get("outputSchema"), config.get("requiredFields")
        for name in ("signalType", "responseFormat"):
            if name in config:
                self.report.no_effect(_FILE, f"{key}.{name}", "the schema of the answer decides alone")
        if isinstance(schema, str | dict) and schema:
            self.report.mapped(_FILE, f"{key}.outputSchema", whole=True)
            return {"outputSchema": schema}
        properties: dict[str, Any] = {}
        if isinstance(fields, dict):
            properties = {str(name): {"const": value} for name, value in fields.items()}
        elif isinstance(fields, list):
            properties = {name: {} for name in fields if isinstance(name, str)}
        if properties:
            self.report.mapped(_FILE, f"{key}.requiredFields", "outputSchema", whole=True)
        else:
            properties = {"status": {"const": "completed"}}
            self.report.attention(_FILE, key, 'names no field: an answer with "status": "completed" is complete')
        return {"outputSchema": {"type": "object", "properties": properties, "required": list(properties)}}

    def _step_machine(self, config: dict[str, Any], key: str) -> dict[str, Any]:
        for name in ("registryPath", "entryStep"):
            if name in config:
                self.report.mapped(_FILE, f"{key}.{name}", "steps_registry.json")
        return {}

    def _composite(self, config: dict[str, Any], key: str) -> dict[str, Any]:
        listed = next((name for name in ("conditions", "completionConditions") if name in config), "conditions")
        parts = [(at, part) for at, part in enumerate(list_at(config, listed)) if isinstance(part, dict)]
        named = [text_at(config, name) for name in ("operator", "mode") if text_at(config, name) in _OPERATORS]
        for name in ("operator", "mode"):
            if text_at(config, name) in _OPERATORS:
                self.report.mapped(_FILE, f"{key}.{name}", "mode")
        if not parts:
            self.report.attention(_FILE, f"{key}.{listed}", "is empty: the steps decide", whole=True)
            return {"type": "stepMachine", "config": {}}
        conditions = [self._condition(part, f"{key}.{listed}[{at}]") for at, part in parts]
        return {"mode": _OPERATORS[named[0]] if named else "any", "completionConditions": conditions}

    def _custom(self, config: dict[str, Any], key: str) -> dict[str, Any]:
        path = text_at(config, "handlerPath") or text_at(config, "completionHandler")
        instead = "stepMachine" if self.has_closure else "iterationBudget"
        what = f"{path or 'the handler'} is TypeScript: write module:factory in Python; until then {instead} is used"
        self.report.attention(_FILE, key, what, whole=True)
        return {"type": instead, "config": {} if instead == "stepMachine" else {"maxIterations": 1}}

    def _boundaries(self, raw: dict[str, Any]) -> None:
        kept: dict[str, Any] = {}
        if isinstance(raw.get("allowedTools"), list):
            kept["allowedTools"] = [str(tool) for tool in raw["allowedTools"]]
            self.report.mapped(_FILE, "runner.boundaries.allowedTools")
        mode = raw.get("permissionMode")
        if mode in list(PermissionMode):
            kept["permissionMode"] = mode
            self.report.mapped(_FILE, "runner.boundaries.permissionMode")
        elif isinstance(mode, str):
            kept["permissionMode"] = str(PermissionMode.ACCEPT_EDITS)
            self.report.attention(_FILE, "runner.boundaries.permissionMode", f"{mode!r} is not known: acceptEdits")
        for key in sorted(set(raw) - {"allowedTools", "permissionMode"}):
            what = "set runner.sandbox: Genba runs every agent in a sandbox of its own"
            self.report.attention(_FILE, f"runner.boundaries.{key}", what, whole=True)
        if kept:
            self.runner["boundaries"] = kept

    def _github(self, raw: dict[str, Any]) -> None:
        if not raw:
            return
        kept: dict[str, Any] = {"enabled": raw.get("enabled") is True}
        at = "runner.integrations.github"
        if isinstance(raw.get("enabled"), bool):
            self.report.mapped(_FILE, f"{at}.enabled")
        labels = object_at(raw, "labels")
        kept_labels = {name: labels[name] for name in _LABELS if name in labels}
        for name in labels:
            if name in _LABELS:
                self.report.mapped(_FILE, f"{at}.labels.{name}", whole=True)
            else:
                self.report.no_effect(_FILE, f"{at}.labels.{name}", "no command sets this label")
        if kept_labels:
            kept["labels"] = kept_labels
        action = raw.get("defaultClosureAction")
        if action in list(ClosureAction):
            kept["defaultClosureAction"] = action
            self.report.mapped(_FILE, f"{at}.defaultClosureAction")
        elif action is not None:
            self.report.attention(_FILE, f"{at}.defaultClosureAction", f"{action!r} is not known: close is used")
        if kept["enabled"]:
            self._need_issue()
        self.runner["integrations"] = {"github": kept}

    def _actions(self, raw: dict[str, Any]) -> None:
        if not raw:
            return
        at, handlers = "runner.actions", {}
        for kind, handler in object_at(raw, "handlers").items():
            if handler in BUILTIN_HANDLERS:
                handlers[kind] = handler
                self.report.mapped(_FILE, f"{at}.handlers.{kind}")
                continue
            what = f"{handler} is no handler of Genba's: write file.py:function, or name one of: "
            self.report.attention(_FILE, f"{at}.handlers.{kind}", what + ", ".join(BUILTIN_HANDLERS), whole=True)
        types = [kind for kind in list_at(raw, "types") if isinstance(kind, str)]
        kept = {"enabled": raw.get("enabled") is True, "types": list(dict.fromkeys([*types, *handlers]))}
        if text_at(raw, "outputFormat"):
            kept["outputFormat"] = raw["outputFormat"]
        expected: dict[str, type] = {"enabled": bool, "types": list, "outputFormat": str}
        for key, form in expected.items():
            if isinstance(raw.get(key), form):
                self.report.mapped(_FILE, f"{at}.{key}", whole=True)
        self.runner["actions"] = {**kept, **({"handlers": handlers} if handlers else {})}

    def _execution(self, raw: dict[str, Any]) -> None:
        worktree, finalize = object_at(raw, "worktree"), object_at(raw, "finalize")
        at = "runner.execution"
        kept: dict[str, dict[str, Any]] = {}
        if worktree:
            kept["worktree"] = {"enabled": worktree.get("enabled") is not False}
            if isinstance(worktree.get("enabled"), bool):
                self.report.mapped(_FILE, f"{at}.worktree.enabled")
            root = text_at(worktree, "root")
            if _is_inside(root):
                kept["worktree"]["root"] = root
                self.report.mapped(_FILE, f"{at}.worktree.root")
            elif root:
                why = f"{root} is outside of the repository: .worktrees is used"
                self.report.no_effect(_FILE, f"{at}.worktree.root", why)
        settings = {name: value for name, value in finalize.items() if isinstance(value, _FINALIZE.get(name, ()))}
        for name in settings:
            self.report.mapped(_FILE, f"{at}.finalize.{name}")
        if settings:
            kept["finalize"] = settings
        if kept:
            self.runner["execution"] = kept

    def _logging(self, raw: dict[str, Any]) -> None:
        directory = text_at(raw, "directory")
        if _is_inside(directory):
            self.runner["logging"] = {"directory": directory}
            self.report.mapped(_FILE, "runner.logging.directory")
        elif directory:
            why = f"{directory!r} is outside of the repository"
            self.report.no_effect(_FILE, "runner.logging.directory", why)
        if raw.get("format") == "jsonl":
            self.report.mapped(_FILE, "runner.logging.format", "a journal is always one JSON line an event")
        elif "format" in raw:
            self.report.attention(_FILE, "runner.logging.format", "a journal is one JSON line an event: jsonl is used")
        if "maxFiles" in raw:
            self.report.no_effect(_FILE, "runner.logging.maxFiles", "Genba keeps every journal")

    def _need_issue(self) -> None:
        declared = self.parameters.get("issue")
        if declared is None:
            self.parameters["issue"] = dict(_ISSUE)
            self.report.attention(_FILE, "parameters.issue", "was not declared and was added")
        elif declared["type"] not in ("number", "integer"):
            declared["type"] = "number"
            declared.pop("default", None)
            self.report.attention(_FILE, "parameters.issue.type", "is number now: it is the number of an issue")


_SECTIONS = (
    "parameters",
    "behavior",
    "runner",
    "runner.flow",
    "runner.flow.prompts",
    "runner.completion",
    "runner.limits",
    "runner.boundaries",
    "runner.integrations",
    "runner.integrations.github",
    "runner.integrations.github.labels",
    "runner.actions",
    "runner.actions.handlers",
    "runner.execution",
    "runner.execution.worktree",
    "runner.execution.finalize",
    "runner.logging",
)
_SNAKE = {
    "externalState": "external_state",
    "iterationBudget": "iteration_budget",
    "checkBudget": "check_budget",
    "keywordSignal": "keyword_signal",
    "structuredSignal": "structured_signal",
    "stepMachine": "step_machine",
    "composite": "composite",
    "custom": "custom",
}
_CONFIG_KEYS: dict[str, set[str]] = {
    "externalState": set(),
    "iterationBudget": set(),
    "checkBudget": {"maxChecks"},
    "keywordSignal": {"completionKeyword", "verdictKeyword"},
    "structuredSignal": {"requiredFields", "outputSchema", "signalType", "responseFormat"},
    "stepMachine": {"registryPath", "entryStep"},
    "composite": {"conditions", "completionConditions", "operator", "mode"},
    "custom": {"handlerPath", "completionHandler"},
}


def _count(raw: dict[str, Any], key: str) -> int:
    """The number at a key that is 1 or more; else 0."""
    value = raw.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def _is_inside(path: str) -> bool:
    """Whether a path is one below the top of the repository."""
    return bool(path) and not path.startswith(("/", "~")) and ".." not in path.replace("\\", "/").split("/")


def _before_closing(raw: dict[str, Any], report: ImportReport) -> tuple[str, ...]:
    named = object_at(object_at(raw, "behavior"), "preCloseValidation")
    if not named:
        return ()
    key = "behavior.preCloseValidation"
    if not named.get("enabled", True):
        report.no_effect(_FILE, key, "it is not enabled")
        return ()
    report.mapped(_FILE, f"{key}.enabled")
    report.mapped(_FILE, f"{key}.validators", "completionConditions of the closing steps")
    return tuple(name for name in list_at(named, "validators") if isinstance(name, str))
