import json
import resource
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests import preloaded
from tests.fuzz.writing_places import writes
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

COMMANDS = {
    "agent new": ("agent", "new", "writer"),
    "init": ("init", "--adapter", "scripted"),
    "mcp install": ("mcp", "install", "claude-code"),
}
MADE = {
    "agent new": ".agent/writer/agent.json",
    "init": ".genba/config.yaml",
    "mcp install": ".mcp.json",
}
"""What is there when a command has done its work."""
SHOWN = (".agent", ".genba", ".gitignore", ".mcp.json")
"""What begins with a point and is the user's all the same."""


def _environment(project: Project) -> dict[str, str]:
    return {**ordinary_environment(), **project.environment}


def _files(project: Project) -> dict[str, bytes]:
    found = {}
    for path in project.root.rglob("*"):
        parts = path.relative_to(project.root).parts
        drafts = any(part.startswith(".") and part not in SHOWN for part in parts)
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
        lines = [sys.executable, "-c", DYING, str(number), *words]
        done = preloaded.run(lines, cwd=hurt.root, env=_environment(hurt), timeout=100)
        _whole_or_nothing(hurt, before, after)
        if done.returncode == 0:
            assert number > 3
            return
        assert done.returncode == -signal.SIGKILL, done.stderr
        if not (hurt.root / MADE[name]).exists():
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


def test_an_entry_for_a_client_that_cannot_be_written_leaves_no_draft(project: Project) -> None:
    project.write(".mcp.json", json.dumps({"mcpServers": {"other": {"command": "x" * 3000}}}))
    project.commit()

    done = subprocess.run(
        [str(GENBA), *COMMANDS["mcp install"]], cwd=project.root, env=_environment(project),
        capture_output=True, text=True, check=False, preexec_fn=_limited(2000),
    )  # fmt: skip

    assert "nothing was changed" in done.stderr
    assert project.git("status", "--short") == ""


@pytest.mark.parametrize(("name", "draft"), [("mcp install", "..mcp.json."), ("init", ".genba/.config.yaml.")])
def test_a_link_in_the_place_of_a_draft_is_not_followed(
    project: Project, tmp_path: Path, name: str, draft: str
) -> None:
    precious = tmp_path / "precious"
    precious.write_text("dear\n")
    (project.root / ".genba").mkdir(exist_ok=True)
    line = (
        "import os, sys; os.symlink(sys.argv[1], sys.argv[2] + str(os.getpid())); os.execv(sys.argv[3], sys.argv[3:])"
    )

    subprocess.run(
        ["python3", "-c", line, str(precious), draft, str(GENBA), *COMMANDS[name]],
        cwd=project.root, env=_environment(project), capture_output=True, text=True, check=False,
    )  # fmt: skip

    assert precious.read_text() == "dear\n"
    assert not (project.root / MADE[name]).is_symlink()


def test_every_place_that_writes_a_file_is_known() -> None:
    source = Path(__file__).parents[2] / "src" / "genba"
    modules = [path for path in source.rglob("*.py") if "testing" not in path.parts]
    found = {path.relative_to(source).as_posix(): writes(path) for path in modules}
    assert {name: len(calls) for name, calls in found.items() if calls} == WRITERS, found


@pytest.mark.parametrize(
    ("line", "is_write"),
    [
        ("open(x)", False),
        ("open(x, 'rb')", False),
        ("open(x, encoding='utf-8')", False),
        ("open(x, 'w')", True),
        ("open(x, mode='r+b')", True),
        ("open(x, mode)", True),
        ("x.open()", False),
        ("x.open('rb')", False),
        ("x.open('a')", True),
        ("x.open(mode='xb')", True),
        ("fleet.open(house, workers=3)", False),
        ("os.open(x, os.O_RDONLY | os.O_CLOEXEC)", False),
        ("os.open(x, PLAINLY)", False),
        ("os.open(x, os.O_RDWR | os.O_CLOEXEC)", True),
        ("os.open(x, os.O_RDONLY | os.O_CREAT)", True),
        ("os.open(x, FRESH | os.O_CLOEXEC)", True),
        ("os.open(x, from_elsewhere)", True),
        ("os.fdopen(number)", False),
        ("os.fdopen(number, 'rb')", False),
        ("os.fdopen(number, 'wb')", True),
        ("x.write_text('')", True),
        ("x.parent.write_bytes(b'')", True),
        ("shutil.copyfile(x, y)", True),
        ("x.read_text()", False),
    ],
)
def test_a_check_for_writes_sees_each_kind(tmp_path: Path, line: str, is_write: bool) -> None:
    module = tmp_path / "module.py"
    module.write_text(f"PLAINLY = os.O_RDONLY\nFRESH = os.O_CREAT | os.O_EXCL\ndef f():\n    return [{line}]\n")
    assert bool(writes(module)) is is_write


WRITERS = {
    "blackboard/database/connect.py": 1,  # the empty file of a new blackboard: SQLite does the rest
    "connections/agents/player.py": 4,  # the scripted agent itself: what it writes is its work
    "connections/detached/fork_server.py": 1,  # a log, appended to
    "connections/detached/output_log.py": 2,  # what was received, appended to; and a number of one width, written over
    "connections/detached/process_lock.py": 3,  # locks
    "connections/detached/fork_server_client.py": 1,  # a log, appended to
    "connections/detached/job_dir.py": 3,  # room that is reserved; what is read there is put in place by a move
    "connections/atomic_write.py": 2,  # beside, and then moved
    "connections/git/repository/run_process.py": 1,  # in memory
    "connections/git/agent_trees/safe_open.py": 1,  # a copy in a folder that is thrown away, or beside and then moved
    "connections/git/private/bundles.py": 1,  # a pack in a folder that is thrown away
    "connections/git/private/private_repositories.py": 9,  # a repository that counts when its state says so
    "connections/git/private/checkouts.py": 6,  # a checkout to verify in, thrown away with its folder
    "connections/git/agent_trees/checkout_files.py": 1,  # a plan in a folder that is thrown away
    "connections/git/repository/locks.py": 1,  # a lock
    "connections/git/worktrees/registration.py": 5,  # in a folder that is moved into place
    "connections/git/agent_trees/staging.py": 6,  # a repository in a folder that is thrown away
    "connections/git/worktrees/templates.py": 2,  # in a cell that counts when its record is there
    "connections/git/private/views.py": 1,  # in a checkout that is thrown away
    "connections/git/repository/commit_writer.py": 2,  # an object, beside and then moved
    "connections/journal/jsonl.py": 1,  # appended to; half a line is repaired when it is opened
    "connections/processes/ports.py": 1,  # a lock
    "connections/removal.py": 1,  # opened to be removed
    "connections/sandbox/containers/image.py": 2,  # an archive in a file without a name of ours; a lock
    "connections/sandbox/bubblewrap/launcher.py": 1,  # settings of the kernel
    "connections/sandbox/limits.py": 1,  # settings of the kernel
    "connections/sandbox/system_folders.py": 1,  # beside, and then moved
    "connections/secrets/gitleaks.py": 1,  # files that a scanner is shown, in a folder of its own
    "coordination/engine/executor_lock.py": 1,  # a lock
    "definitions/agent/scaffold.py": 1,  # in a folder that is moved into place
    "entrypoints/cli/start/demo_agents.py": 1,  # the project of the demo, made again each time
    "entrypoints/cli/start/demo_command.py": 1,  # the same
    "entrypoints/cli/inspect/serve_command.py": 2,  # a page that a browser opens once, removed with its server
    "entrypoints/mcp/stdio_streams.py": 1,  # nothing: the device that keeps none of it
    "connections/secrets/passed_over.py": 1,  # in a folder of its own, removed after the scan
    "definitions/task_import/snapshot.py": 2,  # a copy in a folder of its own, removed after it was read
    "application/sandbox/worktree_setup.py": 1,  # in a folder of its own, copied from there into the tree of an agent
    "application/project/sandbox_trial.py": 1,  # a repository to try a sandbox with, thrown away
    "application/dashboard/start_session.py": 1,  # a log
    "application/dashboard/keys.py": 2,  # beside, and then moved
}
