"""Each goal runs in a new view of the checkout: it sees the commit and what the setup made, and no other goal."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from genba.domain.sessions.sandbox import SandboxKind
from tests.bubblewrap import needs_bubblewrap
from tests.project import Project
from tests.sandbox.engines import engine_of


@pytest.fixture(params=list(SandboxKind))
def kind(
    request: pytest.FixtureRequest, project: Project, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SandboxKind]:
    kind: SandboxKind = request.param
    project.environment["GENBA_SANDBOX"] = str(kind)
    if kind is SandboxKind.BUBBLEWRAP:
        needs_bubblewrap()
    if kind in (SandboxKind.WORKTREE, SandboxKind.BUBBLEWRAP):
        yield kind
        return
    own = tmp_path_factory.getbasetemp()
    with engine_of(kind, own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) as engine:
        project.environment["GENBA_SANDBOX_OPTIONS"] = " ".join(engine.options)
        if engine.host:
            project.environment["DOCKER_HOST"] = engine.host
        yield kind


def verified(project: Project, *scripts: str, **settings: Any) -> list[dict[str, Any]]:
    """The results of scripts as goals, on a branch with one file more."""
    goals = [{"type": "custom_script", "script": script} for script in scripts]
    project.write(".genba/config.yaml", yaml.safe_dump({"dod": goals, **settings}))
    project.commit("Settings")
    project.git("switch", "-q", "-c", "work")
    project.write("more.txt", "x")
    project.commit("Work")
    project.git("switch", "-q", "main")
    found = project.genba("verify", "work", "--json").json["verification"]["results"]
    return [each["result"] for each in found if each["goal"]["goal"]["type"] == "custom_script"]


def passed(results: list[dict[str, Any]]) -> list[bool]:
    for each in results:
        sys.stderr.write(f"{each['status']} {each['detail']} {each['output']}\n")
    return [each["status"] == "passed" for each in results]


def test_what_a_setup_writes_to_settings_at_home_reaches_no_goal(project: Project, kind: SandboxKind) -> None:
    """A postinstall script wrote `script-shell=/bin/true` to ~/.npmrc, and all later goals passed."""
    if kind is SandboxKind.WORKTREE:
        pytest.skip("without a sandbox HOME is the user's own")
    setup = """
        echo script-shell=/bin/true > ~/.npmrc
        mkdir -p ~/.config/pip ~/.cache/tool ~/.cargo/registry ~/.local/lib/python ~/.npm/_cacache
        ln -s ~/.config ~/.m2
        echo x | tee ~/.gitconfig ~/.bashrc ~/.pydistutils.cfg ~/.config/pip/pip.conf ~/.cargo/config.toml >/dev/null
        echo 'import os; os._exit(0)' | tee ~/.local/lib/python/x.pth ~/.local/lib/python/usercustomize.py
        echo data | tee ~/.cache/tool/data ~/.cargo/registry/data ~/.local/lib/python/data ~/.npm/_cacache/data
    """
    settings = "~/.npmrc ~/.gitconfig ~/.bashrc ~/.pydistutils.cfg ~/.config ~/.cargo/config.toml ~/.m2"
    settings += " ~/.local/lib/python/x.pth ~/.local/lib/python/usercustomize.py"
    look = f"for each in {settings}; do test ! -e $each || exit 1; done"
    files = "~/.cache/tool/data ~/.cargo/registry/data ~/.local/lib/python/data ~/.npm/_cacache/data"
    data = f"cat {files} && echo more >> ~/.cache/tool/data"
    fresh = "test $(cat ~/.cache/tool/data) = data"

    assert passed(verified(project, look, data, fresh, verification={"setup": setup})) == [True, True, True]


def test_no_goal_sees_what_another_one_left(project: Project, kind: SandboxKind) -> None:
    project.write(".gitignore", "built\n__pycache__\n")
    project.write("check.sh", "exit 1\n")
    project.write("src/code.py", "x = 1\n")
    project.commit("Begin")
    plant = """
        echo 'exit 0' > check.sh; rm -r src README.md; ln -s /etc src; echo planted > conftest.py; echo planted > built
        mkdir -p __pycache__; echo x > __pycache__/x; echo planted > "$TMPDIR/planted"; git config alias.x y
        echo '#!/bin/sh' > .git/hooks.sh; git update-index --assume-unchanged check.sh; echo planted > ~/planted
        (setsid sleep 30; echo late > late) > /dev/null 2>&1 &
    """
    look = """
        set -e; test "$(cat check.sh)" = 'exit 1'; test "$(cat src/code.py)" = 'x = 1'; test -f README.md
        for each in conftest.py built __pycache__ "$TMPDIR/planted" .git/hooks.sh late; do test ! -e $each; done
        if git config alias.x; then exit 1; fi; test -z "$(git status --porcelain)"
    """
    alone = "test ! -e ~/planted && test $(ls -d /proc/[0-9]* | wc -l) -lt 8"

    found = verified(project, plant, look, f"{plant} :", f"{look} :", alone)

    assert passed(found)[:4] == [True, True, True, True]
    assert kind is SandboxKind.WORKTREE or passed(found)[4]


def test_tested_code_cannot_rewrite_what_judges_it(project: Project, kind: SandboxKind) -> None:
    """A shell reads its script while it runs, and a later step reads its own when an earlier one has ended."""
    project.write("tests.sh", "sh tested.sh\nexit 1\n")
    project.write("tested.sh", "printf 'sh tested.sh\\nexit 0\\n' > tests.sh\n")
    project.write("scripts/second.sh", "exit 1\n")
    project.write("Makefile", "test:\n\t@sh rewrites.sh || true\n\t@$(MAKE) second\nsecond:\n\t@sh scripts/second.sh\n")
    project.write("rewrites.sh", "printf 'second:\\n\\ttrue\\n' > Makefile\n")
    project.commit("Begin")

    found = verified(project, "bash tests.sh", "echo 'exit 0' > scripts/second.sh; sh scripts/second.sh", "make test")

    assert passed(found) == [False, False, False]
    if kind is SandboxKind.WORKTREE:
        named = [each["detail"].partition(",")[0] for each in found]
        assert named == ["changed tests.sh", "changed scripts/second.sh", "changed Makefile"]


def test_what_judges_cannot_be_rewritten_and_put_back(project: Project, kind: SandboxKind) -> None:
    if kind is SandboxKind.WORKTREE:
        pytest.skip("without a sandbox what was put back is not seen")
    project.write("scripts/second.sh", "exit 1\n")
    project.write("pytest.ini", "[pytest]\n")
    project.commit("Begin")
    back = "printf 'echo exit 1 > scripts/second.sh; exit 0' > scripts/second.sh"
    folder = "mv scripts old; mkdir scripts; echo 'rm -r scripts; mv old scripts; exit 0' > scripts/second.sh"
    removed = "rm -rf scripts; mkdir -p scripts; echo 'exit 0' > scripts/second.sh"
    settings = "! echo x > pytest.ini; ! rm -f pytest.ini; ! mv pytest.ini old; cat pytest.ini"

    second = "; sh scripts/second.sh"
    found = verified(project, back + second, folder + second, removed + second, settings)

    assert passed(found)[:3] == [False, False, False]
    assert found[3]["output"].splitlines()[0] == "[pytest]"


def test_suites_may_write_to_all_that_does_not_judge(project: Project, kind: SandboxKind) -> None:
    project.write("tests/fixtures/run.sh", "echo fixture\n")
    project.write("tests/pytest.ini", "[pytest]\n")
    project.write("generate.sh", "echo '{}'\n")
    project.write("schema.json", "{}\n")
    project.write("package.json", '{"scripts": {"test": "sh check.sh"}}\n')
    project.write("package-lock.json", "{}\n")
    project.write("check.sh", "exit 0\n")
    project.commit("Begin")
    fixture = (
        "cp tests/fixtures/run.sh kept; echo x > tests/fixtures/run.sh; echo x > tests/pytest.ini; mv kept tests/x"
    )
    generated = "sh generate.sh > schema.json && git diff --exit-code schema.json"
    installed = "echo '{ }' > package-lock.json; echo >> package.json; sh check.sh; ls -R > /dev/null"
    mode = "chmod +x check.sh && ./check.sh"
    linked = "ln check.sh copy || cp check.sh copy; sh check.sh && git status --porcelain && sh copy"

    assert passed(verified(project, fixture, generated, installed, mode, linked)) == [True] * 5


def test_what_a_setup_made_is_seen_and_what_it_rewrote_is_not(project: Project, kind: SandboxKind) -> None:
    project.write("check.sh", "exit 1\n")
    project.write("src/code.py", "x = 1\n")
    project.commit("Begin")
    setup = """
        set -e; mkdir -p 'node_modules/a b' src/made; echo installed > 'node_modules/a b/index.js'
        echo made > src/made/it; echo made > 'a*[1].txt'; ln -s made src/link; mkfifo fifo
        echo 'exit 0' > check.sh; rm README.md; mkdir README.md; echo x > README.md/x; mv src/code.py src/other.py
        mkdir -p .git/hooks; echo 'exit 1' > .git/hooks/pre-commit; git config core.fsmonitor ./fsmonitor
        pwd > where; echo "$HOME" > home
    """
    look = """
        set -e; test -f 'node_modules/a b/index.js'; test "$(cat src/made/it src/link/it)" = "$(printf 'made\\nmade')"
        test -f 'a*[1].txt'; test -p fifo; test "$(cat check.sh)" = 'exit 1'; test -f README.md
        test "$(cat src/code.py)" = 'x = 1'; test ! -e .git/hooks
        if git config core.fsmonitor; then exit 1; fi
        test "$(cat where)" = "$(pwd)"; test "$(cat home)" = "$HOME"
        rm -r node_modules; echo planted > src/made/it
    """
    assert passed(verified(project, look, f"{look} :", verification={"setup": setup})) == [True, True]


def test_a_setup_cannot_lead_the_host_anywhere(project: Project, kind: SandboxKind, tmp_path: Path) -> None:
    """What the host moves, lays over and removes after a setup is what it made itself, behind no link."""
    outside = tmp_path / "outside"
    (outside / "registry").mkdir(parents=True)
    (outside / "code.py").write_text("precious")
    project.write("src/code.py", "x = 1\n")
    project.commit("Begin")
    depth = 3000 if kind is SandboxKind.BUBBLEWRAP else 300  # of more than that there is no copy
    home = "~/.linked" if kind is SandboxKind.WORKTREE else "~/.cargo"
    deep = f"import os\nfor _ in range({depth}):\n    os.mkdir('d'); os.chdir('d')\n"
    setup = f"""
        rm -r src .git; ln -s {outside} src; ln -s {outside} .git; ln -s {outside} {home}
        {sys.executable} -c "{deep}"; mkdir closed; touch closed/file; chmod 0 closed
    """
    settings = {"verification": {"setup": setup}}

    assert passed(verified(project, "test \"$(cat src/code.py)\" = 'x = 1'", "git log -1", **settings)) == [True, True]
    assert sorted(path.name for path in outside.iterdir()) == ["code.py", "registry"]
    assert (outside / "code.py").read_text() == "precious"
    assert list((project.root / ".git/genba/checkouts").iterdir()) == []


def test_the_user_s_repository_may_name_objects_by_sha256(project: Project, kind: SandboxKind) -> None:
    root = project.root
    for path in sorted(root.glob(".git/**/*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    (root / ".git").rmdir()
    project.git("init", "-q", "-b", "main", "--object-format=sha256")
    project.git("config", "user.name", "T")
    project.git("config", "user.email", "t@localhost")
    project.commit("Begin")

    found = verified(project, "git log -1 && test -f more.txt && git status --porcelain")

    assert passed(found) == [True]


def test_a_goal_reads_the_history_of_its_commit_and_no_other_work(project: Project, kind: SandboxKind) -> None:
    """A stash, a deleted branch and the work of another session are not among the objects that goals see."""
    if kind is SandboxKind.WORKTREE:
        pytest.skip("without a sandbox the whole repository can be read")
    project.git("switch", "-q", "-c", "other")
    project.write("secret.txt", "of another session\n")
    other = project.commit("Other work")
    project.git("switch", "-q", "main")
    project.write("README.md", "stashed\n")
    project.git("stash", "-q")
    stash = project.git("rev-parse", "refs/stash")

    look = f"git log --format=%s | grep -qx Settings && ! git cat-file -e {other} && ! git cat-file -e {stash}"

    assert passed(verified(project, look)) == [True]
