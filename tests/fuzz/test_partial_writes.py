"""Whoever dies while writing, or finds the disk full, leaves the old file or the new one, and never half of one."""

import resource
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests import preloaded
from tests.preloaded import GENBA, ordinary_environment
from tests.project import Project

MOST_DEATHS = 200
DYING = """
import os, signal, sys
from genba.entrypoints.cli.main import main
most = int(sys.argv[1])
sys.argv = ["genba", *sys.argv[2:]]
count, asking = 0, False
def heard(event, args):
    global count, asking
    writes = event == "open" and isinstance(args[2], int) and args[2] & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
    if asking or not (writes or event in ("os.rename", "os.mkdir", "os.link", "os.remove", "os.chmod", "os.truncate")):
        return
    asking = True
    count += 1
    if count >= most:
        os.kill(os.getpid(), signal.SIGKILL)
    asking = False
sys.addaudithook(heard)
main()
"""
"""A real `genba` that is killed as it opens, names, moves or removes its N-th file."""

COMMANDS = {"agent new": ("agent", "new", "writer"), "init": ("init", "--adapter", "scripted")}


def _environment(project: Project) -> dict[str, str]:
    return {**ordinary_environment(), **project.environment}


def _files(project: Project) -> dict[str, bytes]:
    """What a user would see as a file of the project. Drafts have names of their own, and are nobody's."""
    found = {}
    for path in project.root.rglob("*"):
        parts = path.relative_to(project.root).parts
        drafts = any(part.startswith(".") and part not in (".agent", ".genba", ".gitignore") for part in parts)
        if path.is_file() and not drafts and not path.name.startswith("genba.db"):
            found["/".join(parts)] = path.read_bytes()
    return found


def _whole_or_nothing(project: Project, before: dict[str, bytes], after: dict[str, bytes]) -> None:
    now = _files(project)
    for name, content in now.items():
        assert content in (before.get(name), after.get(name)), f"{name} is half"
    assert before.keys() <= now.keys(), "something is gone"


def _fresh(project: Project, number: int) -> Project:
    place = project.root.parent / f"copy{number}" / project.root.name  # the name of the folder is that of the project
    place.parent.mkdir()
    subprocess.run(["cp", "-a", str(project.root), str(place)], check=True)
    return Project(place, project.environment)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_that_dies_at_any_write_leaves_whole_files_and_can_be_repeated(project: Project, name: str) -> None:
    words = COMMANDS[name]
    unhurt = _fresh(project, 0)
    before = _files(unhurt)
    unhurt.genba(*words, check=0)
    after = _files(unhurt)
    assert after != before
    for number in range(1, MOST_DEATHS):
        hurt = _fresh(project, number)
        told = [sys.executable, "-c", DYING, str(number), *words]
        done = preloaded.run(told, cwd=hurt.root, env=_environment(hurt), timeout=100)
        _whole_or_nothing(hurt, before, after)
        if done.returncode == 0:
            assert number > 3
            return
        assert done.returncode == -signal.SIGKILL, done.stderr
        if not (hurt.root / ".agent" / "writer").exists() and not (hurt.root / ".genba" / "config.yaml").exists():
            hurt.genba(*words, check=0)
            assert after.keys() <= _files(hurt).keys()
    pytest.fail("it never came to its end")


def _limited(most: int) -> Callable[[], None]:
    """Files that grow beyond so many bytes are refused, as a full disk refuses them."""

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))

    return limit


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("most", [0, 100, 1000])
def test_a_command_that_cannot_write_leaves_whole_files(project: Project, name: str, most: int) -> None:
    before = _files(project)
    unhurt = _fresh(project, 0)
    unhurt.genba(*COMMANDS[name], check=0)
    done = subprocess.run(
        [str(GENBA), *COMMANDS[name]],
        cwd=project.root,
        env=_environment(project),
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
        preexec_fn=_limited(most),
    )
    _whole_or_nothing(project, before, _files(unhurt))
    assert "Traceback" not in done.stderr
    if most == 0:
        assert done.returncode != 0
        assert "error: " in done.stderr
        assert [path.name for path in (project.root / ".agent").glob(".*")] == []


def test_every_place_that_writes_a_file_is_known() -> None:
    """Whoever adds a way to write must look here: does it write beside, and then move?"""
    source = Path(__file__).parents[2] / "src" / "genba"
    plain = {
        str(path.relative_to(source))
        for path in source.rglob("*.py")
        if "testing" not in path.parts
        for line in path.read_text("utf-8").splitlines()
        if (".write_text(" in line or ".write_bytes(" in line)
        and not any(word in line for word in ("fresh.write", "beside.write", "draft.write", "copy.write"))
    }
    assert plain == PLAIN_WRITERS


PLAIN_WRITERS = {
    "connections/agents/player.py",  # the scripted agent itself: what it writes is its work
    "connections/detached/places.py",  # room that is reserved; what is read there is put in place by a move
    "connections/git/cells.py",  # a repository that is made in a folder of its own, and counts when its state says so
    "connections/git/checkouts.py",  # a checkout to verify in, thrown away with its folder
    "connections/git/registering.py",  # in a folder that is moved into place
    "connections/git/templates.py",  # in a cell that counts when its record is there
    "connections/secrets/gitleaks.py",  # files that a scanner is shown, in a folder of its own
    "definitions/scaffold.py",  # in a folder that is moved into place
    "entrypoints/cli/demo_cast.py",  # the project of the demo, made anew each time
}
