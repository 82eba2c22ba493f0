"""The first settings of a project, made of what is found in its repository and on this machine."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import msgspec

from genba.connections.goals.detection import detect_in
from genba.definitions.project import CONFIG_FILES, load_project
from genba.domain.errors import GenbaError, NotFoundError, StateConflictError, UsageError
from genba.wiring.house import House

SETTINGS = ".genba/config.yaml"
_TOOLS = {"claude": "claude-code", "codex": "codex", "opencode": "opencode"}
"""By program, the adapter that drives it; the first that is installed is taken."""
_REPOSITORY = re.compile(r"[A-Za-z0-9_.-]+/[A-Za-z0-9_.-]+")
_ADDRESS = re.compile(
    r"(?:(?P<scheme>\w+)://)?(?:[^@/]+@)?(?P<host>[^/:]+)(?::(?P<port>\d+))?[/:](?P<name>[\w.-]+/[\w.-]+?)(?:\.git)?/?"
)
_GITHUB = "github.com"
_OTHERS = ("gitlab.com", "bitbucket.org", "codeberg.org", "gitea.com", "git.sr.ht", "dev.azure.com")
"""Known to speak another language. They get no token of GitHub's."""
_HOST = re.compile(r"[\w-]+(?:\.[\w-]+)+")
_LOOPBACK = ("localhost", "127.0.0.1")
"""The only hosts that are asked without TLS."""
_PLAIN = re.compile(r"[A-Za-z0-9][\w.-]*")


class Repository(msgspec.Struct, frozen=True):
    """A repository on GitHub, or on an Enterprise server."""

    name: str
    url: str = ""
    """The address of the API, where it is not that of GitHub itself."""


class Founded(msgspec.Struct, frozen=True, kw_only=True):
    """What was written, and what was found for it."""

    path: str
    project: str
    adapter: str = ""
    goals: tuple[tuple[str, str], ...] = ()
    """Each goal of the Definition of Done with the command that it runs."""
    repository: str = ""
    url: str = ""
    added: bool = False
    """Whether the settings were there, and only the tracker was added."""


def found(house: House, *, name: str = "", adapter: str = "", repository: Repository | None = None) -> Founded:
    """Write the settings of a project that has none, or add the tracker to those that name none."""
    top = house.layout.top
    there = next((file for file in CONFIG_FILES if (top / file).exists()), "")
    if there and repository is None:
        raise StateConflictError(
            f"this project has settings: {there}", unchanged="nothing was changed.", hint="genba agent list"
        )
    if there:
        assert repository is not None  # noqa: S101  (looked at just above)
        return _add_tracker(house, there, repository)
    settings = _first(top, name or top.name, adapter, repository)
    _write(top / SETTINGS, _text(settings))
    return settings


def _first(top: Path, name: str, adapter: str, repository: Repository | None) -> Founded:
    detected = detect_in(top)
    commands = (("lint_passes", detected.lint), ("build_succeeds", detected.build), ("tests_pass", detected.test))
    return Founded(
        path=SETTINGS,
        project=name,
        adapter=adapter or next((kind for tool, kind in _TOOLS.items() if shutil.which(tool)), ""),
        goals=tuple((goal, command) for goal, command in commands if command),
        repository=repository.name if repository is not None else "",
        url=repository.url if repository is not None else "",
    )


def _text(settings: Founded) -> str:
    lines = ["# What each setting means: genba schema config", f"project: {{name: {_quoted(settings.project)}}}", ""]
    if settings.adapter:
        lines += ["agents:", "  default:", f"    adapter: {settings.adapter}", ""]
    else:
        lines += [
            "# Who works: name a tool that is installed here (claude-code, codex, opencode), or a command.",
            "# agents:",
        ]
        lines += ["#   default:", "#     adapter: claude-code", ""]
    if settings.goals:
        lines += [
            "# What done means, for every task. Each command is found out from the files of the project;",
            "# write `command: …` under a goal to set another.",
        ]
        lines += ["dod:", *(f"  - type: {goal}   # {command}" for goal, command in settings.goals)]
    else:
        lines += ["# What done means, for every task.", "# dod:", "#   - type: tests_pass", "#     command: make test"]
    if settings.repository:
        lines += ["", *_tracker(settings.repository, settings.url)]
    return "\n".join(lines) + "\n"


def _tracker(repository: str, url: str) -> list[str]:
    lines = ["tracker:", "  github:", f"    repository: {_quoted(repository)}"]
    return [*lines, f"    url: {_quoted(url)}"] if url else lines


def _quoted(text: str) -> str:
    """A text as YAML reads it again; what is plain stays plain. JSON is YAML."""
    plain = _PLAIN.fullmatch(text.replace("/", ".")) and not re.fullmatch(
        r"(?i)[\d._-]+|true|false|null|yes|no|on|off", text
    )
    return text if plain else msgspec.json.encode(text).decode()


def _add_tracker(house: House, there: str, repository: Repository) -> Founded:
    """The lines of the user stay as they are; what is new comes after them, and is tried before it is kept."""
    known = house.project.file.tracker.github
    if known is not None:
        raise StateConflictError(
            f"{there} has a tracker: {known.repository}",
            unchanged="nothing was changed.",
            hint="genba sync" if known.repository == repository.name else f"edit tracker.github in {there}",
        )
    path = house.layout.top / there
    before = path.read_text(encoding="utf-8")
    gap = "" if before.endswith("\n") or not before else "\n"
    lines = "\n".join(_tracker(repository.name, repository.url))
    _write(path, f"{before}{gap}\n{lines}\n")
    try:
        load_project(house.layout.top)
    except GenbaError as error:
        _write(path, before)
        raise StateConflictError(
            f"the tracker could not be added at the end of {there}: {error.message}",
            unchanged="nothing was changed.",
            hint=f"add it yourself:\n{lines}",
        ) from error
    return Founded(path=there, project=house.project.name, repository=repository.name, url=repository.url, added=True)


def _write(path: Path, text: str) -> None:
    """Whole, or not at all."""
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        beside.write_text(text, encoding="utf-8")
        if path.exists():
            shutil.copymode(path, beside)
        beside.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            beside.unlink(missing_ok=True)
        raise StateConflictError(
            f"{path} cannot be written: {error.strerror}",
            unchanged="nothing was changed.",
            hint=f"see who may write there: ls -ld {shlex.quote(str(_there(path.parent)))}",
        ) from error


def _there(folder: Path) -> Path:
    return folder if folder.exists() else folder.parent


def repository_of(house: House, word: str) -> Repository:
    """The repository that somebody names: `owner/name`, an address, or nothing, which is that of a remote."""
    if not word:
        return _of_remote(house)
    if _REPOSITORY.fullmatch(word):
        near = _address_of_remote(house)
        return _at(near) if near is not None and near["name"].lower() == word.lower() else Repository(word)
    match = _ADDRESS.fullmatch(word)
    if match is None or not (match["scheme"] or "@" in word or _HOST.fullmatch(match["host"])):
        raise UsageError(
            f'"{word[:100]}" is no repository', unchanged="nothing was changed.", hint="--github owner/name"
        )
    return _at(match)


def _of_remote(house: House) -> Repository:
    match = _address_of_remote(house)
    if match is None:
        raise NotFoundError(
            "this repository has no remote origin, or none on GitHub",
            unchanged="nothing was changed.",
            hint="name it: genba init --github owner/name",
        )
    return _at(match)


def _address_of_remote(house: House) -> re.Match[str] | None:
    """What the remote origin says; None where there is none, or none of a host."""
    told = subprocess.run(
        ["git", "-C", str(house.layout.top), "remote", "get-url", "origin"], check=False, capture_output=True, text=True
    )
    address = told.stdout.strip()
    return _ADDRESS.fullmatch(address) if told.returncode == 0 and not Path(address).exists() else None


def _at(address: re.Match[str]) -> Repository:
    """The port of a web address is that of the API too; the one of ssh is not."""
    host, name, scheme = address["host"].lower(), address["name"], (address["scheme"] or "").lower()
    if host in (_GITHUB, f"ssh.{_GITHUB}", f"www.{_GITHUB}"):
        return Repository(name)
    if host in _OTHERS:
        raise UsageError(
            f"{host} is no GitHub: its issues cannot be read",
            unchanged="nothing was changed, and nobody was asked.",
            hint="genba init   keeps the tasks here; pull requests there are opened by a command of yours: `forge`",
        )
    plain = scheme == "http" and host in _LOOPBACK
    port = f":{address['port']}" if address["port"] and (scheme == "https" or plain) else ""
    return Repository(name, f"{'http' if plain else 'https'}://{host}{port}/api/v3")
