"""Make `docs/attacks.md` from the attacks and from what they did before: `python -m tests.attacks.page`."""

import json
from itertools import groupby
from pathlib import Path

from tests.attacks.catalogue import ALL_KINDS, Attack
from tests.attacks.scenes import ALL_SCENES

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "attacks.md"
BEFORE = Path(__file__).with_name("before.json")
INTRODUCTION = """\
# Attacks

`tests/attacks` plays each of these attacks through the real `genba run`, `verify`, `work`, `sync` and `mcp`: as
an agent inside its sandbox, as the author of a repository, or as another user of the machine. Each row names what the
host looks at. The tests require that every attack is stopped on every kind of sandbox in its row.

**Before** is what the same attacks did to the version before the review of November 2026 (commit 8277e59). This page is
made from the data (`python -m tests.attacks.page`), and a test compares the two. Play one scene:

```sh
.venv/bin/python -m pytest tests/attacks -k "goals and bubblewrap"
```

Attacks of one scene share a session. With `GENBA_ATTACK_TARGET` set to the `genba` of another checkout,
`python -m tests.attacks.record` plays them against that one, and prints which succeeded.
"""


def text() -> str:
    """The page."""
    before = json.loads(BEFORE.read_text())
    attacks = [each for scene in ALL_SCENES for each in scene.attacks]
    parts = [INTRODUCTION, _summary(attacks, before)]
    for surface, members in groupby(sorted(attacks, key=lambda each: each.surface.name), key=lambda each: each.surface):
        rows = [_row(each, before.get(each.id, {})) for each in members]
        head = "| attack | what the attacker tries | the host looks at | before |\n|---|---|---|---|\n"
        parts.append(f"## {surface.value[0].upper()}{surface.value[1:]}\n\n{head}" + "\n".join(rows) + "\n")
    return "\n".join(parts)


def _summary(attacks: list[Attack], before: dict[str, dict[str, str]]) -> str:
    rows = []
    for kind in ALL_KINDS:
        lines = [before[each.id][kind] for each in attacks if kind in before.get(each.id, {})]
        rows.append(f"| `{kind}` | {len(lines)} | {lines.count('succeeded')} |")
    head = f"{len(attacks)} attacks.\n\n| kind | played | succeeded before |\n|---|---|---|\n"
    return head + "\n".join(rows) + "\n"


def _row(attack: Attack, before: dict[str, str]) -> str:
    kinds = [kind for kind in ALL_KINDS if kind in before]
    results = set(before.values())
    short = ", ".join(f"`{kind}` {before[kind]}" for kind in kinds)
    if len(results) == 1:
        short = f"{results.pop()}: " + ", ".join(f"`{kind}`" for kind in kinds)
    return f"| {attack.id} | {attack.attack.replace('|', '/')} | {attack.seen_by} | {short} |"


if __name__ == "__main__":
    PAGE.write_text(text(), encoding="utf-8")
