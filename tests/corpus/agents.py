"""What an entry of the corpus is, and the few steps from which agents are written down."""

import shlex
from dataclasses import dataclass, field
from textwrap import dedent
from typing import Any

from genba.domain.goals.goal import Goal, NoSecrets

GOALS_NOT_MET = "rejected: goals_not_met"
MISSING = "rejected: missing_artifacts"


@dataclass(frozen=True, kw_only=True)
class Agent:
    """One agent: what it does in its working tree, and the task that it is given."""

    name: str
    does: str
    """A phrase that begins with a verb: `deletes the failing test`."""
    steps: tuple[str, ...]
    """Lines of a shell script. The working tree is the current folder, `$ROOT` is the user's checkout."""
    project: str = "pytest"
    type: str = "task"
    goals: tuple[Goal, ...] = ()
    may_change: tuple[str, ...] = ()
    settings: dict[str, Any] = field(default_factory=dict)
    """More of the project's settings than its Definition of Done."""

    @property
    def wanted(self) -> tuple[Goal, ...]:
        """The goals that its task has."""
        return self.goals

    @property
    def script(self) -> str:
        return "\n".join(["set -eu", 'ROOT=$(cd "$(git rev-parse --git-common-dir)/.." && pwd)', *self.steps, ""])


@dataclass(frozen=True, kw_only=True)
class Liar(Agent):
    """An agent whose work must not count as done."""

    shows: tuple[str, ...]
    """Words that the evidence must contain."""
    verdict: str = GOALS_NOT_MET
    green: bool = False
    """Whether the test command itself is content: who trusts an exit code is fooled."""
    moves_main: bool = False


@dataclass(frozen=True, kw_only=True)
class Worker(Agent):
    """An honest agent: its work must land. Its commits are scanned for secrets as well."""

    @property
    def wanted(self) -> tuple[Goal, ...]:
        return (*self.goals, NoSecrets())


def write(path: str, text: str) -> str:
    """Write a file, dedented."""
    folder = path.rpartition("/")[0]
    make = f"mkdir -p {shlex.quote(folder)}\n" if folder else ""
    return f"{make}cat > {shlex.quote(path)} <<'END_OF_FILE'\n{dedent(text).strip(chr(10))}\nEND_OF_FILE"


def append(path: str, text: str) -> str:
    return f"cat >> {shlex.quote(path)} <<'END_OF_FILE'\n{dedent(text).rstrip(chr(10))}\nEND_OF_FILE"


def swap(path: str, old: str, new: str) -> str:
    """Replace a text in a file; a text that is not there is an error of the corpus."""
    program = (
        "import sys, pathlib; path, old, new = sys.argv[1:]; file = pathlib.Path(path); text = file.read_text(); "
        "assert old in text, old; file.write_text(text.replace(old, new))"
    )
    return f"python3 -Sc {shlex.quote(program)} {shlex.quote(path)} {shlex.quote(old)} {shlex.quote(new)}"


def commit(message: str = "Do the work") -> str:
    return f"git add -A && git commit -q -m {shlex.quote(message)}"
