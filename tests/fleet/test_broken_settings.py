import pytest

from genba.domain.tasks.task import TaskStatus
from tests.fleet.yard import Yard
from tests.project import until

SLIP = "wrok: {}\n"
NO_YAML = "work: [\n"


@pytest.mark.parametrize("slip", [SLIP, NO_YAML])
def test_read_only_commands_and_stop_work_with_broken_settings(small_yard: Yard, slip: str) -> None:
    yard = small_yard
    yard.agent()
    yard.set()
    yard.task(1)
    yard.project.write(".genba/config.yaml", slip)

    looked = {
        words: yard.genba(*words)
        for words in (
            ("sessions",),
            ("queue",),
            ("task", "list"),
            ("task", "show", "1"),
            ("decisions",),
            ("logs",),
            ("pause",),
            ("stop", "1"),
            ("stop",),
            ("resume",),
        )
    }

    assert all("warning: .genba/config.yaml" in done.err for done in looked.values())
    assert "Task 1" in looked["task", "list"].out
    assert "error: .genba/config.yaml" in yard.work(check=3).err


@pytest.mark.parametrize(
    "settings",
    [
        "database:\n  url: elsewhere.db\nproject: {name: mine}\nwork: [\n",
        "project: {name: mine}\ndatabase: {url: elsewhere.db}\nwrok: {}\n",
    ],
)
def test_a_blackboard_that_broken_settings_name_is_still_found(small_yard: Yard, settings: str) -> None:
    project = small_yard.project
    project.write(".genba/config.yaml", "database: {url: elsewhere.db}\nproject: {name: mine}\n")
    project.genba("task", "add", "Find me", check=0)
    project.write(".genba/config.yaml", settings)

    assert "Find me" in project.genba("task", "list", check=0).out
    assert not (project.root / ".genba" / "genba.db").exists()


@pytest.mark.parametrize(
    "settings",
    [
        "database:\n  url: [\n",
        "database: {url: 3}\n",
        "{database: {url: elsewhere.db}, work: [\n",
        "database: {url: a.db}\ndatabase: {url: b.db}\n",
    ],
)
def test_the_location_of_the_blackboard_is_never_guessed(small_yard: Yard, settings: str) -> None:
    project = small_yard.project
    project.write(".genba/config.yaml", settings)

    assert "error: .genba/config.yaml" in project.genba("stop", check=3).err
    assert not (project.root / ".genba" / "genba.db").exists()


def test_a_fleet_tells_once_that_its_settings_are_broken_and_goes_on(small_yard: Yard) -> None:
    yard = small_yard
    yard.agent()
    yard.set()
    yard.task(1)
    yard.start("--plain")
    until(lambda: yard.look(1).status is TaskStatus.DONE)
    good = (yard.project.root / ".genba" / "config.yaml").read_text("utf-8")

    yard.project.write(".genba/config.yaml", NO_YAML)
    until(lambda: "cannot be used" in yard.log())
    yard.project.write(".genba/config.yaml", SLIP)
    yard.task(2)
    until(lambda: "verified    #2" in yard.log())
    yard.project.write(".genba/config.yaml", good)
    until(lambda: "can be used again" in yard.log())

    lines = [line for line in yard.log().splitlines() if "the settings" in line]
    assert [line.split("settings ")[1].split(":")[0] for line in lines] == [
        "were changed and cannot be used",
        "can be used again; what was changed in them counts from the next genba work",
    ]
