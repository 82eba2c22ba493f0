"""What a number depends on: the machine it was measured on. No name of a machine or of a person."""

import os
import platform
import subprocess
from pathlib import Path


def facts() -> dict[str, str]:
    """Ask before a measure begins: the load is that of this moment."""
    git = subprocess.run(["git", "--version"], check=True, capture_output=True, text=True).stdout.split()[2]
    return {
        "processor": f"{_processor()}, {os.cpu_count()} of them",
        "memory": _memory(),
        "system": f"{platform.system()} {platform.release().partition('-')[0]}",
        "Python, git": f"{platform.python_version()}, {git}",
        "load when it began": f"{os.getloadavg()[0]:.1f}",
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.machine()


def _memory() -> str:
    size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return f"{size / 2**30:.0f} GiB"
