"""Which system calls every sandboxed process is refused: one list for bubblewrap, docker and podman.

A process that may trace, read or take over another could forge what that process reports, such as an exit code; the
rest is kernel code that no build or test needs and that escapes have come through. A refused call returns EPERM, or
ENOSYS where libraries then fall back to an older call.
"""

import errno
from collections.abc import Iterator

DEBUGGING = {
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
}
"""Number on x86_64 and on aarch64. `sandbox.allow_ptrace` permits these."""
REFUSED = {
    "pidfd_getfd": (438, 438),
    "kcmp": (312, 272),
    "process_madvise": (440, 440),
    "bpf": (321, 280),
    "userfaultfd": (323, 282),
    "perf_event_open": (298, 241),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "unshare": (272, 97),
    "setns": (308, 268),
    "chroot": (161, 51),
    "pivot_root": (155, 41),
    "mount": (165, 40),
    "umount2": (166, 39),
    "open_tree": (428, 428),
    "open_tree_attr": (467, 467),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "open_by_handle_at": (304, 265),
    "fanotify_init": (300, 262),
    "memfd_secret": (447, 447),
    "migrate_pages": (256, 238),
    "move_pages": (279, 239),
    "syslog": (103, 116),
    "acct": (163, 89),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "reboot": (169, 142),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "nfsservctl": (180, 42),
    "lookup_dcookie": (212, 18),
    "vhangup": (153, 58),
    "uselib": (134, None),
    "ustat": (136, None),
    "sysfs": (139, None),
    "iopl": (172, None),
    "ioperm": (173, None),
    "modify_ldt": (154, None),
}
ABSENT = {
    "clone3": (435, 435),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
}
"""Answered with ENOSYS, as by a kernel that does not have them. The flags of clone3 lie where no filter can look."""
LAST_KNOWN_CALL = 469
"""A newer kernel's calls have not been reviewed: they are absent too."""

SOCKET = {"socket": (41, 198), "socketpair": (53, 199)}
FAMILIES = (1, 2, 10, 16)
"""AF_UNIX, AF_INET, AF_INET6, AF_NETLINK. Among the others are AF_VSOCK, which leads to the host of a virtual machine,
and AF_ALG."""
CLONE = {"clone": (56, 220)}
NEW_NAMESPACES = 0x7E020000
"""The flags of `clone` that make a namespace."""
IOCTL = {"ioctl": (16, 29)}
TERMINAL_REQUESTS = (0x5412, 0x541C, 0x5423)
"""TIOCSTI and TIOCLINUX put input into a terminal; TIOCSETD loads kernel modules."""
PERSONALITY = {"personality": (135, 92)}
PLAIN_PERSONALITIES = (0, 0x8, 0x20000, 0x20008, 0xFFFFFFFF)
"""Linux, 32-bit `uname`, the same with `UNAME26`, and the question which one it is."""
NO_RANDOM_ADDRESSES = (0x40000, 0x40008)
"""What debuggers ask for."""

DENIED, NO_SUCH_CALL, NO_SUCH_FAMILY = errno.EPERM, errno.ENOSYS, errno.EAFNOSUPPORT


def refused_calls(allow_ptrace: bool) -> dict[str, tuple[int, int | None]]:
    return {**REFUSED, **({} if allow_ptrace else DEBUGGING)}


def personalities(allow_ptrace: bool) -> tuple[int, ...]:
    return (*PLAIN_PERSONALITIES, *(NO_RANDOM_ADDRESSES if allow_ptrace else ()))


def other_values(allowed: tuple[int, ...], bits: int = 32) -> Iterator[tuple[int, int]]:
    """All values but those: as pairs of a mask and what is left under it. A path of a binary tree each."""

    def walk(prefix: int, depth: int) -> Iterator[tuple[int, int]]:
        shift = bits - depth
        if not any(value >> shift == prefix for value in allowed):
            yield ((1 << depth) - 1) << shift, prefix << shift
        elif depth < bits:
            yield from walk(prefix << 1, depth + 1)
            yield from walk(prefix << 1 | 1, depth + 1)

    return walk(0, 0)
