"""Check the structure of the code: `make structure`, a part of `make check`.

A package has at most 15 modules. Commit subjects since START read `area: change` and have at most 72 characters.
"""

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

from release.locks import ROOT

MOST_MODULES = 15
MOST_LETTERS = 72
START = "916b1032fdf6e38421568151e0f6a03077400ea6"
"""The commit after which subjects are checked; a checkout without it, such as a source archive, has none to check."""
SUBJECT = re.compile(r"[a-z][a-z0-9_/. -]*: \S.*")


def large_packages(root: Path) -> list[str]:
    """The packages with too many modules."""
    modules = (path for path in (root / "src" / "genba").rglob("*.py") if path.name != "__init__.py")
    counts = Counter(path.parent.relative_to(root).as_posix() for path in modules)
    return [
        f"{folder} has {count} modules, more than {MOST_MODULES}: split it by subject"
        for folder, count in sorted(counts.items())
        if count > MOST_MODULES
    ]


def wrong_subjects(subjects: list[str]) -> list[str]:
    """The commit subjects that are too long or name no area."""
    wrong = (each for each in subjects if len(each) > MOST_LETTERS or not SUBJECT.fullmatch(each))
    return [f'commit subject "{each}": write `area: change` in at most {MOST_LETTERS} characters' for each in wrong]


def subjects_since(start: str, root: Path) -> list[str]:
    """The subjects of commits since one; none where git does not know it."""
    asked = ["git", "log", "--no-merges", "--format=%s", f"{start}..HEAD"]
    done = subprocess.run(asked, cwd=root, capture_output=True, text=True, check=False)
    return done.stdout.splitlines() if done.returncode == 0 else []


def main() -> None:
    problems = [*large_packages(ROOT), *wrong_subjects(subjects_since(START, ROOT))]
    for each in problems:
        print(f"error: {each}", file=sys.stderr)
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
