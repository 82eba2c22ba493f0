"""From untyped data to frozen values, with every problem reported at once.

`msgspec.convert` stops at the first error. `shape` walks the same types, so that a user sees all problems of a file
in one go, each with its path, and unknown keys with the nearest known one. A value that the walk accepts is built by
`msgspec.convert`, which stays the only judge of what is valid.

Before that, data must be plain: what JSON can say, of a size and a depth that a person would write. `read_plain` holds
what a parser returns to that law, so that later code never meets a date, a cycle or a number of five thousand digits.
"""

import json
import math
import types
from collections.abc import Callable, Iterator
from enum import Enum
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

import msgspec

from genba.domain.decoding import fitted
from genba.domain.problems import Problem, did_you_mean, limited

T = TypeVar("T")

DEEPEST = 64
"""Levels of objects and lists in one file."""
MOST_VALUES = 100_000
"""Values in one file; a few lines of YAML with references can stand for billions."""
LARGEST_FILE = 4 * 1024 * 1024
"""Bytes of one file of an agent."""
LARGEST_YAML = 256 * 1024
"""Bytes of one YAML file: reading them takes seconds where other files take none."""
_LARGEST = 2**63 - 1
_NOT_TEXT = "has a character that is not text: {}"
_SHOWN = 80


class TooLargeError(ValueError):
    """A file of machine size: no person wrote it."""


def file_text(content: bytes, most: int = LARGEST_FILE) -> str:
    """The text of a file, of which no more than one byte above `most` needs to have been read."""
    if len(content) > most:
        raise TooLargeError(f"it is larger than {most // 1024} KiB")
    return content.decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")


def read_plain(parse: Callable[[], Any], file: str, kind: str) -> tuple[Any, tuple[Problem, ...]]:
    """What `parse` returns, when it is plain data. An error that is the parser's own kind is left to the caller."""
    try:
        value = parse()
    except RecursionError:
        return None, (Problem(file, "", f"nested too deeply: at most {DEEPEST} levels"),)
    except UnicodeDecodeError as error:
        return None, (Problem(file, f"byte {error.start}", "cannot be read: it is not UTF-8"),)
    except TooLargeError as error:
        return None, (Problem(file, "", f"cannot be read: {error}"),)
    except json.JSONDecodeError as error:
        return None, (Problem(file, f"line {error.lineno}, column {error.colno}", f"not {kind}: {error.msg}"),)
    except ValueError as error:
        return None, (Problem(file, "", f"not {kind}: {str(error).splitlines()[0]}"),)
    problems = plain_problems(value, file)
    return (None, problems) if problems else (value, ())


def one_of_each(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON in which no key stands twice: the second would silently undo the first."""
    made = dict(pairs)
    if len(made) != len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise ValueError(f'the key "{_shown(twice)}" stands there twice')
    return made


def too_deep(value: object) -> bool:
    """Whether data is nested deeper than anybody should have to follow it."""
    level: list[object] = [value]
    for _ in range(DEEPEST + 1):
        level = [
            inner
            for each in level
            if isinstance(each, dict | list | tuple)
            for inner in (each.values() if isinstance(each, dict) else each)
        ]
        if not level:
            return False
    return True


def plain_problems(raw: object, file: str, path: str = "") -> tuple[Problem, ...]:
    """What in some data is not plain: no JSON value, not text, too large or too deep. At most ten are reported."""
    if _is_plain(raw):
        return ()
    found: list[Problem] = []
    waiting: list[tuple[object, str, int]] = [(raw, path, 0)]
    seen = 0
    while waiting and len(found) < 10:  # noqa: PLR2004  (ten are enough to start)
        value, at, depth = waiting.pop()
        seen += 1
        if depth > DEEPEST or seen > MOST_VALUES:
            why = f"nested too deeply: at most {DEEPEST} levels" if depth > DEEPEST else "holds too many values"
            return (Problem(file, at[:_SHOWN], why),)
        if isinstance(value, dict):
            found += [Problem(file, at, wrong, hint) for key in value for wrong, hint in _key_problems(key)]
            waiting += [(inner, _join(at, _shown(key)), depth + 1) for key, inner in value.items()]
        elif isinstance(value, list | tuple):
            waiting += [(inner, f"{at}[{number}]", depth + 1) for number, inner in enumerate(value)]
        else:
            found += [Problem(file, at, wrong, hint) for wrong, hint in _value_problems(value)]
    return tuple(sorted(found))


def _is_plain(raw: object) -> bool:
    """Whether there is nothing to tell of some data: a quick look, level by level."""
    level: list[object] = [raw]
    seen = 0
    for _ in range(DEEPEST + 1):
        seen += len(level)
        if seen > MOST_VALUES:
            return False
        below: list[object] = []
        for value in level:
            kind = type(value)
            if kind is dict:
                if any(type(key) is not str or _not_text(key) for key in value):  # type: ignore[attr-defined]
                    return False
                below += value.values()  # type: ignore[attr-defined]
            elif kind is list:
                below += value  # type: ignore[arg-type]
            elif next(_value_problems(value), None) is not None:
                return False
        if not below:
            return True
        level = below
    return False


def _key_problems(key: object) -> Iterator[tuple[str, str]]:
    if not isinstance(key, str):
        yield f"the key {_shown(key)} is not a text", "put quotes around it"
    elif wrong := _not_text(key):
        yield f"the key {_shown(key)} {wrong}", ""


def _value_problems(value: object) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        if wrong := _not_text(value):
            yield wrong, ""
    elif isinstance(value, int) and abs(value) > _LARGEST:
        yield "is a number with too many digits", ""
    elif isinstance(value, float) and not math.isfinite(value):
        yield f"{value} is not a number", ""
    elif value is not None and not isinstance(value, str | int | float | bool):
        yield f"is a {type(value).__name__}, not a text or a number", "put quotes around it"


def _not_text(text: str) -> str:
    """Why a text can be neither a path, a word of a command, nor be written down; or an empty string."""
    if text.isascii() and "\0" not in text:
        return ""
    for letter in text:
        if letter == "\0" or "\ud800" <= letter <= "\udfff":
            return _NOT_TEXT.format(f"U+{ord(letter):04X}")
    return ""


def _shown(value: object) -> str:
    if isinstance(value, int) and abs(value) > _LARGEST:
        return "(a large number)"
    return str(value).encode("utf-8", "backslashreplace").decode().replace("\0", "\\x00")[:_SHOWN]


def shape(raw: object, wanted: type[T], file: str, path: str = "") -> tuple[T | None, tuple[Problem, ...]]:
    """Build `wanted` out of `raw`, or say everything that stands in the way."""
    not_plain = plain_problems(raw, file, path)
    if not_plain:
        return None, not_plain
    try:
        return fitted(raw, wanted), ()
    except msgspec.ValidationError as error:
        found = tuple(_walk(raw, wanted, file, path))
        return None, limited(found) or (Problem(file, path, _plain(error)),)


def _walk(raw: object, wanted: Any, file: str, path: str) -> list[Problem]:
    """The problems inside of a value or, where all of its parts are fine, of the value as a whole."""
    inner = _unwrap(wanted)
    found = _walk_parts(raw, inner, file, path)
    if found:
        return found
    try:
        fitted(raw, wanted)
    except msgspec.ValidationError as error:
        return [_leaf(raw, inner, error, file, path)]
    return []


def _walk_parts(raw: object, inner: Any, file: str, path: str) -> list[Problem]:
    struct = _struct_for(raw, inner)
    if struct is not None and isinstance(raw, dict):
        return _walk_struct(raw, struct, file, path)
    origin = get_origin(inner)
    if origin is dict and isinstance(raw, dict):
        key_type, value_type = get_args(inner)
        return [
            found
            for key, value in raw.items()
            for kind, part in ((key_type, key), (value_type, value))
            for found in _walk(part, kind, file, _join(path, key))
        ]
    if origin in (tuple, list) and isinstance(raw, list):
        item_type = get_args(inner)[0]
        return [found for at, value in enumerate(raw) for found in _walk(value, item_type, file, f"{path}[{at}]")]
    return []


def _walk_struct(raw: dict[str, Any], struct: type[msgspec.Struct], file: str, path: str) -> list[Problem]:
    problems: list[Problem] = []
    fields = {field.encode_name: field for field in msgspec.structs.fields(struct)}
    tag = struct.__struct_config__.tag_field
    for key, value in raw.items():
        if key == tag or key in fields:
            if key in fields:
                problems += _walk(value, fields[key].type, file, _join(path, key))
        else:
            problems.append(Problem(file, _join(path, key), "unknown key", did_you_mean(key, fields)))
    for name, field in fields.items():
        if field.required and name not in raw:
            problems.append(Problem(file, _join(path, name), "is required and missing"))
    return problems


def _struct_for(raw: object, wanted: Any) -> type[msgspec.Struct] | None:
    """The struct that `raw` should become; in a tagged union the one that the tag names."""
    options = [
        option
        for option in (get_args(wanted) if _is_union(wanted) else (wanted,))
        if isinstance(option, type) and issubclass(option, msgspec.Struct)
    ]
    if len(options) == 1:
        return options[0]
    if isinstance(raw, dict):
        for option in options:
            config = option.__struct_config__
            if config.tag_field is not None and raw.get(config.tag_field) == config.tag:
                return option
    return None


def _leaf(raw: object, wanted: Any, error: msgspec.ValidationError, file: str, path: str) -> Problem:
    choices = _choices(wanted, raw)
    if choices and isinstance(raw, dict):
        tag_field, tags = choices[0], choices[1:]
        named = raw.get(tag_field)
        hint = did_you_mean(str(named), tags) if named is not None else f"known: {', '.join(tags)}"
        message = f'"{named}" is not one of its kinds' if named is not None else "is required and missing"
        return Problem(file, _join(path, tag_field), message, hint)
    if choices and isinstance(raw, str):
        return Problem(file, path, f'"{raw}" is not one of: {", ".join(choices)}', did_you_mean(raw, choices))
    return Problem(file, path, _plain(error))


def _choices(wanted: Any, raw: object) -> list[str]:
    """The words that would have been accepted here; for a tagged union the tag field first."""
    for option in get_args(wanted) if _is_union(wanted) else (wanted,):
        bare = _unwrap(option)
        if get_origin(bare) is Literal:
            return [str(value) for value in get_args(bare)]
        if isinstance(bare, type) and issubclass(bare, Enum):
            return [str(member.value) for member in bare]
    if isinstance(raw, dict) and _is_union(wanted):
        structs = [o for o in get_args(wanted) if isinstance(o, type) and issubclass(o, msgspec.Struct)]
        tagged = [s.__struct_config__ for s in structs if s.__struct_config__.tag_field is not None]
        if tagged:
            return [str(tagged[0].tag_field), *sorted(str(config.tag) for config in tagged)]
    return []


def _unwrap(wanted: Any) -> Any:
    while get_origin(wanted) is Annotated:
        wanted = get_args(wanted)[0]
    if _is_union(wanted):
        without_none = [option for option in get_args(wanted) if option is not type(None)]
        if len(without_none) == 1:
            return _unwrap(without_none[0])
    return wanted


def _is_union(wanted: Any) -> bool:
    return get_origin(wanted) in (Union, types.UnionType)


def _plain(error: msgspec.ValidationError) -> str:
    text = str(error).split(" - at ")[0]
    return (
        text.replace("`", "")
        .replace("Expected", "expected")
        .replace("str,", "string,")
        .replace("got str", "got string")
    )


def _join(path: str, key: object) -> str:
    return f"{path}.{key}" if path else str(key)
