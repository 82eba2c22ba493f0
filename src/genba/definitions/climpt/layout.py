"""One layout out of the flat one of 1.10, of `runner.verdict` of 1.13, and of what config.json sets."""

from typing import Any

from genba.definitions.climpt.names import RUNNER_SECTIONS
from genba.definitions.climpt.reading import value_at
from genba.definitions.climpt.report import ImportReport

_FILE, _CONFIG = "agent.json", "config.json"
_WORKTREE = {"forceWorktree": "enabled", "worktreeRoot": "root"}
_NO_EFFECT = {
    "$schema": "it names the schema of the original",
    "version": "the version of the definition is the one in agent.json",
}
_DEEPEST_OVERRIDE = 8


def in_layout_of_1_12(raw: dict[str, Any], config: dict[str, Any], report: ImportReport) -> dict[str, Any]:
    """A copy of agent.json as 1.12 writes it. Rows about it are about the keys of the original."""
    whole: dict[str, Any] = _copied(raw)
    report.sections(_CONFIG, "overrides", "worktree")
    for old, new in RUNNER_SECTIONS.items():
        if value_at(whole, old) is None:
            continue
        if value_at(whole, new) is not None:
            report.attention(_FILE, old, f"{new} is there too and wins", whole=True)
            continue
        _put(whole, new, _taken(whole, old))
        report.moved(new, _FILE, old)
    for key, value in config.items():
        if key == "overrides" and isinstance(value, dict):
            for name, setting in value.items():
                path = name if name.startswith("runner.") else f"runner.{name}"
                _override(whole, path, setting, f"overrides.{name}", report)
        elif key == "worktree" and isinstance(value, dict):
            for name in sorted(set(value) & set(_WORKTREE)):
                if value[name] is False:  # not forced: what agent.json says still counts
                    report.no_effect(_CONFIG, f"worktree.{name}", "agent.json decides")
                    continue
                path = f"runner.execution.worktree.{_WORKTREE[name]}"
                _override(whole, path, value[name], f"worktree.{name}", report)
        elif key in _NO_EFFECT:
            report.no_effect(_CONFIG, key, _NO_EFFECT[key])
    return whole


def _override(whole: dict[str, Any], path: str, value: Any, key: str, report: ImportReport) -> None:
    """Let config.json win over agent.json."""
    if path.count(".") > _DEEPEST_OVERRIDE:
        report.attention(_CONFIG, key, "names no setting: it was left out", whole=True)
        return
    if value_at(whole, path) is not None:
        report.no_effect(_FILE, path, "config.json sets it")
    _put(whole, path, value)
    report.moved(path, _CONFIG, key)


def _copied(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copied(each) for key, each in value.items()}
    return [_copied(each) for each in value] if isinstance(value, list) else value


def _taken(whole: dict[str, Any], path: str) -> Any:
    above, _, last = path.rpartition(".")
    node = value_at(whole, above) if above else whole
    return node.pop(last, None) if isinstance(node, dict) else None


def _put(whole: dict[str, Any], path: str, value: Any) -> None:
    *above, last = path.split(".")
    node = whole
    for part in above:
        inner = node.setdefault(part, {})
        if not isinstance(inner, dict):
            inner = node[part] = {}
        node = inner
    node[last] = value
