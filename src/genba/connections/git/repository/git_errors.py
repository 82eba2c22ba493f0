"""The reason of a refusal of git, as one plain line: why it failed, not how it was called."""

_TELLING = ("fatal:", "error:")
_ASIDE = ("hint:", "warning:", "remote:")
_TAKES_A_WORD = ("-c", "-C", "--git-dir", "--work-tree", "--namespace")
_LONGEST = 500


def error_line(stderr: str) -> str:
    """What is wrong, without git's own marks. Advice stands around it, and is left out.

    Where git first prints a finding and then that it gives up, both are shown: either alone is too little.
    """
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    marked = [next((line for line in lines if line.startswith(mark)), "") for mark in _TELLING]
    plain = [line for line in reversed(lines) if not line.startswith(_ASIDE)]
    result = [line for line in marked if line] or (plain or lines[-1:])[:1] or ["git gave no reason"]
    return ": ".join(_unmarked(line) for line in result)[:_LONGEST]


def _unmarked(line: str) -> str:
    for mark in (*_TELLING, *_ASIDE):
        line = line.removeprefix(mark).lstrip()
    return line


def verb(argv: list[str]) -> str:
    """Which of its commands git was asked for."""
    args = iter(argv[argv.index("git") + 1 :])
    for arg in args:
        if arg in _TAKES_A_WORD:
            next(args, None)
        elif not arg.startswith("-"):
            return arg
    return ""
