"""Spoiling what is valid: edits that know the structure, then edits that know the letters, then bytes.

A value that JSON cannot say, such as ten thousand levels or a number without end, is put in as text when it is written.
"""

import copy
import json
import math
from typing import Any

import yaml
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

DEPTHS = (1, 60, 70, 400, 10_000)
WIDTHS = (2, 50, 3000)
ODD_TEXTS = (
    "",
    " ",
    "\0",
    "a\0b",
    "\ud800",
    "\udfff\ud800",
    "\ufeff",
    "\u202e",
    "\x1b[31m",
    "\r\n",
    "\n",
    "\t",
    "-",
    "--help",
    "..",
    "../../etc/passwd",
    "/",
    "/dev/zero",
    ".git",
    "a" * 300,
    "a/" * 3000,
    "null",
    "NaN",
    "{uv-x}",
    "{uv-",
    "${HOME}",
    "$(touch pwned)",
    "`id`",
    "%s%n",
    "{}",
    "{0.__class__}",
    "é" * 200,
    "🦀",
    "0",
    "1e999",
    "refs/heads/main",
    "HEAD",
    "a{99999999999}",
    "(" * 2000,
    "(a+)+$",
    "\\",
    "'",
    '"',
    "```json\n{}\n```",
    "x" * 20_000,
)
ODD_NUMBERS: tuple[float | int, ...] = (
    0,
    -1,
    1,
    2**31,
    2**53,
    2**63 - 1,
    2**63,
    -(2**63) - 1,
    10**30,
    1e308,
    -1e308,
    1e-308,
    0.1,
    -0.0,
    math.nan,
    math.inf,
    -math.inf,
)
ODD_VALUES: tuple[Any, ...] = (None, True, False, [], {}, [None], {"": None}, [[]], {"a": {"a": {}}}, *ODD_NUMBERS)


class Raw:
    """A piece of text that stands where a value would."""

    def __init__(self, text: str) -> None:
        self.text = text


def deep(depth: int, kind: str) -> Raw:
    if kind == "list":
        return Raw("[" * depth + "]" * depth)
    return Raw('{"a":' * depth + "1" + "}" * depth)


RAW_VALUES = (
    *(deep(depth, kind) for depth in DEPTHS for kind in ("list", "object")),
    Raw("9" * 5000),
    Raw("-" + "9" * 5000),
    Raw("1" + "0" * 400),
    Raw("1e99999"),
    Raw("0." + "1" * 5000),
    Raw("NaN"),
    Raw("-Infinity"),
    Raw('"\\ud800"'),
    Raw('"\\u0000"'),
    Raw("tru"),
    Raw("'single'"),
    Raw("01"),
    Raw("{,}"),
    Raw(""),
    Raw('{"a": 1, "a": 2}'),
    Raw("/* no */ 1"),
    Raw("[1,2,3,]"),
)

fresh_values = st.sampled_from(ODD_VALUES).map(copy.deepcopy)
"""Each a value of its own: later edits change it."""
odd_values = st.one_of(
    fresh_values,
    st.sampled_from(ODD_TEXTS),
    st.sampled_from(RAW_VALUES),
    st.text(max_size=20),
    st.integers(),
    st.floats(),
)


@st.composite
def spoilt(draw: DrawFn, value: Any, words: tuple[str, ...] = ()) -> Any:
    """A value with one to four edits somewhere in it."""
    value = json.loads(json.dumps(value))
    for _ in range(draw(st.integers(1, 4))):
        value = _edited(draw, value, words)
    return value


def _edited(draw: DrawFn, value: Any, words: tuple[str, ...]) -> Any:
    above, key = _place(draw, value)
    if above is None:
        return draw(odd_values)
    edit = draw(
        st.sampled_from(("delete", "retype", "retype", "odd", "odd", "wrap", "widen", "rename", "double", "word"))
    )
    if edit == "delete":
        del above[key]
    elif edit == "retype":
        above[key] = draw(fresh_values)
    elif edit == "odd":
        above[key] = draw(odd_values)
    elif edit == "wrap":
        above[key] = draw(
            st.sampled_from(([above[key]], {"a": above[key]}, {"type": above[key]}, str(above[key])[:50]))
        )
    elif edit == "widen":
        inner, width = above[key], draw(st.sampled_from(WIDTHS))
        above[key] = [inner] * width if draw(st.booleans()) else {f"k{n}": inner for n in range(width)}
    elif edit == "rename" and isinstance(above, dict):
        above[draw(st.sampled_from(ODD_TEXTS) | st.sampled_from(words or ("x",)))] = above.pop(key)
    elif edit == "word" and words:
        above[key] = draw(st.sampled_from(words))
    elif isinstance(above, list):
        above.insert(0, above[key])
    return value


def _place(draw: DrawFn, value: Any) -> tuple[Any, Any]:
    """Some place in a value: what it stands in, and by which key; nothing for the value itself."""
    above, key = None, None
    node = value
    while isinstance(node, dict | list) and node and (above is None or draw(st.integers(0, 3))):
        above = node
        key = draw(st.sampled_from(sorted(node, key=str) if isinstance(node, dict) else range(len(node))))
        node = above[key]
    return above, key


def as_json(value: Any) -> bytes:
    """A value as JSON, and what no writer of JSON would write as it stands."""
    raws: list[str] = []

    def named(node: Any) -> Any:
        if isinstance(node, Raw):
            raws.append(node.text)
            return f"\x01{len(raws) - 1}\x01"
        if isinstance(node, dict):
            return {key: named(inner) for key, inner in node.items()}
        return [named(inner) for inner in node] if isinstance(node, list) else node

    text = json.dumps(named(value), ensure_ascii=False)
    for number, raw in enumerate(raws):
        text = text.replace(f'"\\u0001{number}\\u0001"', raw)
    return text.encode("utf-8", "surrogatepass")


YAML_PIECES = (
    "a: &a [1,1,1,1,1,1,1,1,1]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: [*b,*b,*b,*b,*b,*b,*b,*b,*b]\n",
    "".join(f"m{n}: &m{n} {{<<: [{','.join([f'*m{n - 1}'] * 9)}]}}\n" if n else "m0: &m0 {x: 1}\n" for n in range(9)),
    "self: &s [*s]\n",
    "self: &s {<<: *s}\n",
    "a: *nobody\n",
    "&a a: b\n",
    "<<: [1]\n",
    "? [a]\n: b\n",
    "? {a: b}\n: c\n",
    "a: !!int ''\n",
    "a: !!float x\n",
    "a: !!bool x\n",
    "a: !!timestamp x\n",
    "a: !!binary é\n",
    "a: !!set {a}\n",
    "a: !!omap [a]\n",
    "a: !!pairs [a: b]\n",
    "a: !!python/object/apply:os.system [id]\n",
    "a: !<tag:x> b\n",
    "a: !x b\n",
    "a: " + ":".join(["1"] * 300) + ".5\n",
    "a: 2024-13-45\n",
    "a: 0000-00-00\n",
    "a: 2001-12-14t21:59:43.10-99:00\n",
    'a: "\\UFFFFFFFF"\n',
    'a: "\\uD800"\n',
    'a: "\\x"\n',
    "a: 0x" + "f" * 5000 + "\n",
    "a: " + "9" * 5000 + "\n",
    "a: .inf\n",
    "a: .nan\n",
    "1: 2\n",
    "on: 2\n",
    "null: 2\n",
    "~: 2\n",
    "=: 2\n",
    "a: =\n",
    "%YAML 9.9\n---\n",
    "%TAG ! x\n",
    "---\n---\n",
    "...\n",
    "\ta: b\n",
    "a:\n\tb: c\n",
    "a: |\n  x\n y\n",
    "a: >-9\n x\n",
    "- a\nb: c\n",
    "- " * 3000 + "a\n",
    "a: " + "[" * 6000 + "\n",
    "a: " + "{a: " * 6000 + "\n",
    "a: b: c\n",
    "a: 'x\n",
    "a: @b\n",
    "a: `b\n",
    "\ufeff",
    "\x85a: b\n",
    "\u2028",
    "a: \x07\n",
    "#" * 100_000 + "\n",
)


@st.composite
def spoilt_text(draw: DrawFn, text: bytes, pieces: tuple[bytes, ...] = ()) -> bytes:
    """A text with a few edits of its letters; most often with none."""
    for _ in range(draw(st.sampled_from((0, 0, 0, 1, 2)))):
        at = draw(st.integers(0, len(text)))
        edit = draw(
            st.sampled_from(("half", "bom", "crlf", "insert", "piece", "utf-16", "latin-1", "cut", "swap", "end"))
        )
        if edit == "half":
            text = text[:at]
        elif edit == "bom":
            text = b"\xef\xbb\xbf" + text
        elif edit == "crlf":
            text = text.replace(b"\n", b"\r\n")
        elif edit == "insert":
            text = text[:at] + draw(st.binary(min_size=1, max_size=8)) + text[at:]
        elif edit == "piece" and pieces:
            text = text[:at] + draw(st.sampled_from(pieces)) + text[at:]
        elif edit == "end" and pieces:
            text = text + b"\n" + draw(st.sampled_from(pieces))
        elif edit == "utf-16":
            text = text.decode("utf-8", "replace").encode("utf-16")
        elif edit == "latin-1":
            text = text.decode("utf-8", "replace").encode("latin-1", "replace")
        elif edit == "cut":
            text = text[:at] + text[at + draw(st.integers(1, 30)) :]
        elif edit == "swap":
            text = text[at:] + text[:at]
    return text


def json_files(*valid: Any, words: tuple[str, ...] = ()) -> st.SearchStrategy[bytes]:
    """Files of JSON: spoilt ones, and bytes."""
    spoilt_ones = st.sampled_from(valid).flatmap(lambda value: spoilt(value, words)).map(as_json).flatmap(spoilt_text)
    return spoilt_ones | st.sampled_from(valid).map(as_json).flatmap(spoilt_text) | st.binary(max_size=200)


def yaml_files(*valid: Any, words: tuple[str, ...] = ()) -> st.SearchStrategy[bytes]:
    """Files of YAML: spoilt ones in two styles, and bytes."""
    pieces = tuple(piece.encode("utf-8", "surrogatepass") for piece in YAML_PIECES)
    flow = st.sampled_from(valid).flatmap(lambda value: spoilt(value, words)).map(as_json)
    block = st.sampled_from(valid).map(lambda value: yaml.safe_dump(value).encode())
    return (
        (flow | block).flatmap(lambda text: spoilt_text(text, pieces))
        | st.binary(max_size=200)
        | st.builds(b"".join, st.lists(st.sampled_from(pieces), min_size=1, max_size=4))
    )
