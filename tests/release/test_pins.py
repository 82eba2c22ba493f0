import ast
import json
import re
from itertools import pairwise

import pytest

from release.locks import ROOT, read
from tests.clis.install import without_hash

BUILDERS = [
    path
    for pattern in ("Makefile", ".ci/*", ".github/**/*.yml", "deploy/*", "release/*.py", "tests/clis/*.py",
                    "tests/github/install.py", "docs/**/*.md", "*.md")
    for path in sorted(ROOT.glob(pattern))
    if path.is_file()
]  # fmt: skip
FOR_USERS = {"genba[postgres]", "genba[telemetry]", "genba", "-q -e ."}
"""What pages tell users to install, for whom a range of versions is right."""


def commands(text: str, called: str) -> list[str]:
    """Every call of a program, with the lines that it goes on in."""
    whole = text.replace("\\\n", " ")
    return [line.strip() for line in whole.splitlines() if re.search(rf"\b{called}\b", line)]


def listed_calls(source: str) -> list[str]:
    """Every call of pip that a Python file spells as a list of words, with the list by name that it goes on from."""
    tree = ast.parse(source)
    named = {
        line.targets[0].id: line.value
        for line in ast.walk(tree)
        if isinstance(line, ast.Assign) and isinstance(line.targets[0], ast.Name)
    }
    begun = [value for name, value in named.items() if f"*{name}" in source]
    lists = [each for each in ast.walk(tree) if isinstance(each, ast.List | ast.Tuple) and each not in begun]
    spelt = ([more for word in words_of(each) for more in spread(word, named)] for each in lists)
    return [" ".join(words) for words in spelt if is_install(words)]


def spread(word: str, named: dict[str, ast.expr]) -> list[str]:
    """The words that `*name` stands for."""
    return words_of(named[word[1:]]) if word[:1] == "*" and word[1:] in named else [word]


def words_of(value: ast.AST) -> list[str]:
    """The words of a list; what is no plain text, as it stands there."""
    elements = value.elts if isinstance(value, ast.List | ast.Tuple) else []
    return [str(each.value) if isinstance(each, ast.Constant) else ast.unparse(each) for each in elements]


def is_install(words: list[str]) -> bool:
    return any(re.search(r"\bpip3?['\")]*$", one) and two == "install" for one, two in pairwise(words))


def is_pinned(line: str) -> bool:
    return "--require-hashes" in line or ("--no-deps" in line and "--no-index" in line)


@pytest.mark.parametrize(
    ("source", "pinned"),
    [
        ('run(["pip", "install", "genba"])', [False]),
        ('run([sys.executable, "-m", "pip", "install", "--require-hashes", "-r", lock])', [True]),
        ('run((str(home / "bin" / "pip"), "install", "-U", "pip"))', [False]),
        ('pip = ["pip", "install"]\nrun([*pip, "--no-deps", "--no-index", wheel])\nrun([*pip, "x"])', [True, False]),
        ('pip = ["pip", "install", "x"]\nrun(pip)', [False]),
        ('run(["pip", "download"])\nrun(["install"])', []),
    ],
)
def test_a_call_that_is_a_list_of_words_is_seen(source: str, pinned: list[bool]) -> None:
    assert [is_pinned(line) for line in listed_calls(source)] == pinned


def test_no_script_installs_without_a_hash() -> None:
    scripts = [path for path in BUILDERS if path.suffix == ".py"]
    found = [(path.name, line) for path in scripts for line in listed_calls(path.read_text("utf-8"))]
    assert {"wheel.py", "install.py"} <= {name for name, _ in found}
    assert [each for each in found if not is_pinned(each[1])] == []


def test_nothing_is_installed_without_its_hash() -> None:
    loose = []
    for path in BUILDERS:
        text = path.read_text("utf-8")
        for line in commands(text, "pip install"):
            wanted = re.split(r"pip install ", line, maxsplit=1)[1].strip("`'\" |").partition("'")[0].partition("`")[0]
            if not is_pinned(line) and wanted not in FOR_USERS and path.name != "CHANGELOG.md":
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


def test_every_image_that_is_not_named_by_its_hash_is_reported_in_the_documents() -> None:
    named = set(re.findall(r"^ARG BASE=(\S+)", (ROOT / "deploy/Dockerfile").read_text("utf-8"), re.MULTILINE))
    named |= set(re.findall(r"^    image: (\S+)", (ROOT / "deploy/compose.yaml").read_text("utf-8"), re.MULTILINE))
    result = (ROOT / "docs/supply-chain.md").read_text("utf-8")
    assert [image for image in named - {"genba"} if "@sha256:" not in image and f"`{image}`" not in result] == []
