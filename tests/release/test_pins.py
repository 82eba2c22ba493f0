"""Whatever is fetched is named by its hash: nobody who owns an index, a registry or a tag can change what runs here."""

import json
import re

from release.locks import ROOT, read
from tests.clis.install import without_hash

BUILDERS = [
    path
    for pattern in ("Makefile", ".ci/*", ".github/**/*.yml", "deploy/*", "release/*.py", "tests/clis/*.py",
                    "tests/github/install.py", "docs/**/*.md", "*.md")
    for path in sorted(ROOT.glob(pattern))
    if path.is_file()
]  # fmt: skip
"""Everything that installs, or tells somebody how to."""
FOR_USERS = {"genba[postgres]", "genba[telemetry]", "genba", "-q -e ."}
"""What pages tell users to install, for whom a range of versions is right."""


def commands(text: str, called: str) -> list[str]:
    """Every call of a program, with the lines that it goes on in."""
    whole = text.replace("\\\n", " ")
    return [line.strip() for line in whole.splitlines() if re.search(rf"\b{called}\b", line)]


def test_nothing_is_installed_without_its_hash() -> None:
    loose = []
    for path in BUILDERS:
        text = path.read_text("utf-8")
        for line in commands(text, "pip install"):
            wanted = re.split(r"pip install ", line, maxsplit=1)[1].strip("`'\" |").partition("'")[0].partition("`")[0]
            pinned = "--require-hashes" in line or ("--no-deps" in line and "--no-index" in line)
            if not pinned and wanted not in FOR_USERS and path.name != "CHANGELOG.md":
                loose.append(f"{path.name}: {line}")
        if path.suffix != ".md":
            fetching = commands(text, r"(curl|wget|npx|npm install|npm i|uvx|pipx)")
            loose += [f"{path.name}: {line}" for line in fetching if line[:1] != "#"]
    assert loose == []


def test_every_package_of_every_lock_has_a_hash() -> None:
    for lock in [*ROOT.glob("*.lock"), *ROOT.glob("tests/**/*.lock")]:
        assert [package.name for package in read(lock) if not package.hashes] == [], lock.name


def test_npm_installs_nothing_without_a_hash() -> None:
    for lock in ROOT.glob("tests/*/package-lock.json"):
        packages = json.loads(lock.read_text("utf-8"))["packages"]
        hashed = [package for name, package in packages.items() if name and "integrity" in package]
        assert hashed
        assert all(package["integrity"].startswith("sha512-") for package in hashed)
    assert without_hash("Linux", "x86_64", "glibc") == []
    assert without_hash("Darwin", "arm64", "") == ["node_modules/opencode-darwin-arm64"], "and there it is refused"


def test_every_action_of_ci_is_named_by_its_commit() -> None:
    used = [line for path in ROOT.glob(".github/**/*.yml") for line in re.findall(r"uses: (\S+)", path.read_text())]
    assert used
    assert [one for one in used if not re.fullmatch(r"[\w.-]+/[\w.-]+@[0-9a-f]{40}", one)] == []


def test_ci_may_only_read() -> None:
    text = (ROOT / ".github/workflows/ci.yml").read_text("utf-8")
    assert "permissions:\n  contents: read\n" in text
    assert "persist-credentials: false" in text
    assert "pull_request_target" not in text
    assert "secrets." not in text


def test_every_image_that_is_not_named_by_its_hash_is_told_in_the_documents() -> None:
    named = set(re.findall(r"^ARG BASE=(\S+)", (ROOT / "deploy/Dockerfile").read_text("utf-8"), re.MULTILINE))
    named |= set(re.findall(r"^    image: (\S+)", (ROOT / "deploy/compose.yaml").read_text("utf-8"), re.MULTILINE))
    told = (ROOT / "docs/supply-chain.md").read_text("utf-8")
    assert [image for image in named - {"genba"} if "@sha256:" not in image and f"`{image}`" not in told] == []
