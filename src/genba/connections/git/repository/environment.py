"""The environment and the time limits of every git process that Genba starts on the host.

Law: git gets what it needs to find itself, the user's settings and the user's name, and no key of a provider. What
opens a way to a remote is added for a command that talks to one, and for no other.
"""

import os
from collections.abc import Mapping

LOCAL_SECONDS = 900.0
"""The longest time for a command on the repository: a checkout of a very large repository on a slow disk."""
PATTERN_SECONDS = 60.0
"""The longest time for names and patterns that an agent wrote, in one look at its worktree."""
REMOTE_SECONDS = 3600.0
"""The longest time for a command that talks to a remote, where the caller names none."""

_LOCAL = frozenset({
    "PATH", "HOME", "XDG_CONFIG_HOME", "USER", "LOGNAME", "EMAIL", "TMPDIR", "LANG", "TZ",
    "LD_LIBRARY_PATH", "LD_PRELOAD", "GIT_EXEC_PATH", "GIT_TRACE", "GIT_TRACE2", "GIT_TRACE2_EVENT",
    "GIT_CONFIG_NOSYSTEM", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_GLOBAL",
    "GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_AUTHOR_DATE",
    "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL", "GIT_COMMITTER_DATE",
})  # fmt: skip
_REMOTE = frozenset({
    "SSH_AUTH_SOCK", "SSH_AGENT_PID", "SSH_ASKPASS", "SSH_ASKPASS_REQUIRE", "GIT_ASKPASS",
    "GIT_SSH", "GIT_SSH_COMMAND", "GIT_SSH_VARIANT", "GNUPGHOME", "GH_TOKEN", "GH_HOST", "GH_CONFIG_DIR",
    "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "all_proxy", "no_proxy",
    "GIT_SSL_CAINFO", "GIT_SSL_CAPATH", "GIT_SSL_CERT", "GIT_SSL_KEY", "SSL_CERT_FILE", "SSL_CERT_DIR",
    "CURL_CA_BUNDLE", "DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR",
})  # fmt: skip
_HONEST = {
    # Replaced objects and grafts would show another history than the one that is there.
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_GRAFT_FILE": os.devnull,
    "LC_ALL": "C",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_OPTIONAL_LOCKS": "0",
}


def host_environment(whole: Mapping[str, str] | None = None, *, remote: bool = False) -> dict[str, str]:
    """What a git process on the host is started with; `remote` adds what a command needs that talks to a remote."""
    source = os.environ if whole is None else whole
    wanted = _LOCAL | _REMOTE if remote else _LOCAL
    return {name: source[name] for name in sorted(wanted) if name in source} | _HONEST
