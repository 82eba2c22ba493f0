"""Shell commands that only read, recognized before they run: a list of known ones, and no more.

The same pattern is used twice: by Genba on the commands that it hears of, and by `grep -E` in a hook on the JSON that a
tool gives it, where quotes are escaped. What the pattern does not know is a command like any other.
"""

import re
from functools import cache

_LETTERS = r"[A-Za-z0-9_./:,=@%+*?^~-]"
_LONGEST = 2000
_FIRST = r"[A-Za-z0-9_./:,=@%+^~]"
"""How a word begins that is no option, and that no name of a file can make into one."""
_PLAIN = ("cat", "cd", "cut", "du", "echo", "egrep", "fgrep", "grep", "head", "ls", "nl", "od", "pwd", "readlink",
          "realpath", "stat", "tail", "tr", "true", "wc", "which")  # fmt: skip
"""They write nothing and start nothing, whatever their options."""
_GIT = ("blame", "describe", "diff", "log", "ls-files", "ls-tree", "rev-parse", "shortlog", "show", "status")
_GIT_OPTIONS = ("all", "branch", "cached", "decorate", "graph", "name-only", "name-status", "no-color", "oneline",
                "porcelain", "short", "show-toplevel", "staged", "stat")  # fmt: skip
_RIPGREP_OPTIONS = ("context", "files", "fixed-strings", "glob", "hidden", "ignore-case", "line-number", "max-count",
                    "no-heading", "no-ignore", "sort", "type", "word-regexp")  # fmt: skip
_FIND_OPTIONS = ("empty", "iname", "ipath", "iregex", "maxdepth", "mindepth", "mtime", "name", "newer", "not", "o",
                 "path", "print", "print0", "prune", "regex", "size", "type")  # fmt: skip


def only_reads(command: str) -> bool:
    """Whether a command of the shell is known to change nothing."""
    return len(command) <= _LONGEST and re.fullmatch(pattern(), command) is not None


@cache
def pattern(*, in_json: bool = False) -> str:
    """An extended regular expression for commands that only read, as they are or inside a JSON string."""
    single = r"""'([^'"\\]|\\["\\])*'""" if in_json else r"'[^']*'"
    single_word = r"""'[^-'"\\]([^'"\\]|\\["\\])*'""" if in_json else r"'[^-'][^']*'"
    double, double_word = _double(r'\\"' if in_json else '"')
    rest = rf"({_LETTERS}|{single}|{double})*"
    anything = rf"( +({_LETTERS}|{single}|{double})+| +2>/dev/null| +2>&1)*"
    arg = rf"({_FIRST}|{single_word}|{double_word}){rest}"

    def listed(options: tuple[str, ...], dashes: str) -> str:
        """Words, and the options that are known; another one may write a file, or start a program."""
        known = rf"{dashes}({'|'.join(options)})(={rest})?"
        short = rf"|-[A-Za-z0-9]{rest}" if dashes == "--" else ""
        return rf"( +({arg}|{known}{short})| +--| +2>/dev/null| +2>&1)*"

    printed, to_the_end = r"[0-9]+(,[0-9]+)?p", r"'([0-9]+,)?\$p'"
    quote = r'\\"' if in_json else '"'
    commands = (
        rf"({'|'.join(_PLAIN)}){anything}",
        rf"rg{listed(_RIPGREP_OPTIONS, '--')}",
        rf"find{listed(_FIND_OPTIONS, '-')}",
        rf"git( +--no-pager)? +({'|'.join(_GIT)}){listed(_GIT_OPTIONS, '--')}",
        rf"sed +-n +({printed}|'{printed}'|{quote}{printed}{quote}|{to_the_end})( +{arg})*",
    )
    one = f"({'|'.join(commands)})"
    return rf" *{one}( *(\||&&|\|\||;) *{one})* *"


def _double(quote: str) -> tuple[str, str]:
    """A double-quoted text in which a shell finds nothing to do; and one that cannot be read as an option."""
    return rf"{quote}[^\"\\$`]*{quote}", rf"{quote}[^-\"\\$`][^\"\\$`]*{quote}"
