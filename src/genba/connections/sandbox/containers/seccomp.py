"""Which calls to the kernel a container is refused, as docker and podman want it: the list of `seccomp_rules`.

It replaces the engine's own list, which lets processes trace each other and differs from version to version.
"""

import functools
import json
import os
from pathlib import Path
from typing import Any

from genba.connections.atomic_write import put
from genba.connections.sandbox import seccomp_rules as rules

_ARCHITECTURES = {"x86_64": "SCMP_ARCH_X86_64", "aarch64": "SCMP_ARCH_AARCH64"}
_LOWER_HALF = 0xFFFFFFFF


def seccomp_args(folder: str, allow_ptrace: bool) -> tuple[str, ...]:
    """The option that names the list, which is written into the folder."""
    file = Path(folder) / "seccomp.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    put(file, profile(os.uname().machine, allow_ptrace))  # a container that is being started reads the old or the new
    return "--security-opt", f"seccomp={file}"


@functools.cache
def profile(machine: str, allow_ptrace: bool) -> bytes:
    """The list in JSON. Calls of another architecture than the machine's own end the process that makes them."""
    calls = [
        _refused(list(rules.refused_calls(allow_ptrace)), rules.DENIED),
        _refused(list(rules.ABSENT), rules.NO_SUCH_CALL),
        *(_where(rules.CLONE, 0, flag, flag, rules.DENIED) for flag in _bits(rules.NEW_NAMESPACES)),
        *(_where(rules.IOCTL, 1, _LOWER_HALF, request, rules.DENIED) for request in rules.TERMINAL_REQUESTS),
    ]
    for mask, value in rules.other_values(rules.FAMILIES):
        calls.append(_where(rules.SOCKET, 0, mask, value, rules.NO_SUCH_FAMILY))
    for mask, value in rules.other_values(rules.personalities(allow_ptrace)):
        calls.append(_where(rules.PERSONALITY, 0, mask, value, rules.DENIED))
    own = [_ARCHITECTURES[machine]] if machine in _ARCHITECTURES else []
    architectures = {"architectures": own} if own else {}
    return json.dumps({"defaultAction": "SCMP_ACT_ALLOW", **architectures, "syscalls": calls}).encode()


def _refused(names: list[str], code: int) -> dict[str, Any]:
    return {"names": names, "action": "SCMP_ACT_ERRNO", "errnoRet": code}


def _where(calls: dict[str, tuple[int, int]], index: int, mask: int, value: int, code: int) -> dict[str, Any]:
    """Refused where an argument has this value under the mask; the upper half of an argument never counts."""
    argument = {"index": index, "value": mask, "valueTwo": value, "op": "SCMP_CMP_MASKED_EQ"}
    return {**_refused(list(calls), code), "args": [argument]}


def _bits(value: int) -> list[int]:
    return [1 << bit for bit in range(value.bit_length()) if value >> bit & 1]
