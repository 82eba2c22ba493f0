"""Which tools of a user's machine are shown in a sandbox. Of the HOME of the user: named places, and nothing else.

A folder of programs on PATH is shown without its parents. What lies beside it is shown only where it is known to be
part of the tool, such as the libraries of an interpreter.
"""

# ruff: noqa: PTH110, PTH112, PTH114  (os.path says False of what the user may not look at; Path raises)

import os
import stat
from collections.abc import Iterator
from pathlib import Path

_HOMES = frozenset({"home", "Users"})
_NOT_TOOLS = _HOMES | {"etc", "var", "proc", "sys", "dev", "run", "tmp", "root", "boot", "srv", "mnt", "media", "opt"}
_CONDAS = tuple(
    name for conda in ("miniconda3", "anaconda3", "miniforge3", "mambaforge", "micromamba")
    for name in (conda, f".{conda}")
)  # fmt: skip
_OF_CONDA = (
    "bin", "condabin", "lib", "lib64", "libexec", "sbin", "include", "share", "ssl", "shell", "envs", "conda-meta",
    "compiler_compat", "etc/conda", "etc/profile.d", "etc/fonts", "etc/ssl", "x86_64-conda-linux-gnu",
    "aarch64-conda-linux-gnu",
)  # fmt: skip
SECRET = (
    ".ssh", ".aws", ".azure", ".gnupg", ".config", ".kube", ".docker", ".password-store", ".netrc", ".npmrc", ".pypirc",
    ".git-credentials", ".gitconfig", ".claude", ".claude.json", ".codex", ".gemini", ".mozilla", ".cache",
    ".local/share/keyrings", ".local/share/opencode", ".local/state", ".cargo/credentials", ".cargo/credentials.toml",
    ".gem/credentials", ".m2/settings.xml", ".gradle/gradle.properties", ".condarc",
    *(f"{conda}/.condarc" for conda in _CONDAS),
)  # fmt: skip
"""Never shown, also where PATH or a link leads there."""
SHOWN_OF_HOME = (
    "bin", ".bin", "go/bin",
    *(f".local/{name}" for name in ("bin", "lib", "pipx/venvs")),
    *(f".local/share/{name}" for name in (
        "uv/tools", "uv/python", "pipx/venvs", "pipx/py", "mise/installs", "mise/shims", "fnm/node-versions",
        "claude/versions", "pnpm/bin", "pnpm/global", "pnpm/nodejs", "pnpm/.tools", "juliaup",
        "rtx/installs", "rtx/shims", "swiftly/toolchains", "coursier/bin", "virtualenvs",
    )),
    ".cargo/bin", ".rustup/toolchains", ".rustup/settings.toml", ".rustup/update-hashes",
    *(f".{manager}/{name}" for manager in ("pyenv", "rbenv", "nodenv", "jenv", "goenv", "asdf") for name in (
        "bin", "libexec", "lib", "shims", "versions", "version", "plugins", "installs", "asdf.sh",
    )),
    ".nvm/versions", ".nvm/alias", ".fnm/node-versions", ".volta/bin", ".volta/tools",
    ".bun/bin", ".bun/install/global/node_modules", ".deno/bin", ".opencode/bin", ".sdkman/candidates",
    *(f".dotnet/{name}" for name in ("dotnet", "host", "packs", "sdk", "shared", "tools")),
    ".npm-global/bin", ".npm-global/lib", ".npm-packages/bin", ".npm-packages/lib", ".yarn/bin", ".poetry/bin",
    ".ghcup/bin", ".ghcup/ghc", ".cabal/bin", ".krew/bin", ".composer/vendor",
    *(f"{conda}/{name}" for conda in _CONDAS for name in _OF_CONDA),
)  # fmt: skip
"""Tools and what they stand on: of each tool the folders that it runs from, and nothing else that it keeps."""
_MANAGERS = frozenset({".pyenv", ".rbenv", ".asdf", ".jenv", ".goenv", ".volta"})
"""Managers of tools; outside of HOME, each is of use only as a whole."""
_FOR_PROGRAMS = frozenset({"bin", ".bin", "sbin", "shims", "scripts"})
_PARTS_OF_A_TOOL = ("lib", "lib64", "libexec")
_WHOLE = ("pyvenv.cfg", "conda-meta", "pkg/tool", "include/node", "lib/modules", "lib/rustlib")
"""What only the folder of an environment, an interpreter or a compiler has beside its programs."""
_MOST_PROGRAMS = 200
_HOPS = 16


class Tools:
    """Gathers folders of tools, and what their links lead to."""

    def __init__(self, home: str) -> None:
        self.home = os.path.normpath(home) if home.startswith("/") else ""
        self.secrets = tuple(f"{self.home}/{name}" for name in SECRET) if self.home else ()
        self.places: set[str] = set()

    def found(self) -> tuple[str, ...]:
        outermost: list[str] = []
        for place in sorted(self.places):
            if not any(within(place, other) for other in outermost):
                outermost.append(place)
        return tuple(outermost)

    def add_programs(self, folder: str) -> None:
        """A folder of programs, what belongs to it, and whatever its links lead to."""
        if not os.path.isdir(folder) or self.is_private(folder):
            return
        self.places.update(self._shown_at_home(folder) if self._is_at_home(folder) else (self._root_of(folder),))
        for link in _links_in(folder):
            self._follow(link)

    def add_at_home(self) -> None:
        """All named places that there are."""
        self.places |= {path for name in SHOWN_OF_HOME if os.path.exists(path := f"{self.home}/{name}")}

    def may_show(self, place: str) -> bool:
        """Whether a place that a tool is made of holds nothing but tools."""
        if self.is_private(place):
            return False
        if not self._is_at_home(place) or not os.path.isdir(place):
            return True
        return place in self._shown_at_home(place) or bool(self._named(place)) or _is_whole(place)

    def is_private(self, path: str) -> bool:
        """Whether showing this path would show more than a tool."""
        match Path(path).parts[1:]:
            case ():
                return True
            case (top,) if top in _NOT_TOOLS:
                return True
            case (top, _) if top in _HOMES:
                return True
        if self.home and within(self.home, path):
            return True
        return any(within(secret, path) and os.path.exists(secret) for secret in self.secrets) or any(
            within(path, secret) for secret in self.secrets
        )

    def _is_at_home(self, path: str) -> bool:
        return bool(self.home) and (
            within(path, self.home) or within(os.path.realpath(path), os.path.realpath(self.home))
        )

    def _named(self, path: str) -> str:
        """The named place that a path is in."""
        named = (f"{self.home}/{name}" for name in SHOWN_OF_HOME)
        return next((place for place in named if within(path, place)), "")

    def _shown_at_home(self, folder: str) -> tuple[str, ...]:
        """Of a folder of programs somewhere in HOME: the named place it is in, or as little as it needs."""
        if place := self._named(folder):
            return self._with_the_rest(place)
        parts = Path(folder).parts
        if "node_modules" in parts:
            return (str(Path(*parts[: parts.index("node_modules") + 1])),)
        parent = str(Path(folder).parent)
        if Path(folder).name not in _FOR_PROGRAMS:
            return tuple(_programs_in(folder))
        if parent == self.home or self.is_private(parent):
            return (folder,)
        if _is_whole(parent):
            return (parent,)
        beside = (f"{parent}/{name}" for name in _PARTS_OF_A_TOOL)
        return (folder, *(path for path in beside if os.path.isdir(path) and not self.is_private(path)))

    def _with_the_rest(self, place: str) -> tuple[str, ...]:
        """A named place, and for one of a conda the others of that conda: none is of use alone."""
        conda = next((f"{self.home}/{name}" for name in _CONDAS if within(place, f"{self.home}/{name}")), "")
        parts = (f"{conda}/{name}" for name in _OF_CONDA)
        return tuple(part for part in parts if os.path.exists(part)) if conda else (place,)

    def _follow(self, link: str) -> None:
        for _ in range(_HOPS):
            if not os.path.islink(link):
                return
            link = os.path.normpath(Path(link).parent / Path(link).readlink())
            if not os.path.exists(link) or self.is_private(link):
                return
            folder = str(Path(link).parent)
            if self._is_at_home(link):
                is_in_a_tool = self._named(folder) or Path(folder).name == "bin" or "node_modules" in Path(folder).parts
                self.places.update(self._shown_at_home(folder) if is_in_a_tool else _program_at(link))
            else:
                self.places.add(self._root_of(folder) if self._is_for_programs(folder) else link)

    def _is_for_programs(self, folder: str) -> bool:
        return "node_modules" in Path(folder).parts or (Path(folder).name == "bin" and not self.is_private(folder))

    def _root_of(self, folder: str) -> str:
        """Outside of HOME: the whole tool that a folder of programs belongs to, or the folder alone."""
        parts = Path(folder).parts
        if "node_modules" in parts:
            return str(Path(*parts[: parts.index("node_modules") + 1]))
        if managers := _MANAGERS.intersection(parts):
            return str(Path(*parts[: min(parts.index(name) for name in managers) + 1]))
        parent = str(Path(folder).parent)
        whole = any(os.path.exists(f"{parent}/{name}") for name in ("pyvenv.cfg", "lib", "libexec"))
        alone = not whole or self.is_private(parent) or os.path.exists(f"{parent}/.git")
        return folder if alone else parent


def within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _is_whole(folder: str) -> bool:
    has = any(os.path.exists(f"{folder}/{name}") for name in _WHOLE)
    return has and not os.path.exists(f"{folder}/.git")


def _program_at(path: str) -> Iterator[str]:
    """The path, where it is a program."""
    try:
        found = os.stat(path).st_mode  # noqa: PTH116
    except OSError:
        return
    if stat.S_ISREG(found) and found & 0o111:
        yield path


def _programs_in(folder: str) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            paths = sorted(entry.path for entry in entries)
    except OSError:
        return []
    return [program for path in paths for program in _program_at(path)][:_MOST_PROGRAMS]


def _links_in(folder: str) -> Iterator[str]:
    try:
        with os.scandir(folder) as entries:
            yield from [entry.path for entry in entries if entry.is_symlink()]
    except OSError:
        return
