"""What a started process may see of the user's environment: a short list, and never a secret by accident."""

from collections.abc import Mapping

_PASSED = frozenset({
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TERM", "TMPDIR", "TEMP", "TMP",
    "VIRTUAL_ENV", "PYENV_VERSION", "NVM_DIR", "JAVA_HOME", "GOPATH", "GOROOT", "CARGO_HOME", "RUSTUP_HOME",
    "SSL_CERT_FILE", "SSL_CERT_DIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR",
})  # fmt: skip


def passed_on(environment: Mapping[str, str]) -> dict[str, str]:
    """The part of an environment that agents and checks are started with."""
    return {name: value for name, value in environment.items() if name in _PASSED or name.startswith("LC_")}
