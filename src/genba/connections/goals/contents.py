"""What an answer must be: its status, a text in it, a value at a JSONPath. Answers are hostile input."""

import itertools
import json
from typing import TYPE_CHECKING, Any

import msgspec

from genba.connections.goals.commands import bounded_line
from genba.domain.errors import CheckBrokenError
from genba.domain.goals.goal import EndpointResponds, ResponseContains

if TYPE_CHECKING:
    from jsonpath_rfc9535 import JSONPathQuery

    from genba.connections.goals.http_requests import Answer

_FOUND_AT_MOST = 10_000
_SHOWN_VALUES = 3


class Unusable(CheckBrokenError):
    """The goal cannot be checked as it is written: an error, and no failure of the work."""


class Expectation(msgspec.Struct, frozen=True, kw_only=True):
    """What a goal wants of an answer."""

    status: int | None
    text: str | None = None
    json_path: str | None = None
    query: Any = None
    equals: Any = msgspec.UNSET

    def judge(self, answer: "Answer") -> tuple[bool, str] | None:
        """Whether an answer is what was wanted, and what it is; None when only `judge_by_path` can tell."""
        if self.status is not None and answer.status != self.status:
            return False, f"{answer.status}, wanted {self.status}"
        if self.text is not None and self.text not in answer.text:
            return False, f"{answer.status}, and the body does not contain {bounded_line(self.text)!r}"
        if self.query is None:
            return True, str(answer.status)
        if not answer.whole:
            return False, f"{answer.status}, and the body is too long to be read as JSON"
        return None

    def judge_by_path(self, text: str) -> tuple[bool, str]:
        """The same by what is at the path. A hostile path or body can take for ever: it wants a limit from outside."""
        try:
            return self._judge_values(_found(self.query, json.loads(text)))
        except (ValueError, RecursionError):
            return False, "and the body is no JSON that can be read"

    def _judge_values(self, found: list[Any]) -> tuple[bool, str]:
        if not found:
            return False, f"and there is nothing at {self.json_path}"
        if self.equals is msgspec.UNSET:
            return True, f"{self.json_path} is there"
        wanted = bounded_line(json.dumps(self.equals, ensure_ascii=False, default=str))
        if any(_same(value, self.equals) for value in found):
            return True, f"{self.json_path} is {wanted}"
        values = ", ".join(bounded_line(json.dumps(value, ensure_ascii=False)) for value in found[:_SHOWN_VALUES])
        return False, f"{self.json_path} is {values}, wanted {wanted}"


def expectation_of(goal: EndpointResponds | ResponseContains) -> Expectation:
    """What a goal wants, read before anything is started."""
    if isinstance(goal, EndpointResponds):
        return Expectation(status=goal.status)
    path = goal.json_path
    if path is None and goal.equals is not msgspec.UNSET:
        path = "$"
    if path is None and goal.text is None:
        raise Unusable("has no condition; name one: json_path: … or text: …")
    query = _compiled(path) if path is not None else None
    return Expectation(status=goal.status, text=goal.text, json_path=path, query=query, equals=goal.equals)


def _compiled(path: str) -> "JSONPathQuery":
    from jsonpath_rfc9535 import JSONPathEnvironment, JSONPathError  # noqa: PLC0415  (only goals with a path pay)

    try:
        return JSONPathEnvironment().compile(path)
    except (JSONPathError, RecursionError) as error:
        raise Unusable(f"{bounded_line(path)} is no JSONPath: {bounded_line(str(error))}") from error


def _found(query: "JSONPathQuery", value: Any) -> list[Any]:
    """The values at a path. Raises ValueError for a value that is nested too deep."""
    from jsonpath_rfc9535 import JSONPathError  # noqa: PLC0415

    try:
        return [node.value for node in itertools.islice(query.finditer(value), _FOUND_AT_MOST)]
    except JSONPathError as error:
        raise ValueError(str(error)) from error


def _same(found: Any, wanted: Any) -> bool:
    """Equal as JSON is: true is not 1, but 1 is 1.0."""
    if isinstance(found, bool) or isinstance(wanted, bool):
        return found is wanted
    match found, wanted:
        case (list(), list() | tuple()):
            return len(found) == len(wanted) and all(map(_same, found, wanted))
        case (dict(), dict()):
            return found.keys() == wanted.keys() and all(_same(found[name], wanted[name]) for name in found)
    return bool(found == wanted)
