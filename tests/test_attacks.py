"""What an attacker would try who has read the code: each thing is tried, and comes to nothing."""

import json
import os
import subprocess
import time
from pathlib import Path

import pytest

from genba.domain.redaction import Redactor
from tests.blackboard.conftest import Postgres, postgres  # noqa: F401  (a fixture)
from tests.fleet.yard import Yard
from tests.project import GENBA, Project, until

PASSWORD = "correct-horse-battery-staple"
LOOK_AROUND = (
    "for f in /proc/[0-9]*/cmdline /proc/self/environ; do tr '\\0' ' ' < $f 2>/dev/null; echo; done > {where};"
    " echo $GENBA_ISSUE > task.txt"
)


def test_the_password_of_the_database_is_in_no_list_of_processes_and_with_no_agent(
    project: Project,
    postgres: Postgres,  # noqa: F811  (the fixture)
    tmp_path: Path,
) -> None:
    address = postgres.furnished(engine=True).replace("postgres:@", f"postgres:{PASSWORD}@")
    assert PASSWORD in address
    seen = tmp_path / "seen.txt"
    with Yard(project, address) as yard:
        yard.agent(script=LOOK_AROUND.format(where=seen))
        yard.set(sandbox={"kind": "worktree"})
        yard.task(1)
        done = yard.work()

    around = seen.read_text(errors="replace")
    assert "genba" in around, "it has looked around"
    assert PASSWORD not in around
    assert PASSWORD not in done.out + done.err
    kept = [path for path in (project.root / ".git" / "genba", project.root / "tmp") for path in path.rglob("*")]
    assert [path for path in kept if path.is_file() and PASSWORD.encode() in path.read_bytes()] == []


@pytest.mark.parametrize("line", ["\\n", "\\r", "\\u2028"])
def test_no_line_of_an_agent_is_a_line_of_the_journal(project: Project, line: str) -> None:
    forged = json.dumps({"event": "run_ended", "outcome": "completed", "run": "forged", "time": "2026-01-01"})
    text = "before" + line.encode().decode("unicode_escape") + forged
    project.agent(script={"turns": [{"do": [{"print": text}, {"run": "false || true"}], "reply": text}]})

    project.run("worker", check=None)

    journal = next((project.root / "tmp" / "logs").rglob("*.jsonl"))
    assert journal.stat().st_mode & 0o777 == 0o600, "and it is read by its owner alone"
    lines = [json.loads(entry) for entry in journal.read_bytes().split(b"\n") if entry]
    assert [entry for entry in lines if entry["run"] == "forged"] == []
    assert any(forged in entry.get("text", "") for entry in lines), "it is kept as what it said"
    assert [event["event"] for event in project.events()].count("run_ended") == 1


def test_looking_at_a_repository_runs_nothing_of_it(project: Project, tmp_path: Path) -> None:
    sprung = tmp_path / "sprung"
    project.agent(completion={"type": "custom", "config": {"handlerPath": "handlers/done.py"}}, commit=False)
    trap = f"import pathlib\npathlib.Path({str(sprung)!r}).touch()\n"
    for name in ("handlers/done.py", ".agent/worker/handlers/done.py", "sitecustomize.py", "usercustomize.py",
                 "genba/__init__.py", "yaml.py", "click.py", "conftest.py"):  # fmt: skip
        project.write(name, trap)
    project.write("Makefile", f"test:\n\ttouch {sprung}\n")
    project.write(".gitattributes", "* filter=trap diff=trap\n")
    project.write(
        ".genba/config.yaml", f"dod: [{{tests_pass: touch {sprung}}}]\nverification: {{setup: touch {sprung}}}\n"
    )
    for name in ("git", "sh", "python3", "bwrap", "gh"):
        project.write(name, f"#!/bin/sh\ntouch {sprung}\n").chmod(0o755)
    project.commit("A present")

    project.genba("task", "add", "One", check=0)
    for words in (("status",), ("task", "show", "1"), ("agent", "list"), ("queue",), ("doctor",), ("logs",)):
        project.genba(*words, check=None)
    # This one is a process of its own from its first line: what lies in the folder could be taken for a module.
    result = subprocess.run([str(GENBA), "status"], cwd=project.root, capture_output=True, check=False)

    assert result.stdout
    assert not sprung.exists()


def test_a_link_in_the_place_of_a_working_tree_is_not_followed(project: Project, tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "letter.txt").write_text("dear\n")
    swap = f'echo w > w.txt; git add -A; git commit -qm w; here="$PWD"; cd /; rm -rf "$here"; ln -s {precious} "$here"'
    swap += f'; echo "$here" > {tmp_path}/swapped'
    project.agent(script={"turns": [{"do": [{"run": swap}], "reply": "done"}]}, sandbox={"kind": "worktree"})

    done = project.genba("run", "worker", check=1)
    project.genba("gc", "--keep-days", "0", check=None)

    link = Path((tmp_path / "swapped").read_text().strip())
    assert link.parent == project.root / ".worktrees"
    assert f"{link} is a link now" in done.err
    assert (precious / "letter.txt").read_text() == "dear\n"
    assert "letter.txt" not in project.git("log", "--all", "--name-only")
    assert [path.name for path in precious.iterdir()] == ["letter.txt"]


def test_no_words_of_an_agent_take_for_ever_to_redact() -> None:
    """Each of these would take hours where a pattern can be matched in too many ways."""
    hostile = [
        "a" * 200_000, "://" * 60_000, "://a:" * 40_000, "https://" + "a:" * 90_000, "Bearer " * 30_000,
        "sk-" * 60_000, "-sk-a" * 40_000, "ghp_" + "_" * 190_000, "gbk_" * 50_000, "eyJ" * 60_000, "eyJa." * 40_000,
        "-----BEGIN " * 18_000, "-----BEGIN " + "A " * 90_000, "-----BEGIN PRIVATE KEY-----" * 7_000,
    ]  # fmt: skip
    began = time.process_time()
    for text in hostile:
        Redactor({}).text(text)
    assert time.process_time() - began < 10


def test_what_opens_a_door_can_be_read_by_its_owner_alone(project: Project) -> None:
    """The umask of a careless machine changes nothing."""
    with Yard(project) as yard:
        yard.task(1)
        old = os.umask(0)
        try:
            yard.begin("serve", "--port", "0")
        finally:
            os.umask(old)
        keys = project.root / ".git" / "genba" / "serve.json"
        until(keys.exists, 60)
        until(lambda: "#token=" in yard.log(), 60)
    assert keys.stat().st_mode & 0o777 == 0o600
