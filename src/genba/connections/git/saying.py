"""What git says when it refuses, as one plain line: people are told why, not how it was called."""

_TELLING = ("fatal:", "error:")
_ASIDE = ("hint:", "warning:", "remote:")
_TAKES_A_WORD = ("-c", "-C", "--git-dir", "--work-tree", "--namespace")
_LONGEST = 500


def telling_line(said: str) -> str:
    """The line that says what is wrong, without git's own mark before it. Advice stands around it, and is left out."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    marked = [line for mark in _TELLING for line in lines if line.startswith(mark)]
    plain = [line for line in reversed(lines) if not line.startswith(_ASIDE)]
    told = (marked or plain or lines[-1:] or ["git gave no reason"])[0]
    for mark in (*_TELLING, *_ASIDE):
        told = told.removeprefix(mark).lstrip()
    return told[:_LONGEST]


def verb(argv: list[str]) -> str:
    """Which of its commands git was asked for."""
    words = iter(argv[argv.index("git") + 1 :])
    for word in words:
        if word in _TAKES_A_WORD:
            next(words, None)
        elif not word.startswith("-"):
            return word
    return ""
