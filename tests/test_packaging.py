"""The package as users get it: the wheel, the make targets, the locks."""

import ast
import os
import re
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SLUGS = """printf 'import re\ndef slugify(t): return "-".join(re.findall("[a-z0-9]+", t.lower()))\n' > slugs.py"""
"""A line of shell that does what the first issue of the demo asks for."""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    words = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(folder), str(ROOT)]
    subprocess.run(words, check=True, capture_output=True)
    return next(folder.glob("genba-*.whl"))


def test_the_wheel_runs_the_demo_in_a_new_environment(wheel: Path, tmp_path: Path) -> None:
    home = tmp_path / "environment"
    venv.create(home, with_pip=True)
    subprocess.run([home / "bin/pip", "install", "-q", "--no-deps", "--no-index", str(wheel)], check=True)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    packages = home / "lib" / version / "site-packages"
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")

    where = subprocess.run(
        [home / "bin/python", "-c", "import genba; print(genba.__file__)"], check=True, capture_output=True, text=True
    )
    words = ["demo", "--folder", str(tmp_path / "demo"), "--agent", "custom", "--command", f"cat > /dev/null; {SLUGS}"]
    demo = subprocess.run([home / "bin/genba", *words], check=False, capture_output=True, text=True)
    agents = subprocess.run(
        [home / "bin/genba", "agent", "check"], cwd=tmp_path / "demo", check=False, capture_output=True, text=True
    )

    assert where.stdout.startswith(str(packages))
    assert demo.returncode == 0, demo.stderr
    assert "1 session · 0 false done · 0 commits lost · main is green at every commit" in demo.stdout
    named = re.findall(r"^✓ (\w+)", agents.stdout, re.MULTILINE)
    assert named == ["builder", "facilitator", "iterator", "planner", "reviewer"]


def test_every_package_that_is_imported_is_declared() -> None:
    declared = {
        "acp",
        "alembic",
        "anyio",
        "argon2",
        "click",
        "dbos",
        "detect_secrets",
        "h11",
        "httpx",
        "jinja2",
        "jsonpath_rfc9535",
        "jsonschema_rs",
        "jwt",
        "markupsafe",
        "mcp",
        "msgspec",
        "opentelemetry",  # of the extra for telemetry
        "psutil",
        "pydantic",
        "rich",
        "sqlalchemy",
        "starlette",
        "uvicorn",
        "yaml",
    }
    only_in_tests = {"graphql", "pytest"}  # the doubles that need it say so where it is missing
    found = set()
    for path in (ROOT / "src").rglob("*.py"):
        if "demo_files" not in path.parts:
            for node in ast.walk(ast.parse(path.read_text())):
                names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
                names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
                imported = {name.partition(".")[0] for name in names}
                found |= imported - only_in_tests if "testing" in path.parts else imported

    assert found - set(sys.stdlib_module_names) - {"genba"} == declared


def test_every_locked_package_has_its_hashes_and_no_index_is_named() -> None:
    for lock in ROOT.glob("requirements*.lock"):
        text = lock.read_text()
        pinned = re.findall(r"^[a-z0-9][\w.-]*==", text, re.MULTILINE)
        blocks = re.split(r"(?m)^(?=[a-z0-9][\w.-]*==)", text)
        assert len(pinned) == sum("--hash=sha256:" in block for block in blocks)
        assert "://" not in text


def test_the_locks_hold_what_the_project_declares() -> None:
    declared = re.findall(r'^    "([a-z0-9-]+)>=', (ROOT / "pyproject.toml").read_text(), re.MULTILINE)
    locked = (ROOT / "requirements-dev.lock").read_text()

    assert declared
    assert not [name for name in declared if not re.search(rf"^{name}(\[[\w, ]+\])?==", locked, re.MULTILINE)]


@pytest.mark.parametrize("target", ["demo", "test", "test-share", "test-all", "check", "bench"])
def test_the_make_targets_that_the_readme_names_are_there(target: str) -> None:
    done = subprocess.run(["make", "-n", target], cwd=ROOT, check=True, capture_output=True, text=True)

    assert done.stdout


def test_ci_calls_the_same_targets() -> None:
    script = (ROOT / ".ci/run").read_text()

    assert re.search(r"^make( --[\w=-]+)* check\b", script, re.MULTILINE)
    assert re.search(r"^make test$", script, re.MULTILINE)
    assert re.search(r"^make test-share\b", script, re.MULTILINE)
    assert os.access(ROOT / ".ci/run", os.X_OK)
    assert "bash .ci/run" in (ROOT / ".github/workflows/ci.yml").read_text()
