"""Small agents that many tests of fields share, and how their journals are read."""

from typing import Any

from tests.project import COMMIT, Project, gated, says

STEP_MACHINE = {"type": "stepMachine"}
EXTERNAL_STATE = {"type": "externalState"}
ISSUE = {"issue": {"type": "number", "required": True}}
CLOSED = says("closing", status="completed")


def work(reply: Any = "done", run: str = COMMIT, **more: Any) -> dict[str, Any]:
    """A turn that commits a file."""
    return {"do": [{"run": run}], "reply": reply, **more}


def idle(reply: Any = "done", **more: Any) -> dict[str, Any]:
    """A turn that only talks."""
    return {"reply": reply, **more}


def leads_to(target: str | None, **more: Any) -> dict[str, Any]:
    """A work step with a gate that leads to one other step, or to the end."""
    return {"structuredGate": gated("next"), "transitions": {"next": target}, **more}


def closing(**more: Any) -> dict[str, Any]:
    """A closure step with a gate."""
    return {"stepKind": "closure", "structuredGate": gated("closing", "repeat"), **more}


def file_exists(path: str) -> dict[str, Any]:
    return {"type": "file-exists", "path": path}


def requires(*validators: str) -> list[dict[str, str]]:
    return [{"validator": name} for name in validators]


def report(project: Project, result: dict[str, Any], event: str) -> list[dict[str, Any]]:
    """The events of one kind in the journal of a run."""
    return [found for found in project.events(result["run"]) if found["event"] == event]


def configure(project: Project, text: str) -> None:
    """Write the settings of the project."""
    project.write(".genba/config.yaml", text)
