"""How many examples of what comes from outside are tried: a share always, and as many as one likes by a variable."""

import os
import random
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, TypeVar

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from tests.fuzz import mutation

WHOLE = int(os.environ.get("GENBA_FUZZ_EXAMPLES") or 0)
"""How many examples of each kind a long search tries, with dice; 0: a share of them, always the same."""
Test = TypeVar("Test", bound=Callable[..., Any])
SIGNS_OF_LIFE = ("calls", "lease_until", "heartbeat_at", "last_action")
"""What a connection writes at each call, also at one that is refused."""


def tried(share: int, whole: float = 1.0) -> settings:
    """So many examples in the share; of a long search this part of what it asks for."""
    return settings(
        max_examples=max(share, int(WHOLE * whole)) if WHOLE else share,
        derandomize=not WHOLE,
        database=None,
        deadline=None,
        print_blob=True,
        suppress_health_check=list(HealthCheck),
    )


def everything(file: Path) -> dict[str, list[tuple[Any, ...]]]:
    """All rows of all tables of a blackboard, but the signs of life of connections."""
    found: dict[str, list[tuple[Any, ...]]] = {}
    with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as connection:
        for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name"):
            columns = [row[1] for row in connection.execute(f'PRAGMA table_info("{name}")')]
            wanted = ", ".join(
                f'"{each}"' for each in columns if name != "agent_connections" or each not in SIGNS_OF_LIFE
            )
            found[name] = sorted(connection.execute(f'SELECT {wanted} FROM "{name}"'), key=repr)
    return found


ODD_TEXTS = (
    *mutation.ODD_TEXTS,
    "\u202egnp.exe",
    "line\r\nline",
    "'; DROP TABLE tasks; --",
    "{{7*7}}${7*7}<script>",
    "雲" * 300,
    "x" * 5_000,
    "gbs_x_y",
    "-1",
    "\U0010ffff",
)
"""Texts that have broken programs."""
ODD_NUMBERS = (0, -1, 1, 2, 2**31, 2**53, 2**53 + 1, 2**63 - 1, 2**63, -(2**63) - 1, 10**400)
ODD_FLOATS = (0.0, -0.0, 1.5, 1e308, -1e308, 5e-324)

ODD: tuple[Any, ...] = (
    *ODD_TEXTS,
    *ODD_NUMBERS,
    *ODD_FLOATS,
    None,
    True,
    False,
    [],
    {},
    [[]],
    [None],
    {"": None},
    {"a": 1},
)

texts = st.sampled_from(ODD_TEXTS) | st.text(max_size=30)
leaves = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from(ODD_NUMBERS)
    | st.sampled_from(ODD_FLOATS)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts
)
anything = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4), max_leaves=12
)
"""Any JSON."""


def spoilt(value: Any) -> st.SearchStrategy[Any]:
    """A good value of JSON in which one thing, somewhere, is another, gone, twice, or deeper than anybody needs."""
    return st.integers(0, 2**32).map(lambda seed: spoil(value, random.Random(seed)))


def spoil(value: Any, dice: random.Random) -> Any:
    """The same for who draws by dice, such as a server in another thread."""
    place = dice.choice(list(_places(value)))
    match dice.choice(("other", "other", "other", "gone", "nothing", "listed", "deeper", "twice")):
        case "other":
            return _changed(value, place, lambda _: dice.choice(ODD))
        case "gone":
            return _changed(value, place, lambda _: _GONE)
        case "nothing":
            return _changed(value, place, lambda _: None)
        case "listed":
            return _changed(value, place, lambda old: [old])
        case "twice":
            return _changed(value, place, lambda old: old * 2 if isinstance(old, list | str) else [old, old])
        case _:
            depth = dice.choice((3, 60, 130))
            return _changed(value, place, lambda old: _deep(old, depth))


_GONE = object()


def _places(value: Any, here: tuple[Any, ...] = ()) -> Any:
    yield here
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _places(inner, (*here, key))
    elif isinstance(value, list):
        for number, inner in enumerate(value[:3]):
            yield from _places(inner, (*here, number))


def _changed(value: Any, place: tuple[Any, ...], change: Callable[[Any], Any]) -> Any:
    if not place:
        changed = change(value)
        return None if changed is _GONE else changed
    first, *rest = place
    if isinstance(value, dict):
        made = {
            key: _changed(inner, tuple(rest), change) if rest and key == first else inner
            for key, inner in value.items()
        }
        if not rest:
            made[first] = change(value[first])
        return {key: inner for key, inner in made.items() if inner is not _GONE}
    made_list = [
        (_changed(inner, tuple(rest), change) if rest else change(inner)) if number == first else inner
        for number, inner in enumerate(value)
    ]
    return [inner for inner in made_list if inner is not _GONE]


def _deep(value: Any, depth: int) -> Any:
    for _ in range(depth):
        value = [value]
    return value
