"""runner.flow: the system prompt, the prompts of the steps, and the model."""

from tests.fields.flows import work
from tests.project import Project


def test_the_system_prompt_is_read_from_its_path(project: Project) -> None:
    project.agent(
        flow={"systemPromptPath": "prompts/other.md"},
        prompts={"other.md": "You move clocks on {uv-branch}.\n"},
        script={"turns": [work(expect="You move clocks on genba/worker-")]},
    )
    project.run("worker")


def test_the_system_prompt_is_prompts_system_md_by_default(project: Project) -> None:
    project.agent(script={"turns": [work(expect="You are an agent of the tests.")]})
    project.run("worker")


def test_a_system_prompt_that_is_not_there_is_refused(project: Project) -> None:
    project.agent(flow={"systemPromptPath": "prompts/absent.md"})
    assert "no such file: .agent/worker/prompts/absent.md" in project.genba("run", "worker", check=3).err


def test_the_registry_of_steps_is_read_from_its_path(project: Project) -> None:
    project.write(".agent/worker/flows/short.json", '{"steps": {"only": {}}}')
    project.agent(flow={"prompts": {"registry": "flows/short.json"}})
    assert project.steps_walked(project.run("worker")["run"]) == ["only"]


def test_a_step_without_a_prompt_is_asked_with_its_file_in_the_fallback_folder(project: Project) -> None:
    project.agent(
        flow={"prompts": {"fallbackDir": "texts"}},
        script={"turns": [work(expect="Move the clock.")]},
    )
    project.write(".agent/worker/texts/work.md", "Move the clock.\n")
    project.write(".agent/worker/texts/default.md", "Do something.\n")
    project.write(".agent/worker/prompts/work.md", "This is not the folder.\n")
    result = project.run("worker")
    assert project.events(result["run"])[1]["prompt_from"] == ".agent/worker/texts/work.md"


def test_the_fallback_folder_has_a_default_for_every_step(project: Project) -> None:
    project.agent(
        prompts={"default.md": "Do what {uv-agent_name} does."}, script={"turns": [work(expect="worker does")]}
    )
    project.run("worker")


def test_a_fallback_folder_outside_of_the_agent_is_refused(project: Project) -> None:
    project.agent(flow={"prompts": {"fallbackDir": "../../"}})
    assert "leaves the agent's folder" in project.genba("run", "worker", check=3).err


def test_the_default_model_is_asked(project: Project) -> None:
    project.agent(flow={"defaultModel": "sonnet"}, script={"turns": [work(model="sonnet")]})
    project.run("worker")


def test_the_default_model_is_opus(project: Project) -> None:
    project.agent(script={"turns": [work(model="opus")]})
    project.run("worker")


def test_a_step_model_wins_over_the_agents_model(project: Project) -> None:
    project.agent(
        flow={"defaultModel": "sonnet"},
        steps={"work": {"model": "haiku"}},
        script={"turns": [work(model="haiku")]},
    )
    project.run("worker", "--model", "opus")
