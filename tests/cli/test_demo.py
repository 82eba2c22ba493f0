"""`genba demo`: the whole story, played by a real fleet and counted from what it left."""

import os
import re
from pathlib import Path

import pytest

from genba.entrypoints.cli.start.demo_story import Attempted, Story, TaskStory
from genba.entrypoints.cli.start.demo_view import next_lines, story_lines
from tests.project import Project

RESULT = [
    r" #1 Add slugify\(\)        ● done      builder  2 iterations  goals 7/7  merged [0-9a-f]{7}",
    r" #2 Fix the empty title  ● done      builder  1 iteration   goals 6/6  merged [0-9a-f]{7}",
    r' #3 Speed up slugify\(\)   ✗ rejected  liar     says "All tests pass."; tests_pass failed on [0-9a-f]{7}',
    r"    └ rework             ● done      builder  1 iteration   goals 5/5  merged [0-9a-f]{7}",
    r" #4 Rename LONGEST       ● done      builder  conflict with #2 in titles.py, resolved in round 2",
    r' #5 Choose a licence     \? waits     builder  needs you: "MIT or Apache-2.0\?"   genba answer 5 "MIT"',
    r"",
    r" 6 sessions · 0 false done · 0 commits lost · main is green at every commit",
]


def test_the_story_happens_as_described_and_goes_on_with_the_answer(project: Project, tmp_path: Path) -> None:
    home = tmp_path / "demo"
    done = project.genba("demo", "--folder", str(home), check=0)

    lines = done.out.strip("\n").splitlines()
    for wanted, line in zip(RESULT, lines, strict=False):
        assert re.fullmatch(wanted, line), line
    assert f"cd {home} && genba status" in done.out
    for words in ("≠ conflict    #4", "✗ rejected    #3", "◌ waits       #5"):
        assert words in done.err
    demo = Project(home)
    assert demo.git("status", "--porcelain") == ""
    subjects = demo.git("log", "--first-parent", "--format=%s", "main").splitlines()
    assert len(subjects) == 5
    assert "LONGEST_TITLE = 40\nUNTITLED" in demo.git("show", "main:titles.py")

    demo.genba("answer", "5", "MIT", check=0)
    demo.genba("work", "--until-empty", check=0)
    assert "under the terms of: MIT" in demo.git("show", "main:LICENCE.md")

    again = project.genba("demo", "--folder", str(home), check=1)
    assert "is not empty" in again.err


def test_a_real_command_is_held_to_the_same(project: Project, tmp_path: Path) -> None:
    """It says that it is done, and nothing is there. The database of other projects is left alone."""
    project.environment["GENBA_DATABASE_URL"] = "postgresql://nobody@127.0.0.1:1/none"
    home = tmp_path / "demo"
    line = "cat > /dev/null; echo x > slugs.txt; echo All tests pass."
    done = project.genba("demo", "--folder", str(home), "--agent", "custom", "--command", line, "--json", check=1)

    (result,) = done.json["tasks"]
    assert result["status"] != "done"
    assert result["attempts"][0]["claim"].strip() == "All tests pass."
    assert result["attempts"][0]["failed_goals"] == ["custom_script"]
    assert (done.json["false_done"], done.json["commits"], done.json["green"]) == (0, 1, 1)


@pytest.mark.parametrize(
    ("words", "code", "output", "hint"),
    [
        (("--agent", "custom"), 2, "needs a command", "--command"),
        (("--command", "true", "--agent", "codex"), 2, "goes with --agent custom", "genba demo --help"),
        (("--agent", "claude-code"), 4, "claude: not installed", "npm install -g @anthropic-ai/claude-code"),
    ],
)
def test_a_real_agent_that_cannot_work_is_refused_before_anything_is_made(
    project: Project, tmp_path: Path, words: tuple[str, ...], code: int, output: str, hint: str
) -> None:
    home = tmp_path / "demo"
    tools = tmp_path / "bin"
    tools.mkdir()
    for name in ("git", "sh"):
        (tools / name).symlink_to(f"/usr/bin/{name}")
    refused = project.genba("demo", "--folder", str(home), *words, check=code, PATH=str(tools))
    assert output in refused.err
    assert hint in refused.err
    assert not home.exists()


def test_an_agent_without_a_key_learns_which_one(project: Project, tmp_path: Path) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "codex").write_text("#!/bin/sh\necho codex-cli 1.2.3\n")
    (tools / "codex").chmod(0o755)
    path = f"{tools}{os.pathsep}{os.environ['PATH']}"
    words = ("demo", "--agent", "codex", "--folder", str(tmp_path / "demo"))
    refused = project.genba(*words, check=5, PATH=path, HOME=str(tmp_path), OPENAI_API_KEY="", CODEX_API_KEY="")
    assert "neither a key nor a login" in refused.err
    assert "export OPENAI_API_KEY=…" in refused.err or "export CODEX_API_KEY=…" in refused.err


def story(**more: object) -> Story:
    attempt = Attempted(run="r", agent="builder", status="done", iterations=1)
    result = TaskStory(
        task=1, title="Tea", status="done", attempts=(attempt,), goals_passed=2, goals=3, merged="a" * 40
    )
    facts: dict[str, object] = {"sessions": 1, "false_done": 0, "commits_lost": 0, "commits": 3, "green": 3}
    return Story(folder="/x", tasks=(result,), **{**facts, **more})  # type: ignore[arg-type]


def test_bad_figures_are_shown_as_they_are() -> None:
    bad = story(false_done=2, commits_lost=1, green=1)
    lines = list(story_lines(bad, {}))
    assert lines[0] == " #1 Tea  ● done      builder  1 iteration   goals 2/3  merged aaaaaaa"
    assert lines[-1] == " 1 session · 2 false done · 1 commit lost · 1 of 3 commits of main are green"
    assert not bad.holds
    assert story().holds


@pytest.mark.parametrize("wrong", [{"false_done": 1}, {"commits_lost": 1}, {"green": 2}, {"commits": 0, "green": 0}])
def test_one_bad_figure_is_enough(wrong: dict[str, object]) -> None:
    assert not story(**wrong).holds


def test_a_long_command_does_not_push_the_others_away() -> None:
    lines = list(next_lines([("x" * 90, "far"), ("genba status", "look around")]))
    assert lines == [f" next   {'x' * 90}   far", "        genba status   look around"]
