"""Modes and models that an agent of the Agent Client Protocol offers, in either of its two forms."""

from collections.abc import Mapping
from typing import Any

import msgspec

from genba.connections.agents.loose_values import as_text
from genba.domain.errors import UnrecoverableError

_PLANNING = ("plan", "read-only", "readonly")
_WORKING = ("default", "build")
_OLD_WAYS = {
    "mode": ("modes", "availableModes", "id", "currentModeId", "session/set_mode", "modeId"),
    "model": ("models", "availableModels", "modelId", "currentModelId", "session/set_model", "modelId"),
}
"""How each was offered before there were options: the parts of the answer, and the request that sets it."""
_SET_OPTION = "session/set_config_option"


class Choice(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that can be set."""

    name: str
    """mode or model."""
    now: str
    values: tuple[str, ...]
    method: str
    field: str = ""
    """The field of the request that takes the value."""
    option: str = ""
    """The option that is set; empty where there is a request for it alone."""

    def request(self, value: str) -> dict[str, str]:
        return {"configId": self.option, "value": value} if self.option else {self.field: value}

    def is_now(self, wanted: str) -> bool:
        return _is(self.now, wanted)


def choices_of(opened: Mapping[str, Any]) -> dict[str, Choice]:
    """What can be chosen in a session, by name."""
    found: dict[str, Choice] = {}
    for name, (part, listed, key, current, method, field) in _OLD_WAYS.items():
        state = opened.get(part)
        if isinstance(state, dict):
            values = tuple(_texts(state.get(listed), key))
            found[name] = Choice(name=name, now=as_text(state.get(current)), values=values, method=method, field=field)
    options = opened.get("configOptions")
    for option in options if isinstance(options, list) else ():
        name = as_text(option.get("category")) or as_text(option.get("id")) if isinstance(option, dict) else ""
        if name in _OLD_WAYS and option.get("type") == "select":
            values = tuple(_values(option.get("options")))
            now, own = as_text(option.get("currentValue")), as_text(option.get("id"))
            found[name] = Choice(name=name, now=now, values=values, method=_SET_OPTION, option=own)
    return found


def mode_for(choices: Mapping[str, Choice], wanted: str, plan: bool) -> str:
    """The mode that has to be set; empty when it is right as it is. Planning goes before what the settings name."""
    choice = choices.get("mode")
    if choice is None:
        if wanted and not plan:
            raise UnrecoverableError(f'the agent has no modes, so none that is called "{wanted}"', hint=_CHECK)
        return ""
    planning = next((value for value in choice.values if value.lower() in _PLANNING), "")
    if plan:
        mode = planning or choice.now
    elif wanted:
        if wanted not in choice.values:
            known = ", ".join(choice.values)[:200]
            raise UnrecoverableError(f'the agent has no mode "{wanted}"; it has {known}', hint=_CHECK)
        mode = wanted
    elif choice.now == planning:  # the session was left in it by an earlier question
        others = [value for value in choice.values if value != planning]
        mode = next((value for value in others if value.lower() in _WORKING), next(iter(others), choice.now))
    else:
        mode = choice.now
    return "" if mode == choice.now else mode


def model_for(choice: Choice, wanted: str) -> str:
    """The model that has to be set; empty when it is set already, or is not on offer."""
    if not wanted or choice.is_now(wanted):
        return ""
    if wanted in choice.values:
        return wanted
    close = [value for value in choice.values if _is(value, wanted)]
    return close[0] if len(close) == 1 else ""


_CHECK = "check runner.adapter.mode"


def _is(value: str, wanted: str) -> bool:
    """Whether a value is a model; some agents put the provider before its name."""
    return value == wanted or value.rpartition("/")[2] == wanted


def _values(options: Any) -> list[str]:
    """The values of an option, in groups or not."""
    found: list[str] = []
    for each in options if isinstance(options, list) else ():
        if isinstance(each, dict) and isinstance(each.get("options"), list):
            found += _texts(each["options"], "value")
        else:
            found += _texts([each], "value")
    return found


def _texts(entries: Any, key: str) -> list[str]:
    found = [entry.get(key) for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []
    return [value for value in found if isinstance(value, str) and value]
