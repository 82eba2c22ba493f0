"""The JSON Schema of a step's answer, made self-contained: references are resolved and `allOf` is merged."""

from typing import Any

from genba.definitions.climpt.reading import ClimptAgent, list_at, object_at, refused, text_at
from genba.domain.problems import Problem

_DEEPEST = 40
_MOST_PARTS = 20_000


class StepSchemas:
    """Finds and resolves the schemas of an agent's steps."""

    def __init__(self, agent: ClimptAgent, base: str) -> None:
        self.agent = agent
        self.base = agent.inside(base) or "schemas"
        self.parts = 0
        self.files: set[str] = set()

    def find(self, reference: Any) -> dict[str, Any] | None:
        """The schema that `outputSchemaRef` names; None where there is none."""
        if isinstance(reference, str):
            file, _, name = reference.partition("#")
        elif isinstance(reference, dict):
            file, name = text_at(reference, "file"), text_at(reference, "schema")
        else:
            return None
        whole = self._file(file)
        found = _at(whole, name)
        if not isinstance(found, dict):
            return None
        resolved = self._resolved(found, file, whole, 0)
        return {key: value for key, value in resolved.items() if key not in ("$id", "$schema", "$defs", "definitions")}

    def _file(self, name: str) -> dict[str, Any]:
        path = f"{self.base}/{name}"
        found = self.agent.json(path)
        if found:
            self.files.add(path)
        return found

    def _resolved(self, node: Any, file: str, whole: dict[str, Any], depth: int) -> Any:
        self.parts += 1
        if self.parts > _MOST_PARTS:
            raise refused(Problem(f"{self.base}/{file}", "", f"its references make more than {_MOST_PARTS} parts"))
        if depth > _DEEPEST:
            return {}  # it contains itself: from here on anything fits
        if isinstance(node, list):
            return [self._resolved(each, file, whole, depth + 1) for each in node]
        if not isinstance(node, dict):
            return node
        if isinstance(node.get("$ref"), str):
            rest = {key: value for key, value in node.items() if key != "$ref"}
            target, _, pointer = node["$ref"].partition("#")
            there = self._file(target) if target else whole
            found = self._resolved(_at(there, pointer) or {}, target or file, there, depth + 1)
            return {**found, **self._resolved(rest, file, whole, depth + 1)}
        resolved = {key: self._resolved(value, file, whole, depth + 1) for key, value in node.items() if key != "allOf"}
        for part in list_at(node, "allOf"):
            resolved = _merged(self._resolved(part, file, whole, depth + 1), resolved)
        return resolved


def set_intents(schema: dict[str, Any], field: str, intents: list[str]) -> None:
    """Let the schema of a step allow the intents that its gate allows, and no other."""
    if field.count(".") > _DEEPEST:
        raise refused(Problem("steps_registry.json", "intentField", f"has more than {_DEEPEST} levels"))
    node = schema
    for part in field.split("."):
        node["properties"] = object_at(node, "properties")
        node["properties"][part] = object_at(node["properties"], part)
        node = node["properties"][part]
    if "enum" in node or "const" in node:
        node.pop("const", None)
        node["enum"] = intents


def _at(whole: Any, name: str) -> Any:
    if name.startswith(("/", "#/")):
        node = whole
        for part in name.lstrip("#").strip("/").split("/"):
            key = part.replace("~1", "/").replace("~0", "~")
            node = node.get(key) if isinstance(node, dict) else None
        return node
    if not name:
        return whole
    for section in (whole.get("definitions"), whole.get("$defs"), whole):
        if isinstance(section, dict) and isinstance(section.get(name), dict):
            return section[name]
    return None


def _merged(below: Any, above: dict[str, Any]) -> dict[str, Any]:
    """Two schemas as one; what stands above wins."""
    if not isinstance(below, dict):
        return above
    merged = {**below, **above}
    for key in ("properties", "patternProperties"):
        if key in below and key in above:
            merged[key] = {**object_at(below, key), **object_at(above, key)}
    if "required" in below and "required" in above:
        names = [*list_at(below, "required"), *list_at(above, "required")]
        merged["required"] = list(dict.fromkeys(name for name in names if isinstance(name, str)))
    return merged
