"""The first process of a container: a small shell script around the command.

It must be there: the first process of a PID namespace cannot be ended by a signal from within, and nobody else gathers
the children that lost their parents. It gives the command its environment, looks whether there is anything to run, and
tells at a failed end what the kernel refused meanwhile.
"""

import re
from collections.abc import Iterable, Mapping

PREFIX = "GENBA_INSIDE_"
"""How the client carries the variables of the command, so that none of them changes the client itself."""
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")

_LOOK = """
for genba_tool in {tools} "$1"; do
  command -v "$genba_tool" >/dev/null || {{ echo "{token} missing $genba_tool" >&3; exit 127; }}
done
"""
_COUNT = """
genba_count() {
  genba_memory=0 genba_processes=0
  for genba_file in /sys/fs/cgroup/memory.events /sys/fs/cgroup/memory/memory.oom_control; do
    [ -r "$genba_file" ] || continue
    while read -r genba_name genba_value; do
      case $genba_name in oom_kill) genba_memory=$genba_value;; esac
    done <"$genba_file"
  done
  for genba_file in /sys/fs/cgroup/pids.events /sys/fs/cgroup/pids/pids.events; do
    [ -r "$genba_file" ] || continue
    while read -r genba_name genba_value; do
      case $genba_name in max) genba_processes=$genba_value;; esac
    done <"$genba_file"
  done
}
genba_count
genba_memory_before=$genba_memory genba_processes_before=$genba_processes
"""
_RUN = """
(exec "$@" 2>&3 3>&-)
genba_code=$?
[ $genba_code -eq 0 ] && exit 0
genba_count
[ "$genba_memory" -gt "$genba_memory_before" ] && printf '\\n%s memory\\n' "{token}" >&3
[ "$genba_processes" -gt "$genba_processes_before" ] && printf '\\n%s processes\\n' "{token}" >&3
exit $genba_code
"""


def carried(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables of a command as the client carries them. What a shell cannot name is left out."""
    return {PREFIX + name: value for name, value in environment.items() if _NAME.match(name)}


def script(names: Iterable[str], token: str, tools: Iterable[str], *, own_path: bool) -> str:
    """What the shell runs; `own_path` looks for programs where the image has them, too."""
    lines = ["exec 3>&2 2>/dev/null"]
    for name in names:
        if _NAME.match(name):
            after = ':$PATH"' if name == "PATH" and own_path else '"'
            lines.append(f'export {name}="${PREFIX}{name}{after}; unset {PREFIX}{name}')
    look = _LOOK.format(tools=" ".join(tools), token=token)
    return "\n".join(lines) + look + _COUNT + _RUN.format(token=token)
