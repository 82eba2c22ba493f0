"""How git shows the commits to scan: the same whatever the user's settings are, and nothing left out of it."""

from collections.abc import Mapping
from pathlib import Path

LOG_OPTIONS = (
    "--diff-merges=separate",  # a merge can add what none of its parents has; -m would heed log.diffMerges
    "--root",
    "--text",  # a NUL byte, or an attribute, would make a file binary and hide it
    "--no-textconv",
    "--no-ext-diff",
    "--no-renames",
    "--no-relative",
    "--no-color",
    "--no-notes",
    "--no-decorate",
    "--no-show-signature",
    "--inter-hunk-context=0",
    "--submodule=short",
    "--src-prefix=a/",
    "--dst-prefix=b/",
)

_SETTINGS = {
    "core.fsmonitor": "false",
    "core.hooksPath": "/dev/null",
    "protocol.ext.allow": "never",
    "diff.orderFile": "/dev/null",
    "core.quotePath": "true",
}


HARDENED = ("-c", "genba.hardened=true", *(arg for each in _SETTINGS.items() for arg in ("-c", "=".join(each))))
"""The same settings in the words of a command, with the one by which hardened processes are known."""


_NEEDED = ("PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "TZ", "LD_LIBRARY_PATH", "LD_PRELOAD")
"""The variables of a user that git and gitleaks need."""


def git_environment(environment: Mapping[str, str], repository: Path) -> dict[str, str]:
    """What git and gitleaks are started with: this repository, its real history, and none of our own settings."""
    kept = {name: environment[name] for name in _NEEDED if name in environment}
    for number, (name, value) in enumerate(_SETTINGS.items()):
        kept |= {f"GIT_CONFIG_KEY_{number}": name, f"GIT_CONFIG_VALUE_{number}": value}
    return {
        **kept,
        "GIT_CONFIG_COUNT": str(len(_SETTINGS)),
        "GIT_DIR": str(repository),
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_GRAFT_FILE": str(repository / "genba" / "no-grafts"),
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_PAGER": "cat",
        "LC_ALL": "C",
    }
