"""Parameters of an agent as options of the command line."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from genba.definitions.agent.agent_json import Parameter
from genba.definitions.steps.partial_data import LeftOut
from genba.definitions.steps.variables import RESERVED
from genba.domain.problems import Problem

RUN_OPTIONS = (
    "--adapter",
    "--base-branch",
    "--branch",
    "--create-pr",
    "--help",
    "--i-accept-the-risk",
    "--issue",
    "--json",
    "--may-change",
    "--mode",
    "--model",
    "--no-merge",
    "--pr-target",
    "--push",
    "--push-remote",
    "--quiet",
    "--resume",
    "--review",
    "--sandbox",
    "--set",
    "--strict-options",
)
"""The options that `genba run` has for every agent. An agent cannot declare them, except --issue for `issue`."""

ITERATION_PARAMETERS = ("maxIterations", "iterateMax")
"""Parameters of these names set the number of iterations."""

ISSUE = "issue"
"""The parameter of this name is the number of the issue that the run works on."""

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")

_PYTHON_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "number": (int, float),
    "integer": (int,),
    "boolean": (bool,),
    "array": (list,),
}


def option_name(name: str, parameter: Parameter) -> str:
    """The option of a parameter: the declared one, or the name with dashes."""
    if parameter.cli is not None:
        return parameter.cli
    return "--" + re.sub(r"(?<=[a-z0-9])(?=[A-Z])|_", "-", name).lower()


def options_of(name: str, parameter: Parameter) -> tuple[str, ...]:
    """Every option that a parameter takes: a boolean has a second one that says no."""
    option = option_name(name, parameter)
    return (option, f"--no-{option[2:]}") if parameter.type == "boolean" else (option,)


def check_parameters(parameters: Mapping[str, Parameter], file: str, left: LeftOut) -> Iterator[Problem]:
    options: dict[str, str] = {}
    names: dict[str, str] = {}
    for name, parameter in parameters.items():
        at = f"parameters.{name}"
        if not _NAME.fullmatch(name):
            yield Problem(file, at, "a parameter's name has letters, digits, - and _, and begins with a letter")
            continue
        if name in RESERVED:
            yield Problem(file, at, f"{{uv-{name}}} is a variable of Genba's own")
        if (same := names.setdefault(name.replace("-", "_"), name)) != name:
            yield Problem(file, at, f"has the same option as {same}")
        for option in () if left.lost(f"{at}.cli") else options_of(name, parameter):
            if option in RUN_OPTIONS and (name, option) != (ISSUE, f"--{ISSUE}"):
                yield Problem(file, f"{at}.cli", f"{option} is an option of genba run itself")
            if option in options:
                yield Problem(file, f"{at}.cli", f"{option} is the option of {options[option]} already")
            options[option] = name
        if name == ISSUE and not _names_an_issue(parameter):
            yield Problem(file, f"{at}.type", "must be number: it is the number of an issue, 1 or more")
        elif left.lost(f"{at}.type"):
            continue
        elif parameter.default is not None and not fits(parameter.default, parameter.type):
            yield Problem(file, f"{at}.default", f"is not of the type {parameter.type}")


def _names_an_issue(parameter: Parameter) -> bool:
    wanted = parameter.default
    return parameter.type in ("number", "integer") and (wanted is None or is_issue_number(wanted))


def is_issue_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value >= 1 and value == int(value)


def fits(value: Any, kind: str) -> bool:
    if isinstance(value, bool) and kind != "boolean":
        return False
    return isinstance(value, _PYTHON_TYPES[kind])


def settings_from(name: str, value: Any, completion_type: str) -> dict[str, Any]:
    """What a parameter with a known meaning sets in the definition."""
    if name not in ITERATION_PARAMETERS or value is None:
        return {}
    if completion_type == "iterationBudget":
        return {"runner": {"completion": {"config": {"maxIterations": value}}}}
    return {"runner": {"limits": {"maxIterations": value}}}
