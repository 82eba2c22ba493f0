"""The real agents bare against the scripted model: what they do with it is what a user sees with a real one."""

from pathlib import Path

import pytest

from tests.real.bare import Bare
from tests.standins.model_server import ModelServer, Run, Say, Write


@pytest.mark.parametrize("name", ["claude", "codex", "opencode", "gemini"])
def test_the_real_agent_writes_a_file(model: ModelServer, tmp_path: Path, name: str) -> None:
    model.scenario("file", Write("notes/hello.txt", "hello\n"), Say("it is written"))
    place = Bare(tmp_path, model)

    ended = place.run(name, "file", prompt="Write it.")
    first, second = model.asked("file")

    assert ended.code == 0, ended.err
    assert place.files == {"notes/hello.txt"}
    assert (place.tree / "notes/hello.txt").read_text() == "hello\n"
    assert "ritten" in str(ended.events)
    assert first.key == "sk-of-the-tests"
    assert first.prompt.strip().endswith("Write it.")
    assert second.results


def test_claude_goes_on_where_it_was(model: ModelServer, tmp_path: Path) -> None:
    model.rounds("twice", (Run("echo one > one.txt"), Say("one")), (Run("echo two > two.txt"), Say("two")))
    place = Bare(tmp_path, model)

    first = place.run("claude", "twice")
    second = place.run("claude", "twice", "--resume", first.of("result")[0]["session_id"])

    assert (first.code, second.code) == (0, 0)
    assert place.files == {"one.txt", "two.txt"}


def test_codex_goes_on_where_it_was(model: ModelServer, tmp_path: Path) -> None:
    model.rounds("twice", (Run("echo one > one.txt"), Say("one")), (Run("echo two > two.txt"), Say("two")))
    place = Bare(tmp_path, model)

    first = place.run("codex", "twice", "-")
    thread = first.of("thread.started")[0]["thread_id"]
    second = place.run("codex", "twice", "resume", thread, "-")

    assert (first.code, second.code) == (0, 0), second.err
    assert place.files == {"one.txt", "two.txt"}
