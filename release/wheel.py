"""Build wheel and source archive twice, in different environments, and keep them only if the bytes agree.

`make wheel` writes `dist/`. `make dist` builds a commit, adds the SBOM and `SHA256SUMS`, and tries the wheel in an
empty environment. Another version of zlib may compress the same content differently.
"""

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import venv
from collections.abc import Mapping, Sequence
from pathlib import Path

from release import sbom
from release.locks import ROOT

DIST = ROOT / "dist"
SUMS = "SHA256SUMS"
BUILT = ("sdist", "wheel")
STRANGER = 54321


class NotTheSame(Exception):
    """Two builds of one source differ, or a build failed."""


def tracked(source: Path) -> list[str]:
    """The tracked files."""
    output = subprocess.run(["git", "ls-files", "-z"], cwd=source, check=True, capture_output=True).stdout
    return sorted(name for name in os.fsdecode(output).split("\0") if name and (source / name).is_file())


def committed_at(source: Path) -> str:
    args = ["git", "log", "-1", "--format=%ct"]
    return subprocess.run(args, cwd=source, check=True, capture_output=True, text=True).stdout.strip()


def lay_out(source: Path, names: Sequence[str], target: Path, mask: int, owner: int | None, when: float) -> None:
    """Copy the files with other modes, times and owners."""
    for name in names:
        place = target / name
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source / name, place)
        executable = os.access(source / name, os.X_OK)
        place.chmod((0o777 if executable else 0o666) & ~mask)
        os.utime(place, (when, when))
        if owner is not None and os.geteuid() == 0:
            os.chown(place, owner, owner)


def build(folder: Path, target: Path, circumstances: Mapping[str, str], mask: int) -> None:
    args = [sys.executable, "-m", "hatchling", "build", "-d", str(target)]
    args += [arg for kind in BUILT for arg in ("-t", kind)]
    environment = {**os.environ, **circumstances}
    done = subprocess.run(
        args, cwd=folder, env=environment, umask=mask, capture_output=True, text=True, check=False, timeout=600
    )
    if done.returncode:
        raise NotTheSame(f"the build ended with {done.returncode}:\n{done.stdout}{done.stderr}")


def sums(folder: Path) -> dict[str, str]:
    files = sorted(path for path in folder.iterdir() if path.is_file() and path.name != SUMS)
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def build_twice(source: Path, target: Path, epoch: str) -> dict[str, str]:
    """The hashes of the built files, written to `target` if both builds agree. Raises NotTheSame."""
    with tempfile.TemporaryDirectory(prefix="genba-build-") as scratch:
        names = tracked(source)
        one, two = Path(scratch) / "one", Path(scratch) / "another folder" / "with a longer name"
        lay_out(source, names, one, 0o022, None, 1_000_000_000)
        lay_out(source, reversed_of(names), two, 0o077, STRANGER, 1_700_000_000)
        first = {"SOURCE_DATE_EPOCH": epoch, "LC_ALL": "C", "TZ": "UTC", "PYTHONHASHSEED": "1", "HOME": str(one)}
        other = {"SOURCE_DATE_EPOCH": epoch, "LC_ALL": "C.UTF-8", "TZ": "Asia/Tokyo", "PYTHONHASHSEED": "2"}
        build(one, Path(scratch) / "built", first, 0o022)
        build(two, Path(scratch) / "built again", {**other, "HOME": str(two), "USER": "stranger"}, 0o077)
        found, again = sums(Path(scratch) / "built"), sums(Path(scratch) / "built again")
        if found != again or len(found) != len(BUILT):
            raise NotTheSame(f"two builds differ:\n{found}\n{again}")
        target.mkdir(parents=True, exist_ok=True)
        for name in found:
            shutil.copyfile(Path(scratch) / "built" / name, target / name)
    return found


def reversed_of(names: Sequence[str]) -> list[str]:
    """Another order, so that the folder is listed differently."""
    return list(reversed(names))


def write_sums(folder: Path) -> None:
    lines = [f"{digest}  {name}\n" for name, digest in sums(folder).items()]
    (folder / SUMS).write_text("".join(lines), "utf-8")


def refuse_changes(source: Path) -> None:
    """Raise NotTheSame for uncommitted changes."""
    args = ["git", "status", "--porcelain", "--untracked-files=no"]
    if output := subprocess.run(args, cwd=source, check=True, capture_output=True, text=True).stdout:
        raise NotTheSame(f"not committed:\n{output}hint: commit, then make dist")


def try_wheel(wheel: Path) -> None:
    """Install the locked packages and the wheel in an empty environment, and run the demo."""
    with tempfile.TemporaryDirectory(prefix="genba-try-") as scratch:
        home = Path(scratch) / "environment"
        venv.create(home, with_pip=True)
        pip = [str(home / "bin" / "pip"), "install", "-q", "--disable-pip-version-check"]
        for args in (
            [*pip, "--no-deps", "--require-hashes", "-r", str(ROOT / "requirements.lock")],
            [*pip, "--no-deps", "--no-index", str(wheel)],
            [str(home / "bin" / "genba"), "--version"],
            [str(home / "bin" / "genba"), "demo", "--folder", str(Path(scratch) / "demo"), "--plain"],
        ):
            subprocess.run(args, check=True, cwd=scratch, stdin=subprocess.DEVNULL)


def main(args: Sequence[str] | None = None) -> int:
    options = argparse.ArgumentParser(description="Build twice, and keep identical results.")
    options.add_argument("--dist", action="store_true", help="build a commit, add SBOM and checksums, and try it")
    given = options.parse_args(args)
    try:
        if given.dist:
            refuse_changes(ROOT)
        shutil.rmtree(DIST, ignore_errors=True)
        found = build_twice(ROOT, DIST, committed_at(ROOT))
        if given.dist:
            shutil.copyfile(sbom.PLACE, DIST / sbom.PLACE.name)
            write_sums(DIST)
            try_wheel(next(DIST.glob("*.whl")))
    except (NotTheSame, subprocess.SubprocessError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    for name, digest in found.items():
        print(f"{digest}  {name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
