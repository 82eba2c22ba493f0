"""A run that is started by a button: what lies in the working tree has no say in it."""

import pytest

from tests.project import Project, until
from tests.web.scenes import opened, posted, settled, waiting_agent
from tests.web.serving import Dashboard


@pytest.mark.parametrize("module", ["msgspec", "click", "genba/__init__"])
def test_no_module_of_the_repository_is_loaded(served: Dashboard, project: Project, module: str) -> None:
    trace = project.root.parent / "loaded"
    project.write(
        f"{module}.py", f"open({str(trace)!r}, 'w').close()\nraise SystemExit('loaded from the repository')\n"
    )
    project.commit("Add a module")
    gate = waiting_agent(project)
    project.issue(1, "Make tea")
    with served.visitor() as client, opened(gate):
        answer = posted(client, "/tasks/1/run", agent="worker")
        assert answer.status_code == 200, answer.text
        assert "worker works on #1" in answer.text
    settled(served, 1)
    assert not trace.exists()


def test_a_program_starts_and_suspend_a_run_like_a_button_does(served: Dashboard, project: Project) -> None:
    gate = waiting_agent(project)
    project.issue(1, "Make tea")
    with served.client() as client, opened(gate):
        begun = client.post("/api/tasks/1/run", json={"agent": "worker"}, timeout=60)
        assert begun.status_code == 200, begun.text
        run = begun.json()["leads_to"].rpartition("/")[2]
        until(lambda: served.site.queries.context.is_running(served.board.session(run).branch))
        suspended = client.post("/api/tasks/1/stop", timeout=60)
        assert suspended.status_code == 200, suspended.text
        assert suspended.json()["sentence"] == f"{run} is suspended; its branch and its commits stay"
        assert not served.site.queries.context.is_running(served.board.session(run).branch)
