"""The first settings of a project, made of what is found in its repository and on this machine."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec

from genba.application.project.doctor import TOOLS, login_of
from genba.application.project.file_replacement import place
from genba.application.project.machine import Machine
from genba.application.project.project_context import ProjectContext
from genba.definitions.project.project import CONFIG_FILES, load_project
from genba.domain.errors import GenbaError, NotFoundError, StateConflictError, UsageError
from genba.domain.goals.detection import python_tests_style
from genba.domain.sessions.evidence import CheckResult, CheckStatus
from genba.judgement.verification.goal_proposals import CI_FILES, Proposal, languages, propose

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
_COMMENT = 160
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
    tests: str = ""
    """What came out when the tests were run once: how many passed; empty where they were not run."""
    tests_problem: str = ""
    """Why the tests do not show yet that work is done."""
    repository: str = ""
    url: str = ""
    added: bool = False
    """Whether the settings were there, and only the tracker was added."""
    text: str = ""
    """What is written: the whole file, or what is added to it."""

    @property
    def example(self) -> tuple[str, str]:
        """A setup and a test command, as projects in this language have them."""
        return next((_EXAMPLES[language] for language in self.languages if language in _EXAMPLES), _EXAMPLE)

    @property
    def has_tests(self) -> bool:
        """Whether a goal runs tests."""
        return any(goal == "tests_pass" for goal, _ in self.goals)


TryTests = Callable[[str, str], CheckResult | None]
"""Runs a test command once, by settings that are not written yet; None where that is not possible."""


def plan(
    context: ProjectContext,
    machine: Machine,
    *,
    name: str = "",
    adapter: str = "",
    repository: Repository | None = None,
    try_tests: TryTests | None = None,
) -> Founded:
    """The settings of a project that has none, or the tracker for those that name none. Nothing is written.

    With `try_tests` the proposed test command is run once. One that runs no test, or cannot be run, is left out.
    """
    top = context.layout.top
    there = next((file for file in CONFIG_FILES if (top / file).exists()), "")
    if there and repository is None:
        raise StateConflictError(
            f"this project has settings: {there}", unchanged="nothing was changed.", hint="genba doctor"
        )
    if not there:
        return _first(context, machine, name or top.name, adapter, repository, try_tests)
    assert repository is not None  # noqa: S101  (looked at just above)
    known = context.project.file.tracker.github
    if known is not None:
        raise StateConflictError(
            f"{there} has a tracker: {known.repository}",
            unchanged="nothing was changed.",
            hint="genba sync" if known.repository == repository.name else f"edit tracker.github in {there}",
        )
    text = "\n".join(_tracker(repository.name, repository.url)) + "\n"
    named = repository.name
    return Founded(
        path=there, project=context.project.name, repository=named, url=repository.url, added=True, text=text
    )


def write(context: ProjectContext, planned: Founded) -> None:
    """Write what was planned. What is there by now is left alone."""
    context.refuse_links(context.layout.top / planned.path)
    if planned.added:
        _add_tracker(context, planned)
        return
    path = context.layout.top / planned.path
    if path.exists():
        raise StateConflictError(
            f"this project has settings: {planned.path}", unchanged="nothing was changed.", hint="genba doctor"
        )
    place(context.ports.files, path, planned.text)


def _first(
    context: ProjectContext,
    machine: Machine,
    name: str,
    adapter: str,
    repository: Repository | None,
    try_tests: TryTests | None,
) -> Founded:
    top = context.layout.top
    detection = context.ports.detection
    path = context.ports.environments.passed_on(os.environ, *context.layout.folders).get("PATH", os.defpath)
    texts, names = detection.look_in(top, (*CI_FILES, "composer.json"))
    has_pytest = not detection.command_problem("python3 -m pytest", top, path)
    style = python_tests_style(detection.python_tests(top))
    proposals = propose(detection.detect_in(top), texts, names, has_pytest=has_pytest, style=style)
    tried = [(each, detection.command_problem(each.command, top, path)) for each in proposals]
    found = adapter or next((kind for kind, tool in TOOLS.items() if shutil.which(tool, path=path)), "")
    planned = Founded(
        path=SETTINGS,
        project=name,
        languages=languages(names),
        adapter=found,
        login=login_of(found, os.environ, machine) if found in TOOLS else "",
        repository=repository.name if repository is not None else "",
        url=repository.url if repository is not None else "",
    )
    planned = _completed(planned, tried)
    tests = next((each for each, problem in tried if each.goal == "tests_pass" and not problem), None)
    result = try_tests(tests.command, planned.text) if tests is not None and try_tests is not None else None
    if result is None:
        return planned
    if result.passed:
        return msgspec.structs.replace(planned, tests=result.detail)
    problem = "it ran no test" if result.ran_no_test else result.detail
    if result.status is CheckStatus.FAILED:
        problem = f"it fails on the newest commit: {problem}"
    return _completed(planned, [(each, problem if each is tests else before) for each, before in tried])


def _completed(planned: Founded, tried: list[tuple[Proposal, str]]) -> Founded:
    """The settings with these goals, each with what is in its way.

    A goal that runs tests is never left out: until they can be run it is an error, and no work is done.
    """
    stays = [(each, problem) for each, problem in tried if not problem or each.goal == "tests_pass"]
    planned = msgspec.structs.replace(
        planned,
        goals=tuple((each.goal, each.command) for each, _ in stays),
        left_out=tuple((each.goal, each.command, problem) for each, problem in tried if (each, problem) not in stays),
        tests_problem=next((problem for _, problem in stays if problem), ""),
    )
    return msgspec.structs.replace(planned, text=_text(planned, tuple(tried)))


def _text(settings: Founded, goals: tuple[tuple[Proposal, str], ...]) -> str:
    lines = ["# What each setting means: genba schema config", f"project: {{name: {_quoted(settings.project)}}}", ""]
    lines += [*_who(settings), "", *_what_done_means(settings, goals)]
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


_EXAMPLES = {
    "python": ("python3 -m venv .venv && .venv/bin/pip install -e . pytest", ".venv/bin/python -m pytest -q"),
    "node": ("npm install", "npm test"),
    "ruby": ("bundle install", "bundle exec rspec"),
    "php": ("composer install", "composer test"),
    "elixir": ("mix deps.get", "mix test"),
}
"""By language, a command that installs what tests need, and one that runs them then."""
_EXAMPLE = ("COMMAND that installs what the tests need", "COMMAND that runs the tests")


def _what_done_means(settings: Founded, goals: tuple[tuple[Proposal, str], ...]) -> list[str]:
    setup, command = settings.example
    lines = ["# What done means, for every task. Genba checks it on the exact commit, in a clean checkout."]
    if any(each.is_detected for each, _ in goals):
        lines.append("# Where no command stands, the one behind # is found out; `- tests_pass: COMMAND` sets another.")
    if not any(each.goal == "tests_pass" for each, _ in goals):
        lines.append("# No test command was found: add one.  - tests_pass: make test")
    lines.append("dod:")
    for each, problem in goals:
        detected = f"{each.goal}   # {each.command}" if each.is_detected else ""
        named = detected or (f"{each.goal}: {_line(each.command)}" if each.command else each.goal)
        if problem and each.goal == "tests_pass":
            lines.append(f"  # Nothing is done until this can be checked: {_one_line(problem)}")
        elif problem:
            named = f"{named}   ({_one_line(problem)})"
        lines.append(f"  # - {named}" if problem and each.goal != "tests_pass" else f"  - {named}")
    if not settings.has_tests or settings.tests_problem:
        lines += ["", "# Tests that need packages get them in the clean checkout, and run there:"]
        lines += ["# verification:", f"#   setup: {setup}", "# dod:", f"#   - tests_pass: {command}"]
    return lines


def _one_line(text: str) -> str:
    """A text as the end of a comment."""
    plain = "".join(letter if letter.isprintable() else " " for letter in text)
    return plain if len(plain) <= _COMMENT else f"{plain[:_COMMENT]}…"


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


def _add_tracker(context: ProjectContext, planned: Founded) -> None:
    """The lines of the user stay as they are; what is new comes after them, and is tried before it is kept."""
    path = context.layout.top / planned.path
    before = path.read_text(encoding="utf-8")
    gap = "" if before.endswith("\n") or not before else "\n"
    place(context.ports.files, path, f"{before}{gap}\n{planned.text}")
    try:
        load_project(context.layout.top)
    except GenbaError as error:
        place(context.ports.files, path, before)
        raise StateConflictError(
            f"the tracker could not be added at the end of {planned.path}: {error.message}",
            unchanged="nothing was changed.",
            hint=f"add it yourself:\n{planned.text.rstrip()}",
        ) from error


async def repository_of(context: ProjectContext, word: str) -> Repository:
    """The repository that a user names by `owner/name` or an address; by default that of the remote origin."""
    if not word:
        return await _of_remote(context)
    if _REPOSITORY.fullmatch(word):
        near = await _address_of_remote(context)
        return _at(near) if near is not None and near["name"].lower() == word.lower() else Repository(word)
    match = _ADDRESS.fullmatch(word)
    if match is None or not (match["scheme"] or "@" in word or _HOST.fullmatch(match["host"])):
        raise UsageError(
            f'"{word[:100]}" is no repository', unchanged="nothing was changed.", hint="--github owner/name"
        )
    return _at(match)


async def _of_remote(context: ProjectContext) -> Repository:
    match = await _address_of_remote(context)
    if match is None:
        raise NotFoundError(
            "this repository has no remote origin, or none on GitHub",
            unchanged="nothing was changed.",
            hint="name it: genba init --github owner/name",
        )
    return _at(match)


async def _address_of_remote(context: ProjectContext) -> re.Match[str] | None:
    """The address of the remote origin; None where there is none, or none of a host."""
    output = await context.layout.git.run("remote", "get-url", "origin", allow=(0, 2, 128))
    return _host_address(output.stdout.strip()) if output.returncode == 0 else None


def _host_address(address: str) -> re.Match[str] | None:
    return _ADDRESS.fullmatch(address) if not Path(address).exists() else None


def _at(address: re.Match[str]) -> Repository:
    """The port of a web address is that of the API too; the one of ssh is not."""
    host, name, scheme = address["host"].lower(), address["name"], (address["scheme"] or "").lower()
    if host in (_GITHUB, f"ssh.{_GITHUB}", f"www.{_GITHUB}"):
        return Repository(name)
    if host in _OTHERS:
        raise UsageError(
            f"{host} is no GitHub: its issues cannot be read",
            unchanged="nothing was changed.",
            hint="genba init   keeps the tasks here; pull requests there are opened by a command of yours: `forge`",
        )
    plain = scheme == "http" and host in _LOOPBACK
    port = f":{address['port']}" if address["port"] and (scheme == "https" or plain) else ""
    return Repository(name, f"{'http' if plain else 'https'}://{host}{port}/api/v3")
