"""A base image out of what is installed on this machine: for builds where no registry of images can be reached."""

import os
import re
import subprocess
import tarfile
from pathlib import Path

WANTED = (
    "base-files", "base-passwd", "bash", "bubblewrap", "ca-certificates", "coreutils", "dash", "debianutils",
    "findutils", "git", "grep", "gzip", "libc-bin", "libstdc++6", "login", "mount", "openssh-client", "passwd",
    "procps", "python3", "python3-venv", "sed", "tar", "util-linux",
)  # fmt: skip
"""What an official image of Python and `PACKAGES` of the Dockerfile have."""
_SETTINGS = ("/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/alternatives", "/etc/ssl/certs",
             "/etc/nsswitch.conf", "/etc/login.defs", "/etc/default/useradd",
             "/bin", "/sbin", "/lib", "/lib64")  # fmt: skip
"""What no package lists, because it is made when packages are installed."""
_STATUS = Path("/var/lib/dpkg/status")


def problem() -> str:
    """Why there is none to be had here."""
    if not _STATUS.is_file():
        return "this machine was not installed from Debian packages"
    missing = [name for name in WANTED if name not in _installed()]
    return f"not installed here: {', '.join(missing)}" if missing else ""


def write(path: Path, *more: tuple[Path, str]) -> None:
    """The files of the wanted packages and of all that they need, as a tar file; `more` are folders, and where to."""
    with tarfile.open(path, "w") as tar:
        for name in sorted(_files()):
            tar.add(name, arcname=name.lstrip("/"), recursive=False)
        for folder in ("tmp", "var/tmp", "root", "run", "proc", "sys", "dev", "var/lib", "home"):
            tar.addfile(_folder(folder))
        for name in ("passwd", "group"):  # as they are before anybody is added
            tar.add(f"/usr/share/base-passwd/{name}.master", arcname=f"etc/{name}")
        for source, target in more:
            tar.add(source, arcname=target.lstrip("/"))


def _folder(name: str) -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    made.type, made.mode = tarfile.DIRTYPE, 0o1777 if name.endswith("tmp") else 0o755
    return made


def _files() -> set[str]:
    listed = subprocess.run(["dpkg", "-L", *_closure()], check=True, capture_output=True, text=True).stdout.splitlines()
    named = {
        line for line in listed if line.startswith("/") and not line.startswith(("/usr/share/doc", "/usr/share/man"))
    }
    for setting in _SETTINGS:
        if Path(setting).is_dir() and not Path(setting).is_symlink():
            named |= {str(path) for path in Path(setting).rglob("*")}
        elif os.path.lexists(setting):
            named.add(setting)
    real = {os.path.join(os.path.realpath(os.path.dirname(name)), os.path.basename(name)) for name in named}  # noqa: PTH118, PTH119, PTH120
    return {name for name in real if os.path.lexists(name) and (Path(name).is_symlink() or not Path(name).is_dir())}


def _closure() -> list[str]:
    known, found, waiting = _installed(), set[str](), list(WANTED)
    while waiting:
        name = waiting.pop()
        if name not in found and name in known:
            found.add(name)
            waiting += known[name]
    return sorted(found)


def _installed() -> dict[str, list[str]]:
    """By package: what it depends on; of alternatives, all of them."""
    packages = {}
    for entry in _STATUS.read_text(encoding="utf-8", errors="replace").split("\n\n"):
        fields = dict(re.findall(r"^([A-Za-z-]+): (.*)$", entry, re.MULTILINE))
        if " installed" in fields.get("Status", ""):
            needs = ", ".join((fields.get("Pre-Depends", ""), fields.get("Depends", "")))
            packages[fields["Package"]] = re.findall(r"(?:^|[,|])\s*([a-z0-9][a-z0-9.+-]*)", needs)
    return packages
