"""runner.sandbox and the sandbox, boundaries, worktree and models of a project: what is around an agent."""

import os
import socket
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from genba.domain.sessions.sandbox import SandboxKind
from tests.bubblewrap import needs_bubblewrap
from tests.project import COMMIT, Project, until
from tests.sandbox.engines import Engine, engine_of
from tests.sandbox.test_containers import plain_image

ASK = """import os, socket, sys
host, port = os.environ["HTTP_PROXY"].removeprefix("http://").split(":")
for name in sys.argv[1:]:
    with socket.create_connection((host, int(port)), timeout=20) as connection:
        connection.sendall(f"CONNECT {name}:443 HTTP/1.1\\r\\nHost: {name}\\r\\n\\r\\n".encode())
        print(name, connection.recv(4096).split(b"\\r\\n")[0].decode())
"""


@pytest.fixture
def sandboxed(project: Project) -> Project:
    """A project whose agents live behind bubblewrap."""
    needs_bubblewrap()
    project.environment["GENBA_SANDBOX"] = "bubblewrap"
    return project


@pytest.fixture
def docker(project: Project, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """The engine of containers that the project's agents are to live in."""
    shared = tmp_path_factory.getbasetemp()
    with engine_of(SandboxKind.DOCKER, shared.parent if "PYTEST_XDIST_WORKER" in os.environ else shared) as engine:
        if engine.host:
            project.environment["DOCKER_HOST"] = engine.host
        yield engine


def settings(project: Project, **sections: Any) -> None:
    project.write(".genba/config.yaml", yaml.safe_dump(sections))


def command(project: Project, line: str, **runner: Any) -> None:
    project.agent(adapter={"type": "custom", "command": line}, **runner)


def decisions(project: Project) -> dict[str, str]:
    """What was asked of the gates, and what became of it."""
    return {event["target"]: event["verdict"] for event in project.events() if event["event"] == "egress_used"}


def test_an_agent_chooses_its_kind_of_sandbox(sandboxed: Project) -> None:
    command(sandboxed, COMMIT, sandbox={"kind": "worktree"})
    assert sandboxed.run("worker")["sandbox"] == "worktree"


def test_the_private_home_of_a_run_goes_when_it_is_over_and_stays_while_it_can_be_resumed(sandboxed: Project) -> None:
    command(sandboxed, f"echo mine > $HOME/note; test -e go && {COMMIT}", limits={"retries": 0})
    suspended = sandboxed.run("worker", check=1)["run"]
    assert (sandboxed.root / f".git/genba/runs/{suspended}/home/note").read_text() == "mine\n"
    command(sandboxed, f"echo mine > $HOME/note; {COMMIT}")
    over = sandboxed.run("worker")["run"]
    until(lambda: not (sandboxed.root / f".git/genba/runs/{over}/home").exists())


def test_an_agent_may_not_do_without_the_sandbox_of_its_project(project: Project) -> None:
    settings(project, sandbox={"kind": "bubblewrap"})
    command(project, COMMIT, sandbox={"kind": "worktree"})
    done = project.genba("run", "worker", check=3)
    assert 'runner.sandbox.kind: "worktree" does not isolate, and the project\'s "bubblewrap" does' in done.err


def test_the_command_line_may_not_do_without_the_sandbox_of_the_project(project: Project) -> None:
    settings(project, sandbox={"kind": "bubblewrap"})
    command(project, COMMIT)
    assert "does not isolate" in project.genba("run", "worker", "--sandbox", "worktree", check=3).err


def test_the_project_chooses_the_sandbox(project: Project) -> None:
    needs_bubblewrap()
    settings(project, sandbox={"kind": "bubblewrap"})
    command(project, f"ls /proc | grep -c '^[0-9]' > processes; cat processes; {COMMIT}")
    result = project.run("worker")
    assert (result["outcome"], result["sandbox"]) == ("completed", "bubblewrap")
    assert int(project.read("processes")) < 20


def test_a_sandbox_that_cannot_be_built_is_reported_before_anything_starts(project: Project) -> None:
    settings(project, sandbox={"kind": "podman"})
    command(project, COMMIT)
    done = project.genba("run", "worker", check=3, PATH=_only_git(project))
    assert "sandbox.kind: podman: " in done.err
    assert "genba doctor" in done.err


def _only_git(project: Project) -> str:
    """A path with nothing on it but git and a shell."""
    import shutil

    folder = project.root.parent / "bin"
    folder.mkdir()
    for name in ("git", "sh"):
        found = shutil.which(name)
        assert found is not None
        (folder / name).symlink_to(found)
    return str(folder)


def test_without_bubblewrap_a_run_reports_the_missing_sandbox(project: Project) -> None:
    command(project, "git commit -q --allow-empty -m work")
    project.environment["GENBA_SANDBOX"] = ""
    result = project.run("worker", PATH=_only_git(project))
    assert result["sandbox"] == "worktree"
    notices = [event["message"] for event in project.events() if event["event"] == "notice"]
    assert any("the agent runs without a sandbox: bwrap is not installed" in message for message in notices)


def test_an_agent_in_the_users_own_checkout_has_no_sandbox_and_says_so(project: Project) -> None:
    command(project, COMMIT, execution={"worktree": {"enabled": False}})
    project.environment["GENBA_SANDBOX"] = ""
    assert project.run("worker")["sandbox"] == "worktree"
    notices = [event["message"] for event in project.events() if event["event"] == "notice"]
    assert "the agent runs without a sandbox: it works in your own checkout" in notices
    settings(project, sandbox={"kind": "bubblewrap"})
    assert "needs a working tree of its own" in project.genba("run", "worker", check=3).err


def test_an_agent_without_a_network_has_no_way_out(sandboxed: Project) -> None:
    settings(sandboxed, sandbox={"network": "allowlist", "allow": ["example.invalid"]})
    command(sandboxed, f'test -z "$HTTP_PROXY" && {COMMIT}', sandbox={"network": "none"})
    assert sandboxed.run("worker")["outcome"] == "completed"


def test_an_agent_may_not_have_a_wider_network(project: Project) -> None:
    settings(project, sandbox={"network": "none"})
    command(project, COMMIT, sandbox={"network": "full"})
    done = project.genba("run", "worker", check=3)
    assert 'runner.sandbox.network: "full" is wider than the project\'s "none"' in done.err


def test_only_hosts_of_the_allowlist_are_let_through(sandboxed: Project) -> None:
    settings(sandboxed, sandbox={"allow": ["allowed.invalid", "*.listed.invalid"]})
    sandboxed.write("ask.py", ASK)
    line = f"{sys.executable} ask.py allowed.invalid sub.listed.invalid other.invalid && {COMMIT}"
    command(sandboxed, line)
    assert sandboxed.run("worker")["outcome"] == "completed"
    seen = decisions(sandboxed)
    assert seen["other.invalid:443"] == "denied"
    assert seen["allowed.invalid:443"] != "denied"
    assert seen["sub.listed.invalid:443"] != "denied"


def test_a_full_network_denies_only_this_machine(sandboxed: Project) -> None:
    settings(sandboxed, sandbox={"network": "full"})
    sandboxed.write("ask.py", ASK)
    command(sandboxed, f"{sys.executable} ask.py any.invalid 127.0.0.1 169.254.169.254 && {COMMIT}")
    assert sandboxed.run("worker")["outcome"] == "completed"
    seen = decisions(sandboxed)
    assert seen["any.invalid:443"] != "denied"
    assert (seen["127.0.0.1:443"], seen["169.254.169.254:443"]) == ("denied", "denied")


def test_an_agent_may_allow_fewer_hosts_than_its_project(sandboxed: Project) -> None:
    settings(sandboxed, sandbox={"allow": ["one.invalid", "two.invalid"]})
    sandboxed.write("ask.py", ASK)
    command(
        sandboxed, f"{sys.executable} ask.py one.invalid two.invalid && {COMMIT}", sandbox={"allow": ["one.invalid"]}
    )
    assert sandboxed.run("worker")["outcome"] == "completed"
    assert decisions(sandboxed)["two.invalid:443"] == "denied"
    assert decisions(sandboxed)["one.invalid:443"] != "denied"


def test_an_agent_may_not_allow_other_hosts_than_its_project(project: Project) -> None:
    settings(project, sandbox={"allow": ["*.known.invalid"]})
    command(project, COMMIT, sandbox={"allow": ["a.known.invalid", "evil.invalid"]})
    done = project.genba("run", "worker", check=3)
    assert 'runner.sandbox.allow: "evil.invalid" is not among the hosts that the project allows' in done.err
    assert "a.known.invalid" not in done.err


TOOL = """#!/bin/sh
cat > /dev/null
echo "key=$ANTHROPIC_API_KEY" > key.txt
env | grep -c 'sk-real-key' >> key.txt
git add -A; git commit -qm work
echo '{"type":"result","subtype":"success","is_error":false,"result":"done","session_id":"s-1","total_cost_usd":0}'
"""


def _key_seen_with(project: Project, credentials: str | None, where: str) -> tuple[str, str]:
    """What a tool finds as its key, and on how many variables the real one stands."""
    chosen = {"credentials": credentials} if credentials else {}
    settings(project, sandbox=chosen if where == "project" else {"credentials": "env"})
    project.write("tool.sh", TOOL).chmod(0o755)
    tool = {"type": "claude-code", "command": str(project.root / "tool.sh")}
    project.agent(adapter=tool, sandbox=chosen if where == "agent" else {})
    project.run("worker", ANTHROPIC_API_KEY="sk-real-key")
    first, second = project.read("key.txt").splitlines()
    return first.removeprefix("key="), second


@pytest.mark.parametrize("where", ["project", "agent"])
def test_a_broker_keeps_the_key_from_the_agent(sandboxed: Project, where: str) -> None:
    key, count = _key_seen_with(sandboxed, "broker", where)
    assert key not in ("", "sk-real-key")
    assert count == "0"


def test_a_tool_in_the_home_of_the_user_does_not_show_the_home(sandboxed: Project) -> None:
    home = sandboxed.root.parent / "home"
    (home / ".ssh").mkdir(parents=True)
    (home / ".ssh" / "id_rsa").write_text("secret")
    tool = home / "tool"
    tool.write_text(TOOL.replace("git add", "cat $0 > tool.txt; cat $(dirname $0)/.ssh/id_rsa > seen.txt; git add"))
    tool.chmod(0o755)
    sandboxed.agent(adapter={"type": "claude-code", "command": str(tool)})
    sandboxed.run("worker", HOME=str(home), ANTHROPIC_API_KEY="sk-real-key")
    assert sandboxed.read("tool.txt") != ""
    assert sandboxed.read("seen.txt") == ""


def test_with_env_the_agent_holds_the_key(sandboxed: Project) -> None:
    assert _key_seen_with(sandboxed, "env", "project") == ("sk-real-key", "1")


def test_without_credentials_there_is_no_key(sandboxed: Project) -> None:
    assert _key_seen_with(sandboxed, "none", "agent") == ("", "0")


def test_an_agent_may_not_hold_a_key_that_its_project_keeps(project: Project) -> None:
    command(project, COMMIT, sandbox={"credentials": "env"})
    assert 'runner.sandbox.credentials: "env" is wider' in project.genba("run", "worker", check=3).err


def test_folders_that_the_project_names_can_be_read_and_not_written(sandboxed: Project) -> None:
    shared, other = sandboxed.root.parent / "shared", sandboxed.root.parent / "other"
    for folder in (shared, other):
        folder.mkdir()
        (folder / "note.txt").write_text("seen\n")
    settings(sandboxed, sandbox={"read": [str(shared)]})
    line = f"cat {shared}/note.txt; echo x > {shared}/new; test ! -e {shared}/new && test ! -e {other} && {COMMIT}"
    command(sandboxed, line)
    assert sandboxed.run("worker")["outcome"] == "completed"
    assert sorted(path.name for path in shared.iterdir()) == ["note.txt"]


SECRETS = (
    ".ssh/id_ed25519", ".aws/credentials", ".config/gh/hosts.yml", ".config/Code/User/settings.json", ".netrc",
    ".npmrc", ".git-credentials", ".docker/config.json", ".kube/config", ".bash_history", ".pypirc", ".m2/settings.xml",
    ".gradle/gradle.properties", ".cargo/credentials.toml", ".cargo/registry/token", ".local/share/keyrings/login",
    ".local/share/anything/token", ".local/share/uv/credentials/one", ".local/state/token", ".local/secret",
    ".nvm/token", ".rustup/token", ".pyenv/.git/config", ".volta/secret", ".bun/secret", ".deno/secret",
    "go/pkg/secret", "notes.txt",
    "work/other/.env", "tools/prefix/secret", "tools/prefix/share/secret",
)  # fmt: skip
PROGRAMS = (
    ".local/bin/one", ".local/share/uv/tools/two/bin/two", ".local/share/pipx/venvs/three/bin/three", "bin/four",
    ".nvm/versions/node/v20/bin/five", ".cargo/bin/six", ".pyenv/versions/3.12/bin/seven", "go/bin/eight",
    ".bun/bin/nine", ".deno/bin/ten", ".volta/bin/eleven", ".local/share/mise/installs/x/1/bin/twelve",
    "tools/prefix/bin/thirteen", ".rustup/toolchains/stable/bin/fourteen",
)  # fmt: skip


def test_of_the_home_of_the_user_tools_are_seen_and_nothing_else(sandboxed: Project) -> None:
    home = sandboxed.root.parent / "people" / "user"
    for name in SECRETS:
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text("hidden-word")
    for name in PROGRAMS:
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text("#!/bin/sh\necho ran\n")
        (home / name).chmod(0o755)
    (home / "tools/prefix/lib").mkdir()
    entries = dict.fromkeys(str((home / name).parent) for name in PROGRAMS)
    sandboxed.environment |= {"HOME": str(home), "PATH": os.pathsep.join([*entries, os.environ["PATH"]])}
    names = " ".join(name.rpartition("/")[2] for name in PROGRAMS)
    line = f"grep -rl hidden-word {home} > seen.txt; for p in {names}; do $p; done > ran.txt; git add -A; {COMMIT}"
    command(sandboxed, line)
    assert sandboxed.run("worker")["outcome"] == "completed"
    assert (sandboxed.read("seen.txt"), sandboxed.read("ran.txt")) == ("", "ran\n" * len(PROGRAMS))


def test_an_image_of_the_project_is_what_a_container_is_made_of(project: Project, docker: Engine) -> None:
    image = plain_image(docker, project.root.parent, "sh", "git", "ls", "cat")
    try:
        settings(project, sandbox={"kind": "docker", "image": image})
        command(project, "ls /bin > programs.txt; git add -A; git commit -qm programs")
        assert project.run("worker")["outcome"] == "completed"
    finally:
        docker.ask("rmi", "--force", image)
    assert project.read("programs.txt").split() == ["cat", "git", "ls", "sh"]


def test_options_reach_the_engine_of_containers(project: Project, docker: Engine) -> None:
    words = [*docker.options, "--ulimit", "nofile=517:517"]
    settings(project, sandbox={"kind": "docker", "options": words})
    command(project, f"ulimit -n > files.txt; {COMMIT}")
    assert project.run("worker")["outcome"] == "completed"
    assert project.read("files.txt") == "517\n"


@pytest.mark.parametrize("options", [["--privileged"], ["--runtime", "./runtime"], ["-v", "/:/host"]])
def test_an_option_that_is_not_allowed_is_refused_before_anything_starts(project: Project, options: list[str]) -> None:
    settings(project, sandbox={"kind": "podman", "options": options})
    command(project, COMMIT)
    refused = project.genba("run", "worker")
    assert refused.code != 0
    assert f"{options[0]} " in refused.err
    assert "sandbox.options" in refused.err


HOGS = {
    "memory": (f"{sys.executable} -c 'x = bytearray(400_000_000); import time; time.sleep(30)'", {"memory": 100}),
    "processes": ("for i in $(seq 200); do sleep 30 & done; wait", {"processes": 40}),
    "disk": ("dd if=/dev/zero of=big bs=1M count=300 2>/dev/null; sleep 30", {"disk": 30}),
    "files": ("for i in $(seq 1200); do : > f$i; done; sleep 30", {"files": 1000}),
}
NAMES = {"memory": "memory_mb", "processes": "processes", "disk": "disk_mb", "files": "files"}
OWN = {"memory": "memoryMb", "processes": "processes", "disk": "diskMb", "files": "files"}


@pytest.mark.parametrize("what", HOGS)
@pytest.mark.parametrize("where", ["project", "agent"])
def test_an_agent_that_uses_too_much_is_ended_and_the_limit_is_named(sandboxed: Project, what: str, where: str) -> None:
    hog, limit = HOGS[what]
    if where == "project":
        settings(sandboxed, sandbox={"limits": {NAMES[what]: limit[what]}})
        command(sandboxed, hog)
    else:
        command(sandboxed, hog, sandbox={"limits": {OWN[what]: limit[what]}})
    result = sandboxed.run("worker", check=1)
    assert result["outcome"] == "failed"
    assert str(limit[what]) in result["reason"]
    assert what in result["reason"]


TRACE = f"{sys.executable} -c 'import ctypes; exit(ctypes.CDLL(None).ptrace(0, 0, 0, 0) != 0)'"


@pytest.mark.parametrize("own", [None, False])
@pytest.mark.parametrize("allowed", [True, False])
def test_a_project_permits_debuggers(sandboxed: Project, allowed: bool, own: bool | None) -> None:
    """The agent and the goals of the project; an agent may do without."""
    settings(sandboxed, sandbox={"allow_ptrace": allowed})
    tried = f"{TRACE} && echo traced > traced.txt || echo refused > traced.txt; git add -A; git commit -qm traced"
    command(sandboxed, tried, **({"sandbox": {"allowPtrace": own}} if own is not None else {}))
    assert sandboxed.run("worker")["outcome"] == "completed"
    assert sandboxed.read("traced.txt") == ("traced\n" if allowed and own is None else "refused\n")


def test_an_agent_may_not_trace_where_its_project_does_not_allow_it(project: Project) -> None:
    command(project, COMMIT, sandbox={"allowPtrace": True})
    assert "runner.sandbox.allowPtrace: the project does not allow it" in project.genba("run", "worker", check=3).err


def test_an_agent_may_not_raise_a_limit_of_its_project(project: Project) -> None:
    settings(project, sandbox={"limits": {"memory_mb": 100, "cpus": 1}})
    command(project, COMMIT, sandbox={"limits": {"memoryMb": 200, "cpus": 0.5}})
    done = project.genba("run", "worker", check=3)
    assert "runner.sandbox.limits.memoryMb: 200 is more than the project's 100" in done.err
    assert "cpus" not in done.err


@pytest.mark.skipif(os.getuid() != 0, reason="not run: an ordinary user may have no control group for processors")
@pytest.mark.parametrize("where", ["project", "agent"])
def test_an_agent_keeps_only_so_many_processors_busy(sandboxed: Project, where: str) -> None:
    burn = f"{sys.executable} -c 'import time; t = time.process_time()\nwhile time.process_time() - t < 0.5: pass'"
    if where == "project":
        settings(sandboxed, sandbox={"limits": {"cpus": 0.25}})
    command(sandboxed, f"{burn} && {COMMIT}", **({"sandbox": {"limits": {"cpus": 0.25}}} if where == "agent" else {}))
    began = time.monotonic()
    assert sandboxed.run("worker")["outcome"] == "completed"
    assert time.monotonic() - began > 1.5


def test_no_agent_may_use_a_tool_that_the_project_does_not_allow(project: Project) -> None:
    settings(project, boundaries={"allowed_tools": ["Read"]})
    command(project, COMMIT, boundaries={"allowedTools": ["Read", "Bash"]})
    done = project.genba("run", "worker", check=3)
    assert 'runner.boundaries.allowedTools: the project allows no agent to use "Bash"' in done.err


def test_an_agent_without_a_list_gets_the_tools_of_the_project(project: Project) -> None:
    settings(project, boundaries={"allowed_tools": ["Read", "Edit"]})
    command(project, f'test "$GENBA_ALLOWED_TOOLS" = Read,Edit && {COMMIT}')
    assert project.run("worker")["outcome"] == "completed"


def test_no_agent_may_have_a_wider_permission_mode_than_the_project(project: Project) -> None:
    settings(project, boundaries={"permission_mode": "plan"})
    command(project, f'test "$GENBA_PERMISSION_MODE" = plan && {COMMIT}')
    assert project.run("worker")["outcome"] == "completed"
    command(project, COMMIT, boundaries={"permissionMode": "acceptEdits"})
    assert '"acceptEdits" is wider than the project\'s "plan"' in project.genba("run", "worker", check=3).err


def test_a_step_may_use_fewer_tools_and_never_others(project: Project) -> None:
    steps = {"work": {"allowedTools": ["Read"]}}
    command(project, f'test "$GENBA_ALLOWED_TOOLS" = Read && {COMMIT}', steps=steps)
    assert project.run("worker")["outcome"] == "completed"
    command(project, COMMIT, steps={"work": {"allowedTools": ["Bash"]}}, boundaries={"allowedTools": ["Read"]})
    done = project.genba("run", "worker", check=3)
    assert 'steps.work.allowedTools: "Bash" is not among the agent\'s allowedTools' in done.err


def test_all_permissions_without_a_sandbox_are_refused_unless_the_risk_is_accepted(project: Project) -> None:
    command(project, COMMIT, boundaries={"permissionMode": "bypassPermissions"})
    done = project.genba("run", "worker", check=3)
    assert "bypassPermissions without a sandbox" in done.err
    assert "--i-accept-the-risk" in done.err
    assert project.run("worker", "--i-accept-the-risk")["outcome"] == "completed"


def test_all_permissions_in_the_sandbox_are_no_risk(sandboxed: Project) -> None:
    command(sandboxed, COMMIT, boundaries={"permissionMode": "bypassPermissions"})
    assert sandboxed.run("worker")["outcome"] == "completed"


@pytest.mark.parametrize("sandbox", ["worktree", "bubblewrap"])
def test_a_working_tree_is_set_up_before_its_agent_comes(project: Project, sandbox: str) -> None:
    if sandbox == "bubblewrap":
        needs_bubblewrap()
    project.environment["GENBA_SANDBOX"] = sandbox
    project.write(".gitignore", "built\n")
    settings(project, worktree={"setup": "echo once >> built"})
    line = f"cat built > seen && git add seen && git commit -q --allow-empty -m seen && {COMMIT}"
    command(project, line, completion={"type": "iterationBudget", "config": {"maxIterations": 2}})
    assert project.run("worker")["outcome"] == "completed"
    assert project.read("seen") == "once\n"


def test_a_setup_that_fails_ends_the_run_before_the_agent_was_asked(project: Project) -> None:
    settings(project, worktree={"setup": ["sh", "-c", "echo no such tool >&2; exit 3"]})
    command(project, COMMIT)
    result = project.run("worker", check=1)
    assert result["reason"] == "worktree.setup failed: no such tool"
    assert not any(event["event"] == "agent_started" for event in project.events())


def test_a_setup_has_only_so_much_time(project: Project) -> None:
    settings(project, worktree={"setup": "sleep 60", "setup_timeout_seconds": 0.5})
    command(project, COMMIT)
    assert project.run("worker", check=1)["reason"].startswith("worktree.setup failed (timed out)")


@pytest.mark.parametrize("sandbox", ["worktree", "bubblewrap"])
def test_ignored_files_of_the_checkout_are_copied(project: Project, sandbox: str) -> None:
    if sandbox == "bubblewrap":
        needs_bubblewrap()
    project.environment["GENBA_SANDBOX"] = sandbox
    project.write(".gitignore", ".env*\nlocal/\n")
    project.write(".env.local", "COLOUR=green\n")
    project.write("local/deep/settings", "42\n")
    settings(project, worktree={"copy": [".env*", "local"]})
    command(project, f"cat .env.local local/deep/settings > seen && git add seen && {COMMIT}")
    assert project.run("worker")["outcome"] == "completed"
    assert project.read("seen") == "COLOUR=green\n42\n"


def test_a_file_that_git_does_not_ignore_is_not_copied(project: Project) -> None:
    project.write("notes.txt", "mine\n")
    settings(project, worktree={"copy": ["notes.txt"]})
    project.write(".gitignore", "")
    project.agent(adapter={"type": "custom", "command": COMMIT}, commit=False)
    project.git("add", ".agent", ".genba", ".gitignore")
    project.git("commit", "-qm", "Declare")
    result = project.run("worker", check=1)
    assert "worktree.copy names notes.txt, which git does not ignore" in result["reason"]


def test_variables_of_the_project_reach_its_agents(project: Project) -> None:
    settings(project, worktree={"environment": {"COLOUR": "green"}})
    command(project, f'test "$COLOUR" = green && {COMMIT}')
    assert project.run("worker")["outcome"] == "completed"


def test_variables_of_the_project_reach_its_checks(project: Project) -> None:
    settings(project, worktree={"environment": {"COLOUR": "green"}})
    seen = {"type": "command", "command": 'test "$COLOUR" = green'}
    steps = {"work": {"completionConditions": [{"validator": "seen"}]}}
    command(project, COMMIT, steps=steps, registry={"validators": {"seen": seen}})
    assert project.run("worker")["outcome"] == "completed"


def test_each_working_tree_gets_ports_of_its_own(project: Project) -> None:
    settings(project, worktree={"ports": 5})
    line = 'test $((GENBA_PORT_LAST - GENBA_PORT_FIRST)) = 4 && test "$PORT" = "$GENBA_PORT_FIRST" && '
    command(project, line + COMMIT)
    assert project.run("worker")["outcome"] == "completed"


SHOW_MODEL = """#!/bin/sh
cat > /dev/null
echo "$@" | grep -o -e '--model [^ ]*' > model.txt
git add -A; git commit -qm work
echo '{"type":"result","subtype":"success","is_error":false,"result":"done","session_id":"s-1","total_cost_usd":0}'
"""


def test_the_project_says_what_the_name_of_a_model_means(project: Project) -> None:
    settings(project, models={"claude-code": {"opus": "my-largest", "haiku": "my-smallest"}})
    project.write("tool.sh", SHOW_MODEL).chmod(0o755)
    tool = {"type": "claude-code", "command": str(project.root / "tool.sh"), "models": {"haiku": "my-tiniest"}}
    project.agent(adapter=tool)
    project.run("worker")
    assert project.read("model.txt") == "--model my-largest\n"
    project.run("worker", "--model", "haiku")
    assert project.read("model.txt") == "--model my-tiniest\n"


def test_goals_run_in_the_sandbox_unless_the_project_says_otherwise(sandboxed: Project) -> None:
    outside = sandboxed.root.parent / "outside"
    outside.mkdir()
    look = f"test -e {outside} && echo open > {outside}/seen; true"
    command(sandboxed, COMMIT)
    settings(sandboxed, dod=[{"custom_script": look}])
    sandboxed.commit("Ask for a look around")
    assert sandboxed.run("worker")["outcome"] == "completed"
    assert not (outside / "seen").exists()
    settings(sandboxed, dod=[{"custom_script": look}], verification={"sandbox": False})
    sandboxed.commit("Look around without walls")
    assert sandboxed.run("worker")["outcome"] == "completed"
    assert (outside / "seen").read_text() == "open\n"


def test_goals_reach_what_the_project_lets_them(sandboxed: Project) -> None:
    sandboxed.write("ask.py", ASK)
    command(sandboxed, COMMIT)
    asked = f"{sys.executable} ask.py any.invalid > said; cat said; grep -q 403 said"
    cases: tuple[tuple[dict[str, str], str], ...] = (
        ({}, "completed"),
        ({"network": "allowlist"}, "completed"),
        ({"network": "full"}, "incomplete"),
    )
    for verification, outcome in cases:
        settings(sandboxed, dod=[{"custom_script": asked}], verification=verification)
        sandboxed.commit(f"Verify with {verification}")
        result = sandboxed.run("worker", check=None)
        assert result["outcome"] == outcome, verification


def test_a_setup_reaches_the_whole_network_unless_the_project_says_otherwise(sandboxed: Project) -> None:
    sandboxed.write("ask.py", ASK)
    command(sandboxed, COMMIT)
    setup = f"{sys.executable} ask.py any.invalid > said"
    cases: tuple[tuple[dict[str, str], str], ...] = (
        ({}, "502"),
        ({"network": "allowlist"}, "403"),
        ({"network": "allowlist", "setup_network": "full"}, "502"),
        ({"setup_network": "allowlist"}, "403"),
    )
    for verification, answer in cases:
        settings(
            sandboxed, dod=[{"custom_script": f"grep -q {answer} said"}], verification={**verification, "setup": setup}
        )
        sandboxed.commit(f"Set up with {verification}")
        assert sandboxed.run("worker", check=None)["outcome"] == "completed", verification


def test_what_goals_asked_of_the_network_is_in_their_logs(sandboxed: Project) -> None:
    """A goal that failed names the hosts that were denied, and the settings that permit them."""
    sandboxed.write("ask.py", ASK.replace(":443", ""))
    with socket.create_server(("127.0.0.1", 0)) as server:
        known = f"127.0.0.1:{server.getsockname()[1]}"
        asked = f"{sys.executable} ask.py one.invalid:443 {known}; exit $CODE"
        goals = [{"custom_script": f"CODE={code}; {asked}"} for code in (0, 1)]
        settings(sandboxed, sandbox={"allow": [known]}, dod=goals)
        sandboxed.commit("Ask")
        sandboxed.git("switch", "-q", "-c", "work")
        sandboxed.write("more.txt", "x")
        sandboxed.commit("Work")
        found = sandboxed.genba("verify", "work", "--json", check=1).json["verification"]["results"]
    passed, failed = (each for each in found if each["goal"]["goal"]["type"] == "custom_script")

    assert passed["result"]["status"] == "passed"
    for each in (passed, failed):
        log = sandboxed.genba("logs", "goal", each["log"], check=0).out
        assert "denied  one.invalid:443" in log
        assert f"allowed  {known}" in log
    assert "denied one.invalid:443" in failed["result"]["detail"]
    assert "sandbox.allow" in sandboxed.genba("verify", "work", check=1).out


def test_a_service_under_test_has_a_network_of_its_own(sandboxed: Project) -> None:
    """It does not reach a service of the host, and no service of the host answers for it."""
    serve = """
import http.server, os, socket, sys
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(reached.encode())
try:
    socket.create_connection(("127.0.0.1", int(sys.argv[2])), 5)
    reached = "reached the host"
except OSError:
    reached = "reached nothing"
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
"""
    sandboxed.write("serve.py", serve)
    with socket.create_server(("127.0.0.1", 0)) as of_the_host, socket.create_server(("127.0.0.1", 0)) as same_port:
        of_host, port = of_the_host.getsockname()[1], same_port.getsockname()[1]
        line = f"{sys.executable} serve.py {port} {of_host}"
        goal = {
            "type": "response_contains",
            "url": f"http://127.0.0.1:{port}/",
            "text": "reached nothing",
            "serve": line,
        }
        named = {**goal, "url": f"http://localhost:{port}/"}
        settings(sandboxed, dod=[goal, named])
        command(sandboxed, COMMIT)
        sandboxed.commit("Ask a service")
        assert sandboxed.run("worker")["outcome"] == "completed"


def test_a_service_that_a_goal_asks_is_reached_in_the_sandbox(sandboxed: Project) -> None:
    serve = f"{sys.executable} -m http.server --bind 127.0.0.1 $PORT"
    goal = {"type": "endpoint_responds", "url": "/README.md", "status": 200, "serve": serve}
    command(sandboxed, COMMIT)
    settings(sandboxed, dod=[goal])
    sandboxed.commit("Ask a service")
    assert sandboxed.run("worker")["outcome"] == "completed"
