"""The sections under `agents` in the settings: each key has an effect, or is named with the reason why it has none."""

from tests.project import Project

PRINTED = """
agents:
  default:
    adapter: claude-code
    model: claude-sonnet
    timeout: 1800000  # 30 minutes
    tools: [Read, Write, Edit, Bash, Grep, Glob]
  codex:
    adapter: codex
    timeout: 1800000
"""


def notes(project: Project, *words: str) -> list[str]:
    done = project.genba(*words, check=0)
    return [line.removeprefix("note: ") for line in done.err.splitlines() if line.startswith("note: ")]


def test_the_default_section_sets_adapter_model_timeout_and_tools(project: Project) -> None:
    project.agent(adapter={"script": "script.yaml"})
    project.write(".genba/config.yaml", PRINTED)
    project.commit()
    project.write(".genba/config.yaml", PRINTED.replace("claude-code", "scripted"))
    project.commit()
    result = project.genba("agent", "show", "worker", "--explain", "--json", check=0).out
    for path in ("runner.flow.defaultModel", "runner.limits.askTimeoutSeconds", "runner.boundaries.allowedTools"):
        assert path in result
    assert project.run("worker")["outcome"] == "completed"
    started = next(event for event in project.events() if event["event"] == "iteration_started")
    assert started["model"] == "claude-sonnet"


def test_a_section_of_no_agent_is_named_with_the_reason(project: Project) -> None:
    project.agent()
    project.write(".genba/config.yaml", PRINTED)
    project.commit()
    wanted = '.genba/config.yaml: agents.codex: has no effect: there is no agent "codex"'
    for words in (("run", "worker"), ("agent", "check", "worker"), ("work", "--until-empty")):
        assert wanted in notes(project, *words), words


def test_a_key_that_an_agent_sets_otherwise_is_named_with_the_file_that_wins(project: Project) -> None:
    project.agent(flow={"defaultModel": "haiku"}, boundaries={"allowedTools": ["Read"]})
    project.write(".genba/config.yaml", "agents:\n  default: {model: opus}\n  worker: {tools: [Read, Write]}\n")
    project.commit()
    wins = ".agent/worker/agent.json sets"
    assert notes(project, "run", "worker") == [
        f".genba/config.yaml: agents.default.model: has no effect on worker: {wins} runner.flow.defaultModel",
        f".genba/config.yaml: agents.worker.tools: has no effect on worker: {wins} runner.boundaries.allowedTools",
    ]


def test_a_key_that_says_the_same_as_the_agent_is_not_named(project: Project) -> None:
    project.agent(flow={"defaultModel": "haiku"}, boundaries={"allowedTools": ["Read"]})
    project.write(".genba/config.yaml", "agents: {default: {model: haiku, tools: [Read]}}\n")
    project.commit()
    assert notes(project, "run", "worker") == []
