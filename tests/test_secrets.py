"""Secrets stay out of journals, files and argument lists."""

from tests.project import Project

KEY = "sk-ant-" + "a1b2c3d4" * 4
TOKEN = "ghp_" + "Ab1" * 12


def _written(project: Project) -> str:
    """Everything that Genba itself wrote for the runs of a project."""
    folders = [project.root / "tmp", project.root / ".git/genba"]
    files = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
    return "\n".join(path.read_text(errors="replace") for path in files)


def test_the_agent_does_not_see_the_users_keys(project: Project) -> None:
    project.agent(adapter={"type": "custom", "command": "env"})

    project.run("worker", MY_API_KEY="the-users-own-value", HARMLESS="x")

    printed = project.printed()
    assert not [line for line in printed if line.startswith(("MY_API_KEY=", "HARMLESS="))]
    assert [line for line in printed if line.startswith("GENBA_RUN=")]


def test_a_key_that_is_passed_on_is_never_written_down(project: Project) -> None:
    project.agent(adapter={"type": "custom", "command": "echo key: $MY_API_KEY", "passEnv": ["MY_API_KEY"]})

    project.run("worker", MY_API_KEY="the-users-own-value")

    assert "key: [redacted]" in _written(project)
    assert "the-users-own-value" not in _written(project)


def test_what_looks_like_a_key_is_redacted(project: Project) -> None:
    lines = [
        KEY,
        TOKEN,
        "Authorization: Bearer abcdefghijklmnop",
        "https://me:hunter2secret@host/x",
        "AKIAABCDEFGHIJKLMNOP",
        '{"session_token":"gbs_0a1b2c3d_' + "9f" * 20 + '"}',
        "Bearer gbo_0a1b2c3d_" + "9f" * 20,
        "passkey gbk_" + "9f" * 20,
    ]
    project.agent(script={"turns": [{"do": [{"print": line} for line in lines], "reply": f"the key is {KEY}"}]})

    project.run("worker")

    texts = project.printed()
    assert texts == [
        "[redacted]",
        "[redacted]",
        "Authorization: Bearer [redacted]",
        "https://[redacted]@host/x",
        "[redacted]",
        '{"session_token":"[redacted]"}',
        "Bearer [redacted]",
        "passkey [redacted]",
    ]
    assert KEY not in "".join(project.genba("logs", "--json", check=0).out)


def test_a_prompt_is_never_an_argument(project: Project) -> None:
    project.agent(
        adapter={
            "type": "custom",
            "command": ["sh", "-c", "tr '\\0' ' ' < /proc/$PPID/cmdline; tr '\\0' ' ' < /proc/$$/cmdline"],
        },
        parameters={"topic": {"type": "string"}},
        prompts={"work.md": "A very private prompt.\n"},
    )

    project.run("worker")

    printed = project.printed()
    assert printed
    assert not [line for line in printed if "private" in line]
