"""The variables and files in which a user keeps GitHub tokens. No file of a repository hands them to anybody."""

from collections.abc import Iterator, Mapping
from typing import Any

TOKEN_VARIABLES = frozenset({
    "GENBA_GITHUB_TOKEN", "GENBA_GITHUB_APP_KEY", "GENBA_FORGE_TOKEN", "GITHUB_TOKEN", "GH_TOKEN",
    "GH_ENTERPRISE_TOKEN", "GITHUB_ENTERPRISE_TOKEN",
})  # fmt: skip
GH_VARIABLES = ("GITHUB_TOKEN", "GH_TOKEN", "GH_ENTERPRISE_TOKEN", "GITHUB_ENTERPRISE_TOKEN")
"""Those that `gh` shows for hosts that its user never logged in to."""
TOKEN_FILES = (".config/gh", ".git-credentials", ".config/git/credentials", ".netrc", "_netrc")
"""Below HOME."""


def is_token_file(name: str) -> bool:
    """Whether a path below HOME is a file with GitHub tokens, or a folder that has one."""
    plain = "/".join(word for word in name.split("/") if word not in ("", "."))
    return any(plain == one or plain.startswith(f"{one}/") or one.startswith(f"{plain}/") for one in TOKEN_FILES)


def handed_over(settings: Mapping[str, Any], at: str) -> Iterator[tuple[str, str]]:
    """Each setting that would hand a GitHub token to an agent, a model or a server: where it stands, and its word.

    Settings that name a variable of the user end with `Env`.
    """
    for key, value in settings.items():
        where = f"{at}.{key}"
        if isinstance(value, Mapping):
            yield from handed_over(value, where)
            continue
        words = [word for word in (value if isinstance(value, list | tuple) else [value]) if isinstance(word, str)]
        if key.endswith("Env"):
            yield from ((where, word) for word in words if word in TOKEN_VARIABLES)
        elif key == "homeFiles":
            yield from ((where, word) for word in words if is_token_file(word))
