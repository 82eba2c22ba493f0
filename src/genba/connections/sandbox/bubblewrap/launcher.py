"""Stands between Genba and bubblewrap: does what must be done before the sandbox starts, and becomes bubblewrap.

It is run as a file by a bare interpreter, so it imports nothing of Genba and as little as it can of anything else.
Its words hold paths and numbers, never a secret:

    launcher.py FD PARENT --processes-at FOLDER --calls FILE [--network] [--egress-port PORT]… [--dial N]
                [--overlay OPTIONS FOLDER]… [--group FILE]… [--limit NUMBER VALUE]… [--processes N] [--cpus 0,1]
                [--nice N] -- bwrap …

In its own namespaces it opens the egress ports, and makes N sockets with which Genba can connect to a service
there. It hands them to Genba through the socket FD, which bubblewrap then uses to say how the command ended. When
anything fails, nothing is started.

The process namespace of the command is made here, so that bubblewrap stays outside of it: the process that waits for
the command and reports its exit code cannot be seen, signalled, traced or read from inside. The first process inside
only collects orphans. It reports nothing, and it is in the user namespace above the command's, whose processes may
not trace it or read its memory.
"""

import _ctypes  # this and the next two are the cores of their modules: those load for as long as the interpreter
import _signal  # type: ignore[import-not-found]
import _socket
import fcntl
import os
import resource
import sys

_NEW_MOUNTS, _NEW_USER, _NEW_PROCESSES, _NEW_NETWORK = 0x00020000, 0x10000000, 0x20000000, 0x40000000
_PRIVATELY = 0x4000 | 0x80000  # recursive, slave
_NO_SETUID_NO_DEVICES = 2 | 4
_NO_PROGRAMS = 8
_DIE_WITH_PARENT, _KILL = 1, 9
_SET_FLAGS, _UP = 0x8914, 0x1
_JOIN_SESSION_KEYRING = 1
_KEYCTL = {"x86_64": 250, "aarch64": 219}
_BACKLOG = 128
_BEGUN = b"begun"
_CANNOT_START = 126


class _Number(_ctypes._SimpleCData):  # type: ignore[type-arg]
    _type_ = "i"


class _Function(_ctypes.CFuncPtr):
    _flags_ = _ctypes.FUNCFLAG_CDECL | _ctypes.FUNCFLAG_USE_ERRNO
    _restype_ = _Number


class CannotPrepare(Exception):
    """A step that the sandbox needs did not work."""


def main(args: list[str]) -> None:
    mark = args.index("--")
    result, parent, asked, bubblewrap = int(args[0]), int(args[1]), _read(args[2:mark]), args[mark + 1 :]
    for (file,) in asked["--group"]:
        _write(file, "0")
    for (numbers,) in asked["--cpus"]:
        os.sched_setaffinity(0, {int(number) for number in numbers.split(",")})
    for (number,) in asked["--nice"]:
        os.nice(int(number))
    _separate(bool(asked["--network"]))
    if asked["--network"]:
        _bring_up_loopback()
    for how, folder in asked["--overlay"]:
        _call("mount", b"overlay", folder.encode(), b"overlay", _NO_SETUID_NO_DEVICES, how.encode())
    _limit([(resource.RLIMIT_CORE, 0)])
    _limit([(int(number), int(value)) for number, value in asked["--limit"]])
    _limit([(resource.RLIMIT_NPROC, int(value)) for (value,) in asked["--processes"]])
    _die_with(parent)
    ((folder,),), ((calls,),) = asked["--processes-at"], asked["--calls"]
    first = _begin_processes(folder)
    dials = sum(int(count) for (count,) in asked["--dial"])
    _hand_over(result, first, [int(port) for (port,) in asked["--egress-port"]], dials)
    filtered = os.open(calls, os.O_RDONLY)
    os.set_inheritable(filtered, True)
    program, *rest = bubblewrap
    os.execv(program, [program, "--seccomp", str(filtered), *rest])  # noqa: S606  (no shell: that is the point)


def _read(options: list[str]) -> dict[str, list[list[str]]]:
    """Each option with the values of every time that it is given."""
    arity = {
        "--processes-at": 1,
        "--calls": 1,
        "--network": 0,
        "--egress-port": 1,
        "--dial": 1,
        "--overlay": 2,
        "--group": 1,
        "--limit": 2,
        "--processes": 1,
        "--cpus": 1,
        "--nice": 1,
    }
    asked: dict[str, list[list[str]]] = {name: [] for name in arity}
    rest = iter(options)
    for name in rest:
        asked[name].append([next(rest) for _ in range(arity[name])])
    return asked


def _separate(network: bool) -> None:
    """Own mounts, and own network. Who is not root becomes it here, and here only."""
    user, group = os.geteuid(), os.getegid()
    _call("unshare", _NEW_MOUNTS | (_NEW_NETWORK if network else 0) | (_NEW_USER if user else 0))
    if user:
        _write("/proc/self/setgroups", "deny")
        _write("/proc/self/uid_map", f"0 {user} 1")
        _write("/proc/self/gid_map", f"0 {group} 1")
    _call("mount", None, b"/", None, _PRIVATELY, None)
    number = _KEYCTL.get(os.uname().machine)
    if number:  # the keys that the user's session holds stay there; a kernel without keys has none to lose
        _function("syscall")(number, _JOIN_SESSION_KEYRING, None)


def _bring_up_loopback() -> None:
    any_socket = _socket.socket(_socket.AF_INET, _socket.SOCK_DGRAM)
    request = b"lo".ljust(16, b"\0") + _UP.to_bytes(2, sys.byteorder) + bytes(22)
    fcntl.ioctl(any_socket.fileno(), _SET_FLAGS, request)
    any_socket.close()


def _begin_processes(folder: str) -> int:
    """Make the process namespace of the command, with its first process; returns that process, as the host counts.

    The first process takes `folder` as its root, where its own view of the processes is mounted: bubblewrap shows that
    view inside, and Genba counts with it. It dies with this process, and with it dies all that is inside.
    """
    _call("unshare", _NEW_PROCESSES)
    ready, begun = os.pipe()
    first = os.fork()
    if first == 0:
        _collect_orphans(folder, begun)
    os.close(begun)
    failed = os.read(ready, 1000)
    os.close(ready)
    if failed != _BEGUN:
        raise CannotPrepare(failed.decode() or "the first process ended at once")
    return first


def _collect_orphans(folder: str, begun: int) -> None:
    """The life of the first process. It never returns."""
    try:
        _call("prctl", _DIE_WITH_PARENT, _KILL, 0, 0, 0)
        open_files = [int(name) for name in os.listdir("/proc/self/fd")]  # noqa: PTH208  (no `pathlib` here)
        place = f"{folder}/proc"
        _call("mount", b"proc", place.encode(), b"proc", _NO_SETUID_NO_DEVICES | _NO_PROGRAMS, None)
        os.chroot(folder)
        os.chdir("/")
        _signal.signal(_signal.SIGINT, _signal.SIG_DFL)  # signals from inside reach it only where it handles them
        _signal.signal(_signal.SIGCHLD, _signal.SIG_IGN)  # the kernel then collects them by itself
        os.write(begun, _BEGUN)
        for number in open_files:
            os.closerange(number, number + 1)
        while True:
            _signal.pause()
    except (CannotPrepare, OSError) as error:
        os.write(begun, str(error).encode()[:1000] or b"failed")
    finally:
        os._exit(_CANNOT_START)


def _hand_over(status_fd: int, first: int, ports: list[int], dials: int) -> None:
    """One message: the first process with a handle on it, the listening sockets in the order of the ports, then those
    to connect with. This process keeps none.
    """
    handle = os.pidfd_open(first)
    doors = []
    for port in ports:
        door = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
        door.bind(("127.0.0.1", port))
        door.listen(_BACKLOG)
        doors.append(door)
    doors += [_unconnected() for _ in range(dials)]
    numbers = (handle, *(door.fileno() for door in doors))
    handed = b"".join(number.to_bytes(4, sys.byteorder) for number in numbers)
    line = _socket.socket(fileno=os.dup(status_fd))
    line.sendmsg([b'{"first": %d}\n' % first], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, handed)])
    line.close()
    os.close(handle)


def _unconnected() -> _socket.socket:
    try:
        return _socket.socket(_socket.AF_INET6, _socket.SOCK_STREAM)
    except OSError:  # a kernel without IPv6
        return _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)


def _limit(limits: list[tuple[int, int]]) -> None:
    """Only ever less than there was. Processes are counted within the new user namespace, so it must be there."""
    for number, value in limits:
        highest = resource.getrlimit(number)[1]
        lowered = value if highest == resource.RLIM_INFINITY else min(value, highest)
        resource.setrlimit(number, (lowered, lowered))


def _die_with(parent: int) -> None:
    """Genba may have been killed before this line, or is after it: nothing is started without it."""
    _call("prctl", _DIE_WITH_PARENT, _KILL, 0, 0, 0)
    if os.getppid() != parent:
        sys.exit(_CANNOT_START)


def _call(name: str, *values: object) -> None:
    if _function(name)(*values) != 0:
        raise CannotPrepare(f"{name}: {os.strerror(_ctypes.get_errno())}")


def _function(name: str) -> _Function:
    return _Function(_ctypes.dlsym(_ctypes.dlopen(None, 0), name))  # type: ignore[arg-type]


def _write(path: str, text: str) -> None:
    number = os.open(path, os.O_WRONLY)
    try:
        os.write(number, text.encode())
    finally:
        os.close(number)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except (CannotPrepare, OSError, ValueError) as error:
        sys.stderr.write(f"the sandbox cannot be prepared: {error}\n")
        sys.exit(_CANNOT_START)
