"""How often the built-in checks return honest work because it changes a test or a check of its base.

The built-in checks cannot know whether an agent may change a test: the task says so. This measures how often they ask
on the history of this project, and whether they accept the work with exactly the permission that they named.
"""

import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import msgspec

from bench.headlines import of
from bench.ledgers import ROOT
from bench.measuring import Measured, Row, clean_environment

COMMITS = 150
REACH = 600
"""The commits are spread over so many of the newest."""
BIN = Path(sys.executable).parent
ASKED = "real commits that are returned until the task permits their changes"
STILL = "real commits that are returned although everything named is permitted"
NOTES = """\
The other side of being hard to deceive. Commits of this project, spread evenly over its newest {reach}, are judged as
if an agent had made each on a task without permissions: by the built-in checks alone. All are assumed to be honest. The
checks cannot tell a correct change of an existing test, or of what judges the work, from a wrong one, so they ask for a
permission. A task gives it beforehand by its type (`test`) or by `may_change`."""
_WORDS = {"tests_kept": "tests that were there", "protected_paths": "what judges the work"}
_NAMED = re.compile(r"^the task must allow it: (--may-change .+)$", re.MULTILINE)


@dataclass(frozen=True)
class Judged:
    """The result of one commit."""

    commit: str
    broken: tuple[str, ...] = ()
    """The failed built-in checks."""
    still: tuple[str, ...] = ()
    """Those that do so when all is allowed that was named."""


def rows() -> Measured:
    with tempfile.TemporaryDirectory(prefix="genba-bench-", ignore_cleanup_errors=True) as folder:
        root = Path(folder) / "repository"
        try:
            _git(Path(folder), "clone", "-q", "--shared", "--no-checkout", str(ROOT), str(root))
            commits = spread(_git(root, "rev-list", "--first-parent", "--no-merges", "HEAD").split()[:REACH], COMMITS)
        except subprocess.CalledProcessError:
            commits = []
        if len(commits) < COMMITS:
            return Measured([Row(ASKED, "not run: there is no history here that is long enough")])
        with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            return summary(list(pool.map(lambda commit: judged(root, commit), commits)))


def summary(found: Sequence[Judged]) -> Measured:
    asked, still = [each for each in found if each.broken], [each for each in found if each.still]
    guards = Counter(guard for each in asked for guard in each.broken)
    why = ", ".join(f"{count} change {_WORDS.get(guard, guard)}" for guard, count in guards.most_common())
    kept = {each.commit: list(each.broken) for each in asked}
    return Measured(
        [
            Row(ASKED, f"{of(len(asked), len(found))}{': ' if why else ''}{why}"),
            Row(STILL, f"{of(len(still), len(asked))}", float(len(still)), 0.0),
        ],
        {"notes": NOTES.format(reach=REACH), "commits": len(found), "asked": len(asked), "sent_back": kept},
    )


def judged(root: Path, commit: str) -> Judged:
    """Judge a commit against its parent, then again with the requested permissions."""
    tip, base = f"tip-{commit}", f"base-{commit}"
    _git(root, "branch", "-f", tip, commit)
    _git(root, "branch", "-f", base, f"{commit}^")
    broken, named = _verified(root, tip, base)
    still, _ = _verified(root, tip, base, *named) if broken else ((), [])
    return Judged(commit[:10], broken, still)


def _verified(root: Path, tip: str, base: str, *more: str) -> tuple[tuple[str, ...], list[str]]:
    """The failed checks, and the options that they name."""
    words = [str(BIN / "genba"), "verify", tip, "--base-branch", base, "--json", *more]
    done = subprocess.run(words, cwd=root, env=clean_environment(), capture_output=True, text=True, check=False)
    if not done.stdout:
        raise RuntimeError(f"{' '.join(words[1:])}\n{done.stderr}")
    results = msgspec.json.decode(done.stdout)["verification"]["results"]
    failed = [each["result"] for each in results if each["result"]["status"] != "passed"]
    options = [word for result in failed for named in _NAMED.findall(result["output"]) for word in shlex.split(named)]
    return tuple(result["name"] for result in failed), options


def spread(commits: Sequence[str], count: int) -> list[str]:
    """So many of them, as far from each other as can be; the first of all has no parent and is left out."""
    able = commits[:-1]
    return [able[number * len(able) // count] for number in range(count)] if len(able) >= count else []


def _git(folder: Path, *words: str) -> str:
    return subprocess.run(["git", *words], cwd=folder, check=True, capture_output=True, text=True).stdout
