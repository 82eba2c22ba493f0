"""What of the host is shown in a sandbox, read-only: a list of what is allowed, and nothing beside it.

The system's own programs and libraries; of /etc only what programs need to run, never a key or a password; and the
folders of tools that the user's PATH names, without the credentials that lie beside them.
"""

# ruff: noqa: PTH110, PTH112, PTH114  (os.path says False of what the user may not look at; Path raises)

import contextlib
import functools
import os
import stat
import sys
from collections.abc import Mapping
from pathlib import Path

from genba.connections.sandbox.home_tools import Tools, within

_PLACES = ("/usr", "/nix/store")
_MERGED = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
"""Folders of the root that today are links into /usr, and on older systems are folders of their own."""
_ETC_FILES = (
    "passwd", "group", "hosts", "host.conf", "resolv.conf", "nsswitch.conf", "protocols", "services", "localtime",
    "timezone", "locale.conf", "locale.alias", "ld.so.cache", "ld.so.conf", "ld-musl-x86_64.path", "os-release",
    "debian_version", "lsb-release", "redhat-release", "alpine-release", "mime.types", "inputrc", "bash.bashrc",
    "profile", "ssl/openssl.cnf", "ssl/cert.pem", "pki/tls/cert.pem", "pki/tls/openssl.cnf", "maven/m2.conf",
    *(f"java-{version}-openjdk/jvm-{machine}.cfg" for version in (11, 17, 21) for machine in ("amd64", "arm64")),
)  # fmt: skip
_ETC_FOLDERS = (
    "alternatives", "fonts", "ssl/certs", "pki/tls/certs", "pki/ca-trust/extracted", "crypto-policies/back-ends",
    "maven/logging", *(f"java-{version}-openjdk/security" for version in (11, 17, 21)),
)  # fmt: skip
_TOOLS_OF_VARIABLES = {
    "RUSTUP_HOME": ".rustup",
    "PYENV_ROOT": ".pyenv",
    "RBENV_ROOT": ".rbenv",
    "NVM_DIR": ".nvm",
    "VOLTA_HOME": ".volta",
    "ASDF_DATA_DIR": ".asdf",
}


def system_places() -> tuple[str, ...]:
    """Files and folders of the system itself, as they are on this host."""
    etc = (f"/etc/{name}" for name in _ETC_FILES)
    return (*program_places(), *(path for path in etc if os.path.exists(path)), *etc_folders())


def program_places() -> tuple[str, ...]:
    """The folders of the system's programs and libraries."""
    merged = (f"/{name}" for name in _MERGED)
    return (*(place for place in _PLACES if os.path.isdir(place)), *(path for path in merged if _is_own_folder(path)))


def etc_folders() -> tuple[str, ...]:
    """What is shown of /etc besides single files."""
    return tuple(path for name in _ETC_FOLDERS if os.path.isdir(path := f"/etc/{name}"))


def copy_etc(folder: str) -> None:
    """The files of /etc that are shown, and places for its folders: one mount in place of forty."""
    for path in etc_folders():
        Path(folder + path.removeprefix("/etc")).mkdir(parents=True, exist_ok=True)
    for name, text in etc_texts().items():
        copy = f"{folder}/{name}"
        if _holds(copy, text):
            continue  # another command of the sandbox may be reading it
        os.makedirs(os.path.dirname(copy), exist_ok=True)  # noqa: PTH103, PTH120  (twenty of them, for each sandbox)
        fresh = f"{copy}.{os.getpid()}"
        with open(fresh, "wb") as file:  # noqa: PTH123
            file.write(text)
        os.replace(fresh, copy)  # noqa: PTH105


def _holds(path: str, text: bytes) -> bool:
    try:
        return os.stat(path).st_size == len(text) and Path(path).read_bytes() == text  # noqa: PTH116
    except OSError:
        return False


@functools.cache
def etc_texts() -> dict[str, bytes]:
    """Read once: they seldom change while a run goes on."""
    found = {}
    for name in _ETC_FILES:
        with contextlib.suppress(OSError):
            found[name] = Path(f"/etc/{name}").read_bytes()
    return found


def system_links() -> dict[str, str]:
    """Links of the root into /usr: the path of each, and what it says."""
    return {f"/{name}": str(Path(f"/{name}").readlink()) for name in _MERGED if os.path.islink(f"/{name}")}


def is_of_the_system(path: str) -> bool:
    """Whether a path is seen in a sandbox anyway."""
    real = os.path.realpath(path)
    return any(within(real, place) for place in _PLACES)


def toolchain_folders(environment: Mapping[str, str]) -> tuple[str, ...]:
    """What the tools on PATH need besides the system: safe to be read by anybody who may run them.

    Of a home folder only what `home_tools` names, and folders of programs on PATH without what lies beside them.
    """
    return _toolchain_folders(environment.get("HOME", ""), environment.get("PATH", ""))


@functools.cache
def _toolchain_folders(home: str, path: str) -> tuple[str, ...]:
    tools = Tools(home)
    on_path = [entry for entry in path.split(os.pathsep) if entry.startswith("/")]
    for entry in (*on_path, *(f"{prefix}/bin" for prefix in (sys.prefix, sys.base_prefix))):
        if not is_of_the_system(entry):
            tools.add_programs(os.path.normpath(entry))
    if any(within(entry, home) for entry in on_path):
        tools.add_at_home()
    return tuple(place for place in tools.found() if not is_of_the_system(place))


def shown_of_a_tool(places: tuple[str, ...], environment: Mapping[str, str]) -> tuple[str, ...]:
    """Of the places that a tool is made of, those that hold nothing but tools."""
    tools = Tools(environment.get("HOME", ""))
    return tuple(place for place in places if tools.may_show(os.path.normpath(place)))


def toolchain_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """Where tools of the user's home are: with a private HOME they would look for themselves in vain."""
    home = environment.get("HOME", "")
    places = {name: f"{home}/{folder}" for name, folder in _TOOLS_OF_VARIABLES.items() if name not in environment}
    return {name: place for name, place in places.items() if home.startswith("/") and os.path.isdir(place)}


def _is_own_folder(path: str) -> bool:
    try:
        return stat.S_ISDIR(os.lstat(path).st_mode)
    except OSError:
        return False
