"""Commands that only read are known before they run; whatever is not known counts as a command like any other."""

import json
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from genba.connections.agents.read_only_commands import only_reads, pattern

READING = [
    "ls",
    "ls -la src | head -5",
    "cat a.txt b.txt 2>/dev/null",
    "cd src && rg -n 'def main' --glob '*.py' .",
    "sed -n '1,200p' src/app.py",
    'sed -n "10,20p" src/app.py',
    "sed -n 5p a",
    "sed -n '5,$p' a",
    'rg -n "two words" src; wc -l a.txt',
    "rg -g'!*.lock' -A3 foo",
    "find . -maxdepth 2 -name '*.py' -type f",
    "git status --short && git log --oneline -n 5",
    "git --no-pager diff --stat main...HEAD",
    "grep -rn 'a\\b' . || true",
    "tail -n +3 'odd name.txt'",
    "  pwd  ",
]
WRITING = [
    "",
    "rm -rf .",
    "ls > out.txt",
    "ls >out.txt",
    "ls 2> out.txt",
    "cat a >> b",
    "cat a & rm b",
    "ls; rm b",
    "ls\nrm b",
    "ls `rm b`",
    "ls $(rm b)",
    'cat "$(rm b)"',
    'cat "`rm b`"',
    "cat <(rm b)",
    "ls | tee out.txt",
    "ls | xargs rm",
    "echo x | sh",
    "sed -i s/a/b/ a.txt",
    "sed -n 'w out.txt' a.txt",
    "sed -n 1,2p -i a.txt",
    'sed -n "$p" a.txt',
    "sed 's/a/b/e' a",
    "find . -delete",
    "find . -exec rm {} +",
    "find . -fprint out.txt",
    "rg --pre ./evil.sh foo",
    "rg '--pre=./evil.sh' foo",
    'rg "--pre=./evil.sh" foo',
    "rg ''--pre=./evil.sh foo",
    "rg -''-pre=./evil.sh foo",
    'rg ""--pre=./evil.sh foo',
    "rg foo *",
    "sed -n 1p ?i",
    "git diff --output=out.txt",
    "git -c core.pager=evil log",
    "git grep -O./evil.sh foo",
    "git checkout main",
    "git commit -am x",
    "PATH=. ls",
    "./ls",
    "/tmp/cat a",
    "lsof",
    "sort -o out.txt a.txt",
    "uniq a.txt out.txt",
    "tree -o out.txt",
    "cat a \\\n; rm b",
    "cat 'a' ' ; rm b' ; rm c",
    "ls #",
    "ls {a,b}; rm c",
]


@pytest.mark.parametrize("command", READING)
def test_a_command_that_only_reads_is_known(command: str) -> None:
    assert only_reads(command)
    assert passes_the_hook(command)


@pytest.mark.parametrize("command", WRITING)
def test_a_command_that_could_do_more_is_not(command: str) -> None:
    assert not only_reads(command)
    assert not passes_the_hook(command)


def passes_the_hook(command: str, **more: str) -> bool:
    """What the hook of a tool decides, with the very grep that decides there."""
    asked = {"cwd": "/work", "tool_input": {"command": command, **more}, "tool_use_id": "call_1"}
    text = json.dumps(asked, separators=(",", ":"), ensure_ascii=False)
    known = rf'"tool_input":\{{"command":"{pattern(in_json=True)}"\}}'
    found = subprocess.run(["grep", "-Eq", known], input=text.encode("utf-8", "surrogatepass"), check=False)
    return found.returncode == 0


def test_the_hook_is_not_fooled_by_what_stands_beside_the_command() -> None:
    assert not passes_the_hook('rm a; "tool_input":{"command":"ls"}')
    assert not passes_the_hook("cat 'a", sandbox="b'")
    assert not passes_the_hook('cat "a', sandbox='b"')
    assert not passes_the_hook("ls", new_field="of a later version")


@given(st.text(st.sampled_from("ls cat'\"\\;|&$`()<>\n-ab2>/dev/null"), max_size=30))
def test_what_the_hook_lets_through_is_never_more_than_genba_knows(rest: str) -> None:
    command = f"ls {rest}"
    if passes_the_hook(command):
        assert only_reads(command)


@given(st.text(st.sampled_from("ls cat'\"\\;|&$`()<>\n-ab#!{}*~"), max_size=25))
def test_nothing_is_written_by_a_command_that_is_known(tmp_path_factory: pytest.TempPathFactory, rest: str) -> None:
    command = f"cat {rest}"
    if not only_reads(command):
        return
    folder: Path = tmp_path_factory.mktemp("tree")
    subprocess.run(
        ["bash", "-c", command], cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, timeout=20, check=False
    )
    assert list(folder.iterdir()) == []


def test_a_very_long_command_costs_no_time() -> None:
    assert not only_reads("ls " + "a " * 100_000 + ";rm b")
    assert not only_reads("ls " + " " * 1900 + "\\")
    assert not only_reads("cat " + "'a'" * 600 + "$")
    assert not only_reads("rg " + "-a--a=" * 300 + "$")
