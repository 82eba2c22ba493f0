"""The two shell scripts of a container: one for its first process, and one that becomes the command.

The command is started by the engine beside the first process, so the engine itself waits for it and reports its exit
code. Nothing inside has a part in that. The first process only keeps the container alive until Genba lets go of its
stdin, and collects orphans; when it is asked, it says which limits were run into.
"""

import re
from collections.abc import Iterable, Mapping

PREFIX = "GENBA_INSIDE_"
"""How the client carries the variables of the command, so that none of them changes the client itself."""
READY, BEGUN, COUNTED, MISSING = "ready", "begun", "counted", "missing"
START = "/genba-start"
"""Where the program of `landlock_program` is seen inside."""
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")

_FIRST = """
trap '' HUP INT QUIT TERM
exec 2>/dev/null 4<&0
while :; do
(
echo "{token} ready"
read -r genba_asked <&4 || exit 0
for genba_file in /sys/fs/cgroup/memory.events /sys/fs/cgroup/memory/memory.oom_control; do
  [ -r "$genba_file" ] || continue
  while read -r genba_name genba_value; do
    case "$genba_name $genba_value" in "oom_kill 0") ;; "oom_kill "*) echo "{token} memory";; esac
  done <"$genba_file"
done
for genba_file in /sys/fs/cgroup/pids.events /sys/fs/cgroup/pids/pids.events; do
  [ -r "$genba_file" ] || continue
  while read -r genba_name genba_value; do
    case "$genba_name $genba_value" in "max 0") ;; "max "*) echo "{token} processes";; esac
  done <"$genba_file"
done
echo "{token} counted"
read -r genba_asked <&4
) &
wait $!
[ $? -gt 128 ] || break
done
"""
"""A child waits for the host: a shell collects orphans while it waits for a child, and at no other time.

No command can end it: it ignores their signals (a shell of `-c` would end by SIGINT even as the first process), and
starts a child again that was killed. The container lives until the host lets go.
"""
_LOOK = """
for genba_tool in {tools} "$1"; do
  command -v "$genba_tool" >/dev/null || {{ echo "{token} missing $genba_tool" >&3; exit 127; }}
done
"""
_CLOSE_PROC = f"""
set -- -- /bin/sh -c 'exec "$@"' sh "$@"
for genba_place in /* /.[!.]*; do
  [ "$genba_place" = /proc ] || set -- "$genba_place" "$@"
done
set -- {START} "$@"
"""
_SAVE_STDIN = """
genba_stdin=/run/genba-stdin-$$
cat >"$genba_stdin" && exec <"$genba_stdin" && rm -f "$genba_stdin"
"""
"""Podman loses all output of a command that ends before it has read its stdin, so the shell reads it first."""
_RUN = """
echo "{token} begun" >&3
exec "$@" 2>&3 3>&-
"""


def carried(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables of a command as the client carries them. What a shell cannot name is left out."""
    return {PREFIX + name: value for name, value in environment.items() if _NAME.match(name)}


def first_script(token: str) -> str:
    """What the first process runs. It has nothing but its shell."""
    return _FIRST.format(token=token)


def script(
    names: Iterable[str], token: str, tools: Iterable[str], *, own_path: bool, closes_proc: bool, has_stdin: bool
) -> str:
    """What becomes the command.

    `own_path` looks for programs where the image has them, too. `closes_proc` starts the command by START, so that it
    writes nothing to `/proc`.
    """
    needed = (START, *tools) if closes_proc else tuple(tools)
    lines = ["exec 3>&2 2>/dev/null", *([_SAVE_STDIN.strip()] if has_stdin else [])]
    for name in names:
        if _NAME.match(name):
            after = ':$PATH"' if name == "PATH" and own_path else '"'
            lines.append(f'export {name}="${PREFIX}{name}{after}; unset {PREFIX}{name}')
    closing = _CLOSE_PROC if closes_proc else ""
    return "\n".join(lines) + _LOOK.format(tools=" ".join(needed), token=token) + closing + _RUN.format(token=token)
