"""The sandbox around an instance: what it can see, write and reach, and what it tried beyond that."""

from collections.abc import Awaitable, Callable
from enum import StrEnum
from typing import Any, Protocol

import msgspec

SANDBOX_VARIABLE, PARENT_VARIABLE = "GENBA_SANDBOX", "GENBA_PARENT_PROXY"


class SandboxKind(StrEnum):
    """How an instance is kept apart."""

    WORKTREE = "worktree"
    """A worktree of its own, and no sandbox."""
    BUBBLEWRAP = "bubblewrap"
    DOCKER = "docker"
    PODMAN = "podman"

    @property
    def is_sandboxed(self) -> bool:
        return self is not SandboxKind.WORKTREE


class Network(StrEnum):
    """What an instance can reach, from narrow to wide. Of the host itself only an address that the list spells out."""

    NONE = "none"
    ALLOWLIST = "allowlist"
    FULL = "full"

    @property
    def width(self) -> int:
        return list(Network).index(self)


class Credentials(StrEnum):
    """How the key of the model's provider gets to it, from narrow to wide."""

    NONE = "none"
    BROKER = "broker"
    """A proxy on the host adds the key; the instance never holds it."""
    ENV = "env"
    """The instance gets the key in its environment."""

    @property
    def width(self) -> int:
        return list(Credentials).index(self)


class SandboxLimits(msgspec.Struct, frozen=True, kw_only=True):
    """How much an instance may use. None is no limit. Time is limited by the command itself."""

    memory_mb: int | None = None
    processes: int | None = None
    """Processes and threads."""
    cpus: float | None = None
    disk_mb: int | None = None
    """What it may write, in all of its places together: of each file its length or its blocks, whichever is more."""
    files: int | None = None
    """How many files, folders and links it may make there."""


class Overlay(msgspec.Struct, frozen=True, kw_only=True):
    """A working tree that is a thin layer over a template; it is only mounted where something runs in it."""

    lower: str
    upper: str
    work: str
    below: tuple[str, ...] = ()
    """Layers under `lower`, the highest first; none of them is ever written."""


class Bind(msgspec.Struct, frozen=True, kw_only=True):
    """A file or folder of the host that is seen under another name inside."""

    source: str
    target: str
    writable: bool = False


Serve = Callable[[Any, Any], Awaitable[None]]
"""Handles one connection: an asyncio reader and writer."""


class EgressPort(msgspec.Struct, frozen=True, kw_only=True):
    """A port on the loopback in the sandbox that leads to a handler on the host, and nowhere else."""

    name: str
    port: int
    """The port inside. Where the loopback is the host's own, another one may be taken: see `SandboxHandle.ports`."""
    serve: Serve


class Dialer(Protocol):
    """Makes sockets that connect within the network of a sandbox. Only the host has it: nothing inside can call out."""

    def take(self) -> Any:
        """A TCP socket, of IPv6 where there is IPv6; OSError where there is none to be had."""
        ...

    def unused(self, given: Any) -> None:
        """Take back a socket that found nothing to connect to."""
        ...


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """The way to a service in a sandbox that has a network of its own."""

    opened: Callable[[Dialer], None]
    """Called when the network is there, before the service starts."""


class SandboxSpec(msgspec.Struct, frozen=True, kw_only=True):
    """What one instance can see and write. Everything has the same path inside and outside, but for the binds."""

    run: str
    folder: str
    """A folder on the host for what the sandbox needs itself, such as sockets; it is not seen inside."""
    tree: str
    """The working tree: it can be written."""
    home: str
    """The private HOME: it can be written."""
    writable: tuple[str, ...] = ()
    readable: tuple[str, ...] = ()
    """Seen besides the system's own folders, and never written."""
    binds: tuple[Bind, ...] = ()
    """Laid over all the rest, in this order."""
    overlay: Overlay | None = None
    """What is mounted at `tree`, where it is no plain folder."""
    home_overlay: Overlay | None = None
    """What is mounted at `home`, where it is no plain folder."""
    egress_ports: tuple[EgressPort, ...] = ()
    limits: SandboxLimits = SandboxLimits()
    image: str = ""
    """The image of a container; empty: the host's own system folders, read-only."""
    allow_ptrace: bool = False
    """Whether processes inside may trace each other, as debuggers do."""
    entry: Entry | None = None
    """Set for a service that the host asks."""


class Violation(msgspec.Struct, frozen=True, kw_only=True):
    """A limit or a wall that was run into, and that ended the command."""

    kind: str
    """memory, processes, disk, files."""
    detail: str


class McpServer(msgspec.Struct, frozen=True, kw_only=True):
    """A server of tools that an instance is given: by an address, or as a command that it starts itself."""

    name: str
    url: str = ""
    token_variable: str = ""
    """The variable of the instance's environment that holds the bearer token."""
    command: tuple[str, ...] = ()
    environment: dict[str, str] = {}
    required: bool = True
    """Whether a server that cannot be reached is an error of the run."""
    patience_seconds: int = 0
    """How long one call may take, for tools that would give up sooner; 0: as long as the tool itself waits."""


class Provider(msgspec.Struct, frozen=True, kw_only=True):
    """Where the model of an adapter is, and which key opens it."""

    name: str
    url: str
    """The address as the command-line tool wants it, without the path of a single call."""
    key_variables: tuple[str, ...]
    """Where the user's key may be; the first that is set counts."""
    header: str = "authorization"
    """The header that carries the key; `authorization` means a bearer token."""


LOOPBACK = ("127.0.0.1", "localhost", "::1")


def proxy_variables(url: str) -> dict[str, str]:
    """The way to the network, in the spellings that programs look for. The loopback is never asked for there."""
    if not url:
        return {}
    ways = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"), url)
    return ways | dict.fromkeys(("NO_PROXY", "no_proxy"), ",".join(LOOPBACK))


class PrivateBinds(msgspec.Struct, frozen=True, kw_only=True):
    """What a sandbox must show for the worktree in it to be one of git's."""

    binds: tuple[Bind, ...]
    readable: tuple[str, ...]
    overlay: Overlay | None


class CheckoutView(msgspec.Struct, frozen=True, kw_only=True):
    """Where commands run now. All paths are the same inside a sandbox and outside of it."""

    tree: str
    home: str
    temporary: str
    """The folder for temporary files, where the commands have no `/tmp` of their own."""
    reports: str
    """A folder that the commands can write and the host can see."""
    objects: str = ""
    """What is seen in a sandbox in the place of the user's objects: those of the commit, and of no other work."""
    overlay: Overlay | None = None
    home_overlay: Overlay | None = None
    setup: bool = False
    read_only: tuple[Bind, ...] = ()
    """What judges, laid over the tree: files that cannot be written, and folders that hold them in their place."""
