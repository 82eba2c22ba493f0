"""Which calls to the kernel podman lets through: its own list, without the making of namespaces.

Docker refuses them by itself. Podman lets an instance become root in a user namespace of its own, which reaches parts
of the kernel that no ordinary user reaches.
"""

import json
from pathlib import Path
from typing import Any

from genba.connections.drafts import put

_LISTS = (Path("/etc/containers/seccomp.json"), Path("/usr/share/containers/seccomp.json"))
_REFUSED = frozenset({
    "unshare", "setns", "clone", "clone3", "mount", "mount_setattr", "move_mount", "umount", "umount2", "open_tree",
    "pivot_root", "fsopen", "fsconfig", "fsmount", "fspick", "add_key", "request_key", "keyctl",
})  # fmt: skip
_NEW_NAMESPACES = 0x7E020000
"""The flags of `clone` that make a namespace."""
_NO_SUCH_CALL = 38


def seccomp_words(folder: str) -> tuple[str, ...]:
    """The option that names the narrowed list; none where podman's own list cannot be read."""
    for place in _LISTS:
        try:
            narrowed = json.dumps(_narrowed(json.loads(place.read_text("utf-8"))))
        except (OSError, ValueError, KeyError, TypeError):
            continue
        file = Path(folder) / "seccomp.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        put(file, narrowed.encode())  # a container that is being started reads the old list or the new one
        return "--security-opt", f"seccomp={file}"
    return ()


def _narrowed(allowed: dict[str, Any]) -> dict[str, Any]:
    """Threads and ordinary children are made as ever; what asks by the newer call is told to use the older one."""
    rules = [
        {**rule, "names": [name for name in rule["names"] if name not in _REFUSED]} for rule in allowed["syscalls"]
    ]
    no_namespace = {"index": 0, "value": _NEW_NAMESPACES, "valueTwo": 0, "op": "SCMP_CMP_MASKED_EQ"}
    rules.append({"names": ["clone"], "action": "SCMP_ACT_ALLOW", "args": [no_namespace]})
    rules.append({"names": ["clone3"], "action": "SCMP_ACT_ERRNO", "errnoRet": _NO_SUCH_CALL})
    return {**allowed, "syscalls": [rule for rule in rules if rule["names"]]}
