"""The sandbox settings of a project and its agents; an agent only narrows those of the project."""

from collections.abc import Iterator
from typing import Annotated

import msgspec
from msgspec import Meta

from genba.domain.problems import Problem
from genba.domain.sessions.outcomes import PermissionMode
from genba.domain.sessions.sandbox import Credentials, Network, SandboxKind, SandboxLimits


class _Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pass


class _AgentSection(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel"):
    pass


class LimitsSection(_Section, frozen=True):
    """How much one agent may use. null is no limit."""

    memory_mb: Annotated[int, Meta(ge=16, description="Memory of all its processes together.")] | None = 8192
    processes: Annotated[int, Meta(ge=8, description="Processes and threads at one time.")] | None = 2048
    cpus: Annotated[float, Meta(gt=0, description="Processors that it may keep busy.")] | None = None
    disk_mb: Annotated[int, Meta(ge=1, description="What it may write.")] | None = 20480
    files: Annotated[int, Meta(ge=100, description="Files, folders and links that it may make.")] | None = 2_000_000


class SandboxSettings(_Section, frozen=True):
    """The sandbox of every agent of the project. An agent may narrow it, and never widen it."""

    kind: Annotated[
        SandboxKind | None,
        Meta(description="worktree, bubblewrap, docker or podman; by default bubblewrap where it works."),
    ] = None
    network: Annotated[Network, Meta(description="none, allowlist or full. The host itself is never reached.")] = (
        Network.ALLOWLIST
    )
    allow: Annotated[
        tuple[Annotated[str, Meta(min_length=1)], ...],
        Meta(description="Hosts of the allowlist: example.com, *.example.com, example.com:8443."),
    ] = ()
    credentials: Annotated[
        Credentials,
        Meta(description="broker: the host adds the provider's key. env: the agent holds it. none: no key."),
    ] = Credentials.BROKER
    read: Annotated[
        tuple[Annotated[str, Meta(min_length=1)], ...],
        Meta(description="Folders outside the repository that agents may read; ~ is your home."),
    ] = ()
    image: Annotated[
        str, Meta(description="The image for docker and podman; by default the system folders of this machine.")
    ] = ""
    options: Annotated[tuple[str, ...], Meta(description="More words for docker or podman.")] = ()
    allow_ptrace: Annotated[
        bool, Meta(description="Permit debuggers and LeakSanitizer: processes of an agent may trace each other.")
    ] = False
    limits: LimitsSection = LimitsSection()


class WorktreeSection(_Section, frozen=True):
    """How a working tree is made ready before an agent sees it."""

    setup: Annotated[
        str | tuple[str, ...] | None, Meta(description="A command that is run once in each new working tree.")
    ] = None
    setup_timeout_seconds: Annotated[float, Meta(gt=0)] = 900
    copy_files: Annotated[
        tuple[Annotated[str, Meta(min_length=1)], ...],
        Meta(description="Files of your checkout that git ignores and that every working tree needs, as globs."),
    ] = msgspec.field(default=(), name="copy")
    environment: Annotated[dict[str, str], Meta(description="Variables for setup, agents and checks.")] = {}
    ports: Annotated[
        int,
        Meta(ge=0, le=1000, description="So many free ports in a row: GENBA_PORT_FIRST to GENBA_PORT_LAST."),
    ] = 0


class CeilingSection(_Section, frozen=True):
    """The most that any agent of the project may do."""

    allowed_tools: Annotated[tuple[str, ...] | None, Meta(description="No agent may use another tool.")] = None
    permission_mode: Annotated[PermissionMode | None, Meta(description="No agent may have a wider one.")] = None


class AgentLimits(_AgentSection, frozen=True):
    memory_mb: Annotated[int, Meta(ge=16)] | None = None
    processes: Annotated[int, Meta(ge=8)] | None = None
    cpus: Annotated[float, Meta(gt=0)] | None = None
    disk_mb: Annotated[int, Meta(ge=1)] | None = None
    files: Annotated[int, Meta(ge=100)] | None = None


class AgentSandbox(_AgentSection, frozen=True):
    """The agent's own sandbox: an unset value is the project's, and none may be wider."""

    kind: Annotated[SandboxKind | None, Meta(description="worktree, bubblewrap, docker or podman.")] = None
    network: Annotated[Network | None, Meta(description="none, allowlist or full.")] = None
    allow: Annotated[tuple[str, ...] | None, Meta(description="Fewer hosts than the project allows.")] = None
    credentials: Annotated[Credentials | None, Meta(description="none, broker or env.")] = None
    allow_ptrace: Annotated[bool | None, Meta(description="false: no tracing, though the project permits it.")] = None
    limits: AgentLimits = AgentLimits()


class AgentEnvironment(msgspec.Struct, frozen=True, kw_only=True):
    """Where an agent is to live, all things considered. Part of the frozen definition."""

    kind: SandboxKind | None = None
    """None: the strongest kind that works on this machine."""
    network: Network = Network.ALLOWLIST
    allow: tuple[str, ...] = ()
    credentials: Credentials = Credentials.BROKER
    read: tuple[str, ...] = ()
    image: str = ""
    options: tuple[str, ...] = ()
    allow_ptrace: bool = False
    limits: SandboxLimits = SandboxLimits()
    setup: str | tuple[str, ...] | None = None
    setup_timeout_seconds: float = 900
    copied: tuple[str, ...] = ()
    environment: dict[str, str] = {}
    ports: int = 0


class MaximumLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What the project sets for all of its agents, and what none of them may exceed."""

    source: str = "defaults"
    sandbox: SandboxSettings = SandboxSettings()
    worktree: WorktreeSection = WorktreeSection()
    boundaries: CeilingSection = CeilingSection()
    models: dict[str, dict[str, str]] = {}


def agent_environment(ceiling: MaximumLimits, own: AgentSandbox) -> AgentEnvironment:
    """The sandbox of one agent, checked to be no wider than the project's."""
    project, worktree = ceiling.sandbox, ceiling.worktree
    network = own.network if own.network is not None else project.network
    return AgentEnvironment(
        kind=own.kind or project.kind,
        network=network,
        allow=own.allow if own.allow is not None else project.allow,
        credentials=own.credentials if own.credentials is not None else project.credentials,
        read=project.read,
        image=project.image,
        options=project.options,
        allow_ptrace=own.allow_ptrace if own.allow_ptrace is not None else project.allow_ptrace,
        limits=_limits(project.limits, own.limits),
        setup=worktree.setup,
        setup_timeout_seconds=worktree.setup_timeout_seconds,
        copied=worktree.copy_files,
        environment=worktree.environment,
        ports=worktree.ports,
    )


def wider(ceiling: MaximumLimits, own: AgentSandbox, file: str) -> Iterator[Problem]:
    """Everything in which an agent asks for more than the project gives."""
    project, at = ceiling.sandbox, "runner.sandbox"
    hint = f"sandbox in {ceiling.source} sets the most that an agent may have"
    if own.kind is SandboxKind.WORKTREE and project.kind is not None and project.kind.is_sandboxed:
        yield Problem(
            file, f"{at}.kind", f'"{own.kind}" does not isolate, and the project\'s "{project.kind}" does', hint
        )
    if own.network is not None and own.network.width > project.network.width:
        yield Problem(file, f"{at}.network", f'"{own.network}" is wider than the project\'s "{project.network}"', hint)
    if own.credentials is not None and own.credentials.width > project.credentials.width:
        message = f'"{own.credentials}" is wider than the project\'s "{project.credentials}"'
        yield Problem(file, f"{at}.credentials", message, hint)
    if own.allow_ptrace and not project.allow_ptrace:
        yield Problem(file, f"{at}.allowPtrace", "the project does not allow it: sandbox.allow_ptrace is false", hint)
    if project.network is not Network.FULL:
        for host in own.allow or ():
            if not any(_covers(known, host) for known in project.allow):
                yield Problem(file, f"{at}.allow", f'"{host}" is not among the hosts that the project allows', hint)
    for name in ("memory_mb", "processes", "cpus", "disk_mb", "files"):
        most, wanted = getattr(project.limits, name), getattr(own.limits, name)
        if most is not None and wanted is not None and wanted > most:
            key = _camel(name)
            yield Problem(file, f"{at}.limits.{key}", f"{wanted:g} is more than the project's {most:g}", hint)


def _covers(known: str, host: str) -> bool:
    """Whether an entry of the allowlist lets everything through that another one would."""
    if known == host:
        return True
    return known.startswith("*.") and host.endswith(known[1:]) and ":" not in known


def _limits(project: LimitsSection, own: AgentLimits) -> SandboxLimits:
    def pick(name: str) -> float | None:
        chosen: float | None = getattr(own, name)
        most: float | None = getattr(project, name)
        return chosen if chosen is not None else most

    memory, processes, disk, files = (pick(name) for name in ("memory_mb", "processes", "disk_mb", "files"))
    return SandboxLimits(
        memory_mb=int(memory) if memory is not None else None,
        processes=int(processes) if processes is not None else None,
        cpus=pick("cpus"),
        disk_mb=int(disk) if disk is not None else None,
        files=int(files) if files is not None else None,
    )


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)
