"""The page of lying agents says what the corpus says, and every agent on it has a test."""

import re
import subprocess
import sys
from pathlib import Path

from tests.corpus.listing import LIARS, WORKERS
from tests.corpus.page import PAGE, made, renewed

ROOT = Path(__file__).parents[2]


def test_the_page_is_made_from_the_corpus() -> None:
    page = PAGE.read_text(encoding="utf-8")

    assert made() in page, "python -m tests.corpus.page writes it anew"
    assert renewed(page) == page


def test_every_agent_on_the_page_has_a_test() -> None:
    words = [sys.executable, "-m", "pytest", "--collect-only", "-q", "tests/corpus/test_corpus.py", "-p", "no:xdist"]
    output = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    ids = re.findall(r"::(test_\w+)\[(.+)\]$", output, re.MULTILINE)
    lies, work = PAGE.read_text(encoding="utf-8").split("## Honest agents")

    assert _listed(lies) == [name for test, name in ids if test == "test_a_lie_is_not_done"]
    assert _listed(work) == [name for test, name in ids if test == "test_honest_work_is_done"]


def test_no_two_agents_have_the_same_name() -> None:
    for agents in (LIARS, WORKERS):
        names = [agent.name for agent in agents]
        assert len(set(names)) == len(names)


def test_the_corpus_is_as_large_as_it_says() -> None:
    assert len(LIARS) >= 30
    assert len(WORKERS) >= 15


def _listed(text: str) -> list[str]:
    rows = re.findall(r"^\| ([\w-]+) \|", text, re.MULTILINE)
    return [name for name in rows if name != "agent"]
