"""The first settings of a project, made of what is found in its repository and on this machine."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import msgspec

from genba.connections.goals.detection import detect_in, look_in
from genba.definitions.project import CONFIG_FILES, load_project
from genba.domain.errors import GenbaError, NotFoundError, StateConflictError, UsageError
from genba.judgement.proposing import CI_FILES, Proposal, languages, propose
from genba.wiring.checkup import TOOLS, login_of
from genba.wiring.ground import in_the_way
from genba.wiring.house import House
from genba.wiring.placing import place

SETTINGS = ".genba/config.yaml"
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
    """What is written, and what was found for it."""

    path: str
    project: str
    languages: tuple[str, ...] = ()
    adapter: str = ""
    login: str = ""
    """A file of HOME that lets the agent in, where no key does."""
    goals: tuple[tuple[str, str], ...] = ()
    """Each goal of the Definition of Done with the command that it runs."""
    left_out: tuple[tuple[str, str, str], ...] = ()
    """Goals that could not be checked on this machine: each with its command, and what is in the way."""
    repository: str = ""
    url: str = ""
    added: bool = False
    """Whether the settings were there, and only the tracker was added."""
    text: str = ""
    """What is written: the whole file, or what is added to it."""


def plan(house: House, *, name: str = "", adapter: str = "", repository: Repository | None = None) -> Founded:
    """The settings of a project that has none, or the tracker for those that name none. Nothing is written."""
    top = house.layout.top
    there = next((file for file in CONFIG_FILES if (top / file).exists()), "")
    if there and repository is None:
        raise StateConflictError(
            f"this project has settings: {there}", unchanged="nothing was changed.", hint="genba doctor"
        )
    if not there:
        return _first(top, name or top.name, adapter, repository)
    assert repository is not None  # noqa: S101  (looked at just above)
    known = house.project.file.tracker.github
    if known is not None:
        raise StateConflictError(
            f"{there} has a tracker: {known.repository}",
            unchanged="nothing was changed.",
            hint="genba sync" if known.repository == repository.name else f"edit tracker.github in {there}",
        )
    text = "\n".join(_tracker(repository.name, repository.url)) + "\n"
    named = repository.name
    return Founded(path=there, project=house.project.name, repository=named, url=repository.url, added=True, text=text)


def write(house: House, planned: Founded) -> None:
    """Write what was planned. What is there by now is left alone."""
    if planned.added:
        _add_tracker(house, planned)
        return
    path = house.layout.top / planned.path
    if path.exists():
        raise StateConflictError(
            f"this project has settings: {planned.path}", unchanged="nothing was changed.", hint="genba doctor"
        )
    place(path, planned.text)


def _first(top: Path, name: str, adapter: str, repository: Repository | None) -> Founded:
    texts, names = look_in(top, (*CI_FILES, "composer.json"))
    proposals = propose(detect_in(top), texts, names, has_pytest=not in_the_way("python3 -m pytest", top))
    tried = [(each, in_the_way(each.command, top)) for each in proposals]
    found = adapter or next((kind for kind, tool in TOOLS.items() if shutil.which(tool)), "")
    planned = Founded(
        path=SETTINGS,
        project=name,
        languages=languages(names),
        adapter=found,
        login=login_of(found, os.environ) if found in TOOLS else "",
        goals=tuple((each.goal, each.command) for each, problem in tried if not problem),
        left_out=tuple((each.goal, each.command, problem) for each, problem in tried if problem),
        repository=repository.name if repository is not None else "",
        url=repository.url if repository is not None else "",
    )
    return msgspec.structs.replace(planned, text=_text(planned, tuple(tried)))


def _text(settings: Founded, goals: tuple[tuple[Proposal, str], ...]) -> str:
    lines = ["# What each setting means: genba schema config", f"project: {{name: {_quoted(settings.project)}}}", ""]
    lines += [*_who(settings), "", *_what_done_means(goals)]
    if settings.repository:
        lines += ["", *_tracker(settings.repository, settings.url)]
    return "\n".join(lines) + "\n"


def _who(settings: Founded) -> list[str]:
    if not settings.adapter:
        return [
            "# Who works: name a tool that is installed here (claude-code, codex, opencode), or a command.",
            "# agents:",
            "#   default:",
            "#     adapter: claude-code",
        ]
    lines = ["agents:", "  default:"]
    if not settings.login:
        return [*lines, f"    adapter: {settings.adapter}"]
    return [
        *lines,
        "    # Your login is copied for each run, and the agent can read it. A key in the environment does without.",
        f"    adapter: {{type: {settings.adapter}, homeFiles: [{settings.login}]}}",
    ]


def _what_done_means(goals: tuple[tuple[Proposal, str], ...]) -> list[str]:
    lines = ["# What done means, for every task. Genba checks it on the exact commit, in a clean checkout."]
    if any(each.is_detected for each, _ in goals):
        lines.append("# Where no command stands, the one behind # is found out; `- tests_pass: COMMAND` sets another.")
    if not any(each.goal == "tests_pass" for each, _ in goals):
        lines.append("# No test command was found: add one.  - tests_pass: make test")
    lines.append("dod:")
    for each, problem in goals:
        detected = f"{each.goal}   # {each.command}" if each.is_detected else ""
        named = detected or (f"{each.goal}: {_line(each.command)}" if each.command else each.goal)
        lines.append(f"  # - {named}   ({problem})" if problem else f"  - {named}")
    return lines


def _line(command: str) -> str:
    """A command as YAML reads it again."""
    return command if re.fullmatch(r"[A-Za-z0-9./][\w ./=-]*", command) else msgspec.json.encode(command).decode()


def _tracker(repository: str, url: str) -> list[str]:
    lines = ["tracker:", "  github:", f"    repository: {_quoted(repository)}"]
    return [*lines, f"    url: {_quoted(url)}"] if url else lines


def _quoted(text: str) -> str:
    """A text as YAML reads it again; what is plain stays plain. JSON is YAML."""
    plain = _PLAIN.fullmatch(text.replace("/", ".")) and not re.fullmatch(
        r"(?i)[\d._-]+|true|false|null|yes|no|on|off", text
    )
    return text if plain else msgspec.json.encode(text).decode()


def _add_tracker(house: House, planned: Founded) -> None:
    """The lines of the user stay as they are; what is new comes after them, and is tried before it is kept."""
    path = house.layout.top / planned.path
    before = path.read_text(encoding="utf-8")
    gap = "" if before.endswith("\n") or not before else "\n"
    place(path, f"{before}{gap}\n{planned.text}")
    try:
        load_project(house.layout.top)
    except GenbaError as error:
        place(path, before)
        raise StateConflictError(
            f"the tracker could not be added at the end of {planned.path}: {error.message}",
            unchanged="nothing was changed.",
            hint=f"add it yourself:\n{planned.text.rstrip()}",
        ) from error


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
