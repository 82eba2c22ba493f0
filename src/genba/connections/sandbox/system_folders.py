"""What of the host is shown behind walls, read-only: a list of what is allowed, and nothing beside it.

The system's own programs and libraries; of /etc only what programs need to run, never a key or a password; and the
folders of tools that the user's PATH names, without the credentials that lie beside them.
"""

import contextlib
import functools
import os
import stat
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

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
_HOMES = frozenset({"home", "Users"})
_NOT_TOOLS = _HOMES | {"etc", "var", "proc", "sys", "dev", "run", "tmp", "root", "boot", "srv", "mnt", "media", "opt"}
_SECRET = (
    ".ssh", ".aws", ".azure", ".gnupg", ".config", ".kube", ".docker", ".password-store", ".netrc", ".npmrc", ".pypirc",
    ".git-credentials", ".gitconfig", ".claude", ".claude.json", ".codex", ".gemini", ".mozilla", ".cache",
    ".local/share/keyrings", ".local/share/opencode", ".local/state", ".cargo/credentials", ".cargo/credentials.toml",
    ".gem/credentials", ".m2/settings.xml", ".gradle/gradle.properties",
)  # fmt: skip
_TOOLS_AT_HOME = (
    ".rustup/toolchains", ".rustup/settings.toml", ".rustup/update-hashes", ".pyenv", ".rbenv", ".nvm/versions",
    ".nvm/alias", ".volta", ".asdf", ".sdkman/candidates", ".local/share/uv", ".local/share/mise", ".local/share/pnpm",
    ".local/share/claude", ".local/lib", ".bun", ".deno/bin", ".opencode/bin", ".jenv", ".goenv",
)  # fmt: skip
"""What the programs on the PATH of a home folder stand on."""
_MANAGERS = frozenset({".pyenv", ".rbenv", ".asdf", ".jenv", ".goenv", ".volta"})
"""Managers of tools, each in one folder that is of use only as a whole."""
_TOOLS_OF_VARIABLES = {
    "RUSTUP_HOME": ".rustup",
    "PYENV_ROOT": ".pyenv",
    "RBENV_ROOT": ".rbenv",
    "NVM_DIR": ".nvm",
    "VOLTA_HOME": ".volta",
    "ASDF_DATA_DIR": ".asdf",
}
_HOPS = 16


def system_places() -> tuple[str, ...]:
    """Files and folders of the system itself, as they are on this host."""
    etc = (f"/etc/{name}" for name in _ETC_FILES)
    return (*program_places(), *(path for path in etc if Path(path).exists()), *etc_folders())


def program_places() -> tuple[str, ...]:
    """The folders of the system's programs and libraries."""
    merged = (f"/{name}" for name in _MERGED)
    return (*(place for place in _PLACES if Path(place).is_dir()), *(path for path in merged if _is_own_folder(path)))


def etc_folders() -> tuple[str, ...]:
    """What is shown of /etc besides single files."""
    return tuple(path for name in _ETC_FOLDERS if Path(path := f"/etc/{name}").is_dir())


def copy_etc(folder: str) -> None:
    """The files of /etc that are shown, and places for its folders: one mount in place of forty."""
    for path in etc_folders():
        Path(folder + path.removeprefix("/etc")).mkdir(parents=True, exist_ok=True)
    for name, text in etc_texts().items():
        copy = f"{folder}/{name}"
        if _holds(copy, text):
            continue  # another command of the cell may be reading it
        os.makedirs(os.path.dirname(copy), exist_ok=True)  # noqa: PTH103, PTH120  (twenty of them, for each cell)
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
    return {f"/{name}": str(Path(f"/{name}").readlink()) for name in _MERGED if Path(f"/{name}").is_symlink()}


def is_of_the_system(path: str) -> bool:
    """Whether a path is seen behind walls anyway."""
    real = os.path.realpath(path)
    return any(_within(real, place) for place in _PLACES)


def toolchain_folders(environment: Mapping[str, str]) -> tuple[str, ...]:
    """What the tools on PATH need besides the system: safe to be read by anybody who may run them.

    Never a home folder itself, and never what holds a key: beside a `bin` with credentials only the `bin` is shown.
    """
    return _toolchain_folders(environment.get("HOME", ""), environment.get("PATH", ""))


@functools.cache
def _toolchain_folders(home: str, path: str) -> tuple[str, ...]:
    tools = _Tools(home)
    on_path = [entry for entry in path.split(os.pathsep) if entry.startswith("/")]
    for entry in (*on_path, *(f"{prefix}/bin" for prefix in (sys.prefix, sys.base_prefix))):
        tools.add_programs(os.path.normpath(entry))
    if any(_within(entry, home) for entry in on_path):
        tools.add_at_home()
    return tools.found()


def shown_of_a_tool(places: tuple[str, ...], environment: Mapping[str, str]) -> tuple[str, ...]:
    """Of the places that a tool is made of, those that hold nothing but tools."""
    tools = _Tools(environment.get("HOME", ""))
    return tuple(place for place in places if not tools.is_private(os.path.normpath(place)))


def toolchain_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """Where tools of the user's home are: with a private HOME they would look for themselves in vain."""
    home = environment.get("HOME", "")
    places = {name: f"{home}/{folder}" for name, folder in _TOOLS_OF_VARIABLES.items() if name not in environment}
    return {name: place for name, place in places.items() if home.startswith("/") and Path(place).is_dir()}


class _Tools:
    """Gathers folders, and what their links lead to."""

    def __init__(self, home: str) -> None:
        self.home = os.path.normpath(home) if home.startswith("/") else ""
        self.secrets = tuple(f"{self.home}/{name}" for name in _SECRET) if self.home else ()
        self.places: set[str] = set()

    def found(self) -> tuple[str, ...]:
        outermost: list[str] = []
        for place in sorted(self.places):
            if not any(_within(place, other) for other in outermost):
                outermost.append(place)
        return tuple(outermost)

    def add_programs(self, folder: str) -> None:
        """A folder of programs, what belongs to it, and whatever its links lead to."""
        if is_of_the_system(folder) or not Path(folder).is_dir() or self.is_private(folder):
            return
        self.places.add(self._root_of(folder))
        for link in _links_in(folder):
            self._follow(link)

    def add_at_home(self) -> None:
        self.places |= {f"{self.home}/{name}" for name in _TOOLS_AT_HOME if Path(f"{self.home}/{name}").exists()}

    def _follow(self, link: str) -> None:
        for _ in range(_HOPS):
            if not Path(link).is_symlink():
                return
            link = os.path.normpath(Path(link).parent / Path(link).readlink())
            if is_of_the_system(link) or not Path(link).exists() or self.is_private(link):
                return
            folder = str(Path(link).parent)
            self.places.add(self._root_of(folder) if self._is_for_programs(folder) else link)

    def _is_for_programs(self, folder: str) -> bool:
        return "node_modules" in Path(folder).parts or (Path(folder).name == "bin" and not self.is_private(folder))

    def _root_of(self, folder: str) -> str:
        """The whole tool that a folder of programs belongs to, where it is one; otherwise the folder alone."""
        parts = Path(folder).parts
        if "node_modules" in parts:
            return str(Path(*parts[: parts.index("node_modules") + 1]))
        if managers := _MANAGERS.intersection(parts):
            return str(Path(*parts[: min(parts.index(name) for name in managers) + 1]))
        parent = str(Path(folder).parent)
        whole = any(os.path.exists(f"{parent}/{name}") for name in ("pyvenv.cfg", "lib", "libexec"))  # noqa: PTH110
        alone = not whole or self.is_private(parent) or os.path.exists(f"{parent}/.git")  # noqa: PTH110
        return folder if alone else parent

    def is_private(self, path: str) -> bool:
        """Whether showing this path would show more than a tool."""
        match Path(path).parts[1:]:
            case ():
                return True
            case (top,) if top in _NOT_TOOLS:
                return True
            case (top, _) if top in _HOMES:
                return True
        if self.home and _within(self.home, path):
            return True
        return any(_within(secret, path) and Path(secret).exists() for secret in self.secrets) or any(
            _within(path, secret) for secret in self.secrets
        )


def _links_in(folder: str) -> Iterator[str]:
    try:
        with os.scandir(folder) as entries:
            yield from [entry.path for entry in entries if entry.is_symlink()]
    except OSError:
        return


def _is_own_folder(path: str) -> bool:
    try:
        return stat.S_ISDIR(os.lstat(path).st_mode)
    except OSError:
        return False


def _within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")
