"""Which more options docker and podman get: from a list of those that open nothing, and no other.

A repository names options in `sandbox.options`; the author of the repository must gain nothing by it. The user names
options in the environment, and may also say where the engine keeps its things.
"""

import re
from collections.abc import Iterator

from genba.domain.errors import UnrecoverableError
from genba.domain.sessions.sandbox import SandboxKind

OPTIONS_VARIABLE = "GENBA_SANDBOX_OPTIONS"
_OF_PODMAN = frozenset({
    "--runtime", "--root", "--runroot", "--imagestore", "--storage-driver", "--storage-opt", "--cgroup-manager",
    "--events-backend", "--conmon", "--hooks-dir", "--module", "--network-config-dir", "--tmpdir", "--volumepath",
    "--log-level",
})  # fmt: skip
"""What podman wants before its subcommand. Docker has no such words here: its own come from the environment."""
_NAME, _NUMBERS = r"[A-Za-z0-9][A-Za-z0-9._+-]*", r"[0-9,-]+"
_OF_ANYBODY = {
    "--runtime": _NAME,
    "--ulimit": r"[a-z]+=-?[0-9]+(:-?[0-9]+)?",
    "--hostname": _NAME,
    "--platform": r"[a-z0-9]+(/[a-z0-9]+){0,2}",
    "--cpuset-cpus": _NUMBERS,
    "--cpuset-mems": _NUMBERS,
    "--cpu-shares": r"[0-9]+",
    "--memory-reservation": r"[0-9]+[bkmg]?",
    "--memory-swappiness": r"[0-9]+",
    "--cgroup-manager": _NAME,
    "--events-backend": _NAME,
    "--log-level": _NAME,
}
"""Each with what its value looks like. A runtime is a name that the engine knows, never the path of a program."""


def sorted_options(
    kind: SandboxKind, own: tuple[str, ...], project: tuple[str, ...]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Options of the client and options of `run`, each with its value.

    Raises UnrecoverableError for an option that is not on the list: nothing is started then.
    """
    client: list[str] = []
    run: list[str] = []
    pairs = [*_pairs(own, OPTIONS_VARIABLE, of_the_user=True), *_pairs(project, "sandbox.options", of_the_user=False)]
    for name, value in pairs:
        into = client if kind is SandboxKind.PODMAN and name in _OF_PODMAN else run
        into += [name, value]
    return tuple(client), tuple(run)


def _pairs(options: tuple[str, ...], where: str, *, of_the_user: bool) -> Iterator[tuple[str, str]]:
    """Options with their values: all of them have one, so that no word can be taken for anything else."""
    args = iter(options)
    for arg in args:
        name, has_value, value = arg.partition("=")
        pattern = _OF_ANYBODY.get(name)
        if pattern is None and not (of_the_user and name in _OF_PODMAN):
            raise _refused(f"{name[:80]} is not an option that {where} may name", where)
        if not has_value:
            value = next(args, "")
        free = of_the_user and name in _OF_PODMAN
        if not value or value.startswith("-") or not (free or re.fullmatch(pattern or "", value)):
            raise _refused(f"{name} in {where} does not take the value {value[:80]!r}", where)
        yield name, value


def _refused(message: str, where: str) -> UnrecoverableError:
    return UnrecoverableError(message, hint=f"take it out of {where}; allowed are {', '.join(sorted(_OF_ANYBODY))}")
