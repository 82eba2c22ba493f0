"""The program that a command of a container is started by: it takes from the command the right to write to `/proc`.

Through `/proc/PID/mem` a process could rewrite the shell or the runner that reports its exit code. Bubblewrap mounts
`/proc` read-only; docker cannot, so the program uses Landlock, a filter of the kernel that every child inherits:

    PROGRAM FOLDER... -- COMMAND ARGUMENT...

Files are written, and moved from folder to folder, below the folders and nowhere else. Where the kernel has no
Landlock (Linux before 5.19, or switched off) the command starts as it is; rules that cannot be set end it with 126.

It is machine code because an image of the user may have no interpreter and no C library. `landlock_*.s` beside this
module has the instructions.
"""

import struct

_CODE = {
    "x86_64": (
        "488b04244c8d6cc410488d5c241049c7c4ffffffff31ff31f6ba01000000b8bc0100000f0583f8027c21680220000048"
        "89e7be0800000031d2b8bc0100000f0585c00f889f0000004189c4488b334883c308803e2d74444d85e478efbf9cffff"
        "ffba00002b00b8010100000f0585c078da894424084489e7be010000004889e24531d2b8bd0100000f0585c075598b7c"
        "2408b8030000000f05ebb04d85e47837bf26000000be0100000031d24531d24531c0b89d0000000f0585c0752a4489e7"
        "31f6b8be0100000f0585c0751a4489e7b8030000000f05488b3b4889de4c89eab83b0000000f05bf7e000000b8e70000"
        "000f05"
    ),
    "aarch64": (
        "e00340f9f56f208bb5420091f343009114008092000080d2010080d2220080d2883780d2010000d41f0800f16b010054"
        "ff4300d1490084d2e90300f9e0030091010180d2020080d2883780d2010000d4e005f8b7f40300aa618640f829004039"
        "3fb500718002005494ffffb7600c8092020098d20205a0f2080780d2010000d4c0feffb7e00b00b9e00314aa210080d2"
        "e2030091030080d2a83780d2010000d4600300b5e00b40b9280780d2010000d4eaffff173402f8b7c00480d2210080d2"
        "020080d2030080d2040080d2e81480d2010000d4c00100b5e00314aa010080d2c83780d2010000d4200100b5e00314aa"
        "280780d2010000d4600240f9e10313aae20315aaa81b80d2010000d4c00f80d2c80b80d2010000d4"
    ),
}
_MACHINES = {"x86_64": 62, "aarch64": 183}
_AT, _HEAD, _SEGMENT, _PAGE = 0x400000, 64, 56, 0x10000


def landlock_program(machine: str) -> bytes | None:
    """The program for a machine, as `uname -m` names it; None for a machine that Genba has none for."""
    if machine not in _CODE:
        return None
    code = bytes.fromhex(_CODE[machine])
    before = _HEAD + _SEGMENT
    identity = b"\x7fELF\x02\x01\x01"
    head = struct.pack(
        "<16sHHIQQQIHHHHHH",
        *(identity, 2, _MACHINES[machine], 1, _AT + before, _HEAD, 0, 0, _HEAD, _SEGMENT, 1, 0, 0, 0),
    )
    size = before + len(code)
    return head + struct.pack("<IIQQQQQQ", 1, 5, 0, _AT, _AT, size, size, _PAGE) + code
