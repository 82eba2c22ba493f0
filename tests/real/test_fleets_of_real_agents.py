import signal

import pytest

from genba.domain.tasks.task import TaskStatus
from tests.bubblewrap import needs_bubblewrap
from tests.clis import cli, path_with_clis
from tests.fleet.yard import Yard
from tests.project import Project, until
from tests.standins.model_server import Answer, ModelServer, Run

KEY = "sk-only-the-host-holds-this"
COMMANDS = {"claude-code": "claude", "codex": "codex"}
PROVIDERS = {"claude-code": "anthropic", "codex": "openai"}
PATIENCE = 120


def fleet(project: Project, model: ModelServer, adapter: str, deed: str) -> Yard:
    """A yard whose agent is a real one. Its model does the deed, and says that it is done."""
    cli(COMMANDS[adapter])
    needs_bubblewrap()
    url = model.rounds("run", (Run(deed), Answer({"status": "completed"})))
    project.environment |= {"PATH": path_with_clis(), "GENBA_SANDBOX": "bubblewrap"}
    settings = {"type": adapter}
    if adapter == "claude-code":
        project.environment |= {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": KEY}
    else:
        project.environment["OPENAI_API_KEY"] = KEY
        settings["baseUrl"] = f"{url}/v1"
    yard = Yard(project)
    yard.set()
    project.agent(
        "worker",
        adapter=settings,
        parameters={"issue": {"type": "number"}},
        boundaries={"permissionMode": "acceptEdits"},
    )
    return yard


WRITE = "echo hello > hello-$GENBA_ISSUE.txt; git add -A; git commit -qm hello; true"


@pytest.mark.parametrize("adapter", COMMANDS)
def test_two_tasks_are_worked_off_by_real_agents_at_the_same_time(
    project: Project, model: ModelServer, adapter: str
) -> None:
    with fleet(project, model, adapter, WRITE) as yard:
        yard.task(1)
        yard.task(2)

        yard.work("--workers", "2")

        assert set(yard.statuses().values()) == {TaskStatus.DONE}
        assert {"hello-1.txt", "hello-2.txt"} <= set(yard.files())
        with yard.board() as board:
            assert board.sessions(1)[0].provider == PROVIDERS[adapter]
        assert not yard.left_running()


def test_a_real_agent_goes_on_while_its_worker_is_dead_and_is_found_again(project: Project, model: ModelServer) -> None:
    deed = f"until [ -e go ]; do sleep 0.1; done; rm go; {WRITE}"
    with fleet(project, model, "claude-code", deed) as yard:
        yard.task(1)
        working = yard.start()
        trees = project.root / ".worktrees"
        until(lambda: any(trees.glob("*")) and "step" not in yard.log(), PATIENCE)
        until(lambda: any(event["event"] == "tool_used" for event in _report(yard)), PATIENCE)

        yard.kill(working, signal.SIGKILL)
        (next(trees.glob("*")) / "go").touch()
        yard.work()

        assert yard.look(1).status is TaskStatus.DONE
        assert "hello-1.txt" in yard.files()
        with yard.board() as board:
            run = board.sessions(1)[0].run
        events = project.events(run)
        assert [event["event"] for event in events].count("agent_started") == 1
        assert not yard.left_running()


def _report(yard: Yard) -> list[dict[str, object]]:
    with yard.board() as board:
        sessions = board.sessions(1)
    return yard.project.events(sessions[0].run) if sessions and sessions[0].branch else []
