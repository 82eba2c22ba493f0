"""Check the words of the project: `make words`, a part of `make check`.

A banned word is private vocabulary or a sentence without an actor. It is looked for in identifiers, strings and docs.
"""

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

from release.locks import ROOT

BANNED = {
    "anew": "again",
    "deeds": "remote changes, effects",
    "dress": "name what is constructed",
    "heard": "output, reply",
    "lookout": "queries, view",
    "mend": "fix",
    "mended": "fixed",
    "mending": "fixing",
    "mends": "fixes",
    "nobody": "name the actor",
    "nursery": "fork server",
    "quarters": "agent environment",
    "said": "output, reply, message",
    "somebody": "a person, an agent",
    "told": "reported, message, result",
    "walled": "sandboxed",
    "walls": "sandbox",
    "whoever": "name the actor",
}
TEXT = {
    ".py",
    ".md",
    ".toml",
    ".yaml",
    ".yml",
    ".json",
    ".html",
    ".js",
    ".css",
    ".sh",
    ".sql",
    ".txt",
    ".cfg",
    ".service",
}
NAMED = {"Makefile", "Dockerfile", "run"}
EXEMPT = {"release/words.py"}
VENDORED = ("src/genba/entrypoints/web/static/vendor", "docs/measured", "tests/fuzz/corpus")
WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


def banned_words(text: str) -> list[tuple[int, str]]:
    """The line and the word of each banned word; identifiers are split at underscores and capitals."""
    return [
        (number, each.group().lower())
        for number, line in enumerate(text.splitlines(), start=1)
        for each in WORD.finditer(line)
        if each.group().lower() in BANNED
    ]


def checked_files(root: Path) -> list[Path]:
    """The tracked files that people write."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, text=True, check=True)
    names = (
        name for name in listed.stdout.split("\0") if name and name not in EXEMPT and not name.startswith(VENDORED)
    )
    paths = (root / name for name in names)
    return [path for path in paths if path.is_file() and (path.suffix in TEXT or path.name in NAMED)]


def main() -> None:
    """With paths: only below these. With --count: the number of each word instead of the places."""
    paths = [Path(each).resolve() for each in sys.argv[1:] if not each.startswith("--")]
    files = [f for f in checked_files(ROOT) if not paths or any(f.is_relative_to(each) for each in paths)]
    places = [(file, *place) for file in files for place in banned_words(file.read_text(errors="replace"))]
    if "--count" in sys.argv:
        for word, count in Counter(word for _, _, word in places).most_common():
            print(f"{count:6} {word}")
        return
    for file, line, word in places:
        print(f'error: {file.relative_to(ROOT)}:{line}: "{word}": write {BANNED[word]}', file=sys.stderr)
    sys.exit(1 if places else 0)


if __name__ == "__main__":
    main()
