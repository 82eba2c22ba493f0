"""runner.actions: action blocks in a reply, and who handles them."""

from typing import Any

from tests.fields.flows import EXTERNAL_STATE, ISSUE, report, work
from tests.project import Project


def block(content: str, marker: str = "json") -> str:
    return f"I did it.\n\n```{marker}\n{content}\n```\n"


def acting(project: Project, reply: str, check: int = 0, **actions: Any) -> tuple[list[str], list[str]]:
    """Run once; the action types that were handled, and those that were refused."""
    project.agent(actions=actions, script={"turns": [work(reply)]})
    result = project.run("worker", check=check)
    events = project.events(result["run"])
    handled = [event["type"] for event in events if event["event"] == "action_handled"]
    return handled, [event["type"] for event in events if event["event"] == "action_refused"]


def test_action_blocks_are_handled_when_actions_are_enabled(project: Project) -> None:
    reply = block('{"type": "review-result", "score": 3}')
    assert acting(project, reply, enabled=True, types=["review-result"]) == (["review-result"], [])


def test_action_blocks_are_prose_when_actions_are_not_enabled(project: Project) -> None:
    assert acting(project, block('{"type": "review-result"}'), enabled=False, types=["review-result"]) == ([], [])


def test_an_action_type_that_is_not_listed_is_refused(project: Project) -> None:
    reply = block('{"type": "review-result"}') + block('{"type": "project-plan"}')
    assert acting(project, reply, enabled=True, types=["project-plan"]) == (["project-plan"], ["review-result"])


def test_the_types_are_the_capabilities_of_the_agent(project: Project) -> None:
    project.agent(actions={"types": ["review-result"]})
    listed = project.genba("agent", "list", "--capability", "review-result", "--json", check=0).json["agents"]
    assert "worker" in [agent["name"] for agent in listed]


def test_only_blocks_with_the_marker_of_the_agent_are_actions(project: Project) -> None:
    reply = block('{"type": "plan"}', "action") + block('{"type": "note"}', "json")
    assert acting(project, reply, enabled=True, types=["plan", "note"], outputFormat="action") == (["plan"], [])


def test_an_action_without_a_handler_is_recorded(project: Project) -> None:
    project.agent(
        actions={"enabled": True, "types": ["plan"]}, script={"turns": [work(block('{"type": "plan", "steps": 2}'))]}
    )
    handled = report(project, project.run("worker"), "action_handled")[0]
    assert (handled["handler"], handled["result"]) == ("builtin:record", '{"type":"plan","steps":2}')


def test_a_completion_signal_completes_like_a_claim(project: Project) -> None:
    project.issue(1, "Add a file")
    actions = {"enabled": True, "types": ["plan"], "handlers": {"plan": "builtin:completion-signal"}}
    reply = block('{"type": "plan"}') + block('{"status_of_work": "half"}')
    project.agent(completion=EXTERNAL_STATE, parameters=ISSUE, actions=actions, script={"turns": [work(reply)]})
    assert project.run("worker", "--issue", "1")["iterations"] == 1


def test_a_blocked_signal_ends_the_run_blocked(project: Project) -> None:
    actions = {"enabled": True, "types": ["ask"], "handlers": {"ask": "builtin:blocked-signal"}}
    project.agent(actions=actions, script={"turns": [work(block('{"type": "ask", "question": "Which clock?"}'))]})
    result = project.run("worker", check=1)
    assert (result["outcome"], result["reason"]) == ("blocked", "Which clock?")


def test_a_closure_action_chooses_what_is_done_to_the_issue(project: Project) -> None:
    project.issue(1, "Add a file")
    actions = {"enabled": True, "types": ["issue-action"], "handlers": {"issue-action": "builtin:closure-action"}}
    reply = block('{"type": "issue-action", "action": "label-only", "labels": {"add": ["reviewed"]}}')
    project.agent(
        completion=EXTERNAL_STATE,
        parameters=ISSUE,
        actions=actions,
        integrations={"github": {"enabled": True}},
        script={"turns": [work(reply)]},
    )
    project.run("worker", "--issue", "1")
    assert project.issue_front(1) == {"title": "Add a file", "state": "open", "labels": ["reviewed"]}


def test_a_handler_can_be_a_function_of_a_file_beside_agent_json(project: Project) -> None:
    project.write(".agent/worker/acting.py", "def keep(action):\n    return f\"kept {action['score']}\"\n")
    project.agent(
        actions={"enabled": True, "types": ["review"], "handlers": {"review": "acting.py:keep"}},
        script={"turns": [work(block('{"type": "review", "score": 5}'))]},
    )
    handled = report(project, project.run("worker"), "action_handled")[0]
    assert (handled["handler"], handled["result"]) == ("acting.py:keep", "kept 5")


def test_a_handler_that_fails_fails_the_run(project: Project) -> None:
    project.write(".agent/worker/acting.py", "def keep(action):\n    raise ValueError('no room')\n")
    project.agent(
        actions={"enabled": True, "types": ["review"], "handlers": {"review": "acting.py:keep"}},
        script={"turns": [work(block('{"type": "review"}'))]},
    )
    result = project.run("worker", check=1)
    assert result["reason"] == "the handler acting.py:keep failed: ValueError: no room"


def test_a_handler_for_a_type_that_is_not_listed_is_refused(project: Project) -> None:
    project.agent(actions={"types": ["review"], "handlers": {"revue": "builtin:record"}})
    done = project.genba("run", "worker", check=3)
    assert "runner.actions.handlers.revue: is not one of runner.actions.types" in done.err


def test_a_builtin_handler_that_does_not_exist_is_refused(project: Project) -> None:
    project.agent(actions={"types": ["review"], "handlers": {"review": "builtin:records"}})
    assert 'there is no handler "builtin:records"' in project.genba("run", "worker", check=3).err
