"""The pages of the agents: how well each did, what it is made of, and why one cannot run."""

from genba.domain.fleet.records import SegmentEnd
from genba.domain.tasks.task import StatusChange, TaskStatus
from tests.project import Project, gated
from tests.web.fleet_scenes import FLEET, add, begun, executor, shown
from tests.web.scenes import HOSTILE
from tests.web.serving import Dashboard, dashboard

STEPS = {
    "plan": {"structuredGate": gated("next", "repeat"), "transitions": {"next": "check"}},
    "check": {
        "stepKind": "verification",
        "structuredGate": gated("next", "jump"),
        "transitions": {"next": "close", "jump": {"targets": ["plan"]}},
        "completionConditions": [{"validator": "git-clean"}],
    },
    "close": {"stepKind": "closure"},
}


def test_how_well_an_agent_did_is_what_its_ended_sessions_came_to(served: Dashboard) -> None:
    served.project.agent("worker", commit=False)
    with executor(served):
        for outcome in ("completed", "failed", "failed"):
            session = begun(served, add(served, f"It is {outcome}"))
            served.board.end_part(SegmentEnd(run=session.run, part=1, outcome=outcome, tokens=1000, cost_usd=0.5))
        begun(served, add(served, "Make tea"))
        (card,) = (each for each in served.site.queries.agents().agents if each.name == "worker")
        page = shown(served, "/agents")

    assert (card.record.completed, card.record.ended, card.record.running) == (1, 3, 1)
    assert "<strong>33 %</strong>" in page
    assert "1 of 3" in page
    assert "$1.50" in page
    assert "1 at work" in page
    assert "An agent of the tests" in page


def test_a_session_whose_executor_is_gone_is_not_at_work(served: Dashboard) -> None:
    served.project.agent("worker", commit=False)
    with executor(served):
        session = begun(served, add(served, "Make tea"))
    picture = served.site.queries.agent("worker")
    assert (picture.card.record.running, picture.card.record.waiting) == (0, 1)
    assert [(each.run, each.status) for each in picture.sessions] == [(session.run, "suspended")]


def test_the_steps_are_drawn_with_their_kinds_and_intents(served: Dashboard) -> None:
    served.project.agent(
        "worker",
        completion={"type": "stepMachine", "config": {}},
        registry={"entryStep": "plan"},
        steps=STEPS,
        prompts={"steps/check.md": "x"},
        commit=False,
    )
    picture = served.site.queries.agent("worker")
    assert [(step.id, step.x) for step in picture.steps] == [("plan", 0), ("check", 1), ("close", 2)]
    assert picture.end == (3, 0)
    assert [(way.target, way.intents) for way in picture.steps[1].ways] == [("close", ("next",)), ("plan", ("jump",))]
    page = shown(served, "/agents/worker")
    assert 'class="step k-verification"' in page
    assert 'class="way back"' in page
    assert "jump → plan" in page
    assert "git-clean" in page
    assert "closing, repeat → end" in page or "closing → end" in page


def test_every_effective_value_says_where_it_came_from(served: Dashboard) -> None:
    served.project.agent("worker", commit=False)
    served.project.write(".agent/worker/config.json", '{"runner": {"limits": {"maxIterations": 7}}}')
    found = {each.path: each for each in served.site.queries.agent("worker").settings}
    assert (found["runner.limits.maxIterations"].value, found["runner.limits.maxIterations"].source) == (
        7,
        ".agent/worker/config.json",
    )
    assert found["runner.limits.wallTimeSeconds"].source == "default"
    page = shown(served, "/agents/worker")
    assert "genba agent show worker --explain" in page
    assert ".agent/worker/prompts/system.md" in page


def test_what_could_be_a_secret_is_never_shown(project: Project) -> None:
    secret = "hunter2-hunter2"
    adapter = {
        "type": "custom",
        "command": "cat",
        "args": [f"--header=Authorization: Bearer {secret}-long-enough"],
        "baseUrl": f"https://user:{secret}@models.example/v1",
    }
    project.agent("worker", adapter=adapter, commit=False)
    project.agent("odd", adapter={"type": "scripted", "script": "script.yaml", "env": {"PLAIN": secret}}, commit=False)
    with dashboard(project) as served:
        for page in ("/agents", "/agents/worker", "/agents/odd"):
            assert secret not in shown(served, page), page
        found = {each.path: each for each in served.site.queries.agent("worker").settings}
    assert not [each for each in found.values() if secret in str(each.value)]
    assert any(each.masked for each in found.values())


def test_one_that_cannot_be_read_says_every_problem_and_what_to_type(served: Dashboard) -> None:
    served.project.write(
        ".agent/broken/agent.json", '{"name": "broken", "runner": {"completion": {"type": "externlState"}}}'
    )
    page = shown(served, "/agents/broken")
    assert "It cannot run" in page
    assert "externlState" in page
    assert "genba agent check broken" in page
    assert "cannot run" in shown(served, "/agents")


def test_names_of_folders_are_text_and_safe_to_paste(served: Dashboard) -> None:
    name = "x; touch pwned <img src=x onerror=alert(1)>"
    served.project.write(f".agent/{name}/agent.json", "{}")
    page = shown(served, "/agents")
    assert "<img" not in page
    assert "genba agent check &#39;x; touch pwned &lt;img src=x onerror=alert(1)&gt;&#39;" in page
    with served.client() as client:
        assert client.get("/agents/x%3B%20touch%20pwned%20%3Cimg%20src%3Dx%20onerror%3Dalert(1)%3E").status_code == 200


def test_an_agent_that_is_gone_still_has_its_sessions(served: Dashboard) -> None:
    with executor(served):
        session = begun(served, add(served, HOSTILE), agent="oldtimer")
        served.board.end_part(SegmentEnd(run=session.run, part=1, outcome="failed", reason=HOSTILE))
    served.board.board.change_status(1, StatusChange(to=TaskStatus.OPEN, actor=FLEET))
    assert "Not defined any more" in shown(served, "/agents")
    page = shown(served, "/agents/oldtimer")
    assert f"/sessions/{session.run}" in page
    assert "<script>alert" not in page


def test_an_unknown_one_is_reported(served: Dashboard) -> None:
    with served.client() as client:
        answer = client.get("/agents/nobody")
    assert answer.status_code == 404
    assert "genba agent list" in answer.text
