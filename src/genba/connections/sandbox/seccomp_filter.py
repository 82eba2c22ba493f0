"""The filter of system calls as the kernel wants it: a program of classic BPF, made without any library.

An instruction has eight bytes: operation, how many to skip when a comparison holds or fails, and a value. The kernel
shows the program the number of the call, the architecture and the arguments, each argument as two halves.
"""

import functools
import struct

from genba.connections.sandbox import seccomp_rules as rules

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT = 0, 4, 16
_ALLOW, _ERROR, _KILL = 0x7FFF0000, 0x00050000, 0x80000000
_MACHINES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}
"""What the kernel calls the architecture, and which of the two numbers of a call counts. Both are little-endian."""


@functools.cache
def filter_program(machine: str, allow_ptrace: bool = False) -> bytes | None:
    """The program for a machine, as `uname -m` names it; None where the numbers of its calls are not known."""
    if machine not in _MACHINES:
        return None
    architecture, column = _MACHINES[machine]
    lines = [(_LOAD, 0, 0, _ARCHITECTURE), (_EQUAL, 1, 0, architecture), (_RETURN, 0, 0, _KILL)]
    lines.append((_LOAD, 0, 0, _NUMBER))
    # Above are calls of newer kernels, and the second numbering of x86_64 (x32), which would pass every comparison.
    lines += [(_AT_LEAST, 0, 1, rules.LAST_KNOWN_CALL + 1), _error(rules.NO_SUCH_CALL)]
    for calls, code in ((rules.refused_calls(allow_ptrace), rules.DENIED), (rules.ABSENT, rules.NO_SUCH_CALL)):
        for numbers in calls.values():
            if (number := numbers[column]) is not None:
                lines += [(_EQUAL, 0, 1, number), _error(code)]
    lines += _by_argument(rules.CLONE, column, 0, [(_ANY_BIT, 0, 1, rules.NEW_NAMESPACES), _error(rules.DENIED)])
    unwanted = [(_EQUAL, 0, 1, request) for request in rules.TERMINAL_REQUESTS]
    lines += _by_argument(rules.IOCTL, column, 1, [line for one in unwanted for line in (one, _error(rules.DENIED))])
    lines += _by_argument(rules.SOCKET, column, 0, _unless(rules.FAMILIES, rules.NO_SUCH_FAMILY))
    lines += _by_argument(rules.PERSONALITY, column, 0, _unless(rules.personalities(allow_ptrace), rules.DENIED))
    lines.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(struct.pack("<HBBI", *line) for line in lines)


_Line = tuple[int, int, int, int]


def _error(code: int) -> _Line:
    return (_RETURN, 0, 0, _ERROR | code)


def _by_argument(calls: dict[str, tuple[int, int]], column: int, argument: int, decision: list[_Line]) -> list[_Line]:
    """For each call: decide by the lower half of an argument, which is all that the kernel itself looks at."""
    lines: list[_Line] = []
    for numbers in calls.values():
        own = [(_LOAD, 0, 0, _FIRST_ARGUMENT + 8 * argument), *decision, (_RETURN, 0, 0, _ALLOW)]
        lines += [(_EQUAL, 0, len(own), numbers[column]), *own]
    return lines


def _unless(values: tuple[int, ...], code: int) -> list[_Line]:
    """An error, unless the argument is one of the values."""
    last = len(values) - 1
    return [*((_EQUAL, last - index + 1, 0, value) for index, value in enumerate(values)), _error(code)]
