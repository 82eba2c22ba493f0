"""runner.sandbox and the sandbox, boundaries, worktree and models of a project: what is around an agent."""

import os
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from genba.domain.walls import SandboxKind
from tests.project import COMMIT, Project, until
from tests.sandbox.engines import Engine, engine_of
from tests.sandbox.test_containers import plain_image
from tests.walls import needs_bubblewrap

ASK = """import os, socket, sys
host, port = os.environ["HTTP_PROXY"].removeprefix("http://").split(":")
for name in sys.argv[1:]:
    with socket.create_connection((host, int(port)), timeout=20) as connection:
        connection.sendall(f"CONNECT {name}:443 HTTP/1.1\\r\\nHost: {name}\\r\\n\\r\\n".encode())
        print(name, connection.recv(4096).split(b"\\r\\n")[0].decode())
"""


@pytest.fixture
def walled(project: Project) -> Project:
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
    return {event["target"]: event["verdict"] for event in project.events() if event["event"] == "gate_used"}


def test_an_agent_chooses_its_kind_of_walls(walled: Project) -> None:
    command(walled, COMMIT, sandbox={"kind": "worktree"})
    assert walled.run("worker")["sandbox"] == "worktree"


def test_the_private_home_of_a_run_goes_when_it_is_over_and_stays_while_it_can_be_resumed(walled: Project) -> None:
    command(walled, f"echo mine > $HOME/note; test -e go && {COMMIT}", limits={"retries": 0})
    parked = walled.run("worker", check=1)["run"]
    assert (walled.root / f".git/genba/runs/{parked}/home/note").read_text() == "mine\n"
    command(walled, f"echo mine > $HOME/note; {COMMIT}")
    over = walled.run("worker")["run"]
    until(lambda: not (walled.root / f".git/genba/runs/{over}/home").exists())


def test_an_agent_may_not_do_without_the_walls_of_its_project(project: Project) -> None:
    settings(project, sandbox={"kind": "bubblewrap"})
    command(project, COMMIT, sandbox={"kind": "worktree"})
    done = project.genba("run", "worker", check=3)
    assert 'runner.sandbox.kind: "worktree" has no walls, and the project\'s "bubblewrap" has' in done.err


def test_the_command_line_may_not_do_without_the_walls_of_the_project(project: Project) -> None:
    settings(project, sandbox={"kind": "bubblewrap"})
    command(project, COMMIT)
    assert "has no walls" in project.genba("run", "worker", "--sandbox", "worktree", check=3).err


def test_the_project_chooses_the_walls(project: Project) -> None:
    needs_bubblewrap()
    settings(project, sandbox={"kind": "bubblewrap"})
    command(project, f"ls /proc | grep -c '^[0-9]' > processes; cat processes; {COMMIT}")
    result = project.run("worker")
    assert (result["outcome"], result["sandbox"]) == ("completed", "bubblewrap")
    assert int(project.read("processes")) < 20


def test_walls_that_cannot_be_raised_are_told_before_anything_starts(project: Project) -> None:
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


def test_without_bubblewrap_a_run_says_that_there_are_no_walls(project: Project) -> None:
    command(project, "git commit -q --allow-empty -m work")
    project.environment["GENBA_SANDBOX"] = ""
    result = project.run("worker", PATH=_only_git(project))
    assert result["sandbox"] == "worktree"
    notices = [event["message"] for event in project.events() if event["event"] == "notice"]
    assert any("no walls around the agent: bwrap is not installed" in told for told in notices)


def test_an_agent_in_the_users_own_checkout_has_no_walls_and_says_so(project: Project) -> None:
    command(project, COMMIT, execution={"worktree": {"enabled": False}})
    project.environment["GENBA_SANDBOX"] = ""
    assert project.run("worker")["sandbox"] == "worktree"
    notices = [event["message"] for event in project.events() if event["event"] == "notice"]
    assert "no walls around the agent: it works in your own checkout" in notices
    settings(project, sandbox={"kind": "bubblewrap"})
    assert "needs a working tree of its own" in project.genba("run", "worker", check=3).err


def test_an_agent_without_a_network_has_no_way_out(walled: Project) -> None:
    settings(walled, sandbox={"network": "allowlist", "allow": ["example.invalid"]})
    command(walled, f'test -z "$HTTP_PROXY" && {COMMIT}', sandbox={"network": "none"})
    assert walled.run("worker")["outcome"] == "completed"


def test_an_agent_may_not_have_a_wider_network(project: Project) -> None:
    settings(project, sandbox={"network": "none"})
    command(project, COMMIT, sandbox={"network": "full"})
    done = project.genba("run", "worker", check=3)
    assert 'runner.sandbox.network: "full" is wider than the project\'s "none"' in done.err


def test_only_hosts_of_the_allowlist_are_let_through(walled: Project) -> None:
    settings(walled, sandbox={"allow": ["allowed.invalid", "*.listed.invalid"]})
    walled.write("ask.py", ASK)
    line = f"{sys.executable} ask.py allowed.invalid sub.listed.invalid other.invalid && {COMMIT}"
    command(walled, line)
    assert walled.run("worker")["outcome"] == "completed"
    seen = decisions(walled)
    assert seen["other.invalid:443"] == "denied"
    assert seen["allowed.invalid:443"] != "denied"
    assert seen["sub.listed.invalid:443"] != "denied"


def test_a_full_network_denies_only_this_machine(walled: Project) -> None:
    settings(walled, sandbox={"network": "full"})
    walled.write("ask.py", ASK)
    command(walled, f"{sys.executable} ask.py any.invalid 127.0.0.1 169.254.169.254 && {COMMIT}")
    assert walled.run("worker")["outcome"] == "completed"
    seen = decisions(walled)
    assert seen["any.invalid:443"] != "denied"
    assert (seen["127.0.0.1:443"], seen["169.254.169.254:443"]) == ("denied", "denied")


def test_an_agent_may_allow_fewer_hosts_than_its_project(walled: Project) -> None:
    settings(walled, sandbox={"allow": ["one.invalid", "two.invalid"]})
    walled.write("ask.py", ASK)
    command(walled, f"{sys.executable} ask.py one.invalid two.invalid && {COMMIT}", sandbox={"allow": ["one.invalid"]})
    assert walled.run("worker")["outcome"] == "completed"
    assert decisions(walled)["two.invalid:443"] == "denied"
    assert decisions(walled)["one.invalid:443"] != "denied"


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
def test_a_broker_keeps_the_key_from_the_agent(walled: Project, where: str) -> None:
    key, count = _key_seen_with(walled, "broker", where)
    assert key not in ("", "sk-real-key")
    assert count == "0"


def test_a_tool_in_the_home_of_the_user_does_not_show_the_home(walled: Project) -> None:
    home = walled.root.parent / "home"
    (home / ".ssh").mkdir(parents=True)
    (home / ".ssh" / "id_rsa").write_text("secret")
    tool = home / "tool"
    tool.write_text(TOOL.replace("git add", "cat $0 > tool.txt; cat $(dirname $0)/.ssh/id_rsa > seen.txt; git add"))
    tool.chmod(0o755)
    walled.agent(adapter={"type": "claude-code", "command": str(tool)})
    walled.run("worker", HOME=str(home), ANTHROPIC_API_KEY="sk-real-key")
    assert walled.read("tool.txt") != ""
    assert walled.read("seen.txt") == ""


def test_with_env_the_agent_holds_the_key(walled: Project) -> None:
    assert _key_seen_with(walled, "env", "project") == ("sk-real-key", "1")


def test_without_credentials_there_is_no_key(walled: Project) -> None:
    assert _key_seen_with(walled, "none", "agent") == ("", "0")


def test_an_agent_may_not_hold_a_key_that_its_project_keeps(project: Project) -> None:
    command(project, COMMIT, sandbox={"credentials": "env"})
    assert 'runner.sandbox.credentials: "env" is wider' in project.genba("run", "worker", check=3).err


def test_folders_that_the_project_names_can_be_read_and_not_written(walled: Project) -> None:
    shared, other = walled.root.parent / "shared", walled.root.parent / "other"
    for folder in (shared, other):
        folder.mkdir()
        (folder / "note.txt").write_text("seen\n")
    settings(walled, sandbox={"read": [str(shared)]})
    line = f"cat {shared}/note.txt; echo x > {shared}/new; test ! -e {shared}/new && test ! -e {other} && {COMMIT}"
    command(walled, line)
    assert walled.run("worker")["outcome"] == "completed"
    assert sorted(path.name for path in shared.iterdir()) == ["note.txt"]


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


HOGS = {
    "memory": (f"{sys.executable} -c 'x = bytearray(400_000_000); import time; time.sleep(30)'", {"memory": 100}),
    "processes": ("for i in $(seq 200); do sleep 30 & done; wait", {"processes": 40}),
    "disk": ("dd if=/dev/zero of=big bs=1M count=300 2>/dev/null; sleep 30", {"disk": 30}),
}
NAMES = {"memory": "memory_mb", "processes": "processes", "disk": "disk_mb"}
OWN = {"memory": "memoryMb", "processes": "processes", "disk": "diskMb"}


@pytest.mark.parametrize("what", HOGS)
@pytest.mark.parametrize("where", ["project", "agent"])
def test_an_agent_that_uses_too_much_is_ended_and_the_limit_is_named(walled: Project, what: str, where: str) -> None:
    hog, limit = HOGS[what]
    if where == "project":
        settings(walled, sandbox={"limits": {NAMES[what]: limit[what]}})
        command(walled, hog)
    else:
        command(walled, hog, sandbox={"limits": {OWN[what]: limit[what]}})
    result = walled.run("worker", check=1)
    assert result["outcome"] == "failed"
    assert str(limit[what]) in result["reason"]
    assert what in result["reason"]


def test_an_agent_may_not_raise_a_limit_of_its_project(project: Project) -> None:
    settings(project, sandbox={"limits": {"memory_mb": 100, "cpus": 1}})
    command(project, COMMIT, sandbox={"limits": {"memoryMb": 200, "cpus": 0.5}})
    done = project.genba("run", "worker", check=3)
    assert "runner.sandbox.limits.memoryMb: 200 is more than the project's 100" in done.err
    assert "cpus" not in done.err


@pytest.mark.parametrize("where", ["project", "agent"])
def test_an_agent_keeps_only_so_many_processors_busy(walled: Project, where: str) -> None:
    burn = f"{sys.executable} -c 'import time; t = time.process_time()\nwhile time.process_time() - t < 0.5: pass'"
    if where == "project":
        settings(walled, sandbox={"limits": {"cpus": 0.25}})
    command(walled, f"{burn} && {COMMIT}", **({"sandbox": {"limits": {"cpus": 0.25}}} if where == "agent" else {}))
    began = time.monotonic()
    assert walled.run("worker")["outcome"] == "completed"
    if os.getuid() != 0 and time.monotonic() - began < 1.5:
        pytest.skip("not run: an ordinary user has no control group here, so nothing limits the processors")
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


def test_all_permissions_without_walls_are_refused_unless_the_risk_is_accepted(project: Project) -> None:
    command(project, COMMIT, boundaries={"permissionMode": "bypassPermissions"})
    done = project.genba("run", "worker", check=3)
    assert "bypassPermissions without walls" in done.err
    assert "--i-accept-the-risk" in done.err
    assert project.run("worker", "--i-accept-the-risk")["outcome"] == "completed"


def test_all_permissions_behind_walls_are_nobodys_risk(walled: Project) -> None:
    command(walled, COMMIT, boundaries={"permissionMode": "bypassPermissions"})
    assert walled.run("worker")["outcome"] == "completed"


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


def test_goals_run_behind_walls_unless_the_project_says_otherwise(walled: Project) -> None:
    outside = walled.root.parent / "outside"
    outside.mkdir()
    look = f"test -e {outside} && echo open > {outside}/seen; true"
    command(walled, COMMIT)
    settings(walled, dod=[{"custom_script": look}])
    walled.commit("Ask for a look around")
    assert walled.run("worker")["outcome"] == "completed"
    assert not (outside / "seen").exists()
    settings(walled, dod=[{"custom_script": look}], verification={"walls": False})
    walled.commit("Look around without walls")
    assert walled.run("worker")["outcome"] == "completed"
    assert (outside / "seen").read_text() == "open\n"


def test_goals_reach_what_the_project_lets_them(walled: Project) -> None:
    walled.write("ask.py", ASK)
    command(walled, COMMIT)
    asked = f"{sys.executable} ask.py any.invalid > said; cat said; grep -q 403 said"
    for network, outcome in (("allowlist", "completed"), ("full", "incomplete")):
        settings(walled, dod=[{"custom_script": asked}], verification={"network": network})
        walled.commit(f"Verify with {network}")
        result = walled.run("worker", check=None)
        assert result["outcome"] == outcome, network


def test_a_service_that_a_goal_asks_is_reached_behind_walls(walled: Project) -> None:
    serve = f"{sys.executable} -m http.server --bind 127.0.0.1 $PORT"
    goal = {"type": "endpoint_responds", "url": "/README.md", "status": 200, "serve": serve}
    command(walled, COMMIT)
    settings(walled, dod=[goal])
    walled.commit("Ask a service")
    assert walled.run("worker")["outcome"] == "completed"
