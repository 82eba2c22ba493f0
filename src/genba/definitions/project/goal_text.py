"""Goals as people write them: a mapping, `type: value`, or one line such as `tests_pass:pytest -q`."""

import re
from typing import Any

from genba.domain.convert import shape
from genba.domain.errors import ConfigurationError
from genba.domain.goals.goal import GOAL_TYPES, EndpointResponds, Goal, ResponseContains
from genba.domain.problems import Problem

_ASKED = re.compile(r"(?:(?P<method>[A-Za-z]+)\s+)?(?P<url>\S+)(?:\s+(?P<rest>.+))?")
_STATUS = re.compile(r"(?:→|->)?\s*(?P<status>\d{3})")
_PATH = re.compile(r"(?P<path>\$\S*)(?:\s+exists|\s*==\s*(?P<value>.+))?")


def written_goals(raw: Any) -> Any:
    """A list of goals with every short form written out; what is no list of goals is left to the reader."""
    return [_written(item) for item in raw] if isinstance(raw, list) else raw


def read_goals(raw: Any, shown: str) -> tuple[Goal, ...]:
    """Goals out of plain data, or everything that is wrong with them."""
    goals, problems = shape(written_goals(raw), tuple[Goal, ...], shown)
    problems = problems or tuple(problem for goal in goals or () for problem in _conditions(goal, shown))
    if goals is None or problems:
        raise ConfigurationError(problems, hint="genba schema goal")
    return goals


def read_goal_line(text: str) -> Goal:
    """One goal of the command line: `TYPE`, `TYPE:VALUE`, or a mapping in braces."""
    raw: Any = text
    if text.lstrip().startswith("{"):
        raw = goals_from_yaml(f"[{text}]", "--goal")[0]
    try:
        return read_goals([raw], "--goal")[0]
    except ConfigurationError as error:
        lines = tuple(
            Problem(p.file, p.path.removeprefix("[0]").lstrip("."), p.message, p.hint) for p in error.problems
        )
        raise ConfigurationError(lines, hint=error.hint) from error


def goals_from_yaml(text: str, shown: str) -> list[Any]:
    """A list of goals in YAML, as plain data."""
    import yaml  # noqa: PLC0415  (only who writes goals in YAML pays for it)

    from genba.domain.convert import read_plain  # noqa: PLC0415
    from genba.domain.safe_yaml import load_yaml  # noqa: PLC0415

    try:
        value, problems = read_plain(lambda: load_yaml(text), shown, "YAML")
    except yaml.YAMLError as error:
        message = getattr(error, "problem", None) or str(error)
        raise ConfigurationError((Problem(shown, "", f"not YAML: {message}"),), hint="genba schema goal") from error
    if not problems and isinstance(value, dict) and isinstance(value.get("goals"), list):
        value = value["goals"]
    if not problems and not isinstance(value, list):
        problems = (Problem(shown, "", "expected a list of goals"),)
    if problems:
        raise ConfigurationError(problems, hint="genba schema goal")
    return list(value)


def rules_written(raw: dict[str, Any]) -> dict[str, Any]:
    """The sections of a project's settings with the short forms of goals written out."""
    written = dict(raw)
    if "dod" in written:
        written["dod"] = written_goals(written["dod"])
    types = written.get("task_types")
    if isinstance(types, dict):
        written["task_types"] = {
            name: {**message, "goals": written_goals(message["goals"])}
            if isinstance(message, dict) and "goals" in message
            else message
            for name, message in types.items()
        }
    return written


def goal_problems(raw: Any, shown: str, path: str) -> tuple[Problem, ...]:
    """What the types cannot say: a goal that can be read and has no condition. Others are none of its business."""
    read: list[Goal | None] = []
    for each in raw if isinstance(raw, list) else ():
        read.append(shape(each, Goal, shown)[0])  # type: ignore[arg-type]
    return tuple(
        Problem(problem.file, f"{path}[{at}].{problem.path}", problem.message, problem.hint)
        for at, goal in enumerate(read)
        if goal is not None
        for problem in _conditions(goal, shown)
    )


def _written(raw: Any) -> Any:
    if isinstance(raw, str):
        kind, colon, value = raw.partition(":")
        return _short(kind.strip(), value.strip() if colon else None)
    if isinstance(raw, dict) and "type" not in raw and len(raw) == 1:
        kind, value = next(iter(raw.items()))
        if kind in GOAL_TYPES and isinstance(value, dict):
            return {"type": kind, **value}
        return _short(kind, value)
    return raw


def _short(kind: str, value: Any) -> Any:
    if kind not in GOAL_TYPES:
        return {"type": kind}
    if value is None or value is True or value == "":
        return {"type": kind}
    main = GOAL_TYPES[kind].main
    if kind in ("endpoint_responds", "response_contains") and isinstance(value, str):
        path = _PATH.fullmatch(value.strip()) if kind == "response_contains" else None
        return {"type": kind, **(_contained(path) if path is not None else _asked(value))}
    return {"type": kind, main: value} if main else {"type": kind, "condition": value}


def _asked(text: str) -> dict[str, Any]:
    """`POST /api/login → 200` and `GET /api/me $.token == "x"`."""
    found = _ASKED.fullmatch(text.strip())
    if found is None:
        return {"url": text}
    asked: dict[str, Any] = {"url": found["url"]}
    if found["method"]:
        asked["method"] = found["method"].upper()
    rest = (found["rest"] or "").strip()
    if rest and (status := _STATUS.fullmatch(rest)):
        asked["status"] = int(status["status"])
    elif rest and (path := _PATH.fullmatch(rest)):
        asked |= _contained(path)
    elif rest:
        asked["text"] = rest
    return asked


def _contained(path: re.Match[str]) -> dict[str, Any]:
    """`$.token exists` and `$.token == "x"`: what the answer contains."""
    found: dict[str, Any] = {"json_path": path["path"]}
    if path["value"] is not None:
        found["equals"] = _value(path["value"])
    return found


def _value(text: str) -> Any:
    import json  # noqa: PLC0415  (only a goal that compares needs it)

    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _conditions(goal: Goal, shown: str) -> list[Problem]:
    if isinstance(goal, ResponseContains) and goal.json_path is None and goal.text is None:
        return [Problem(shown, "json_path", "is required and missing: what should the answer contain?",
                        'json_path: "$.token"   or   text: "…"')]  # fmt: skip
    if isinstance(goal, ResponseContains) and goal.json_path is not None and not goal.json_path.startswith("$"):
        return [Problem(shown, "json_path", f'"{goal.json_path}" is not a JSONPath: it begins with $')]
    if isinstance(goal, ResponseContains) and not goal.url:
        return []
    if isinstance(goal, EndpointResponds | ResponseContains) and not goal.url.startswith(("/", "http://", "https://")):
        return [Problem(shown, "url", f'"{goal.url}" is neither a path nor an address', "/api/login")]
    return []
